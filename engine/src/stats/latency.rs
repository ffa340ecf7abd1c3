//! Latency: the sorted deltas between time stamps, stock's way.

use super::bandwidth::UNSTAMPED;
use super::cycles::CycleRate;
use super::distribution::Distribution;

/// Samples stock leaves out at the upper end: averages and percentiles are
/// taken over the others, and the maximum shown is the second largest.
const TAIL: usize = 2;

/// The stamps of a latency run: one before each message is posted.
#[derive(Debug)]
pub struct LatencySamples {
    stamps: Vec<u64>,
    deltas: Vec<u64>,
}

/// From nanoseconds between two posts to what is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Show cycles (`-C`) at this rate; microseconds without.
    pub cycles: Option<CycleRate>,
    /// The delta is a round trip and is shown whole (READ, ATOMIC); else half of it is shown.
    pub round_trip: bool,
}

impl Scale {
    /// The span in the unit that is divided and sorted: cycles or nanoseconds.
    fn ticks(&self, nanoseconds: u64) -> u64 {
        self.cycles
            .map_or(nanoseconds, |rate| rate.cycles(nanoseconds))
    }

    /// Ticks per shown unit.
    fn divisor(&self) -> f64 {
        let unit = if self.cycles.is_some() { 1.0 } else { 1000.0 };
        unit * self.legs()
    }

    /// A span in nanoseconds as it is shown.
    pub(super) fn shown(&self, nanoseconds: u64) -> f64 {
        self.ticks(nanoseconds) as f64 / self.divisor()
    }

    fn legs(&self) -> f64 {
        if self.round_trip { 1.0 } else { 2.0 }
    }
}

/// The numbers of a latency row, in microseconds (or cycles).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyFigures {
    /// Least.
    pub min: f64,
    /// Second largest.
    pub max: f64,
    /// Median of all but the two largest.
    pub typical: f64,
    /// Mean of all but the two largest.
    pub average: f64,
    /// Standard deviation of all but the two largest, every deviation cut to whole units.
    pub stdev: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
}

impl LatencySamples {
    /// Room for the stamps of a run.
    pub fn new(iterations: usize) -> Self {
        Self {
            stamps: vec![UNSTAMPED; iterations],
            deltas: vec![UNSTAMPED; iterations.saturating_sub(1)],
        }
    }

    /// Message `index` (0-based) is about to be posted.
    #[inline]
    pub fn mark_posted(&mut self, index: usize, now: u64) {
        if let Some(slot) = self.stamps.get_mut(index) {
            *slot = now;
        }
    }

    /// The samples in the order of time, scaled (`-U`).
    pub fn in_time_order(&self, scale: Scale) -> impl Iterator<Item = f64> + '_ {
        let divisor = scale.divisor();
        self.stamps
            .windows(2)
            .map(move |pair| scale.ticks(pair[1].saturating_sub(pair[0])) as f64 / divisor)
    }

    /// The distribution of the samples, in nanoseconds.
    pub fn distribution(&self) -> Option<Distribution> {
        let mut distribution = Distribution::new()?;
        for pair in self.stamps.windows(2) {
            distribution.record(pair[1].saturating_sub(pair[0]));
        }
        Some(distribution)
    }

    /// Sorts the samples. `None` with fewer than three of them: nothing is
    /// left without the two largest.
    pub fn sorted(&mut self, scale: Scale) -> Option<SortedLatency<'_>> {
        for (delta, pair) in self.deltas.iter_mut().zip(self.stamps.windows(2)) {
            *delta = scale.ticks(pair[1].saturating_sub(pair[0]));
        }
        self.deltas.sort_unstable();
        (self.deltas.len() > TAIL).then_some(SortedLatency {
            deltas: &self.deltas,
            divisor: scale.divisor(),
        })
    }
}

/// The sorted samples of a run.
#[derive(Debug)]
pub struct SortedLatency<'a> {
    deltas: &'a [u64],
    divisor: f64,
}

