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

/// The figures of one way to send packets.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    /// Payload of 4096-byte packets, in 10^9 bytes per second.
    pub(crate) gigabytes_per_second: f64,
    /// Packets as large as an RDMA Write of 8 bytes, in 10^6 per second.
    pub(crate) million_packets_per_second: f64,
    /// Half round trip of such packets.
    pub(crate) latency: pingpong::Report,
}

/// Measures once.
pub(crate) fn measure(way: Way, options: Options) -> Result<Figures> {
    Ok(Figures {
        gigabytes_per_second: stream::measure(way, LARGE, options)?.gigabytes_per_second(),
        million_packets_per_second: stream::measure(way, port::SMALL, options)?
            .million_packets_per_second(),
        latency: pingpong::measure(way, options)?,
    })
}
