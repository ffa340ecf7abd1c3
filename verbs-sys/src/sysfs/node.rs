//! `/dev/infiniband/uverbsN`: opening it, and why it can't be.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::SysfsError;
use super::attribute;

/// The character device that opens an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UverbsNode {
    name: String,
    path: PathBuf,
    by_number: PathBuf,
    number: DeviceNumber,
    driver_abi: u32,
}

/// Major and minor number of a device node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceNumber {
    /// Major number: the driver.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl UverbsNode {
    pub(super) fn read(dir: &Path, name: &str, dev: &Path) -> Result<Self, SysfsError> {
        let number = attribute::parsed(
            &dir.join("dev"),
            "a device number such as 231:192",
            |text| {
                let (major, minor) = text.split_once(':')?;
                Some(DeviceNumber {
                    major: major.parse().ok()?,
                    minor: minor.parse().ok()?,
                })
            },
        )?;
        Ok(Self {
            path: dev.join("infiniband").join(name),
            by_number: dev.join("char").join(number.to_string()),
            name: name.to_owned(),
            number,
            driver_abi: attribute::number(&dir.join("abi_version"), "an ABI version")?,
        })
    }

    /// `uverbsN`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `/dev/infiniband/uverbsN`, be it there or not.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The numbers that the node has to have.
    #[must_use]
    pub fn number(&self) -> DeviceNumber {
        self.number
    }

    /// The ABI of the kernel driver (rxe 2, siw 1, mlx5 1); see
    /// [`DriverKind::abi`](super::DriverKind::abi).
    #[must_use]
    pub fn driver_abi(&self) -> u32 {
        self.driver_abi
    }

    /// Opens the node for reading and writing, close-on-exec, and checks that
    /// it is the device that sysfs names. Where `/dev/infiniband` lacks it or
    /// has another device there, `/dev/char/MAJOR:MINOR` is tried.
    ///
    /// # Errors
    /// Why it can't be opened; the first path's reason when both fail.
    pub fn open(&self) -> Result<File, NodeError> {
        match self.open_at(&self.path) {
            Err(error @ (NodeError::Absent { .. } | NodeError::OtherDevice { .. })) => {
                self.open_at(&self.by_number).map_err(|_| error)
            }
            opened => opened,
        }
    }

    fn open_at(&self, path: &Path) -> Result<File, NodeError> {
        let path = || path.to_owned();
        let opened = OpenOptions::new().read(true).write(true).open(path());
        let file = opened.map_err(|source| match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => NodeError::Absent { path: path() },
            Some(libc::EACCES) => NodeError::NoPermission { path: path() },
            Some(libc::EPERM) => NodeError::OtherNamespace { path: path() },
            Some(libc::ENXIO | libc::ENODEV | libc::EIO) => NodeError::Gone {
                path: path(),
                source,
            },
            _ => NodeError::Refused {
                path: path(),
                source,
            },
        })?;
        let refused = |source| NodeError::Refused {
            path: path(),
            source,
        };
        let metadata = file.metadata().map_err(refused)?;
        let number = DeviceNumber {
            major: libc::major(metadata.rdev()),
            minor: libc::minor(metadata.rdev()),
        };
        if !metadata.file_type().is_char_device() || number != self.number {
            return Err(NodeError::OtherDevice {
                path: path(),
                seen: number,
                expected: self.number,
            });
        }
        Ok(file)
    }
}

/// Why a device node can't be opened, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// There is no node.
    #[error("there is no {}; udev or devtmpfs makes it, in a container it has to be passed in (docker: --device)", path.display())]
    Absent {
        /// The node.
        path: PathBuf,
    },
    /// The file's permissions don't let this user (`EACCES`).
    #[error("no permission to open {}; it has to be readable and writable for this user (rdma-core's udev rule makes it 0666)", path.display())]
    NoPermission {
        /// The node.
        path: PathBuf,
    },
    /// The device belongs to another network namespace, or a cgroup withholds
    /// it (`EPERM`).
    #[error("the kernel doesn't permit to open {}: the device is in another network namespace (see `rdma system`), or the cgroup's device list lacks it", path.display())]
    OtherNamespace {
        /// The node.
        path: PathBuf,
    },
    /// The driver is gone (`ENXIO`, `ENODEV`, `EIO`).
    #[error("{} is there, but the device behind it is gone ({source})", path.display())]
    Gone {
        /// The node.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The node is a file or another device.
    #[error("{} is not the device that sysfs names: it is {seen}, expected {expected}; make it anew", path.display())]
    OtherDevice {
        /// The node.
        path: PathBuf,
        /// Its numbers; 0:0 for what isn't a device.
        seen: DeviceNumber,
        /// The numbers in sysfs.
        expected: DeviceNumber,
    },
    /// Another reason.
    #[error("can't open {}: {source}", path.display())]
    Refused {
        /// The node.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl NodeError {
    /// The `errno` that libibverbs would have seen.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Absent { .. } => libc::ENOENT,
            Self::NoPermission { .. } => libc::EACCES,
            Self::OtherNamespace { .. } => libc::EPERM,
            Self::OtherDevice { .. } => libc::ENODEV,
            Self::Gone { source, .. } | Self::Refused { source, .. } => {
                source.raw_os_error().unwrap_or(libc::EIO)
            }
        }
    }
}