impl SortedLatency<'_> {
    fn kept(&self) -> &[u64] {
        &self.deltas[..self.deltas.len() - TAIL]
    }

    fn scaled(&self, delta: u64) -> f64 {
        delta as f64 / self.divisor
    }

    /// The samples in the order of size without the two largest (`-H`).
    pub fn in_order_of_size(&self) -> impl Iterator<Item = f64> + '_ {
        self.kept().iter().map(|delta| self.scaled(*delta))
    }

    /// The least sample that so many percent of all do not exceed. Stock's
    /// percentiles leave the two largest out; this one does not.
    pub fn percentile_of_all(&self, percent: f64) -> f64 {
        let rank = (self.deltas.len() as f64 * percent / 100.0).ceil() as usize;
        self.scaled(self.deltas[rank.clamp(1, self.deltas.len()) - 1])
    }

    /// The numbers of the row.
    pub fn figures(&self) -> LatencyFigures {
        let count = self.kept().len();
        let average = self.in_order_of_size().sum::<f64>() / count as f64;
        // Stock cuts deviations to whole units since 4.5. It keeps the square
        // in 32 bits, which overflows under -C; we do not copy that.
        let squares: f64 = self
            .in_order_of_size()
            .map(|value| (average - value).trunc().powi(2))
            .sum();
        LatencyFigures {
            min: self.scaled(self.deltas[0]),
            max: self.scaled(self.deltas[count]),
            typical: self.scaled(self.median()),
            average,
            stdev: (squares / count as f64).sqrt(),
            p99: self.percentile(0.99),
            p99_9: self.percentile(0.999),
        }
    }

    /// The median in whole ticks: the mean of the middle two is cut off.
    fn median(&self) -> u64 {
        let kept = self.kept();
        let middle = kept.len() / 2;
        if kept.len().is_multiple_of(2) {
            u64::midpoint(kept[middle - 1], kept[middle])
        } else {
            kept[middle]
        }
    }

    /// The sample at this share of the kept ones, rounded up; the largest
    /// index reached is that of the maximum.
    fn percentile(&self, share: f64) -> f64 {
        let index = (self.kept().len() as f64 * share).ceil() as usize;
        self.scaled(self.deltas[index])
    }
}

/// The numbers of a timed latency row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedLatency {
    /// Mean in microseconds.
    pub average: f64,
    /// Transactions per second.
    pub transactions: f64,
}

