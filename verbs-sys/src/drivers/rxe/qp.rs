//! Queue pairs.

use zerocopy::IntoBytes;

use super::queues::ReceiveRing;
use super::ring::{Producer, Ring, full};
use super::wqe::{self, Limits};
use crate::drivers::objects::QpHandle;
use crate::drivers::{QpOwners, Receives};
use crate::uapi::rxe::{CreateQpResp, RecvWqe, SendWqe, Sge as RawSge};
use crate::uverbs::qp::NewQp;
use crate::{
    Gather, Gid, PostError, QpAttributes, QpCapabilities, QpState, QpType, QueuePair,
    ReceiveRequest, Result, SendRequest, VerbsError,
};

/// A queue pair of rxe.
pub(crate) struct Qp {
    handle: QpHandle,
    limits: Limits,
    sends: Producer,
    /// None with a shared receive queue.
    receives: Option<ReceiveRing>,
    /// Number of the next send request.
    ssn: u32,
}

impl Qp {
    /// # Errors
    /// When the kernel refuses, or answers oddly.
    pub(super) fn new(owners: QpOwners, new: &NewQp) -> Result<Self> {
        let core = std::sync::Arc::clone(owners.core());
        let mut answer = CreateQpResp::default();
        let made = core.uverbs.create_qp(new, answer.as_mut_bytes())?;
        // From here on the queue pair is released when something fails.
        let handle = QpHandle::new(owners, new, &made);
        let sends = Ring::map(&core.uverbs, &answer.sq_mi, size_of::<SendWqe>())?;
        let receives = match new.srq {
            Some(_) => None,
            None => {
                let ring = Ring::map(&core.uverbs, &answer.rq_mi, size_of::<RecvWqe>())?;
                let max_sge = made.cap.max_recv_sge as usize;
                Some(ReceiveRing::new(ring, "receive queue", max_sge))
            }
        };
        let area = sends.slot_len() - size_of::<SendWqe>();
        let limits = Limits {
            qp_type: new.qp_type,
            max_sge: (made.cap.max_send_sge as usize).min(area / size_of::<RawSge>()),
            max_inline: (made.cap.max_inline_data as usize).min(area),
            max_message: core.uverbs.query_port(1)?.max_msg_sz,
        };
        Ok(Self {
            handle,
            limits,
            sends: Producer::new(sends),
            receives,
            ssn: 0,
        })
    }

    #[inline]
    fn fill(&mut self, request: &SendRequest<'_>) -> Result<()> {
        if !self.sends.has_room() {
            return Err(full("send queue", self.sends.capacity()));
        }
        let windows = &self.handle.core().windows;
        let mut wqe = SendWqe::default();
        wqe::encode(request, &self.limits, windows, self.ssn, &mut wqe)?;
        self.sends.write(0, wqe.as_bytes());
        match request.data {
            Gather::Sges(sges) => {
                for (at, sge) in sges.iter().enumerate() {
                    let offset = size_of::<SendWqe>() + at * size_of::<RawSge>();
                    self.sends.write(offset, wqe::raw_sge(sge).as_bytes());
                }
            }
            Gather::Inline(bytes) => self.sends.write(size_of::<SendWqe>(), bytes),
        }
        self.sends.advance();
        self.ssn = self.ssn.wrapping_add(1);
        Ok(())
    }

    /// Starts what has been queued.
    #[inline]
    fn ring_doorbell(&self) -> Result<()> {
        let rung = self.handle.core().uverbs.doorbell(self.handle.handle);
        rung.map_err(|error| crate::uverbs::failed("start the send queue", error))
    }
}

impl QueuePair for Qp {
    fn qpn(&self) -> u32 {
        self.handle.qpn
    }

    fn qp_type(&self) -> QpType {
        self.limits.qp_type
    }

    fn capabilities(&self) -> QpCapabilities {
        self.handle.cap
    }

    fn modify(&mut self, attributes: &QpAttributes) -> Result<()> {
        let before = self.handle.state;
        self.handle.modify(attributes)?;
        // The kernel goes on with what has waited in SQD only when told.
        if before == QpState::Sqd && self.handle.state == QpState::Rts {
            self.ring_doorbell()?;
        }
        Ok(())
    }

    fn query(&self) -> Result<QpAttributes> {
        self.handle.query()
    }

    /// One system call, however many requests there are.
    #[inline]
    fn post_send(&mut self, requests: &[SendRequest<'_>]) -> Result<(), PostError> {
        if let Err(source) = self.handle.check_send() {
            return Err(PostError { posted: 0, source });
        }
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
            self.sends.publish();
            if let Err(source) = self.ring_doorbell() {
                return Err(PostError { posted: 0, source });
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    #[inline]
    fn post_recv(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        let refused = |source| PostError { posted: 0, source };
        self.handle.check_receive().map_err(refused)?;
        match &mut self.receives {
            Some(receives) => receives.post(requests),
            None => Err(refused(VerbsError::UnsupportedOperation {
                qp_type: self.limits.qp_type,
                operation: "a receive beside the shared receive queue",
            })),
        }
    }

    fn attach_multicast(&mut self, mgid: &Gid) -> Result<()> {
        self.handle.multicast(*mgid, true)
    }

    fn detach_multicast(&mut self, mgid: &Gid) -> Result<()> {
        self.handle.multicast(*mgid, false)
    }
}
