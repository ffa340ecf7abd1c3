//! The objects of a context. Each keeps alive what it was made from and
//! releases itself when dropped.

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use super::context::Core;
use super::{Completions, Driver, QpOwners, Receives};
use crate::memory::MemoryRange;
use crate::uverbs::events::CompletionEvents;
use crate::uverbs::failed;
use crate::uverbs::objects::Registered;
use crate::uverbs::qp::{MadeQp, NewQp};
use crate::{
    Completion, CompletionChannel, CompletionQueue, EventSource, Gid, MemoryRegion, MemoryWindow,
    Notify, PostError, ProtectionDomain, QpAttributes, QpCapabilities, QpState, ReceiveRequest,
    Result, SharedReceiveQueue, VerbsError, XrcDomain,
};

/// A domain of the kernel; released with the last object made in it.
pub(crate) struct DomainHandle {
    pub(crate) core: Arc<Core>,
    pub(crate) handle: u32,
}

impl Drop for DomainHandle {
    fn drop(&mut self) {
        self.core.uverbs.dealloc_pd(self.handle);
    }
}

/// A protection domain.
pub(crate) struct Domain(pub(crate) Arc<DomainHandle>);

impl ProtectionDomain for Domain {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An XRC domain of the kernel; released with the last object made in it.
pub(crate) struct XrcdHandle {
    pub(crate) core: Arc<Core>,
    pub(crate) handle: u32,
}

/// An XRC domain.
pub(crate) struct Xrcd(pub(crate) Arc<XrcdHandle>);

impl Drop for XrcdHandle {
    fn drop(&mut self) {
        self.core.uverbs.close_xrcd(self.handle);
    }
}

impl XrcDomain for Xrcd {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Registered memory.
pub(crate) struct Region {
    pub(crate) domain: Arc<DomainHandle>,
    pub(crate) registered: Registered,
    pub(crate) addr: u64,
    pub(crate) len: u64,
    /// What must not be unmapped before the registration has ended; memory of
    /// other devices looks after itself.
    pub(crate) _memory: Option<MemoryRange>,
}

impl Drop for Region {
    fn drop(&mut self) {
        self.domain.core.uverbs.dereg_mr(self.registered.handle);
    }
}

impl MemoryRegion for Region {
    fn lkey(&self) -> u32 {
        self.registered.lkey
    }

    fn rkey(&self) -> u32 {
        self.registered.rkey
    }

    fn addr(&self) -> u64 {
        self.addr
    }

