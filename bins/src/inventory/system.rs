//! Where the commands look.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rxe_user::device::{self, Options, UserDevice};
use verbs_sys::kernel;
use verbs_sys::nldev::{Nldev, NldevError, Socket, Transport};
use verbs_sys::sysfs::Sysfs;
use verbs_sys::{Context, Device, Result as VerbsResult, VerbsError};

/// Opens a device of the kernel by its name.
pub type OpenKernelDevice<'a> = dyn Fn(&str) -> VerbsResult<Arc<dyn Context>> + 'a;
/// Opens a conversation with the kernel's device management.
pub type OpenNetlink<'a> = dyn Fn() -> Result<Box<dyn Transport>, NldevError> + 'a;

/// Where the commands look; tests put other things in its place.
pub struct System<'a> {
    /// Sysfs and the device nodes.
    pub sysfs: Sysfs,
    /// `/proc`, for the names of processes.
    pub proc: PathBuf,
    /// The kernel's device management.
    pub netlink: Box<OpenNetlink<'a>>,
    /// The verbs of the kernel's devices.
    pub open: Box<OpenKernelDevice<'a>>,
    /// The devices of the userspace NIC, or why they can't be listed.
    pub userspace: VerbsResult<Vec<UserspaceDevice>>,
}

/// A device of the userspace NIC.
#[derive(Debug)]
pub struct UserspaceDevice {
    /// Its network interface.
    pub netdev: String,
    /// Index of the interface.
    pub netdev_index: u32,
    /// Whether the interface has a carrier.
    pub running: bool,
    /// Addresses of the interface, which are its GIDs.
    pub addresses: Vec<IpAddr>,
    /// The device itself.
    pub device: Box<dyn Device>,
}

impl System<'static> {
    /// This host.
    #[must_use]
    pub fn of_host() -> Self {
        let userspace = device::devices(&Options::default())
            .map(|devices| devices.into_iter().map(UserspaceDevice::from).collect());
        Self {
            sysfs: Sysfs::default(),
            proc: "/proc".into(),
            netlink: Box::new(|| Ok(Box::new(Socket::open()?))),
            open: Box::new(open_kernel_device),
            userspace,
        }
    }
}

fn open_kernel_device(name: &str) -> VerbsResult<Arc<dyn Context>> {
    let devices = kernel::devices()?;
    let found = devices.iter().find(|device| device.name() == name);
    found.map_or_else(
        || {
            Err(VerbsError::Unusable {
                device: name.to_owned(),
                reason: "it has just been removed".to_owned(),
                errno: libc::ENODEV,
            })
        },
        Device::open,
    )
}

impl System<'_> {
    pub(super) fn nldev(&self) -> Result<Nldev<Box<dyn Transport>>, NldevError> {
        (self.netlink)().map(Nldev::new)
    }

    /// Name of a process; `None` when it is gone.
    pub(super) fn process_name(&self, pid: u32) -> Option<String> {
        let comm = self.proc.join(pid.to_string()).join("comm");
        let name = std::fs::read(comm).ok()?;
        let name = String::from_utf8_lossy(&name);
        Some(name.lines().next().unwrap_or_default().to_owned())
    }
}

impl From<UserDevice> for UserspaceDevice {
    fn from(device: UserDevice) -> Self {
        let netdev = device.netdev();
        Self {
            netdev: netdev.name.clone(),
            netdev_index: netdev.index,
            running: netdev.running,
            addresses: netdev.addresses.clone(),
            device: Box::new(device),
        }
    }
}
