//! The software rate limiter: bursts of messages at a fixed distance.

use crate::options::{RateLimit, RateUnits};
use crate::stats::Clock;

/// Says when the next message may go. One for all queue pairs of a test.
#[derive(Debug)]
pub(crate) struct Pacer {
    clock: Clock,
    burst: u32,
    left: u32,
    /// Nanoseconds between the beginnings of two bursts.
    gap: f64,
    next: f64,
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
        let burst = limit.burst_size.max(1);
        Self {
            clock: Clock::start(),
            burst,
            left: burst,
            gap: f64::from(burst) * 1e9 / messages_per_second,
            next: 0.0,
        }
    }

    /// Whether `count` messages may go now; if so, they have gone.
    #[inline]
    pub(crate) fn admits(&mut self, count: u32) -> bool {
        if self.left == 0 {
            let now = self.clock.now() as f64;
            if now < self.next {
                return false;
            }
            self.left = self.burst;
        }
        if self.left == self.burst {
            // From deadline to deadline, so that the rate doesn't drift.
            self.next += self.gap;
        }
        self.left = self.left.saturating_sub(count);
        true
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
        let gap = |rate, units, size| Pacer::new(&limit(rate, units, 10), size).gap;
        // 1000 messages of 125 bytes a second, ten at a time: every 10 ms.
        assert_eq!(gap(1000.0, RateUnits::PacketsPerSecond, 125), 1e7);
        assert_eq!(gap(0.001, RateUnits::GigabitsPerSecond, 125), 1e7);
        assert_eq!(gap(1.0, RateUnits::MebibytesPerSecond, 1 << 20), 1e10);
    }

    #[test]
    fn bursts_keep_their_distance() {
        let mut pacer = Pacer::new(&limit(1000.0, RateUnits::PacketsPerSecond, 5), 1);
        let start = Instant::now();
        let mut gone = 0;
        while gone < 50 {
            gone += u32::from(pacer.admits(1));
        }
        // The tenth burst begins at 45 ms.
        assert!(start.elapsed() >= Duration::from_millis(44));
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
