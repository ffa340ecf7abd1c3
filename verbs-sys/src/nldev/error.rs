//! What can go wrong with `NETLINK_RDMA`.

use std::io;

use super::attribute::Attribute;

/// What went wrong between us and the kernel's device management.
#[derive(Debug, thiserror::Error)]
pub enum NldevError {
    /// This kernel has no `NETLINK_RDMA`, because `ib_core` isn't loaded or the
    /// protocol is forbidden.
    #[error("can't open a NETLINK_RDMA socket: {0}; load the kernel module ib_core")]
    NoSocket(#[source] io::Error),
    /// The request can't be sent or the answer can't be received.
    #[error("can't {doing} over NETLINK_RDMA: {source}")]
    Io {
        /// Sending or receiving.
        doing: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The kernel refused the request.
    #[error("the kernel refused to {doing}: {source}{}", .extended.as_deref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Refused {
        /// What it was asked for.
        doing: &'static str,
        /// The error number.
        #[source]
        source: io::Error,
        /// What else the kernel said (extended acknowledgement).
        extended: Option<String>,
    },
    /// A message ends before what its header or an attribute in it announces.
    #[error("the kernel's answer is cut off: {what} needs {needed} bytes, {left} are left")]
    Truncated {
        /// The header or attribute.
        what: String,
        /// Bytes that it takes.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// An attribute has the wrong length or content.
    #[error("the kernel's attribute {attribute} is {seen}, expected {expected}")]
    Odd {
        /// Which one.
        attribute: Attribute,
        /// What it is.
        seen: String,
        /// What it should be.
        expected: &'static str,
    },
    /// An attribute is missing that the answer has to have.
    #[error("the kernel's answer lacks the attribute {0}")]
    Missing(Attribute),
    /// The kernel sent something else than an answer to the request.
    #[error("the kernel sent a message of type {seen:#x}, expected {expected}")]
    Unexpected {
        /// `nlmsg_type`.
        seen: u16,
        /// What was expected.
        expected: &'static str,
    },
    /// A string for the kernel can't be sent.
    #[error("{what} {value:?} can't be sent to the kernel: {why}")]
    Unsendable {
        /// Which string.
        what: &'static str,
        /// The string.
        value: String,
        /// Why not.
        why: &'static str,
    },
}

impl NldevError {
    /// The `errno` of the kernel, where it gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::NoSocket(source) | Self::Io { source, .. } | Self::Refused { source, .. } => {
                source.raw_os_error()
            }
            _ => None,
        }
    }

    /// What the kernel said beside the error number.
    #[must_use]
    pub fn extended(&self) -> Option<&str> {
        match self {
            Self::Refused { extended, .. } => extended.as_deref(),
            _ => None,
        }
    }
}
