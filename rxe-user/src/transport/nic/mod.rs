//! All objects of one device.
//!
//! - [`mod@self`]: posting, polling, the scheduler, the timers.
//! - [`objects`]: making, changing and releasing objects.
//! - [`multicast`]: groups of queue pairs.
//! - [`receive`]: the checks that every packet goes through.

mod multicast;
mod objects;
mod receive;

use std::collections::VecDeque;

use verbs_sys::{
    AsyncEvent, Completion, EventKind, EventSource, Gid, Notify, PathMtu, PostError, QpState,
    ReceiveRequest, Result, SendRequest, VerbsError,
};

use super::CqId;
use super::completion::CqTable;
use super::counters::Counters;
use super::domains::Domains;
use super::events::EventQueue;
use super::memory::MemoryTable;
use super::multicast::Groups;
use super::queue_pair::{QueuePair, Shared, Turn};
use super::srq::{MAX_SRQ, SrqTable};
use super::timer::TimerHeap;
use crate::link::TxQueue;
use crate::time::Time;

pub use receive::Receiver;

/// Most objects of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NicLimits {
    /// Queue pairs; at most 2^14 - 2.
    pub max_qp: u32,
    /// Work requests per queue.
    pub max_qp_wr: u32,
    /// Scatter/gather entries per work request.
    pub max_sge: u32,
    /// Inline bytes per send request.
    pub max_inline_data: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Entries per completion queue.
    pub max_cqe: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Memory windows.
    pub max_mw: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// Shared receive queues; at most 2^16.
    pub max_srq: u32,
    /// XRC domains.
    pub max_xrcd: u32,
    /// Multicast groups.
    pub max_multicast_groups: u32,
    /// Queue pairs per multicast group.
    pub max_multicast_members: u32,
    /// Reads and atomics outstanding per queue pair and direction.
    pub max_rd_atomic: u8,
}

impl Default for NicLimits {
    fn default() -> Self {
        Self {
            max_qp: SLOTS - 2,
            max_qp_wr: 1 << 17,
            max_sge: 32,
            max_inline_data: 1024,
            max_cq: 1 << 16,
            max_cqe: 1 << 22,
            max_mr: 1 << 20,
            max_mw: 1 << 20,
            max_pd: 1 << 16,
            max_srq: MAX_SRQ,
            max_xrcd: 1 << 16,
            max_multicast_groups: 256,
            max_multicast_members: 256,
            max_rd_atomic: 128,
        }
    }
}

/// What a NIC is made from.
#[derive(Debug, Clone)]
pub struct NicConfig {
    /// The port's GID table; route look-ups of address vectors use it.
    pub gids: Vec<Gid>,
    /// Largest path MTU of the port.
    pub port_mtu: PathMtu,
    /// Packets that a queue pair may have in flight: no more than the peer's
    /// receive buffer holds.
    pub window: u32,
    /// Limits.
    pub limits: NicLimits,
}

/// QPN, key and identifier bits come from here: the OS, or a seed in tests.
pub type Random = Box<dyn FnMut() -> u32 + Send>;

/// A QPN is a slot number with random bits above it, so that packets of a
/// former connection find no queue pair.
const SLOT_BITS: u32 = 14;
const SLOTS: u32 = 1 << SLOT_BITS;
const TAG_BITS: u32 = 24 - SLOT_BITS;

/// Which acknowledgements [`Nic::transmit`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// Those that go along with other packets: a reply to the last message is
    /// likely to follow at once.
    WithData,
    /// All that are owed.
    All,
}

/// A NIC without a network: owns every object, takes received packets and
/// the time, gives packets to send and completions.
pub struct Nic {
    config: NicConfig,
    random: Random,
    qps: Vec<Option<Box<QueuePair>>>,
    free_slots: Vec<u32>,
    shared: Shared,
    groups: Groups,
    timers: TimerHeap,
    /// Slots of queue pairs that have something to transmit.
    ready: VecDeque<u32>,
    /// Slots of queue pairs that owe nothing but an acknowledgement.
    ack_ready: VecDeque<u32>,
    /// How many queue pairs have an acknowledgement waiting for company.
    acks_waiting: usize,
}

