//! The kernel's connection manager, `/dev/infiniband/rdma_cm` (`ucma`), by
//! hand: commands are written to the device, which answers into memory and
//! queues events.
//!
//! - `command`: calls as bytes; `answer`: bytes as words; `address`: socket
//!   addresses. These do no I/O.
//! - `channel`: the device, and whose event is whose.
//! - `id`: connections and listeners.

mod address;
mod answer;
mod channel;
mod command;
mod id;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use crate::verbs::cm::{CmId, CmListener, CmResult, ConnectionManager, PortSpace};

/// The kernel's connection manager. Identifiers made from it share one file
/// descriptor.
#[derive(Debug, Clone)]
pub struct Ucma {
    channel: Arc<channel::Channel>,
}

impl Ucma {
    /// Opens the device.
    ///
    /// # Errors
    /// [`CmError::NoModule`](crate::cm::CmError::NoModule),
    /// [`CmError::NotAllowed`](crate::cm::CmError::NotAllowed),
    /// [`CmError::Abi`](crate::cm::CmError::Abi).
    pub fn open() -> CmResult<Self> {
        Ok(Self {
            channel: Arc::new(channel::Channel::open()?),
        })
    }
}

impl ConnectionManager for Ucma {
    fn create_id(&self, space: PortSpace) -> CmResult<Box<dyn CmId>> {
        Ok(Box::new(id::Id::new(&self.channel, space)?))
    }

    fn listen(
        &self,
        space: PortSpace,
        local: SocketAddr,
        backlog: u32,
    ) -> CmResult<Box<dyn CmListener>> {
        let id = id::Id::new(&self.channel, space)?;
        Ok(Box::new(id.listen(local, backlog)?))
    }
}
