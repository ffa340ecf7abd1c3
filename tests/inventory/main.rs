//! The inventory commands, on records of real hosts and on odd ones.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod bad_input;
mod capabilities;
mod commands;
mod golden_rdma;
mod golden_verbs;
mod host;
mod netlink;
mod notes;
mod objects;
mod record;
mod state;
mod verbs;