impl TimedLatency {
    /// From the round trips counted in the sampled time (nanoseconds).
    pub fn new(iterations: u64, elapsed: u64, round_trip: bool) -> Self {
        let legs = if round_trip { 1.0 } else { 2.0 };
        Self {
            average: elapsed as f64 / 1000.0 / legs / iterations as f64,
            transactions: iterations as f64 / (elapsed as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use proptest::prelude::*;

    const HALF: Scale = Scale {
        cycles: None,
        round_trip: false,
    };
    const WHOLE: Scale = Scale {
        cycles: None,
        round_trip: true,
    };

    fn samples(deltas: &[u64]) -> LatencySamples {
        let mut samples = LatencySamples::new(deltas.len() + 1);
        let mut now = 1_000_000;
        samples.mark_posted(0, now);
        for (index, delta) in deltas.iter().enumerate() {
            now += delta;
            samples.mark_posted(index + 1, now);
        }
        samples
    }

    #[test]
    fn computes_a_small_run_by_hand() {
        // In us: 1 2 3 4 | 50 | 100; kept are the first four.
        let mut run = samples(&[3000, 100_000, 1000, 4000, 50_000, 2000]);
        let figures = run.sorted(WHOLE).unwrap().figures();
        assert_eq!(figures.min, 1.0);
        assert_eq!(figures.max, 50.0);
        assert_eq!(figures.typical, 2.5);
        assert_eq!(figures.average, 2.5);
        // Deviations 1.5, 0.5, -0.5, -1.5 are cut to 1, 0, 0, -1.
        assert_eq!(figures.stdev, 0.5_f64.sqrt());
        // ceil(4 * 0.99) = 4, the maximum.
        assert_eq!((figures.p99, figures.p99_9), (50.0, 50.0));
    }

    #[test]
    fn shows_half_round_trips_and_cycles() {
        let mut run = samples(&[3000, 9000, 1000, 7000, 5001]);
        let lists: Vec<f64> = run.in_time_order(HALF).collect();
        assert_eq!(lists, [1.5, 4.5, 0.5, 3.5, 2.5005]);
        let sorted: Vec<f64> = run.sorted(HALF).unwrap().in_order_of_size().collect();
        assert_eq!(sorted, [0.5, 1.5, 2.5005]);
        let cycles = Scale {
            cycles: Some(CycleRate::from_ghz(3.0)),
            round_trip: false,
        };
        let figures = run.sorted(cycles).unwrap().figures();
        assert_eq!((figures.min, figures.max), (1500.0, 10500.0));
        assert_eq!(figures.typical, 4500.0);
        // Large squares stay finite.
        assert!(figures.stdev > 0.0 && figures.stdev.is_finite());
    }

    #[test]
    fn a_thousand_iterations_show_the_maximum_as_99_9() {
        let deltas: Vec<u64> = (1..1000).map(|n| n * 1000).collect();
        let figures = samples(&deltas).sorted(WHOLE).unwrap().figures();
        assert_eq!(figures.max, 998.0);
        assert_eq!(figures.p99_9, 998.0);
        // ceil(997 * 0.99) = 988: the 989th smallest.
        assert_eq!(figures.p99, 989.0);
        assert_eq!(figures.typical, 499.0);
    }

    #[test]
    fn percentiles_of_all_leave_nothing_out() {
        let deltas: Vec<u64> = (1..=1000).map(|n| n * 1000).collect();
        let mut run = samples(&deltas);
        let distribution = run.distribution().unwrap();
        let sorted = run.sorted(WHOLE).unwrap();
        for (percent, value) in [(50.0, 500.0), (99.99, 1000.0), (0.0, 1.0), (100.0, 1000.0)] {
            assert_eq!(sorted.percentile_of_all(percent), value, "{percent}");
            let kept = distribution.percentile(percent, WHOLE);
            assert!((kept / value - 1.0).abs() < 0.002, "{percent}: {kept}");
        }
    }

    #[test]
    fn too_few_samples_are_no_run() {
        assert!(samples(&[1, 2]).sorted(WHOLE).is_none());
        assert!(LatencySamples::new(0).sorted(WHOLE).is_none());
        let figures = samples(&[1000, 2000, 3000])
            .sorted(WHOLE)
            .unwrap()
            .figures();
        assert_eq!((figures.min, figures.typical, figures.max), (1.0, 1.0, 2.0));
    }

    #[test]
    fn timed_runs_average_over_the_sampled_time() {
        let half = TimedLatency::new(1000, 4_000_000, false);
        assert_eq!((half.average, half.transactions), (2.0, 250_000.0));
        // 57 hours of it.
        let long = TimedLatency::new(51_300_000_000, 205_200_000_000_000, false);
        assert_eq!((long.average, long.transactions), (2.0, 250_000.0));
        let whole = TimedLatency::new(1000, 4_000_000, true);
        assert_eq!((whole.average, whole.transactions), (4.0, 250_000.0));
    }

    proptest! {
        #[test]
        fn agrees_with_counting(deltas in proptest::collection::vec(1_u64..1_000_000, 3..400)) {
            let figures = samples(&deltas).sorted(WHOLE).unwrap().figures();
            let mut sorted = deltas.clone();
            sorted.sort_unstable();
            let kept = &sorted[..sorted.len() - 2];
            let us = |delta: u64| delta as f64 / 1000.0;
            prop_assert_eq!(figures.min, us(kept[0]));
            prop_assert_eq!(figures.max, us(sorted[sorted.len() - 2]));
            let mean = kept.iter().map(|delta| us(*delta)).sum::<f64>() / kept.len() as f64;
            prop_assert!((figures.average - mean).abs() < 1e-6);
            let smaller = |value: f64| kept.iter().filter(|delta| us(**delta) < value).count();
            let larger = |value: f64| kept.iter().filter(|delta| us(**delta) > value).count();
            // The median has at most half of the samples on either side.
            prop_assert!(smaller(figures.typical) <= kept.len().div_ceil(2));
            prop_assert!(larger(figures.typical) <= kept.len().div_ceil(2));
            // At most one kept sample in a hundred (a thousand) is larger than its percentile.
            prop_assert!(larger(figures.p99) * 100 <= kept.len());
            prop_assert!(larger(figures.p99_9) * 1000 <= kept.len());
            prop_assert!(smaller(figures.p99) * 100 <= kept.len() * 99 + 99);
            prop_assert!(figures.p99 <= figures.p99_9 && figures.p99_9 <= figures.max);
            // Cutting makes deviations smaller, by less than one unit each.
            let exact = (kept.iter().map(|delta| (us(*delta) - mean).powi(2)).sum::<f64>()
                / kept.len() as f64).sqrt();
            prop_assert!(figures.stdev <= exact + 1e-6 && figures.stdev > exact - 1.0 - 1e-6);
        }
    }
}
