//! What each state of a queue pair does with work and packets.

use std::time::Duration;

use verbs_sys::{
    EventKind, QpAttributes, QpState, QpType, SendOp, SendRequest, UdTarget, WcStatus,
};

use super::harness::{A, Host, Pair, QKEY, Setup, outcomes};
use crate::time::Time;
use crate::transport::Acks;

const TARGET: usize = 0x8_0000;

pub(super) const STATES: [QpState; 7] = [
    QpState::Reset,
    QpState::Init,
    QpState::Rtr,
    QpState::Rts,
    QpState::Sqd,
    QpState::Sqe,
    QpState::Error,
];

fn setup(qp_type: QpType) -> Setup {
    Setup {
        qp_type,
        ..Setup::default()
    }
}

/// Lets a UC or UD queue pair in RTS fail at a request with a bad key.
fn fail_send(host: &mut Host, wr_id: u64) {
    let mut sge = host.sge(0, 8);
    sge.lkey ^= 1;
    post_to(host, wr_id, sge);
    host.transmit(Time::ZERO, Acks::All);
}

/// Posts a Send of any service; datagrams go to host 2.
fn post_to(host: &mut Host, wr_id: u64, sge: verbs_sys::Sge) {
    let ah = host.address_of([10, 0, 0, 2].into());
    let is_datagram = host.settings().qp_type == QpType::Ud;
    let sges = [sge];
    let request = SendRequest {
        ud: is_datagram.then_some(UdTarget {
            ah: &ah,
            qpn: 0x55,
            qkey: QKEY,
        }),
        ..SendRequest::signaled(wr_id, SendOp::Send, &sges)
    };
    host.try_post(&[request]).unwrap();
}

/// A host whose queue pair is in `state`, if its service has that.
pub(super) fn host_in(qp_type: QpType, state: QpState) -> Option<Host> {
    let mut host = Host::new(1, &setup(qp_type));
    let target = match state {
        QpState::Sqd | QpState::Sqe | QpState::Error => QpState::Rts,
        other => other,
    };
    for step in host.path_to(target, [10, 0, 0, 2].into(), 0x55, [1, 2]) {
        host.modify(step).unwrap();
    }
    match state {
        QpState::Sqe if qp_type == QpType::Rc => return None,
        QpState::Sqe => {
            fail_send(&mut host, 1);
            host.sent();
        }
        QpState::Sqd | QpState::Error => host.modify(QpAttributes::to_state(state)).unwrap(),
        _ => {}
    }
    assert_eq!(host.state(), state);
    Some(host)
}

/// Where work can be posted, and what becomes of it.
#[test]
fn posting_in_each_state() {
    let flushed = WcStatus::WorkRequestFlushed;
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
        for state in STATES {
            let Some(mut host) = host_in(qp_type, state) else {
                continue;
            };
            let context = format!("{qp_type} {state}");
            let sge = [host.sge(0, 8)];
            let receive = [verbs_sys::ReceiveRequest {
                wr_id: 1,
                sges: &sge,
            }];
            let received = host.nic.post_recv(host.qpn, &receive);
            assert_eq!(received.is_ok(), state != QpState::Reset, "{context}");
            let expected: &[_] = if state == QpState::Error {
                &[(1, flushed)]
            } else {
                &[]
            };
            assert_eq!(outcomes(&host.received()), expected, "{context}");

            let refuses = matches!(state, QpState::Reset | QpState::Init | QpState::Rtr);
            let ah = host.address_of([10, 0, 0, 2].into());
            let request = SendRequest {
                ud: Some(UdTarget {
                    ah: &ah,
                    qpn: 0x55,
                    qkey: QKEY,
                }),
                ..SendRequest::signaled(2, SendOp::Send, &sge)
            };
            let posted = host.try_post(&[request]);
            assert_eq!(posted.is_err(), refuses, "{context}");
            let sent = host.transmit(Time::ZERO, Acks::All);
            assert_eq!(sent.len(), usize::from(state == QpState::Rts), "{context}");
            let unconnected = qp_type != QpType::Rc && state == QpState::Rts;
            let expected: &[_] = match state {
                QpState::Sqe | QpState::Error => &[(2, flushed)],
                _ if unconnected => &[(2, WcStatus::Success)],
                _ => &[],
            };
            assert_eq!(outcomes(&host.sent()), expected, "{context}");
        }
    }
}

