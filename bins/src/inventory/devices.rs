//! The devices of the kernel and of the userspace NIC.

use verbs_sys::nldev::DeviceInfo;
use verbs_sys::sysfs::{NodeType, RdmaDevice, SysfsError};

use super::usable::{self, Problem};
use super::{Report, System, UserspaceDevice};

/// A device of the kernel, as `ibv_get_device_list` gives it.
#[derive(Debug)]
pub(super) struct KernelDevice {
    /// What sysfs shows.
    pub(super) sysfs: RdmaDevice,
    /// What the device management says, where there is one.
    pub(super) info: Option<DeviceInfo>,
}

/// What there is.
pub(super) struct Listing {
    /// The devices that libibverbs would list, in its order.
    pub(super) listed: Vec<KernelDevice>,
    /// For every device of the kernel that can't be used the reason, whether
    /// it is listed or not.
    pub(super) problems: Vec<(String, Problem)>,
}

impl KernelDevice {
    pub(super) fn name(&self) -> &str {
        self.sysfs.name()
    }

    /// EUI-64 of the node; libibverbs shows 0 for what can't be read.
    pub(super) fn node_guid(&self) -> u64 {
        let told = self.info.as_ref().and_then(|info| info.node_guid);
        told.unwrap_or_else(|| self.sysfs.node_guid().unwrap_or(0))
    }

    pub(super) fn node_type(&self) -> Option<NodeType> {
        let told = self.info.as_ref().and_then(|info| info.node_type);
        let told = told.map(NodeType::from_code);
        told.or_else(|| self.sysfs.node_type().ok())
    }
}

impl Listing {
    /// Whether the kernel shows no device at all, so that those of the
    /// userspace NIC are the list.
    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.problems.is_empty()
    }

    /// The devices of the userspace NIC; says why when they can't be listed.
    pub(super) fn userspace<'a>(
        &self,
        report: &mut Report,
        system: &'a System<'_>,
    ) -> &'a [UserspaceDevice] {
        match &system.userspace {
            Ok(devices) => devices,
            Err(error) => {
                report.err(format_args!("userspace devices: {error}"));
                &[]
            }
        }
    }

    /// Says of every device that can't be used why.
    pub(super) fn explain(&self, report: &mut Report) {
        for (name, problem) in &self.problems {
            report.err(format_args!("{name} can't be used: {problem}"));
        }
    }
}

/// Lists the kernel's devices: in the order of the device management where
/// there is one, else by name.
pub(super) fn list(system: &System<'_>) -> Result<Listing, SysfsError> {
    let mut shown = system.sysfs.devices()?;
    let abi = if shown.is_empty() {
        None
    } else {
        system.sysfs.uverbs_abi()?
    };
    let told = system.nldev().and_then(|mut nldev| nldev.devices()).ok();
    let mut devices = Vec::new();
    let mut problems = Vec::new();
    for info in told.iter().flatten() {
        if let Some(at) = shown.iter().position(|device| device.name() == info.name) {
            devices.push(KernelDevice {
                sysfs: shown.remove(at),
                info: Some(info.clone()),
            });
        } else {
            problems.push((info.name.clone(), Problem::HiddenFromSysfs));
        }
    }
    for sysfs in shown {
        if told.is_some() {
            problems.push((sysfs.name().to_owned(), Problem::HiddenFromNetlink));
        } else {
            devices.push(KernelDevice { sysfs, info: None });
        }
    }
    let mut listed = Vec::new();
    for device in devices {
        let found = usable::problems(&device.sysfs, abi);
        let is_listed = found.iter().all(Problem::is_listed);
        let name = device.name().to_owned();
        problems.extend(found.into_iter().map(|problem| (name.clone(), problem)));
        if is_listed {
            listed.push(device);
        }
    }
    Ok(Listing { listed, problems })
}
