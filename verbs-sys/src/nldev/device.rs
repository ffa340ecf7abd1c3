//! Devices, ports, character devices, links.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::attribute::{
    CAP_FLAGS, CHARDEV, CHARDEV_ABI, CHARDEV_NAME, CHARDEV_TYPE, DEV_DIM, DEV_INDEX, DEV_NAME,
    DEV_NODE_TYPE, DEV_PROTOCOL, FW_VERSION, LID, LINK_TYPE, LMC, NDEV_INDEX, NDEV_NAME, NET_NS_FD,
    NODE_GUID, PORT_INDEX, PORT_PHYS_STATE, PORT_STATE, SM_LID, SUBNET_PREFIX, SYS_COPY_ON_FORK,
    SYS_IMAGE_GUID, SYS_NETNS_MODE, UVERBS_DRIVER_ID,
};
use super::parse::{Attributes, required};
use super::{Command, Nldev, NldevError, Request, Scope, Transport};
use crate::sysfs::DeviceNumber;

/// A device. What the kernel didn't tell is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceInfo {
    /// Index of the device, by which all other requests name it.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Number of ports; a switch has none.
    pub ports: Option<u32>,
    /// `enum ib_device_cap_flags`, 64 bits.
    pub cap_flags: Option<u64>,
    /// Firmware version.
    pub fw_version: Option<String>,
    /// EUI-64 of the node.
    pub node_guid: Option<u64>,
    /// EUI-64 of the system.
    pub sys_image_guid: Option<u64>,
    /// `enum rdma_node_type`: 1 channel adapter, 4 RNIC.
    pub node_type: Option<u8>,
    /// `ib`, `roce`, `iw`, `opa`, `usnic`.
    pub protocol: Option<String>,
    /// Adaptive interrupt moderation: 0 off, 1 on.
    pub adaptive_moderation: Option<u8>,
}

/// A port. What the kernel didn't tell is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortInfo {
    /// Index of the device.
    pub device: u32,
    /// Name of the device.
    pub name: String,
    /// Number of the port, counted from 1; a switch has none.
    pub port: Option<u32>,
    /// `enum ib_port_capability_mask_bits`, 64 bits; InfiniBand only.
    pub cap_flags: Option<u64>,
    /// InfiniBand only.
    pub subnet_prefix: Option<u64>,
    /// InfiniBand only.
    pub lid: Option<u32>,
    /// InfiniBand only.
    pub sm_lid: Option<u32>,
    /// InfiniBand only.
    pub lmc: Option<u8>,
    /// `enum ib_port_state`: 1 down, 4 active.
    pub state: Option<u8>,
    /// `enum ib_port_phys_state`: 3 disabled, 5 link up.
    pub phys_state: Option<u8>,
    /// Name of the network interface.
    pub netdev: Option<String>,
    /// Index of the network interface.
    pub netdev_index: Option<u32>,
}

/// A character device of an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CharDevice {
    /// Name of the node in `/dev/infiniband`.
    pub name: String,
    /// Its numbers.
    pub number: DeviceNumber,
    /// For `uverbs` the ABI of the driver, for `rdma_cm` that of ucma.
    pub abi: u64,
    /// `enum rdma_driver_id`, for `uverbs`.
    pub driver_id: Option<u32>,
}

/// What holds for all devices. What the kernel didn't tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SystemInfo {
    /// 0: a device is seen in its own network namespace only; 1: in all.
    pub netns_mode: Option<u8>,
    /// Whether pinned pages are copied when a process forks (Linux 5.12).
    pub copy_on_fork: Option<u8>,
}

/// Which network namespaces see a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum NetnsMode {
    /// Only its own.
    Exclusive = 0,
    /// All.
    Shared = 1,
}

impl DeviceInfo {
    fn read(attributes: &Attributes<'_>) -> Result<Self, NldevError> {
        Ok(Self {
            index: required(DEV_INDEX, attributes.u32(DEV_INDEX))?,
            name: required(DEV_NAME, attributes.string(DEV_NAME))?,
            ports: attributes.u32(PORT_INDEX)?,
            cap_flags: attributes.u64(CAP_FLAGS)?,
            fw_version: attributes.string(FW_VERSION)?,
            node_guid: attributes.u64(NODE_GUID)?,
            sys_image_guid: attributes.u64(SYS_IMAGE_GUID)?,
            node_type: attributes.u8(DEV_NODE_TYPE)?,
            protocol: attributes.string(DEV_PROTOCOL)?,
            adaptive_moderation: attributes.u8(DEV_DIM)?,
        })
    }
}

impl PortInfo {
    fn read(attributes: &Attributes<'_>) -> Result<Self, NldevError> {
        Ok(Self {
            device: required(DEV_INDEX, attributes.u32(DEV_INDEX))?,
            name: required(DEV_NAME, attributes.string(DEV_NAME))?,
            port: attributes.u32(PORT_INDEX)?,
            cap_flags: attributes.u64(CAP_FLAGS)?,
            subnet_prefix: attributes.u64(SUBNET_PREFIX)?,
            lid: attributes.u32(LID)?,
            sm_lid: attributes.u32(SM_LID)?,
            lmc: attributes.u8(LMC)?,
            state: attributes.u8(PORT_STATE)?,
            phys_state: attributes.u8(PORT_PHYS_STATE)?,
            netdev: attributes.string(NDEV_NAME)?,
            netdev_index: attributes.u32(NDEV_INDEX)?,
        })
    }
}

