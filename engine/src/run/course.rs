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

    /// The limit of the rate lets a burst begin; `posted` messages went before.
    fn burst(&mut self, posted: u64);

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
    fn burst(&mut self, _: u64) {}

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
    /// The first and the last in the sampled time.
    bursts: Option<(Burst, Burst)>,
}

/// When a burst began (`--rate_limit`), in nanoseconds of the run.
#[derive(Debug, Clone, Copy)]
struct Burst {
    time: u64,
    /// Messages posted before it.
    posted: u64,
}

/// A span that holds whole bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WholeBursts {
    pub(crate) messages: u64,
    /// First nanosecond.
    pub(crate) start: u64,
    /// Nanosecond after the last.
    pub(crate) stop: u64,
}

impl<'a> Timed<'a> {
    pub(crate) fn new(phases: &'a mut Phases) -> Self {
        Self {
            phases,
            counted: 0,
            bursts: None,
        }
    }

    /// What of the sampled time holds whole bursts: one that is cut off says
    /// less about the rate than none. `None` without a limit of the rate, or
    /// when not even one burst fits.
    pub(crate) fn whole_bursts(&self) -> Option<WholeBursts> {
        let (first, last) = self.bursts?;
        (first.time < last.time).then_some(WholeBursts {
            messages: last.posted - first.posted,
            start: first.time,
            stop: last.time,
        })
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

    fn burst(&mut self, posted: u64) {
        if self.phases.is_sampling() {
            let burst = Burst {
                time: self.phases.now(),
                posted,
            };
            self.bursts = match self.bursts {
                Some((first, _)) => Some((first, burst)),
                None => Some((burst, burst)),
            };
        }
    }

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
    fn burst(&mut self, _: u64) {}

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
