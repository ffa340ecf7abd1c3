//! The answers that a responder owes, in order, and how they become packets.
//!
//! One queue holds them all, because an answer for a PSN says that all earlier
//! ones have been given (IBTA 9.7.5.1.1). Acknowledgements at its end merge.
//! Reads and atomics stay remembered after their answer, for duplicates.

use std::collections::VecDeque;

use verbs_sys::EventKind;

use super::Responder;
use crate::link::TxQueue;
use crate::transport::memory::Accessor;
use crate::transport::queue_pair::{Connection, Fault, Identity, Shared, Turn};
use crate::wire::{
    Aeth, AtomicAckEth, Bth, BuildError, MAX_HEADER_LEN, Msn, NakCode, Opcode, Operation,
    PacketBuilder, Psn, Reth, Syndrome,
};

/// How much a turn may write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyBudget {
    /// Packets.
    pub(crate) packets: u32,
    /// Whether lone acknowledgements leave now, or wait for company.
    pub(crate) acks: bool,
}

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// ACK, RNR NAK or NAK.
    Acknowledge {
        psn: Psn,
        msn: Msn,
        syndrome: Syndrome,
    },
    /// Data of a Read, from packet `next` of `packets` on.
    Read {
        psn: Psn,
        msn: Msn,
        va: u64,
        rkey: u32,
        length: u32,
        /// As whom the peer reads.
        by: Accessor,
        next: u32,
        packets: u32,
        repeated: bool,
    },
    /// The value before an atomic.
    Atomic {
        psn: Psn,
        msn: Msn,
        original: u64,
        repeated: bool,
    },
}

impl Reply {
    /// The first answer to a Read or atomic, for which the peer may keep only
    /// so many waiting.
    fn takes_resource(&self) -> bool {
        matches!(
            self,
            Self::Read {
                repeated: false,
                ..
            } | Self::Atomic {
                repeated: false,
                ..
            }
        )
    }
}

/// A Read or atomic that may be asked for again (IBTA 9.7.5.1.3).
#[derive(Debug, Clone, Copy)]
struct Resource {
    psn: Psn,
    packets: u32,
    va: u64,
    rkey: u32,
    kind: ResourceKind,
}

#[derive(Debug, Clone, Copy)]
enum ResourceKind {
    Read { length: u32 },
    Atomic { original: u64 },
}

/// Answers owed and answers remembered.
#[derive(Debug, Default)]
pub(super) struct ReplyQueue {
    queue: VecDeque<Reply>,
    /// The last Reads and atomics, newest last.
    resources: VecDeque<Resource>,
    depth: usize,
    /// The last answer has been queued: nothing is answered any more.
    closed: bool,
}

impl ReplyQueue {
    /// Room for the Reads and atomics of a peer that rounds its number up to a
    /// power of two, as rxe does.
    pub(super) fn set_depth(&mut self, max_dest_rd_atomic: u8) {
        self.depth = match max_dest_rd_atomic {
            0 => 0,
            depth => usize::from(depth).next_power_of_two(),
        };
        self.resources.reserve(self.depth);
        self.queue.reserve(self.capacity());
    }

    /// Each Read or atomic can be there twice, once repeated; between two of
    /// these answers are at most a NAK and an ACK.
    fn capacity(&self) -> usize {
        6 * self.depth + 4
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.resources.clear();
        self.closed = false;
    }

    /// Whether one more Read or atomic may be outstanding. Repeated ones don't
    /// count: the network may have made them.
    pub(super) fn has_resource(&self) -> bool {
        let unanswered = self.queue.iter().filter(|reply| reply.takes_resource());
        unanswered.count() < self.depth
    }

    /// The last PSN that may be acknowledged to a peer that repeats the Send
    /// or Write at `psn`: not one behind a later Read or atomic, whose answer
    /// the peer may still lack.
    pub(super) fn last_acknowledgeable(&self, psn: Psn, expected: Psn) -> Psn {
        let unanswered = self
            .resources
            .iter()
            .find(|resource| resource.psn.is_after(psn) && resource.psn.is_before(expected));
        unanswered.map_or(expected, |resource| resource.psn) - 1
    }

