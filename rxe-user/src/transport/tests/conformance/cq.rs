//! Groups cq and, as far as it is the transport's, cq-events.

use verbs_sys::{
    Completion, EventKind, EventSource, Notify, QpState, SendFlags, SendOp, WcFlags, WcOpcode,
    WcStatus,
};

use super::{SUCCESS, TARGET, assert_at_rest, kinds};
use crate::transport::tests::harness::{A, B, Host, Pair, Setup, outcomes};

const SMALL: Setup = Setup {
    cq_depth: 4,
    ..Setup::DEFAULT
};

/// CQ-003.
#[test]
fn cq_depth_out_of_range_is_rejected() {
    let mut host = Host::new(1, &Setup::default());
    let most = crate::transport::NicLimits::default().max_cqe;
    for (depth, fits) in [(0, false), (1, true), (most, true), (most + 1, false)] {
        match host.nic.create_cq(depth) {
            Ok(cq) => {
                assert!(fits);
                host.nic.destroy_cq(cq).unwrap();
            }
            Err(error) => {
                assert!(!fits);
                assert_eq!(error.errno(), libc::EINVAL);
            }
        }
    }
}

/// CQ-001.
#[test]
fn create_and_destroy_cq() {
    let mut host = Host::new(1, &Setup::default());
    let cq = host.nic.create_cq(10).unwrap();
    assert_eq!(host.nic.poll_cq(cq, &mut [Completion::default()]), 0);
    host.nic.destroy_cq(cq).unwrap();
    let again = host.nic.create_cq(10).unwrap();
    host.nic.destroy_cq(again).unwrap();
}

/// CQ-005.
#[test]
fn destroy_cq_used_by_qp_is_refused() {
    let mut pair = Pair::new(&Setup::default());
    for cq in [pair.a().send_cq, pair.a().recv_cq] {
        let error = pair.a().nic.destroy_cq(cq).unwrap_err();
        assert_eq!(error.errno(), libc::EBUSY);
    }
    pair.b().recv(2, TARGET, 8);
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, SUCCESS)]);
}

/// CQ-008.
#[test]
fn cq_filled_to_capacity_is_no_error() {
    let mut pair = Pair::new(&SMALL);
    let remote = pair.b().remote(TARGET);
    for wr_id in 0..4 {
        pair.a().post(wr_id, SendOp::Write { remote }, 0, 8);
    }
    pair.drive();
    let all: Vec<_> = (0..4).map(|wr_id| (wr_id, SUCCESS)).collect();
    assert_eq!(outcomes(&pair.a().sent()), all);
    assert_at_rest(&mut pair);
}

/// CQ-013.
#[test]
fn poll_returns_no_more_than_asked() {
    let mut pair = Pair::new(&SMALL);
    let remote = pair.b().remote(TARGET);
    for wr_id in 0..4 {
        pair.a().post(wr_id, SendOp::Write { remote }, 0, 8);
    }
    pair.drive();
    let cq = pair.a().send_cq;
    let mut some = [Completion::default(); 3];
    assert_eq!(pair.a().nic.poll_cq(cq, &mut []), 0);
    assert_eq!(pair.a().nic.poll_cq(cq, &mut some), 3);
    assert_eq!([0, 1, 2], some.map(|done| done.wr_id));
    assert_eq!(pair.a().nic.poll_cq(cq, &mut some), 1);
    assert_eq!(some[0].wr_id, 3);
    assert_eq!(pair.a().nic.poll_cq(cq, &mut some), 0);
}

/// CQ-019.
#[test]
fn error_wc_keeps_wr_id_and_qp_num() {
    let mut pair = Pair::new(&Setup::default());
    let mut remote = pair.b().remote(TARGET);
    remote.rkey ^= 1;
    pair.a().post(u64::MAX, SendOp::Write { remote }, 0, 8);
    pair.a().post(u64::MAX - 1, SendOp::Write { remote }, 0, 8);
    pair.a().recv(u64::MAX - 2, 0, 8);
    pair.drive();
    let qpn = pair.a().qpn;
    let sent = pair.a().sent();
    let fields: Vec<_> = sent
        .iter()
        .chain(&pair.a().received())
        .map(|done| (done.wr_id, done.status, done.qp_num, done.vendor_err))
        .collect();
    let flushed = WcStatus::WorkRequestFlushed;
    assert_eq!(
        fields,
        [
            (u64::MAX, WcStatus::RemoteAccessError, qpn, 0x62),
            (u64::MAX - 1, flushed, qpn, 0),
            (u64::MAX - 2, flushed, qpn, 0)
        ]
    );
}

