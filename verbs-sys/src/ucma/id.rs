//! Identifiers: connections and listeners.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::address::is_group;
use super::answer;
use super::channel::Channel;
use super::command::{self, OptionValue};
use crate::nldev::Nldev;
use crate::uapi::ucma::{QUERY_ADDR, QUERY_GID, Request};
use crate::verbs::cm::{
    CmError, CmEvent, CmEventKind, CmId, CmListener, CmOption, CmRequest, CmResult, CmRoute,
    CmStatus, ConnectParameters, DatagramPeer, PortSpace, RESOLVE_TIME, Wait,
};
use crate::verbs::{QpAttributes, QpState};

/// An identifier of the kernel; dropped, the kernel forgets it.
pub(super) struct Id {
    channel: Arc<Channel>,
    /// The kernel's number.
    number: u32,
    uid: u64,
    space: PortSpace,
    /// Where it is to connect to, for messages.
    destination: SocketAddr,
}

impl Drop for Id {
    fn drop(&mut self) {
        // Events that were read are as good as acknowledged: nothing waits
        // for them. There is nobody who could be told of an error.
        let _ = self.channel.call(command::destroy_id(self.number));
        self.channel.forget(self.uid);
    }
}

impl Id {
    pub(super) fn new(channel: &Arc<Channel>, space: PortSpace) -> CmResult<Self> {
        let uid = channel.new_uid();
        let number = channel.run(command::create_id(uid, space))?.id;
        Ok(Self {
            channel: Arc::clone(channel),
            number,
            uid,
            space,
            destination: unknown(),
        })
    }

    /// Binds and listens.
    pub(super) fn listen(self, local: SocketAddr, backlog: u32) -> CmResult<Listener> {
        self.local_command(command::bind(self.number, local), local)?;
        self.local_command(command::listen(self.number, backlog), local)?;
        Ok(Listener { id: self })
    }

    /// Runs a command that may fail because of our own address.
    fn local_command<R: Request>(&self, request: R, address: SocketAddr) -> CmResult<()> {
        match self.channel.call(request) {
            Ok(_) => Ok(()),
            Err(source) => Err(match source.raw_os_error() {
                Some(libc::EADDRINUSE) => CmError::AddressInUse { address },
                // All addresses are ours: it is the port.
                Some(libc::EADDRNOTAVAIL) if address.ip().is_unspecified() => {
                    CmError::AddressInUse { address }
                }
                Some(libc::EADDRNOTAVAIL) => CmError::AddressNotAvailable { address },
                Some(libc::ENODEV) => CmError::NoDevice { address },
                _ => CmError::Command {
                    command: R::COMMAND.name(),
                    source,
                },
            }),
        }
    }

    /// Starts a resolution and waits for its end.
    fn resolve<R: Request>(
        &mut self,
        request: R,
        done: CmEventKind,
        waited_for: &'static str,
        wait: &Wait<'_>,
    ) -> CmResult<()> {
        let destination = self.destination;
        if let Err(source) = self.channel.call(request) {
            return Err(unreachable(destination, source));
        }
        // The kernel ends by itself; ours is only for the case that it doesn't.
        let event = self.await_event(waited_for, wait)?;
        match event.kind {
            kind if kind == done => Ok(()),
            CmEventKind::AddressError | CmEventKind::RouteError => {
                Err(match event.status.errno() {
                    Some(code) => unreachable(destination, io::Error::from_raw_os_error(code)),
                    None => CmError::NoRoute {
                        destination,
                        status: event.status,
                    },
                })
            }
            CmEventKind::DeviceRemoval => Err(CmError::DeviceRemoved),
            _ => Err(CmError::Unexpected {
                seen: Box::new(event),
                expected: waited_for,
            }),
        }
    }

    fn await_event(&self, waited_for: &'static str, wait: &Wait<'_>) -> CmResult<CmEvent> {
        self.channel
            .next_event(self.uid, waited_for, wait)?
            .event(self.space)
    }

    /// Runs a command that carries so much private data, for which the kernel
    /// may have no room.
    fn with_private_data<R: Request>(&self, request: R, length: usize) -> CmResult<()> {
        match self.channel.call(request) {
            Ok(_) => Ok(()),
            Err(source) if length > 0 && source.raw_os_error() == Some(libc::EINVAL) => {
                Err(CmError::PrivateData {
                    length,
                    limit: self.room(R::COMMAND.name()),
                })
            }
            Err(source) => Err(CmError::Command {
                command: R::COMMAND.name(),
                source,
            }),
        }
    }

    /// Bytes of private data that messages of InfiniBand and RoCE have room
    /// for, after the 36 bytes that the kernel puts into requests.
    fn room(&self, command: &str) -> usize {
        match (self.space, command) {
            (PortSpace::Tcp, "CONNECT") => 56,
            (PortSpace::Tcp, "REJECT") => 148,
            (PortSpace::Tcp, _) => 196,
            (PortSpace::Udp, "CONNECT") => 180,
            (PortSpace::Udp, _) => 136,
        }
    }
}

impl CmId for Id {
    fn port_space(&self) -> PortSpace {
        self.space
    }

    fn resolve_addr(
        &mut self,
        source: Option<SocketAddr>,
        destination: SocketAddr,
        wait: &Wait<'_>,
    ) -> CmResult<()> {
        self.destination = destination;
        let time = kernel_time(wait);
        self.resolve(
            command::resolve_addr(self.number, source, destination, time),
            CmEventKind::AddressResolved,
            "the resolution of the address",
            wait,
        )
    }

