//! The userspace NIC as a provider of devices.

use std::net::IpAddr;
use std::path::Path;

use engine::device::Provider;
use rxe_user::device::{self, Options, UserDevice};
use verbs_sys::{Device, Result};

/// Devices `urxe_<netdev>`.
pub(crate) struct Userspace;

impl Provider for Userspace {
    fn devices(&self, capture: Option<&Path>) -> Result<Vec<Box<dyn Device>>> {
        let devices = device::devices(&options(capture))?;
        Ok(devices.into_iter().map(boxed).collect())
    }

    fn device_for(&self, local: IpAddr, capture: Option<&Path>) -> Result<Option<Box<dyn Device>>> {
        Ok(device::device_for(local, &options(capture))?.map(boxed))
    }
}

fn options(capture: Option<&Path>) -> Options {
    Options {
        capture: capture.map(Path::to_owned),
    }
}

fn boxed(device: UserDevice) -> Box<dyn Device> {
    Box::new(device)
}
