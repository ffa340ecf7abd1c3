//! The work requests of a run, prepared before it starts.

use verbs_sys::{Gather, ReceiveRequest, RemoteAddress, SendFlags, SendRequest, Sge, UdTarget};

use super::operation::Operation;
use crate::exchange::KeyRecord;
use crate::setup::{Memory, Place};

/// The way to the peer's queue pair, where the queue pair doesn't know it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Route<'a> {
    /// On UD queue pairs.
    pub(crate) ud: Option<UdTarget<'a>>,
    /// The peer's shared receive queue, on XRC queue pairs.
    pub(crate) xrc_srqn: Option<u32>,
}

/// What the send requests of one queue pair refer to, for one message size.
pub(crate) struct Prepared<'a> {
    qp: usize,
    sges: Vec<Sge>,
    remotes: Vec<RemoteAddress>,
    /// The message itself, where it goes into the request.
    inline: Option<Vec<u8>>,
    route: Route<'a>,
}

/// How messages of one size are posted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Bytes.
    pub(crate) size: usize,
    /// Requests per post.
    pub(crate) list: usize,
    /// Messages up to so many bytes go into the request.
    pub(crate) inline: u32,
}

impl<'a> Prepared<'a> {
    /// For messages on queue pair `qp`. Single requests (a list of 1) take
    /// the places they cycle through in turn; each request of a list has a
    /// place of its own.
    pub(crate) fn new(
        memory: &Memory,
        qp: usize,
        peer: &KeyRecord,
        shape: &Shape,
        route: Route<'a>,
    ) -> Self {
        let (layout, size) = (&memory.layout, shape.size);
        let from = layout.sends_from(qp);
        let slots = layout.slots(size);
        let offsets = places(slots, layout.stride(size), shape.list);
        let (addr, lkey) = (memory.addr(from), memory.lkey(from));
        let sges = offsets
            .clone()
            .map(|offset| Sge {
                addr: addr + offset,
                // Messages have at most 2^31 - 1 bytes.
                length: size as u32,
                lkey,
            })
            .collect();
        let remotes = offsets
            .map(|offset| RemoteAddress {
                addr: peer.vaddr.wrapping_add(offset),
                rkey: peer.rkey,
            })
            .collect();
        let inline = (size <= shape.inline as usize).then(|| {
            let mut message = vec![0; size];
            // Inside the area by the layout.
            let _ = memory.buffer(from).read(from.offset, &mut message);
            message
        });
        Self {
            qp,
            sges,
            remotes,
            inline,
            route,
        }
    }

    /// Prepared from a list of places, without memory behind them.
    #[cfg(test)]
    pub(super) fn at(qp: usize, offsets: &[u64]) -> Self {
        let sge = |addr: &u64| Sge {
            addr: *addr,
            ..Sge::default()
        };
        let remote = |addr: &u64| RemoteAddress {
            addr: *addr,
            rkey: 0,
        };
        Self {
            qp,
            sges: offsets.iter().map(sge).collect(),
            remotes: offsets.iter().map(remote).collect(),
            inline: None,
            route: Route::default(),
        }
    }

    /// The requests; their flags are the sender's matter.
    pub(crate) fn requests(&self, operation: Operation) -> Vec<SendRequest<'_>> {
        let inline = self
            .inline
            .as_deref()
            .filter(|_| operation.carries_message());
        self.sges
            .iter()
            .zip(&self.remotes)
            .map(|(sge, remote)| SendRequest {
                wr_id: self.qp as u64,
                op: operation.at(*remote),
                data: match inline {
                    Some(message) => Gather::Inline(message),
                    None => Gather::Sges(std::slice::from_ref(sge)),
                },
                flags: SendFlags::empty(),
                ud: self.route.ud,
                xrc_srqn: self.route.xrc_srqn,
            })
            .collect()
    }
}

/// What the receives of one queue pair refer to, for one message size.
pub(crate) struct PreparedReceives {
    flow: usize,
    /// Where messages go; one that says itself where it goes (RDMA WRITE with
    /// immediate) needs nothing.
    places: Vec<Option<Sge>>,
}

impl PreparedReceives {
    /// For messages of `size` bytes of this operation that come in on flow
    /// `flow`, whose area is `into`; as with [`Prepared::new`], single
    /// receives take places in turn.
    pub(crate) fn new(
        memory: &Memory,
        flow: usize,
        into: Place,
        size: usize,
        list: usize,
        operation: Operation,
    ) -> Self {
        if !operation.fills_receives() {
            return Self::without_memory(flow, list);
        }
        let layout = &memory.layout;
        let length = layout.received(size);
        let offsets = places(layout.slots(length), layout.stride(length), list);
        let (addr, lkey) = (memory.addr(into), memory.lkey(into));
        let places = offsets.map(|offset| {
            Some(Sge {
                addr: addr + offset,
                // As the messages, and a GRH at most.
                length: length as u32,
                lkey,
            })
        });
        Self {
            flow,
            places: places.collect(),
        }
    }

    /// For messages that say themselves where they go.
    pub(crate) fn without_memory(flow: usize, list: usize) -> Self {
        Self {
            flow,
            places: vec![None; list],
        }
    }

    /// The requests.
    pub(crate) fn requests(&self) -> Vec<ReceiveRequest<'_>> {
        self.places
            .iter()
            .map(|place| ReceiveRequest {
                wr_id: self.flow as u64,
                sges: place.as_slice(),
            })
            .collect()
    }
}

/// Bytes from the start of an area to each message.
fn places(slots: usize, stride: usize, list: usize) -> impl Iterator<Item = u64> + Clone {
    let count = if list > 1 { list } else { slots };
    (0..count).map(move |index| ((index % slots) * stride) as u64)
}
