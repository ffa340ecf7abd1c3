//! The commands, end to end: two processes on `lo` over the userspace NIC.
//!
//! - `runs`: what options do to a test and to its screen;
//! - `reports`: the report file, and what is measured beyond stock;
//! - `validation`: data that are looked at while they come in;
//! - `connectionless`: a receiver without control connection;
//! - `golden`: screens against those of stock perftest;
//! - `matrix`: every tool in every way of running it;
//! - `complaints`: what users of stock perftest complain about;
//! - `bad_input`: what is refused, and how that is told;
//! - `bad_peer`: peers that are silent, strange, different, or die.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod bad_input;
mod bad_peer;
mod complaints;
mod connectionless;
mod golden;
mod matrix;
mod reports;
mod runs;
mod support;
mod validation;
