//! What can go wrong in the dialogue: whose fault it is, what was seen, what
//! was expected and what to do next; and what stock prints in that case.

use std::fmt;
use std::io;
use std::time::Duration;

use nix::errno::Errno;

use super::parameters::Mismatch;
use super::step::{Direction, Step};
use crate::words::{Side, Tool};

/// A failed exchange. `Display` explains; [`ExchangeError::stock_text`] gives
/// the lines stock prints on stderr.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The host name has no address of the wanted family.
    #[error(
        "host name {host:?} does not resolve to an {family} address ({reason}); \
         check the name, or give the address itself{}", family.hint()
    )]
    Resolve {
        /// The host as the user gave it.
        host: String,
        /// The port as the user gave it.
        port: u16,
        /// The family that was asked for.
        family: Family,
        /// The resolver's reason.
        reason: String,
    },
    /// The local address to bind to is not usable.
    #[error(
        "cannot use {address} as our own address ({reason}); \
         give an address of this host, of the same family as the connection"
    )]
    Source {
        /// The address the user gave.
        address: String,
        /// Why.
        reason: String,
    },
    /// No server took the connection.
    #[error(
        "no server at {host} port {port}: {reason}; start the server first, \
         with the same -p, and check that no firewall is in between"
    )]
    Connect {
        /// The host as the user gave it.
        host: String,
        /// The port.
        port: u16,
        /// What the system said about the last attempt.
        reason: String,
    },
    /// The port cannot be listened on.
    #[error(
        "cannot listen on port {port}: {reason}; if another server has the port, \
         stop it or choose another with -p on both ends"
    )]
    Listen {
        /// The port.
        port: u16,
        /// What the system said.
        reason: String,
    },
    /// Waiting for a client failed.
    #[error("waiting for a client failed: {0}; start again")]
    Accept(io::Error),
    /// No client came in time.
    #[error("no client connected within {0:?}; start the client, or wait longer")]
    NoClient(Duration),
    /// The peer sent nothing, or not enough, in time.
    #[error(
        "{step}: the peer sent {seen} of {expected} bytes within {waited:?}; \
         look at the peer, it may be stopped, stuck, or at another step (other options or version)"
    )]
    Silent {
        /// Where.
        step: Step,
        /// Bytes that came.
        seen: usize,
        /// Bytes of the message.
        expected: usize,
        /// How long we waited.
        waited: Duration,
    },
    /// The peer does not take our message.
    #[error(
        "{step}: the peer did not take our message within {waited:?}; \
         look at the peer, it may be stopped or stuck"
    )]
    NotTaken {
        /// Where.
        step: Step,
        /// How long we waited.
        waited: Duration,
    },
    /// The peer closed the connection.
    #[error(
        "{step}: the peer closed the connection after {seen} of {expected} bytes; \
         its own screen says why"
    )]
    Closed {
        /// Where.
        step: Step,
        /// Bytes that came.
        seen: usize,
        /// Bytes of the message.
        expected: usize,
    },
    /// The connection failed.
    #[error("{step}: connection failed while {}: {source}; the peer or the network is gone", reading_or_writing(*direction))]
    Io {
        /// Where.
        step: Step,
        /// Reading or writing.
        direction: Direction,
        /// What the system said.
        source: io::Error,
    },
    /// The peer is too old, or no perftest at all.
    #[error(
        "version exchange: the peer announced \"{announced}\", expected a version from 5.70 on; \
         update the peer, and check that a perftest tool is on that port"
    )]
    TooOld {
        /// What the peer announced.
        announced: String,
    },
    /// The peer's message makes no sense.
    #[error(
        "{step}: the peer sent {seen}, expected {expected}; \
         check that the peer is a perftest tool of the same kind"
    )]
    Unintelligible {
        /// Where.
        step: Step,
        /// What would have been right.
        expected: String,
        /// What came.
        seen: String,
    },
    /// The parameter block has an impossible length.
    #[error(
        "parameter negotiation: the peer sent a block of {seen} bytes, expected 320; \
         a peer built without the mlx5 library (312 bytes) can only be our client, not our server"
    )]
    BlockLength {
        /// Length of the peer's block.
        seen: usize,
    },
    /// The ends differ in a parameter.
    #[error("{0}; give both ends the same options")]
    Mismatch(Mismatch),
    /// The peer's key record has another form than ours.
    #[error(
        "{step}: the peer sent a record of {seen} bytes, expected {expected}; \
         use a GID on both ends (-x) or on neither, and --data_validation on both or neither"
    )]
    KeyForm {
        /// Where.
        step: Step,
        /// Length of our form.
        expected: usize,
        /// Length of the peer's record.
        seen: usize,
    },
    /// The peer's key record has the right length and cannot be read.
    #[error(
        "{step}: the peer sent \"{seen}\", expected a key record of {expected} bytes; \
         check that the peer is a perftest tool with the same options"
    )]
    MalformedKey {
        /// Where.
        step: Step,
        /// Length of our form.
        expected: usize,
        /// The record, unprintable bytes escaped.
        seen: String,
    },
    /// One GID is an IPv4 address and the other is not.
    #[error(
        "the GIDs are of different types: ours {}, the peer's {}; \
         choose GIDs of one type with -x on both ends",
        gid_text(ours),
        gid_text(theirs)
    )]
    GidTypes {
        /// Our GID.
        ours: Option<[u8; 16]>,
        /// The peer's GID.
        theirs: Option<[u8; 16]>,
    },
}

