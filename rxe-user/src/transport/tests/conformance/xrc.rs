//! Group xrc, and what annex A14 has beside its rows.

use std::time::Duration;

use verbs_sys::{
    Completion, EventKind, EventSource, QpAttributes, QpState, QpType, ReceiveRequest, SendFlags,
    SendOp, SendRequest, WcOpcode, WcStatus,
};

use super::{BOTH_ERR, SUCCESS, TARGET, kinds, only};
use crate::transport::tests::harness::{A, B, Host, Lone, Pair, Raw, Setup, outcomes, pattern};
use crate::transport::{CqId, QpSettings, SrqId, SrqSettings, XrcQueue};
use crate::wire::{Operation as Op, Service};

const XRC: Setup = Setup {
    qp_type: QpType::XrcSend,
    ..Setup::DEFAULT
};

/// One more queue in the XRC domain of the host, with a completion queue of
/// its own and receives `wr_id` of 1000 bytes at `TARGET`.
fn one_more_queue(host: &mut Host, wr_ids: &[u64]) -> (SrqId, CqId) {
    let cq = host.nic.create_cq(4).unwrap();
    let settings = SrqSettings {
        pd: host.pd,
        depth: 8,
        max_sge: 1,
        limit: 0,
        xrc: host.xrcd.map(|domain| XrcQueue { domain, cq }),
    };
    let srq = host.nic.create_srq(settings).unwrap();
    for wr_id in wr_ids {
        let sges = [host.sge(TARGET, 1000)];
        let request = ReceiveRequest {
            wr_id: *wr_id,
            sges: &sges,
        };
        host.nic.post_srq_recv(srq, &[request]).unwrap();
    }
    (srq, cq)
}

/// Sends `length` bytes of A's buffer to a queue of B.
fn send_to(pair: &mut Pair, wr_id: u64, op: SendOp, srqn: u32, length: usize) {
    let sges = [pair.a().sge(0, length)];
    let request = SendRequest {
        xrc_srqn: Some(srqn),
        ..SendRequest::signaled(wr_id, op, &sges)
    };
    pair.a().try_post(&[request]).unwrap();
}

/// The states of A's initiator and of B's target.
fn states(pair: &Pair) -> [QpState; 2] {
    let [a, b] = &pair.hosts;
    [a.state(), b.state_of(b.responder_qpn())]
}

/// XRC-001.
#[test]
fn xrc_send_reaches_named_srq() {
    let mut pair = Pair::new(&XRC);
    let (other, other_cq) = one_more_queue(pair.b(), &[5]);
    let (first, target) = (pair.b().srq.unwrap(), pair.b().responder_qpn());
    pair.b().recv(6, TARGET + 2000, 1000);
    pair.a().write(0, &pattern(1, 600));
    send_to(&mut pair, 1, SendOp::Send, other.number(), 600);
    send_to(
        &mut pair,
        2,
        SendOp::SendImm { imm: 9 },
        first.number(),
        300,
    );
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, SUCCESS), (2, SUCCESS)]);
    let initiator = pair.a().qpn;
    let there = only(pair.b().poll(other_cq));
    assert_eq!((there.wr_id, there.byte_len), (5, 600));
    assert_eq!((there.qp_num, there.src_qp), (target, initiator));
    let here = only(pair.b().received());
    assert_eq!((here.wr_id, here.immediate()), (6, Some(9)));
    assert_eq!(here.qp_num, target);
    assert_eq!(pair.b().read(TARGET, 600), pattern(1, 600));
    assert_eq!(pair.b().read(TARGET + 2000, 300), pattern(1, 600)[..300]);
}

/// XRC-002.
#[test]
fn xrc_write_read_and_atomics_work() {
    let mut pair = Pair::new(&XRC);
    let remote = pair.b().remote(TARGET);
    pair.a().write(0, &pattern(2, 900));
    pair.b().recv(7, 0, 0);
    pair.a().post(1, SendOp::Write { remote }, 0, 900);
    pair.a().post(2, SendOp::WriteImm { remote, imm: 3 }, 0, 8);
    pair.a().post(3, SendOp::Read { remote }, TARGET, 900);
    pair.drive();
    assert_eq!(pair.b().read(TARGET, 900), pattern(2, 900));
    assert_eq!(pair.a().read(TARGET, 900), pattern(2, 900));
    let received = only(pair.b().received());
    assert_eq!(received.opcode, WcOpcode::ReceiveWriteImm);
    assert_eq!((received.wr_id, received.immediate()), (7, Some(3)));
    pair.b().write(TARGET, &5_u64.to_ne_bytes());
    let swap = SendOp::CompareSwap {
        remote,
        compare: 12,
        swap: 99,
    };
    pair.a().post(4, SendOp::FetchAdd { remote, add: 7 }, 16, 8);
    pair.a().post(5, swap, 24, 8);
    pair.drive();
    let fetched = [pair.a().read_u64(16), pair.a().read_u64(24)];
    assert_eq!((fetched, pair.b().read_u64(TARGET)), ([5, 12], 99));
    let done: Vec<_> = pair.a().sent().iter().map(|done| done.wr_id).collect();
    assert_eq!(done, [1, 2, 3, 4, 5]);
}

