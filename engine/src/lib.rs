//! The measurement behind the `ib_*` commands.

pub mod exchange;
pub mod report;
pub mod stats;