/// CQ-009.
#[test]
fn send_cq_overflow_is_fatal() {
    let mut pair = Pair::new(&SMALL);
    for wr_id in 0..5 {
        let remote = pair.b().remote(TARGET + 8 * wr_id as usize);
        pair.a().write(0, &[7; 8]);
        pair.a().post(wr_id, SendOp::Write { remote }, 0, 8);
    }
    pair.drive();
    let fatal = [EventKind::CqError, EventKind::QpFatal];
    assert_eq!(kinds(pair.a()), fatal);
    assert_eq!(pair.a().state(), QpState::Error);
    let kept: Vec<_> = (0..4).map(|wr_id| (wr_id, SUCCESS)).collect();
    assert_eq!(outcomes(&pair.a().sent()), kept);
    assert_eq!(pair.b().read(TARGET, 40), [7; 40]);
    assert_eq!(pair.b().state(), QpState::Rts);
}

/// CQ-010.
#[test]
fn recv_cq_overflow_is_fatal() {
    let mut pair = Pair::new(&Setup {
        cq_depth: 8,
        ..Setup::default()
    });
    for wr_id in 0..9 {
        pair.b().recv(wr_id, TARGET, 8);
    }
    for wr_id in 0..8 {
        pair.a().post(wr_id, SendOp::Send, 0, 8);
    }
    pair.drive();
    assert_eq!(pair.a().sent().len(), 8);
    pair.a().post(8, SendOp::Send, 0, 8);
    pair.drive();
    let fatal = [EventKind::CqError, EventKind::QpFatal];
    assert_eq!(kinds(pair.b()), fatal);
    assert_eq!(pair.b().state(), QpState::Error);
    let failed = [(8, WcStatus::RetryExceeded)];
    assert_eq!(outcomes(&pair.a().sent()), failed);
    assert_eq!(pair.a().state(), QpState::Error);
    assert_eq!(pair.b().received().len(), 8);
}

/// CQ-011, CQ-012.
#[test]
fn shared_cq_overflow_hits_every_user_once() {
    let mut pair = Pair::new(&SMALL);
    let remote = pair.b().remote(TARGET);
    let address = pair.b().address;
    let mut users = vec![pair.a().qpn];
    for _ in 0..4 {
        let qpn = pair.a().create_qp();
        pair.a().connect(qpn, address, 0x55, [1, 1]);
        users.push(qpn);
    }
    // One with queues of its own.
    let mut settings = pair.a().settings();
    settings.send_cq = pair.a().nic.create_cq(4).unwrap();
    settings.recv_cq = settings.send_cq;
    let apart = pair.a().nic.create_qp(settings).unwrap();
    pair.a().connect(apart, address, 0x55, [1, 1]);
    for wr_id in 0..5 {
        pair.a().post(wr_id, SendOp::Write { remote }, 0, 8);
    }
    pair.drive();
    let events = pair.a().events();
    let cq = EventSource::Cq(pair.a().send_cq.handle());
    assert_eq!(events[0].kind, EventKind::CqError);
    assert_eq!(events[0].source, cq);
    let mut fatal: Vec<u32> = events[1..]
        .iter()
        .map(|event| match (event.kind, event.source) {
            (EventKind::QpFatal, EventSource::Qp(qpn)) => qpn,
            other => panic!("{other:?}"),
        })
        .collect();
    fatal.sort_unstable();
    users.sort_unstable();
    assert_eq!(fatal, users);
    pair.a().qpn = apart;
    assert_eq!(pair.a().state(), QpState::Rts);
}

/// Four connections whose queue pairs share their hosts' queues, and 30
/// messages on each; the completions of A's sends and of B's receives.
fn shared_traffic() -> (Vec<[u32; 2]>, [Vec<Completion>; 2]) {
    let mut pair = Pair::new(&Setup::default());
    let addresses = [pair.a().address, pair.b().address];
    let mut connections = vec![[pair.a().qpn, pair.b().qpn]];
    for index in 0..3 {
        let qpns = [pair.a().create_qp(), pair.b().create_qp()];
        pair.a().connect(qpns[0], addresses[1], qpns[1], [index, 0]);
        pair.b().connect(qpns[1], addresses[0], qpns[0], [0, index]);
        connections.push(qpns);
    }
    for wr_id in 0..30 {
        for [a, b] in &connections {
            pair.a().qpn = *a;
            pair.b().qpn = *b;
            pair.b().recv(wr_id, TARGET, 1000);
            pair.a().post(wr_id, SendOp::Send, 0, 700);
        }
    }
    pair.drive();
    let completions = [pair.a().sent(), pair.b().received()];
    (connections, completions)
}

/// All of them, in the order of posting per queue pair.
fn assert_order_of(side: usize) {
    let (connections, completions) = shared_traffic();
    let completions = &completions[side];
    assert_eq!(completions.len(), 120);
    assert!(completions.iter().all(Completion::is_success));
    for qpns in &connections {
        let of_one = completions.iter().filter(|done| done.qp_num == qpns[side]);
        let order: Vec<u64> = of_one.map(|done| done.wr_id).collect();
        assert_eq!(order, Vec::from_iter(0..30));
    }
}

/// CQ-006.
#[test]
fn send_queues_share_one_cq() {
    assert_order_of(A);
}

/// CQ-007.
#[test]
fn recv_queues_share_one_cq() {
    assert_order_of(B);
}

