//! Why a verb was refused.

use std::io;

use super::{QpState, QpType};

/// Result of a verb.
pub type Result<T, E = VerbsError> = std::result::Result<T, E>;

/// Why a verb was refused: whose fault, what was seen, what was expected.
#[derive(Debug, thiserror::Error)]
pub enum VerbsError {
    /// An argument is out of its range (`EINVAL`).
    #[error("{what} is {seen}, expected {expected}")]
    InvalidArgument {
        /// The argument.
        what: &'static str,
        /// Its value.
        seen: String,
        /// The values it may have.
        expected: String,
    },
    /// The queue pair can't go from one state to the other (IBTA 10.3.1).
    #[error("a {qp_type} queue pair can't go from {from} to {to}")]
    InvalidTransition {
        /// Service type.
        qp_type: QpType,
        /// State it is in.
        from: QpState,
        /// State that was asked for.
        to: QpState,
    },
    /// A state transition lacks an attribute that it needs (IBTA 10.3.1).
    #[error("{from} to {to} needs the attribute {attribute}")]
    MissingAttribute {
        /// State it is in.
        from: QpState,
        /// State that was asked for.
        to: QpState,
        /// What is missing.
        attribute: &'static str,
    },
    /// A state transition carries an attribute that it must not change.
    #[error("{from} to {to} doesn't take the attribute {attribute}")]
    UnexpectedAttribute {
        /// State it is in.
        from: QpState,
        /// State that was asked for.
        to: QpState,
        /// What is too much.
        attribute: &'static str,
    },
    /// The operation isn't possible in the queue pair's state.
    #[error("the queue pair is in {state}, {operation} isn't possible there")]
    InvalidState {
        /// State it is in.
        state: QpState,
        /// What was asked for.
        operation: &'static str,
    },
    /// The work queue holds as many requests as it was created for (`ENOMEM`).
    #[error("the {queue} is full ({depth} work requests); poll completions before posting more")]
    QueueFull {
        /// Which queue.
        queue: &'static str,
        /// Its depth.
        depth: u32,
    },
    /// A limit of the device is reached (`ENOMEM`).
    #[error("no more {what}: the device has {limit}")]
    Exhausted {
        /// What ran out.
        what: &'static str,
        /// How many there are.
        limit: u64,
    },
    /// An object of another context or provider was passed.
    #[error("the {what} belongs to another context")]
    ForeignObject {
        /// Which object.
        what: &'static str,
    },
    /// The object is in use (`EBUSY`).
    #[error("the {what} is still in use by {user}")]
    Busy {
        /// Which object.
        what: &'static str,
        /// By what.
        user: &'static str,
    },
    /// The queue pair's service doesn't have this operation.
    #[error("{operation} isn't possible on a {qp_type} queue pair")]
    UnsupportedOperation {
        /// Service type.
        qp_type: QpType,
        /// What was asked for.
        operation: &'static str,
    },
    /// The provider lacks this (`EOPNOTSUPP`).
    #[error("this device doesn't support {what}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// There is no such table entry (`ENODATA`).
    #[error("{what} {index} is empty")]
    NoEntry {
        /// Which table.
        what: &'static str,
        /// Which entry.
        index: u32,
    },
    /// Another holder has the UDP port of RoCEv2 on the address.
    #[error("UDP port {port} on {address} is held by {holder}; {way_out}")]
    PortHeld {
        /// Local address.
        address: std::net::IpAddr,
        /// UDP port, 4791.
        port: u16,
        /// Who holds it, as far as it can be told.
        holder: String,
        /// What the user can do.
        way_out: String,
    },
    /// The kernel refused, and there is something the user can do about it.
    #[error("{action}: {source}; {advice}")]
    Refused {
        /// What was tried.
        action: String,
        /// What the kernel said.
        source: io::Error,
        /// What the user can do.
        advice: String,
    },
    /// A device that the system has can't be used.
    #[error("{device} can't be used: {reason}")]
    Unusable {
        /// Name of the device.
        device: String,
        /// Why not, and what the user can do.
        reason: String,
        /// The nearest `errno`.
        errno: i32,
    },
    /// The kernel refused.
    #[error("{action}: {source}")]
    Io {
        /// What was tried.
        action: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl VerbsError {
    /// The `errno` that libibverbs would return.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::InvalidArgument { .. }
            | Self::InvalidTransition { .. }
            | Self::MissingAttribute { .. }
            | Self::UnexpectedAttribute { .. }
            | Self::InvalidState { .. }
            | Self::ForeignObject { .. }
            | Self::UnsupportedOperation { .. } => libc::EINVAL,
            Self::QueueFull { .. } | Self::Exhausted { .. } => libc::ENOMEM,
            Self::Busy { .. } => libc::EBUSY,
            Self::Unsupported { .. } => libc::EOPNOTSUPP,
            Self::NoEntry { .. } => libc::ENODATA,
            Self::PortHeld { .. } => libc::EADDRINUSE,
            Self::Unusable { errno, .. } => *errno,
            Self::Io { source, .. } | Self::Refused { source, .. } => {
                source.raw_os_error().unwrap_or(libc::EIO)
            }
        }
    }
}

/// A post that stopped part way: the requests before [`Self::posted`] are
/// queued, the one at that index was refused (`bad_wr` of `ibv_post_send(3)`).
#[derive(Debug, thiserror::Error)]
#[error("work request {posted} of the list was refused: {source}")]
pub struct PostError {
    /// Requests that were queued.
    pub posted: usize,
    /// Why the next one wasn't.
    pub source: VerbsError,
}
