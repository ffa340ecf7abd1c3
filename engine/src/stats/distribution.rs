//! The distribution of latencies: what `--percentiles` and `--hdr_file` show.
//!
//! Counted runs have every sample, timed ones would have too many: those go
//! into a histogram that keeps three digits of each.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::latency::Scale;

/// Digits of a sample that are kept.
const DIGITS: u8 = 3;

/// The longest span that is told apart from longer ones: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// Lines of the exported file per halving of the distance to 100 %.
const LINES_PER_HALVING: u32 = 5;

/// How often each span between two posts occurred, in nanoseconds. Recording
/// allocates nothing.
#[derive(Debug, Clone)]
pub struct Distribution {
    histogram: Histogram<u64>,
}

impl Distribution {
    /// Room for spans from a nanosecond to an hour, about 300 KiB. `None` only
    /// if the library can't keep such spans, which a test rules out.
    pub fn new() -> Option<Self> {
        let histogram = Histogram::new_with_bounds(1, LONGEST, DIGITS).ok()?;
        Some(Self { histogram })
    }

    /// One more span. Longer ones than an hour count as an hour.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.histogram.saturating_record(nanoseconds);
    }

    /// Spans recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The least span that so many percent of all do not exceed, as shown.
    pub fn percentile(&self, percent: f64, scale: Scale) -> f64 {
        scale.shown(self.histogram.value_at_percentile(percent))
    }

    /// The text that HdrHistogram's tools plot (`.hgrm`): value, share, count
    /// up to there. Values are as shown in rows.
    pub fn hgrm(&self, scale: Scale) -> String {
        let mut text = format!(
            "{:>12} {:>14} {:>10} {:>14}\n\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        );
        let mut total = 0;
        // Writing to a String does not fail.
        for step in self.histogram.iter_quantiles(LINES_PER_HALVING) {
            total += step.count_since_last_iteration();
            let share = step.quantile_iterated_to();
            let value = scale.shown(step.value_iterated_to());
            let _ = write!(text, "{value:12.3} {share:2.12} {total:10}");
            if share < 1.0 {
                let _ = write!(text, " {:14.2}", 1.0 / (1.0 - share));
            }
            text.push('\n');
        }
        let one = scale.shown(1_000_000) / 1e6;
        let _ = write!(
            text,
            "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n\
             #[Max     = {:12.3}, Total count    = {:12}]\n",
            self.histogram.mean() * one,
            self.histogram.stdev() * one,
            scale.shown(self.histogram.max()),
            self.count(),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use proptest::prelude::*;

    const WHOLE: Scale = Scale {
        cycles: None,
        round_trip: true,
    };
    const HALF: Scale = Scale {
        cycles: None,
        round_trip: false,
    };

    #[test]
    fn percentiles_of_a_known_distribution() {
        let mut distribution = Distribution::new().unwrap();
        for microseconds in 1..=1000 {
            distribution.record(microseconds * 1000);
        }
        assert_eq!(distribution.count(), 1000);
        for (percent, value) in [(50.0, 500.0), (99.0, 990.0), (99.9, 999.0), (100.0, 1000.0)] {
            let found = distribution.percentile(percent, WHOLE);
            assert!(
                (found / value - 1.0_f64).abs() < 0.002,
                "{percent}: {found}"
            );
            let half = distribution.percentile(percent, HALF);
            assert!((half * 2.0 - found).abs() < 0.001);
        }
    }

    #[test]
    fn recording_allocates_nothing() {
        let mut distribution = Distribution::new().unwrap();
        let allocated = allocation_counter::measure(|| {
            for shift in 0..64 {
                distribution.record(1 << shift);
            }
        });
        assert_eq!(allocated.count_total, 0);
        assert_eq!(distribution.count(), 64);
        // What is longer than an hour is there, as an hour.
        let hour = distribution.percentile(100.0, WHOLE);
        assert!((hour / 3.6e9 - 1.0).abs() < 0.6, "{hour}");
    }

    #[test]
    fn the_exported_text_counts_up_to_all() {
        let mut distribution = Distribution::new().unwrap();
        for span in [2000, 4000, 4000, 8000] {
            distribution.record(span);
        }
        let text = distribution.hgrm(HALF);
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with('#'))
            .map(|line| {
                line.split_whitespace()
                    .map(|f| f.parse().unwrap())
                    .collect()
            })
            .collect();
        assert_eq!(rows.first().unwrap()[..3], [1.0, 0.0, 1.0]);
        assert!(rows.is_sorted_by(|one, next| one[0] <= next[0] && one[2] <= next[2]));
        let last = rows.last().unwrap();
        assert_eq!((last[1], last[2], last.len()), (1.0, 4.0, 3));
        assert!((last[0] - 4.0_f64).abs() < 0.01);
        assert!(text.contains("Total count    =            4]\n"), "{text}");
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_samples(
            mut spans in proptest::collection::vec(1_u64..LONGEST, 1..300),
            percent in 0.1_f64..=100.0,
        ) {
            let mut distribution = Distribution::new().unwrap();
            spans.iter().for_each(|span| distribution.record(*span));
            spans.sort_unstable();
            let rank = (spans.len() as f64 * percent / 100.0).ceil() as usize;
            let exact = spans[rank.clamp(1, spans.len()) - 1] as f64 / 1000.0;
            let found = distribution.percentile(percent, WHOLE);
            prop_assert!((found - exact).abs() <= exact * 0.001 + 0.001, "{found} {exact}");
        }
    }
}
