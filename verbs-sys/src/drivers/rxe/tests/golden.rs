//! The queues as they were recorded at each doorbell of rdma-core's provider:
//! every send and receive request is posted again and the slots are compared,
//! every completion is polled and compared with what the recorded program saw.

use std::collections::BTreeMap;

use zerocopy::{FromBytes, IntoBytes};

use super::{Rig, queue_of, slot};
use crate::uapi::ioctl::{Method, UHW_OUT};
use crate::uapi::rxe::{CreateQpResp, MwWr, RdmaWr, RecvWqe, SendWqe, Sge as RawSge, UdWr, queue};
use crate::uapi::user_verbs::Wc;
use crate::uverbs::tests::trace::{After, Call, calls, comment_field, comments, records};
use crate::{
    AccessFlags, AddressVector, Completion, Context, Gather, Gid, QpType, ReceiveRequest,
    RemoteAddress, SendFlags, SendOp, SendRequest, Sge, UdTarget, WcStatus, WindowBinding,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sends,
    Receives,
    Completions,
    /// Queues of two devices that differ.
    Unclear,
}

/// Which queue is at which offset.
fn kinds(calls: &[Call]) -> BTreeMap<u64, Kind> {
    let mut kinds = BTreeMap::new();
    let mut note = |offset, kind| {
        let known = kinds.entry(offset).or_insert(kind);
        if *known != kind {
            *known = Kind::Unclear;
        }
    };
    for call in calls {
        let Call::Ioctl {
            object,
            method,
            after,
            ..
        } = call
        else {
            continue;
        };
        let Some(After::Bytes(bytes)) = after.get(&UHW_OUT) else {
            continue;
        };
        let method = Method {
            object: *object,
            method: *method,
        };
        let at = |offset: usize| u64::read_from_bytes(&bytes[offset..offset + 8]).unwrap();
        match method {
            Method::CQ_CREATE => note(at(0), Kind::Completions),
            Method::SRQ_CREATE => note(at(0), Kind::Receives),
            Method::QP_CREATE => {
                let resp = CreateQpResp::read_from_bytes(bytes).unwrap();
                note(resp.rq_mi.offset, Kind::Receives);
                note(resp.sq_mi.offset, Kind::Sends);
            }
            _ => {}
        }
    }
    kinds
}

fn entries(bytes: &[u8], count: u32) -> Vec<Sge> {
    bytes
        .chunks_exact(size_of::<RawSge>())
        .take(count as usize)
        .map(|bytes| {
            let raw = RawSge::read_from_bytes(bytes).unwrap();
            Sge {
                addr: raw.addr,
                length: raw.length,
                lkey: raw.lkey,
            }
        })
        .collect()
}

/// The operation of a recorded request.
fn operation(wqe: &SendWqe) -> SendOp {
    let operands = wqe.operands.as_bytes();
    let rdma = RdmaWr::read_from_prefix(operands).unwrap().0;
    let remote = RemoteAddress {
        addr: rdma.remote_addr,
        rkey: rdma.rkey,
    };
    let imm = u32::from_be_bytes(wqe.wr.imm_or_rkey);
    let key = u32::from_ne_bytes(wqe.wr.imm_or_rkey);
    let atomic = RemoteAddress {
        addr: wqe.operands[0],
        rkey: wqe.operands[3] as u32,
    };
    match wqe.wr.opcode {
        0 => SendOp::Write { remote },
        1 => SendOp::WriteImm { remote, imm },
        2 => SendOp::Send,
        3 => SendOp::SendImm { imm },
        4 => SendOp::Read { remote },
        5 => SendOp::CompareSwap {
            remote: atomic,
            compare: wqe.operands[1],
            swap: wqe.operands[2],
        },
        6 => SendOp::FetchAdd {
            remote: atomic,
            add: wqe.operands[1],
        },
        7 => SendOp::LocalInvalidate { key },
        8 => {
            let bind = MwWr::read_from_prefix(operands).unwrap().0;
            SendOp::BindWindow {
                binding: WindowBinding {
                    window: bind.mw_rkey,
                    tag: bind.rkey as u8,
                    lkey: bind.mr_lkey,
                    addr: bind.addr,
                    length: bind.length,
                    access: AccessFlags::from_bits_retain(bind.access),
                },
            }
        }
        9 => SendOp::SendInvalidate { rkey: key },
        other => panic!("opcode {other}"),
    }
}

