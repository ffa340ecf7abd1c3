//! The drivers of the kernel that have queues in this process's memory.
//!
//! What all have in common (the commands that make and release objects, and
//! who keeps whom alive) is in [`context`] and [`objects`]; a driver adds its
//! queues by implementing [`Driver`]. [`registry`] knows which object an event
//! concerns, [`windows`] the keys of memory windows.

pub(crate) mod context;
pub(crate) mod objects;
pub(crate) mod registry;
pub(crate) mod rxe;
pub(crate) mod siw;
pub(crate) mod windows;

use std::sync::Arc;

use self::context::Core;
use self::objects::{CqHandle, DomainHandle, SrqHandle, XrcdHandle};
use crate::memory::Buffer;
use crate::uverbs::Uverbs;
use crate::uverbs::qp::NewQp;
use crate::uverbs::queues::{MadeCq, MadeSrq, NewCq, NewSrq};
use crate::{
    AddressHandle, AddressVector, Completion, Notify, PostError, QueuePair, ReceiveRequest, Result,
    Transport,
};

/// What a driver adds to the common commands.
pub(crate) trait Driver: Send + Sync + 'static {
    /// Its number (`enum rdma_driver_id`).
    const ID: u32;
    /// What carries its messages.
    const TRANSPORT: Transport = Transport::InfiniBand;
    /// Bytes that it answers when a context is made.
    const CONTEXT_ANSWER: usize;
    /// Bytes that it wants and answers when memory is registered, at most 8.
    const REGISTRATION: usize;
    /// Its completion queues.
    type Completions: Completions;
    /// Its shared receive queues.
    type Receives: Receives;

    /// Makes a completion queue and maps it.
    ///
    /// # Errors
    /// When the kernel refuses, or answers oddly.
    fn create_cq(uverbs: &Uverbs, new: &NewCq<'_>) -> Result<(MadeCq, Self::Completions)>;

    /// Makes a shared receive queue and maps it.
    ///
    /// # Errors
    /// When the kernel refuses, or answers oddly.
    fn create_srq(uverbs: &Uverbs, new: &NewSrq) -> Result<(MadeSrq, Self::Receives)>;

    /// Arms the limit event of a shared receive queue.
    ///
    /// # Errors
    /// `InvalidArgument` for a limit above the queue's depth.
    fn set_srq_limit(uverbs: &Uverbs, handle: u32, limit: u32) -> Result<()>;

    /// Makes a queue pair and maps its queues.
    ///
    /// # Errors
    /// When the kernel refuses, or answers oddly.
    fn create_qp(owners: QpOwners, new: &NewQp) -> Result<Box<dyn QueuePair>>;

    /// Makes an address handle.
    ///
    /// # Errors
    /// When there is no way to the peer.
    fn create_ah(domain: &Arc<DomainHandle>, av: &AddressVector) -> Result<Box<dyn AddressHandle>>;
}

/// What a queue pair keeps alive.
pub(crate) struct QpOwners {
    pub(crate) domain: Arc<DomainHandle>,
    pub(crate) _cqs: [Arc<CqHandle>; 2],
    pub(crate) _srq: Option<Arc<SrqHandle>>,
    pub(crate) _xrcd: Option<Arc<XrcdHandle>>,
}

impl QpOwners {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.domain.core
    }
}

/// A mapped completion queue.
pub(crate) trait Completions: Send + 'static {
    /// Takes completions, oldest first, and returns how many.
    fn poll(&mut self, completions: &mut [Completion]) -> usize;

    /// Asks for one notification.
    ///
    /// # Errors
    /// What the kernel says.
    fn arm(&mut self, uverbs: &Uverbs, handle: u32, notify: Notify) -> std::io::Result<()>;
}

/// A mapped receive queue, shared or of one queue pair.
pub(crate) trait Receives: Send + 'static {
    /// Queues receive requests.
    ///
    /// # Errors
    /// [`PostError`] names the first request that was refused.
    fn post(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError>;
}

/// Writes a field of a queue that was mapped with room for it: queues are
/// checked when they are mapped, and their indices are always inside.
#[inline]
fn put(memory: &Buffer, offset: usize, bytes: &[u8]) {
    let written = memory.write(offset, bytes);
    debug_assert!(written.is_ok(), "{written:?}");
}

/// Reads an entry of such a queue.
#[inline]
fn get<T: zerocopy::FromBytes + zerocopy::IntoBytes + Default>(
    memory: &Buffer,
    offset: usize,
) -> T {
    let mut entry = T::default();
    let read = memory.read(offset, entry.as_mut_bytes());
    debug_assert!(read.is_ok(), "{read:?}");
    entry
}
