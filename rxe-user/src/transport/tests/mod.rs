//! The transport as a whole: endpoints that exchange packets on a network
//! that the test controls, and endpoints that are given packets by hand.
//! `T-nnn` in comments are cases of the protocol's test plan.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod attributes;
mod chaos;
mod conformance;
mod faults;
mod harness;
mod limits;
mod messages;
mod recovery;
mod responses;
mod simulated_link;
mod states;
