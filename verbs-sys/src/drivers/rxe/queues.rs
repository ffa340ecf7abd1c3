//! Completions and receive requests in their queues.

use zerocopy::IntoBytes;

use super::ring::{Consumer, Producer, Ring, full};
use super::wqe::{raw_sge, total};
use crate::drivers::{Completions, Receives};
use crate::uapi::rxe::{DmaInfo, RecvWqe, Sge as RawSge};
use crate::uapi::user_verbs::{Wc, wc_flags};
use crate::uverbs::Uverbs;
use crate::{
    Completion, Notify, PostError, ReceiveRequest, Result, VerbsError, WcFlags, WcOpcode, WcStatus,
};

/// A completion queue.
#[derive(Debug)]
pub(crate) struct CompletionRing(Consumer);

impl CompletionRing {
    pub(super) fn new(ring: Ring) -> Self {
        Self(Consumer::new(ring))
    }
}

impl Completions for CompletionRing {
    #[inline]
    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        self.0.drain(completions.len(), |at, wc: Wc| {
            if let Some(target) = completions.get_mut(at) {
                *target = completion(&wc);
            }
        })
    }

    fn arm(&mut self, uverbs: &Uverbs, handle: u32, notify: Notify) -> std::io::Result<()> {
        uverbs.req_notify_cq(handle, notify)
    }
}

/// A completion in the words of the verbs.
#[inline]
pub(super) fn completion(wc: &Wc) -> Completion {
    let opcode = WcOpcode::from_code(wc.opcode).unwrap_or_default();
    let received = matches!(opcode, WcOpcode::Receive | WcOpcode::ReceiveWriteImm);
    let has = |flag| received && wc.wc_flags & flag != 0;
    let mut flags = WcFlags::empty();
    // rxe sets it for every receive, but only datagrams, which alone have a
    // sender, come with a GRH.
    flags.set(WcFlags::GRH, has(wc_flags::GRH) && wc.src_qp != 0);
    flags.set(WcFlags::WITH_IMM, has(wc_flags::WITH_IMM));
    flags.set(WcFlags::WITH_INV, has(wc_flags::WITH_INVALIDATE));
    Completion {
        wr_id: wc.wr_id,
        status: WcStatus::from_code(wc.status),
        opcode,
        vendor_err: wc.vendor_err,
        byte_len: wc.byte_len,
        imm_or_rkey: match flags.contains(WcFlags::WITH_INV) {
            true => u32::from_ne_bytes(wc.imm_or_rkey),
            false => u32::from_be_bytes(wc.imm_or_rkey),
        },
        qp_num: wc.qp_num,
        src_qp: wc.src_qp,
        flags,
        pkey_index: wc.pkey_index,
        sl: wc.sl,
    }
}

/// A receive queue, shared or of one queue pair.
#[derive(Debug)]
pub(crate) struct ReceiveRing {
    producer: Producer,
    name: &'static str,
    max_sge: usize,
}

impl ReceiveRing {
    /// `max_sge` entries per request, if the slots have room for them.
    pub(super) fn new(ring: Ring, name: &'static str, max_sge: usize) -> Self {
        let producer = Producer::new(ring);
        let room = (producer.slot_len() - size_of::<RecvWqe>()) / size_of::<RawSge>();
        Self {
            producer,
            name,
            max_sge: max_sge.min(room),
        }
    }

    #[inline]
    fn fill(&mut self, request: &ReceiveRequest<'_>) -> Result<()> {
        if request.sges.len() > self.max_sge {
            return Err(VerbsError::InvalidArgument {
                what: "number of entries of a receive request",
                seen: request.sges.len().to_string(),
                expected: format!("at most {}", self.max_sge),
            });
        }
        let length =
            u32::try_from(total(request.sges)).map_err(|_| VerbsError::InvalidArgument {
                what: "length of a receive request",
                seen: total(request.sges).to_string(),
                expected: "less than 4 GiB".to_owned(),
            })?;
        if !self.producer.has_room() {
            return Err(full(self.name, self.producer.capacity()));
        }
        let wqe = RecvWqe {
            wr_id: request.wr_id,
            dma: DmaInfo {
                length,
                resid: length,
                num_sge: request.sges.len() as u32,
                ..DmaInfo::default()
            },
            ..RecvWqe::default()
        };
        self.producer.write(0, wqe.as_bytes());
        for (at, sge) in request.sges.iter().enumerate() {
            let offset = size_of::<RecvWqe>() + at * size_of::<RawSge>();
            self.producer.write(offset, raw_sge(sge).as_bytes());
        }
        self.producer.advance();
        Ok(())
    }
}

impl Receives for ReceiveRing {
    #[inline]
    fn post(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        let mut posted = 0;
        let mut refusal = None;
        for request in requests {
            if let Err(source) = self.fill(request) {
                refusal = Some(PostError { posted, source });
                break;
            }
            posted += 1;
        }
        if posted > 0 {
            self.producer.publish();
        }
        refusal.map_or(Ok(()), Err)
    }
}