impl Nic {
    /// An empty NIC.
    #[must_use]
    pub fn new(config: NicConfig, random: Random) -> Self {
        Self {
            config,
            random,
            qps: Vec::new(),
            free_slots: Vec::new(),
            shared: Shared {
                memory: MemoryTable::default(),
                cqs: CqTable::default(),
                srqs: SrqTable::default(),
                xrc_domains: Domains::new("XRC domain"),
                events: EventQueue::new(),
                counters: Counters::default(),
            },
            groups: Groups::default(),
            timers: TimerHeap::default(),
            ready: VecDeque::new(),
            ack_ready: VecDeque::new(),
            acks_waiting: 0,
        }
    }

    /// What it was made from.
    #[must_use]
    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Takes completions, oldest first.
    pub fn poll_cq(&mut self, cq: CqId, completions: &mut [Completion]) -> usize {
        self.shared.cqs.poll(cq, completions)
    }

    /// Asks for one notification.
    pub fn arm_cq(&mut self, cq: CqId, notify: Notify) {
        self.shared.cqs.arm(cq, notify);
    }

    /// The next completion queue to notify.
    pub fn next_notified(&mut self) -> Option<CqId> {
        self.shared.cqs.next_notified()
    }

    /// The next asynchronous event.
    pub fn next_event(&mut self) -> Option<AsyncEvent> {
        self.shared.events.next()
    }

    /// Whether a queue pair waits for acknowledgements.
    #[must_use]
    pub fn has_in_flight(&self, qpn: u32) -> bool {
        self.qp(qpn).is_ok_and(QueuePair::has_in_flight)
    }

