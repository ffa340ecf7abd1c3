//! Queue pairs and their sends.

use zerocopy::IntoBytes;

use super::queues::{ReceiveRing, raw_sges, too_many};
use super::ring::Ring;
use crate::drivers::objects::QpHandle;
use crate::drivers::{QpOwners, Receives};
use crate::uapi::siw::{
    CreateQpResp, INLINE_OFFSET, MAX_INLINE, MAX_SGE, NO_KEY, Sqe, flags, opcode,
};
use crate::uverbs::qp::NewQp;
use crate::{
    Gather, PostError, QpAttributes, QpCapabilities, QpState, QpType, QueuePair, ReceiveRequest,
    RemoteAddress, Result, SendFlags, SendOp, SendRequest, VerbsError,
};

const SQE: usize = size_of::<Sqe>();

/// A queue pair of siw.
pub(crate) struct Qp {
    handle: QpHandle,
    sends: Ring<SQE>,
    /// None with a shared receive queue.
    receives: Option<ReceiveRing>,
    /// All sends are signalled.
    signal_all: bool,
}

impl Qp {
    /// # Errors
    /// When the kernel refuses, or answers oddly.
    pub(super) fn new(owners: QpOwners, new: &NewQp) -> Result<Self> {
        let core = std::sync::Arc::clone(owners.core());
        let mut answer = CreateQpResp {
            sq_key: NO_KEY,
            rq_key: NO_KEY,
            ..CreateQpResp::default()
        };
        let mut made = core.uverbs.create_qp(new, answer.as_mut_bytes())?;
        made.cap.max_inline_data = made.cap.max_inline_data.min(MAX_INLINE as u32);
        // From here on the queue pair is released when something fails.
        let handle = QpHandle::new(owners, new, &made);
        let sends = Ring::map(&core.uverbs, answer.sq_key, answer.num_sqe, 0)?;
        let receives = match new.srq {
            Some(_) => None,
            None => Some(ReceiveRing::map(
                &core.uverbs,
                answer.rq_key,
                answer.num_rqe,
            )?),
        };
        Ok(Self {
            handle,
            sends,
            receives,
            signal_all: new.sq_sig_all,
        })
    }

    fn fill(&mut self, request: &SendRequest<'_>) -> Result<()> {
        let sqe = encode(request, &self.handle.cap, self.signal_all)?;
        if !self.sends.has_room() {
            return Err(self.sends.full("send queue"));
        }
        self.sends.push(&zerocopy::transmute!(sqe));
        Ok(())
    }
}

/// Lays a request out.
pub(super) fn encode(
    request: &SendRequest<'_>,
    cap: &QpCapabilities,
    signal_all: bool,
) -> Result<Sqe> {
    let refused = |what| Err(VerbsError::Unsupported { what });
    let none = RemoteAddress::default();
    let (code, remote) = match request.op {
        SendOp::Send => (opcode::SEND, none),
        SendOp::SendInvalidate { rkey } => {
            (opcode::SEND_REMOTE_INV, RemoteAddress { addr: 0, rkey })
        }
        SendOp::Write { remote } => (opcode::WRITE, remote),
        SendOp::Read { remote } => (opcode::READ, remote),
        SendOp::SendImm { .. } | SendOp::WriteImm { .. } => {
            return refused("immediate data: iWARP has none");
        }
        SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } => {
            return refused("atomics: iWARP has none");
        }
        SendOp::LocalInvalidate { .. } | SendOp::BindWindow { .. } => {
            return refused("memory windows");
        }
    };
    let mut sqe = Sqe {
        id: request.wr_id,
        flags: flags::VALID,
        opcode: code,
        rkey: remote.rkey,
        raddr: remote.addr,
        ..Sqe::default()
    };
    for (flag, raw) in [
        (SendFlags::SIGNALED, flags::SIGNALLED),
        (SendFlags::SOLICITED, flags::SOLICITED),
        (SendFlags::FENCE, flags::READ_FENCE),
    ] {
        if request.flags.contains(flag) || (signal_all && flag == SendFlags::SIGNALED) {
            sqe.flags |= raw;
        }
    }
    match request.data {
        Gather::Sges(sges) => {
            let most = match code {
                // siw puts what it reads into one place.
                opcode::READ => 1,
                _ => (cap.max_send_sge as usize).min(MAX_SGE),
            };
            match raw_sges(sges).filter(|_| sges.len() <= most) {
                Some(raw) => sqe.sge = raw,
                None => {
                    let what = "number of entries of a send request";
                    return Err(too_many(what, sges.len(), most));
                }
            }
            sqe.num_sge = sges.len() as u8;
        }
        Gather::Inline(_) if code == opcode::READ => {
            return Err(VerbsError::UnsupportedOperation {
                qp_type: QpType::Rc,
                operation: "inline data without a Send or Write",
            });
        }
        Gather::Inline(bytes) => {
            let most = cap.max_inline_data as usize;
            if bytes.len() > most {
                let what = "inline bytes of a send request";
                return Err(too_many(what, bytes.len(), most));
            }
            sqe.flags |= flags::INLINE;
            sqe.num_sge = 1;
            sqe.sge[0].length = bytes.len() as u32;
            sqe.as_mut_bytes()[INLINE_OFFSET..INLINE_OFFSET + bytes.len()].copy_from_slice(bytes);
        }
    }
    Ok(sqe)
}

impl QueuePair for Qp {
    fn qpn(&self) -> u32 {
        self.handle.qpn
    }

    fn qp_type(&self) -> QpType {
        QpType::Rc
    }

    fn capabilities(&self) -> QpCapabilities {
        self.handle.cap
    }

    /// The kernel takes the queue pair to RTS when rdma_cm connects it.
    fn modify(&mut self, attributes: &QpAttributes) -> Result<()> {
        if matches!(attributes.state, Some(QpState::Rtr | QpState::Rts)) {
            return Err(VerbsError::Unsupported {
                what: "connecting by itself: iWARP connects through rdma_cm (-R at both ends)",
            });
        }
        self.handle.modify(attributes)
    }

    fn query(&self) -> Result<QpAttributes> {
        self.handle.query()
    }

    fn post_send(&mut self, requests: &[SendRequest<'_>]) -> Result<(), PostError> {
        let refused = |source| PostError { posted: 0, source };
        let mut posted = 0;
        let mut refusal = None;
        for request in requests {
            if let Err(source) = self.fill(request) {
                refusal = Some(PostError { posted, source });
                break;
            }
            posted += 1;
        }
        // While the kernel is at it, it finds what is added.
        if posted > 0 && self.sends.was_idle_before(posted as u32) {
            let rung = self.handle.core().uverbs.doorbell(self.handle.handle);
            rung.map_err(|error| {
                refused(match error.raw_os_error() {
                    Some(libc::ENOTCONN) => VerbsError::InvalidState {
                        state: self.handle.state,
                        operation: "sending before rdma_cm has connected it",
                    },
                    _ => crate::uverbs::failed("start the send queue", error),
                })
            })?;
        }
        refusal.map_or(Ok(()), Err)
    }

    fn post_recv(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        let refused = |source| PostError { posted: 0, source };
        if self.handle.state == QpState::Error {
            // The kernel would never return them.
            self.handle.check_receive().map_err(refused)?;
        }
        match &mut self.receives {
            Some(receives) => receives.post(requests),
            None => Err(refused(VerbsError::UnsupportedOperation {
                qp_type: QpType::Rc,
                operation: "a receive beside the shared receive queue",
            })),
        }
    }
}
