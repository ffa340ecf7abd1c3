//! Work requests.

use super::{AccessFlags, AddressHandle};

/// `struct ibv_sge`: one piece of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sge {
    /// Virtual address of the first byte.
    pub addr: u64,
    /// Bytes; entries of length 0 are skipped without a look at the key.
    pub length: u32,
    /// Local key of the region.
    pub lkey: u32,
}

/// The memory a send-queue request works on.
#[derive(Debug, Clone, Copy)]
pub enum Gather<'a> {
    /// Registered memory: source of Sends and Writes, destination of Reads and atomics.
    Sges(&'a [Sge]),
    /// Bytes that are copied when the request is posted (`IBV_SEND_INLINE`);
    /// Sends and Writes only.
    Inline(&'a [u8]),
}

/// Where in the peer's memory a one-sided operation works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteAddress {
    /// Virtual address in the peer's region.
    pub addr: u64,
    /// The region's remote key.
    pub rkey: u32,
}

/// What a type-2 memory window is bound to, and how (`struct ibv_mw_bind_info`
/// and the keys of `IBV_WR_BIND_MW` in `struct ibv_send_wr`).
///
/// The window is bound to the queue pair that executes the request: access
/// through another one is refused (type 2B, IBTA 10.6). It has to be free,
/// that is never bound or invalidated since; its domain and the region's are
/// the queue pair's. The binding ends with an invalidation, or when window,
/// region or queue pair are released; a RESET of the queue pair leaves it.
/// Whatever is wrong fails the request with
/// [`WcStatus::MemoryWindowBindError`](super::WcStatus::MemoryWindowBindError).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowBinding {
    /// A key of the window ([`MemoryWindow::rkey`](super::MemoryWindow::rkey));
    /// the low 8 bits don't matter.
    pub window: u32,
    /// The low 8 bits of the new key, of the consumer's choice: another one
    /// for each binding keeps the old key from coming back to life.
    pub tag: u8,
    /// Local key of the region: one with [`AccessFlags::MW_BIND`] and without
    /// [`AccessFlags::ZERO_BASED`].
    pub lkey: u32,
    /// Virtual address of the first byte, inside the region.
    pub addr: u64,
    /// Bytes, at least 1.
    pub length: u64,
    /// What the peer may do: any of [`AccessFlags::REMOTE`], where write and
    /// atomics need [`AccessFlags::LOCAL_WRITE`] of the region, but no remote
    /// right of it. With [`AccessFlags::ZERO_BASED`] the remote address of the
    /// first byte is 0. Other flags mean nothing here.
    pub access: AccessFlags,
}

impl WindowBinding {
    /// The key that the peer uses once the request has completed: the
    /// window's upper 24 bits and the tag.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        self.window & !0xff | u32::from(self.tag)
    }
}

/// `enum ibv_wr_opcode` with the operands of each operation.
///
/// Immediate data is the number that travels big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields are the operands of the named operation"
)]
pub enum SendOp {
    /// Send.
    Send,
    /// Send with immediate data.
    SendImm { imm: u32 },
    /// Send and invalidate an rkey of the peer: that of a memory window which
    /// is bound to the receiving queue pair.
    SendInvalidate { rkey: u32 },
    /// RDMA Write.
    Write { remote: RemoteAddress },
    /// RDMA Write with immediate data, which consumes a receive of the peer.
    WriteImm { remote: RemoteAddress, imm: u32 },
    /// RDMA Read.
    Read { remote: RemoteAddress },
    /// Atomic compare and swap of 8 bytes.
    CompareSwap {
        remote: RemoteAddress,
        compare: u64,
        swap: u64,
    },
    /// Atomic fetch and add of 8 bytes.
    FetchAdd { remote: RemoteAddress, add: u64 },
    /// Invalidate the key of a memory window that is bound to this queue pair.
    LocalInvalidate { key: u32 },
    /// Bind a type-2 memory window (`IBV_WR_BIND_MW`).
    BindWindow { binding: WindowBinding },
}

bitflags::bitflags! {
    /// `enum ibv_send_flags` (inline is [`Gather::Inline`]).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SendFlags: u32 {
        /// Start only after all earlier Reads and atomics have completed.
        const FENCE = 1;
        /// Report success with a completion.
        const SIGNALED = 1 << 1;
        /// Raise a solicited event at the receiver.
        const SOLICITED = 1 << 2;
    }
}

/// Where a UD request goes.
#[derive(Clone, Copy)]
pub struct UdTarget<'a> {
    /// Path to the peer.
    pub ah: &'a dyn AddressHandle,
    /// The peer's queue pair; 0xffffff for multicast.
    pub qpn: u32,
    /// The peer's Q_Key; with bit 31 set the sender's own is used.
    pub qkey: u32,
}

/// `struct ibv_send_wr`: one request for the send queue.
#[derive(Clone, Copy)]
pub struct SendRequest<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub op: SendOp,
    /// With which memory.
    pub data: Gather<'a>,
    /// How.
    pub flags: SendFlags,
    /// Where to, on UD queue pairs.
    pub ud: Option<UdTarget<'a>>,
    /// The peer's shared receive queue, on XRC queue pairs.
    pub xrc_srqn: Option<u32>,
}

impl<'a> SendRequest<'a> {
    /// A signalled request on a connected queue pair.
    #[must_use]
    pub fn signaled(wr_id: u64, op: SendOp, sges: &'a [Sge]) -> Self {
        Self {
            wr_id,
            op,
            data: Gather::Sges(sges),
            flags: SendFlags::SIGNALED,
            ud: None,
            xrc_srqn: None,
        }
    }
}

/// `struct ibv_recv_wr`: one request for a receive queue.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveRequest<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Where the message goes, in order.
    pub sges: &'a [Sge],
}
