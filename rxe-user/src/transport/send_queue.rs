//! The send queue: posted requests in a ring that is allocated once.

use verbs_sys::{
    Gather, PathMtu, QpCapabilities, QpType, Result, SendFlags, SendOp, SendRequest, Sge,
    VerbsError, WcOpcode,
};

use super::datagram::{RoutedAddress, UdDestination};
use crate::wire::Psn;

/// Longest message (IBTA 9.7.7.1): 2^31 bytes.
const MAX_MESSAGE: u64 = 1 << 31;

/// PSNs that may be outstanding: half the PSN space, so that old and new can
/// be told apart (IBTA 9.7.2).
pub(crate) const MAX_OUTSTANDING: u32 = 1 << 23;

/// Where a request's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    /// The first so many entries of the slot's gather list.
    Sges(usize),
    /// Copied at posting, in the slot's inline area.
    Inline,
}

/// One posted send request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendWqe {
    pub(crate) wr_id: u64,
    pub(crate) op: SendOp,
    pub(crate) flags: SendFlags,
    pub(crate) signaled: bool,
    pub(crate) payload: Payload,
    /// Bytes of the message.
    pub(crate) length: u64,
    /// PSN of its first packet, once that has been sent.
    pub(crate) first_psn: Option<Psn>,
    /// PSNs it takes: packets of a message, responses of a Read.
    pub(crate) packets: u32,
    /// Where a UD message goes.
    pub(crate) destination: Option<UdDestination>,
    /// The peer's shared receive queue that an XRC message names.
    pub(crate) xrc_srqn: Option<u32>,
}

impl SendWqe {
    /// PSN after its last one; meaningless before it has been started.
    pub(crate) fn end_psn(&self) -> Option<Psn> {
        self.first_psn.map(|first| first + self.packets)
    }

    /// Reads and atomics wait for a response with data.
    pub(crate) fn awaits_response(&self) -> bool {
        matches!(
            self.op,
            SendOp::Read { .. } | SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. }
        )
    }

    /// What its completion says.
    pub(crate) fn wc_opcode(&self) -> WcOpcode {
        match self.op {
            SendOp::Send | SendOp::SendImm { .. } | SendOp::SendInvalidate { .. } => WcOpcode::Send,
            SendOp::Write { .. } | SendOp::WriteImm { .. } => WcOpcode::Write,
            SendOp::Read { .. } => WcOpcode::Read,
            SendOp::CompareSwap { .. } => WcOpcode::CompareSwap,
            SendOp::FetchAdd { .. } => WcOpcode::FetchAdd,
            SendOp::LocalInvalidate { .. } => WcOpcode::LocalInvalidate,
            SendOp::BindWindow { .. } => WcOpcode::BindWindow,
        }
    }
}

/// Requests by position: positions count up from 0 and never come back.
#[derive(Debug)]
pub(crate) struct SendQueue {
    wqes: Box<[Option<SendWqe>]>,
    sges: Box<[Sge]>,
    inline: Box<[u8]>,
    max_sge: usize,
    max_inline: usize,
    head: u64,
    tail: u64,
}

impl SendQueue {
    pub(crate) fn new(cap: &QpCapabilities) -> Self {
        let depth = cap.max_send_wr as usize;
        let (max_sge, max_inline) = (cap.max_send_sge as usize, cap.max_inline_data as usize);
        Self {
            wqes: vec![None; depth].into(),
            sges: vec![Sge::default(); depth * max_sge].into(),
            inline: vec![0; depth * max_inline].into(),
            max_sge,
            max_inline,
            head: 0,
            tail: 0,
        }
    }

    /// Position of the oldest request that hasn't completed.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline]
    pub(crate) fn get(&self, position: u64) -> Option<&SendWqe> {
        if position < self.head || position >= self.tail {
            return None;
        }
        self.wqes.get(self.slot(position))?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, position: u64) -> Option<&mut SendWqe> {
        if position < self.head || position >= self.tail {
            return None;
        }
        let slot = self.slot(position);
        self.wqes.get_mut(slot)?.as_mut()
    }

