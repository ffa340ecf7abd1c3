//! The object-safe traits that every provider implements.
//!
//! Objects release themselves when dropped. They keep alive what they depend
//! on, so the order of dropping doesn't matter. Passing an object of another
//! context is refused with [`VerbsError::ForeignObject`](super::VerbsError).

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use super::{
    AccessFlags, AddressVector, AsyncEvent, Completion, DeviceAttributes, Gid, GidEntry,
    PortAttributes, PostError, QpAttributes, QpCapabilities, QpInit, QpType, ReceiveRequest,
    Result, SendRequest, Transport, VerbsError,
};
use crate::memory::MemoryRange;

/// A device that can be opened (`struct ibv_device`).
pub trait Device: Send + Sync + fmt::Debug {
    /// Name, as users give it with `-d`.
    fn name(&self) -> &str;

    /// EUI-64 of the node.
    fn node_guid(&self) -> u64;

    /// Opens the device. Contexts are independent of each other.
    ///
    /// # Errors
    /// When the kernel refuses a resource, or somebody else holds it.
    fn open(&self) -> Result<Arc<dyn Context>>;
}

/// An open device (`struct ibv_context`).
pub trait Context: Send + Sync {
    /// Name of the device.
    fn device_name(&self) -> &str;

    /// Identity and limits (`ibv_query_device`).
    ///
    /// # Errors
    /// When the kernel refuses.
    fn query_device(&self) -> Result<DeviceAttributes>;

    /// State and limits of a port, counted from 1 (`ibv_query_port`).
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such port.
    fn query_port(&self, port: u8) -> Result<PortAttributes>;

    /// One entry of a port's GID table (`ibv_query_gid_ex`).
    ///
    /// # Errors
    /// `NoEntry` for an empty entry, `InvalidArgument` beyond the table.
    fn query_gid(&self, port: u8, index: u32) -> Result<GidEntry>;

    /// All valid entries of all ports (`ibv_query_gid_table`).
    ///
    /// # Errors
    /// When the kernel refuses.
    fn query_gid_table(&self) -> Result<Vec<GidEntry>>;

    /// One entry of a port's P_Key table (`ibv_query_pkey`).
    ///
    /// # Errors
    /// `InvalidArgument` beyond the table.
    fn query_pkey(&self, port: u8, index: u16) -> Result<u16>;

    /// Makes a protection domain (`ibv_alloc_pd`).
    ///
    /// # Errors
    /// `Exhausted` at the device's limit.
    fn alloc_pd(&self) -> Result<Box<dyn ProtectionDomain>>;

    /// Registers memory (`ibv_reg_mr`). The range stays allocated as long as
    /// the region exists.
    ///
    /// # Errors
    /// `InvalidArgument` for flags that contradict each other or an empty
    /// range, `Exhausted` at the device's limit.
    fn reg_mr(
        &self,
        pd: &dyn ProtectionDomain,
        range: MemoryRange,
        access: AccessFlags,
    ) -> Result<Box<dyn MemoryRegion>>;

    /// Registers a part of a dma-buf, memory of another device such as a GPU
    /// (`ibv_reg_dmabuf_mr`). `range` is in bytes of the buffer; `iova` is the
    /// address that work requests and peers use for its beginning, equal to
    /// that in the bits inside a page.
    ///
    /// # Errors
    /// `Unsupported` when kernel or driver have none of it, `InvalidArgument`
    /// as for [`Self::reg_mr`].
    fn reg_dmabuf_mr(
        &self,
        pd: &dyn ProtectionDomain,
        buffer: BorrowedFd<'_>,
        range: Range<u64>,
        iova: u64,
        access: AccessFlags,
    ) -> Result<Box<dyn MemoryRegion>> {
        let _ = (pd, buffer, range, iova, access);
        Err(VerbsError::Unsupported {
            what: "registering dma-buf memory",
        })
    }

    /// Makes a type-2 memory window, which is bound by
    /// [`SendOp::BindWindow`](super::SendOp::BindWindow) (`ibv_alloc_mw` with
    /// `IBV_MW_TYPE_2`). Windows of type 1 aren't in this interface.
    ///
    /// # Errors
    /// `Exhausted` at the device's limit, `Unsupported` when the device has
    /// no windows.
    fn alloc_window(&self, pd: &dyn ProtectionDomain) -> Result<Box<dyn MemoryWindow>>;

    /// Makes a channel that completion queues notify (`ibv_create_comp_channel`).
    ///
    /// # Errors
    /// When the kernel refuses a file descriptor.
    fn create_comp_channel(&self) -> Result<Arc<dyn CompletionChannel>>;

