//! The measurement behind the `ib_*` commands.
//!
//! | module | |
//! |---|---|
//! | [`words`] | the words of a test: verb, measurement, transport service |
//! | [`options`] | the command line: one table of options, and stock perftest's rules |
//! | [`exchange`] | the control dialogue with the peer |
//! | [`tool`] | a test from its parameters to its end |
//! | [`device`] | which device it runs over |
//! | `setup` | memory, queues, states of queue pairs |
//! | `traffic` | the dialogue's plan, step by step |
//! | `run` | the loops that post and poll |
//! | [`stats`] | from time stamps to figures |
//! | [`report`] | from figures to stock's screens and files |
//! | [`failure`] | what can go wrong, and how that is told |

mod affinity;
mod counters;
pub mod device;
pub mod exchange;
pub mod failure;
mod host;
pub mod interrupt;
mod line;
mod loopback;
mod manager;
mod negotiation;
pub mod options;
mod psn;
pub mod report;
mod reporter;
mod run;
pub mod screen;
mod setup;
pub mod stats;
mod terms;
pub mod tool;
mod traffic;
pub mod words;

pub use run::RunError;
