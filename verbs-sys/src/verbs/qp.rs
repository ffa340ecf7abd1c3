//! Queue pairs: types, states, attributes.

use std::fmt;

use super::{AccessFlags, CompletionQueue, Gid, PathMtu, SharedReceiveQueue, XrcDomain};

/// `enum ibv_qp_type`: the transport service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QpType {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
    /// XRC initiator: the sending half of an extended reliable connection.
    XrcSend,
    /// XRC target: the receiving half.
    XrcReceive,
}

impl fmt::Display for QpType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Ud => "UD",
            Self::XrcSend => "XRC initiator",
            Self::XrcReceive => "XRC target",
        })
    }
}

/// `enum ibv_qp_state` (IBTA 10.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum QpState {
    /// As created.
    #[default]
    Reset = 0,
    /// Receives may be posted.
    Init = 1,
    /// Ready to receive.
    Rtr = 2,
    /// Ready to send.
    Rts = 3,
    /// Send queue drained, or draining.
    Sqd = 4,
    /// Send queue in error (UC and UD).
    Sqe = 5,
    /// In error: everything is flushed.
    Error = 6,
}

impl QpState {
    /// The state with this number (`enum ibv_qp_state`), if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [
            Self::Reset,
            Self::Init,
            Self::Rtr,
            Self::Rts,
            Self::Sqd,
            Self::Sqe,
            Self::Error,
        ]
        .into_iter()
        .find(|state| *state as u8 == code)
    }
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "RESET",
            Self::Init => "INIT",
            Self::Rtr => "RTR",
            Self::Rts => "RTS",
            Self::Sqd => "SQD",
            Self::Sqe => "SQE",
            Self::Error => "ERR",
        })
    }
}

/// `struct ibv_ah_attr`: the path to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressVector {
    /// The peer's GID.
    pub dgid: Gid,
    /// Index of the own GID in the port's table.
    pub sgid_index: u32,
    /// IPv6 flow label, and entropy of the UDP source port; 20 bits.
    pub flow_label: u32,
    /// IPv4 TTL or IPv6 hop limit; 0 stands for 64.
    pub hop_limit: u8,
    /// IPv4 ToS or IPv6 traffic class, the whole byte.
    pub traffic_class: u8,
    /// Service level.
    pub sl: u8,
    /// Port number, counted from 1.
    pub port: u8,
}

/// `struct ibv_qp_cap`: sizes of a queue pair's queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QpCapabilities {
    /// Outstanding send requests.
    pub max_send_wr: u32,
    /// Outstanding receive requests.
    pub max_recv_wr: u32,
    /// Scatter/gather entries per send request.
    pub max_send_sge: u32,
    /// Scatter/gather entries per receive request.
    pub max_recv_sge: u32,
    /// Inline bytes per send request.
    pub max_inline_data: u32,
}

/// `struct ibv_qp_init_attr`: what a queue pair is created from.
#[derive(Clone, Copy)]
pub struct QpInit<'a> {
    /// Service.
    pub qp_type: QpType,
    /// Where send completions go.
    pub send_cq: &'a dyn CompletionQueue,
    /// Where receive completions go; may be the same queue.
    pub recv_cq: &'a dyn CompletionQueue,
    /// Shared receive queue in place of an own one.
    pub srq: Option<&'a dyn SharedReceiveQueue>,
    /// XRC domain of an XRC target.
    pub xrcd: Option<&'a dyn XrcDomain>,
    /// Queue sizes.
    pub cap: QpCapabilities,
    /// Signal every send request, whatever its flags say.
    pub sq_sig_all: bool,
}

bitflags::bitflags! {
    /// `enum ibv_qp_attr_mask`, without the current-state hint.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct AttributeMask: u32 {
        /// [`QpAttributes::state`].
        const STATE = 1;
        /// [`QpAttributes::en_sqd_async_notify`].
        const EN_SQD_ASYNC_NOTIFY = 1 << 2;
        /// [`QpAttributes::access_flags`].
        const ACCESS_FLAGS = 1 << 3;
        /// [`QpAttributes::pkey_index`].
        const PKEY_INDEX = 1 << 4;
        /// [`QpAttributes::port`].
        const PORT = 1 << 5;
        /// [`QpAttributes::qkey`].
        const QKEY = 1 << 6;
        /// [`QpAttributes::av`].
        const AV = 1 << 7;
        /// [`QpAttributes::path_mtu`].
        const PATH_MTU = 1 << 8;
        /// [`QpAttributes::timeout`].
        const TIMEOUT = 1 << 9;
        /// [`QpAttributes::retry_cnt`].
        const RETRY_CNT = 1 << 10;
        /// [`QpAttributes::rnr_retry`].
        const RNR_RETRY = 1 << 11;
        /// [`QpAttributes::rq_psn`].
        const RQ_PSN = 1 << 12;
        /// [`QpAttributes::max_qp_rd_atomic`].
        const MAX_QP_RD_ATOMIC = 1 << 13;
        /// [`QpAttributes::min_rnr_timer`].
        const MIN_RNR_TIMER = 1 << 15;
        /// [`QpAttributes::sq_psn`].
        const SQ_PSN = 1 << 16;
        /// [`QpAttributes::max_dest_rd_atomic`].
        const MAX_DEST_RD_ATOMIC = 1 << 17;
        /// [`QpAttributes::dest_qpn`].
        const DEST_QPN = 1 << 20;
    }
}

