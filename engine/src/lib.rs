//! The measurement behind the `ib_*` commands.

pub mod exchange;