    /// Makes a completion queue (`ibv_create_cq`).
    ///
    /// # Errors
    /// `InvalidArgument` for a depth of 0 or above the device's limit.
    fn create_cq(&self, init: &CqInit<'_>) -> Result<Box<dyn CompletionQueue>>;

    /// Makes a shared receive queue (`ibv_create_srq`).
    ///
    /// # Errors
    /// `InvalidArgument` for sizes above the device's limits.
    fn create_srq(
        &self,
        pd: &dyn ProtectionDomain,
        init: &SrqInit<'_>,
    ) -> Result<Box<dyn SharedReceiveQueue>>;

    /// Makes a queue pair in RESET (`ibv_create_qp`).
    ///
    /// # Errors
    /// `InvalidArgument` for sizes above the device's limits.
    fn create_qp(&self, pd: &dyn ProtectionDomain, init: &QpInit<'_>)
    -> Result<Box<dyn QueuePair>>;

    /// Makes an address handle for UD (`ibv_create_ah`).
    ///
    /// # Errors
    /// `InvalidArgument` for a GID index without an entry.
    fn create_ah(
        &self,
        pd: &dyn ProtectionDomain,
        av: &AddressVector,
    ) -> Result<Box<dyn AddressHandle>>;

    /// Makes an XRC domain (`ibv_open_xrcd`).
    ///
    /// # Errors
    /// `Unsupported` when the device has no XRC.
    fn alloc_xrcd(&self) -> Result<Box<dyn XrcDomain>>;

    /// Lets the provider work: receive, answer, retransmit. A loop that spins
    /// on memory instead of a completion queue calls this; a hardware
    /// provider has nothing to do.
    fn progress(&self);

    /// Says that the caller, who has polled, does something else for a while.
    /// A provider whose work is done by whoever polls then sees to it by
    /// itself at once, rather than after noticing; others do nothing.
    fn stop_polling(&self) {}

    /// What carries the messages of this device.
    fn transport(&self) -> Transport {
        Transport::InfiniBand
    }

    /// What is wrong with the device or its ports, as far as can be told
    /// without harm: why requests fail that were good. `None` when nothing is.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Readable when [`Self::next_async_event`] has something to tell.
    fn async_fd(&self) -> BorrowedFd<'_>;

    /// The next asynchronous event, if there is one.
    fn next_async_event(&self) -> Option<AsyncEvent>;
}

/// A protection domain: objects of different domains don't mix (IBTA 10.2.3).
pub trait ProtectionDomain: Send + Sync {
    /// For the provider to recognise its own.
    fn as_any(&self) -> &dyn Any;
}

/// A domain that XRC targets and their shared receive queues have in common.
pub trait XrcDomain: Send + Sync {
    /// For the provider to recognise its own.
    fn as_any(&self) -> &dyn Any;
}

/// Registered memory. Dropping it ends all access to it, that through memory
/// windows as well: those that are bound to it become free.
pub trait MemoryRegion: Send + Sync {
    /// Key for own work requests.
    fn lkey(&self) -> u32;
    /// Key for the peer; 0 when the region has no remote access.
    fn rkey(&self) -> u32;
    /// Virtual address of the first byte.
    fn addr(&self) -> u64;
    /// Bytes.
    fn len(&self) -> u64;
    /// Never: an empty region can't be registered.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A memory window of type 2: a key for a part of a region that can be
/// revoked at little cost (IBTA 10.6). Dropped, it is unbound.
pub trait MemoryWindow: Send + Sync {
    /// The key as allocated; no access is possible with it. Its upper 24 bits
    /// name the window and stay; the low 8 bits come with each binding, see
    /// [`WindowBinding::rkey`](super::WindowBinding::rkey).
    fn rkey(&self) -> u32;
}

/// Where completion queues announce completions.
pub trait CompletionChannel: Send + Sync {
    /// Readable when [`Self::next_event`] has something to tell.
    fn fd(&self) -> BorrowedFd<'_>;

    /// The handle of the next queue that has been notified, if there is one.
    /// Doesn't wait.
    fn next_event(&self) -> Option<u32>;

    /// Waits for the next notification, at most `timeout` (without end if
    /// `None`). Returns the queue's handle, or `None` when the time is over.
    ///
    /// # Errors
    /// When the kernel refuses to wait, for example because of a signal.
    fn wait(&self, timeout: Option<Duration>) -> Result<Option<u32>>;

    /// For the provider to recognise its own.
    fn as_any(&self) -> &dyn Any;
}

/// What a completion queue is created from.
#[derive(Clone, Copy, Default)]
pub struct CqInit<'a> {
    /// Completions it holds; more is an overrun, which kills it.
    pub depth: u32,
    /// Channel to notify.
    pub channel: Option<&'a Arc<dyn CompletionChannel>>,
}

/// Which completions raise a notification (`ibv_req_notify_cq`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// The next one.
    Any,
    /// The next solicited or failed one.
    Solicited,
}

/// Where completions are found.
pub trait CompletionQueue: Send {
    /// Number that names the queue in events.
    fn handle(&self) -> u32;

