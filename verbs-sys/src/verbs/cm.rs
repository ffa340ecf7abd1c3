//! The connection manager's words and traits (`rdma_cm(7)`): queue pairs are
//! connected by IP address and port, and whoever implements this (the
//! kernel's rdma_cm, or a connection manager in userspace) exchanges their
//! numbers and first PSNs.
//!
//! An active end goes through [`ConnectionManager::create_id`],
//! [`CmId::resolve_addr`], [`CmId::resolve_route`] and [`connect_qp`] (or
//! [`connect_datagram`]); a passive one through
//! [`ConnectionManager::listen`], [`CmListener::next_request`] and
//! [`accept_qp`] (or [`accept_datagram`]). Every wait has a deadline and an
//! interrupt, see [`Wait`].

mod connect;
mod error;
mod event;
mod reason;
mod wait;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

pub use connect::{
    accept_datagram, accept_qp, connect_datagram, connect_qp, datagram_qp_ready, qp_to_init,
};
pub use error::{CmError, CmResult};
pub use event::{CmEvent, CmEventKind, CmParameters, DatagramPeer};
pub use reason::{CmStatus, RejectReason, SidrStatus};
pub use wait::Wait;

use super::{Gid, QpAttributes, QpState, QpType};

/// `enum rdma_port_space`: what a port number names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum PortSpace {
    /// `RDMA_PS_TCP`: reliable connections.
    Tcp = 0x0106,
    /// `RDMA_PS_UDP`: datagrams; "connecting" asks for the peer's queue pair.
    Udp = 0x0111,
}

impl PortSpace {
    /// The service of the queue pairs that belong to this port space.
    #[must_use]
    pub fn qp_type(self) -> QpType {
        match self {
            Self::Tcp => QpType::Rc,
            Self::Udp => QpType::Ud,
        }
    }
}

/// `RDMA_UDP_QKEY`: the Q_Key of all queue pairs of [`PortSpace::Udp`].
pub const UDP_QKEY: u32 = 0x0123_4567;

/// `rdma_set_option(3)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmOption {
    /// IPv4 ToS or IPv6 traffic class of the connection, before
    /// [`CmId::resolve_route`].
    TypeOfService(u8),
    /// Whether an address that is in use may be bound, before binding.
    ReuseAddress(bool),
    /// Whether an IPv6 wildcard listens for IPv6 only, before binding.
    Ipv6Only(bool),
    /// Local ACK timeout exponent of the queue pair, 0 to 31:
    /// 4.096 µs × 2^n. Before connecting.
    AckTimeout(u8),
}

/// `struct rdma_conn_param`: what the ends of a connection tell each other.
/// Datagram services found by IP address all have the Q_Key [`UDP_QKEY`].
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectParameters<'a> {
    /// Own queue pair.
    pub qpn: u32,
    /// The queue pair takes receives from a shared receive queue.
    pub srq: bool,
    /// Reads and atomics this end accepts at a time.
    pub responder_resources: u8,
    /// Reads and atomics this end starts at a time.
    pub initiator_depth: u8,
    /// Retries after a timeout or sequence error, 0 to 7.
    pub retry_count: u8,
    /// Retries after an RNR NAK, 0 to 6; 7 is without end.
    pub rnr_retry_count: u8,
    /// Bytes for the peer's consumer. InfiniBand and RoCE have room for 56
    /// in a request, 196 in an answer, 148 in a refusal; for datagrams for
    /// 180 and 136.
    pub private_data: &'a [u8],
}

/// The device that an identifier is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CmDevice {
    /// Its name, as far as it can be found out.
    pub name: Option<String>,
    /// EUI-64 of the node. Devices on one network interface may share it.
    pub node_guid: u64,
}

impl fmt::Display for CmDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "the device {name}"),
            None => write!(f, "the device with node GUID {:016x}", self.node_guid),
        }
    }
}

/// Where an identifier's connection runs (`struct rdma_route`, in part).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CmRoute {
    /// Device, once an address has been resolved or bound to one.
    pub device: Option<CmDevice>,
    /// Port number, counted from 1; 0 without a device.
    pub port: u8,
    /// P_Key.
    pub pkey: u16,
    /// Own address.
    pub local: Option<SocketAddr>,
    /// The peer's address.
    pub peer: Option<SocketAddr>,
    /// Own GID; zero without a device.
    pub local_gid: Gid,
    /// The peer's GID; zero on iWARP.
    pub peer_gid: Gid,
}

/// A connection manager.
pub trait ConnectionManager: Send + Sync {
    /// Makes an identifier for the active end (`rdma_create_id(3)`).
    ///
    /// # Errors
    /// When the manager refuses.
    fn create_id(&self, space: PortSpace) -> CmResult<Box<dyn CmId>>;

