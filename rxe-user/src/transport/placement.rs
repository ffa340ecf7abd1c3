//! Where an incoming message goes: the receive request in use.

use verbs_sys::{Completion, ReceiveRequest, Sge, VerbsError, WcFlags, WcOpcode, WcStatus};

use super::memory::{AccessDenied, PdId};
use super::queue_pair::{Identity, Shared};
use super::receive_queue::ReceiveQueue;
use super::srq::Taken;
use super::{CqId, SrqId, XrcdId};
use crate::wire::Packet;

/// Where a queue pair takes its receive requests from.
#[derive(Debug)]
pub(crate) enum ReceiveSource {
    Own(ReceiveQueue),
    Shared(SrqId),
    /// That shared queue of an XRC domain which a packet names.
    Named(XrcdId),
}

/// Why there is no receive request for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoReceive {
    /// The queue is empty.
    Empty,
    /// The packet names no queue of the XRC domain.
    UnknownQueue,
}

/// The receive request that the current message is placed in.
#[derive(Debug)]
pub(crate) struct ActiveReceive {
    in_use: bool,
    /// The shared queue that it was taken from last.
    srq: Option<SrqId>,
    wr_id: u64,
    /// Domain of the keys in the list: that of the queue it comes from.
    pd: PdId,
    /// Where its completion goes; stays, to know whom a dead queue concerns.
    cq: Option<CqId>,
    sges: Vec<Sge>,
    capacity: u64,
    filled: u64,
}

/// What the completion of a received message says beside its length.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrival {
    pub(crate) opcode: WcOpcode,
    pub(crate) flags: WcFlags,
    pub(crate) imm_or_rkey: u32,
    pub(crate) src_qp: u32,
    pub(crate) solicited: bool,
}

impl ActiveReceive {
    pub(crate) fn new(max_sge: usize, identity: &Identity) -> Self {
        Self {
            in_use: false,
            srq: None,
            wr_id: 0,
            pd: identity.pd,
            cq: None,
            sges: Vec::with_capacity(max_sge),
            capacity: 0,
            filled: 0,
        }
    }

    /// Bytes that the request has room for.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes placed so far.
    pub(crate) fn filled(&self) -> u64 {
        self.filled
    }

    /// Where completions of requests went last.
    pub(crate) fn cq(&self) -> Option<CqId> {
        self.cq
    }

    /// Starts with the next request, if there is one. A request of an own
    /// queue stays there until it is completed, so that a message that breaks
    /// off can give it back.
    pub(crate) fn begin(
        &mut self,
        source: &ReceiveSource,
        identity: &Identity,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), NoReceive> {
        if self.in_use {
            return Ok(());
        }
        let taken = match source {
            ReceiveSource::Own(queue) => queue.front().map(|request| {
                self.sges.clear();
                self.sges.extend_from_slice(request.sges);
                Taken {
                    wr_id: request.wr_id,
                    pd: identity.pd,
                    cq: None,
                }
            }),
            ReceiveSource::Shared(srq) => self.take(*srq, shared),
            ReceiveSource::Named(domain) => {
                let (srq, _) = named(*domain, packet, shared).ok_or(NoReceive::UnknownQueue)?;
                self.take(srq, shared)
            }
        };
        let taken = taken.ok_or(NoReceive::Empty)?;
        self.in_use = true;
        self.wr_id = taken.wr_id;
        self.pd = taken.pd;
        self.cq = taken.cq.or(Some(identity.recv_cq));
        self.capacity = self.sges.iter().map(|sge| u64::from(sge.length)).sum();
        self.filled = 0;
        Ok(())
    }

    fn take(&mut self, srq: SrqId, shared: &mut Shared) -> Option<Taken> {
        self.srq = Some(srq);
        shared.srqs.take(srq, &mut self.sges, &mut shared.events)
    }

    /// Whether a packet goes on with the request in use: all packets of an
    /// XRC message name the queue that it was taken from.
    pub(crate) fn goes_on(&self, packet: &Packet<'_>) -> bool {
        self.in_use
            && packet
                .xrceth()
                .is_none_or(|header| self.srq == Some(SrqId(header.srqn)))
    }

