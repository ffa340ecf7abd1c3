//! What is wrong with a file of sysfs.

use std::io;
use std::path::PathBuf;

/// What is wrong with a file of sysfs. Messages name the file.
#[derive(Debug, thiserror::Error)]
pub enum SysfsError {
    /// The kernel doesn't let it be read, or it isn't there.
    #[error("can't read {}: {source}", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It holds something else than it should.
    #[error("{} holds {seen:?}, expected {expected}", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// Its content.
        seen: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// It is longer than an attribute of sysfs can be.
    #[error("{} is longer than {limit} bytes, the longest attribute of sysfs", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Longest attribute, in bytes.
        limit: usize,
    },
    /// The device has no entry in `/sys/class/infiniband_verbs`.
    #[error(
        "no directory of /sys/class/infiniband_verbs has {device} in its file ibdev: load the kernel module ib_uverbs"
    )]
    NoUverbs {
        /// Name of the device.
        device: String,
    },
    /// There is no such device.
    #[error("there is no device {name:?} in {}", class.display())]
    NoDevice {
        /// Its name.
        name: String,
        /// Where it was looked for.
        class: PathBuf,
    },
}

impl SysfsError {
    /// Whether the file isn't there, be it that this kernel hasn't got it, or
    /// that the device has gone away.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Unreadable { source, .. } => {
                source.kind() == io::ErrorKind::NotFound
                    || source.raw_os_error() == Some(libc::ENODEV)
            }
            Self::NoUverbs { .. } | Self::NoDevice { .. } => true,
            Self::Unexpected { .. } | Self::TooLong { .. } => false,
        }
    }

    /// Whether the file stands for a table slot that is empty: `EINVAL` when
    /// its type or interface is read.
    #[must_use]
    pub fn is_empty_slot(&self) -> bool {
        match self {
            Self::Unreadable { source, .. } => source.raw_os_error() == Some(libc::EINVAL),
            _ => false,
        }
    }
}
