//! Requests in the queues, and what is refused before it gets there.

use zerocopy::FromBytes;

use super::{MAX_MESSAGE, Rig, init, load, slot};
use crate::uapi::rxe::{RecvWqe, SendWqe, Sge as RawSge, queue};
use crate::{
    AccessFlags, Context, Gather, PostError, QpAttributes, QpState, QpType, ReceiveRequest,
    RemoteAddress, SendFlags, SendOp, SendRequest, Sge, SrqInit, VerbsError, WindowBinding,
};

const REMOTE: RemoteAddress = RemoteAddress {
    addr: 0x7000_0000,
    rkey: 0x226,
};

fn sge(addr: u64, length: u32) -> Sge {
    Sge {
        addr,
        length,
        lkey: 9,
    }
}

fn send(op: SendOp, sges: &[Sge]) -> SendRequest<'_> {
    SendRequest::signaled(77, op, sges)
}

fn refused(result: Result<(), PostError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_list_costs_one_system_call() {
    let rig = Rig::new();
    let mut qp = rig.ready(QpType::Rc);
    let sges = [sge(0x1000, 10), sge(0x2000, 20)];
    let write = send(SendOp::Write { remote: REMOTE }, &sges);
    qp.post_send(&[write, write, write]).unwrap();
    assert_eq!(rig.doorbells(), 1);
    assert_eq!(load(&rig.sq, queue::PRODUCER_INDEX), 3);
    for (index, ssn) in [(0, 0), (1, 1), (2, 2)] {
        let bytes: [u8; 240] = slot(&rig.sq, index);
        let (wqe, rest) = SendWqe::read_from_prefix(&bytes).unwrap();
        assert_eq!((wqe.wr.wr_id, wqe.wr.opcode, wqe.wr.send_flags), (77, 0, 2));
        assert_eq!(wqe.operands[..2], [REMOTE.addr, u64::from(REMOTE.rkey)]);
        assert_eq!((wqe.tail.iova, wqe.tail.ssn), (REMOTE.addr, ssn));
        let dma = wqe.tail.dma;
        assert_eq!((dma.length, dma.resid, dma.num_sge), (30, 30, 2));
        let (first, rest) = RawSge::read_from_prefix(rest).unwrap();
        let (second, _) = RawSge::read_from_prefix(rest).unwrap();
        assert_eq!((first.addr, first.length, first.lkey), (0x1000, 10, 9));
        assert_eq!((second.addr, second.length), (0x2000, 20));
    }
    qp.post_send(&[]).unwrap();
    assert_eq!(rig.doorbells(), 1, "nothing to show, no system call");
}

#[test]
fn what_fits_is_sent_and_the_rest_refused() {
    let rig = Rig::new();
    let mut qp = rig.ready(QpType::Rc);
    let write = send(SendOp::Send, &[]);
    let error = qp.post_send(&[write; 9]).unwrap_err();
    assert_eq!(error.posted, 7);
    assert!(matches!(
        error.source,
        VerbsError::QueueFull {
            queue: "send queue",
            depth: 7
        }
    ));
    assert_eq!(rig.doorbells(), 1, "the seven are on their way");
    Rig::take_all(&rig.sq);
    qp.post_send(&[write]).unwrap();
}

#[test]
fn inline_data_follows_the_request() {
    let rig = Rig::new();
    let mut qp = rig.ready(QpType::Rc);
    let data: Vec<u8> = (0..64).collect();
    let mut request = send(
        SendOp::WriteImm {
            remote: REMOTE,
            imm: 0x0102_0304,
        },
        &[],
    );
    request.data = Gather::Inline(&data);
    qp.post_send(&[request]).unwrap();
    let bytes: [u8; 272] = slot(&rig.sq, 0);
    let (wqe, rest) = SendWqe::read_from_prefix(&bytes).unwrap();
    assert_eq!((wqe.wr.opcode, wqe.wr.send_flags), (1, 2 | 8));
    assert_eq!(wqe.wr.imm_or_rkey, [1, 2, 3, 4]);
    let dma = wqe.tail.dma;
    assert_eq!((dma.length, dma.resid, dma.num_sge), (64, 64, 0));
    assert_eq!(rest, data);
    let long = [0; 65];
    request.data = Gather::Inline(&long);
    assert!(refused(qp.post_send(&[request])).contains("at most 64 bytes"));
}

/// A slot keeps what an earlier request wrote; only what counts is overwritten.
#[test]
fn an_atomic_carries_its_operands() {
    let rig = Rig::new();
    let mut qp = rig.ready(QpType::Rc);
    let sges = [sge(0x1000, 8)];
    let swap = SendOp::CompareSwap {
        remote: REMOTE,
        compare: 5,
        swap: 6,
    };
    let add = SendOp::FetchAdd {
        remote: REMOTE,
        add: 7,
    };
    qp.post_send(&[send(swap, &sges), send(add, &sges)])
        .unwrap();
    for (index, opcode, operands) in [(0, 5, [5, 6]), (1, 6, [7, 0])] {
        let bytes: [u8; 208] = slot(&rig.sq, index);
        let wqe = SendWqe::read_from_bytes(&bytes).unwrap();
        assert_eq!(wqe.wr.opcode, opcode);
        assert_eq!(wqe.operands[0], REMOTE.addr);
        assert_eq!(wqe.operands[1..3], operands);
        assert_eq!(wqe.operands[3], u64::from(REMOTE.rkey));
        assert_eq!(wqe.tail.iova, REMOTE.addr);
    }
    let crooked = RemoteAddress {
        addr: 0x7000_0004,
        rkey: 1,
    };
    let op = SendOp::FetchAdd {
        remote: crooked,
        add: 1,
    };
    assert!(refused(qp.post_send(&[send(op, &sges)])).contains("multiple of 8"));
    let short = [sge(0x1000, 4)];
    assert!(refused(qp.post_send(&[send(add, &short)])).contains("length of an atomic is 4"));
}

#[test]
fn a_window_is_bound_by_its_present_key() {
    let rig = Rig::new();
    let window = rig.context.alloc_window(&*rig.domain()).unwrap();
    let mut qp = rig.ready(QpType::Rc);
    let key = window.rkey();
    let bind = |tag| SendOp::BindWindow {
        binding: WindowBinding {
            window: key,
            tag,
            lkey: 0xe68,
            addr: 0x1000,
            length: 0x2000,
            access: AccessFlags::REMOTE,
        },
    };
    let invalidate = SendOp::LocalInvalidate { key: 0x0800_0105 };
    qp.post_send(&[
        send(bind(5), &[]),
        send(invalidate, &[]),
        send(bind(6), &[]),
    ])
    .unwrap();
    let wqe = |index| SendWqe::read_from_bytes(&slot::<208>(&rig.sq, index)).unwrap();
    let keys = |index: u32| {
        let operands = wqe(index).operands;
        assert_eq!(operands[..2], [0x1000, 0x2000]);
        // mr_lkey, mw_rkey, rkey, access
        [operands[2], operands[3]].map(|pair| [pair as u32, (pair >> 32) as u32])
    };
    assert_eq!(keys(0), [[0xe68, 0x0800_0104], [0x0800_0105, 0xe]]);
    assert_eq!(wqe(1).wr.imm_or_rkey, 0x0800_0105_u32.to_ne_bytes());
    assert_eq!(keys(2), [[0xe68, 0x0800_0105], [0x0800_0106, 0xe]]);
    drop(window);
    let error = qp.post_send(&[send(bind(7), &[])]).unwrap_err();
    assert!(matches!(error.source, VerbsError::ForeignObject { .. }));
}

#[test]
fn services_have_their_operations() {
    let sges = [sge(0x1000, 8)];
    let add = SendOp::FetchAdd {
        remote: REMOTE,
        add: 1,
    };
    let write = SendOp::Write { remote: REMOTE };
    let read = SendOp::Read { remote: REMOTE };
    let inv = SendOp::SendInvalidate { rkey: 1 };
    for (service, refused_ops) in [
        (QpType::Rc, vec![]),
        (QpType::Uc, vec![add, read, inv]),
        (QpType::Ud, vec![add, read, inv, write, SendOp::Send]),
    ] {
        let rig = Rig::new();
        let mut qp = rig.ready(service);
        for op in [SendOp::Send, write, read, add, inv] {
            let posted = qp.post_send(&[send(op, &sges)]);
            assert_eq!(
                posted.is_err(),
                refused_ops.contains(&op),
                "{service} {op:?}"
            );
        }
    }
    let rig = Rig::new();
    let mut inline = send(read, &[]);
    inline.data = Gather::Inline(&[1]);
    assert!(refused(rig.ready(QpType::Rc).post_send(&[inline])).contains("inline data"));
}

#[test]
fn lengths_and_entries_have_limits() {
    let rig = Rig::new();
    let mut qp = rig.ready(QpType::Rc);
    let cap = qp.capabilities();
    // Entries and inline data share an area: 64 bytes are 4 entries.
    assert_eq!((cap.max_send_sge, cap.max_inline_data), (4, 64));
    let sges = [sge(0, 1); 5];
    assert!(refused(qp.post_send(&[send(SendOp::Send, &sges)])).contains("at most 4"));
    let long = [sge(0, MAX_MESSAGE), sge(0, 1)];
    assert!(refused(qp.post_send(&[send(SendOp::Send, &long)])).contains("8388609"));
    let huge = [sge(0, u32::MAX); 3];
    assert!(qp.post_send(&[send(SendOp::Send, &huge)]).is_err());
    assert_eq!(rig.doorbells(), 0);
    let request = |sges| ReceiveRequest { wr_id: 1, sges };
    assert!(refused(qp.post_recv(&[request(&sges[..3])])).contains("at most 2"));
    assert!(refused(qp.post_recv(&[request(&huge[..2])])).contains("less than 4 GiB"));
    qp.post_recv(&[request(&[])]).unwrap();
}

#[test]
fn receives_need_no_system_call() {
    let rig = Rig::new();
    let mut qp = rig.ready(QpType::Rc);
    let sges = [sge(0x1000, 100), sge(0x2000, 200)];
    let request = ReceiveRequest {
        wr_id: 5,
        sges: &sges,
    };
    let before = rig.asked.lock().unwrap().len();
    qp.post_recv(&[request, request]).unwrap();
    assert_eq!(load(&rig.rq, queue::PRODUCER_INDEX), 2);
    assert_eq!(
        (rig.doorbells(), rig.asked.lock().unwrap().len()),
        (0, before)
    );
    let bytes: [u8; 72] = slot(&rig.rq, 1);
    let (wqe, rest) = RecvWqe::read_from_prefix(&bytes).unwrap();
    assert_eq!(wqe.wr_id, 5);
    let dma = wqe.dma;
    assert_eq!((dma.length, dma.resid, dma.num_sge), (300, 300, 2));
    let (_, rest) = RawSge::read_from_prefix(rest).unwrap();
    assert_eq!(RawSge::read_from_bytes(rest).unwrap().length, 200);
    let error = qp.post_recv(&[request; 9]).unwrap_err();
    assert_eq!(error.posted, 5);
}

#[test]
fn states_allow_what_they_allow() {
    let rig = Rig::new();
    let cq = rig.completions();
    let init = init(QpType::Rc, &*cq);
    let mut qp = rig.context.create_qp(&*rig.domain(), &init).unwrap();
    let receive = ReceiveRequest {
        wr_id: 1,
        sges: &[],
    };
    for (state, sends, receives) in [
        (QpState::Reset, false, false),
        (QpState::Init, false, true),
        (QpState::Rtr, false, true),
        (QpState::Rts, true, true),
        (QpState::Sqd, true, true),
        (QpState::Error, true, false),
    ] {
        qp.modify(&QpAttributes::to_state(state)).unwrap();
        let sent = qp.post_send(&[send(SendOp::Send, &[])]);
        assert_eq!(sent.is_ok(), sends, "{state}");
        let received = qp.post_recv(&[receive]);
        assert_eq!(received.is_ok(), receives, "{state}");
        Rig::take_all(&rig.sq);
        Rig::take_all(&rig.rq);
    }
}

/// What waits in SQD goes on only after a further doorbell.
#[test]
fn leaving_sqd_rings() {
    let rig = Rig::new();
    let mut qp = rig.ready(QpType::Rc);
    for (state, rung) in [(QpState::Sqd, 0), (QpState::Rts, 1), (QpState::Rts, 1)] {
        qp.modify(&QpAttributes::to_state(state)).unwrap();
        assert_eq!(rig.doorbells(), rung);
    }
}

#[test]
fn shared_receives_go_to_their_queue() {
    let rig = Rig::new();
    let pd = rig.domain();
    let sizes = SrqInit {
        max_wr: 5,
        max_sge: 2,
        limit: 0,
        xrc: None,
    };
    let mut srq = rig.context.create_srq(&*pd, &sizes).unwrap();
    let request = ReceiveRequest {
        wr_id: 8,
        sges: &[sge(0, 1)],
    };
    srq.post_recv(&[request]).unwrap();
    assert_eq!(load(&rig.srq, queue::PRODUCER_INDEX), 1);
    srq.set_limit(2).unwrap();
    let cq = rig.completions();
    let mut with_srq = init(QpType::Rc, &*cq);
    with_srq.srq = Some(&*srq);
    let mut qp = rig.context.create_qp(&*pd, &with_srq).unwrap();
    qp.modify(&QpAttributes::to_state(QpState::Init)).unwrap();
    let error = refused(qp.post_recv(&[request]));
    assert!(error.contains("shared receive queue"), "{error}");
    let sges = &[sge(0, 1); 3];
    assert!(refused(srq.post_recv(&[ReceiveRequest { wr_id: 1, sges }])).contains("at most 2"));
}

#[test]
fn flags_become_the_kernels() {
    let rig = Rig::new();
    let mut qp = rig.ready(QpType::Rc);
    let mut request = send(SendOp::Send, &[]);
    request.flags = SendFlags::FENCE | SendFlags::SOLICITED;
    qp.post_send(&[request]).unwrap();
    let wqe = SendWqe::read_from_bytes(&slot::<208>(&rig.sq, 0)).unwrap();
    assert_eq!((wqe.wr.opcode, wqe.wr.send_flags), (2, 1 | 4));
}
