//! The ping-pong of the latency tests of RDMA WRITE and SEND: both ends send
//! in turn, and wait for what the other sends.

use std::time::{Duration, Instant};

use verbs_sys::{
    Completion, CompletionQueue, Gather, Notify, QueuePair, RemoteAddress, SendFlags, SendOp,
    SendRequest, Sge,
};

use super::arrival::{Arrival, Byte};
use super::bandwidth::check;
use super::error::RunError;
use super::operation::Operation;
use super::phases::Phases;
use super::requests::Route;
use super::sleeper::Sleeper;
use super::watchdog::Watchdog;
use crate::setup::Memory;
use crate::stats::{Clock, Distribution, LatencySamples};

/// How many messages go to and fro, and what is noted down.
pub(crate) trait Rounds {
    /// Messages each way; `u64::MAX` when the clock ends the run.
    fn limit(&self) -> u64;

    /// Message `index` (0-based) is about to be posted.
    fn posting(&mut self, index: u64);

    /// A message has completed.
    fn completed(&mut self);

    /// Whether the clock ends the run now.
    fn is_over(&mut self) -> bool;
}

/// What a latency test plays.
pub(crate) trait Game {
    /// Plays until the rounds are over.
    fn run<R: Rounds>(&mut self, rounds: &mut R, watchdog: &mut Watchdog) -> Result<(), RunError>;
}

/// A number of messages (`-n`).
pub(crate) struct CountedRounds<'a> {
    clock: Clock,
    samples: &'a mut LatencySamples,
    limit: u64,
}

impl<'a> CountedRounds<'a> {
    pub(crate) fn new(samples: &'a mut LatencySamples, limit: u64) -> Self {
        Self {
            clock: Clock::start(),
            samples,
            limit,
        }
    }
}

impl Rounds for CountedRounds<'_> {
    fn limit(&self) -> u64 {
        self.limit
    }

    #[inline]
    fn posting(&mut self, index: u64) {
        self.samples.mark_posted(index as usize, self.clock.now());
    }

    #[inline]
    fn completed(&mut self) {}

    #[inline]
    fn is_over(&mut self) -> bool {
        false
    }
}

/// A number of seconds (`-D`).
pub(crate) struct TimedRounds<'a> {
    phases: &'a mut Phases,
    /// Messages that completed in the sampled time.
    pub(crate) counted: u64,
    /// Takes the spans from post to post, if they are wanted.
    distribution: Option<&'a mut Distribution>,
    /// When the last message was posted, in the sampled time.
    posted: Option<u64>,
}

impl<'a> TimedRounds<'a> {
    pub(crate) fn new(phases: &'a mut Phases, distribution: Option<&'a mut Distribution>) -> Self {
        Self {
            phases,
            counted: 0,
            distribution,
            posted: None,
        }
    }
}

impl Rounds for TimedRounds<'_> {
    fn limit(&self) -> u64 {
        u64::MAX
    }

    #[inline]
    fn posting(&mut self, _: u64) {
        let Some(distribution) = &mut self.distribution else {
            return;
        };
        let now = self.phases.now();
        if let Some(posted) = self.posted {
            distribution.record(now - posted);
        }
        self.posted = self.phases.is_sampling().then_some(now);
    }

    #[inline]
    fn completed(&mut self) {
        if self.phases.is_sampling() {
            self.counted += 1;
        }
    }

    #[inline]
    fn is_over(&mut self) -> bool {
        self.phases.look()
    }
}

/// One end of the ping-pong, for one message size.
pub(crate) struct PingPong<'a, A> {
    qp: &'a mut dyn QueuePair,
    cq: &'a mut dyn CompletionQueue,
    sleeper: Sleeper,
    /// Last byte of the message we send, where the peer waits for it.
    sent: Option<Byte<'a>>,
    arrival: A,
    sge: Sge,
    op: SendOp,
    route: Route<'a>,
    /// The message itself, where it goes into the request.
    inline: Option<Vec<u8>>,
    /// One message in so many is signalled, and waited for.
    cq_mod: u64,
    /// Busy wait before each post.
    gap: Duration,
    /// Messages of this size in earlier runs.
    earlier: u64,
    /// This end posts before it receives anything.
    begins: bool,
}

/// How the two ends of a ping-pong play.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    /// What they post.
    pub(crate) operation: Operation,
    /// Bytes of a message.
    pub(crate) size: usize,
    /// Messages up to so many bytes go into the request.
    pub(crate) inline: u32,
    /// Where the peer wants them.
    pub(crate) remote: RemoteAddress,
    /// The way there.
    pub(crate) route: Route<'a>,
    /// One message in so many is signalled.
    pub(crate) cq_mod: u32,
    /// Busy wait before each post.
    pub(crate) gap: Duration,
    /// Messages of this size in earlier runs: they have left their number.
    pub(crate) earlier: u64,
    /// This end posts first.
    pub(crate) begins: bool,
}

