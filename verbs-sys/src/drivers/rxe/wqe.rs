//! Send requests as rxe wants them (`struct rxe_send_wqe`): 208 bytes, then
//! scatter/gather entries or inline data.
//!
//! Kernels before 5.15 declare some fields elsewhere, but all that is written
//! here lies at the same place.

use zerocopy::IntoBytes;

use super::ah::RxeAddressHandle;
use crate::drivers::windows::Windows;
use crate::uapi::rxe::{
    AtomicWr, DmaInfo, MwWr, RdmaWr, SEND_INLINE, SendWqe, Sge as RawSge, UdWr, opcode,
};
use crate::{
    Gather, QpType, RemoteAddress, Result, SendOp, SendRequest, Sge, UdTarget, VerbsError,
    WindowBinding,
};

/// What a request is checked against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) qp_type: QpType,
    pub(crate) max_sge: usize,
    pub(crate) max_inline: usize,
    /// Longest message in bytes.
    pub(crate) max_message: u32,
}

/// Lays a request out in `wqe`, which is all zero, without its entries or inline
/// data.
///
/// # Errors
/// When the queue pair's service lacks the operation, or an operand is out of
/// its range.
#[inline]
pub(crate) fn encode(
    request: &SendRequest<'_>,
    limits: &Limits,
    windows: &Windows,
    ssn: u32,
    wqe: &mut SendWqe,
) -> Result<()> {
    check_service(request, limits.qp_type)?;
    wqe.tail.dma = dma(request, limits)?;
    wqe.tail.ssn = ssn;
    wqe.wr.wr_id = request.wr_id;
    wqe.wr.send_flags = request.flags.bits();
    if matches!(request.data, Gather::Inline(_)) {
        wqe.wr.send_flags |= SEND_INLINE;
    }
    match request.op {
        SendOp::Send => wqe.wr.opcode = opcode::SEND,
        SendOp::SendImm { imm } => {
            wqe.wr.opcode = opcode::SEND_WITH_IMM;
            wqe.wr.imm_or_rkey = imm.to_be_bytes();
        }
        SendOp::SendInvalidate { rkey } => {
            wqe.wr.opcode = opcode::SEND_WITH_INV;
            wqe.wr.imm_or_rkey = rkey.to_ne_bytes();
        }
        SendOp::Write { remote } => {
            wqe.wr.opcode = opcode::RDMA_WRITE;
            wqe.set_remote(remote);
        }
        SendOp::WriteImm { remote, imm } => {
            wqe.wr.opcode = opcode::RDMA_WRITE_WITH_IMM;
            wqe.wr.imm_or_rkey = imm.to_be_bytes();
            wqe.set_remote(remote);
        }
        SendOp::Read { remote } => {
            wqe.wr.opcode = opcode::RDMA_READ;
            wqe.set_remote(remote);
        }
        SendOp::CompareSwap {
            remote,
            compare,
            swap,
        } => {
            wqe.wr.opcode = opcode::ATOMIC_CMP_AND_SWP;
            wqe.set_atomic(remote, compare, swap)?;
        }
        SendOp::FetchAdd { remote, add } => {
            wqe.wr.opcode = opcode::ATOMIC_FETCH_AND_ADD;
            wqe.set_atomic(remote, add, 0)?;
        }
        SendOp::LocalInvalidate { key } => {
            wqe.wr.opcode = opcode::LOCAL_INV;
            wqe.wr.imm_or_rkey = key.to_ne_bytes();
        }
        SendOp::BindWindow { binding } => {
            wqe.wr.opcode = opcode::BIND_MW;
            wqe.set_binding(&binding, windows)?;
        }
    }
    if let Some(target) = request.ud.filter(|_| limits.qp_type == QpType::Ud) {
        wqe.set_target(&target)?;
    }
    Ok(())
}

impl SendWqe {
    #[inline]
    fn set_operands(&mut self, operands: &[u8]) {
        self.operands.as_mut_bytes()[..operands.len()].copy_from_slice(operands);
    }

    #[inline]
    fn set_remote(&mut self, remote: RemoteAddress) {
        self.tail.iova = remote.addr;
        self.set_operands(
            RdmaWr {
                remote_addr: remote.addr,
                rkey: remote.rkey,
                reserved: 0,
            }
            .as_bytes(),
        );
    }

    #[inline]
    fn set_atomic(&mut self, remote: RemoteAddress, compare_add: u64, swap: u64) -> Result<()> {
        if !remote.addr.is_multiple_of(8) {
            return Err(out_of_range(
                "remote address of an atomic",
                format!("{:#x}", remote.addr),
                "a multiple of 8".into(),
            ));
        }
        self.tail.iova = remote.addr;
        self.set_operands(
            AtomicWr {
                remote_addr: remote.addr,
                compare_add,
                swap,
                rkey: remote.rkey,
                reserved: 0,
            }
            .as_bytes(),
        );
        Ok(())
    }

