//! The kernel's devices as a provider of devices.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use engine::device::Provider;
use verbs_sys::cm::{CmResult, ConnectionManager};
use verbs_sys::kernel::{self, KernelDevice};
use verbs_sys::ucma::Ucma;
use verbs_sys::{Context, Device, Result, VerbsError};

/// Every device that sysfs shows.
pub(crate) struct Kernel;

impl Provider for Kernel {
    fn devices(&self, capture: Option<&Path>) -> Result<Vec<Box<dyn Device>>> {
        let devices = kernel::devices()?.into_iter();
        Ok(devices.map(|device| boxed(device, capture)).collect())
    }

    fn device_for(&self, local: IpAddr, capture: Option<&Path>) -> Result<Option<Box<dyn Device>>> {
        // Who wants the packets wants the userspace NIC.
        if capture.is_some() {
            return Ok(None);
        }
        Ok(kernel::device_for(local)?.map(|device| boxed(device, None)))
    }

    fn connection_manager(&self) -> CmResult<Option<Arc<dyn ConnectionManager>>> {
        // Without devices it would be of no use, and may not be there.
        if kernel::devices()?.is_empty() {
            return Ok(None);
        }
        Ok(Some(Arc::new(Ucma::open()?)))
    }
}

fn boxed(device: KernelDevice, capture: Option<&Path>) -> Box<dyn Device> {
    match capture {
        None => Box::new(device),
        Some(_) => Box::new(Uncaptured(device)),
    }
}

/// A kernel device whose packets the user wants.
#[derive(Debug)]
struct Uncaptured(KernelDevice);

impl Device for Uncaptured {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn node_guid(&self) -> u64 {
        self.0.node_guid()
    }

    fn open(&self) -> Result<Arc<dyn Context>> {
        Err(VerbsError::Unsupported {
            what: "--capture, the packets are the kernel's: use tcpdump on its interface, \
                   or the userspace device",
        })
    }
}
