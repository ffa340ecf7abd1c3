//! The transport layer, sans-IO: queue pairs that turn posted work and
//! received packets into packets to send and completions.
//!
//! No clock, no socket, no thread: the time is an argument, packets come from
//! and go to a [`crate::link::Link`] in other hands, and memory is reached
//! only through the key-checked `memory::MemoryTable`.
//!
//! - [`Nic`]: all objects of one device; the receive pipeline and the scheduler.
//! - `requester`: segmentation, acknowledgements, retries (RC, XRC, UC, UD).
//! - `responder`: checks, placement, NAKs, read responses (RC, XRC).
//! - `multicast`: groups, and who is attached to them (UD).
//! - `datagram`, `unreliable`: the receiving halves of UD and UC.
//! - `attributes`: which attribute which state transition takes.

#![forbid(unsafe_code)]

pub(crate) mod attributes;
mod completion;
mod counters;
pub(crate) mod datagram;
mod domains;
mod events;
pub(crate) mod memory;
pub(crate) mod multicast;
mod nic;
mod placement;
mod queue_pair;
mod receive_queue;
pub(crate) mod requester;
pub(crate) mod responder;
mod send_queue;
mod srq;
#[cfg(test)]
mod tests;
mod timer;
pub(crate) mod unreliable;

pub use attributes::transition_masks;
pub use counters::Counters;
pub use datagram::RoutedAddress;
pub use memory::{Keys, PdId};
pub use multicast::group_address;
pub use nic::{Acks, Nic, NicConfig, NicLimits, Random, Receiver};
pub use queue_pair::QpSettings;
pub use srq::{SrqSettings, XrcQueue};

/// Identifies a completion queue of a [`Nic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CqId(pub(crate) u32);

impl CqId {
    /// The number that events carry.
    #[must_use]
    pub fn handle(self) -> u32 {
        self.0
    }
}

/// Identifies an XRC domain of a [`Nic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct XrcdId(pub(crate) u32);

/// Identifies a shared receive queue of a [`Nic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SrqId(pub(crate) u32);

impl SrqId {
    /// The number that events and, of XRC queues, the XRCETH carry: 24 bits.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}