/// QPS-025, QPS-026, T-053, Q-28: SQD finishes what has been begun, tells so once, and holds
/// what is posted until RTS.
#[test]
fn sqd_holds_new_work_and_drains_old() {
    let sqd = QpAttributes {
        en_sqd_async_notify: Some(true),
        ..QpAttributes::to_state(QpState::Sqd)
    };
    let mut pair = Pair::new(&Setup {
        window: 2,
        ..Setup::default()
    });
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Write { remote }, 0, 1000);
    pair.a().post(2, SendOp::Write { remote }, 0, 1000);
    pair.step(Time::ZERO);
    pair.a().modify(sqd).unwrap();
    pair.a().post(3, SendOp::Write { remote }, 0, 8);
    assert_eq!(pair.a().events(), [], "not yet");
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
    assert_eq!(pair.texts(A).len(), 4);
    let drained = |host: &mut Host| -> Vec<EventKind> {
        host.events().iter().map(|event| event.kind).collect()
    };
    assert_eq!(drained(pair.a()), [EventKind::SendQueueDrained]);
    // The receiving side goes on.
    let to_a = pair.a().remote(TARGET);
    pair.b().post(9, SendOp::Write { remote: to_a }, 0, 8);
    pair.drive();
    assert_eq!(outcomes(&pair.b().sent()), [(9, WcStatus::Success)]);
    assert_eq!(drained(pair.a()), [], "told once");
    pair.a()
        .modify(QpAttributes::to_state(QpState::Rts))
        .unwrap();
    pair.drive();
    let success = WcStatus::Success;
    assert_eq!(outcomes(&pair.a().sent()), [(2, success), (3, success)]);
    // Nothing to drain: told at once; not asked for: not told.
    pair.a().modify(sqd).unwrap();
    assert_eq!(drained(pair.a()), [EventKind::SendQueueDrained]);
}

/// Q-28 for the services without acknowledgements.
#[test]
fn sqd_holds_unacknowledged_services_too() {
    for qp_type in [QpType::Uc, QpType::Ud] {
        let mut host = host_in(qp_type, QpState::Sqd).unwrap();
        let sge = host.sge(0, 8);
        post_to(&mut host, 1, sge);
        let acks = Acks::All;
        assert!(host.transmit(Time::ZERO, acks).is_empty(), "{qp_type}");
        host.modify(QpAttributes::to_state(QpState::Rts)).unwrap();
        assert_eq!(host.transmit(Time::ZERO, acks).len(), 1, "{qp_type}");
        assert_eq!(outcomes(&host.sent()), [(1, WcStatus::Success)]);
    }
}

/// A UC message that is half sent when SQD comes goes out to its end.
#[test]
fn sqd_finishes_a_message_of_uc() {
    let mut pair = Pair::new(&setup(QpType::Uc));
    let remote = pair.b().remote(TARGET);
    let length = 256 * 100;
    pair.a().post(1, SendOp::Write { remote }, 0, length);
    let host = pair.a();
    let acks = Acks::All;
    assert!(host.nic.transmit(Time::ZERO, &mut host.tx, acks));
    let first = host.tx.packets().len();
    host.tx.consume(first);
    assert!(first < 100);
    let sqd = QpAttributes {
        en_sqd_async_notify: Some(true),
        ..QpAttributes::to_state(QpState::Sqd)
    };
    pair.a().modify(sqd).unwrap();
    assert_eq!(pair.a().events(), []);
    pair.drive();
    assert_eq!(pair.texts(A).len(), 100 - first);
    assert_eq!(pair.a().events()[0].kind, EventKind::SendQueueDrained);
}

/// QPS-027, Q-26: a local fault on UC or UD stops the send queue only (SQE); RTS
/// brings it back.
#[test]
fn local_send_error_on_uc_or_ud_enters_sqe() {
    for qp_type in [QpType::Uc, QpType::Ud] {
        let mut host = host_in(qp_type, QpState::Rts).unwrap();
        let mut bad = host.sge(0, 8);
        bad.lkey ^= 1;
        let good = host.sge(0, 8);
        for (wr_id, sge) in [(1, good), (2, bad), (3, good)] {
            post_to(&mut host, wr_id, sge);
        }
        host.recv(9, 0, 100);
        let acks = Acks::All;
        assert_eq!(host.transmit(Time::ZERO, acks).len(), 1);
        let (success, flushed) = (WcStatus::Success, WcStatus::WorkRequestFlushed);
        let expected = [
            (1, success),
            (2, WcStatus::LocalProtectionError),
            (3, flushed),
        ];
        assert_eq!(outcomes(&host.sent()), expected, "{qp_type}");
        assert_eq!(host.state(), QpState::Sqe);
        assert_eq!(host.received(), [], "the receive stays");
        post_to(&mut host, 4, good);
        assert_eq!(outcomes(&host.sent()), [(4, flushed)]);
        host.modify(QpAttributes::to_state(QpState::Rts)).unwrap();
        post_to(&mut host, 5, good);
        assert_eq!(host.transmit(Time::ZERO, acks).len(), 1);
        assert_eq!(outcomes(&host.sent()), [(5, success)]);
    }
}