/// Leaves what the request says, of the bytes of a slot.
fn masked(bytes: &[u8], operation: &SendOp, service: QpType) -> SendWqe {
    let mut wqe = SendWqe::read_from_prefix(bytes).unwrap().0;
    // The kernel has been at it already; the number is rdma-core's own.
    let tail = &mut wqe.tail;
    (tail.status, tail.state, tail.mask) = (0, 0, 0);
    (tail.first_psn, tail.last_psn, tail.ack_length) = (0, 0, 0);
    (tail.ssn, tail.has_rd_atomic) = (0, 0);
    (tail.dma.resid, tail.dma.cur_sge, tail.dma.sge_offset) = (0, 0, 0);
    // rdma-core copies what the caller has there, wanted or not.
    let carries = matches!(
        operation,
        SendOp::SendImm { .. }
            | SendOp::WriteImm { .. }
            | SendOp::SendInvalidate { .. }
            | SendOp::LocalInvalidate { .. }
    );
    if !carries {
        wqe.wr.imm_or_rkey = [0; 4];
    }
    let used = match operation {
        SendOp::Write { .. } | SendOp::WriteImm { .. } | SendOp::Read { .. } => 2,
        SendOp::CompareSwap { .. } | SendOp::BindWindow { .. } => 4,
        SendOp::FetchAdd { .. } => {
            // rdma-core copies an operand that isn't one.
            wqe.operands[2] = 0;
            4
        }
        // rdma-core copies an address that isn't one.
        _ => {
            wqe.tail.iova = 0;
            match service {
                QpType::Ud => wqe.operands.len(),
                _ => 0,
            }
        }
    };
    wqe.operands[used..].fill(0);
    wqe
}

/// Posts a recorded request and compares the slot.
fn resend(bytes: &[u8], place: &str) {
    let recorded = SendWqe::read_from_prefix(bytes).unwrap().0;
    let operation = operation(&recorded);
    let ud = UdWr::read_from_bytes(recorded.operands.as_bytes()).unwrap();
    let sends = matches!(operation, SendOp::Send | SendOp::SendImm { .. });
    // Only datagrams have a handle; a kernel without numbers isn't recorded.
    let service = match sends && ud.ah_num != 0 && ud.remote_qkey != 0 {
        true => QpType::Ud,
        false => QpType::Rc,
    };
    let rig = Rig::with_queues(
        queue_of(7, 15),
        queue_of(bytes.len().trailing_zeros(), 7),
        queue_of(7, 7),
        queue_of(7, 7),
    );
    *rig.ah_num.lock().unwrap() = ud.ah_num;
    if let SendOp::BindWindow { binding } = operation {
        rig.context.core.windows.enter(binding.window);
    }
    let av = AddressVector {
        dgid: Gid::from_ip([10, 0, 0, 2].into()),
        sgid_index: 1,
        flow_label: 0,
        hop_limit: 64,
        traffic_class: 0,
        sl: 0,
        port: 1,
    };
    let ah = rig.context.create_ah(&*rig.domain(), &av).unwrap();
    let area = &bytes[size_of::<SendWqe>()..];
    let dma = recorded.tail.dma;
    let sges = entries(area, dma.num_sge);
    let inline = recorded.wr.send_flags & 8 != 0;
    let request = SendRequest {
        wr_id: recorded.wr.wr_id,
        op: operation,
        data: match inline {
            true => Gather::Inline(&area[..dma.length as usize]),
            false => Gather::Sges(&sges),
        },
        flags: SendFlags::from_bits_truncate(recorded.wr.send_flags),
        ud: (service == QpType::Ud).then_some(UdTarget {
            ah: &*ah,
            qpn: ud.remote_qpn,
            qkey: ud.remote_qkey,
        }),
        xrc_srqn: None,
    };
    rig.ready(service).post_send(&[request]).expect(place);
    let ours: [u8; 512] = slot(&rig.sq, 0);
    assert_eq!(
        masked(&ours, &operation, service),
        masked(bytes, &operation, service),
        "{place}"
    );
    let used = match inline {
        true => dma.length as usize,
        false => sges.len() * size_of::<RawSge>(),
    };
    let ours = &ours[size_of::<SendWqe>()..];
    assert_eq!(ours[..used], area[..used], "{place}: entries");
}

