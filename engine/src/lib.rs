//! The measurement behind the `ib_*` commands.

pub mod exchange;
pub mod options;
pub mod report;
pub mod stats;