/// XRC-003.
#[test]
fn xrc_requests_carry_srq_number_responses_do_not() {
    let mut pair = Pair::new(&XRC);
    let srqn = pair.b().srq.unwrap().number();
    let remote = pair.b().remote(TARGET);
    pair.b().recv(7, 0, 1000);
    pair.a().post(1, SendOp::Send, 0, 600);
    pair.a().post(2, SendOp::Write { remote }, 0, 600);
    pair.a().post(3, SendOp::Read { remote }, 0, 600);
    pair.a().post(4, SendOp::FetchAdd { remote, add: 1 }, 0, 8);
    pair.drive();
    assert_eq!(pair.a().sent().len(), 4);
    let mut counts = [0; 2];
    for sent in &pair.log {
        let packet = sent.datagram.packet();
        assert_eq!(packet.service(), Service::Xrc);
        let named = packet.xrceth().map(|header| header.srqn);
        assert_eq!(named, (sent.from == A).then_some(srqn));
        assert_eq!(packet.operation().is_request(), sent.from == A);
        counts[sent.from] += 1;
    }
    assert_eq!(counts[A], 3 + 3 + 1 + 1);
    assert!(counts[B] >= 4);
}

/// Row 17 of the fault table; XRC-004.
#[test]
fn xrc_unknown_or_foreign_srq_is_naked() {
    type Name = fn(&mut Host) -> u32;
    let names: [(&str, Name); 3] = [
        ("unknown", |host| host.srq.unwrap().number() ^ 1 << 16),
        ("of another domain", |host| {
            let own = host.xrcd.replace(host.nic.alloc_xrcd().unwrap());
            let (srq, _) = one_more_queue(host, &[1]);
            host.xrcd = own;
            srq.number()
        }),
        ("of no domain", |host| {
            let settings = SrqSettings {
                pd: host.pd,
                depth: 1,
                max_sge: 0,
                limit: 0,
                xrc: None,
            };
            let srq = host.nic.create_srq(settings).unwrap();
            let request = [ReceiveRequest {
                wr_id: 1,
                sges: &[],
            }];
            host.nic.post_srq_recv(srq, &request).unwrap();
            srq.number()
        }),
    ];
    for (name, srqn) in names {
        for op in [SendOp::Send, SendOp::SendImm { imm: 1 }] {
            let mut pair = Pair::new(&XRC);
            let (srqn, target) = (srqn(pair.b()), pair.b().responder_qpn());
            let before = pair.b().read(TARGET, 1000);
            pair.b().recv(7, TARGET, 1000);
            send_to(&mut pair, 1, op, srqn, 300);
            pair.drive();
            let refused = [(1, WcStatus::RemoteInvalidRequest)];
            assert_eq!(outcomes(&pair.a().sent()), refused, "{name}");
            assert_eq!(pair.texts(B), ["Acknowledge 0 InvalidRequest msn 0"]);
            assert_eq!(states(&pair), BOTH_ERR, "{name}");
            let events = pair.b().events();
            assert_eq!(events.len(), 1, "{name}: {events:?}");
            assert_eq!(events[0].kind, EventKind::QpAccessError);
            assert_eq!(events[0].source, EventSource::Qp(target));
            assert_eq!(pair.b().received(), [], "the receive isn't touched");
            assert_eq!(pair.b().read(TARGET, 1000), before);
        }
    }
}

/// XRC-004: what receives nothing need not name a queue.
#[test]
fn xrc_write_without_a_queue_is_executed() {
    let mut pair = Pair::new(&XRC);
    let remote = pair.b().remote(TARGET);
    pair.a().peer_srqn = None;
    pair.a().write(0, &pattern(3, 8));
    pair.a().post(1, SendOp::Write { remote }, 0, 8);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 1);
    assert_eq!(pair.b().read(TARGET, 8), pattern(3, 8));
    for (op, srqn) in [
        (SendOp::Send, None),
        (SendOp::WriteImm { remote, imm: 1 }, None),
        (SendOp::Send, Some(1 << 24)),
    ] {
        let request = SendRequest {
            xrc_srqn: srqn,
            ..SendRequest::signaled(2, op, &[])
        };
        let error = pair.a().try_post(&[request]).unwrap_err();
        assert_eq!(error.source.errno(), libc::EINVAL, "{op:?}");
    }
}

