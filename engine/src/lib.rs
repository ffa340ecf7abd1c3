//! The measurement behind the `ib_*` commands.
