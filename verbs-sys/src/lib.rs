//! The vocabulary of RDMA verbs, as Rust types and object-safe traits.
//!
//! [`verbs`] holds the words of the InfiniBand specification (work requests,
//! completions, queue pair states and attributes, access flags, GIDs) and the
//! traits that every provider implements, be it a kernel device or the
//! userspace NIC. [`memory`] holds the buffers that are registered with a
//! device. [`sysfs`] lists the kernel's devices, [`kernel`] opens them,
//! [`nldev`] asks the kernel about them, [`ucma`] is its connection manager.
//!
//! The cost model is that of libibverbs: one virtual call serves a batch,
//! because the hot calls take slices.

mod drivers;
pub mod kernel;
pub mod memory;
pub mod nldev;
pub mod sysfs;
mod uapi;
pub mod ucma;
mod uverbs;
pub mod verbs;

pub use verbs::*;
