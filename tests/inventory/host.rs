//! A host: a tree with sysfs, device nodes and `/proc`, in a directory of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::TempDir;
use verbs_sys::sysfs::Sysfs;

/// The number of `/dev/null`, which stands for the nodes.
const NULL: &str = "1:3";

pub(crate) struct Host(TempDir);

impl Host {
    pub(crate) fn new() -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(host.path("dev/infiniband")).unwrap();
        host.set("sys/class/infiniband_verbs/abi_version", "6\n");
        host
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    pub(crate) fn set(&self, file: &str, content: impl AsRef<[u8]>) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// An rxe or siw device with an active port and a node that can be opened.
    pub(crate) fn add_device(&self, index: usize, name: &str, guid: u64, node_type: &str) {
        let (description, abi) = match node_type {
            "4: RNIC" => ("Software iWARP stack", "1"),
            _ => ("rxe", "2"),
        };
        let groups = [48, 32, 16, 0].map(|shift| format!("{:04x}", guid >> shift & 0xffff));
        let groups = groups.join(":");
        let device = format!("sys/class/infiniband/{name}");
        for (file, content) in [
            ("node_guid", groups.as_str()),
            ("sys_image_guid", &groups),
            ("node_type", node_type),
            ("node_desc", description),
            ("ports/1/state", "4: ACTIVE"),
            ("ports/1/link_layer", "Ethernet"),
        ] {
            self.set(&format!("{device}/{file}"), format!("{content}\n"));
        }
        let node = format!("sys/class/infiniband_verbs/uverbs{index}");
        for (file, content) in [("ibdev", name), ("dev", NULL), ("abi_version", abi)] {
            self.set(&format!("{node}/{file}"), format!("{content}\n"));
        }
        let node = self.path(&format!("dev/infiniband/uverbs{index}"));
        symlink("/dev/null", node).unwrap();
    }

    /// A process by its name.
    pub(crate) fn add_process(&self, pid: u32, name: &str) {
        self.set(&format!("proc/{pid}/comm"), format!("{name}\n"));
    }

    pub(crate) fn sysfs(&self) -> Sysfs {
        Sysfs::at(self.path("sys"), self.path("dev"))
    }

    pub(crate) fn proc(&self) -> PathBuf {
        self.path("proc")
    }
}