    /// Listens on a local address, which may be a wildcard (`rdma_listen(3)`).
    /// `backlog`: how many requests may wait.
    ///
    /// # Errors
    /// [`CmError::AddressInUse`], [`CmError::AddressNotAvailable`],
    /// [`CmError::NoDevice`].
    fn listen(
        &self,
        space: PortSpace,
        local: SocketAddr,
        backlog: u32,
    ) -> CmResult<Box<dyn CmListener>>;
}

/// A listening identifier. Dropped, it stops listening; requests that nobody
/// has taken are refused.
pub trait CmListener: Send {
    /// The address it listens on.
    ///
    /// # Errors
    /// When the manager refuses.
    fn local_addr(&self) -> CmResult<SocketAddr>;

    /// Waits for the next request.
    ///
    /// # Errors
    /// [`CmError::TimedOut`], [`CmError::Interrupted`], [`CmError::DeviceRemoved`].
    fn next_request(&mut self, wait: &Wait<'_>) -> CmResult<CmRequest>;
}

/// A request to connect, to be accepted or rejected. Dropped, it is refused.
pub struct CmRequest {
    /// Identifier of the new connection.
    pub id: Box<dyn CmId>,
    /// What the peer said.
    pub event: CmEvent,
}

/// An identifier of one connection (`struct rdma_cm_id`). Dropped, the
/// connection ends without a word, and no event of it comes any more.
pub trait CmId: Send {
    /// Its port space.
    fn port_space(&self) -> PortSpace;

    /// Finds the device and own address that lead to `destination`
    /// (`rdma_resolve_addr(3)`).
    ///
    /// # Errors
    /// [`CmError::NoRoute`], [`CmError::NoDevice`], [`CmError::TimedOut`].
    fn resolve_addr(
        &mut self,
        source: Option<SocketAddr>,
        destination: SocketAddr,
        wait: &Wait<'_>,
    ) -> CmResult<()>;

    /// Finds the path (`rdma_resolve_route(3)`).
    ///
    /// # Errors
    /// [`CmError::NoRoute`], [`CmError::TimedOut`].
    fn resolve_route(&mut self, wait: &Wait<'_>) -> CmResult<()>;

    /// Sets an option.
    ///
    /// # Errors
    /// When the manager doesn't know it or it comes too late.
    fn set_option(&mut self, option: CmOption) -> CmResult<()>;

    /// Device and addresses.
    ///
    /// # Errors
    /// When the manager refuses.
    fn route(&self) -> CmResult<CmRoute>;

    /// What the queue pair needs to go to `state` (`rdma_init_qp_attr(3)`).
    /// Without [`QpAttributes::state`], and for RTR without a path, there is
    /// nothing to do: on iWARP the kernel moves the queue pair.
    ///
    /// # Errors
    /// When the connection isn't that far.
    fn qp_attributes(&self, state: QpState) -> CmResult<QpAttributes>;

    /// Asks the peer for the connection (`rdma_connect(3)`). The answer is an
    /// event.
    ///
    /// # Errors
    /// [`CmError::PrivateData`] when it doesn't fit.
    fn connect(&mut self, parameters: &ConnectParameters<'_>) -> CmResult<()>;

    /// Accepts a request (`rdma_accept(3)`).
    ///
    /// # Errors
    /// [`CmError::PrivateData`] when it doesn't fit.
    fn accept(&mut self, parameters: &ConnectParameters<'_>) -> CmResult<()>;

    /// The active end's last word: its queue pair is ready. To be said after
    /// [`CmEventKind::ConnectResponse`].
    ///
    /// # Errors
    /// When the manager refuses.
    fn establish(&mut self) -> CmResult<()>;

    /// Refuses a request (`rdma_reject(3)`).
    ///
    /// # Errors
    /// [`CmError::PrivateData`] when it doesn't fit.
    fn reject(&mut self, private_data: &[u8]) -> CmResult<()>;

    /// Ends the connection (`rdma_disconnect(3)`); the peer gets
    /// [`CmEventKind::Disconnected`], and this end when the peer has
    /// answered.
    ///
    /// # Errors
    /// When there is no connection.
    fn disconnect(&mut self) -> CmResult<()>;

    /// Waits for the next event (`rdma_get_cm_event(3)`).
    ///
    /// # Errors
    /// [`CmError::TimedOut`], [`CmError::Interrupted`].
    fn next_event(&mut self, wait: &Wait<'_>) -> CmResult<CmEvent>;

    /// Joins a multicast group on the device that the address is resolved or
    /// bound to, before the route is (`rdma_join_multicast(3)`), and waits for
    /// the answer: where to send to, and what to attach to.
    ///
    /// # Errors
    /// [`CmError::Failed`] when the fabric refuses.
    fn join_multicast(&mut self, group: SocketAddr, wait: &Wait<'_>) -> CmResult<DatagramPeer>;
}

/// How long the path and address resolutions of perftest may take.
pub const RESOLVE_TIME: Duration = Duration::from_millis(2000);