impl CharDevice {
    fn read(attributes: &Attributes<'_>) -> Result<Self, NldevError> {
        let number = required(CHARDEV, attributes.u64(CHARDEV))?;
        Ok(Self {
            name: required(CHARDEV_NAME, attributes.string(CHARDEV_NAME))?,
            number: from_huge_encoding(number),
            abi: required(CHARDEV_ABI, attributes.u64(CHARDEV_ABI))?,
            driver_id: attributes.u32(UVERBS_DRIVER_ID)?,
        })
    }
}

/// `huge_encode_dev` of the kernel: bits 8 to 19 are the major number, bits 0
/// to 7 and 20 to 31 the minor.
fn from_huge_encoding(value: u64) -> DeviceNumber {
    DeviceNumber {
        major: (value >> 8 & 0xfff) as u32,
        minor: (value & 0xff | value >> 12 & 0xf_ff00) as u32,
    }
}

/// What is not of one device only.
impl<T: Transport> Nldev<T> {
    /// All devices that this network namespace sees, by index.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn devices(&mut self) -> Result<Vec<DeviceInfo>, NldevError> {
        let request = Request::new(Command::Get, Scope::All);
        self.ask("list the devices", request, DeviceInfo::read)
    }

    /// What holds for all devices.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn system(&mut self) -> Result<SystemInfo, NldevError> {
        let request = Request::new(Command::SysGet, Scope::One);
        self.ask_one("tell its settings", request, |attributes| {
            Ok(SystemInfo {
                netns_mode: attributes.u8(SYS_NETNS_MODE)?,
                copy_on_fork: attributes.u8(SYS_COPY_ON_FORK)?,
            })
        })
    }

    /// Says which network namespaces see a device.
    ///
    /// # Errors
    /// `EBUSY` while there are other namespaces, `EPERM` without
    /// `CAP_NET_ADMIN`.
    pub fn set_netns_mode(&mut self, mode: NetnsMode) -> Result<(), NldevError> {
        let request = Request::new(Command::SysSet, Scope::One).u8(SYS_NETNS_MODE, mode as u8);
        self.tell("change the namespace mode", request)
    }

    /// Makes a software device of the type `kind` (`rxe`, `siw`) over a network
    /// interface; the kernel loads the module.
    ///
    /// # Errors
    /// `EINVAL` for an unknown type or a name with `%`, `ENODEV` without the
    /// interface, `EEXIST` when it has a device of this type or the name is
    /// taken, `EPERM` without `CAP_NET_ADMIN`.
    pub fn add_link(&mut self, name: &str, kind: &str, netdev: &str) -> Result<(), NldevError> {
        let request = Request::new(Command::NewLink, Scope::One)
            .string(DEV_NAME, "the device name", name)?
            .string(LINK_TYPE, "the link type", kind)?
            .string(NDEV_NAME, "the interface name", netdev)?;
        self.tell("make the device", request)
    }
}

/// What is of one device.
impl<T: Transport> Nldev<T> {
    /// A device by its index.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn device(&mut self, index: u32) -> Result<DeviceInfo, NldevError> {
        let request = of_device(Command::Get, index);
        self.ask_one("tell the device", request, DeviceInfo::read)
    }

    /// A port of a device.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn port(&mut self, device: u32, port: u32) -> Result<PortInfo, NldevError> {
        let request = of_device(Command::PortGet, device).u32(PORT_INDEX, port);
        self.ask_one("tell the port", request, PortInfo::read)
    }

    /// The `uverbs` node of a device; the kernel loads the module.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn uverbs(&mut self, device: u32) -> Result<CharDevice, NldevError> {
        let request =
            of_device(Command::GetCharDev, device).string(CHARDEV_TYPE, "the type", "uverbs")?;
        self.ask_one("tell the uverbs node", request, CharDevice::read)
    }

    /// Removes a software device. Waits until nobody uses it any more.
    ///
    /// # Errors
    /// `EINVAL` for a device that wasn't made by [`Self::add_link`], `EPERM`
    /// without `CAP_NET_ADMIN`.
    pub fn delete_link(&mut self, device: u32) -> Result<(), NldevError> {
        self.tell("remove the device", of_device(Command::DelLink, device))
    }

    /// Renames a device.
    ///
    /// # Errors
    /// `EEXIST` when the name is taken, `EPERM` without `CAP_NET_ADMIN`.
    pub fn rename(&mut self, device: u32, name: &str) -> Result<(), NldevError> {
        let request = of_device(Command::Set, device).string(DEV_NAME, "the name", name)?;
        self.tell("rename the device", request)
    }

    /// Moves a device to a network namespace.
    ///
    /// # Errors
    /// `EOPNOTSUPP` in shared mode or for a software device, `EPERM` without
    /// `CAP_NET_ADMIN`.
    pub fn move_to_netns(
        &mut self,
        device: u32,
        namespace: BorrowedFd<'_>,
    ) -> Result<(), NldevError> {
        let fd = namespace.as_raw_fd().cast_unsigned();
        let request = of_device(Command::Set, device).u32(NET_NS_FD, fd);
        self.tell("move the device", request)
    }

    /// Switches adaptive interrupt moderation.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when the device hasn't got it, `EPERM` without
    /// `CAP_NET_ADMIN`.
    pub fn set_adaptive_moderation(&mut self, device: u32, on: bool) -> Result<(), NldevError> {
        let request = of_device(Command::Set, device).u8(DEV_DIM, on.into());
        self.tell("switch adaptive moderation", request)
    }
}

fn of_device(command: Command, index: u32) -> Request {
    Request::new(command, Scope::One).u32(DEV_INDEX, index)
}