impl<'a, A: Arrival> PingPong<'a, A> {
    /// Over the first queue pair of a test.
    pub(crate) fn new(
        qp: &'a mut dyn QueuePair,
        cq: &'a mut dyn CompletionQueue,
        sleeper: Sleeper,
        memory: &'a Memory,
        arrival: A,
        table: &Table<'a>,
    ) -> Self {
        let from = memory.layout.sends_from(0);
        let inline = table.size <= table.inline as usize;
        Self {
            qp,
            cq,
            sleeper,
            sent: table
                .operation
                .tells_nobody()
                .then(|| Byte::last_of(memory, from, table.size)),
            arrival,
            sge: Sge {
                addr: memory.addr(from),
                // Messages have at most 2^31 - 1 bytes.
                length: table.size as u32,
                lkey: memory.lkey(from),
            },
            op: table.operation.at(table.remote),
            route: table.route,
            inline: inline.then(|| {
                let mut message = vec![0; table.size];
                // Inside the area by the layout.
                let _ = memory.buffer(from).read(from.offset, &mut message);
                message
            }),
            cq_mod: u64::from(table.cq_mod),
            gap: table.gap,
            earlier: table.earlier,
            begins: table.begins,
        }
    }
}

impl<A: Arrival> Game for PingPong<'_, A> {
    fn run<R: Rounds>(&mut self, rounds: &mut R, watchdog: &mut Watchdog) -> Result<(), RunError> {
        let limit = rounds.limit();
        let (mut sent, mut received) = (0, 0);
        watchdog.start();
        while sent < limit || received < limit {
            if received < limit && (sent > 0 || !self.begins) {
                received += 1;
                if !self.receive(received, rounds, watchdog)? {
                    return Ok(());
                }
            }
            if sent < limit {
                wait_gap(self.gap);
                rounds.posting(sent);
                let signalled = (sent + 1).is_multiple_of(self.cq_mod) || sent + 1 == limit;
                self.send(sent, signalled)?;
                sent += 1;
                if rounds.is_over() {
                    return Ok(());
                }
                if signalled {
                    self.complete(sent, watchdog)?;
                }
                rounds.completed();
            }
        }
        Ok(())
    }
}

impl<A: Arrival> PingPong<'_, A> {
    /// Spins until message `number` (1-based) is there; `false` when the
    /// clock ends the run before.
    #[inline]
    fn receive<R: Rounds>(
        &mut self,
        number: u64,
        rounds: &mut R,
        watchdog: &mut Watchdog,
    ) -> Result<bool, RunError> {
        let limit = rounds.limit();
        while !self.arrival.has_come(self.qp, number, limit)? {
            if rounds.is_over() {
                return Ok(false);
            }
            watchdog.turn(number)?;
            let arrival = &mut self.arrival;
            self.sleeper.idle(watchdog, || arrival.arm())?;
        }
        Ok(true)
    }

    /// Posts the message after `sent` earlier ones.
    #[inline]
    fn send(&mut self, sent: u64, signalled: bool) -> Result<(), RunError> {
        if let Some(byte) = &self.sent {
            let number = self.earlier.wrapping_add(sent + 1) as u8;
            byte.store(number);
            if let Some(last) = self.inline.as_mut().and_then(|message| message.last_mut()) {
                *last = number;
            }
        }
        let sges = std::slice::from_ref(&self.sge);
        let mut request = SendRequest::signaled(0, self.op, sges);
        if !signalled {
            request.flags = SendFlags::empty();
        }
        (request.ud, request.xrc_srqn) = (self.route.ud, self.route.xrc_srqn);
        if let Some(message) = &self.inline {
            request.data = Gather::Inline(message);
        }
        self.qp
            .post_send(&[request])
            .map_err(|source| RunError::Post {
                qp: None,
                posted: sent,
                tx_depth: 1,
                source,
            })
    }

    /// Waits until the last message has completed.
    #[inline]
    fn complete(&mut self, sent: u64, watchdog: &mut Watchdog) -> Result<(), RunError> {
        let mut completion = [Completion::default()];
        while self.cq.poll(&mut completion) == 0 {
            watchdog.turn(sent)?;
            let cq = &mut *self.cq;
            self.sleeper.idle(watchdog, || cq.arm(Notify::Any))?;
        }
        check(&completion[0], sent, sent - 1)
    }
}

/// Busy wait before a post.
#[inline]
pub(super) fn wait_gap(gap: Duration) {
    if gap.is_zero() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < gap {
        std::hint::spin_loop();
    }
}
