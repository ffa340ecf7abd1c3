//! The provider: devices `urxe_<netdev>`, one for each network interface.
//!
//! | file | |
//! |---|---|
//! | [`netdev`] | the network interfaces of the host |
//! | `port` | one NIC on its sockets, shared by the contexts that use it |
//! | `progress` | who drives the protocol: the poller, or a thread |
//! | `context` | an open device |
//! | `objects` | domains, regions, queues, as the verbs traits want them |
//! | `channel` | notification of completions and events |

mod channel;
mod context;
pub mod netdev;
mod objects;
mod port;
mod progress;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use netdev::NetDev;
use verbs_sys::{Context, Device, Gid, PathMtu, Result, VerbsError};

use context::UserContext;
use port::Port;

/// How devices behave.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// File for a packet capture of both directions.
    pub capture: Option<PathBuf>,
}

/// A device of the userspace NIC: a network interface that is up.
#[derive(Debug, Clone)]
pub struct UserDevice {
    name: String,
    netdev: NetDev,
    options: Options,
}

impl UserDevice {
    fn new(netdev: NetDev, options: &Options) -> Self {
        let name = format!("urxe_{}", netdev.name);
        Self {
            name,
            netdev,
            options: options.clone(),
        }
    }

    /// The network interface.
    #[must_use]
    pub fn netdev(&self) -> &NetDev {
        &self.netdev
    }
}

/// The devices of this host: one for each network interface that is up, has
/// an address, and an MTU that holds a packet.
///
/// # Errors
/// When the kernel doesn't list its interfaces.
pub fn devices(options: &Options) -> Result<Vec<UserDevice>> {
    let netdevs = netdev::list().map_err(list_error)?;
    Ok(netdevs
        .into_iter()
        .filter(|netdev| !netdev.addresses.is_empty() && path_mtu(netdev).is_some())
        .map(|netdev| UserDevice::new(netdev, options))
        .collect())
}

/// The device whose interface holds a local address, if there is one.
///
/// # Errors
/// When the kernel doesn't list its interfaces.
pub fn device_for(local: IpAddr, options: &Options) -> Result<Option<UserDevice>> {
    let found = devices(options)?
        .into_iter()
        .find(|device| device.netdev.holds(local));
    Ok(found)
}

impl Device for UserDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn node_guid(&self) -> u64 {
        u64::from_be_bytes(Gid::eui64(self.netdev.mac.unwrap_or_default()))
    }

    /// Takes UDP port 4791 on the interface's addresses, or shares it with
    /// the contexts of this process that have it. On `lo`, where every address
    /// of 127.0.0.0/8 is local, each context takes an address of its own.
    fn open(&self) -> Result<Arc<dyn Context>> {
        let port = Port::open(self)?;
        Ok(Arc::new(UserContext::new(self.clone(), port)?))
    }
}

fn path_mtu(netdev: &NetDev) -> Option<PathMtu> {
    PathMtu::for_netdev(u32::try_from(netdev.mtu).unwrap_or(u32::MAX))
}

fn list_error(source: io::Error) -> VerbsError {
    VerbsError::Io {
        action: "list the network interfaces".into(),
        source,
    }
}

#[cfg(test)]
mod tests;