    fn resolve_route(&mut self, wait: &Wait<'_>) -> CmResult<()> {
        let time = kernel_time(wait);
        self.resolve(
            command::resolve_route(self.number, time),
            CmEventKind::RouteResolved,
            "the resolution of the route",
            wait,
        )
    }

    fn set_option(&mut self, option: CmOption) -> CmResult<()> {
        let value = OptionValue::new(option);
        let address = value.bytes().as_ptr().expose_provenance() as u64;
        self.channel.run(value.command(self.number, address))
    }

    fn route(&self) -> CmResult<CmRoute> {
        let addresses = self.channel.run(command::query(self.number, QUERY_ADDR))?;
        let gids = self.channel.run(command::query(self.number, QUERY_GID))?;
        Ok(answer::route(&addresses, &gids, device_name))
    }

    fn qp_attributes(&self, state: QpState) -> CmResult<QpAttributes> {
        let attributes = self
            .channel
            .run(command::init_qp_attr(self.number, state))?;
        answer::qp_attributes(&attributes)
    }

    fn connect(&mut self, parameters: &ConnectParameters<'_>) -> CmResult<()> {
        let request = command::connect(self.number, parameters)?;
        let asked = self.with_private_data(request, parameters.private_data.len());
        match asked {
            // iWARP's TCP connection is refused at once, without an event.
            Err(CmError::Command { source, .. })
                if source.raw_os_error() == Some(libc::ECONNREFUSED) =>
            {
                Err(CmError::Rejected {
                    status: CmStatus::Errno(libc::ECONNREFUSED),
                    private_data: Vec::new(),
                })
            }
            asked => asked,
        }
    }

    fn accept(&mut self, parameters: &ConnectParameters<'_>) -> CmResult<()> {
        let request = command::accept(self.number, self.uid, parameters)?;
        self.with_private_data(request, parameters.private_data.len())
    }

    fn establish(&mut self) -> CmResult<()> {
        self.channel.run(command::establish(self.number))
    }

    fn reject(&mut self, private_data: &[u8]) -> CmResult<()> {
        let request = command::reject(self.number, private_data)?;
        self.with_private_data(request, private_data.len())
    }

    fn disconnect(&mut self) -> CmResult<()> {
        self.channel.run(command::disconnect(self.number))
    }

    fn next_event(&mut self, wait: &Wait<'_>) -> CmResult<CmEvent> {
        self.await_event("the peer's answer", wait)
    }

    fn join_multicast(&mut self, group: SocketAddr, wait: &Wait<'_>) -> CmResult<DatagramPeer> {
        if !is_group(&group) {
            return Err(CmError::AddressNotAvailable { address: group });
        }
        // The kernel leaves the group when the identifier goes.
        self.channel
            .run(command::join_multicast(self.number, self.uid, group))?;
        let event = self.await_event("the multicast group", wait)?;
        match event.datagram {
            Some(peer) if event.kind == CmEventKind::MulticastJoin => Ok(peer),
            _ => Err(CmError::Failed {
                event: Box::new(event),
            }),
        }
    }
}

/// An identifier that listens.
pub(super) struct Listener {
    id: Id,
}

impl CmListener for Listener {
    fn local_addr(&self) -> CmResult<SocketAddr> {
        self.id
            .route()?
            .local
            .ok_or_else(|| CmError::Unintelligible {
                seen: "no address of a listener".to_owned(),
                expected: "an IP address",
            })
    }

    fn next_request(&mut self, wait: &Wait<'_>) -> CmResult<CmRequest> {
        let channel = &self.id.channel;
        let delivered = channel.next_event(self.id.uid, "a client", wait)?;
        let event = delivered.event(self.id.space)?;
        match event.kind {
            CmEventKind::ConnectRequest => Ok(CmRequest {
                id: Box::new(Id {
                    channel: Arc::clone(channel),
                    number: delivered.id,
                    uid: channel.new_uid(),
                    space: self.id.space,
                    destination: unknown(),
                }),
                event,
            }),
            CmEventKind::DeviceRemoval => Err(CmError::DeviceRemoved),
            _ => Err(CmError::Unexpected {
                seen: Box::new(event),
                expected: "a connect request",
            }),
        }
    }
}

/// What a resolution's `errno` means.
fn unreachable(destination: SocketAddr, source: io::Error) -> CmError {
    match source.raw_os_error() {
        Some(libc::ENODEV) => CmError::NoDevice {
            address: destination,
        },
        Some(code) => CmError::NoRoute {
            destination,
            status: CmStatus::Errno(code),
        },
        None => CmError::Command {
            command: "RESOLVE",
            source,
        },
    }
}

/// The device with this index. A kernel without NETLINK_RDMA doesn't tell.
fn device_name(index: u32) -> Option<String> {
    let devices = Nldev::open().ok()?.devices().ok()?;
    let found = devices.into_iter().find(|device| device.index == index);
    found.map(|device| device.name)
}

/// How long the kernel itself may resolve.
fn kernel_time(wait: &Wait<'_>) -> Duration {
    wait.limit().unwrap_or(RESOLVE_TIME).min(RESOLVE_TIME)
}

/// In messages about an identifier that doesn't connect.
fn unknown() -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, 0).into()
}