/// CQ-014: more than one call's worth, fetched in batches of any size.
#[test]
fn batch_poll_keeps_order() {
    for batch in [1, 3, 16, 200] {
        let mut pair = Pair::new(&Setup::default());
        let remote = pair.b().remote(TARGET);
        for wr_id in 0..100 {
            pair.a().post(wr_id, SendOp::Write { remote }, 0, 8);
        }
        pair.drive();
        let cq = pair.a().send_cq;
        let mut order = Vec::new();
        let mut some = vec![Completion::default(); batch];
        loop {
            let count = pair.a().nic.poll_cq(cq, &mut some);
            order.extend(some[..count].iter().map(|done| done.wr_id));
            if count < batch {
                break;
            }
        }
        assert_eq!(order, Vec::from_iter(0..100), "batches of {batch}");
    }
}

/// CQ-017.
#[test]
fn send_wc_fields_match_operation() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    let (qpn, peer) = (pair.a().qpn, pair.b().qpn);
    let (compare, swap) = (1, 2);
    for (op, opcode, receive) in [
        (SendOp::Send, WcOpcode::Send, Some(WcOpcode::Receive)),
        (
            SendOp::SendImm { imm: 9 },
            WcOpcode::Send,
            Some(WcOpcode::Receive),
        ),
        (SendOp::Write { remote }, WcOpcode::Write, None),
        (
            SendOp::WriteImm { remote, imm: 9 },
            WcOpcode::Write,
            Some(WcOpcode::ReceiveWriteImm),
        ),
        (SendOp::Read { remote }, WcOpcode::Read, None),
        (
            SendOp::CompareSwap {
                remote,
                compare,
                swap,
            },
            WcOpcode::CompareSwap,
            None,
        ),
        (
            SendOp::FetchAdd { remote, add: 1 },
            WcOpcode::FetchAdd,
            None,
        ),
    ] {
        if receive.is_some() {
            pair.b().recv(77, TARGET, 8);
        }
        pair.a().post(0xdead_beef_0000_0001, op, 0, 8);
        pair.drive();
        let sent = pair.a().sent();
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].wr_id, 0xdead_beef_0000_0001);
        assert_eq!((sent[0].opcode, sent[0].qp_num), (opcode, qpn));
        let received = pair.b().received();
        assert_eq!(received.len(), usize::from(receive.is_some()));
        for done in received {
            assert_eq!(Some(done.opcode), receive);
            assert_eq!((done.byte_len, done.qp_num, done.src_qp), (8, peer, qpn));
            let has_imm = matches!(op, SendOp::SendImm { .. } | SendOp::WriteImm { .. });
            assert_eq!(done.flags.contains(WcFlags::WITH_IMM), has_imm);
            assert!(!done.flags.contains(WcFlags::GRH));
        }
    }
}

/// CQ-018.
#[test]
fn recv_wc_fields_match_message() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    let (from, to) = (pair.a().qpn, pair.b().qpn);
    let imm = 0x0a0b_0c0d;
    let (plain, write_imm) = (WcOpcode::Receive, WcOpcode::ReceiveWriteImm);
    for (op, opcode, expected) in [
        (SendOp::Send, plain, None),
        (SendOp::SendImm { imm }, plain, Some(imm)),
        (SendOp::WriteImm { remote, imm }, write_imm, Some(imm)),
    ] {
        for length in [0, 1, 777] {
            pair.b().recv(u64::MAX, 0, 1000);
            pair.a().post(1, op, 0, length);
            pair.drive();
            let received = pair.b().received();
            let flags = match expected {
                Some(_) => WcFlags::WITH_IMM,
                None => WcFlags::empty(),
            };
            assert_eq!(
                received,
                [Completion {
                    wr_id: u64::MAX,
                    opcode,
                    byte_len: length as u32,
                    imm_or_rkey: expected.unwrap_or(0),
                    qp_num: to,
                    src_qp: from,
                    flags,
                    ..Completion::default()
                }]
            );
        }
    }
}

/// T-083: what wakes a consumer that has armed its queue.
#[test]
fn solicited_and_failed_completions_wake() {
    let mut pair = Pair::new(&Setup::default());
    let cq = pair.b().recv_cq;
    for wr_id in 0..4 {
        pair.b().recv(wr_id, TARGET, 8);
    }
    pair.b().nic.arm_cq(cq, Notify::Solicited);
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(pair.b().nic.next_notified(), None);
    let flags = SendFlags::SIGNALED | SendFlags::SOLICITED;
    for _ in 0..2 {
        pair.a().post_flags(2, SendOp::Send, 0, 8, flags);
    }
    pair.drive();
    assert_eq!(pair.b().nic.next_notified(), Some(cq));
    assert_eq!(pair.b().nic.next_notified(), None, "once per arming");
    pair.b().nic.arm_cq(cq, Notify::Solicited);
    let error = verbs_sys::QpAttributes::to_state(QpState::Error);
    pair.b().modify(error).unwrap();
    assert_eq!(pair.b().nic.next_notified(), Some(cq), "flushed");
}
