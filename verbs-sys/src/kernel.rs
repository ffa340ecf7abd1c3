//! The kernel's RDMA devices, as devices that can be opened.
//!
//! Every device that sysfs shows is listed. One that this crate can't drive
//! says why when it is opened.

use std::net::IpAddr;
use std::sync::Arc;

use crate::drivers::Driver;
use crate::drivers::context::KernelContext;
use crate::drivers::rxe::Rxe;
use crate::drivers::siw::Siw;
use crate::sysfs::{DriverKind, RdmaDevice, Sysfs, SysfsError, UVERBS_ABI};
use crate::uverbs::kernel::CharacterDevice;
use crate::{Context, Device, Gid, Result, VerbsError};

/// A device of the kernel.
#[derive(Debug, Clone)]
pub struct KernelDevice {
    device: Arc<RdmaDevice>,
    node_guid: u64,
    /// The uverbs ABI of the kernel.
    uverbs_abi: Option<u32>,
}

/// All devices of the kernel, by name.
///
/// # Errors
/// When sysfs can't be read.
pub fn devices() -> Result<Vec<KernelDevice>> {
    devices_in(&Sysfs::default())
}

/// [`devices`] of the trees that `sysfs` names.
///
/// # Errors
/// As [`devices`].
pub fn devices_in(sysfs: &Sysfs) -> Result<Vec<KernelDevice>> {
    let listing = |error: SysfsError| VerbsError::Io {
        action: "list the kernel's RDMA devices".to_owned(),
        source: std::io::Error::other(error),
    };
    let devices = sysfs.devices().map_err(listing)?;
    let uverbs_abi = sysfs.uverbs_abi().map_err(listing)?;
    let devices = devices.into_iter().map(|device| KernelDevice {
        // What can't be read is said when the device is opened.
        node_guid: device.node_guid().unwrap_or(0),
        device: Arc::new(device),
        uverbs_abi,
    });
    Ok(devices.collect())
}

/// The device with a GID of this address, be it usable or not; `None` when
/// there is none.
///
/// # Errors
/// As [`devices`].
pub fn device_for(address: IpAddr) -> Result<Option<KernelDevice>> {
    let gid = Gid::from_ip(address);
    Ok(devices()?.into_iter().find(|device| device.has_gid(gid)))
}

impl KernelDevice {
    /// What sysfs says about it.
    #[must_use]
    pub fn sysfs(&self) -> &RdmaDevice {
        &self.device
    }

    /// Whether one of its ports has the GID.
    fn has_gid(&self, gid: Gid) -> bool {
        // The command takes one system call, sysfs thousands.
        if let Ok(table) = self.open().and_then(|context| context.query_gid_table()) {
            return table.iter().any(|entry| entry.gid == gid);
        }
        let ports = self.device.ports().unwrap_or_default();
        ports.iter().any(|port| {
            let slots = port.gids().unwrap_or_default();
            slots.iter().any(|slot| slot.gid == gid)
        })
    }

    fn open_as<D: Driver>(&self) -> Result<Arc<dyn Context>> {
        let node = self
            .device
            .uverbs()
            .map_err(|error| self.unusable(error.to_string(), libc::ENODEV))?;
        if let Some(abi) = self.uverbs_abi.filter(|abi| *abi != UVERBS_ABI) {
            return Err(self.other_abi("the kernel's uverbs module", abi, UVERBS_ABI));
        }
        let (seen, spoken) = (node.driver_abi(), self.device.driver().abi());
        if let Some(spoken) = spoken.filter(|spoken| *spoken != seen) {
            return Err(self.other_abi("its driver", seen, spoken));
        }
        let file = node
            .open()
            .map_err(|error| self.unusable(error.to_string(), error.errno()))?;
        let kernel = Box::new(CharacterDevice::new(file));
        let context = KernelContext::<D>::open(&self.device, kernel)
            .map_err(|error| self.unusable(error.to_string(), error.errno()))?;
        Ok(Arc::new(context))
    }

    fn other_abi(&self, whose: &str, seen: u32, spoken: u32) -> VerbsError {
        let reason = format!(
            "{whose} speaks ABI {seen}, this program {spoken}; use a kernel or a version of this \
             program that agree"
        );
        self.unusable(reason, libc::ENOSYS)
    }

    fn unusable(&self, reason: String, errno: i32) -> VerbsError {
        VerbsError::Unusable {
            device: self.device.name().to_owned(),
            reason,
            errno,
        }
    }
}

impl Device for KernelDevice {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn node_guid(&self) -> u64 {
        self.node_guid
    }

    /// # Errors
    /// `Unusable` says why not: no driver here, another ABI, no node, no
    /// permission.
    fn open(&self) -> Result<Arc<dyn Context>> {
        let driver = match self.device.driver() {
            DriverKind::Rxe => return self.open_as::<Rxe>(),
            DriverKind::Siw => return self.open_as::<Siw>(),
            DriverKind::Mlx5 => "mlx5",
            DriverKind::Other(name) if name.is_empty() => "unknown",
            DriverKind::Other(name) => name,
        };
        let reason = format!(
            "its driver is {driver}, this program has only rxe and siw; \
             use the userspace device of its network interface (--userspace)"
        );
        Err(self.unusable(reason, libc::EOPNOTSUPP))
    }
}

#[cfg(test)]
mod tests;
