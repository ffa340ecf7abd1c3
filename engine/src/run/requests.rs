//! The work requests of a run, prepared before it starts.

use verbs_sys::{Gather, RemoteAddress, SendFlags, SendOp, SendRequest, Sge};

use crate::exchange::KeyRecord;
use crate::setup::Memory;

/// What the work requests of one queue pair refer to, for one message size.
pub(crate) struct Prepared {
    qp: usize,
    sges: Vec<Sge>,
    remotes: Vec<RemoteAddress>,
    /// The message itself, where it goes into the request.
    inline: Option<Vec<u8>>,
}

impl Prepared {
    /// For messages of `size` bytes on queue pair `qp`. Single requests
    /// (`list` 1) take the places they cycle through in turn; each request of
    /// a list has a place of its own.
    pub(crate) fn new(
        memory: &Memory,
        qp: usize,
        peer: &KeyRecord,
        size: usize,
        list: usize,
        inline_limit: u32,
    ) -> Self {
        let layout = &memory.layout;
        let from = layout.sends_from(qp);
        let slots = layout.slots(size);
        let count = if list > 1 { list } else { slots };
        let offsets = (0..count).map(|index| ((index % slots) * layout.stride(size)) as u64);
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
        let inline = (size <= inline_limit as usize).then(|| {
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
        }
    }

    /// RDMA WRITE requests, with immediate data or without; their flags are
    /// the sender's matter.
    pub(crate) fn writes(&self, with_imm: bool) -> Vec<SendRequest<'_>> {
        self.sges
            .iter()
            .zip(&self.remotes)
            .map(|(sge, remote)| SendRequest {
                wr_id: self.qp as u64,
                op: write(*remote, with_imm),
                data: match &self.inline {
                    Some(message) => Gather::Inline(message),
                    None => Gather::Sges(std::slice::from_ref(sge)),
                },
                flags: SendFlags::empty(),
                ud: None,
                xrc_srqn: None,
            })
            .collect()
    }
}

/// RDMA WRITE to `remote`. Nobody looks at the immediate data, only whether
/// there is any.
pub(super) fn write(remote: RemoteAddress, with_imm: bool) -> SendOp {
    match with_imm {
        true => SendOp::WriteImm { remote, imm: 0 },
        false => SendOp::Write { remote },
    }
}
