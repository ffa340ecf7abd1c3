//! Cycles: for `-C`, the only output that shows them, and for the clock where
//! the system's is dear.

use std::time::{Duration, Instant};

/// Cycles of the processor's time stamp counter per nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CycleRate {
    per_nanosecond: f64,
}

impl CycleRate {
    /// A known rate.
    pub fn from_ghz(per_nanosecond: f64) -> Self {
        Self { per_nanosecond }
    }

    /// Measures the rate against the monotonic clock for the given time; 50 ms
    /// give five digits. Where there is no counter we read, a cycle is a nanosecond.
    pub fn measure(time: Duration) -> Self {
        let start = (counter(), Instant::now());
        std::thread::sleep(time);
        let end = (counter(), Instant::now());
        let rate = match (start.0, end.0) {
            (Some(first), Some(last)) => {
                let nanoseconds = (end.1 - start.1).as_nanos().max(1);
                last.wrapping_sub(first) as f64 / nanoseconds as f64
            }
            _ => 1.0,
        };
        // A counter that stands still (some virtual machines) is as good as none.
        Self::from_ghz(if rate > 0.0 { rate } else { 1.0 })
    }

    /// The cycles in a span of nanoseconds, rounded to whole ones.
    pub fn cycles(self, nanoseconds: u64) -> u64 {
        (nanoseconds as f64 * self.per_nanosecond).round() as u64
    }

    /// The nanoseconds that a number of cycles takes.
    #[inline]
    pub fn nanoseconds(self, cycles: u64) -> u64 {
        (cycles as f64 / self.per_nanosecond) as u64
    }
}

/// The time stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn counter() -> Option<u64> {
    // SAFETY: RDTSC reads a register and touches no memory. Every x86-64
    // processor has it; a kernel that forbids it to processes (prctl
    // PR_SET_TSC) is not one that runs us.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// No counter is read on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn counter() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_with_the_rate() {
        assert_eq!(CycleRate::from_ghz(2.1).cycles(1000), 2100);
        assert_eq!(CycleRate::from_ghz(0.5).cycles(3), 2);
        assert_eq!(CycleRate::from_ghz(2.5).nanoseconds(1000), 400);
        assert_eq!(CycleRate::from_ghz(1.0).cycles(7), 7);
        // 57 hours have more than 2^32 cycles by far.
        let hours = 205_200 * 1_000_000_000;
        assert_eq!(CycleRate::from_ghz(5.0).cycles(hours), 5 * hours);
    }

    #[test]
    fn measures_a_plausible_rate() {
        let rate = CycleRate::measure(Duration::from_millis(20));
        assert!((0.01..20.0).contains(&rate.per_nanosecond), "{rate:?}");
    }
}