/// XRC-004: a message is of one queue, and its receive ends with it.
#[test]
fn xrc_message_that_changes_its_queue_is_naked() {
    let setup = Setup {
        qp_type: QpType::XrcReceive,
        ..Setup::DEFAULT
    };
    let mut lone = Lone::new(&setup);
    let srqn = lone.host.srq.unwrap().number();
    let (other, _) = one_more_queue(&mut lone.host, &[8]);
    lone.host.recv(7, TARGET, 1000);
    let packet = |operation, psn, srqn, payload: &[u8]| Raw {
        service: Service::Xrc,
        srqn,
        ..Raw::new(operation, psn).payload(payload)
    };
    let first = packet(Op::SendFirst, 0, srqn, &[1; 256]).no_ack();
    let last = packet(Op::SendLast, 1, other.number(), &[2; 4]);
    assert_eq!(
        lone.answers(&[first, last]),
        ["Acknowledge 1 InvalidRequest msn 0"]
    );
    let refused = [(7, WcStatus::RemoteInvalidRequest)];
    assert_eq!(outcomes(&lone.host.received()), refused);
    assert_eq!(kinds(&mut lone.host), [], "the receive tells of it");
    assert_eq!(lone.host.state(), QpState::Error);
}

/// XRC-005.
#[test]
fn xrc_empty_srq_gives_rnr() {
    let mut pair = Pair::new(&Setup {
        rnr_retry: 1,
        ..XRC
    });
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    let failed = [(1, WcStatus::RnrRetryExceeded)];
    assert_eq!(outcomes(&pair.a().sent()), failed);
    assert_eq!(pair.texts(B), ["Acknowledge 0 RNR 1 msn 0"; 2]);
    assert_eq!(states(&pair), [QpState::Error, QpState::Rts]);
}

/// XRC-006.
#[test]
fn xrc_qps_refuse_wrong_side_posts() {
    let mut pair = Pair::new(&XRC);
    let (initiator, target) = (pair.b().qpn, pair.b().responder_qpn());
    let nic = &mut pair.b().nic;
    for qpn in [initiator, target] {
        let request = [ReceiveRequest {
            wr_id: 1,
            sges: &[],
        }];
        let error = nic.post_recv(qpn, &request).unwrap_err();
        assert_eq!((error.posted, error.source.errno()), (0, libc::EINVAL));
    }
    let request = SendRequest {
        xrc_srqn: Some(1),
        ..SendRequest::signaled(1, SendOp::Send, &[])
    };
    let error = nic.post_send(target, &[request]).unwrap_err();
    assert_eq!((error.posted, error.source.errno()), (0, libc::EINVAL));
    let text = error.source.to_string();
    assert_eq!(
        text,
        "posting a send request isn't possible on a XRC target queue pair"
    );
}

/// U-11: a target needs a domain, and nobody else has one, nor a queue of it.
#[test]
fn xrc_queue_pairs_are_made_in_their_domain() {
    let mut host = Host::new(1, &XRC);
    type Change = fn(&Host, &mut QpSettings);
    let changes: [(&str, Change); 4] = [
        ("target without domain", |_, target| target.xrcd = None),
        ("initiator with domain", |_, target| {
            target.qp_type = QpType::XrcSend;
        }),
        ("target with a queue", |host, target| target.srq = host.srq),
        ("RC with a queue of the domain", |host, rc| {
            (rc.qp_type, rc.xrcd, rc.srq) = (QpType::Rc, None, host.srq);
        }),
    ];
    for (name, change) in changes {
        let mut settings = host.target_settings();
        change(&host, &mut settings);
        let error = host.nic.create_qp(settings).unwrap_err();
        assert_eq!(error.errno(), libc::EINVAL, "{name}");
    }
    let (xrcd, srq) = (host.xrcd.unwrap(), host.srq.unwrap());
    let is_busy = |host: &mut Host| host.nic.dealloc_xrcd(xrcd).is_err();
    assert!(is_busy(&mut host), "a target is in it");
    host.nic.destroy_qp(host.target.unwrap());
    assert!(is_busy(&mut host), "a queue is in it");
    host.nic.destroy_qp(host.qpn);
    assert!(host.nic.destroy_cq(host.recv_cq).is_err(), "in use");
    host.nic.destroy_srq(srq).unwrap();
    host.nic.destroy_cq(host.recv_cq).unwrap();
    host.nic.dealloc_xrcd(xrcd).unwrap();
    assert!(host.nic.create_qp(host.target_settings()).is_err());
}

