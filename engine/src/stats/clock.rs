//! The clock of all measurements.

use std::ops::{Add, Sub};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::cycles::{CycleRate, counter};

/// How long the rate of the time stamp counter is measured, where it is needed:
/// long enough for four digits.
const CALIBRATION: Duration = Duration::from_millis(20);

/// Nanoseconds of the system's monotonic clock since the clock was made. Stock
/// counts cycles and measures their rate before every report; the system's
/// clock needs neither, and costs about as much to read.
///
/// That is, unless reading it takes a system call, as on machines without a
/// dependable time stamp counter. There we count cycles as stock does.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Moment,
}

impl Clock {
    /// A clock that begins at 0 now.
    pub fn start() -> Self {
        Self {
            origin: Moment::now(),
        }
    }

    /// Nanoseconds since the start (584 years fit).
    #[inline]
    pub fn now(&self) -> u64 {
        (Moment::now() - self.origin).as_nanos() as u64
    }
}

/// A point in time, to be compared with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    nanoseconds: u64,
}

impl Moment {
    /// This moment.
    #[inline]
    pub fn now() -> Self {
        static SOURCE: OnceLock<Source> = OnceLock::new();
        Self {
            nanoseconds: SOURCE.get_or_init(Source::choose).nanoseconds(),
        }
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// The moment so much later.
    #[inline]
    fn add(self, time: Duration) -> Self {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            nanoseconds: self.nanoseconds.saturating_add(nanoseconds),
        }
    }
}

impl Sub for Moment {
    type Output = Duration;

    /// The time from the earlier to this; 0 when it isn't earlier.
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanoseconds.saturating_sub(earlier.nanoseconds))
    }
}

/// Where the time comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The system's clock.
    System(Instant),
    /// The time stamp counter.
    Counter { first: u64, rate: CycleRate },
}

impl Source {
    fn choose() -> Self {
        let name = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let name = std::fs::read_to_string(name).unwrap_or_default();
        match counter() {
            Some(first) if takes_system_call(name.trim()) => {
                log::info!(
                    "reading the clock {} takes a system call: cycles are counted",
                    name.trim()
                );
                let rate = CycleRate::measure(CALIBRATION);
                Self::Counter { first, rate }
            }
            _ => Self::System(Instant::now()),
        }
    }

    #[inline]
    fn nanoseconds(&self) -> u64 {
        match self {
            Self::System(first) => {
                let elapsed = first.elapsed();
                elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())
            }
            Self::Counter { first, rate } => {
                rate.nanoseconds(counter().unwrap_or(*first).wrapping_sub(*first))
            }
        }
    }
}

/// Whether the kernel has to be asked to read this clock source: those of x86
/// that it doesn't show to processes (vDSO).
fn takes_system_call(source: &str) -> bool {
    const HIDDEN: [&str; 6] = [
        "hpet",
        "acpi_pm",
        "pit",
        "jiffies",
        "refined-jiffies",
        "hyperv_clocksource_msr",
    ];
    HIDDEN.contains(&source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_nanoseconds(now: impl Fn() -> u64) {
        let first = now();
        std::thread::sleep(Duration::from_millis(20));
        let passed = now() - first;
        assert!((19_000_000..10_000_000_000).contains(&passed), "{passed}");
    }

    #[test]
    fn counts_nanoseconds_from_any_source() {
        let clock = Clock::start();
        counts_nanoseconds(|| clock.now());
        let system = Source::System(Instant::now());
        counts_nanoseconds(|| system.nanoseconds());
        if let Some(first) = counter() {
            let rate = CycleRate::measure(CALIBRATION);
            let cycles = Source::Counter { first, rate };
            counts_nanoseconds(|| cycles.nanoseconds());
        }
    }

    #[test]
    fn moments_are_in_order() {
        let first = Moment::now();
        std::thread::sleep(Duration::from_millis(1));
        let second = Moment::now();
        assert!(second > first);
        assert!(second - first >= Duration::from_micros(900));
        assert_eq!(first - second, Duration::ZERO);
    }

    #[test]
    fn knows_the_clocks_that_cost_a_system_call() {
        for source in ["tsc", "kvm-clock", "arch_sys_counter", ""] {
            assert!(!takes_system_call(source), "{source}");
        }
        assert!(takes_system_call("hpet"));
    }
}
