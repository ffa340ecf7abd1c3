//! The software rate limiter: bursts of messages at a fixed distance.

use crate::options::{RateLimit, RateUnits};
use crate::stats::Clock;

/// Says when the next message may go. One for all queue pairs of a test.
#[derive(Debug)]
pub(crate) struct Pacer {
    clock: Clock,
    burst: i64,
    /// Messages left of this burst; below 0 when a list went beyond it.
    left: i64,
    /// Nanoseconds between two messages, on average.
    per_message: f64,
    /// When the next burst may begin.
    next: f64,
}

/// What the limiter says to some messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// They may go.
    Go,
    /// They may go, and begin a burst.
    Burst,
    /// It is too early.
    Wait,
}

impl Pacer {
    /// For messages of `size` bytes.
    pub(crate) fn new(limit: &RateLimit, size: usize) -> Self {
        let size = size as f64;
        let messages_per_second = match limit.units {
            RateUnits::MebibytesPerSecond => limit.rate / size * f64::from(1 << 20),
            RateUnits::GigabitsPerSecond => limit.rate / (8.0 * size) * 1e9,
            RateUnits::PacketsPerSecond => limit.rate,
        };
        Self {
            clock: Clock::start(),
            burst: limit.burst_size.max(1).into(),
            left: 0,
            per_message: 1e9 / messages_per_second,
            next: 0.0,
        }
    }

    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.clock = Clock::start();
        (self.left, self.next) = (0, 0.0);
    }

    /// Whether `count` messages may go now; if so, they have gone.
    #[inline]
    pub(super) fn admit(&mut self, count: u32) -> Admission {
        let mut admission = Admission::Go;
        while self.left <= 0 {
            if (self.clock.now() as f64) < self.next {
                return Admission::Wait;
            }
            // From deadline to deadline, so that the rate doesn't drift.
            self.next += self.burst as f64 * self.per_message;
            self.left += self.burst;
            admission = Admission::Burst;
        }
        self.left -= i64::from(count);
        admission
    }

    /// Whether so many messages have not had the time yet that the limit
    /// gives them: the last burst has a share, too.
    #[inline]
    pub(super) fn is_early(&self, messages: u64) -> bool {
        (self.clock.now() as f64) < messages as f64 * self.per_message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RateLimiter;
    use std::time::{Duration, Instant};

    fn limit(rate: f64, units: RateUnits, burst_size: u32) -> RateLimit {
        RateLimit {
            limiter: RateLimiter::Software,
            rate,
            units,
            burst_size,
        }
    }

    #[test]
    fn units_agree() {
        let gap = |rate, units, size| Pacer::new(&limit(rate, units, 10), size).per_message;
        // 1000 messages of 125 bytes a second.
        assert_eq!(gap(1000.0, RateUnits::PacketsPerSecond, 125), 1e6);
        assert_eq!(gap(0.001, RateUnits::GigabitsPerSecond, 125), 1e6);
        assert_eq!(gap(1.0, RateUnits::MebibytesPerSecond, 1 << 20), 1e9);
        // Less than one message a second.
        assert_eq!(gap(0.25, RateUnits::PacketsPerSecond, 125), 4e9);
    }

    /// How long it takes until `total` messages have gone, in lists.
    fn time_of(pacer: &mut Pacer, total: u32, list: u32) -> Duration {
        pacer.begin();
        let start = Instant::now();
        let mut gone = 0;
        while gone < total {
            if pacer.admit(list) != Admission::Wait {
                gone += list;
            }
        }
        start.elapsed()
    }

    #[test]
    fn bursts_keep_their_distance() {
        let mut pacer = Pacer::new(&limit(1000.0, RateUnits::PacketsPerSecond, 5), 1);
        let took = time_of(&mut pacer, 50, 1);
        // The tenth burst begins at 45 ms.
        assert!(took >= Duration::from_millis(44));
        assert!(took < Duration::from_secs(5));
        // Its messages have time until 50 ms.
        assert!(pacer.is_early(500));
        let start = Instant::now();
        while pacer.is_early(50) {}
        assert!(took + start.elapsed() >= Duration::from_millis(49));
    }

    #[test]
    fn a_list_beyond_its_burst_is_paid_for() {
        for (burst, list) in [(1, 10), (4, 10), (7, 10)] {
            let mut pacer = Pacer::new(&limit(1000.0, RateUnits::PacketsPerSecond, burst), 1);
            // The fifth list begins when the 40 messages before it are paid.
            let took = time_of(&mut pacer, 50, list);
            let least = Duration::from_millis(40 - u64::from(burst));
            assert!(took >= least, "{burst}: {took:?}");
        }
    }

    #[test]
    fn a_run_does_not_make_up_for_the_time_before_it() {
        let mut pacer = Pacer::new(&limit(1000.0, RateUnits::PacketsPerSecond, 1), 1);
        std::thread::sleep(Duration::from_millis(30));
        assert!(time_of(&mut pacer, 11, 1) >= Duration::from_millis(9));
    }
}
