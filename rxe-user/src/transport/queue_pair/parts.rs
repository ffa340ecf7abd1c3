//! What queue pairs share, and what they are made of.

use verbs_sys::{EventKind, PathMtu, QpCapabilities, QpType, Result, VerbsError};

use crate::link::Route;
use crate::transport::completion::CqTable;
use crate::transport::counters::Counters;
use crate::transport::domains::Domains;
use crate::transport::events::EventQueue;
use crate::transport::memory::{Accessor, MemoryTable, PdId};
use crate::transport::srq::SrqTable;
use crate::transport::{CqId, SrqId, XrcdId};
use crate::wire::{Operation, Service};

/// What queue pairs of a NIC have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) memory: MemoryTable,
    pub(crate) cqs: CqTable,
    pub(crate) srqs: SrqTable,
    pub(crate) xrc_domains: Domains,
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
        !matches!(self.qp_type, QpType::Uc | QpType::Ud)
    }

    /// The service of its packets.
    pub(crate) fn service(&self) -> Service {
        match self.qp_type {
            QpType::Rc => Service::Rc,
            QpType::Uc => Service::Uc,
            QpType::Ud => Service::Ud,
            QpType::XrcSend | QpType::XrcReceive => Service::Xrc,
        }
    }

    /// Whether it has the half that takes such a packet: an XRC initiator
    /// has but the requester, a target but the responder (annex A14).
    pub(crate) fn has_half_for(&self, operation: Operation) -> bool {
        match self.qp_type {
            QpType::XrcSend => operation.is_response(),
            QpType::XrcReceive => operation.is_request(),
            QpType::Rc | QpType::Uc | QpType::Ud => true,
        }
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
    /// Where receive completions go; those of an XRC target go where its
    /// shared receive queues say.
    pub recv_cq: CqId,
    /// Shared receive queue in place of an own one.
    pub srq: Option<SrqId>,
    /// XRC domain of an XRC target.
    pub xrcd: Option<XrcdId>,
    /// Queue sizes.
    pub cap: QpCapabilities,
    /// Signal every send request.
    pub sq_sig_all: bool,
}

impl QpSettings {
    /// The queue sizes that it gets: an XRC queue pair is only half a one
    /// (annex A14), whatever was asked for.
    #[must_use]
    pub fn granted(&self) -> QpCapabilities {
        match self.qp_type {
            QpType::XrcReceive => QpCapabilities::default(),
            QpType::XrcSend => QpCapabilities {
                max_recv_wr: 0,
                max_recv_sge: 0,
                ..self.cap
            },
            QpType::Rc | QpType::Uc | QpType::Ud => self.cap,
        }
    }

    fn is_xrc(&self) -> bool {
        matches!(self.qp_type, QpType::XrcSend | QpType::XrcReceive)
    }

    /// Whether it names the queues that its service has.
    pub(crate) fn check_queues(&self) -> Result<()> {
        let refuse = |what, seen: &str, expected: &str| {
            Err(VerbsError::InvalidArgument {
                what,
                seen: seen.into(),
                expected: expected.into(),
            })
        };
        let is_target = self.qp_type == QpType::XrcReceive;
        match self.xrcd {
            None if is_target => refuse(
                "XRC domain of an XRC target",
                "none",
                "the one of its shared receive queues",
            ),
            Some(_) if !is_target => refuse(
                "XRC domain of the queue pair",
                "one",
                "none: only XRC targets have one",
            ),
            _ if self.srq.is_some() && self.is_xrc() => refuse(
                "shared receive queue of an XRC queue pair",
                "one",
                "none: each packet names its own",
            ),
            _ => Ok(()),
        }
    }
}
