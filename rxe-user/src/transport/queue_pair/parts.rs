//! What queue pairs share, and what they are made of.

use verbs_sys::{EventKind, PathMtu, QpCapabilities, QpType};

use crate::link::Route;
use crate::transport::completion::CqTable;
use crate::transport::counters::Counters;
use crate::transport::events::EventQueue;
use crate::transport::memory::{Accessor, MemoryTable, PdId};
use crate::transport::srq::SrqTable;
use crate::transport::{CqId, SrqId};

/// What queue pairs of a NIC have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) memory: MemoryTable,
    pub(crate) cqs: CqTable,
    pub(crate) srqs: SrqTable,
    pub(crate) events: EventQueue,
    pub(crate) counters: Counters,
}

/// What doesn't change in a queue pair's life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) qpn: u32,
    pub(crate) qp_type: QpType,
    pub(crate) pd: PdId,
    pub(crate) send_cq: CqId,
    pub(crate) recv_cq: CqId,
}

impl Identity {
    pub(crate) fn is_reliable(&self) -> bool {
        self.qp_type == QpType::Rc
    }

    /// As whom its peer accesses memory.
    pub(crate) fn accessor(&self) -> Accessor {
        Accessor {
            pd: self.pd,
            qpn: self.qpn,
        }
    }
}

/// The way to the peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    /// Own and peer's address; none on UD and before RTR.
    pub(crate) route: Option<Route>,
    pub(crate) dest_qpn: u32,
    pub(crate) path_mtu: PathMtu,
    pub(crate) qkey: u32,
    /// Whether requests that have not been started may be (RTS, not SQD).
    pub(crate) starts_requests: bool,
}

/// Something after which a queue pair can't go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Event to raise.
    pub(super) event: Option<EventKind>,
    /// Only the send queue is hurt: UC and UD go on receiving (SQE).
    pub(super) send_queue_only: bool,
}

impl Fault {
    pub(crate) fn send_queue() -> Self {
        Self {
            event: None,
            send_queue_only: true,
        }
    }

    pub(crate) fn responder(event: Option<EventKind>) -> Self {
        Self {
            event,
            send_queue_only: false,
        }
    }
}

/// How a turn to transmit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing more can be sent now.
    Idle,
    /// There is more.
    More,
    /// The transmit queue is full.
    Full,
}

/// What a queue pair is created from.
#[derive(Debug, Clone, Copy)]
pub struct QpSettings {
    /// Service.
    pub qp_type: QpType,
    /// Protection domain.
    pub pd: PdId,
    /// Where send completions go.
    pub send_cq: CqId,
    /// Where receive completions go.
    pub recv_cq: CqId,
    /// Shared receive queue in place of an own one.
    pub srq: Option<SrqId>,
    /// Queue sizes.
    pub cap: QpCapabilities,
    /// Signal every send request.
    pub sq_sig_all: bool,
}