/// U-12: the keys of a message are looked up in the domain of the queue that
/// it names.
#[test]
fn xrc_keys_are_those_of_the_named_queue() {
    let mut pair = Pair::new(&XRC);
    let b = pair.b();
    let other_pd = b.nic.alloc_pd().unwrap();
    let settings = SrqSettings {
        pd: other_pd,
        depth: 1,
        max_sge: 1,
        limit: 0,
        xrc: b.xrcd.map(|domain| XrcQueue {
            domain,
            cq: b.recv_cq,
        }),
    };
    let foreign = b.nic.create_srq(settings).unwrap().number();
    let own = b.srq.unwrap().number();
    let remote = b.remote(TARGET);
    for (srqn, status) in [
        (own, WcStatus::Success),
        (foreign, WcStatus::RemoteAccessError),
    ] {
        send_to(&mut pair, 1, SendOp::Write { remote }, srqn, 8);
        pair.drive();
        assert_eq!(outcomes(&pair.a().sent()), [(1, status)], "{srqn:#x}");
    }
}

/// A queue may go while targets are there; what is on the way into it ends.
#[test]
fn xrc_queue_destroyed_inside_a_message_ends_it() {
    let mut pair = Pair::new(&XRC);
    let (srq, cq) = one_more_queue(pair.b(), &[5]);
    pair.drop_packets(A, &[1, 2]);
    send_to(&mut pair, 1, SendOp::Send, srq.number(), 600);
    pair.run_for(Duration::from_micros(5));
    pair.b().nic.destroy_srq(srq).unwrap();
    pair.b().nic.destroy_cq(cq).unwrap();
    let heir = pair.b().nic.create_cq(4).unwrap();
    assert_eq!(heir, cq, "the number comes back");
    pair.drive();
    let refused = [(1, WcStatus::RemoteInvalidRequest)];
    assert_eq!(outcomes(&pair.a().sent()), refused);
    assert_eq!(states(&pair), BOTH_ERR);
    assert_eq!(pair.b().poll(heir), []);
}

/// C-1: a completion queue that overruns takes the XRC queues with it that
/// report there, and the targets that did.
#[test]
fn overrun_of_an_xrc_queues_cq_ends_queue_and_target() {
    let mut pair = Pair::new(&XRC);
    let (srq, cq) = one_more_queue(pair.b(), &[1, 2, 3, 4, 5, 6]);
    let target = pair.b().responder_qpn();
    let idle_target = {
        let settings = pair.b().target_settings();
        pair.b().nic.create_qp(settings).unwrap()
    };
    for wr_id in 0..5 {
        send_to(&mut pair, wr_id, SendOp::Send, srq.number(), 8);
    }
    pair.run_for(Duration::from_micros(5));
    let received: Vec<Completion> = pair.b().poll(cq);
    assert_eq!(received.len(), 4, "what fitted");
    let events: Vec<_> = pair.b().events();
    let events: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.source))
        .collect();
    assert_eq!(
        events,
        [
            (EventKind::CqError, EventSource::Cq(cq.handle())),
            (EventKind::SrqError, EventSource::Srq(srq.number())),
            (EventKind::QpFatal, EventSource::Qp(target)),
        ]
    );
    assert_eq!(pair.b().state_of(target), QpState::Error);
    assert_eq!(pair.b().state_of(idle_target), QpState::Reset);
    let initiator = pair.b().qpn;
    assert_eq!(pair.b().state_of(initiator), QpState::Rts);
}

/// a target in error gives back the receive in use, no other.
#[test]
fn xrc_target_in_error_flushes_the_receive_in_use() {
    let mut pair = Pair::new(&XRC);
    for wr_id in [1, 2] {
        pair.b().recv(wr_id, TARGET, 1000);
    }
    pair.drop_packets(A, &[2]);
    pair.a()
        .post_flags(1, SendOp::Send, 0, 600, SendFlags::SIGNALED);
    pair.run_for(Duration::from_micros(5));
    let target = pair.b().responder_qpn();
    let error = QpAttributes::to_state(QpState::Error);
    pair.b().nic.modify_qp(target, &error).unwrap();
    let flushed = [(1, WcStatus::WorkRequestFlushed)];
    assert_eq!(outcomes(&pair.b().received()), flushed);
    pair.b().nic.destroy_qp(target);
}

/// A14: an initiator takes no requests, a target no responses.
#[test]
fn xrc_halves_ignore_packets_of_the_other() {
    let request = Raw {
        service: Service::Xrc,
        ..Raw::new(Op::SendOnly, 0)
    };
    let response = Raw {
        service: Service::Xrc,
        ..Raw::new(Op::Acknowledge, 0)
    };
    for (qp_type, raw) in [
        (QpType::XrcSend, request.clone()),
        (QpType::XrcReceive, response),
        (QpType::Rc, request),
    ] {
        let mut lone = Lone::new(&Setup {
            qp_type,
            ..Setup::DEFAULT
        });
        assert!(lone.answers(&[raw]).is_empty(), "{qp_type}");
        assert_eq!(lone.host.nic.counters().rx_unknown_qp, 1, "{qp_type}");
    }
}