    fn len(&self) -> u64 {
        self.len
    }
}

/// A memory window.
pub(crate) struct Window {
    pub(crate) domain: Arc<DomainHandle>,
    pub(crate) handle: u32,
    pub(crate) rkey: u32,
}

impl Drop for Window {
    fn drop(&mut self) {
        self.domain.core.windows.remove(self.rkey);
        self.domain.core.uverbs.dealloc_mw(self.handle);
    }
}

impl MemoryWindow for Window {
    fn rkey(&self) -> u32 {
        self.rkey
    }
}

/// A completion channel.
#[derive(Debug)]
pub(crate) struct Channel(pub(crate) CompletionEvents);

impl CompletionChannel for Channel {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    fn next_event(&self) -> Option<u32> {
        // The numbers that queues are made with have 32 bits.
        self.0.next().map(|number| number as u32)
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<Option<u32>> {
        self.0
            .wait(timeout)
            .map_err(|error| failed("wait for a completion", error))?;
        Ok(self.next_event())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A completion queue of the kernel; released with the last queue pair that
/// reports there.
pub(crate) struct CqHandle {
    pub(crate) core: Arc<Core>,
    pub(crate) kernel_handle: u32,
    /// Its number in events.
    pub(crate) number: u32,
}

impl Drop for CqHandle {
    fn drop(&mut self) {
        self.core.registry.remove(self.number);
        self.core.uverbs.destroy_cq(self.kernel_handle);
    }
}

/// A completion queue.
pub(crate) struct Cq<C> {
    pub(crate) queue: Arc<CqHandle>,
    pub(crate) depth: u32,
    pub(crate) ring: C,
}

impl<C: Completions> CompletionQueue for Cq<C> {
    fn handle(&self) -> u32 {
        self.queue.number
    }

    fn depth(&self) -> u32 {
        self.depth
    }

    #[inline]
    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        self.ring.poll(completions)
    }

    fn arm(&mut self, notify: Notify) {
        let queue = &*self.queue;
        let armed = self
            .ring
            .arm(&queue.core.uverbs, queue.kernel_handle, notify);
        if let Err(error) = armed {
            log::warn!("cannot ask for a notification: {error}");
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A shared receive queue of the kernel; released with the last queue pair
/// that draws from it.
pub(crate) struct SrqHandle {
    pub(crate) domain: Arc<DomainHandle>,
    pub(crate) handle: u32,
    /// Its number in events and, for XRC, on the wire.
    pub(crate) number: u32,
    /// What the kernel repeats in events.
    pub(crate) user_handle: u32,
    /// Of an XRC queue.
    pub(crate) _xrc: Option<(Arc<XrcdHandle>, Arc<CqHandle>)>,
}

impl Drop for SrqHandle {
    fn drop(&mut self) {
        let core = &self.domain.core;
        core.registry.remove(self.user_handle);
        core.uverbs.destroy_srq(self.handle);
    }
}

/// A shared receive queue.
pub(crate) struct Srq<D: Driver> {
    pub(crate) handle: Arc<SrqHandle>,
    pub(crate) ring: D::Receives,
}

impl<D: Driver> SharedReceiveQueue for Srq<D> {
    fn number(&self) -> u32 {
        self.handle.number
    }

    #[inline]
    fn post_recv(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        self.ring.post(requests)
    }

    fn set_limit(&mut self, limit: u32) -> Result<()> {
        let core = &self.handle.domain.core;
        D::set_srq_limit(&core.uverbs, self.handle.handle, limit)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A queue pair of the kernel.
pub(crate) struct QpHandle {
    owners: QpOwners,
    pub(crate) handle: u32,
    pub(crate) qpn: u32,
    pub(crate) cap: QpCapabilities,
    /// What it was last taken to; the kernel may have taken it to ERR since.
    pub(crate) state: QpState,
    user_handle: u64,
    groups: Vec<Gid>,
}

impl QpHandle {
    pub(crate) fn new(owners: QpOwners, new: &NewQp, made: &MadeQp) -> Self {
        // Numbers that objects are made with have 32 bits.
        let source = EventSource::Qp(made.qpn);
        owners.core().registry.enter(new.user_handle as u32, source);
        Self {
            owners,
            handle: made.handle,
            qpn: made.qpn,
            cap: made.cap,
            state: QpState::Reset,
            user_handle: new.user_handle,
            groups: Vec::new(),
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.owners.core()
    }

    /// Changes attributes.
    pub(crate) fn modify(&mut self, attributes: &QpAttributes) -> Result<()> {
        self.core().uverbs.modify_qp(self.handle, attributes)?;
        self.state = attributes.state.unwrap_or(self.state);
        Ok(())
    }

    /// Asks for all attributes.
    pub(crate) fn query(&self) -> Result<QpAttributes> {
        self.core().uverbs.query_qp(self.handle)
    }

    /// Whether sends may be queued.
    #[inline]
    pub(crate) fn check_send(&self) -> Result<()> {
        match self.state {
            QpState::Reset | QpState::Init | QpState::Rtr => Err(VerbsError::InvalidState {
                state: self.state,
                operation: "sending",
            }),
            QpState::Rts | QpState::Sqd | QpState::Sqe | QpState::Error => Ok(()),
        }
    }

    /// Whether receives may be queued. In ERR the kernel would never return them.
    #[inline]
    pub(crate) fn check_receive(&self) -> Result<()> {
        match self.state {
            QpState::Reset | QpState::Error => Err(VerbsError::InvalidState {
                state: self.state,
                operation: "receiving",
            }),
            _ => Ok(()),
        }
    }

    /// Joins a multicast group, once, or leaves it.
    pub(crate) fn multicast(&mut self, group: Gid, attach: bool) -> Result<()> {
        let attached = self.groups.contains(&group);
        let odd = |expected: &str| VerbsError::InvalidArgument {
            what: "multicast group",
            seen: group.to_string(),
            expected: expected.to_owned(),
        };
        match attach {
            true if !group.is_multicast() => return Err(odd("a multicast GID")),
            true if attached => return Ok(()),
            false if !attached => return Err(odd("one that the queue pair is attached to")),
            _ => {}
        }
        self.core().uverbs.multicast(self.handle, group, attach)?;
        match attach {
            true => self.groups.push(group),
            false => self.groups.retain(|other| *other != group),
        }
        Ok(())
    }
}

impl Drop for QpHandle {
    fn drop(&mut self) {
        let core = Arc::clone(self.core());
        core.registry.remove(self.user_handle as u32);
        // The kernel doesn't release a member of a group.
        for group in std::mem::take(&mut self.groups) {
            if let Err(error) = core.uverbs.multicast(self.handle, group, false) {
                log::warn!("{error}");
            }
        }
        core.uverbs.destroy_qp(self.handle);
    }
}
