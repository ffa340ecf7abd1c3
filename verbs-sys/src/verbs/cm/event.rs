//! What the connection manager reports.

use std::fmt;

use super::reason::CmStatus;
use crate::verbs::AddressVector;

/// `enum rdma_cm_event_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CmEventKind {
    /// The address is resolved.
    AddressResolved = 0,
    /// The address can't be resolved.
    AddressError = 1,
    /// The path is known.
    RouteResolved = 2,
    /// There is no path.
    RouteError = 3,
    /// A peer wants to connect.
    ConnectRequest = 4,
    /// The peer has accepted; it waits for the ready-to-use message.
    ConnectResponse = 5,
    /// Connecting failed.
    ConnectError = 6,
    /// The peer doesn't answer, or has no such service.
    Unreachable = 7,
    /// The peer refuses.
    Rejected = 8,
    /// The connection is there.
    Established = 9,
    /// The connection has ended.
    Disconnected = 10,
    /// The device is gone.
    DeviceRemoval = 11,
    /// The multicast group is joined.
    MulticastJoin = 12,
    /// The multicast group can't be joined, or is lost.
    MulticastError = 13,
    /// The address of the interface has moved to another device.
    AddressChange = 14,
    /// The queue pair's number may be used again.
    TimewaitExit = 15,
}

impl CmEventKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 16] = [
        Self::AddressResolved,
        Self::AddressError,
        Self::RouteResolved,
        Self::RouteError,
        Self::ConnectRequest,
        Self::ConnectResponse,
        Self::ConnectError,
        Self::Unreachable,
        Self::Rejected,
        Self::Established,
        Self::Disconnected,
        Self::DeviceRemoval,
        Self::MulticastJoin,
        Self::MulticastError,
        Self::AddressChange,
        Self::TimewaitExit,
    ];

    /// The event with this number.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }
}

impl fmt::Display for CmEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddressResolved => "address resolved",
            Self::AddressError => "address error",
            Self::RouteResolved => "route resolved",
            Self::RouteError => "route error",
            Self::ConnectRequest => "connect request",
            Self::ConnectResponse => "connect response",
            Self::ConnectError => "connect error",
            Self::Unreachable => "unreachable",
            Self::Rejected => "rejected",
            Self::Established => "established",
            Self::Disconnected => "disconnected",
            Self::DeviceRemoval => "device removed",
            Self::MulticastJoin => "multicast group joined",
            Self::MulticastError => "multicast error",
            Self::AddressChange => "address changed",
            Self::TimewaitExit => "time wait over",
        })
    }
}

/// What the peer said of its end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CmParameters {
    /// The peer's queue pair; 0 on iWARP.
    pub qpn: u32,
    /// The peer's queue pair takes receives from a shared receive queue.
    pub srq: bool,
    /// Reads and atomics this end may accept, which is what the peer starts.
    pub responder_resources: u8,
    /// Reads and atomics this end may start, which is what the peer accepts.
    pub initiator_depth: u8,
    /// Retries after a timeout or sequence error.
    pub retry_count: u8,
    /// Retries after an RNR NAK.
    pub rnr_retry_count: u8,
}

/// Where datagrams go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramPeer {
    /// Queue pair; 0xffffff for a multicast group.
    pub qpn: u32,
    /// Q_Key.
    pub qkey: u32,
    /// Path.
    pub av: AddressVector,
}

/// `struct rdma_cm_event`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CmEvent {
    /// What happened.
    pub kind: CmEventKind,
    /// Why, for events of failure.
    pub status: CmStatus,
    /// What the peer sent along. InfiniBand and RoCE pad it with zeros to
    /// the room there is.
    pub private_data: Vec<u8>,
    /// Of a connection.
    pub parameters: CmParameters,
    /// Of a datagram service that was found, or a group that was joined.
    pub datagram: Option<DatagramPeer>,
}

impl fmt::Display for CmEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            CmStatus::Success => self.kind.fmt(f),
            status => write!(f, "{} ({status})", self.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_kernels() {
        for (code, kind) in CmEventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, code);
            assert_eq!(CmEventKind::from_code(code as u32), Some(kind));
        }
        assert_eq!(CmEventKind::from_code(16), None);
        assert_eq!(CmEventKind::from_code(u32::MAX), None);
    }
}
