//! Which device a test runs over.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use verbs_sys::cm::{CmDevice, CmResult, ConnectionManager};
use verbs_sys::{Device, Result as VerbsResult};

use crate::failure::Failure;
use crate::options::device::{DeviceProblem, refuse};
use crate::words::Tool;

/// Where devices come from: a kernel, or the userspace NIC. The commands hand
/// in a list of these, the preferred one first.
pub trait Provider: Sync {
    /// All devices. `capture`: where to save the packets, if the user wants that.
    ///
    /// # Errors
    /// When they can't be listed, or can't capture.
    fn devices(&self, capture: Option<&Path>) -> VerbsResult<Vec<Box<dyn Device>>>;

    /// The device to take when the user doesn't name one and the control
    /// connection has this local address; `None` when this provider has none.
    ///
    /// # Errors
    /// As [`Self::devices`].
    fn device_for(
        &self,
        local: IpAddr,
        capture: Option<&Path>,
    ) -> VerbsResult<Option<Box<dyn Device>>>;

    /// The connection manager of these devices (`-R`, `-z`); `None` when they
    /// have none.
    ///
    /// # Errors
    /// When there is one that can't be used.
    fn connection_manager(&self) -> CmResult<Option<Arc<dyn ConnectionManager>>> {
        Ok(None)
    }
}

/// What can be chosen from.
#[derive(Clone, Copy)]
pub(crate) struct Devices<'a> {
    pub(crate) providers: &'a [&'a dyn Provider],
    pub(crate) capture: Option<&'a Path>,
}

impl Devices<'_> {
    /// The device the user named with `-d`.
    pub(crate) fn named(&self, tool: Tool, name: &str) -> Result<Box<dyn Device>, Failure> {
        let mut others = Vec::new();
        for device in self.all()? {
            if device.name() == name {
                return Ok(device);
            }
            others.push(device.name().to_owned());
        }
        if others.is_empty() {
            return Err(no_device(tool, "no network interface is up"));
        }
        Err(Failure::Refused {
            resolved: refuse(tool, &DeviceProblem::UnknownDevice(name.to_owned())),
            advice: format!(
                "there is no device {name}; give one of these to -d: {}",
                others.join(", ")
            ),
        })
    }

    /// The provider that has a device of this name.
    pub(crate) fn provider_of(&self, name: &str) -> Result<Option<&dyn Provider>, Failure> {
        for provider in self.providers {
            let devices = provider.devices(self.capture).map_err(listing)?;
            if devices.iter().any(|device| device.name() == name) {
                return Ok(Some(*provider));
            }
        }
        Ok(None)
    }

    /// The device that a connection manager has chosen.
    pub(crate) fn chosen(&self, tool: Tool, device: &CmDevice) -> Result<Box<dyn Device>, Failure> {
        let devices = self.all()?;
        let found = devices.into_iter().find(|known| match &device.name {
            Some(name) => known.name() == name,
            None => known.node_guid() == device.node_guid,
        });
        found.ok_or_else(|| {
            no_device(
                tool,
                &format!(
                    "the connection manager has chosen {device}, which this program can't use; \
                     choose another with -d"
                ),
            )
        })
    }

    /// The device that belongs to the local address of the control connection.
    pub(crate) fn for_connection(
        &self,
        tool: Tool,
        local: IpAddr,
    ) -> Result<Box<dyn Device>, Failure> {
        for provider in self.providers {
            let found = provider.device_for(local, self.capture);
            if let Some(device) = found.map_err(listing)? {
                return Ok(device);
            }
        }
        let names: Vec<String> = self
            .all()?
            .iter()
            .map(|device| device.name().to_owned())
            .collect();
        Err(no_device(
            tool,
            &format!(
                "no device holds {local}, our address of the control connection; \
                 choose one with -d ({})",
                names.join(", ")
            ),
        ))
    }

    fn all(&self) -> Result<Vec<Box<dyn Device>>, Failure> {
        let mut devices = Vec::new();
        for provider in self.providers {
            devices.extend(provider.devices(self.capture).map_err(listing)?);
        }
        Ok(devices)
    }
}

fn listing(source: verbs_sys::VerbsError) -> Failure {
    Failure::Verbs {
        stock: " Did not detect devices \n If device exists, check if driver is up\n".to_owned(),
        doing: "listing the devices",
        source,
    }
}

fn no_device(tool: Tool, advice: &str) -> Failure {
    Failure::Refused {
        resolved: refuse(tool, &DeviceProblem::NoDevice),
        advice: advice.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::options::{READ_BW, WRITE_BW};
    use verbs_sys::{Context, VerbsError};

    #[derive(Debug)]
    struct Named(&'static str);

    impl Device for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn node_guid(&self) -> u64 {
            0
        }

        fn open(&self) -> VerbsResult<Arc<dyn Context>> {
            Err(VerbsError::Unsupported { what: "opening" })
        }
    }

    /// Devices by name, the last of which belongs to the local host.
    struct Shelf(&'static [&'static str]);

    impl Provider for Shelf {
        fn devices(&self, _: Option<&Path>) -> VerbsResult<Vec<Box<dyn Device>>> {
            let boxed = |name: &&'static str| Box::new(Named(name)) as Box<dyn Device>;
            Ok(self.0.iter().map(boxed).collect())
        }

        fn device_for(
            &self,
            local: IpAddr,
            capture: Option<&Path>,
        ) -> VerbsResult<Option<Box<dyn Device>>> {
            let last = self.devices(capture)?.pop();
            Ok(last.filter(|_| local.is_loopback()))
        }
    }

    fn devices<'a>(providers: &'a [&'a dyn Provider]) -> Devices<'a> {
        Devices {
            providers,
            capture: None,
        }
    }

    #[test]
    fn a_name_is_looked_up_in_all_providers() {
        let providers: [&dyn Provider; 2] = [&Shelf(&["mlx5_0"]), &Shelf(&["urxe_lo"])];
        let found = devices(&providers).named(WRITE_BW, "urxe_lo").unwrap();
        assert_eq!(found.name(), "urxe_lo");
    }

    #[test]
    fn an_unknown_name_lists_what_there_is() {
        let providers: [&dyn Provider; 2] = [&Shelf(&["mlx5_0"]), &Shelf(&["urxe_lo"])];
        let failure = devices(&providers).named(READ_BW, "nosuch").unwrap_err();
        assert_eq!(failure.stock_text(READ_BW), "IB device nosuch not found\n");
        assert!(failure.to_string().ends_with("mlx5_0, urxe_lo"));
        assert_eq!(failure.exit_code(READ_BW), 7);
        assert_eq!(failure.exit_code(WRITE_BW), 7, "as refused for the tool");
        let failure = devices(&[]).named(WRITE_BW, "nosuch").unwrap_err();
        assert!(failure.stock_text(WRITE_BW).contains("Did not detect"));
    }

    #[test]
    fn the_first_provider_with_a_device_for_the_address_wins() {
        let providers: [&dyn Provider; 2] = [&Shelf(&[]), &Shelf(&["a", "b"])];
        let devices = devices(&providers);
        let found = devices.for_connection(WRITE_BW, [127, 0, 0, 1].into());
        assert_eq!(found.unwrap().name(), "b");
        let failure = devices
            .for_connection(WRITE_BW, [192, 0, 2, 1].into())
            .unwrap_err();
        assert!(failure.to_string().contains("192.0.2.1"), "{failure}");
        assert!(failure.to_string().contains("a, b"), "{failure}");
    }
}
