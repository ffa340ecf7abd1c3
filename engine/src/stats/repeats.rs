//! The same figure of several runs (`--repeat`): where it lies, and how sure
//! that is.

/// Share of cases in which the interval holds the true median.
const CONFIDENCE: f64 = 0.95;

/// What runs have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeats {
    /// How many there were.
    pub runs: usize,
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Where the true median lies with 95 % confidence, whatever the
    /// distribution is. Fewer than 6 runs can't tell.
    pub confidence: Option<(f64, f64)>,
}

impl Repeats {
    /// From the figures of all runs, in any order; `None` without any.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let mut sorted = figures.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len().is_multiple_of(2) {
            true => f64::midpoint(sorted[middle - 1], sorted[middle]),
            false => sorted[middle],
        };
        let confidence =
            outer_rank(sorted.len()).map(|rank| (sorted[rank - 1], sorted[sorted.len() - rank]));
        Some(Self {
            runs: sorted.len(),
            median,
            min,
            max,
            confidence,
        })
    }

    /// From the least to the largest, in percent of the median.
    pub fn spread(&self) -> f64 {
        (self.max - self.min) / self.median * 100.0
    }
}

/// The largest rank `r` so that the median lies between the `r`th least and
/// the `r`th largest of `runs` figures with enough confidence: each figure is
/// below the median with probability one half (sign test).
fn outer_rank(runs: usize) -> Option<usize> {
    let mut probability = 0.5_f64.powi(i32::try_from(runs).ok()?);
    let mut outside = 0.0;
    let mut rank = 0;
    for below in 0..runs / 2 {
        outside += 2.0 * probability;
        if outside > 1.0 - CONFIDENCE {
            break;
        }
        rank = below + 1;
        probability *= (runs - below) as f64 / (below + 1) as f64;
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Order statistics for the median at 95 %, as in textbooks.
        for (runs, rank) in [
            (1, None),
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (10, Some(2)),
            (12, Some(3)),
            (20, Some(6)),
            (30, Some(10)),
            (100, Some(40)),
        ] {
            assert_eq!(outer_rank(runs), rank, "{runs}");
        }
        assert!(outer_rank(1000).is_some_and(|rank| (460..480).contains(&rank)));
    }

    #[test]
    fn sums_up_runs_in_any_order() {
        let figures = [30.0, 10.0, 20.0, 60.0, 50.0, 40.0];
        let repeats = Repeats::of(&figures).unwrap();
        assert_eq!((repeats.runs, repeats.median), (6, 35.0));
        assert_eq!((repeats.min, repeats.max), (10.0, 60.0));
        assert_eq!(repeats.confidence, Some((10.0, 60.0)));
        assert!((repeats.spread() - 142.857).abs() < 0.001);
        let few = Repeats::of(&figures[..5]).unwrap();
        assert_eq!((few.median, few.confidence), (30.0, None));
        assert_eq!(Repeats::of(&[]), None);
    }
}
