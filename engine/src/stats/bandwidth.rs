//! Bandwidth: average, peak and message rate.

use super::peak::least_gap;

/// Bytes per unit of bandwidth.
const MIB: u64 = 1 << 20;
/// 10^9 bits in bytes.
const GBIT: u64 = 125_000_000;

/// What a slot holds before it is stamped. Not zero: the system hands out
/// zero pages lazily, and would take its time for them during the run.
pub(super) const UNSTAMPED: u64 = 1;

/// The stamps of a bandwidth run.
#[derive(Debug)]
pub struct BandwidthSamples {
    peak: bool,
    posted: Vec<u64>,
    completed: Vec<u64>,
}

impl BandwidthSamples {
    /// Room for a run of `messages` messages over all QPs. Without `peak` only
    /// the first post and the last completion are kept.
    pub fn new(messages: usize, peak: bool) -> Self {
        let slots = if peak { messages.max(1) } else { 1 };
        Self {
            peak,
            posted: vec![UNSTAMPED; slots],
            completed: vec![UNSTAMPED; slots],
        }
    }

    /// Message `index` (0-based, over all QPs) is about to be posted.
    #[inline]
    pub fn mark_posted(&mut self, index: usize, now: u64) {
        if let Some(slot) = self.posted.get_mut(index) {
            *slot = now;
        }
    }

    /// The run now has `count` completed messages. More than were announced
    /// count as all of them, as in stock.
    #[inline]
    pub fn mark_completed(&mut self, count: usize, now: u64) {
        let slot = count.min(self.completed.len()).saturating_sub(1);
        self.completed[slot] = now;
    }

    /// The run starts at this moment (runs without a peak, receivers, timed runs).
    pub fn mark_start(&mut self, now: u64) {
        self.posted[0] = now;
    }

    /// The run ends at this moment.
    pub fn mark_end(&mut self, now: u64) {
        let last = self.completed.len() - 1;
        self.completed[last] = now;
    }

    /// Nanoseconds from the first post to the last completion.
    pub fn elapsed(&self) -> u64 {
        let last = self.completed.len() - 1;
        self.completed[last].saturating_sub(self.posted[0])
    }
}

/// What the stamps belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BandwidthShape {
    /// Message size in bytes.
    pub size: u64,
    /// Messages over all QPs: iterations times QPs, or as counted in a timed run.
    pub messages: u64,
    /// WRs per post.
    pub post_list: u32,
    /// WRs per completion.
    pub cq_mod: u32,
    /// Report Gb/s instead of MiB/s.
    pub gbits: bool,
    /// 2 for endless duplex runs of one-sided verbs, which show both directions; else 1.
    pub directions: u32,
}

/// The numbers of a bandwidth row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BandwidthFigures {
    /// Peak in MiB/s or Gb/s; 0 when not measured.
    pub peak: f64,
    /// Average in MiB/s or Gb/s.
    pub average: f64,
    /// Messages per microsecond.
    pub message_rate: f64,
}

/// An amount of traffic and the time it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Message size in bytes.
    pub size: u64,
    /// Messages, per direction.
    pub messages: u64,
    /// Nanoseconds.
    pub elapsed: u64,
}

impl Volume {
    /// Average bandwidth in Gb/s or MiB/s. The share of a port is computed
    /// from its own messages and the time of the whole run.
    pub fn average(&self, gbits: bool) -> f64 {
        self.size as f64 * self.messages as f64 * 1e9 / (self.elapsed as f64 * unit(gbits) as f64)
    }

    /// Messages per microsecond.
    pub fn message_rate(&self) -> f64 {
        self.messages as f64 * 1e9 / (self.elapsed as f64 * 1e6)
    }
}

fn unit(gbits: bool) -> u64 {
    if gbits { GBIT } else { MIB }
}

