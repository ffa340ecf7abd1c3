//! Fills the rings, chunk by chunk.

use std::sync::atomic::Ordering;

use verbs_sys::memory::Buffer;
use verbs_sys::{
    Completion, CompletionQueue, Gather, Notify, QueuePair, RemoteAddress, SendFlags, SendOp,
    SendRequest, Sge,
};

use crate::options::{Params, Polling, RateLimiter};
use crate::run::bandwidth::{DYNAMIC_BATCH, check};
use crate::run::course::Course;
use crate::run::error::RunError;
use crate::run::pacer::{Admission, Pacer};
use crate::run::sleeper::Sleeper;
use crate::run::watchdog::Watchdog;
use crate::setup::{Queues, RingLayout};

/// Bytes of a marker, or of a counter.
const WORD: u32 = 8;

/// What a request is for, in the upper half of its number; the lower one is
/// the queue pair.
const KIND: u32 = 32;
const MESSAGE: u64 = 0;
const MARKER: u64 = 1;
const COUNTER: u64 = 2;

/// The peer's part of one queue pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) rkey: u32,
    /// The area it publishes: the patterns (RDMA READ), or the ring.
    pub(crate) area: u64,
    /// Its first marker of all.
    pub(crate) markers: u64,
}

/// How the sender learns how far the receiver has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credit {
    /// The receiver is in this process: RDMA READ.
    Here,
    /// The receiver is ours, and its counters can be read.
    AtPeer,
    /// The receiver doesn't tell.
    Unknown,
}

/// Keeps the send queues filled with messages for the rings.
pub(crate) struct RingSender<'a> {
    qps: &'a mut [Box<dyn QueuePair>],
    cq: &'a mut dyn CompletionQueue,
    completions: Vec<Completion>,
    sleeper: Sleeper,
    flows: Vec<Flow>,
    ring: Ring<'a>,
    tx_depth: u32,
    cq_mod: u64,
    pacer: Option<Pacer>,
    posted: u64,
    completed: u64,
    /// Requests for markers and counters that are on their way.
    others: u64,
}

/// The memory of this end.
struct Ring<'a> {
    buffer: &'a Buffer,
    lkey: u32,
    layout: RingLayout,
    credit: Credit,
}

/// What is sent on one queue pair.
struct Flow {
    qp: usize,
    target: Target,
    posted: u64,
    completed: u64,
    until_signal: u64,
    /// The peer's counter is being read.
    asks: bool,
}

impl<'a> RingSender<'a> {
    /// Over all queue pairs; `targets` in their order. All of `buffer` has
    /// the local key `lkey`.
    pub(crate) fn new(
        queues: &'a mut Queues,
        (buffer, lkey): (&'a Buffer, u32),
        layout: RingLayout,
        targets: &[Target],
        credit: Credit,
        params: &Params,
    ) -> Self {
        let batch = match params.polling {
            Polling::Dynamic => DYNAMIC_BATCH,
            Polling::Fixed(batch) => batch,
        };
        let cq_mod = u64::from(params.cq_mod);
        let flow = |(qp, target): (usize, &Target)| Flow {
            qp,
            target: *target,
            posted: 0,
            completed: 0,
            until_signal: cq_mod,
            asks: false,
        };
        Self {
            sleeper: queues.sleeper(),
            qps: &mut queues.qps,
            cq: &mut *queues.send_cq,
            completions: vec![Completion::default(); batch.into()],
            flows: targets.iter().enumerate().map(flow).collect(),
            ring: Ring {
                buffer,
                lkey,
                layout,
                credit,
            },
            tx_depth: params.tx_depth,
            cq_mod,
            pacer: params
                .rate_limit
                .filter(|limit| limit.limiter != RateLimiter::Hardware)
                .map(|limit| Pacer::new(&limit, layout.size)),
            posted: 0,
            completed: 0,
            others: 0,
        }
    }

    /// Sends as the course has it, and waits until everything has arrived.
    pub(crate) fn run<C: Course>(
        &mut self,
        course: &mut C,
        watchdog: &mut Watchdog,
    ) -> Result<(), RunError> {
        let limit = course.limit();
        watchdog.start();
        course.start();
        while !course.is_over(self.completed)? {
            let posted = self.post(course, limit)?;
            let polled = self.poll(course, limit)?;
            watchdog.turn(self.completed)?;
            if !posted && !polled {
                let cq = &mut *self.cq;
                self.sleeper.idle(watchdog, || cq.arm(Notify::Any))?;
            }
        }
        course.finish();
        while self.others > 0 {
            self.poll(course, limit)?;
            watchdog.turn(self.completed)?;
        }
        Ok(())
    }

    /// Fills the send queues. `false`: there was no room.
    fn post<C: Course>(&mut self, course: &mut C, limit: u64) -> Result<bool, RunError> {
        let before = self.posted;
        for (flow, qp) in self.flows.iter_mut().zip(&mut *self.qps) {
            let index = flow.qp;
            let failed = |posted, source| RunError::Post {
                qp: Some(index),
                posted,
                tx_depth: self.tx_depth,
                source,
            };
            while flow.posted < limit
                && flow.posted < u64::from(self.tx_depth) + flow.completed
                && self.ring.has_room(flow)
            {
                if let Some(pacer) = &mut self.pacer
                    && pacer.admit(1) == Admission::Wait
                {
                    return Ok(true);
                }
                course.posting(self.posted);
                let marked = flow
                    .post(&self.ring, &mut **qp, self.cq_mod, limit)
                    .map_err(|error| failed(flow.posted, error))?;
                self.others += u64::from(marked);
                self.posted += 1;
            }
            if !flow.asks && self.ring.is_short(flow) {
                flow.ask(&self.ring, &mut **qp)
                    .map_err(|error| failed(flow.posted, error))?;
                self.others += 1;
            }
        }
        Ok(self.posted != before)
    }

    /// Takes one batch of completions; `false` when there were none.
    fn poll<C: Course>(&mut self, course: &mut C, limit: u64) -> Result<bool, RunError> {
        let ready = self.cq.poll(&mut self.completions);
        for completion in &self.completions[..ready] {
            check(completion, self.posted, self.completed)?;
            let (kind, qp) = (completion.wr_id >> KIND, completion.wr_id as u32);
            let Some(flow) = self.flows.get_mut(qp as usize) else {
                continue;
            };
            match kind {
                MESSAGE => {
                    // The last group of a counted run may be shorter.
                    let count = self.cq_mod.min(limit - flow.completed);
                    flow.completed += count;
                    self.completed += count;
                    course.completed(count, self.completed);
                }
                kind => {
                    flow.asks &= kind != COUNTER;
                    self.others = self.others.saturating_sub(1);
                }
            }
        }
        Ok(ready > 0)
    }
}

impl Ring<'_> {
    fn sge(&self, offset: usize, length: u32) -> Sge {
        Sge {
            addr: self.buffer.addr() + offset as u64,
            length,
            lkey: self.lkey,
        }
    }

