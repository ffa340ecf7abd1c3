//! The traffic: loops that post, poll and spin, and nothing else. All memory
//! they need is allocated before they start.
//!
//! - `operation`: what is posted, and `requests`: the work requests of a run,
//!   prepared beforehand;
//! - `bandwidth`: the sender's loop, and `course`: what it is told to do
//!   (so many messages, so many seconds, until interrupted);
//! - `receiver`: the receiver's loop, and `duplex`: both loops in one, where
//!   messages consume receives;
//! - `credits`: how a sender over iWARP knows what the receiver has room for;
//! - `latency`: the ping-pong, and `arrival`: how it learns of a message;
//!   `round_trip`: the latency of operations that are answered;
//! - `sleeper`: what a loop does while there is nothing to do;
//! - `phases`: the parts of a timed run;
//! - `pacer`: the software rate limiter;
//! - `live`: lines about how a run gets on;
//! - `validation`: the sender's loop under `--data_validation`, and the look
//!   at what came in;
//! - `watchdog`: what keeps a loop from spinning for ever.

mod arrival;
mod bandwidth;
mod course;
mod credits;
mod duplex;
mod error;
mod latency;
mod live;
mod operation;
mod pacer;
mod phases;
mod receiver;
mod requests;
mod round_trip;
mod sleeper;
mod validation;
mod watchdog;

pub use error::RunError;

pub(crate) use arrival::{LastByte, Receipt};
pub(crate) use bandwidth::Sender;
pub(crate) use course::{Counted, Course, Endless, Timed};
pub(crate) use credits::{Granted, Returns, WORDS};
pub(crate) use duplex::Duplex;
pub(crate) use latency::{CountedRounds, Game, PingPong, Table, TimedRounds};
pub(crate) use live::Live;
pub(crate) use operation::Operation;
pub(crate) use phases::Phases;
pub(crate) use receiver::{Receiver, post_receives};
pub(crate) use requests::{Prepared, PreparedReceives, Route, Shape};
pub(crate) use round_trip::RoundTrips;
pub(crate) use sleeper::Sleeper;
pub(crate) use validation::{Credit, RingSender, Target, Validation, Verdict};
pub(crate) use watchdog::Watchdog;
