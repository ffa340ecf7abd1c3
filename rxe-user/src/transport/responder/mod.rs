//! The responder half of an RC queue pair and an XRC target (IBTA 9.7.4,
//! 9.7.5, 9.9, annex A14).
//!
//! - [`mod@self`]: the order of checks, duplicates, and every NAK.
//! - [`execute`]: what each request does.
//! - [`reply`]: the queue of answers and how they become packets.

mod execute;
mod reply;

use verbs_sys::{AccessFlags, EventKind, WcStatus};

use super::memory::Accessor;
use super::placement::{ActiveReceive, NoReceive, ReceiveSource, named};
use super::queue_pair::{Connection, Fault, Identity, Shared};
use crate::wire::{Msn, NakCode, Operation, Packet, Psn, Reth};
use reply::ReplyQueue;

pub(crate) use execute::{arrival, check_payload, check_range, follows};
pub(crate) use reply::ReplyBudget;

/// The message that is being received, between its First and its Last packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    None,
    Send,
    Write(WriteTarget),
}

/// Where the rest of an RDMA Write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteTarget {
    va: u64,
    rkey: u32,
    remaining: u64,
    /// Bytes of the whole message.
    pub(crate) total: u64,
}

impl WriteTarget {
    pub(crate) fn new(reth: &Reth) -> Self {
        let length = u64::from(reth.length);
        Self {
            va: reth.va,
            rkey: reth.rkey,
            remaining: length,
            total: length,
        }
    }

    /// Whether a packet's payload is what its place in the message asks for:
    /// the last packet, and no other, exhausts the length (IBTA 9.7.4.1.6).
    pub(crate) fn expects(&self, packet: &Packet<'_>) -> bool {
        let len = packet.payload().len() as u64;
        len <= self.remaining && (len == self.remaining) == packet.operation().is_end()
    }

    /// Places the next bytes of the message.
    pub(crate) fn place(
        &mut self,
        by: Accessor,
        payload: &[u8],
        shared: &Shared,
    ) -> Result<(), Refusal> {
        if !payload.is_empty() {
            shared
                .memory
                .write_remote(by, self.rkey, self.va, payload)
                .map_err(|_| Refusal::ACCESS)?;
        }
        let len = payload.len() as u64;
        self.va = self.va.wrapping_add(len);
        self.remaining -= len;
        Ok(())
    }
}

/// Why a request in sequence isn't executed: one row of the fault table
/// (IBTA tables 60 and 61).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No receive request: come again later. Nothing has changed.
    ReceiverNotReady,
    /// The requester's fault, or ours; ends the connection.
    Nak {
        code: NakCode,
        /// Status of the receive request in use.
        receive_status: WcStatus,
        /// Event when none is in use.
        event: Option<EventKind>,
    },
    /// A key that can't be invalidated: the Send counts as received, the
    /// connection ends without a NAK.
    InvalidateFailed,
}

impl Refusal {
    /// NAK invalid request: sequence of opcodes, lengths, pads, operations
    /// that the queue pair doesn't allow.
    pub(crate) const INVALID_REQUEST: Self = Self::Nak {
        code: NakCode::InvalidRequest,
        receive_status: WcStatus::RemoteInvalidRequest,
        event: Some(EventKind::QpRequestError),
    };

    /// NAK invalid request: the message doesn't fit the receive request.
    pub(crate) const MESSAGE_TOO_LONG: Self = Self::Nak {
        code: NakCode::InvalidRequest,
        receive_status: WcStatus::LocalLengthError,
        event: None,
    };

    /// NAK remote access error: key, domain, right, bounds. A receive is in use
    /// when it was a Write with immediate; what it is told is IBTA's wording
    /// for that very case (11.6.2), where rxe says remote access error.
    pub(crate) const ACCESS: Self = Self::Nak {
        code: NakCode::RemoteAccessError,
        receive_status: WcStatus::LocalAccessError,
        event: Some(EventKind::QpAccessError),
    };

    /// NAK remote operational error: the receive request's own memory.
    pub(crate) const RECEIVE_PROTECTION: Self = Self::Nak {
        code: NakCode::RemoteOperationalError,
        receive_status: WcStatus::LocalProtectionError,
        event: None,
    };

    /// NAK invalid request: an XRC packet that names no shared receive queue
    /// of the target's domain, or another one than its message began with.
    pub(crate) const UNKNOWN_QUEUE: Self = Self::Nak {
        code: NakCode::InvalidRequest,
        receive_status: WcStatus::RemoteInvalidRequest,
        event: Some(EventKind::QpAccessError),
    };
}

impl From<NoReceive> for Refusal {
    fn from(reason: NoReceive) -> Self {
        match reason {
            NoReceive::Empty => Self::ReceiverNotReady,
            NoReceive::UnknownQueue => Self::UNKNOWN_QUEUE,
        }
    }
}

/// The responder half of an RC queue pair, or an XRC target.
#[derive(Debug)]
pub(crate) struct Responder {
    /// PSN of the next new request.
    expected: Psn,
    /// Messages completed, modulo 2^24.
    msn: Msn,
    message: Message,
    pub(crate) receive: ActiveReceive,
    pub(crate) source: ReceiveSource,
    /// A NAK for what is missing has been sent; later packets are dropped
    /// until the expected one arrives (IBTA 9.7.5.2.4).
    nak_sent: bool,
    replies: ReplyQueue,
    access: AccessFlags,
    min_rnr_timer: u8,
}

