//! The clock of all measurements.

use std::time::Instant;

/// Nanoseconds of the system's monotonic clock since the clock was made. Stock
/// counts cycles and measures their rate before every report; the system's
/// clock needs neither, and costs about as much to read.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that begins at 0 now.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// Nanoseconds since the start (584 years fit).
    #[inline]
    pub fn now(&self) -> u64 {
        let elapsed = self.origin.elapsed();
        elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn counts_nanoseconds() {
        let clock = Clock::start();
        let first = clock.now();
        std::thread::sleep(Duration::from_millis(20));
        let passed = clock.now() - first;
        assert!((20_000_000..10_000_000_000).contains(&passed), "{passed}");
    }
}
