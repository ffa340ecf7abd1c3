//! What UDP sockets can carry over `lo`, measured between two processes.
//!
//! | file | |
//! |---|---|
//! | `stream` | packets in one direction, as fast as the receiver takes them |
//! | `pingpong` | one packet back and forth, both ends spinning |
//! | `port` | what both need of a way to send packets |
//! | `plain`, `link` | the two ways |
//! | `peer` | the other process |
//!
//! Who measures passes the arguments behind [`peer::FLAG`] on to [`peer::run`]:
//! the other process is the same program once more.

use std::error::Error;
use std::time::Duration;

mod link;
pub(crate) mod peer;
mod pingpong;
mod plain;
mod port;
mod stream;

use peer::Way;

pub(crate) type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Payload of the large packets: the largest path MTU.
const LARGE: usize = 4096;

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// How long each stream runs.
    pub(crate) duration: Duration,
    /// Whether the two processes stay on CPUs 0 and 1.
    pub(crate) pin: bool,
}

/// Payload of 4096-byte packets, in 10^9 bytes per second.
pub(crate) fn bandwidth(way: Way, options: Options) -> Result<f64> {
    Ok(stream::measure(way, LARGE, options)?.gigabytes_per_second())
}

/// Packets as large as an RDMA Write of 8 bytes, in 10^6 per second.
pub(crate) fn packet_rate(way: Way, options: Options) -> Result<f64> {
    Ok(stream::measure(way, port::SMALL, options)?.million_packets_per_second())
}

/// Half of the round trip of such packets.
pub(crate) fn latency(way: Way, options: Options) -> Result<pingpong::Report> {
    pingpong::measure(way, options)
}