fn receive_again(bytes: &[u8], place: &str) {
    let recorded = RecvWqe::read_from_prefix(bytes).unwrap().0;
    let used = size_of::<RecvWqe>() + recorded.dma.num_sge as usize * size_of::<RawSge>();
    let sges = entries(&bytes[size_of::<RecvWqe>()..], recorded.dma.num_sge);
    let rig = Rig::new();
    let request = ReceiveRequest {
        wr_id: recorded.wr_id,
        sges: &sges,
    };
    rig.ready(QpType::Rc).post_recv(&[request]).expect(place);
    let ours: [u8; 128] = slot(&rig.rq, 0);
    assert_eq!(ours[..used], bytes[..used], "{place}");
}

/// What the recorded program saw of its completions.
fn seen(text: &str) -> Vec<[u64; 6]> {
    const FIELDS: [&str; 6] = ["wr_id=", "opcode=", "status=", "byte_len=", "imm=", "qp=0x"];
    comments(text, "wc ")
        .map(|row| {
            FIELDS.map(|name| match name {
                "qp=0x" => {
                    let hex = row.rsplit_once(name).unwrap().1;
                    u64::from_str_radix(hex.trim(), 16).unwrap()
                }
                name => comment_field(row, name),
            })
        })
        .collect()
}

fn poll_again(bytes: &[u8], seen: &[[u64; 6]], place: &str) {
    let rig = Rig::new();
    let mut cq = rig.completions();
    let recorded = &bytes[..size_of::<Wc>()];
    rig.cq.write(queue::DATA, recorded).unwrap();
    rig.cq.store_u32(queue::PRODUCER_INDEX, 1);
    let mut polled = [Completion::default()];
    assert_eq!(cq.poll(&mut polled), 1);
    let ours = polled[0];
    let imm = match ours.invalidated_rkey() {
        // The recorded program prints it as if it were immediate data.
        Some(key) => key.swap_bytes(),
        None => ours.immediate().unwrap_or(0),
    };
    let failed = ours.status != WcStatus::Success;
    let found = seen.iter().any(|[wr_id, opcode, status, len, theirs, qp]| {
        *wr_id == ours.wr_id
            && *status == ours.status as u64
            && *qp == u64::from(ours.qp_num)
            && (failed
                || *opcode == ours.opcode as u64
                    && *len == u64::from(ours.byte_len)
                    && *theirs == u64::from(imm))
    });
    assert!(found, "{place}: {ours:?} is none of {seen:?}");
}

#[test]
fn golden_rings_are_filled_and_read_as_recorded() {
    let mut compared = BTreeMap::new();
    for (name, text) in records() {
        let calls = calls(&text);
        let (kinds, seen) = (kinds(&calls), seen(&text));
        for call in &calls {
            let Call::Write { line, rings, .. } = call else {
                continue;
            };
            for ring in rings {
                let kind = kinds.get(&ring.offset).copied().unwrap_or(Kind::Unclear);
                for bytes in &ring.elements {
                    let place = format!("{name}:{line}, queue at {:#x}", ring.offset);
                    match kind {
                        Kind::Sends => resend(bytes, &place),
                        Kind::Receives => receive_again(bytes, &place),
                        Kind::Completions => poll_again(bytes, &seen, &place),
                        Kind::Unclear => {}
                    }
                    *compared.entry(format!("{kind:?}")).or_insert(0) += 1;
                }
            }
        }
    }
    eprintln!("entries compared: {compared:?}");
}