    /// Queues send requests; [`Self::transmit`] starts them.
    ///
    /// # Errors
    /// [`PostError`] names the first request that was refused.
    pub fn post_send(&mut self, qpn: u32, requests: &[SendRequest<'_>]) -> Result<(), PostError> {
        let Self { qps, shared, .. } = self;
        let qp = find(qps, qpn).map_err(|source| PostError { posted: 0, source })?;
        let mut result = Ok(());
        for (posted, request) in requests.iter().enumerate() {
            if let Err(source) = qp.post_send(request, shared) {
                result = Err(PostError { posted, source });
                break;
            }
        }
        self.schedule(qpn);
        self.fail_overrun_users();
        result
    }

    /// Queues receive requests.
    ///
    /// # Errors
    /// [`PostError`] names the first request that was refused.
    pub fn post_recv(
        &mut self,
        qpn: u32,
        requests: &[ReceiveRequest<'_>],
    ) -> Result<(), PostError> {
        let Self { qps, shared, .. } = self;
        let qp = find(qps, qpn).map_err(|source| PostError { posted: 0, source })?;
        let mut result = Ok(());
        for (posted, request) in requests.iter().enumerate() {
            if let Err(source) = qp.post_recv(request, shared) {
                result = Err(PostError { posted, source });
                break;
            }
        }
        self.fail_overrun_users();
        result
    }

    /// Writes packets to send. Says whether there is more than `tx` had room for.
    pub fn transmit(&mut self, now: Time, tx: &mut TxQueue, acks: Acks) -> bool {
        if acks == Acks::All {
            while let Some(slot) = self.ack_ready.pop_front() {
                let waits = match self.qps.get_mut(slot as usize) {
                    Some(Some(qp)) => {
                        qp.ack_queued = false;
                        qp.ack_waits
                    }
                    _ => false,
                };
                if waits {
                    self.make_ready(slot);
                }
            }
        }
        let turns = self.ready.len();
        for _ in 0..turns {
            let Some(slot) = self.ready.pop_front() else {
                break;
            };
            let Some(qp) = self
                .qps
                .get_mut(slot as usize)
                .and_then(Option::as_deref_mut)
            else {
                continue;
            };
            qp.scheduled = false;
            let turn = qp.transmit(now, tx, acks == Acks::All, &mut self.shared);
            arm_timer(&mut self.timers, qp, slot);
            let waits = turn == Turn::Idle && qp.owes_only_ack();
            if waits != qp.ack_waits {
                qp.ack_waits = waits;
                if waits {
                    self.acks_waiting += 1;
                } else {
                    self.acks_waiting -= 1;
                }
            }
            // An entry stays when the acknowledgement leaves in company.
            if waits && !qp.ack_queued {
                qp.ack_queued = true;
                self.ack_ready.push_back(slot);
            }
            match turn {
                Turn::Idle => {}
                Turn::More => self.make_ready(slot),
                Turn::Full => {
                    self.make_ready(slot);
                    self.fail_overrun_users();
                    return true;
                }
            }
        }
        self.fail_overrun_users();
        !self.ready.is_empty()
    }

    /// Whether [`Self::transmit`] has something to do, beside acknowledgements
    /// that wait.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether acknowledgements wait for company.
    #[must_use]
    pub fn owes_acks(&self) -> bool {
        self.acks_waiting > 0
    }

    /// When [`Self::handle_timers`] has something to do, at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Handles the timers whose time has come.
    pub fn handle_timers(&mut self, now: Time) {
        while let Some(slot) = self.timers.pop_due(now) {
            let Some(qp) = self
                .qps
                .get_mut(slot as usize)
                .and_then(Option::as_deref_mut)
            else {
                continue;
            };
            let transmit = qp.on_timer(now, &mut self.shared);
            arm_timer(&mut self.timers, qp, slot);
            if transmit {
                self.make_ready(slot);
            }
        }
        self.fail_overrun_users();
    }

    fn qp(&self, qpn: u32) -> Result<&QueuePair> {
        self.qps
            .get((qpn & (SLOTS - 1)) as usize)
            .and_then(Option::as_deref)
            .filter(|qp| qp.identity.qpn == qpn)
            .ok_or(VerbsError::ForeignObject { what: "queue pair" })
    }

    /// Gives a queue pair its turn: at once when it has data to send, with
    /// the next ones when it owes nothing but an acknowledgement.
    fn schedule(&mut self, qpn: u32) {
        let slot = qpn & (SLOTS - 1);
        let Ok(qp) = find(&mut self.qps, qpn) else {
            return;
        };
        arm_timer(&mut self.timers, qp, slot);
        self.make_ready(slot);
    }

    fn make_ready(&mut self, slot: u32) {
        if let Some(qp) = self
            .qps
            .get_mut(slot as usize)
            .and_then(Option::as_deref_mut)
            && !qp.scheduled
        {
            qp.scheduled = true;
            self.ready.push_back(slot);
        }
    }

    /// Queue pairs whose completion queue overran can't go on (IBTA 11.6.3.2).
    fn fail_overrun_users(&mut self) {
        while let Some(cq) = self.shared.cqs.next_overrun() {
            self.shared.counters.cq_overruns += 1;
            let Shared { srqs, events, .. } = &mut self.shared;
            srqs.fail_reporting_to(cq, events);
            for qp in self.qps.iter_mut().flatten().filter(|qp| qp.uses_cq(cq)) {
                if qp.state() != QpState::Reset {
                    qp.enter_error(&mut self.shared);
                    let source = EventSource::Qp(qp.identity.qpn);
                    self.shared.events.raise(EventKind::QpFatal, source);
                }
            }
        }
    }
}

impl std::fmt::Debug for Nic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nic")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn find(qps: &mut [Option<Box<QueuePair>>], qpn: u32) -> Result<&mut QueuePair> {
    qps.get_mut((qpn & (SLOTS - 1)) as usize)
        .and_then(Option::as_deref_mut)
        .filter(|qp| qp.identity.qpn == qpn)
        .ok_or(VerbsError::ForeignObject { what: "queue pair" })
}

/// Makes sure that the heap wakes no later than the queue pair's deadline.
fn arm_timer(timers: &mut TimerHeap, qp: &QueuePair, slot: u32) {
    if let Some(deadline) = qp.deadline() {
        timers.wake_by(deadline, slot);
    }
}
