#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::{Gid, GidType, LinkLayer, PortState};

/// `sys` and `dev` in a directory of their own.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A tree with one device `name` of rxe, of one port.
    fn with(name: &str) -> Self {
        let tree = Self::new();
        tree.device(name, 0);
        tree
    }

    fn device(&self, name: &str, index: u32) {
        let device = format!("infiniband/{name}");
        for (file, content) in [
            ("node_guid", "0000:00ff:fe00:0001\n"),
            ("sys_image_guid", "0000:00ff:fe00:0001\n"),
            ("node_type", "1: CA\n"),
            ("node_desc", "rxe\n"),
            ("fw_ver", "\n"),
            ("parent", "va\n"),
            ("ports/1/state", "4: ACTIVE\n"),
            ("ports/1/phys_state", "5: LinkUp\n"),
            ("ports/1/link_layer", "Ethernet\n"),
            (
                "ports/1/gids/0",
                "fe80:0000:0000:0000:0000:00ff:fe00:0001\n",
            ),
            ("ports/1/gid_attrs/types/0", "RoCE v2\n"),
            ("ports/1/gid_attrs/ndevs/0", "va\n"),
        ] {
            self.set(&format!("{device}/{file}"), content);
        }
        let node = format!("infiniband_verbs/uverbs{index}");
        self.set(&format!("{node}/ibdev"), format!("{name}\n"));
        self.set(&format!("{node}/dev"), format!("231:{}\n", 192 + index));
        self.set(&format!("{node}/abi_version"), "2\n");
    }

    fn class(&self) -> PathBuf {
        self.0.path().join("sys/class")
    }

    fn set(&self, file: &str, content: impl AsRef<[u8]>) {
        let path = self.class().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn remove(&self, file: &str) {
        fs::remove_file(self.class().join(file)).unwrap();
    }

    fn sysfs(&self) -> Sysfs {
        Sysfs::at(self.0.path().join("sys"), self.0.path().join("dev"))
    }

    fn only(&self) -> RdmaDevice {
        let mut devices = self.sysfs().devices().unwrap();
        assert_eq!(devices.len(), 1);
        devices.remove(0)
    }

    fn port(&self) -> Port {
        self.only().ports().unwrap().remove(0)
    }
}

fn unreadable(errno: i32) -> SysfsError {
    SysfsError::Unreadable {
        path: "x".into(),
        source: io::Error::from_raw_os_error(errno),
    }
}

#[test]
fn no_tree_is_no_devices() {
    let sysfs = Tree::new().sysfs();
    assert!(sysfs.devices().unwrap().is_empty());
    assert_eq!(sysfs.uverbs_abi().unwrap(), None);
    let error = sysfs.device("rxe0").unwrap_err();
    assert!(error.is_absent());
    assert!(error.to_string().contains("\"rxe0\""), "{error}");
}

#[test]
fn a_device_has_node_driver_and_port() {
    let tree = Tree::with("rxe0");
    tree.set("infiniband_verbs/abi_version", "6\n");
    assert_eq!(tree.sysfs().uverbs_abi().unwrap(), Some(UVERBS_ABI));
    let device = tree.only();
    assert_eq!(device.name(), "rxe0");
    assert_eq!(*device.driver(), DriverKind::Rxe);
    assert_eq!(device.node_guid().unwrap(), 0x0000_00ff_fe00_0001);
    assert_eq!(device.sys_image_guid().unwrap(), 0x0000_00ff_fe00_0001);
    assert_eq!(device.node_type().unwrap(), NodeType::Ca);
    assert_eq!(device.fw_ver().unwrap(), "");
    assert_eq!(device.board_id().unwrap(), None);
    let node = device.uverbs().unwrap();
    assert_eq!(node.name(), "uverbs0");
    assert_eq!(node.driver_abi(), 2);
    assert!(node.path().ends_with("dev/infiniband/uverbs0"));
    assert_eq!(node.number().to_string(), "231:192");
    let port = tree.port();
    assert_eq!(port.number(), 1);
    assert_eq!(port.state().unwrap(), PortState::Active);
    assert_eq!(port.phys_state().unwrap(), 5);
    assert_eq!(port.link_layer().unwrap(), LinkLayer::Ethernet);
    assert_eq!(device.netdev(&port).unwrap().as_deref(), Some("va"));
}