    /// Acknowledges everything up to `psn`, unless an answer at the end of
    /// the queue says so already.
    pub(super) fn push_ack(&mut self, psn: Psn, msn: Msn) {
        let syndrome = Syndrome::Ack {
            credits: Syndrome::NO_CREDITS,
        };
        let ack = Reply::Acknowledge { psn, msn, syndrome };
        match self.queue.back_mut() {
            Some(Reply::Acknowledge {
                psn: said,
                syndrome: Syndrome::Ack { .. },
                ..
            }) if !psn.is_after(*said) => {}
            Some(
                last @ Reply::Acknowledge {
                    syndrome: Syndrome::Ack { .. },
                    ..
                },
            ) => *last = ack,
            // A NAK acknowledges what comes before it.
            Some(Reply::Acknowledge { psn: refused, .. }) if psn.is_before(*refused) => {}
            _ => self.push(ack),
        }
    }

    pub(super) fn push_rnr_nak(&mut self, psn: Psn, msn: Msn, timer: u8) {
        self.push_nak(psn, msn, Syndrome::RnrNak { timer });
    }

    pub(super) fn push_sequence_nak(&mut self, psn: Psn, msn: Msn) {
        self.push_nak(psn, msn, Syndrome::Nak(NakCode::PsnSequenceError));
    }

    /// A NAK after which nothing more is answered.
    pub(super) fn push_final_nak(&mut self, psn: Psn, msn: Msn, code: NakCode) {
        self.push_nak(psn, msn, Syndrome::Nak(code));
        self.closed = true;
    }

    /// An acknowledgement after which nothing more is answered.
    pub(super) fn push_final_ack(&mut self, psn: Psn, msn: Msn) {
        self.push_ack(psn, msn);
        self.closed = true;
    }

    /// A NAK in place of all answers that are owed.
    fn give_up(&mut self, psn: Psn, msn: Msn, code: NakCode) {
        self.queue.clear();
        self.closed = false;
        self.push_final_nak(psn, msn, code);
    }

    /// A NAK acknowledges what comes before it, so it takes the place of
    /// acknowledgements and earlier NAKs at the end of the queue.
    fn push_nak(&mut self, psn: Psn, msn: Msn, syndrome: Syndrome) {
        while let Some(Reply::Acknowledge { .. }) = self.queue.back() {
            self.queue.pop_back();
        }
        self.push(Reply::Acknowledge { psn, msn, syndrome });
    }

    pub(super) fn push_read(
        &mut self,
        psn: Psn,
        packets: u32,
        reth: &Reth,
        by: Accessor,
        msn: Msn,
    ) {
        let kind = ResourceKind::Read {
            length: reth.length,
        };
        self.remember(Resource {
            psn,
            packets,
            va: reth.va,
            rkey: reth.rkey,
            kind,
        });
        let Reth { va, rkey, length } = *reth;
        self.push(Reply::Read {
            psn,
            msn,
            va,
            rkey,
            length,
            by,
            next: 0,
            packets,
            repeated: false,
        });
    }

    pub(super) fn push_atomic(&mut self, psn: Psn, rkey: u32, va: u64, original: u64, msn: Msn) {
        let kind = ResourceKind::Atomic { original };
        self.remember(Resource {
            psn,
            packets: 1,
            va,
            rkey,
            kind,
        });
        self.push(Reply::Atomic {
            psn,
            msn,
            original,
            repeated: false,
        });
    }

    /// Whether a Read is, or is the end of, one that is remembered: same key,
    /// on a packet boundary, up to the same end (IBTA 9.7.5.1.3).
    pub(super) fn repeats_read(&self, psn: Psn, reth: &Reth, mtu: u32) -> bool {
        let Some(resource) = self.find(psn) else {
            return false;
        };
        let ResourceKind::Read { length } = resource.kind else {
            return false;
        };
        let skipped = u64::from(psn.diff(resource.psn) as u32) * u64::from(mtu);
        resource.rkey == reth.rkey
            && resource.va.wrapping_add(skipped) == reth.va
            && skipped + u64::from(reth.length) == u64::from(length)
    }

