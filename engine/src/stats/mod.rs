//! From time stamps to the numbers of a report.
//!
//! All stamps are nanoseconds of the monotonic [`Clock`]; where stock divides
//! cycles, we divide nanoseconds. The vectors for stamps are allocated before
//! a run; marking a stamp only stores it.

mod bandwidth;
mod clock;
mod cpu;
mod cycles;
mod distribution;
mod latency;
mod peak;
mod repeats;
mod steadiness;

pub use bandwidth::{BandwidthFigures, BandwidthSamples, BandwidthShape, Volume};
pub use clock::{Clock, Moment};
pub use cpu::{CpuTimes, CpuTimesError};
pub use cycles::CycleRate;
pub use distribution::Distribution;
pub use latency::{LatencyFigures, LatencySamples, Scale, SortedLatency, TimedLatency};
pub use repeats::Repeats;
pub use steadiness::Steadiness;