#[test]
fn devices_and_gids_come_in_the_order_of_their_numbers() {
    let tree = Tree::new();
    for index in [10, 2, 0] {
        tree.device(&format!("mlx5_{index}"), index);
    }
    let names: Vec<String> = tree
        .sysfs()
        .devices()
        .unwrap()
        .iter()
        .map(|device| device.name().to_owned())
        .collect();
    assert_eq!(names, ["mlx5_0", "mlx5_2", "mlx5_10"]);
    let device = tree.sysfs().device("mlx5_10").unwrap();
    assert_eq!(device.uverbs().unwrap().name(), "uverbs10");
}

#[test]
fn the_gid_table_is_sparse() {
    let tree = Tree::with("rxe0");
    let zero = "0000:0000:0000:0000:0000:0000:0000:0000\n";
    for index in 1..1024 {
        tree.set(&format!("infiniband/rxe0/ports/1/gids/{index}"), zero);
    }
    let gids = "infiniband/rxe0/ports/1/gids";
    let attrs = "infiniband/rxe0/ports/1/gid_attrs";
    tree.set(
        &format!("{gids}/7"),
        "0000:0000:0000:0000:0000:ffff:0a00:0001\n",
    );
    tree.set(&format!("{attrs}/types/7"), "IB/RoCE v1\n");
    // One whose address goes away while it is read.
    tree.set(
        &format!("{gids}/9"),
        "fd00:0000:0000:0000:0000:0000:0000:0001\n",
    );
    let found = tree.port().gids().unwrap();
    let indexes: Vec<u32> = found.iter().map(|slot| slot.index).collect();
    assert_eq!(indexes, [0, 7]);
    let second = found.last().unwrap();
    assert_eq!(second.gid, Gid::from_ip([10, 0, 0, 1].into()));
    assert_eq!(second.gid_type, GidType::RoceV1);
    assert_eq!(second.netdev, None);
    assert_eq!(tree.port().gid(1023).unwrap(), None);
    assert_eq!(tree.port().gid(5000).unwrap(), None);
    tree.set("infiniband/rxe0/ports/1/link_layer", "InfiniBand\n");
    let slot = tree.port().gid(7).unwrap().unwrap();
    assert_eq!(slot.gid_type, GidType::Ib);
}

#[test]
fn errno_tells_an_empty_slot_from_a_missing_file() {
    assert!(unreadable(libc::EINVAL).is_empty_slot());
    assert!(!unreadable(libc::EACCES).is_empty_slot());
    assert!(!unreadable(libc::EINVAL).is_absent());
    assert!(unreadable(libc::ENOENT).is_absent());
    assert!(unreadable(libc::ENODEV).is_absent());
}

#[test]
fn drivers_are_told_apart() {
    let tree = Tree::new();
    for name in [
        "rxe_x", "roce", "iwarp", "siw0", "mlx5_0", "bnxt_re0", "odd",
    ] {
        fs::create_dir_all(tree.class().join("infiniband").join(name)).unwrap();
    }
    tree.set("infiniband/roce/parent", "eth0\n");
    tree.set("infiniband/iwarp/node_desc", "Software iWARP stack\n");
    for (name, module) in [("mlx5_0", "mlx5_core"), ("bnxt_re0", "bnxt_en")] {
        let dir = tree.class().join("infiniband").join(name).join("device");
        fs::create_dir(&dir).unwrap();
        symlink(
            Path::new("../../../bus/drivers").join(module),
            dir.join("driver"),
        )
        .unwrap();
    }
    let driver = |name| tree.sysfs().device(name).unwrap().driver().clone();
    assert_eq!(driver("rxe_x"), DriverKind::Rxe);
    assert_eq!(driver("roce"), DriverKind::Rxe);
    assert_eq!(driver("iwarp"), DriverKind::Siw);
    assert_eq!(driver("siw0"), DriverKind::Siw);
    assert_eq!(driver("mlx5_0"), DriverKind::Mlx5);
    assert_eq!(driver("bnxt_re0"), DriverKind::Other("bnxt_en".into()));
    assert_eq!(driver("odd"), DriverKind::Other(String::new()));
    assert_eq!(DriverKind::from_id(14), DriverKind::Rxe);
    assert_eq!(DriverKind::from_id(18).abi(), Some(1));
    assert_eq!(DriverKind::from_id(6).abi(), None);
}

