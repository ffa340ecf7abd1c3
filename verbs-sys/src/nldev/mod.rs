//! `NETLINK_RDMA`: the kernel's device management, spoken by hand.
//!
//! [`Nldev`] asks the kernel for devices, ports, objects and counters, and makes
//! and removes software devices (`rdma link add`). Reading needs no privilege,
//! changing `CAP_NET_ADMIN`.
//!
//! | file | |
//! |---|---|
//! | [`attribute`] | numbers and names of the attributes |
//! | `encode` | requests |
//! | [`parse`] | messages and attributes |
//! | `socket` | the socket |
//! | `device` | devices, ports, character devices, links |
//! | `resource` | objects: queue pairs, completion queues, regions, ... |
//! | `statistic` | counters |
//!
//! Source: `include/uapi/rdma/rdma_netlink.h` of the kernel.

pub mod attribute;
mod device;
mod encode;
mod error;
pub mod parse;
mod resource;
mod socket;
mod statistic;

pub use device::{CharDevice, DeviceInfo, NetnsMode, PortInfo, SystemInfo};
pub use encode::{Command, Request, Scope};
pub use error::NldevError;
pub use resource::{DriverField, DriverValue, Object, QpRange, Table};
pub use socket::{Socket, Transport};
pub use statistic::{CounterSet, HwCounter, OptionalCounter};

use parse::{Attributes, Message};

/// A conversation with the kernel, one request after the other.
#[derive(Debug)]
pub struct Nldev<T> {
    transport: T,
    sequence: u32,
}

impl Nldev<Socket> {
    /// A conversation over a socket of its own.
    ///
    /// # Errors
    /// `NoSocket` when this kernel has no `NETLINK_RDMA`.
    pub fn open() -> Result<Self, NldevError> {
        Socket::open().map(Self::new)
    }
}

impl<T: Transport> Nldev<T> {
    /// A conversation over `transport`.
    pub fn new(transport: T) -> Self {
        Self {
            transport,
            sequence: 0,
        }
    }

    /// Sends a request and hands every object of the answer to `read`.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    fn ask<R>(
        &mut self,
        doing: &'static str,
        request: Request,
        mut read: impl FnMut(&Attributes<'_>) -> Result<R, NldevError>,
    ) -> Result<Vec<R>, NldevError> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = request.finish(self.sequence);
        let io = |doing| move |source| NldevError::Io { doing, source };
        self.transport.send(&message).map_err(io("send"))?;
        let mut objects = Vec::new();
        loop {
            let datagram = self.transport.receive().map_err(io("receive"))?;
            for message in parse::messages(&datagram, self.sequence)? {
                match message {
                    Message::Object(attributes) => objects.push(read(&attributes)?),
                    Message::Done => return Ok(objects),
                    Message::Refused { errno, extended } => {
                        return Err(NldevError::refused(doing, errno, extended));
                    }
                    Message::Other => {}
                }
            }
        }
    }

    /// As [`Self::ask`], for a request with one object as its answer.
    fn ask_one<R>(
        &mut self,
        doing: &'static str,
        request: Request,
        read: impl FnMut(&Attributes<'_>) -> Result<R, NldevError>,
    ) -> Result<R, NldevError> {
        let mut objects = self.ask(doing, request, read)?;
        objects
            .pop()
            .ok_or(NldevError::Missing(attribute::DEV_INDEX))
    }

    /// As [`Self::ask`], for a request that is only acknowledged.
    fn tell(&mut self, doing: &'static str, request: Request) -> Result<(), NldevError> {
        self.ask(doing, request, |_| Ok(())).map(drop)
    }
}

#[cfg(test)]
mod tests;
