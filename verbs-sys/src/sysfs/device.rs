//! A device: its identity, its driver, its ports.

use std::path::{Path, PathBuf};

use super::attribute::{self, hex_groups};
use super::{Port, SysfsError, UverbsNode, entries};

/// An RDMA device of the kernel.
#[derive(Debug)]
pub struct RdmaDevice {
    name: String,
    dir: PathBuf,
    driver: DriverKind,
    uverbs: Result<UverbsNode, SysfsError>,
}

impl RdmaDevice {
    pub(super) fn new(
        name: String,
        dir: PathBuf,
        node: Option<Result<UverbsNode, SysfsError>>,
    ) -> Self {
        let uverbs = node.unwrap_or_else(|| {
            Err(SysfsError::NoUverbs {
                device: name.clone(),
            })
        });
        Self {
            driver: DriverKind::of(&name, &dir),
            name,
            dir,
            uverbs,
        }
    }

    /// Its name, as users give it with `-d`. What isn't UTF-8 is replaced.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its directory in `/sys/class/infiniband`.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The driver, as far as sysfs tells; `NETLINK_RDMA` knows for certain.
    #[must_use]
    pub fn driver(&self) -> &DriverKind {
        &self.driver
    }

    /// The node that opens it.
    ///
    /// # Errors
    /// `NoUverbs` when it has none, or what is wrong with the files that name it.
    pub fn uverbs(&self) -> Result<&UverbsNode, &SysfsError> {
        self.uverbs.as_ref()
    }

    /// EUI-64 of the node.
    ///
    /// # Errors
    /// When `node_guid` can't be read or isn't four groups of four digits.
    pub fn node_guid(&self) -> Result<u64, SysfsError> {
        self.guid("node_guid")
    }

    /// EUI-64 of the system.
    ///
    /// # Errors
    /// As [`Self::node_guid`].
    pub fn sys_image_guid(&self) -> Result<u64, SysfsError> {
        self.guid("sys_image_guid")
    }

    /// What kind of node it is.
    ///
    /// # Errors
    /// When `node_type` can't be read or doesn't begin with a number.
    pub fn node_type(&self) -> Result<NodeType, SysfsError> {
        let path = self.dir.join("node_type");
        attribute::numbered_word(&path, "a node type such as \"1: CA\"").map(NodeType::from_code)
    }

    /// Firmware version; empty for a device that has none.
    ///
    /// # Errors
    /// When `fw_ver` is there and can't be read.
    pub fn fw_ver(&self) -> Result<String, SysfsError> {
        let text = attribute::optional(attribute::text(&self.dir.join("fw_ver")))?;
        Ok(text.unwrap_or_default())
    }

    /// Board (PSID), where the driver tells it.
    ///
    /// # Errors
    /// When `board_id` is there and can't be read.
    pub fn board_id(&self) -> Result<Option<String>, SysfsError> {
        attribute::optional(attribute::text(&self.dir.join("board_id")))
    }

    /// Its ports by number.
    ///
    /// # Errors
    /// When `ports` can't be read, or has an entry that isn't a port number.
    pub fn ports(&self) -> Result<Vec<Port>, SysfsError> {
        let dir = self.dir.join("ports");
        let mut ports = Vec::new();
        for name in entries(&dir)? {
            let number = name.to_str().and_then(|name| name.parse().ok());
            let Some(number) = number.filter(|number| *number != 0) else {
                return Err(SysfsError::Unexpected {
                    path: dir,
                    seen: name.to_string_lossy().into_owned(),
                    expected: "entries named 1 to 255",
                });
            };
            ports.push(Port::new(number, dir.join(name)));
        }
        Ok(ports)
    }

    /// The network interface of a port, if it has one that sysfs names: that of
    /// its first GID, or of the device where the whole device has one (rxe).
    /// siw's isn't in sysfs; `NETLINK_RDMA` knows it.
    ///
    /// # Errors
    /// When a file that names it can't be read.
    pub fn netdev(&self, port: &Port) -> Result<Option<String>, SysfsError> {
        if let Some(name) = port.netdev()? {
            return Ok(Some(name));
        }
        attribute::optional(attribute::text(&self.dir.join("parent")))
    }

    fn guid(&self, file: &str) -> Result<u64, SysfsError> {
        attribute::parsed(
            &self.dir.join(file),
            "a GUID such as 0000:00ff:fe00:0001",
            |text| hex_groups(text).map(u64::from_be_bytes),
        )
    }
}

/// Which kernel driver is behind a device (`enum rdma_driver_id`), as far as it
/// matters who can drive it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverKind {
    /// Soft-RoCE, `rdma_rxe`.
    Rxe,
    /// Soft-iWARP, `siw`.
    Siw,
    /// ConnectX-4 and later, BlueField.
    Mlx5,
    /// Another one, by the name of its module; empty when sysfs doesn't tell.
    Other(String),
}

impl DriverKind {
    /// The driver of a device with this `RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID`.
    #[must_use]
    pub fn from_id(id: u32) -> Self {
        match id {
            1 => Self::Mlx5,
            14 => Self::Rxe,
            18 => Self::Siw,
            _ => Self::Other(format!("driver id {id}")),
        }
    }

    /// The ABI of the driver that this crate speaks, which the kernel gives in
    /// `uverbsN/abi_version`; `None` where it doesn't speak any.
    #[must_use]
    pub fn abi(&self) -> Option<u32> {
        match self {
            Self::Rxe => Some(2),
            Self::Siw | Self::Mlx5 => Some(1),
            Self::Other(_) => None,
        }
    }

    /// A driver of hardware by its symbolic link; the software ones by the
    /// attribute that only rxe has, or the description that siw is born with,
    /// or the beginning of the name.
    fn of(name: &str, dir: &Path) -> Self {
        let driver = std::fs::read_link(dir.join("device/driver")).ok();
        if let Some(module) = driver.as_deref().and_then(Path::file_name) {
            return match module.to_string_lossy().as_ref() {
                "mlx5_core" => Self::Mlx5,
                other => Self::Other(other.to_owned()),
            };
        }
        let described = attribute::text(&dir.join("node_desc")).unwrap_or_default();
        if dir.join("parent").exists() || described == "rxe" {
            Self::Rxe
        } else if described == "Software iWARP stack" {
            Self::Siw
        } else if name.starts_with("rxe") {
            Self::Rxe
        } else if name.starts_with("siw") {
            Self::Siw
        } else {
            Self::Other(String::new())
        }
    }
}

/// `enum rdma_node_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeType {
    /// Channel adapter (InfiniBand, RoCE).
    Ca,
    /// InfiniBand switch.
    Switch,
    /// InfiniBand router.
    Router,
    /// iWARP NIC.
    Rnic,
    /// usNIC.
    Usnic,
    /// usNIC over UDP.
    UsnicUdp,
    /// Unspecified (EFA).
    Unspecified,
    /// A number that this crate doesn't know.
    Unknown(u8),
}

impl NodeType {
    /// The type with this number of the kernel.
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Ca,
            2 => Self::Switch,
            3 => Self::Router,
            4 => Self::Rnic,
            5 => Self::Usnic,
            6 => Self::UsnicUdp,
            7 => Self::Unspecified,
            other => Self::Unknown(other),
        }
    }
}
