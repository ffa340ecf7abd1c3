//! The recorded sysfs of a host with two rxe devices and a siw device, built
//! up again in a directory.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use verbs_sys::sysfs::{DriverKind, NodeType, Sysfs, UVERBS_ABI};

fn golden_folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("GOLDEN_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden"),
        PathBuf::from,
    );
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no golden data in {}", folder.display());
    None
}

/// Path and content of the recorded files. Those that the kernel refused to
/// read are left out.
fn recorded(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("sysfs_") {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines() {
            let mut columns = line.splitn(3, '\t');
            let (Some(file), Some(_mode), Some(content)) =
                (columns.next(), columns.next(), columns.next())
            else {
                continue;
            };
            if file.starts_with("/sys/") && !content.starts_with("cat: ") {
                files.insert(file.to_owned(), content.replace('|', "\n"));
            }
        }
    }
    files
}

/// The part of `path` that stands for one `*` of `pattern`, whose other parts
/// have to be the same.
fn matching<'a>(path: &'a str, pattern: &str) -> Option<&'a str> {
    let (before, after) = pattern.split_once('*')?;
    let found = path.strip_prefix(before)?.strip_suffix(after)?;
    (!found.contains('/')).then_some(found)
}

#[test]
fn golden_sysfs_is_read_as_recorded() {
    let Some(folder) = golden_folder("system") else {
        return;
    };
    let files = recorded(&folder);
    let root = tempfile::tempdir().unwrap();
    for (path, content) in &files {
        let path = root.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let content = |path: String| {
        files
            .get(&path)
            .map(|content| content.trim_end_matches('\n'))
    };
    let sysfs = Sysfs::at(root.path().join("sys"), root.path().join("dev"));
    let devices = sysfs.devices().unwrap();
    let names: Vec<&str> = files
        .keys()
        .filter_map(|path| matching(path, "/sys/class/infiniband/*/node_guid"))
        .collect();
    let mut read: Vec<&str> = devices.iter().map(|device| device.name()).collect();
    read.sort_unstable();
    assert_eq!(read, names);
    assert!(!names.is_empty(), "the record holds a device");
    assert_eq!(sysfs.uverbs_abi().unwrap(), Some(UVERBS_ABI));
    for device in &devices {
        let class = format!("/sys/class/infiniband/{}", device.name());
        let guid = device.node_guid().unwrap();
        let digits = content(format!("{class}/node_guid")).unwrap();
        assert_eq!(format!("{guid:016x}"), digits.replace(':', ""));
        let parent = content(format!("{class}/parent"));
        if parent.is_some() {
            assert_eq!(*device.driver(), DriverKind::Rxe);
        } else if device.node_type().unwrap() == NodeType::Rnic {
            assert_eq!(*device.driver(), DriverKind::Siw);
        }
        let node = device.uverbs().unwrap();
        assert_eq!(device.driver().abi(), Some(node.driver_abi()));
        let verbs = format!("/sys/class/infiniband_verbs/{}", node.name());
        assert_eq!(content(format!("{verbs}/ibdev")), Some(device.name()));
        let number = node.number().to_string();
        assert_eq!(content(format!("{verbs}/dev")), Some(number.as_str()));
        for port in device.ports().unwrap() {
            let dir = format!("{class}/ports/{}", port.number());
            let state = format!("{}: ", port.state().unwrap() as u8);
            assert!(content(format!("{dir}/state")).unwrap().starts_with(&state));
            let netdev = device.netdev(&port).unwrap();
            assert_eq!(netdev.as_deref(), parent);
            let slots = port.gids().unwrap();
            for slot in &slots {
                let index = slot.index;
                let groups = content(format!("{dir}/gids/{index}")).unwrap();
                let bytes: String = slot.gid.0.iter().map(|b| format!("{b:02x}")).collect();
                assert_eq!(bytes, groups.replace(':', ""));
                let recorded = content(format!("{dir}/gid_attrs/ndevs/{index}"));
                assert_eq!(slot.netdev.as_deref(), recorded);
            }
            let used = files
                .iter()
                .filter(|(path, _)| matching(path, &format!("{dir}/gids/*")).is_some())
                .filter(|(_, gid)| !gid.trim_matches(['0', ':', '\n']).is_empty());
            assert_eq!(used.count(), slots.len());
        }
    }
}