#[test]
fn odd_content_is_named_with_its_file() {
    type Row = (&'static str, &'static [u8], fn(&Tree) -> SysfsError);
    let rows: [Row; 9] = [
        ("node_guid", b"0000:00ff:fe00\n", |tree| {
            tree.only().node_guid().unwrap_err()
        }),
        ("node_guid", b"+000:00ff:fe00:0001\n", |tree| {
            tree.only().node_guid().unwrap_err()
        }),
        ("sys_image_guid", b"0:0:0:0:0\n", |tree| {
            tree.only().sys_image_guid().unwrap_err()
        }),
        ("node_type", b"CA\n", |tree| {
            tree.only().node_type().unwrap_err()
        }),
        ("ports/one/state", b"", |tree| {
            tree.only().ports().unwrap_err()
        }),
        ("ports/1/state", b"9: ODD\n", |tree| {
            tree.port().state().unwrap_err()
        }),
        ("ports/1/phys_state", b"\xff\xfe", |tree| {
            tree.port().phys_state().unwrap_err()
        }),
        ("ports/1/gids/0", b"", |tree| {
            tree.port().gids().unwrap_err()
        }),
        ("ports/1/gid_attrs/types/0", b"RoCE v3\n", |tree| {
            tree.port().gids().unwrap_err()
        }),
    ];
    for (file, content, fails) in rows {
        let tree = Tree::with("rxe0");
        tree.set(&format!("infiniband/rxe0/{file}"), content);
        let message = fails(&tree).to_string();
        let named = file.split('/').next().unwrap();
        assert!(message.contains(named), "{file}: {message}");
        assert!(message.contains("expected"), "{file}: {message}");
    }
}

#[test]
fn an_attribute_longer_than_a_page_is_refused() {
    let tree = Tree::with("rxe0");
    tree.set("infiniband/rxe0/fw_ver", vec![b'9'; 5000]);
    let error = tree.only().fw_ver().unwrap_err();
    assert!(error.to_string().contains("fw_ver is longer"), "{error}");
}

#[test]
fn an_odd_node_spoils_only_its_own_device() {
    let tree = Tree::with("rxe0");
    tree.device("rxe1", 1);
    tree.device("rxe2", 2);
    tree.device("rxe3", 3);
    tree.set("infiniband_verbs/uverbs1/abi_version", "two\n");
    tree.set("infiniband_verbs/uverbs2/dev", "231\n");
    tree.remove("infiniband_verbs/uverbs3/ibdev");
    let devices = tree.sysfs().devices().unwrap();
    let [first, second, third, fourth] = devices.as_slice() else {
        panic!("{devices:?}");
    };
    assert!(first.uverbs().is_ok());
    let message = second.uverbs().unwrap_err().to_string();
    assert!(
        message.contains("uverbs1/abi_version holds \"two\""),
        "{message}"
    );
    let message = third.uverbs().unwrap_err().to_string();
    assert!(message.contains("uverbs2/dev holds \"231\""), "{message}");
    let message = fourth.uverbs().unwrap_err().to_string();
    assert!(
        message.contains("rxe3") && message.contains("ib_uverbs"),
        "{message}"
    );
}

#[test]
fn strange_names_are_devices_too() {
    let tree = Tree::new();
    for name in ["a!b", "ümläut", "two words", "tab\there", "%s"] {
        tree.device(name, 0);
        assert_eq!(tree.sysfs().device(name).unwrap().name(), name);
    }
}

#[test]
fn a_node_that_cannot_be_opened_says_why() {
    let tree = Tree::with("rxe0");
    let dev = tree.0.path().join("dev/infiniband");
    let error = tree.only().uverbs().unwrap().open().unwrap_err();
    assert!(matches!(error, NodeError::Absent { .. }), "{error}");
    assert!(error.to_string().contains("infiniband/uverbs0"), "{error}");
    assert_eq!(error.errno(), libc::ENOENT);

    fs::create_dir_all(&dev).unwrap();
    fs::write(dev.join("uverbs0"), "").unwrap();
    let error = tree.only().uverbs().unwrap().open().unwrap_err();
    assert!(
        error.to_string().contains("it is 0:0, expected 231:192"),
        "{error}"
    );

    fs::remove_file(dev.join("uverbs0")).unwrap();
    symlink("/dev/null", dev.join("uverbs0")).unwrap();
    let error = tree.only().uverbs().unwrap().open().unwrap_err();
    assert!(
        error.to_string().contains("it is 1:3, expected 231:192"),
        "{error}"
    );
}

#[test]
fn a_node_elsewhere_is_found_by_its_number() {
    let tree = Tree::with("rxe0");
    tree.set("infiniband_verbs/uverbs0/dev", "1:3\n");
    let dev = tree.0.path().join("dev/char");
    fs::create_dir_all(&dev).unwrap();
    symlink("/dev/null", dev.join("1:3")).unwrap();
    tree.only().uverbs().unwrap().open().unwrap();
}