    /// Answers a Read again; one that is being answered starts over.
    pub(super) fn repeat_read(&mut self, psn: Psn, reth: &Reth, by: Accessor, msn: Msn) {
        let Some(resource) = self.find(psn).copied() else {
            return;
        };
        let packets = resource.packets - psn.diff(resource.psn) as u32;
        let Reth { va, rkey, length } = *reth;
        let end = psn + packets;
        let running = self.queue.iter_mut().find(
            |reply| matches!(reply, Reply::Read { psn, packets, .. } if *psn + *packets == end),
        );
        let again = Reply::Read {
            psn,
            msn,
            va,
            rkey,
            length,
            by,
            next: 0,
            packets,
            repeated: running.as_ref().is_none_or(|reply| !reply.takes_resource()),
        };
        match running {
            Some(reply) => *reply = again,
            None => self.push(again),
        }
    }

    /// Answers an atomic again, from memory; it is never run twice.
    pub(super) fn repeat_atomic(&mut self, psn: Psn, rkey: u32, va: u64, msn: Msn) {
        let Some(resource) = self.find(psn) else {
            return;
        };
        if let ResourceKind::Atomic { original } = resource.kind
            && (resource.rkey, resource.va) == (rkey, va)
        {
            let psn = resource.psn;
            let is_owed =
                |reply: &Reply| matches!(reply, Reply::Atomic { psn: owed, .. } if *owed == psn);
            if !self.queue.iter().any(is_owed) {
                self.push(Reply::Atomic {
                    psn,
                    msn,
                    original,
                    repeated: true,
                });
            }
        }
    }

    fn find(&self, psn: Psn) -> Option<&Resource> {
        self.resources.iter().rev().find(|resource| {
            let distance = psn.diff(resource.psn);
            distance >= 0 && (distance as u32) < resource.packets
        })
    }

    fn remember(&mut self, resource: Resource) {
        if self.resources.len() >= self.depth {
            self.resources.pop_front();
        }
        self.resources.push_back(resource);
    }

    /// An answer that finds no room is not given: the requester will ask again.
    fn push(&mut self, reply: Reply) {
        if !self.closed && self.queue.len() < self.capacity() {
            self.queue.push_back(reply);
        }
    }
}

/// What came of one answer.
enum Written {
    /// It is complete.
    Whole,
    /// One packet of a Read; more to come.
    Part,
    /// The memory of a Read is no longer readable.
    AccessDenied,
}

impl Responder {
    /// Whether nothing but an acknowledgement is owed.
    pub(crate) fn owes_only_ack(&self) -> bool {
        self.replies.queue.iter().all(|reply| {
            matches!(
                reply,
                Reply::Acknowledge {
                    syndrome: Syndrome::Ack { .. },
                    ..
                }
            )
        })
    }

    /// Whether any answer is owed.
    pub(crate) fn owes_reply(&self) -> bool {
        !self.replies.queue.is_empty()
    }

    /// Drops the answers that are owed, except when the last one is still to
    /// be given: the peer should learn why the connection ends.
    pub(crate) fn close(&mut self) {
        if !self.replies.closed {
            self.replies.queue.clear();
            self.replies.closed = true;
        }
    }

    /// Writes the answers that are owed.
    pub(crate) fn transmit(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        tx: &mut TxQueue,
        budget: ReplyBudget,
        shared: &mut Shared,
    ) -> Result<Turn, Fault> {
        if !budget.acks && self.owes_only_ack() {
            return Ok(Turn::Idle);
        }
        for _ in 0..budget.packets {
            let Some(reply) = self.replies.queue.front().copied() else {
                return Ok(Turn::Idle);
            };
            if !tx.has_room(connection.path_mtu.bytes() as usize + MAX_HEADER_LEN + 8) {
                return Ok(Turn::Full);
            }
            match write_reply(&reply, identity, connection, tx, shared) {
                Written::Whole => {
                    self.replies.queue.pop_front();
                    shared.counters.tx_packets += 1;
                }
                Written::Part => {
                    shared.counters.tx_packets += 1;
                    if let Some(Reply::Read { next, .. }) = self.replies.queue.front_mut() {
                        *next += 1;
                    }
                }
                Written::AccessDenied => {
                    let Reply::Read { psn, next, msn, .. } = reply else {
                        continue;
                    };
                    shared.counters.tx_error_naks += 1;
                    self.replies
                        .give_up(psn + next, msn, NakCode::RemoteAccessError);
                    return Err(Fault::responder(Some(EventKind::QpAccessError)));
                }
            }
        }
        Ok(Turn::More)
    }
}

