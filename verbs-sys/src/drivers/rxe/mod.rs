//! Soft-RoCE, `rdma_rxe`: the kernel's software RoCEv2 device.
//!
//! Its queues lie in memory that it shares with the process. Sends are shown
//! to it by one system call for as many as there are; receives and
//! completions need none.
//!
//! - [`ring`]: the queues
//! - [`wqe`]: send requests in them
//! - [`queues`]: completions and receives in them
//! - [`qp`], [`ah`]: queue pairs, address handles

mod ah;
mod qp;
pub(crate) mod queues;
mod ring;
mod wqe;

use std::sync::Arc;

use zerocopy::IntoBytes;

use self::ah::RxeAddressHandle;
use self::queues::{CompletionRing, ReceiveRing};
use self::ring::Ring;
use super::objects::DomainHandle;
use super::{Driver, QpOwners};
use crate::uapi::rxe::{CreateCqResp, CreateSrqResp, ModifySrqCmd, RecvWqe};
use crate::uapi::user_verbs::Wc;
use crate::uverbs::Uverbs;
use crate::uverbs::qp::NewQp;
use crate::uverbs::queues::{MadeCq, MadeSrq, NewCq, NewSrq};
use crate::{AddressHandle, AddressVector, QueuePair, Result};

/// The driver.
pub(crate) struct Rxe;

impl Driver for Rxe {
    /// `RDMA_DRIVER_RXE`.
    const ID: u32 = 14;
    const CONTEXT_ANSWER: usize = 0;
    const REGISTRATION: usize = 0;
    type Completions = CompletionRing;
    type Receives = ReceiveRing;

    fn create_cq(uverbs: &Uverbs, new: &NewCq<'_>) -> Result<(MadeCq, CompletionRing)> {
        let mut answer = CreateCqResp::default();
        let made = uverbs.create_cq(new, answer.as_mut_bytes())?;
        let ring = Ring::map(uverbs, &answer.mi, size_of::<Wc>());
        match ring {
            Ok(ring) => Ok((made, CompletionRing::new(ring))),
            Err(error) => {
                uverbs.destroy_cq(made.handle);
                Err(error)
            }
        }
    }

    fn create_srq(uverbs: &Uverbs, new: &NewSrq) -> Result<(MadeSrq, ReceiveRing)> {
        let mut answer = CreateSrqResp::default();
        let made = uverbs.create_srq(new, answer.as_mut_bytes())?;
        let ring = Ring::map(uverbs, &answer.mi, size_of::<RecvWqe>());
        match ring {
            Ok(ring) => {
                let max_sge = made.max_sge as usize;
                Ok((
                    made,
                    ReceiveRing::new(ring, "shared receive queue", max_sge),
                ))
            }
            Err(error) => {
                uverbs.destroy_srq(made.handle);
                Err(error)
            }
        }
    }

    fn set_srq_limit(uverbs: &Uverbs, handle: u32, limit: u32) -> Result<()> {
        // Wanted even where nothing is resized, and then not looked at.
        let command = ModifySrqCmd::default();
        uverbs.set_srq_limit(handle, limit, command.as_bytes())
    }

    fn create_qp(owners: QpOwners, new: &NewQp) -> Result<Box<dyn QueuePair>> {
        Ok(Box::new(qp::Qp::new(owners, new)?))
    }

    fn create_ah(domain: &Arc<DomainHandle>, av: &AddressVector) -> Result<Box<dyn AddressHandle>> {
        Ok(Box::new(RxeAddressHandle::new(domain, av)?))
    }
}

#[cfg(test)]
mod tests;