    /// Places the next bytes of the message.
    pub(crate) fn place(&mut self, bytes: &[u8], shared: &Shared) -> Result<(), AccessDenied> {
        shared
            .memory
            .scatter(self.pd, &self.sges, self.filled, bytes)?;
        self.filled += bytes.len() as u64;
        Ok(())
    }

    /// Starts the message over; the request stays in use.
    pub(crate) fn rewind(&mut self) {
        self.filled = 0;
    }

    /// Reports success.
    pub(crate) fn complete(
        &mut self,
        source: &mut ReceiveSource,
        identity: &Identity,
        byte_len: u64,
        arrival: Arrival,
        shared: &mut Shared,
    ) {
        let completion = Completion {
            wr_id: self.wr_id,
            status: WcStatus::Success,
            opcode: arrival.opcode,
            byte_len: byte_len as u32,
            imm_or_rkey: arrival.imm_or_rkey,
            qp_num: identity.qpn,
            src_qp: arrival.src_qp,
            flags: arrival.flags,
            ..Completion::default()
        };
        self.finish(source, completion, arrival.solicited, shared);
    }

    /// Reports an error, if a request is in use; says whether one was.
    pub(crate) fn fail(
        &mut self,
        source: &mut ReceiveSource,
        identity: &Identity,
        status: WcStatus,
        vendor_err: u32,
        shared: &mut Shared,
    ) -> bool {
        if !self.in_use {
            return false;
        }
        let completion = Completion {
            wr_id: self.wr_id,
            status,
            opcode: WcOpcode::Receive,
            vendor_err,
            qp_num: identity.qpn,
            ..Completion::default()
        };
        self.finish(source, completion, true, shared);
        true
    }

    /// Forgets the request without a completion (RESET).
    pub(crate) fn abandon(&mut self) {
        self.in_use = false;
    }

    /// The same when it is of a shared queue that is going.
    pub(crate) fn abandon_of(&mut self, srq: SrqId) {
        if self.srq == Some(srq) {
            self.abandon();
        }
    }

    fn finish(
        &mut self,
        source: &mut ReceiveSource,
        completion: Completion,
        solicited: bool,
        shared: &mut Shared,
    ) {
        self.in_use = false;
        if let ReceiveSource::Own(queue) = source {
            queue.pop();
        }
        let Some(cq) = self.cq else { return };
        shared
            .cqs
            .push(cq, completion, solicited, &mut shared.events);
    }
}

/// The shared queue that an XRC packet names, if the domain has it, and its
/// protection domain.
pub(crate) fn named(domain: XrcdId, packet: &Packet<'_>, shared: &Shared) -> Option<(SrqId, PdId)> {
    let (id, settings) = shared.srqs.in_domain(domain, packet.xrceth()?.srqn)?;
    Some((id, settings.pd))
}

impl ReceiveSource {
    /// Queues a receive request of the queue pair itself.
    pub(crate) fn push(&mut self, request: &ReceiveRequest<'_>) -> Result<(), VerbsError> {
        match self {
            Self::Own(queue) => queue.push(request),
            Self::Shared(_) | Self::Named(_) => Err(VerbsError::InvalidArgument {
                what: "receive on a queue pair with a shared receive queue",
                seen: "a work request".into(),
                expected: "none: post to the shared receive queue".into(),
            }),
        }
    }

    /// Flushes what is left in an own queue (IBTA 10.3.1, Error state).
    pub(crate) fn flush(&mut self, identity: &Identity, shared: &mut Shared) {
        let Self::Own(queue) = self else { return };
        while let Some(wr_id) = queue.pop() {
            let completion = Completion {
                wr_id,
                status: WcStatus::WorkRequestFlushed,
                opcode: WcOpcode::Receive,
                qp_num: identity.qpn,
                ..Completion::default()
            };
            shared
                .cqs
                .push(identity.recv_cq, completion, true, &mut shared.events);
        }
    }
}
