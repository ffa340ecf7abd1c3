//! The traffic: loops that post, poll and spin, and nothing else. All memory
//! they need is allocated before they start.
//!
//! - `requests`: the work requests of a run, prepared beforehand;
//! - `bandwidth`: the sender's loop, and `course`: what it is told to do
//!   (so many messages, so many seconds, until interrupted);
//! - `latency`: the ping-pong;
//! - `phases`: the parts of a timed run;
//! - `pacer`: the software rate limiter;
//! - `watchdog`: what keeps a loop from spinning for ever.

mod bandwidth;
mod course;
mod error;
mod latency;
mod pacer;
mod phases;
mod requests;
mod watchdog;

pub use error::RunError;

pub(crate) use bandwidth::Sender;
pub(crate) use course::{Counted, Endless, Timed};
pub(crate) use latency::{CountedRounds, PingPong, Table, TimedRounds};
pub(crate) use phases::Phases;
pub(crate) use requests::Prepared;
pub(crate) use watchdog::Watchdog;