impl BandwidthSamples {
    /// The numbers of the run.
    pub fn figures(&self, shape: &BandwidthShape) -> BandwidthFigures {
        let volume = Volume {
            size: shape.size,
            messages: shape.messages,
            elapsed: self.elapsed(),
        };
        let directions = f64::from(shape.directions);
        BandwidthFigures {
            peak: self.peak(shape) * directions,
            average: volume.average(shape.gbits) * directions,
            message_rate: volume.message_rate() * directions,
        }
    }

    fn peak(&self, shape: &BandwidthShape) -> f64 {
        if !self.peak {
            return 0.0;
        }
        least_gap(
            &self.posted,
            &self.completed,
            shape.post_list as usize,
            shape.cq_mod as usize,
        )
        .map_or(0.0, |gap| {
            shape.size as f64 * 1e9 / (gap as f64 * unit(shape.gbits) as f64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(size: u64, messages: u64) -> BandwidthShape {
        BandwidthShape {
            size,
            messages,
            post_list: 1,
            cq_mod: 1,
            gbits: false,
            directions: 1,
        }
    }

    #[test]
    fn computes_a_run_with_peak() {
        // Four messages of 1 MiB; 1 ms each, the last two overlapping.
        let mut samples = BandwidthSamples::new(4, true);
        for (index, (posted, completed)) in [
            (0, 1_000_000),
            (1_000_000, 2_000_000),
            (2_000_000, 3_000_000),
            (2_500_000, 3_500_000),
        ]
        .into_iter()
        .enumerate()
        {
            samples.mark_posted(index, posted);
            samples.mark_completed(index + 1, completed);
        }
        let figures = samples.figures(&shape(1 << 20, 4));
        // 4 MiB in 3.5 ms; least gap (3.5 - 2) / 2 = 0.75 ms.
        assert_eq!(figures.average, 4.0 / 0.0035);
        assert_eq!(figures.peak, 1.0 / 0.00075);
        assert!((figures.message_rate - 4.0 / 3500.0).abs() < 1e-12);
    }

    #[test]
    fn computes_a_run_without_peak() {
        let mut samples = BandwidthSamples::new(1000, false);
        samples.mark_start(500);
        samples.mark_posted(999, 7);
        samples.mark_end(2_000_000_500);
        let figures = samples.figures(&BandwidthShape {
            gbits: true,
            directions: 2,
            ..shape(65536, 1000)
        });
        assert_eq!(figures.peak, 0.0);
        // 65536000 bytes in 2 s are 0.262144 Gb/s, twice.
        assert!((figures.average - 0.524_288).abs() < 1e-12);
        assert!((figures.message_rate - 0.001).abs() < 1e-15);
    }

    #[test]
    fn clamps_completions_to_the_last_slot() {
        let mut samples = BandwidthSamples::new(3, true);
        samples.mark_start(0);
        samples.mark_completed(100, 77);
        assert_eq!(samples.elapsed(), 77);
        samples.mark_posted(3, 50);
        assert_eq!(samples.elapsed(), 77);
        let mut single = BandwidthSamples::new(500, false);
        single.mark_start(0);
        single.mark_completed(100, 5);
        single.mark_completed(500, 9);
        assert_eq!(single.elapsed(), 9);
    }

    #[test]
    fn a_run_of_57_hours_does_not_overflow() {
        let volume = Volume {
            size: 1 << 23,
            // 50 GB/s for so long.
            messages: 6000 * 205_200,
            elapsed: 205_200 * 1_000_000_000,
        };
        assert!((volume.message_rate() - 0.006).abs() < 1e-12);
        assert!((volume.average(false) - 48_000.0).abs() < 1e-6);
        let mut samples = BandwidthSamples::new(1, false);
        samples.mark_start(0);
        samples.mark_end(volume.elapsed);
        assert_eq!(samples.elapsed(), volume.elapsed);
    }

    #[test]
    fn shares_of_a_port_use_the_time_of_the_run() {
        let port = Volume {
            size: 1000,
            messages: 500,
            elapsed: 1_000_000,
        };
        assert_eq!(port.message_rate(), 0.5);
        assert_eq!(port.average(true), 4.0);
    }
}
