//! All objects of one device, the receive pipeline, the scheduler.

use std::collections::VecDeque;

use verbs_sys::memory::MemoryRange;
use verbs_sys::{
    AccessFlags, AsyncEvent, Completion, EventKind, EventSource, Gid, Notify, PathMtu, PostError,
    QpAttributes, QpState, QpType, ReceiveRequest, Result, SendRequest, VerbsError,
};

use super::completion::CqTable;
use super::counters::Counters;
use super::events::EventQueue;
use super::memory::{Keys, MemoryTable, PdId};
use super::queue_pair::{QpSettings, QueuePair, Shared, Turn};
use super::srq::SrqTable;
use super::timer::TimerHeap;
use super::{CqId, SrqId};
use crate::link::{IpId, PacketSink, Route, RxPacket, TxQueue};
use crate::time::Time;
use crate::wire::icrc::{self, Envelope};
use crate::wire::{DEFAULT_PKEY, Packet, Service};

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
    /// Protection domains.
    pub max_pd: u32,
    /// Shared receive queues.
    pub max_srq: u32,
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
            max_pd: 1 << 16,
            max_srq: 1 << 16,
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
                events: EventQueue::new(),
                counters: Counters::default(),
            },
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

    /// Makes a protection domain.
    ///
    /// # Errors
    /// `Exhausted` at the limit.
    pub fn alloc_pd(&mut self) -> Result<PdId> {
        let limit = self.config.limits.max_pd;
        within("protection domains", self.shared.memory.domains(), limit)?;
        Ok(self.shared.memory.alloc_pd())
    }

    /// Releases a protection domain.
    ///
    /// # Errors
    /// `Busy` while objects made in it exist.
    pub fn dealloc_pd(&mut self, pd: PdId) -> Result<()> {
        self.shared.memory.dealloc_pd(pd)
    }

    /// Registers memory.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty range or contradicting flags.
    pub fn register(&mut self, pd: PdId, range: MemoryRange, access: AccessFlags) -> Result<Keys> {
        let limit = self.config.limits.max_mr;
        within("memory regions", self.shared.memory.regions(), limit)?;
        self.shared
            .memory
            .register(pd, range, access, &mut self.random)
    }

    /// Ends a registration. Packets that still use the key are refused.
    ///
    /// # Errors
    /// `ForeignObject` when there is no such key.
    pub fn deregister(&mut self, lkey: u32) -> Result<()> {
        self.shared.memory.deregister(lkey)
    }

    /// Makes a completion queue.
    ///
    /// # Errors
    /// `InvalidArgument` for a depth of 0 or above the limit.
    pub fn create_cq(&mut self, depth: u32) -> Result<CqId> {
        let limits = &self.config.limits;
        in_range("completion queue depth", depth, 1, limits.max_cqe)?;
        within("completion queues", self.shared.cqs.len(), limits.max_cq)?;
        Ok(self.shared.cqs.create(depth))
    }

    /// Releases a completion queue.
    ///
    /// # Errors
    /// `Busy` while queue pairs report there.
    pub fn destroy_cq(&mut self, cq: CqId) -> Result<()> {
        self.shared.cqs.destroy(cq)
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

    /// Whether events wait.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.shared.events.is_empty()
    }

    /// Makes a shared receive queue.
    ///
    /// # Errors
    /// `InvalidArgument` for sizes above the limits.
    pub fn create_srq(&mut self, pd: PdId, depth: u32, max_sge: u32, limit: u32) -> Result<SrqId> {
        let limits = &self.config.limits;
        in_range("shared receive queue depth", depth, 1, limits.max_qp_wr)?;
        in_range(
            "scatter/gather entries of a shared receive",
            max_sge,
            0,
            limits.max_sge,
        )?;
        in_range("shared receive queue limit", limit, 0, depth)?;
        within(
            "shared receive queues",
            self.shared.srqs.len(),
            limits.max_srq,
        )?;
        self.shared.memory.add_pd_user(pd);
        Ok(self.shared.srqs.create(pd, depth, max_sge, limit))
    }

    /// Releases a shared receive queue.
    ///
    /// # Errors
    /// `Busy` while queue pairs draw from it.
    pub fn destroy_srq(&mut self, srq: SrqId) -> Result<()> {
        let pd = self.shared.srqs.destroy(srq)?;
        self.shared.memory.remove_pd_user(pd);
        Ok(())
    }

    /// Arms the limit event of a shared receive queue.
    ///
    /// # Errors
    /// `InvalidArgument` for a limit above its depth.
    pub fn set_srq_limit(&mut self, srq: SrqId, limit: u32) -> Result<()> {
        self.shared.srqs.set_limit(srq, limit)
    }

    /// Queues receives on a shared queue.
    ///
    /// # Errors
    /// [`PostError`] names the first request that was refused.
    pub fn post_srq_recv(
        &mut self,
        srq: SrqId,
        requests: &[ReceiveRequest<'_>],
    ) -> Result<(), PostError> {
        self.shared.srqs.post(srq, requests)
    }

    /// Makes a queue pair in RESET and returns its number.
    ///
    /// # Errors
    /// `InvalidArgument` for sizes above the limits, `Exhausted` at the limit.
    pub fn create_qp(&mut self, settings: QpSettings) -> Result<u32> {
        let (limits, cap) = (&self.config.limits, &settings.cap);
        if matches!(settings.qp_type, QpType::XrcSend | QpType::XrcReceive) {
            return Err(VerbsError::Unsupported { what: "XRC" });
        }
        in_range("max_send_wr", cap.max_send_wr, 0, limits.max_qp_wr)?;
        in_range("max_recv_wr", cap.max_recv_wr, 0, limits.max_qp_wr)?;
        in_range("max_send_sge", cap.max_send_sge, 0, limits.max_sge)?;
        in_range("max_recv_sge", cap.max_recv_sge, 0, limits.max_sge)?;
        in_range(
            "max_inline_data",
            cap.max_inline_data,
            0,
            limits.max_inline_data,
        )?;
        for cq in [settings.send_cq, settings.recv_cq] {
            if !self.shared.cqs.contains(cq) {
                return Err(VerbsError::ForeignObject {
                    what: "completion queue",
                });
            }
        }
        let srq_sge = match settings.srq {
            Some(srq) => self
                .shared
                .srqs
                .max_sge(srq)
                .ok_or(VerbsError::ForeignObject {
                    what: "shared receive queue",
                })?,
            None => 0,
        };
        let slot = self.free_slot()?;
        // Slots 0 and 1 with tag 0 would be the management queue pairs, and
        // all ones is multicast: tags avoid both.
        let tag = 1 + (self.random)() % ((1 << TAG_BITS) - 2);
        let qpn = tag << SLOT_BITS | slot;
        let qp = QueuePair::new(qpn, settings, self.config.port_mtu, srq_sge);
        if let Some(place) = self.qps.get_mut(slot as usize) {
            *place = Some(Box::new(qp));
        }
        self.shared.memory.add_pd_user(settings.pd);
        self.shared.cqs.add_user(settings.send_cq);
        self.shared.cqs.add_user(settings.recv_cq);
        if let Some(srq) = settings.srq {
            self.shared.srqs.add_user(srq);
        }
        self.timers.reserve(slot);
        self.ready.reserve(self.qps.len());
        self.ack_ready.reserve(self.qps.len());
        Ok(qpn)
    }

    fn free_slot(&mut self) -> Result<u32> {
        if let Some(slot) = self.free_slots.pop() {
            return Ok(slot);
        }
        within(
            "queue pairs",
            self.qps.len(),
            self.config.limits.max_qp.min(SLOTS - 2),
        )?;
        self.qps.push(None);
        self.free_slots.reserve(self.qps.len());
        Ok(self.qps.len() as u32 - 1)
    }

    /// Releases a queue pair. Its completions that nobody has fetched go too.
    pub fn destroy_qp(&mut self, qpn: u32) {
        let slot = qpn & (SLOTS - 1);
        if self.qp(qpn).is_err() {
            return;
        }
        let Some(qp) = self.qps.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        let settings = qp.settings;
        self.shared.memory.remove_pd_user(settings.pd);
        for cq in [settings.send_cq, settings.recv_cq] {
            self.shared.cqs.purge(cq, qpn);
            self.shared.cqs.remove_user(cq);
        }
        if let Some(srq) = settings.srq {
            self.shared.srqs.remove_user(srq);
        }
        if qp.ack_waits {
            self.acks_waiting -= 1;
        }
        self.ready.retain(|other| *other != slot);
        self.ack_ready.retain(|other| *other != slot);
        self.timers.cancel(slot);
        self.free_slots.push(slot);
    }

    /// Changes attributes of a queue pair; on an error nothing has changed.
    ///
    /// # Errors
    /// The transition or an attribute isn't allowed.
    pub fn modify_qp(&mut self, qpn: u32, change: &QpAttributes) -> Result<()> {
        let av = self.qp(qpn)?.check_modify(change)?;
        self.check_limits(change)?;
        let route = av.map(|av| self.route(av.sgid_index, av.dgid, av.traffic_class, av.hop_limit));
        let route = route.transpose()?;
        let window = self.config.window;
        let Self { qps, shared, .. } = self;
        let qp = find(qps, qpn)?;
        qp.modify(change, route, window, shared);
        self.schedule(qpn);
        self.fail_overrun_users();
        Ok(())
    }

    fn check_limits(&self, change: &QpAttributes) -> Result<()> {
        let max = u32::from(self.config.limits.max_rd_atomic);
        let depth = |depth: Option<u8>| u32::from(depth.unwrap_or(0));
        in_range("max_qp_rd_atomic", depth(change.max_qp_rd_atomic), 0, max)?;
        in_range(
            "max_dest_rd_atomic",
            depth(change.max_dest_rd_atomic),
            0,
            max,
        )?;
        if let Some(path_mtu) = change.path_mtu {
            in_range(
                "path MTU",
                path_mtu.bytes(),
                256,
                self.config.port_mtu.bytes(),
            )?;
        }
        Ok(())
    }

    /// Resolves a path: own and peer's address.
    ///
    /// # Errors
    /// `InvalidArgument` for a GID index without an entry, or a peer's GID of
    /// the other address family.
    pub fn route(
        &self,
        sgid_index: u32,
        dgid: Gid,
        traffic_class: u8,
        hop_limit: u8,
    ) -> Result<Route> {
        let gids = &self.config.gids;
        let sgid = gids
            .get(sgid_index as usize)
            .ok_or_else(|| VerbsError::InvalidArgument {
                what: "GID index",
                seen: sgid_index.to_string(),
                expected: format!("0 to {}", gids.len().saturating_sub(1)),
            })?;
        if sgid.is_v4_mapped() != dgid.is_v4_mapped() || dgid == Gid::ZERO {
            return Err(VerbsError::InvalidArgument {
                what: "destination GID",
                seen: dgid.to_string(),
                expected: format!("one of the address family of {sgid}"),
            });
        }
        let hop_limit = if hop_limit == 0 { 64 } else { hop_limit };
        Ok(Route {
            src: sgid.to_ip(),
            dst: dgid.to_ip(),
            traffic_class,
            hop_limit,
        })
    }

    /// All attributes of a queue pair.
    ///
    /// # Errors
    /// `ForeignObject` when there is none of this number.
    pub fn query_qp(&self, qpn: u32) -> Result<QpAttributes> {
        Ok(self.qp(qpn)?.query())
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

    /// Takes one packet through the checks (IBTA 9.6) to its queue pair.
    /// Whatever fails is dropped in silence and counted; nothing changes
    /// before the ICRC has passed.
    pub fn receive(&mut self, now: Time, rx: &RxPacket<'_>) {
        let counters = &mut self.shared.counters;
        let Ok(packet) = Packet::parse(rx.bytes) else {
            counters.rx_malformed += 1;
            return;
        };
        if packet.service() == Service::Cnp {
            counters.rx_cnps += 1;
            return;
        }
        let qpn = packet.dest_qpn();
        let Some(qp) = find(&mut self.qps, qpn)
            .ok()
            .filter(|qp| service_fits(qp.identity.qp_type, packet.service()))
        else {
            counters.rx_unknown_qp += 1;
            return;
        };
        if !qp.accepts(rx, &packet, counters) {
            return;
        }
        if !pkey_matches(packet.pkey()) {
            counters.rx_bad_pkey += 1;
            return;
        }
        if !icrc_is_right(rx) {
            counters.rx_icrc_errors += 1;
            return;
        }
        counters.rx_packets += 1;
        qp.on_packet(rx, &packet, now, &mut self.shared);
        self.schedule(qpn);
        self.fail_overrun_users();
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

/// A [`PacketSink`] that feeds a NIC.
#[derive(Debug)]
pub struct Receiver<'a> {
    /// The NIC.
    pub nic: &'a mut Nic,
    /// The time of arrival.
    pub now: Time,
}

impl PacketSink for Receiver<'_> {
    fn packet(&mut self, packet: &RxPacket<'_>) {
        self.nic.receive(self.now, packet);
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

fn service_fits(qp_type: QpType, service: Service) -> bool {
    matches!(
        (qp_type, service),
        (QpType::Rc, Service::Rc) | (QpType::Uc, Service::Uc) | (QpType::Ud, Service::Ud)
    )
}

/// IBTA 10.9.3: the low 15 bits agree and aren't 0, and not both are limited
/// members; the own P_Key is always a full one.
fn pkey_matches(pkey: u16) -> bool {
    pkey & 0x7fff == DEFAULT_PKEY & 0x7fff
}

/// The full check when the IP header was seen; otherwise with the likely
/// identification, and last with any that fits.
fn icrc_is_right(rx: &RxPacket<'_>) -> bool {
    let (ipv4_id, known) = match rx.ip_id {
        IpId::Known(id) => (id, true),
        IpId::Likely(id) => (id, false),
    };
    let envelope = Envelope {
        src: rx.src,
        dst: rx.dst,
        src_port: rx.src_port,
        ipv4_id,
        dont_fragment: true,
    };
    match known {
        true => icrc::verify(&envelope, rx.bytes),
        false => icrc::solve_ipv4_id(&envelope, rx.bytes).is_some(),
    }
}

fn within(what: &'static str, count: usize, limit: u32) -> Result<()> {
    if count < limit as usize {
        return Ok(());
    }
    Err(VerbsError::Exhausted {
        what,
        limit: u64::from(limit),
    })
}

fn in_range(what: &'static str, value: u32, min: u32, max: u32) -> Result<()> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let (seen, expected) = (value.to_string(), format!("{min} to {max}"));
    Err(VerbsError::InvalidArgument {
        what,
        seen,
        expected,
    })
}
