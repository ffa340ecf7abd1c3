//! The parts of a timed run (`-D`, `-f`): a margin, the sampled time, a margin.

use crate::stats::{Clock, CpuTimes};

/// When a timed run samples and when it ends, in nanoseconds of its clock.
#[derive(Debug, Clone)]
pub(crate) struct Phases {
    clock: Clock,
    sample: u64,
    stop: u64,
    end: u64,
    watch_cpu: bool,
    started: Option<Edge>,
    stopped: Option<Edge>,
}

/// An edge of the sampled time.
#[derive(Debug, Clone, Copy)]
struct Edge {
    time: u64,
    cpu: Option<CpuTimes>,
}

/// What was sampled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    /// First nanosecond of the sampled time.
    pub(crate) start: u64,
    /// Last nanosecond.
    pub(crate) stop: u64,
    /// Processor use in percent, if it was watched.
    pub(crate) cpu: Option<f32>,
}

const NANOSECONDS: u64 = 1_000_000_000;

impl Phases {
    /// Begins now: `duration` seconds in all, of which `margin` seconds at
    /// each end are not sampled. `watch_cpu`: sample the processors' times, too.
    pub(crate) fn start(duration: u32, margin: u32, watch_cpu: bool) -> Self {
        let margin = u64::from(margin) * NANOSECONDS;
        let end = u64::from(duration) * NANOSECONDS;
        Self {
            clock: Clock::start(),
            sample: margin,
            stop: end.saturating_sub(margin),
            end,
            watch_cpu,
            started: None,
            stopped: None,
        }
    }

    /// Begins now, and not when this was made.
    pub(crate) fn begin(&mut self) {
        self.clock = Clock::start();
    }

    /// Looks at the clock. `true` when the run is over.
    #[inline]
    pub(crate) fn look(&mut self) -> bool {
        let now = self.clock.now();
        if now < self.sample {
            return false;
        }
        if self.started.is_none() {
            self.started = Some(self.edge(now));
        }
        if now >= self.stop && self.stopped.is_none() {
            self.stopped = Some(self.edge(now));
        }
        now >= self.end
    }

    /// Nanoseconds since the beginning.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Whether what completes now counts.
    #[inline]
    pub(crate) fn is_sampling(&self) -> bool {
        self.started.is_some() && self.stopped.is_none()
    }

    /// What was sampled, after the end.
    pub(crate) fn measured(&self) -> Measured {
        let start = self.started.map_or(self.sample, |edge| edge.time);
        let stop = self.stopped.map_or(self.stop, |edge| edge.time);
        let cpu = |edge: Option<Edge>| edge.and_then(|edge| edge.cpu);
        let cpu = cpu(self.started)
            .zip(cpu(self.stopped))
            .map(|(start, stop)| stop.utilisation_since(&start));
        Measured { start, stop, cpu }
    }

    #[cold]
    fn edge(&self, time: u64) -> Edge {
        let cpu = if self.watch_cpu {
            // That it can be read was checked before the run.
            CpuTimes::now().ok()
        } else {
            None
        };
        Edge { time, cpu }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mut phases: Phases) -> (u64, Phases) {
        let mut sampled = 0;
        while !phases.look() {
            sampled += u64::from(phases.is_sampling());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        (sampled, phases)
    }

    #[test]
    fn samples_between_the_margins() {
        let mut phases = Phases::start(1, 0, true);
        phases.sample = 100_000_000;
        phases.stop = 200_000_000;
        phases.end = 300_000_000;
        let (sampled, phases) = run(phases);
        assert!((1..=10).contains(&sampled), "{sampled}");
        let measured = phases.measured();
        assert!(measured.start >= 100_000_000 && measured.stop >= 200_000_000);
        assert!(measured.start < measured.stop);
        assert!(measured.cpu.is_some());
    }

    #[test]
    fn a_run_of_57_hours_does_not_overflow() {
        let phases = Phases::start(205_200, 51_300, false);
        assert_eq!(phases.sample, 51_300 * NANOSECONDS);
        assert_eq!(phases.stop, (205_200 - 51_300) * NANOSECONDS);
        assert_eq!(phases.end, 205_200 * NANOSECONDS);
        let longest = Phases::start(u32::MAX, 0, false);
        assert_eq!(longest.end / NANOSECONDS, u64::from(u32::MAX));
    }

    #[test]
    fn without_margin_everything_counts() {
        let mut phases = Phases::start(1, 0, false);
        assert_eq!((phases.sample, phases.stop), (0, NANOSECONDS));
        phases.stop = 50_000_000;
        phases.end = 50_000_000;
        assert!(!phases.look());
        assert!(phases.is_sampling());
        let (_, phases) = run(phases);
        assert!(!phases.is_sampling());
        assert_eq!(phases.measured().cpu, None);
    }
}
