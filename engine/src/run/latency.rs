//! The ping-pong of the latency tests of RDMA WRITE: both ends write to the
//! other's memory in turn, and wait for what the other writes.

use std::time::{Duration, Instant};

use verbs_sys::{
    Completion, CompletionQueue, Gather, QueuePair, RemoteAddress, SendOp, SendRequest, Sge,
};

use super::arrival::{Arrival, Byte};
use super::bandwidth::check;
use super::error::RunError;
use super::phases::Phases;
use super::requests::write;
use super::watchdog::Watchdog;
use crate::setup::Memory;
use crate::stats::{Clock, LatencySamples};

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
}

impl<'a> TimedRounds<'a> {
    pub(crate) fn new(phases: &'a mut Phases) -> Self {
        Self { phases, counted: 0 }
    }
}

impl Rounds for TimedRounds<'_> {
    fn limit(&self) -> u64 {
        u64::MAX
    }

    #[inline]
    fn posting(&mut self, _: u64) {}

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
    /// Last byte of the message we send.
    sent: Byte<'a>,
    arrival: A,
    sge: Sge,
    op: SendOp,
    /// The message itself, where it goes into the request.
    inline: Option<Vec<u8>>,
    /// Busy wait before each post.
    gap: Duration,
    /// This end posts before it receives anything.
    begins: bool,
}

/// What the two ends of a ping-pong have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// Bytes of a message.
    pub(crate) size: usize,
    /// Messages up to so many bytes go into the request.
    pub(crate) inline: u32,
    /// Where the peer wants them.
    pub(crate) remote: RemoteAddress,
    /// They carry immediate data.
    pub(crate) with_imm: bool,
    /// Busy wait before each post.
    pub(crate) gap: Duration,
    /// This end posts first.
    pub(crate) begins: bool,
}

impl<'a, A: Arrival> PingPong<'a, A> {
    /// Over the first queue pair of a test.
    pub(crate) fn new(
        qp: &'a mut dyn QueuePair,
        cq: &'a mut dyn CompletionQueue,
        memory: &'a Memory,
        arrival: A,
        table: &Table,
    ) -> Self {
        let from = memory.layout.sends_from(0);
        let inline = table.size <= table.inline as usize;
        Self {
            qp,
            cq,
            sent: Byte::last_of(memory, from, table.size),
            arrival,
            sge: Sge {
                addr: memory.addr(from),
                // Messages have at most 2^31 - 1 bytes.
                length: table.size as u32,
                lkey: memory.lkey(from),
            },
            op: write(table.remote, table.with_imm),
            inline: inline.then(|| vec![0; table.size]),
            gap: table.gap,
            begins: table.begins,
        }
    }

    /// Plays until the rounds are over.
    pub(crate) fn run<R: Rounds>(
        &mut self,
        rounds: &mut R,
        watchdog: &mut Watchdog,
    ) -> Result<(), RunError> {
        let limit = rounds.limit();
        let (mut sent, mut received, mut completed) = (0, 0, 0);
        watchdog.start();
        while sent < limit || received < limit || completed < limit {
            if received < limit && (sent > 0 || !self.begins) {
                received += 1;
                if !self.receive(received, rounds, watchdog)? {
                    return Ok(());
                }
            }
            if sent < limit {
                self.wait_gap();
                rounds.posting(sent);
                self.send(sent)?;
                sent += 1;
            }
            if rounds.is_over() {
                return Ok(());
            }
            if completed < limit {
                self.complete(sent, completed, watchdog)?;
                completed += 1;
                rounds.completed();
            }
        }
        Ok(())
    }

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
        }
        Ok(true)
    }

    /// Posts the message after `sent` earlier ones.
    #[inline]
    fn send(&mut self, sent: u64) -> Result<(), RunError> {
        let number = (sent + 1) as u8;
        self.sent.store(number);
        if let Some(last) = self.inline.as_mut().and_then(|message| message.last_mut()) {
            *last = number;
        }
        let sges = std::slice::from_ref(&self.sge);
        let mut request = SendRequest::signaled(0, self.op, sges);
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

    /// Waits until the message has completed.
    #[inline]
    fn complete(
        &mut self,
        sent: u64,
        completed: u64,
        watchdog: &mut Watchdog,
    ) -> Result<(), RunError> {
        let mut completion = [Completion::default()];
        while self.cq.poll(&mut completion) == 0 {
            watchdog.turn(completed)?;
        }
        check(&completion[0], sent, completed)
    }

    #[inline]
    fn wait_gap(&self) {
        if self.gap.is_zero() {
            return;
        }
        let start = Instant::now();
        while start.elapsed() < self.gap {
            std::hint::spin_loop();
        }
    }
}