    /// Chunks of the receiver's ring that may still be filled; `None`: who knows.
    fn free_chunks(&self, flow: &Flow) -> Option<u64> {
        let counter = match self.credit {
            Credit::Here => self.layout.checked(flow.qp),
            Credit::AtPeer => self.layout.checked_by_peer(flow.qp),
            Credit::Unknown => return None,
        };
        let load = |word: &std::sync::atomic::AtomicU64| word.load(Ordering::Acquire);
        let checked = self.buffer.with_atomic_u64(counter, load).unwrap_or(0);
        let begun = flow.posted.div_ceil(self.layout.chunk as u64);
        Some((self.layout.chunks as u64 + checked).saturating_sub(begun))
    }

    /// Whether the next message goes where the receiver has looked already.
    fn has_room(&self, flow: &Flow) -> bool {
        !flow.posted.is_multiple_of(self.layout.chunk as u64)
            || self.free_chunks(flow).is_none_or(|free| free > 0)
    }

    /// Whether it is time to ask the peer how far it has looked.
    fn is_short(&self, flow: &Flow) -> bool {
        self.credit == Credit::AtPeer
            && self
                .free_chunks(flow)
                .is_some_and(|free| free < self.layout.chunks as u64 / 2)
    }
}

impl Flow {
    /// Posts the next message, and after the last one of a chunk its marker:
    /// then it returns `true`.
    fn post(
        &mut self,
        ring: &Ring<'_>,
        qp: &mut dyn QueuePair,
        cq_mod: u64,
        limit: u64,
    ) -> Result<bool, verbs_sys::PostError> {
        let layout = &ring.layout;
        let around = layout.ring_messages() as u64;
        // Less than the messages of a ring.
        let (index, round) = ((self.posted % around) as usize, self.posted / around);
        let (pattern, slot) = (layout.pattern(round), layout.message(self.qp, index));
        self.posted += 1;
        self.until_signal -= 1;
        let signalled = self.until_signal == 0 || self.posted == limit;
        if self.until_signal == 0 {
            self.until_signal = cq_mod;
        }
        let at = |offset: usize| RemoteAddress {
            addr: self.target.area.wrapping_add(offset as u64),
            rkey: self.target.rkey,
        };
        // Messages have at most 2^31 - 1 bytes.
        let length = layout.size as u32;
        let (op, data) = match layout.reads {
            true => {
                let remote = at(pattern);
                (SendOp::Read { remote }, ring.sge(slot, length))
            }
            false => {
                let remote = at(index * layout.size);
                (SendOp::Write { remote }, ring.sge(pattern, length))
            }
        };
        let message = self.request(MESSAGE, op, &data, signalled);
        if !(index + 1).is_multiple_of(layout.chunk) {
            qp.post_send(&[message])?;
            return Ok(false);
        }
        let chunk = index / layout.chunk;
        let marker = layout.marker(self.qp, chunk) - layout.marker(0, 0);
        let remote = RemoteAddress {
            addr: self.target.markers.wrapping_add(marker as u64),
            rkey: self.target.rkey,
        };
        let old_value = ring.sge(layout.old_value(self.qp, chunk), WORD);
        let op = SendOp::FetchAdd { remote, add: 1 };
        let marker = self.request(MARKER, op, &old_value, true);
        qp.post_send(&[message, marker])?;
        Ok(true)
    }

    /// Reads the peer's counter.
    fn ask(&mut self, ring: &Ring<'_>, qp: &mut dyn QueuePair) -> Result<(), verbs_sys::PostError> {
        let layout = &ring.layout;
        let counter = layout.checked(self.qp) - layout.marker(0, 0);
        let remote = RemoteAddress {
            addr: self.target.markers.wrapping_add(counter as u64),
            rkey: self.target.rkey,
        };
        let into = ring.sge(layout.checked_by_peer(self.qp), WORD);
        qp.post_send(&[self.request(COUNTER, SendOp::Read { remote }, &into, true)])?;
        self.asks = true;
        Ok(())
    }

    fn request<'s>(
        &self,
        kind: u64,
        op: SendOp,
        data: &'s Sge,
        signalled: bool,
    ) -> SendRequest<'s> {
        SendRequest {
            wr_id: kind << KIND | self.qp as u64,
            op,
            data: Gather::Sges(std::slice::from_ref(data)),
            flags: match signalled {
                true => SendFlags::SIGNALED,
                false => SendFlags::empty(),
            },
            ud: None,
            xrc_srqn: None,
        }
    }
}
