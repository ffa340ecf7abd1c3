//! Which devices there are, and why they can't be used.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

use std::path::Path;

use super::devices_in;
use crate::sysfs::Sysfs;
use crate::{Device, VerbsError};

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A device of rxe whose node is not there.
fn tree(name: &str, description: &str, driver_abi: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let at = |file: &str| format!("class/infiniband/{name}/{file}");
    write(root.path(), &at("node_guid"), "0000:00ff:fe00:0001\n");
    write(root.path(), &at("node_desc"), description);
    write(root.path(), "class/infiniband_verbs/abi_version", "6\n");
    let node = |file: &str| format!("class/infiniband_verbs/uverbs0/{file}");
    write(root.path(), &node("ibdev"), name);
    write(root.path(), &node("abi_version"), driver_abi);
    write(root.path(), &node("dev"), "231:192\n");
    root
}

/// Why the only device of a tree can't be opened, and the `errno`.
fn refusal(root: &tempfile::TempDir) -> (String, i32) {
    let devices = devices_in(&Sysfs::at(root.path(), root.path())).unwrap();
    assert_eq!(devices.len(), 1);
    let error = devices[0].open().err().unwrap();
    assert!(matches!(error, VerbsError::Unusable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with(devices[0].name()), "{text}");
    (text, error.errno())
}

#[test]
fn the_reason_is_named() {
    let cases = [
        ("rxe_a", "rxe", "2", "uverbs0", libc::ENOENT),
        (
            "rxe_a",
            "rxe",
            "3",
            "speaks ABI 3, this program 2",
            libc::ENOSYS,
        ),
        (
            "s_0",
            "Software iWARP stack",
            "7",
            "speaks ABI 7",
            libc::ENOSYS,
        ),
        ("hns_0", "", "1", "its driver is unknown", libc::EOPNOTSUPP),
        ("rxe_a", "rxe", "two", "abi_version", libc::ENODEV),
    ];
    for (name, description, abi, word, errno) in cases {
        let (text, code) = refusal(&tree(name, description, abi));
        assert!(text.contains(word), "{text:?} lacks {word:?}");
        assert_eq!(code, errno, "{text}");
    }
}

#[test]
fn a_newer_uverbs_is_named() {
    let root = tree("rxe_a", "rxe", "2");
    write(root.path(), "class/infiniband_verbs/abi_version", "7\n");
    let (text, _) = refusal(&root);
    assert!(
        text.contains("uverbs module speaks ABI 7, this program 6"),
        "{text}"
    );
}

#[test]
fn what_is_no_device_node_is_named() {
    let root = tree("rxe_a", "rxe", "2");
    write(root.path(), "infiniband/uverbs0", "");
    let (text, errno) = refusal(&root);
    assert!(text.contains("not the device that sysfs names"), "{text}");
    assert_eq!(errno, libc::ENODEV);
}

#[test]
fn a_device_is_found_by_an_address_even_if_it_is_unusable() {
    let root = tree("rxe_a", "rxe", "2");
    let port = |file: &str| format!("class/infiniband/rxe_a/ports/1/{file}");
    write(root.path(), &port("link_layer"), "Ethernet\n");
    write(
        root.path(),
        &port("gids/1"),
        "0000:0000:0000:0000:0000:ffff:0a00:0001\n",
    );
    write(root.path(), &port("gid_attrs/types/1"), "RoCE v2\n");
    write(root.path(), &port("gid_attrs/ndevs/1"), "eth0\n");
    let device = devices_in(&Sysfs::at(root.path(), root.path()))
        .unwrap()
        .remove(0);
    assert_eq!(device.node_guid(), 0xff_fe00_0001);
    assert!(device.has_gid(crate::Gid::from_ip([10, 0, 0, 1].into())));
    assert!(!device.has_gid(crate::Gid::from_ip([10, 0, 0, 2].into())));
}

#[test]
fn no_kernel_devices_are_none() {
    let root = tempfile::tempdir().unwrap();
    assert!(
        devices_in(&Sysfs::at(root.path(), root.path()))
            .unwrap()
            .is_empty()
    );
}