    #[inline]
    pub(crate) fn sges(&self, position: u64, count: usize) -> &[Sge] {
        let start = self.slot(position) * self.max_sge;
        self.sges.get(start..start + count).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn inline(&self, position: u64) -> &[u8] {
        let start = self.slot(position) * self.max_inline;
        self.inline
            .get(start..start + self.max_inline)
            .unwrap_or_default()
    }

    /// Takes the oldest request off.
    pub(crate) fn pop(&mut self) -> Option<SendWqe> {
        if self.is_empty() {
            return None;
        }
        let slot = self.slot(self.head);
        self.head += 1;
        self.wqes.get_mut(slot)?.take()
    }

    /// Forgets all requests.
    pub(crate) fn clear(&mut self) {
        while self.pop().is_some() {}
    }

    /// Adds a request after checking it against the queue's sizes and the
    /// service.
    pub(crate) fn push(
        &mut self,
        qp_type: QpType,
        path_mtu: PathMtu,
        signal_all: bool,
        request: &SendRequest<'_>,
    ) -> Result<()> {
        if self.tail - self.head >= self.wqes.len() as u64 {
            return Err(VerbsError::QueueFull {
                queue: "send queue",
                depth: self.wqes.len() as u32,
            });
        }
        check_service(qp_type, &request.op)?;
        let destination = destination(qp_type, request)?;
        let xrc_srqn = xrc_srqn(qp_type, request)?;
        let slot = self.slot(self.tail);
        let (payload, length) = match request.data {
            Gather::Sges(sges) => (Payload::Sges(sges.len()), self.store_sges(slot, sges)?),
            Gather::Inline(bytes) => (
                Payload::Inline,
                self.store_inline(slot, &request.op, bytes)?,
            ),
        };
        let packets = packets(qp_type, &request.op, length, path_mtu)?;
        let wqe = SendWqe {
            wr_id: request.wr_id,
            op: request.op,
            flags: request.flags,
            signaled: signal_all || request.flags.contains(SendFlags::SIGNALED),
            payload,
            length,
            first_psn: None,
            packets,
            destination,
            xrc_srqn,
        };
        if let Some(place) = self.wqes.get_mut(slot) {
            *place = Some(wqe);
            self.tail += 1;
        }
        Ok(())
    }

    fn store_sges(&mut self, slot: usize, sges: &[Sge]) -> Result<u64> {
        let start = slot * self.max_sge;
        if sges.len() > self.max_sge {
            return Err(too_many_sges(sges.len(), self.max_sge));
        }
        if let Some(place) = self.sges.get_mut(start..start + sges.len()) {
            place.copy_from_slice(sges);
        }
        Ok(sges.iter().map(|sge| u64::from(sge.length)).sum())
    }

    fn store_inline(&mut self, slot: usize, op: &SendOp, bytes: &[u8]) -> Result<u64> {
        let carries_data = matches!(
            op,
            SendOp::Send
                | SendOp::SendImm { .. }
                | SendOp::SendInvalidate { .. }
                | SendOp::Write { .. }
                | SendOp::WriteImm { .. }
        );
        if !carries_data || bytes.len() > self.max_inline {
            return Err(VerbsError::InvalidArgument {
                what: "inline data",
                seen: format!("{} bytes", bytes.len()),
                expected: format!("at most {} bytes of a Send or Write", self.max_inline),
            });
        }
        let start = slot * self.max_inline;
        if let Some(place) = self.inline.get_mut(start..start + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        Ok(bytes.len() as u64)
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        (position % self.wqes.len().max(1) as u64) as usize
    }
}

/// A list longer than the queue was created for.
pub(crate) fn too_many_sges(seen: usize, max: usize) -> VerbsError {
    VerbsError::InvalidArgument {
        what: "number of scatter/gather entries",
        seen: seen.to_string(),
        expected: format!("at most {max}"),
    }
}

/// Which operation which service has (IBTA table 37).
fn check_service(qp_type: QpType, op: &SendOp) -> Result<()> {
    let connected = qp_type != QpType::Ud;
    let reliable = matches!(qp_type, QpType::Rc | QpType::XrcSend);
    let (operation, possible) = match op {
        SendOp::Send | SendOp::SendImm { .. } => ("Send", true),
        SendOp::Write { .. } | SendOp::WriteImm { .. } => ("RDMA Write", connected),
        SendOp::SendInvalidate { .. } => ("Send with invalidate", reliable),
        SendOp::Read { .. } => ("RDMA Read", reliable),
        SendOp::CompareSwap { .. } => ("Compare and Swap", reliable),
        SendOp::FetchAdd { .. } => ("Fetch and Add", reliable),
        SendOp::LocalInvalidate { .. } => ("Local Invalidate", connected),
        SendOp::BindWindow { .. } => ("Bind Memory Window", connected),
    };
    if possible {
        return Ok(());
    }
    Err(VerbsError::UnsupportedOperation { qp_type, operation })
}

fn destination(qp_type: QpType, request: &SendRequest<'_>) -> Result<Option<UdDestination>> {
    match (qp_type, &request.ud) {
        (QpType::Ud, Some(target)) => {
            let address = target.ah.as_any().downcast_ref::<RoutedAddress>().ok_or(
                VerbsError::ForeignObject {
                    what: "address handle",
                },
            )?;
            Ok(Some(UdDestination {
                route: address.route,
                qpn: target.qpn,
                qkey: target.qkey,
            }))
        }
        (QpType::Ud, None) => Err(VerbsError::InvalidArgument {
            what: "destination of a UD request",
            seen: "none".into(),
            expected: "an address handle, a queue pair number and a Q_Key".into(),
        }),
        (_, _) => Ok(None),
    }
}

/// The shared receive queue that an XRC request names; one that receives
/// nothing need not, but its packets have the header all the same.
fn xrc_srqn(qp_type: QpType, request: &SendRequest<'_>) -> Result<Option<u32>> {
    if qp_type != QpType::XrcSend {
        return Ok(None);
    }
    let receives = matches!(
        request.op,
        SendOp::Send
            | SendOp::SendImm { .. }
            | SendOp::SendInvalidate { .. }
            | SendOp::WriteImm { .. }
    );
    match request.xrc_srqn {
        Some(srqn) if srqn >> 24 == 0 => Ok(Some(srqn)),
        None if !receives => Ok(Some(0)),
        srqn => Err(VerbsError::InvalidArgument {
            what: "shared receive queue of an XRC request",
            seen: srqn.map_or("none".into(), |srqn| format!("{srqn:#x}")),
            expected: "a number of 24 bits".into(),
        }),
    }
}

/// PSNs of a request (IBTA 9.7.2, 9.7.4.2): one per packet of a message or of
/// a Read's response. A datagram is one packet, or none if it doesn't fit.
fn packets(qp_type: QpType, op: &SendOp, length: u64, path_mtu: PathMtu) -> Result<u32> {
    let invalid = |what, seen: String, expected: String| {
        Err(VerbsError::InvalidArgument {
            what,
            seen,
            expected,
        })
    };
    match op {
        SendOp::LocalInvalidate { .. } | SendOp::BindWindow { .. } => Ok(0),
        SendOp::CompareSwap { remote, .. } | SendOp::FetchAdd { remote, .. } => {
            if length != 8 {
                return invalid("length of an atomic", length.to_string(), "8".into());
            }
            if remote.addr % 8 != 0 {
                let seen = format!("{:#x}", remote.addr);
                return invalid(
                    "remote address of an atomic",
                    seen,
                    "a multiple of 8".into(),
                );
            }
            Ok(1)
        }
        _ => {
            let packets = length.div_ceil(u64::from(path_mtu.bytes())).max(1);
            let max = MAX_MESSAGE.min(u64::from(path_mtu.bytes()) * u64::from(MAX_OUTSTANDING - 1));
            if length > max {
                return invalid(
                    "length of a message",
                    length.to_string(),
                    format!("at most {max}"),
                );
            }
            Ok(if qp_type == QpType::Ud {
                1
            } else {
                packets as u32
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use verbs_sys::RemoteAddress;

    use super::*;

    fn queue(depth: u32) -> SendQueue {
        SendQueue::new(&QpCapabilities {
            max_send_wr: depth,
            max_send_sge: 2,
            max_inline_data: 16,
            ..QpCapabilities::default()
        })
    }

    fn post(queue: &mut SendQueue, wr_id: u64, op: SendOp, data: Gather<'_>) -> Result<()> {
        let request = SendRequest {
            data,
            ..SendRequest::signaled(wr_id, op, &[])
        };
        queue.push(QpType::Rc, PathMtu::Mtu1024, false, &request)
    }

    #[test]
    fn positions_count_on_while_slots_come_back() {
        let mut queue = queue(2);
        for wr_id in 0..5 {
            post(
                &mut queue,
                wr_id,
                SendOp::Send,
                Gather::Inline(&[wr_id as u8]),
            )
            .unwrap();
            assert_eq!(queue.inline(wr_id)[0], wr_id as u8);
            assert_eq!(queue.pop().map(|wqe| wqe.wr_id), Some(wr_id));
        }
        assert!(queue.get(4).is_none());
        post(&mut queue, 5, SendOp::Send, Gather::Sges(&[])).unwrap();
        post(&mut queue, 6, SendOp::Send, Gather::Sges(&[])).unwrap();
        let error = post(&mut queue, 7, SendOp::Send, Gather::Sges(&[])).unwrap_err();
        assert_eq!(error.errno(), libc::ENOMEM);
    }

    #[test]
    fn packets_are_counted_by_path_mtu() {
        let mut queue = queue(16);
        for (length, packets) in [(0, 1), (1, 1), (1024, 1), (1025, 2), (3073, 4)] {
            let sges = [Sge {
                addr: 0,
                length,
                lkey: 0,
            }];
            let remote = RemoteAddress::default();
            post(&mut queue, 0, SendOp::Read { remote }, Gather::Sges(&sges)).unwrap();
            let position = queue.tail - 1;
            assert_eq!(
                queue.get(position).unwrap().packets,
                packets,
                "{length} bytes"
            );
        }
    }

    #[test]
    fn requests_that_no_packet_could_carry_are_refused() {
        let mut queue = queue(16);
        let sge = Sge {
            addr: 0,
            length: 8,
            lkey: 0,
        };
        let three = [sge; 3];
        assert!(post(&mut queue, 0, SendOp::Send, Gather::Sges(&three)).is_err());
        assert!(post(&mut queue, 0, SendOp::Send, Gather::Inline(&[0; 17])).is_err());
        let remote = RemoteAddress { addr: 8, rkey: 0 };
        assert!(
            post(
                &mut queue,
                0,
                SendOp::Read { remote },
                Gather::Inline(&[0; 8])
            )
            .is_err()
        );
        let add = SendOp::FetchAdd { remote, add: 1 };
        assert!(
            post(&mut queue, 0, add, Gather::Sges(&three[..2])).is_err(),
            "16 bytes"
        );
        post(&mut queue, 0, add, Gather::Sges(&three[..1])).unwrap();
        let odd = SendOp::FetchAdd {
            remote: RemoteAddress { addr: 9, rkey: 0 },
            add: 1,
        };
        assert!(post(&mut queue, 0, odd, Gather::Sges(&three[..1])).is_err());
        let huge = [Sge {
            length: u32::MAX,
            ..sge
        }];
        assert!(post(&mut queue, 0, SendOp::Send, Gather::Sges(&huge)).is_err());
        let most = [Sge {
            length: 1 << 31,
            ..sge
        }];
        post(&mut queue, 0, SendOp::Send, Gather::Sges(&most)).unwrap();
    }

    #[test]
    fn services_lack_operations() {
        let remote = RemoteAddress::default();
        let table = [
            (QpType::Uc, SendOp::Write { remote }, true),
            (QpType::Uc, SendOp::Read { remote }, false),
            (QpType::Uc, SendOp::SendInvalidate { rkey: 1 }, false),
            (QpType::Ud, SendOp::SendImm { imm: 1 }, true),
            (QpType::Uc, SendOp::LocalInvalidate { key: 1 }, true),
            (QpType::Ud, SendOp::Write { remote }, false),
            (QpType::Ud, SendOp::LocalInvalidate { key: 1 }, false),
            (QpType::Rc, SendOp::FetchAdd { remote, add: 1 }, true),
        ];
        for (qp_type, op, possible) in table {
            assert_eq!(
                check_service(qp_type, &op).is_ok(),
                possible,
                "{qp_type} {op:?}"
            );
        }
    }
}