/// `struct ibv_qp_attr`: attributes to change, those that are `Some`.
///
/// For a query every attribute that the queue pair has is `Some`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QpAttributes {
    /// State to go to.
    pub state: Option<QpState>,
    /// Whether the end of draining in SQD raises an event.
    pub en_sqd_async_notify: Option<bool>,
    /// What the peer may do through this queue pair.
    pub access_flags: Option<AccessFlags>,
    /// Index of the P_Key in the port's table.
    pub pkey_index: Option<u16>,
    /// Port number, counted from 1.
    pub port: Option<u8>,
    /// Q_Key (UD).
    pub qkey: Option<u32>,
    /// Path to the peer.
    pub av: Option<AddressVector>,
    /// Path MTU; both ends must agree.
    pub path_mtu: Option<PathMtu>,
    /// Local ACK timeout exponent: 4.096 µs × 2^n; 0 is no timeout; at most 31.
    pub timeout: Option<u8>,
    /// Retries after a timeout or sequence error, 0 to 7.
    pub retry_cnt: Option<u8>,
    /// Retries after an RNR NAK, 0 to 6; 7 is without end.
    pub rnr_retry: Option<u8>,
    /// First PSN expected from the peer, 24 bits.
    pub rq_psn: Option<u32>,
    /// Reads and atomics outstanding as requester.
    pub max_qp_rd_atomic: Option<u8>,
    /// Code of the wait that an RNR NAK asks for, 0 to 31 (IBTA table 45).
    pub min_rnr_timer: Option<u8>,
    /// First PSN to send, 24 bits.
    pub sq_psn: Option<u32>,
    /// Reads and atomics accepted as responder.
    pub max_dest_rd_atomic: Option<u8>,
    /// The peer's queue pair, 24 bits.
    pub dest_qpn: Option<u32>,
}

impl QpAttributes {
    /// A change of the state alone.
    #[must_use]
    pub fn to_state(state: QpState) -> Self {
        Self {
            state: Some(state),
            ..Self::default()
        }
    }

    /// Which attributes are given.
    #[must_use]
    pub fn mask(&self) -> AttributeMask {
        let mut mask = AttributeMask::empty();
        mask.set(AttributeMask::STATE, self.state.is_some());
        mask.set(
            AttributeMask::EN_SQD_ASYNC_NOTIFY,
            self.en_sqd_async_notify.is_some(),
        );
        mask.set(AttributeMask::ACCESS_FLAGS, self.access_flags.is_some());
        mask.set(AttributeMask::PKEY_INDEX, self.pkey_index.is_some());
        mask.set(AttributeMask::PORT, self.port.is_some());
        mask.set(AttributeMask::QKEY, self.qkey.is_some());
        mask.set(AttributeMask::AV, self.av.is_some());
        mask.set(AttributeMask::PATH_MTU, self.path_mtu.is_some());
        mask.set(AttributeMask::TIMEOUT, self.timeout.is_some());
        mask.set(AttributeMask::RETRY_CNT, self.retry_cnt.is_some());
        mask.set(AttributeMask::RNR_RETRY, self.rnr_retry.is_some());
        mask.set(AttributeMask::RQ_PSN, self.rq_psn.is_some());
        mask.set(
            AttributeMask::MAX_QP_RD_ATOMIC,
            self.max_qp_rd_atomic.is_some(),
        );
        mask.set(AttributeMask::MIN_RNR_TIMER, self.min_rnr_timer.is_some());
        mask.set(AttributeMask::SQ_PSN, self.sq_psn.is_some());
        mask.set(
            AttributeMask::MAX_DEST_RD_ATOMIC,
            self.max_dest_rd_atomic.is_some(),
        );
        mask.set(AttributeMask::DEST_QPN, self.dest_qpn.is_some());
        mask
    }
}
