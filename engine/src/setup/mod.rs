//! From an opened device to connected queue pairs, in the order of a test:
//!
//! - `adapter`: the device and its port, and what they allow;
//! - `layout`: where in the buffer which message lies, and `ring`: the same
//!   under `--data_validation`;
//! - `memory`: the memory itself, and `payload`: what it holds on demand;
//! - `credits`: what the ends of SEND over iWARP tell each other meanwhile;
//! - `resources`: completion queues, queue pairs;
//! - `connect`: the states of a queue pair, and what we tell the peer of it.

mod adapter;
mod connect;
mod credits;
mod layout;
mod memory;
mod payload;
mod resources;
mod ring;

pub(crate) use adapter::Adapter;
pub(crate) use connect::{Path, QKEY, address_vector, join_group, to_init, to_rtr, to_rts};
pub(crate) use credits::CreditMemory;
#[cfg(test)]
pub(crate) use credits::fake;
pub(crate) use layout::{Layout, Place};
pub(crate) use memory::Memory;
pub(crate) use payload::Payload;
pub use payload::PayloadError;
pub(crate) use resources::{Queues, Resources};
pub(crate) use ring::RingLayout;