    /// Completions it holds.
    fn depth(&self) -> u32;

    /// Takes completions, oldest first, and returns how many; lets the
    /// provider work when there are none.
    fn poll(&mut self, completions: &mut [Completion]) -> usize;

    /// Asks for one notification through the channel. Poll once more after
    /// this: completions that were there before need not notify.
    fn arm(&mut self, notify: Notify);

    /// For the provider to recognise its own.
    fn as_any(&self) -> &dyn Any;
}

/// What a shared receive queue is created from.
#[derive(Clone, Copy, Default)]
pub struct SrqInit<'a> {
    /// Outstanding requests.
    pub max_wr: u32,
    /// Scatter/gather entries per request.
    pub max_sge: u32,
    /// Below how many requests an event is raised; 0 is never.
    pub limit: u32,
    /// For an XRC queue: its domain and where its completions go.
    pub xrc: Option<(&'a dyn XrcDomain, &'a dyn CompletionQueue)>,
}

/// A receive queue that several queue pairs draw from.
pub trait SharedReceiveQueue: Send {
    /// Number that names the queue in events and, for XRC, on the wire.
    fn number(&self) -> u32;

    /// Queues receive requests.
    ///
    /// # Errors
    /// [`PostError`] names the first request that was refused.
    fn post_recv(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError>;

    /// Arms the limit event (`ibv_modify_srq`).
    ///
    /// # Errors
    /// `InvalidArgument` for a limit above the queue's depth.
    fn set_limit(&mut self, limit: u32) -> Result<()>;

    /// For the provider to recognise its own.
    fn as_any(&self) -> &dyn Any;
}

/// A queue pair.
pub trait QueuePair: Send {
    /// Its number.
    fn qpn(&self) -> u32;

    /// Its service.
    fn qp_type(&self) -> QpType;

    /// The queue sizes that were granted, at least those asked for.
    fn capabilities(&self) -> QpCapabilities;

    /// Changes attributes (`ibv_modify_qp`); on an error nothing has changed.
    ///
    /// # Errors
    /// The transition or an attribute isn't allowed (IBTA 10.3.1, table 91).
    fn modify(&mut self, attributes: &QpAttributes) -> Result<()>;

    /// All attributes (`ibv_query_qp`).
    ///
    /// # Errors
    /// When the kernel refuses.
    fn query(&self) -> Result<QpAttributes>;

    /// Queues send requests and starts them.
    ///
    /// # Errors
    /// [`PostError`] names the first request that was refused.
    fn post_send(&mut self, requests: &[SendRequest<'_>]) -> Result<(), PostError>;

    /// Queues receive requests.
    ///
    /// # Errors
    /// [`PostError`] names the first request that was refused.
    fn post_recv(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError>;

    /// Receives what is sent to queue pair 0xffffff of a multicast group, with
    /// the own Q_Key (`ibv_attach_mcast`); UD only. Attaching twice is
    /// attaching once. Own messages to the group arrive, too.
    ///
    /// # Errors
    /// `Unsupported` when the device has no multicast, `InvalidArgument` for a
    /// GID that is no group's, `Exhausted` at the device's limits.
    fn attach_multicast(&mut self, mgid: &Gid) -> Result<()> {
        let _ = mgid;
        Err(VerbsError::Unsupported { what: "multicast" })
    }

    /// Ends what [`Self::attach_multicast`] began (`ibv_detach_mcast`).
    ///
    /// # Errors
    /// `Unsupported` when the device has no multicast, `InvalidArgument` when
    /// the queue pair isn't attached.
    fn detach_multicast(&mut self, mgid: &Gid) -> Result<()> {
        let _ = mgid;
        Err(VerbsError::Unsupported { what: "multicast" })
    }
}

/// The path of a UD request.
pub trait AddressHandle: Send + Sync {
    /// For the provider to recognise its own.
    fn as_any(&self) -> &dyn Any;
}
