//! RDMA devices as sysfs shows them: `/sys/class/infiniband` and
//! `/sys/class/infiniband_verbs`.
//!
//! [`Sysfs::devices`] is what libibverbs calls the device list: every RDMA
//! device, the `uverbsN` node that opens it, the ABI of its kernel driver, and
//! which driver that is. What else the tree holds is read when it is asked for,
//! by the methods of [`RdmaDevice`] and [`Port`]. Every error names the file.
//!
//! | file | |
//! |---|---|
//! | `device` | a device: its identity, its driver, its ports |
//! | `port` | a port: state, link, GID table |
//! | `node` | `/dev/infiniband/uverbsN`: opening it, and why it can't be |
//! | `attribute` | reading and parsing one file |
//!
//! The roots are parameters, so that tests make trees of their own. Source of
//! the layout: `Documentation/ABI/stable/sysfs-class-infiniband` of the kernel.

mod attribute;
mod device;
mod error;
mod node;
mod port;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use device::{DriverKind, NodeType, RdmaDevice};
pub use error::SysfsError;
pub use node::{DeviceNumber, NodeError, UverbsNode};
pub use port::{GidSlot, Port};

/// The uverbs ABI that this crate speaks, `IB_USER_VERBS_ABI_VERSION`; it has
/// been 6 since Linux 2.6.15.
pub const UVERBS_ABI: u32 = 6;

/// Where sysfs and the device nodes are.
#[derive(Debug, Clone)]
pub struct Sysfs {
    root: PathBuf,
    dev: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self::at("/sys", "/dev")
    }
}

impl Sysfs {
    /// Trees in other places: `root` instead of `/sys`, `dev` instead of `/dev`.
    pub fn at(root: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            dev: dev.into(),
        }
    }

    /// All RDMA devices, by name. No device at all is an empty list, as is a
    /// kernel without RDMA.
    ///
    /// A device whose uverbs node can't be made out is listed, and says so in
    /// [`RdmaDevice::uverbs`].
    ///
    /// # Errors
    /// When a directory of the tree exists but can't be read.
    pub fn devices(&self) -> Result<Vec<RdmaDevice>, SysfsError> {
        let class = self.root.join("class/infiniband");
        let mut nodes = self.nodes()?;
        let devices = entries(&class)?.into_iter().map(|name| {
            let dir = class.join(&name);
            let name = name.to_string_lossy().into_owned();
            let at = nodes.iter().position(|node| node.belongs_to(&name));
            let node = at.map(|at| nodes.swap_remove(at).node);
            RdmaDevice::new(name, dir, node)
        });
        Ok(devices.collect())
    }

    /// One device by its name.
    ///
    /// # Errors
    /// `NoDevice` when there is none of that name, else as [`Self::devices`].
    pub fn device(&self, name: &str) -> Result<RdmaDevice, SysfsError> {
        let found = self.devices()?.into_iter().find(|d| d.name() == name);
        found.ok_or_else(|| SysfsError::NoDevice {
            name: name.to_owned(),
            class: self.root.join("class/infiniband"),
        })
    }

    /// The ABI of the uverbs module, which has to be [`UVERBS_ABI`]; `None`
    /// when `ib_uverbs` isn't loaded.
    ///
    /// # Errors
    /// When the file is there and doesn't hold a number.
    pub fn uverbs_abi(&self) -> Result<Option<u32>, SysfsError> {
        attribute::optional(attribute::number(
            &self.verbs_class().join("abi_version"),
            "an ABI version",
        ))
    }

    fn verbs_class(&self) -> PathBuf {
        self.root.join("class/infiniband_verbs")
    }

    /// The `uverbsN` directories with the device each of them belongs to.
    fn nodes(&self) -> Result<Vec<FoundNode>, SysfsError> {
        let class = self.verbs_class();
        let nodes = entries(&class)?
            .into_iter()
            .filter(|name| name.to_string_lossy().starts_with("uverbs"))
            .map(|name| {
                let dir = class.join(&name);
                FoundNode {
                    device: attribute::text(&dir.join("ibdev")),
                    node: UverbsNode::read(&dir, &name.to_string_lossy(), &self.dev),
                }
            });
        Ok(nodes.collect())
    }
}

/// A `uverbsN` directory. One that is odd or has just gone away is kept: it
/// must not hide the others.
struct FoundNode {
    device: Result<String, SysfsError>,
    node: Result<UverbsNode, SysfsError>,
}

impl FoundNode {
    fn belongs_to(&self, device: &str) -> bool {
        self.device.as_ref().is_ok_and(|name| name == device)
    }
}

/// The names in a directory in natural order (`uverbs2` before `uverbs10`);
/// none when there is no such directory.
fn entries(dir: &Path) -> Result<Vec<OsString>, SysfsError> {
    let list = || -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    };
    let mut names = match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        listed => listed.map_err(|source| SysfsError::Unreadable {
            path: dir.to_owned(),
            source,
        })?,
    };
    names.sort_by_key(|name| natural(&name.to_string_lossy()));
    Ok(names)
}

/// A key that sorts a trailing number by value.
fn natural(name: &str) -> (String, Option<u64>, String) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name
        .get(stem.len()..)
        .and_then(|digits| digits.parse().ok());
    (stem.to_owned(), number, name.to_owned())
}

#[cfg(test)]
mod tests;