/// Why a packet of an answer couldn't be written.
enum Unwritten {
    /// Its parts don't fit each other: a defect of ours, which `debug_assert`
    /// shows in tests; the peer will ask again.
    Malformed(BuildError),
    AccessDenied,
}

impl From<BuildError> for Unwritten {
    fn from(error: BuildError) -> Self {
        Self::Malformed(error)
    }
}

/// Writes one packet of an answer.
fn write_reply(
    reply: &Reply,
    identity: &Identity,
    connection: &Connection,
    tx: &mut TxQueue,
    shared: &Shared,
) -> Written {
    let (operation, psn, len) = match *reply {
        Reply::Acknowledge { psn, .. } => (Operation::Acknowledge, psn, 0),
        Reply::Atomic { psn, .. } => (Operation::AtomicAcknowledge, psn, 0),
        Reply::Read {
            psn,
            length,
            next,
            packets,
            ..
        } => {
            let skipped = u64::from(next) * u64::from(connection.path_mtu.bytes());
            let len = (u64::from(length) - skipped).min(u64::from(connection.path_mtu.bytes()));
            (read_response(next, packets), psn + next, len as usize)
        }
    };
    let (Some(route), Some(opcode)) =
        (connection.route, Opcode::new(identity.service(), operation))
    else {
        return Written::Whole;
    };
    let bth = Bth::new(opcode, connection.dest_qpn, psn);
    let ack = Syndrome::Ack {
        credits: Syndrome::NO_CREDITS,
    };
    let written = tx.push(route, MAX_HEADER_LEN + len + 8, |buffer| {
        let builder = PacketBuilder::new(buffer, bth)?;
        let packet = match *reply {
            Reply::Acknowledge { msn, syndrome, .. } => builder.aeth(Aeth::new(syndrome, msn)),
            Reply::Atomic { msn, original, .. } => builder
                .aeth(Aeth::new(ack, msn))
                .atomic_ack_eth(AtomicAckEth { original }),
            Reply::Read {
                msn,
                va,
                rkey,
                by,
                next,
                ..
            } => {
                let mut builder = match operation.has_aeth() {
                    true => builder.aeth(Aeth::new(ack, msn)),
                    false => builder,
                };
                let skipped = u64::from(next) * u64::from(connection.path_mtu.bytes());
                let payload = builder.payload_mut(len)?;
                if len > 0 {
                    shared
                        .memory
                        .read_remote(by, rkey, va.wrapping_add(skipped), payload)
                        .map_err(|_| Unwritten::AccessDenied)?;
                }
                builder
            }
        };
        Ok(packet.finish()?)
    });
    match (written, *reply) {
        (Some(Err(Unwritten::AccessDenied)), _) => Written::AccessDenied,
        (Some(Err(Unwritten::Malformed(error))), _) => {
            debug_assert!(false, "{error}");
            Written::Whole
        }
        (_, Reply::Read { next, packets, .. }) if next + 1 < packets => Written::Part,
        _ => Written::Whole,
    }
}

/// The operation of packet `next` of a Read's `packets` responses. A repeated
/// Read starts over with First or Only, as the rule says; rxe doesn't.
fn read_response(next: u32, packets: u32) -> Operation {
    match (next == 0, next + 1 == packets) {
        (true, true) => Operation::ReadResponseOnly,
        (true, false) => Operation::ReadResponseFirst,
        (false, false) => Operation::ReadResponseMiddle,
        (false, true) => Operation::ReadResponseLast,
    }
}