/// QPS-019, T-079: RTR serves requests, and reports the first one, once.
#[test]
fn rtr_responder_serves_requests() {
    let setup = Setup::default();
    let mut pair = Pair::new(&setup);
    let (a, qpn) = (pair.a().address, pair.a().qpn);
    pair.b()
        .modify(QpAttributes::to_state(QpState::Reset))
        .unwrap();
    for step in pair
        .b()
        .path_to(QpState::Rtr, a, qpn, [setup.psn[1], setup.psn[0]])
    {
        pair.b().modify(step).unwrap();
    }
    let remote = pair.b().remote(TARGET);
    pair.b().recv(1, 0, 100);
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.a().post(2, SendOp::Read { remote }, 0, 8);
    pair.a().post(3, SendOp::FetchAdd { remote, add: 1 }, 0, 8);
    pair.drive();
    assert_eq!(pair.a().sent().len(), 3);
    assert_eq!(pair.b().received().len(), 1);
    assert_eq!(pair.b().state(), QpState::Rtr);
    let kinds: Vec<EventKind> = pair.b().events().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::CommunicationEstablished]);
}

/// QPS-016: A peer that is late to receive is waited for.
#[test]
fn post_recv_in_init_waits_for_rtr() {
    let setup = Setup::default();
    let mut pair = Pair::new(&setup);
    let (a, qpn) = (pair.a().address, pair.a().qpn);
    pair.b()
        .modify(QpAttributes::to_state(QpState::Reset))
        .unwrap();
    let psn = [setup.psn[1], setup.psn[0]];
    let steps = pair.b().path_to(QpState::Rtr, a, qpn, psn);
    pair.b().modify(steps[0]).unwrap();
    pair.b().recv(1, TARGET, 100);
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.b().received(), []);
    pair.b().modify(steps[1]).unwrap();
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
    assert_eq!(outcomes(&pair.b().received()), [(1, WcStatus::Success)]);
}

/// QPS-007: ERR flushes both queues in the order of posting, after what has completed.
#[test]
fn completions_already_earned_precede_flush() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Write { remote }, 0, 8);
    pair.drive();
    for wr_id in 2..5 {
        pair.a().post(wr_id, SendOp::Write { remote }, 0, 8);
        pair.a().recv(wr_id, 0, 8);
    }
    pair.a()
        .modify(QpAttributes::to_state(QpState::Error))
        .unwrap();
    let flushed = WcStatus::WorkRequestFlushed;
    let rest = [(2, flushed), (3, flushed), (4, flushed)];
    let sent = outcomes(&pair.a().sent());
    assert_eq!(sent[0], (1, WcStatus::Success));
    assert_eq!(sent[1..], rest);
    assert_eq!(outcomes(&pair.a().received()), rest);
    pair.clear_log();
    pair.drive();
    assert!(pair.texts(A).is_empty());
}

/// QPS-008: RESET forgets all work and all completions that wait; the queue pair can
/// be connected anew.
#[test]
fn qp_is_reusable_after_reset() {
    let setup = Setup::default();
    let mut pair = Pair::new(&setup);
    let remote = pair.b().remote(TARGET);
    for round in 0..3 {
        pair.b().recv(1, 0, 100);
        pair.a().post(round, SendOp::Send, 0, 8);
        pair.a().post(round, SendOp::Read { remote }, 0, 2000);
        pair.drive();
        // Work that nobody will do, and completions that nobody fetches.
        pair.a().recv(7, 0, 100);
        pair.a().post(8, SendOp::Write { remote }, 0, 100);
        pair.step(pair.now);
        let psn = [0x99_0000 + round as u32, 0x77_0000];
        let addresses = [pair.a().address, pair.b().address];
        let qpns = [pair.a().qpn, pair.b().qpn];
        for host in [0, 1] {
            let reset = QpAttributes::to_state(QpState::Reset);
            pair.hosts[host].modify(reset).unwrap();
            assert_eq!(pair.hosts[host].sent(), []);
            assert_eq!(pair.hosts[host].received(), []);
            let psn = [psn[host], psn[1 - host]];
            pair.hosts[host].connect(qpns[host], addresses[1 - host], qpns[1 - host], psn);
        }
        pair.drive();
        assert_eq!(pair.a().sent(), []);
        assert_eq!(pair.a().state(), QpState::Rts);
    }
}

/// Destroying a queue pair in any state takes its completions and leaves the
/// others alone.
#[test]
fn destroying_takes_the_own_completions_only() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    let other = pair.a().create_qp();
    let b = pair.b().address;
    pair.a().connect(other, b, 0x55, [1, 1]);
    let first = pair.a().qpn;
    pair.a().post(1, SendOp::Write { remote }, 0, 8);
    pair.drive();
    pair.a().qpn = other;
    pair.a().post(2, SendOp::Write { remote }, 0, 8);
    pair.a()
        .modify(QpAttributes::to_state(QpState::Error))
        .unwrap();
    pair.a().nic.destroy_qp(other);
    assert!(pair.a().nic.query_qp(other).is_err());
    pair.a().qpn = first;
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
    pair.a().nic.destroy_qp(first);
    let cq = pair.a().send_cq;
    pair.a().nic.destroy_cq(cq).unwrap();
}
