//! Soft-iWARP, `siw`: the kernel's software iWARP device.
//!
//! Queue pairs are reliable connections over TCP that rdma_cm makes. There
//! are Sends, Writes and Reads, but no immediate data, no atomics, no
//! datagrams, no memory windows, no multicast.
//!
//! - [`ring`]: the queues, whose entries say by a flag whose they are
//! - [`queues`]: completions and receives in them
//! - [`qp`]: queue pairs and their sends

mod qp;
pub(crate) mod queues;
mod ring;

use std::sync::Arc;

use zerocopy::IntoBytes;

use self::queues::{CompletionRing, ReceiveRing};
use super::objects::DomainHandle;
use super::{Driver, QpOwners};
use crate::uapi::siw::{AllocContextResp, CreateCqResp, CreateSrqResp, NO_KEY};
use crate::uverbs::Uverbs;
use crate::uverbs::qp::NewQp;
use crate::uverbs::queues::{MadeCq, MadeSrq, NewCq, NewSrq};
use crate::{AddressHandle, AddressVector, QpType, QueuePair, Result, Transport, VerbsError};

/// The driver.
pub(crate) struct Siw;

impl Driver for Siw {
    /// `RDMA_DRIVER_SIW`.
    const ID: u32 = 18;
    const TRANSPORT: Transport = Transport::Iwarp;
    const CONTEXT_ANSWER: usize = size_of::<AllocContextResp>();
    /// `siw_ureq_reg_mr`, of which nothing but zero is wanted, and
    /// `siw_uresp_reg_mr`, whose key the common answer has, too.
    const REGISTRATION: usize = 8;
    type Completions = CompletionRing;
    type Receives = ReceiveRing;

    fn create_cq(uverbs: &Uverbs, new: &NewCq<'_>) -> Result<(MadeCq, CompletionRing)> {
        let mut answer = CreateCqResp::default();
        let made = uverbs.create_cq(new, answer.as_mut_bytes())?;
        match CompletionRing::map(uverbs, answer.cq_key, answer.num_cqe) {
            Ok(ring) => Ok((made, ring)),
            Err(error) => {
                uverbs.destroy_cq(made.handle);
                Err(error)
            }
        }
    }

    fn create_srq(uverbs: &Uverbs, new: &NewSrq) -> Result<(MadeSrq, ReceiveRing)> {
        let mut answer = CreateSrqResp {
            srq_key: NO_KEY,
            ..CreateSrqResp::default()
        };
        let made = uverbs.create_srq(new, answer.as_mut_bytes())?;
        match ReceiveRing::map(uverbs, answer.srq_key, answer.num_rqe) {
            Ok(ring) => Ok((made, ring)),
            Err(error) => {
                uverbs.destroy_srq(made.handle);
                Err(error)
            }
        }
    }

    fn set_srq_limit(uverbs: &Uverbs, handle: u32, limit: u32) -> Result<()> {
        uverbs.set_srq_limit(handle, limit, &[])
    }

    fn create_qp(owners: QpOwners, new: &NewQp) -> Result<Box<dyn QueuePair>> {
        if new.qp_type != QpType::Rc {
            return Err(VerbsError::Unsupported {
                what: "any service but RC: iWARP has no other",
            });
        }
        Ok(Box::new(qp::Qp::new(owners, new)?))
    }

    fn create_ah(_: &Arc<DomainHandle>, _: &AddressVector) -> Result<Box<dyn AddressHandle>> {
        Err(VerbsError::Unsupported {
            what: "address handles: iWARP has no datagrams",
        })
    }
}

#[cfg(test)]
mod tests;
