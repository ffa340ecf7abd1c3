//! Where an incoming message goes: the receive request in use.

use verbs_sys::{Completion, ReceiveRequest, Sge, VerbsError, WcFlags, WcOpcode, WcStatus};

use super::SrqId;
use super::memory::{AccessDenied, PdId};
use super::queue_pair::{Identity, Shared};
use super::receive_queue::ReceiveQueue;

/// Where a queue pair takes its receive requests from.
#[derive(Debug)]
pub(crate) enum ReceiveSource {
    Own(ReceiveQueue),
    Shared(SrqId),
}

/// The receive request that the current message is placed in.
#[derive(Debug)]
pub(crate) struct ActiveReceive {
    in_use: bool,
    wr_id: u64,
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
    pub(crate) fn new(max_sge: usize) -> Self {
        Self {
            in_use: false,
            wr_id: 0,
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

    /// Starts with the next request; `false` when there is none. A request of
    /// an own queue stays there until it is completed, so that a message that
    /// breaks off can give it back.
    pub(crate) fn begin(&mut self, source: &ReceiveSource, shared: &mut Shared) -> bool {
        if self.in_use {
            return true;
        }
        let wr_id = match source {
            ReceiveSource::Own(queue) => queue.front().map(|request| {
                self.sges.clear();
                self.sges.extend_from_slice(request.sges);
                request.wr_id
            }),
            ReceiveSource::Shared(srq) => {
                shared.srqs.take(*srq, &mut self.sges, &mut shared.events)
            }
        };
        let Some(wr_id) = wr_id else { return false };
        self.in_use = true;
        self.wr_id = wr_id;
        self.capacity = self.sges.iter().map(|sge| u64::from(sge.length)).sum();
        self.filled = 0;
        true
    }

    /// Places the next bytes of the message.
    pub(crate) fn place(
        &mut self,
        pd: PdId,
        bytes: &[u8],
        shared: &Shared,
    ) -> Result<(), AccessDenied> {
        shared.memory.scatter(pd, &self.sges, self.filled, bytes)?;
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
        self.finish(source, identity, completion, arrival.solicited, shared);
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
        self.finish(source, identity, completion, true, shared);
        true
    }

    /// Forgets the request without a completion (RESET).
    pub(crate) fn abandon(&mut self) {
        self.in_use = false;
    }

    fn finish(
        &mut self,
        source: &mut ReceiveSource,
        identity: &Identity,
        completion: Completion,
        solicited: bool,
        shared: &mut Shared,
    ) {
        self.in_use = false;
        if let ReceiveSource::Own(queue) = source {
            queue.pop();
        }
        shared
            .cqs
            .push(identity.recv_cq, completion, solicited, &mut shared.events);
    }
}

impl ReceiveSource {
    /// Queues a receive request of the queue pair itself.
    pub(crate) fn push(&mut self, request: &ReceiveRequest<'_>) -> Result<(), VerbsError> {
        match self {
            Self::Own(queue) => queue.push(request),
            Self::Shared(_) => Err(VerbsError::InvalidArgument {
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
