//! The peak of a bandwidth run: the least average time per message over all
//! stretches of messages, exactly as stock defines it, in O(n log n).
//!
//! Stock looks at every pair of a posted message i and a completion j >= i and
//! takes the least (completed\[j\] - posted\[i\]) / (j - i + 1). That is the
//! least slope between a point (i, posted\[i\]) and a point (j + 1,
//! completed\[j\]) to its right. For each completion the point with the least
//! slope lies on the upper hull of the posted points so far, where it is found
//! by bisection.

/// A point of the plane: message count, nanoseconds.
#[derive(Clone, Copy)]
struct Point {
    x: u64,
    y: u64,
}

/// A non-negative fraction, compared exactly.
#[derive(Clone, Copy)]
struct Ratio {
    time: u64,
    messages: u64,
}

impl Ratio {
    fn less_than(self, other: Self) -> bool {
        u128::from(self.time) * u128::from(other.messages)
            < u128::from(other.time) * u128::from(self.messages)
    }

    fn whole(self) -> u64 {
        self.time / self.messages
    }
}

/// The least time per message in whole nanoseconds, at least 1.
///
/// Posts are looked at in steps of `post_list`, completions at the end of
/// every group of `cq_mod` and at the very end: these are the slots that were
/// stamped. `None` without messages.
pub(super) fn least_gap(
    posted: &[u64],
    completed: &[u64],
    post_list: usize,
    cq_mod: usize,
) -> Option<u64> {
    let count = posted.len().min(completed.len());
    let (post_list, cq_mod) = (post_list.max(1), cq_mod.max(1));
    let mut hull = Hull::default();
    let mut best: Option<Ratio> = None;
    let mut next_post = 0;
    let mut end = cq_mod.min(count);
    while end > 0 {
        while next_post < end {
            hull.push(Point {
                x: next_post as u64,
                y: posted[next_post],
            });
            next_post += post_list;
        }
        let completion = Point {
            x: end as u64,
            y: completed[end - 1],
        };
        if let Some(ratio) = hull.least_slope(completion)
            && best.is_none_or(|best| ratio.less_than(best))
        {
            best = Some(ratio);
        }
        if end == count {
            break;
        }
        end = (end + cq_mod).min(count);
    }
    best.map(|best| best.whole().max(1))
}

/// The upper hull of points that come in the order of their x.
#[derive(Default)]
struct Hull {
    points: Vec<Point>,
}

impl Hull {
    fn push(&mut self, point: Point) {
        while let [.., before, last] = self.points[..] {
            if turns_down(before, last, point) {
                break;
            }
            self.points.pop();
        }
        self.points.push(point);
    }

    /// The least slope from a point of the hull to one on its right.
    fn least_slope(&self, to: Point) -> Option<Ratio> {
        let slope = |from: Point| Ratio {
            // A message is posted before it completes; should the stamps say
            // otherwise, it took no time.
            time: to.y.saturating_sub(from.y),
            messages: to.x - from.x,
        };
        // The slopes fall to their least and then rise.
        let pairs = self.points.len().checked_sub(1)?;
        let (mut low, mut high) = (0, pairs);
        while low < high {
            let middle = usize::midpoint(low, high);
            if slope(self.points[middle + 1]).less_than(slope(self.points[middle])) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(slope(self.points[low]))
    }
}

/// Whether the way over `a`, `b`, `c` turns clockwise at `b`.
fn turns_down(a: Point, b: Point, c: Point) -> bool {
    let rise = |from: Point, to: Point| i128::from(to.y) - i128::from(from.y);
    let run = |from: Point, to: Point| i128::from(to.x) - i128::from(from.x);
    rise(a, b) * run(b, c) > rise(b, c) * run(a, b)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use proptest::prelude::*;

    /// Stock's loops.
    fn naive(posted: &[u64], completed: &[u64], post_list: usize, cq_mod: usize) -> u64 {
        let count = posted.len();
        let mut least = u64::MAX;
        for i in (0..count).step_by(post_list) {
            let first = (i + 1).next_multiple_of(cq_mod) - 1;
            let mut slots: Vec<usize> = (first..count).step_by(cq_mod).collect();
            if !count.is_multiple_of(cq_mod) {
                slots.push(count - 1);
            }
            for j in slots {
                least = least.min((completed[j] - posted[i]) / (j - i + 1) as u64);
            }
        }
        least.max(1)
    }

    #[test]
    fn finds_the_fast_stretch() {
        // Ten messages, one every 100 ns, three of them close together.
        let posted = [0, 100, 200, 300, 400, 410, 420, 500, 600, 700];
        let completed = posted.map(|stamp| stamp + 50);
        // Post 4 to completion 6: (470 - 400) / 3.
        assert_eq!(least_gap(&posted, &completed, 1, 1), Some(23));
        assert_eq!(least_gap(&[5], &[25], 1, 1), Some(20));
        assert_eq!(least_gap(&[], &[], 1, 1), None);
        // Only the last slot is a completion.
        assert_eq!(least_gap(&[0, 0, 0], &[0, 0, 90], 1, 100), Some(30));
        assert_eq!(least_gap(&[7, 7], &[7, 7], 1, 1), Some(1));
    }

    fn run() -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
        proptest::collection::vec((0_u64..1000, 0_u64..3000), 1..120).prop_map(|steps| {
            let (mut post, mut done) = (0, 0);
            steps
                .into_iter()
                .map(|(gap, latency)| {
                    post += gap;
                    done = done.max(post + latency);
                    (post, done)
                })
                .unzip()
        })
    }

    proptest! {
        #[test]
        fn agrees_with_looking_at_every_pair(
            (posted, completed) in run(),
            post_list in 1_usize..9,
            cq_mod in 1_usize..130,
        ) {
            prop_assert_eq!(
                least_gap(&posted, &completed, post_list, cq_mod).unwrap(),
                naive(&posted, &completed, post_list, cq_mod)
            );
        }
    }
}
