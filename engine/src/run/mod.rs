//! The traffic: loops that post, poll and spin, and nothing else. All memory
//! they need is allocated before they start.
//!
//! - `requests`: the work requests of a run, prepared beforehand;
//! - `bandwidth`: the sender's loop, and `course`: what it is told to do
//!   (so many messages, so many seconds, until interrupted);
//! - `receiver`: the receiver's loop, and `duplex`: both loops in one, where
//!   messages consume receives;
//! - `latency`: the ping-pong, and `arrival`: how it learns of a message;
//! - `phases`: the parts of a timed run;
//! - `pacer`: the software rate limiter;
//! - `watchdog`: what keeps a loop from spinning for ever.

mod arrival;
mod bandwidth;
mod course;
mod duplex;
mod error;
mod latency;
mod pacer;
mod phases;
mod receiver;
mod requests;
mod watchdog;

pub use error::RunError;

pub(crate) use arrival::{Arrival, LastByte, Receipt};
pub(crate) use bandwidth::Sender;
pub(crate) use course::{Counted, Course, Endless, Timed};
pub(crate) use duplex::Duplex;
pub(crate) use latency::{CountedRounds, PingPong, Table, TimedRounds};
pub(crate) use phases::Phases;
pub(crate) use receiver::{Receiver, post_receives};
pub(crate) use requests::Prepared;
pub(crate) use watchdog::Watchdog;