/// Address family of the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4, the default.
    V4,
    /// IPv6 (`--ipv6-addr`).
    V6,
}

impl Family {
    fn hint(self) -> &'static str {
        match self {
            Self::V4 => " (--ipv6-addr for IPv6)",
            Self::V6 => " (without --ipv6-addr for IPv4)",
        }
    }

    /// The system's number, which stock prints.
    fn number(self) -> i32 {
        match self {
            Self::V4 => nix::sys::socket::AddressFamily::Inet as i32,
            Self::V6 => nix::sys::socket::AddressFamily::Inet6 as i32,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

impl ExchangeError {
    /// What stock 6.29 prints on stderr in this case, line ends included.
    pub fn stock_text(&self, tool: Tool, side: Side) -> String {
        const NO_SOCKET: &str = "Unable to open file descriptor for socket connection\n \
                                 Unable to init the socket connection\n";
        match self {
            Self::Resolve {
                host,
                port,
                family,
                reason,
            } => format!(
                "{reason} for ai_family: {:x} service: {host} port: {port}\n\
                 Problem in resolving basic address and port\n{NO_SOCKET}",
                family.number()
            ),
            Self::Source { .. } => format!("Failed to set source address.\n{NO_SOCKET}"),
            Self::Connect { host, port, .. } => {
                format!("Couldn't connect to {host}:{port}\n{NO_SOCKET}")
            }
            Self::Listen { port, .. } => format!("Couldn't listen to port {port}\n{NO_SOCKET}"),
            Self::Accept(error) => format!(
                "server accept: {}\naccept() failed\n{NO_SOCKET}",
                system_text(error)
            ),
            Self::NoClient(_) => format!("accept() failed\n{NO_SOCKET}"),
            Self::Silent { step, .. }
            | Self::Closed { step, .. }
            | Self::KeyForm { step, .. }
            | Self::Unintelligible { step, .. }
            | Self::Io {
                step,
                direction: Direction::Reading,
                ..
            } => format!(
                "{}{}{}",
                step.stock_read_failure(),
                Direction::Reading.stock_socket_line(side),
                step.stock_failure(tool)
            ),
            Self::BlockLength { .. } => format!(
                "{}{}{}",
                Step::Parameters.stock_read_failure(),
                Direction::Reading.stock_socket_line(side),
                Step::Parameters.stock_failure(tool)
            ),
            Self::MalformedKey { step, seen, .. } => format!(
                "Couldn't parse line <{seen}>\n{}{}",
                Direction::Reading.stock_socket_line(side),
                step.stock_failure(tool)
            ),
            Self::NotTaken { step, .. } => {
                write_failure(*step, &system_text(&Errno::EAGAIN.into()), tool, side)
            }
            Self::Io { step, source, .. } => write_failure(*step, &system_text(source), tool, side),
            Self::TooOld { .. } => {
                "Current implementation is not compatible with versions older than 5.70\n"
                    .to_owned()
            }
            Self::Mismatch(mismatch) => {
                format!(" {mismatch}\n Failed to negotiate parameters\n")
            }
            Self::GidTypes { .. } => "\n Found Incompatibility issue with GID types.\n \
                                      Please Try to use a different IP version.\n\n"
                .to_owned(),
        }
    }
}

fn write_failure(step: Step, reason: &str, tool: Tool, side: Side) -> String {
    format!(
        "client write: {reason}\n{}{}{}",
        step.stock_write_failure(),
        Direction::Writing.stock_socket_line(side),
        step.stock_failure(tool)
    )
}

/// The system's text for an error as `perror` prints it: without the number
/// that the standard library appends.
pub(crate) fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn reading_or_writing(direction: Direction) -> &'static str {
    match direction {
        Direction::Reading => "reading",
        Direction::Writing => "writing",
    }
}

fn gid_text(gid: &Option<[u8; 16]>) -> String {
    gid.map_or_else(
        || "none".to_owned(),
        |gid| std::net::Ipv6Addr::from(gid).to_string(),
    )
}