    fn set_binding(&mut self, binding: &WindowBinding, windows: &Windows) -> Result<()> {
        let rkey = binding.rkey();
        let Some(mw_rkey) = windows.bind(binding.window, rkey) else {
            return Err(VerbsError::ForeignObject {
                what: "memory window",
            });
        };
        self.set_operands(
            MwWr {
                addr: binding.addr,
                length: binding.length,
                mr_lkey: binding.lkey,
                mw_rkey,
                rkey,
                access: binding.access.bits(),
            }
            .as_bytes(),
        );
        Ok(())
    }

    #[inline]
    fn set_target(&mut self, target: &UdTarget<'_>) -> Result<()> {
        let Some(handle) = target.ah.as_any().downcast_ref::<RxeAddressHandle>() else {
            return Err(VerbsError::ForeignObject {
                what: "address handle",
            });
        };
        self.set_operands(
            UdWr {
                remote_qpn: target.qpn,
                remote_qkey: target.qkey,
                ..handle.operands()
            }
            .as_bytes(),
        );
        Ok(())
    }
}

/// An entry as rxe wants it.
#[inline]
pub(crate) fn raw_sge(sge: &Sge) -> RawSge {
    RawSge {
        addr: sge.addr,
        length: sge.length,
        lkey: sge.lkey,
    }
}

/// Total length of scatter/gather entries.
#[inline]
pub(crate) fn total(sges: &[Sge]) -> u64 {
    sges.iter().map(|sge| u64::from(sge.length)).sum()
}

/// The memory of a request, in numbers.
#[inline]
fn dma(request: &SendRequest<'_>, limits: &Limits) -> Result<DmaInfo> {
    let (bytes, num_sge) = match request.data {
        Gather::Sges(sges) => (total(sges), sges.len()),
        Gather::Inline(bytes) => (bytes.len() as u64, 0),
    };
    if num_sge > limits.max_sge {
        return Err(out_of_range(
            "number of entries of a send request",
            num_sge,
            format!("at most {}", limits.max_sge),
        ));
    }
    if matches!(request.data, Gather::Inline(_)) && bytes > limits.max_inline as u64 {
        return Err(out_of_range(
            "inline data of a send request",
            bytes,
            format!("at most {} bytes", limits.max_inline),
        ));
    }
    let atomic = matches!(
        request.op,
        SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. }
    );
    if atomic && bytes != 8 {
        return Err(out_of_range("length of an atomic", bytes, "8 bytes".into()));
    }
    if bytes > u64::from(limits.max_message) {
        return Err(out_of_range(
            "length of a message",
            bytes,
            format!("at most the port's {} bytes", limits.max_message),
        ));
    }
    Ok(DmaInfo {
        length: bytes as u32,
        resid: bytes as u32,
        num_sge: num_sge as u32,
        ..DmaInfo::default()
    })
}

/// Whether the service has the operation, and a datagram its path.
#[inline]
fn check_service(request: &SendRequest<'_>, qp_type: QpType) -> Result<()> {
    let operation = match (request.op, qp_type) {
        (_, QpType::Rc)
        | (SendOp::Send | SendOp::SendImm { .. }, QpType::Uc)
        | (SendOp::Write { .. } | SendOp::WriteImm { .. }, QpType::Uc) => None,
        (SendOp::Send | SendOp::SendImm { .. }, QpType::Ud) => match request.ud {
            Some(_) => None,
            None => Some("a request without an address handle"),
        },
        (SendOp::Read { .. }, _) => Some("RDMA Read"),
        (SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. }, _) => Some("an atomic"),
        (SendOp::Write { .. } | SendOp::WriteImm { .. }, _) => Some("RDMA Write"),
        (SendOp::SendInvalidate { .. }, _) => Some("Send with invalidate"),
        (SendOp::LocalInvalidate { .. } | SendOp::BindWindow { .. }, _) => {
            Some("a memory window operation")
        }
        (SendOp::Send | SendOp::SendImm { .. }, _) => Some("Send"),
    };
    let inline_into_memory = matches!(request.data, Gather::Inline(_))
        && !matches!(
            request.op,
            SendOp::Send
                | SendOp::SendImm { .. }
                | SendOp::SendInvalidate { .. }
                | SendOp::Write { .. }
                | SendOp::WriteImm { .. }
        );
    let operation =
        operation.or(inline_into_memory.then_some("inline data without a Send or Write"));
    match operation {
        None => Ok(()),
        Some(operation) => Err(VerbsError::UnsupportedOperation { qp_type, operation }),
    }
}

fn out_of_range(what: &'static str, seen: impl ToString, expected: String) -> VerbsError {
    VerbsError::InvalidArgument {
        what,
        seen: seen.to_string(),
        expected,
    }
}