impl Responder {
    pub(crate) fn new(source: ReceiveSource, max_sge: usize, identity: &Identity) -> Self {
        Self {
            expected: Psn::default(),
            msn: Msn::default(),
            message: Message::None,
            receive: ActiveReceive::new(max_sge, identity),
            source,
            nak_sent: false,
            replies: ReplyQueue::default(),
            access: AccessFlags::empty(),
            min_rnr_timer: 0,
        }
    }

    pub(crate) fn set_access(&mut self, access: AccessFlags) {
        self.access = access;
    }

    pub(crate) fn set_min_rnr_timer(&mut self, code: u8) {
        self.min_rnr_timer = code;
    }

    /// Starts to expect requests at `psn`.
    pub(crate) fn start(&mut self, psn: Psn) {
        self.expected = psn;
        self.msn = Msn::default();
        self.message = Message::None;
        self.nak_sent = false;
    }

    /// Makes room for the answers to this many Reads and atomics at a time.
    pub(crate) fn set_depth(&mut self, max_dest_rd_atomic: u8) {
        self.replies.set_depth(max_dest_rd_atomic);
    }

    /// Forgets everything (RESET).
    pub(crate) fn reset(&mut self) {
        self.start(Psn::default());
        self.receive.abandon();
        self.replies.clear();
        if let ReceiveSource::Own(queue) = &mut self.source {
            queue.clear();
        }
    }

    pub(crate) fn expected_psn(&self) -> Psn {
        self.expected
    }

    /// Handles a request that has passed the checks of every packet.
    pub(crate) fn on_request(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), Fault> {
        let distance = packet.psn().diff(self.expected);
        if distance > 0 {
            self.on_out_of_sequence(shared);
            return Ok(());
        }
        if distance < 0 {
            return self.on_duplicate(identity, connection, packet, shared);
        }
        self.nak_sent = false;
        match self.execute(identity, connection, packet, shared) {
            Ok(()) => Ok(()),
            Err(Refusal::ReceiverNotReady) => {
                // What follows is dropped until this packet comes again.
                self.nak_sent = true;
                shared.counters.tx_rnr_naks += 1;
                self.replies
                    .push_rnr_nak(packet.psn(), self.msn, self.min_rnr_timer);
                Ok(())
            }
            Err(Refusal::InvalidateFailed) => {
                let status = WcStatus::RemoteInvalidRequest;
                self.receive
                    .fail(&mut self.source, identity, status, 0, shared);
                if packet.ack_request() {
                    self.replies.push_final_ack(packet.psn(), self.msn);
                }
                Err(Fault::responder(None))
            }
            Err(Refusal::Nak {
                code,
                receive_status,
                event,
            }) => {
                shared.counters.tx_error_naks += 1;
                let vendor_err = u32::from(0x60 | u8::from(code));
                let in_use = self.receive.fail(
                    &mut self.source,
                    identity,
                    receive_status,
                    vendor_err,
                    shared,
                );
                self.replies.push_final_nak(packet.psn(), self.msn, code);
                Err(Fault::responder(if in_use { None } else { event }))
            }
        }
    }

    /// As whom the peer accesses memory. The requests of an XRC target do it
    /// in the protection domain of the shared receive queue that they name
    /// (annex A14); without one, which only operations may be that receive
    /// nothing, in the target's own.
    fn accessor(&self, identity: &Identity, packet: &Packet<'_>, shared: &Shared) -> Accessor {
        let own = identity.accessor();
        match self.source {
            ReceiveSource::Named(domain) => Accessor {
                pd: named(domain, packet, shared).map_or(own.pd, |(_, pd)| pd),
                ..own
            },
            ReceiveSource::Own(_) | ReceiveSource::Shared(_) => own,
        }
    }

    /// A packet is missing: say so once (IBTA 9.7.5.2.4).
    fn on_out_of_sequence(&mut self, shared: &mut Shared) {
        shared.counters.out_of_sequence += 1;
        if !self.nak_sent {
            self.nak_sent = true;
            shared.counters.tx_sequence_naks += 1;
            self.replies.push_sequence_nak(self.expected, self.msn);
        }
    }

    /// A request that has been executed before (IBTA 9.7.5.1.3):
    /// Sends and Writes are acknowledged again, Reads read again, atomics
    /// answered from memory.
    fn on_duplicate(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), Fault> {
        shared.counters.duplicate_requests += 1;
        let operation = packet.operation();
        if operation.is_send() || operation.is_write() {
            if packet.ack_request() {
                let psn = self
                    .replies
                    .last_acknowledgeable(packet.psn(), self.expected);
                self.replies.push_ack(psn, self.msn);
            }
            return Ok(());
        }
        let is_known = !matches!(operation, Operation::Flush | Operation::AtomicWrite);
        if !is_known || !packet.payload().is_empty() {
            return Ok(());
        }
        let by = self.accessor(identity, packet, shared);
        if let Some(reth) = packet.reth() {
            let mtu = connection.path_mtu.bytes();
            if !self.replies.repeats_read(packet.psn(), &reth, mtu) {
                return Ok(());
            }
            let readable = reth.length == 0
                || shared
                    .memory
                    .check_remote(
                        by,
                        reth.rkey,
                        reth.va,
                        u64::from(reth.length),
                        AccessFlags::REMOTE_READ,
                    )
                    .is_ok();
            if !readable {
                shared.counters.tx_error_naks += 1;
                self.replies
                    .push_final_nak(packet.psn(), self.msn, NakCode::RemoteAccessError);
                return Err(Fault::responder(Some(EventKind::QpAccessError)));
            }
            self.replies.repeat_read(packet.psn(), &reth, by, self.msn);
        } else if let Some(atomic) = packet.atomic_eth() {
            self.replies
                .repeat_atomic(packet.psn(), atomic.rkey, atomic.va, self.msn);
        }
        Ok(())
    }
}
