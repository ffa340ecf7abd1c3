//! What a bandwidth run is told to do, and what it notes down on the way.

use super::error::RunError;
use super::phases::Phases;
use crate::interrupt::Interrupt;
use crate::stats::{BandwidthSamples, Clock};

/// The course of a run: how far it goes, and when it is over.
pub(crate) trait Course {
    /// Messages per queue pair; `u64::MAX` when something else ends the run.
    fn limit(&self) -> u64;

    /// The run begins now.
    fn start(&mut self);

    /// Message `index` (0-based, over all queue pairs) is about to be posted.
    fn posting(&mut self, index: u64);

    /// `count` more messages have completed, `total` in all.
    fn completed(&mut self, count: u64, total: u64);

    /// A message has come in.
    fn received(&mut self);

    /// Whether the run is over, with `total` messages through.
    fn is_over(&mut self, total: u64) -> Result<bool, RunError>;

    /// The run is over.
    fn finish(&mut self);
}

/// A number of messages (`-n`).
pub(crate) struct Counted<'a> {
    clock: Clock,
    samples: &'a mut BandwidthSamples,
    /// Note the time of every post and completion.
    peak: bool,
    limit: u64,
    total: u64,
}

impl<'a> Counted<'a> {
    /// `limit` messages on each of `qps` queue pairs.
    pub(crate) fn new(samples: &'a mut BandwidthSamples, peak: bool, limit: u64, qps: u32) -> Self {
        Self {
            clock: Clock::start(),
            samples,
            peak,
            limit,
            total: limit.saturating_mul(qps.into()),
        }
    }
}

impl Course for Counted<'_> {
    fn limit(&self) -> u64 {
        self.limit
    }

    fn start(&mut self) {
        self.samples.mark_start(self.clock.now());
    }

    #[inline]
    fn posting(&mut self, index: u64) {
        if self.peak {
            self.samples.mark_posted(index as usize, self.clock.now());
        }
    }

    #[inline]
    fn completed(&mut self, _: u64, total: u64) {
        if self.peak {
            self.samples
                .mark_completed(total as usize, self.clock.now());
        }
    }

    #[inline]
    fn received(&mut self) {}

    #[inline]
    fn is_over(&mut self, total: u64) -> Result<bool, RunError> {
        Ok(total >= self.total)
    }

    fn finish(&mut self) {
        if !self.peak {
            self.samples.mark_end(self.clock.now());
        }
    }
}

/// A number of seconds (`-D`).
pub(crate) struct Timed<'a> {
    phases: &'a mut Phases,
    /// Messages that completed or came in in the sampled time.
    pub(crate) counted: u64,
}

impl<'a> Timed<'a> {
    pub(crate) fn new(phases: &'a mut Phases) -> Self {
        Self { phases, counted: 0 }
    }
}

impl Course for Timed<'_> {
    fn limit(&self) -> u64 {
        u64::MAX
    }

    fn start(&mut self) {
        self.phases.begin();
    }

    #[inline]
    fn posting(&mut self, _: u64) {}

    #[inline]
    fn completed(&mut self, count: u64, _: u64) {
        if self.phases.is_sampling() {
            self.counted += count;
        }
    }

    #[inline]
    fn received(&mut self) {
        if self.phases.is_sampling() {
            self.counted += 1;
        }
    }

    #[inline]
    fn is_over(&mut self, _: u64) -> Result<bool, RunError> {
        Ok(self.phases.look())
    }

    fn finish(&mut self) {}
}

/// Until the user interrupts it (`--run_infinitely`), with a row now and then.
pub(crate) struct Endless<'a, R> {
    clock: Clock,
    interrupt: &'a Interrupt,
    /// Nanoseconds from row to row.
    interval: u64,
    row_start: u64,
    total: u64,
    at_row_start: u64,
    /// Shows a row: messages and nanoseconds since the last one.
    row: R,
}

impl<'a, R: FnMut(u64, u64) -> Result<(), RunError>> Endless<'a, R> {
    /// A row every `interval` seconds.
    pub(crate) fn new(interrupt: &'a Interrupt, interval: u32, row: R) -> Self {
        Self {
            clock: Clock::start(),
            interrupt,
            interval: u64::from(interval) * 1_000_000_000,
            row_start: 0,
            total: 0,
            at_row_start: 0,
            row,
        }
    }
}

impl<R: FnMut(u64, u64) -> Result<(), RunError>> Course for Endless<'_, R> {
    fn limit(&self) -> u64 {
        u64::MAX
    }

    fn start(&mut self) {
        self.row_start = self.clock.now();
    }

    #[inline]
    fn posting(&mut self, _: u64) {}

    #[inline]
    fn completed(&mut self, count: u64, _: u64) {
        self.total += count;
    }

    #[inline]
    fn received(&mut self) {
        self.total += 1;
    }

    #[inline]
    fn is_over(&mut self, _: u64) -> Result<bool, RunError> {
        let passed = self.clock.now() - self.row_start;
        if passed >= self.interval {
            (self.row)(self.total - self.at_row_start, passed)?;
            self.at_row_start = self.total;
            self.row_start = self.clock.now();
        }
        Ok(self.interrupt.requested())
    }

    fn finish(&mut self) {}
}
