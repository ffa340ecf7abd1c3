//! Completions and receive requests in their queues.

use super::ring::Ring;
use crate::drivers::{Completions, Receives};
use crate::uapi::siw::{Cqe, MAX_SGE, Rqe, Sge as RawSge, flags, notify, opcode};
use crate::uverbs::{Uverbs, failed, odd};
use crate::{
    Completion, Notify, PostError, ReceiveRequest, Result, Sge, VerbsError, WcFlags, WcOpcode,
    WcStatus,
};

const CQE: usize = size_of::<Cqe>();
const RQE: usize = size_of::<Rqe>();

/// Bytes behind the completions: `struct siw_cq_ctrl`.
const CONTROL: usize = 8;

/// A completion queue, with a word behind it that asks for notifications.
#[derive(Debug)]
pub(crate) struct CompletionRing(Ring<CQE>);

impl CompletionRing {
    pub(super) fn map(uverbs: &Uverbs, key: u64, entries: u32) -> Result<Self> {
        Ring::map(uverbs, key, entries, CONTROL).map(Self)
    }
}

impl Completions for CompletionRing {
    #[inline]
    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let mut taken = 0;
        for target in completions {
            let Some(cqe) = self.0.pop() else { break };
            *target = completion(&cqe);
            taken += 1;
        }
        taken
    }

    /// Without a system call: the kernel looks at the word.
    fn arm(&mut self, _: &Uverbs, _: u32, notify: Notify) -> std::io::Result<()> {
        self.0.store_behind(match notify {
            Notify::Any => notify::ANY,
            Notify::Solicited => notify::SOLICITED,
        });
        Ok(())
    }
}

/// `enum siw_wc_status` in the words of the verbs.
fn status(code: u16) -> WcStatus {
    const STATUSES: [WcStatus; 10] = [
        WcStatus::Success,
        WcStatus::LocalLengthError,
        WcStatus::LocalProtectionError,
        WcStatus::LocalQpOperationError,
        WcStatus::WorkRequestFlushed,
        WcStatus::BadResponse,
        WcStatus::LocalAccessError,
        WcStatus::RemoteAccessError,
        WcStatus::RemoteInvalidRequest,
        WcStatus::General,
    ];
    *STATUSES
        .get(usize::from(code))
        .unwrap_or(&WcStatus::General)
}

pub(super) fn completion(cqe: &Cqe) -> Completion {
    let invalidated = cqe.flags & flags::REM_INVAL != 0;
    Completion {
        wr_id: cqe.id,
        status: status(cqe.status),
        opcode: match cqe.opcode {
            opcode::WRITE => WcOpcode::Write,
            opcode::READ | opcode::READ_LOCAL_INV => WcOpcode::Read,
            opcode::RECEIVE => WcOpcode::Receive,
            _ => WcOpcode::Send,
        },
        byte_len: cqe.bytes,
        imm_or_rkey: match invalidated {
            true => cqe.imm_or_stag as u32,
            false => 0,
        },
        // Of 32 bits in a field of 64.
        qp_num: cqe.qp_id as u32,
        flags: match invalidated {
            true => WcFlags::WITH_INV,
            false => WcFlags::empty(),
        },
        ..Completion::default()
    }
}

/// Entries as siw wants them; `None` for more than it takes.
pub(super) fn raw_sges(sges: &[Sge]) -> Option<[RawSge; MAX_SGE]> {
    let mut raw = [RawSge::default(); MAX_SGE];
    for (at, sge) in sges.iter().enumerate() {
        *raw.get_mut(at)? = RawSge {
            laddr: sge.addr,
            length: sge.length,
            lkey: sge.lkey,
        };
    }
    Some(raw)
}

pub(super) fn too_many(what: &'static str, seen: usize, most: usize) -> VerbsError {
    VerbsError::InvalidArgument {
        what,
        seen: seen.to_string(),
        expected: format!("at most {most}"),
    }
}

/// A receive queue, shared or of one queue pair.
#[derive(Debug)]
pub(crate) struct ReceiveRing(Ring<RQE>);

impl ReceiveRing {
    pub(super) fn map(uverbs: &Uverbs, key: u64, entries: u32) -> Result<Self> {
        if entries == 0 {
            let error = odd("a receive queue of", entries, "entries");
            return Err(failed("map a queue of siw", error));
        }
        Ring::map(uverbs, key, entries, 0).map(Self)
    }

    fn fill(&mut self, request: &ReceiveRequest<'_>) -> Result<()> {
        let Some(sge) = raw_sges(request.sges) else {
            let what = "number of entries of a receive request";
            return Err(too_many(what, request.sges.len(), MAX_SGE));
        };
        if !self.0.has_room() {
            return Err(self.0.full("receive queue"));
        }
        let rqe = Rqe {
            id: request.wr_id,
            flags: flags::VALID,
            num_sge: request.sges.len() as u8,
            opcode: opcode::RECEIVE,
            unused: 0,
            sge,
        };
        self.0.push(&zerocopy::transmute!(rqe));
        Ok(())
    }
}

impl Receives for ReceiveRing {
    fn post(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        for (posted, request) in requests.iter().enumerate() {
            self.fill(request)
                .map_err(|source| PostError { posted, source })?;
        }
        Ok(())
    }
}
