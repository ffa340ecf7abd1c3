//! Group qp-state.

use verbs_sys::{EventKind, QpAttributes, QpState, QpType, SendOp, VerbsError, WcStatus};

use super::{FLUSHED, TARGET, assert_at_rest, kinds, only};
use crate::transport::tests::harness::{B, Host, Pair, QKEY, Setup, outcomes};

const STATES: [QpState; 3] = [QpState::Init, QpState::Rtr, QpState::Rts];

fn of(qp_type: QpType) -> Setup {
    Setup {
        qp_type,
        ..Setup::DEFAULT
    }
}

fn to(state: QpState) -> QpAttributes {
    QpAttributes::to_state(state)
}

/// Walks from RESET to RTS; what was set is there, and nothing else.
fn walk(qp_type: QpType) {
    let mut host = Host::new(1, &of(qp_type));
    assert_eq!(host.state(), QpState::Reset);
    let peer = [10, 0, 0, 2].into();
    let mut expected = QpAttributes::default();
    for (step, state) in host
        .path_to(QpState::Rts, peer, 0x55, [0xff_ffff, 3])
        .into_iter()
        .zip(STATES)
    {
        host.modify(step).unwrap();
        assert_eq!(host.state(), state, "{qp_type}");
        macro_rules! merge {
            ($($field:ident),*) => { $(expected.$field = step.$field.or(expected.$field);)* };
        }
        merge!(
            state,
            access_flags,
            pkey_index,
            port,
            qkey,
            av,
            path_mtu,
            timeout,
            retry_cnt,
            rnr_retry,
            max_qp_rd_atomic,
            min_rnr_timer,
            max_dest_rd_atomic,
            dest_qpn,
            sq_psn
        );
    }
    let mut seen = host.nic.query_qp(host.qpn).unwrap();
    let expected_psn = if qp_type == QpType::Ud { 0 } else { 3 };
    assert_eq!(seen.rq_psn.take(), Some(expected_psn), "{qp_type}");
    assert_eq!(seen, expected, "{qp_type}");
}

/// QPS-001, QPA-008.
#[test]
fn rc_and_uc_qp_walk_reset_init_rtr_rts() {
    walk(QpType::Rc);
    walk(QpType::Uc);
}

/// QPS-002, QPA-008.
#[test]
fn ud_qp_walks_reset_init_rtr_rts() {
    walk(QpType::Ud);
}

/// QPS-003.
#[test]
fn illegal_state_transitions_are_rejected() {
    let setup = Setup::default();
    for (from, to_state) in [
        (QpState::Reset, QpState::Rtr),
        (QpState::Reset, QpState::Error),
        (QpState::Init, QpState::Rts),
        (QpState::Rts, QpState::Rtr),
        (QpState::Rtr, QpState::Sqd),
    ] {
        let mut host = Host::new(1, &setup);
        for step in host.path_to(from, [10, 0, 0, 2].into(), 0x55, [1, 2]) {
            host.modify(step).unwrap();
        }
        let before = host.nic.query_qp(host.qpn).unwrap();
        let error = host.modify(to(to_state)).unwrap_err();
        assert!(matches!(error, VerbsError::InvalidTransition { .. }));
        assert_eq!(host.nic.query_qp(host.qpn).unwrap(), before);
    }
}

/// Every live state, with a receive posted and, where that is possible, a Send.
fn each_live_state(mut test: impl FnMut(Host, &[(u64, WcStatus)])) {
    for state in [QpState::Init, QpState::Rtr, QpState::Rts, QpState::Sqd] {
        let mut host = Host::new(1, &Setup::default());
        let is_connected = matches!(state, QpState::Rts | QpState::Sqd);
        let reached = if is_connected { QpState::Rts } else { state };
        for step in host.path_to(reached, [10, 0, 0, 2].into(), 0x55, [1, 2]) {
            host.modify(step).unwrap();
        }
        if state == QpState::Sqd {
            host.modify(to(state)).unwrap();
        }
        host.recv(1, 0, 8);
        if is_connected {
            host.post(2, SendOp::Send, 0, 8);
        }
        test(host, if is_connected { &[(2, FLUSHED)] } else { &[] });
    }
}

/// QPS-004.
#[test]
fn any_state_can_go_to_reset() {
    each_live_state(|mut host, _| {
        host.modify(to(QpState::Reset)).unwrap();
        assert_eq!(host.state(), QpState::Reset);
        assert_eq!(host.sent(), []);
        assert_eq!(host.received(), []);
    });
}

/// QPS-005.
#[test]
fn any_live_state_can_go_to_err() {
    each_live_state(|mut host, sent| {
        host.modify(to(QpState::Error)).unwrap();
        assert_eq!(host.state(), QpState::Error);
        assert_eq!(outcomes(&host.sent()), sent);
        assert_eq!(outcomes(&host.received()), [(1, FLUSHED)]);
    });
}

/// QPS-010.
#[test]
fn destroy_qp_from_every_state_succeeds() {
    each_live_state(|mut host, _| {
        host.nic.destroy_qp(host.qpn);
        assert!(host.nic.query_qp(host.qpn).is_err());
        assert_eq!(host.sent(), []);
        assert_eq!(host.received(), []);
    });
}

/// QPS-006.
#[test]
fn err_flushes_both_queues_in_order() {
    let mut pair = Pair::new(&Setup::default());
    for wr_id in 0..20 {
        pair.a().post(wr_id, SendOp::Send, 0, 8);
        pair.a().recv(100 + wr_id, 0, 8);
    }
    pair.a().modify(to(QpState::Error)).unwrap();
    pair.drive();
    let flushed = |first: u64| -> Vec<_> { (first..first + 20).map(|id| (id, FLUSHED)).collect() };
    assert_eq!(outcomes(&pair.a().sent()), flushed(0));
    assert_eq!(outcomes(&pair.a().received()), flushed(100));
    assert!(pair.log.is_empty(), "silence");
}

/// QPS-012.
#[test]
fn post_send_before_rts_is_refused() {
    for qp_type in [QpType::Rc, QpType::Ud] {
        let mut host = Host::new(1, &of(qp_type));
        let peer = [10, 0, 0, 2].into();
        let ah = host.address_of(peer);
        let target = verbs_sys::UdTarget {
            ah: &ah,
            qpn: 0x55,
            qkey: QKEY,
        };
        let request = verbs_sys::SendRequest {
            ud: Some(target),
            ..verbs_sys::SendRequest::signaled(1, SendOp::Send, &[])
        };
        for step in host.path_to(QpState::Rts, peer, 0x55, [1, 2]) {
            let error = host.try_post(&[request]).unwrap_err();
            assert_eq!((error.posted, error.source.errno()), (0, libc::EINVAL));
            host.modify(step).unwrap();
        }
        let now = crate::time::Time::ZERO;
        let sent = host.transmit(now, crate::transport::Acks::All);
        assert!(sent.is_empty(), "nothing was queued");
    }
}

/// QPS-015.
#[test]
fn post_recv_in_reset_is_refused() {
    for qp_type in [QpType::Rc, QpType::Ud] {
        let mut host = Host::new(1, &of(qp_type));
        let request = verbs_sys::ReceiveRequest {
            wr_id: 1,
            sges: &[],
        };
        let error = host.nic.post_recv(host.qpn, &[request]).unwrap_err();
        assert_eq!((error.posted, error.source.errno()), (0, libc::EINVAL));
        host.connect(host.qpn, [10, 0, 0, 2].into(), 0x55, [1, 2]);
        host.modify(to(QpState::Error)).unwrap();
        assert_eq!(host.received(), [], "nothing was queued");
    }
}

/// QPS-017.
#[test]
fn post_recv_in_rtr_is_used() {
    let setup = Setup::default();
    let (mut a, mut b) = (Host::new(1, &setup), Host::new(2, &setup));
    let (address_a, address_b, qpn_a, qpn_b) = (a.address, b.address, a.qpn, b.qpn);
    a.connect(qpn_a, address_b, qpn_b, setup.psn);
    let psn = [setup.psn[1], setup.psn[0]];
    for step in b.path_to(QpState::Rts, address_a, qpn_a, psn) {
        if step.state == Some(QpState::Rts) {
            b.recv(7, TARGET, 100);
        }
        b.modify(step).unwrap();
    }
    let mut pair = Pair::connected(a, b, setup.psn);
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 1);
    assert_eq!(only(pair.b().received()).wr_id, 7);
    assert_at_rest(&mut pair);
}

/// QPS-011.
#[test]
fn qp_verbs_on_invalid_handle_are_rejected() {
    let mut host = Host::new(1, &Setup::default());
    let unknown = host.qpn ^ 0x4000;
    assert!(host.nic.query_qp(unknown).is_err());
    assert!(host.nic.modify_qp(unknown, &to(QpState::Reset)).is_err());
    assert!(host.nic.post_send(unknown, &[]).is_err());
    assert!(host.nic.post_recv(unknown, &[]).is_err());
    host.nic.destroy_qp(unknown);
    assert_eq!(host.state(), QpState::Reset, "the other one lives");
}

/// QPS-013.
#[test]
fn post_send_in_err_is_flushed() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().modify(to(QpState::Error)).unwrap();
    for wr_id in 0..1000 {
        pair.a().post(wr_id, SendOp::Send, 0, 8);
        assert_eq!(outcomes(&pair.a().sent()), [(wr_id, FLUSHED)]);
    }
    pair.drive();
    assert!(pair.log.is_empty());
}

/// QPS-018.
#[test]
fn post_recv_in_err_is_flushed() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().modify(to(QpState::Error)).unwrap();
    for wr_id in 0..1000 {
        pair.a().recv(wr_id, 0, 8);
        assert_eq!(outcomes(&pair.a().received()), [(wr_id, FLUSHED)]);
    }
}

/// Requests of all kinds to a peer that doesn't receive in its state.
fn assert_times_out(states: &[QpState]) {
    for state in states.iter().copied() {
        let mut pair = Pair::new(&Setup::default());
        let remote = pair.b().remote(TARGET);
        let before = pair.b().read(TARGET, 8);
        let reset = to(QpState::Reset);
        pair.b().modify(reset).unwrap();
        if state != QpState::Reset {
            let a = pair.a().address;
            for step in pair.b().path_to(QpState::Init, a, 1, [1, 1]) {
                pair.b().modify(step).unwrap();
            }
        }
        if state == QpState::Error {
            pair.b().modify(to(state)).unwrap();
        }
        for (wr_id, op) in [
            (1, SendOp::Write { remote }),
            (2, SendOp::Read { remote }),
            (3, SendOp::FetchAdd { remote, add: 1 }),
            (4, SendOp::Send),
        ] {
            pair.a().post(wr_id, op, 0, 8);
        }
        pair.drive();
        let sent = outcomes(&pair.a().sent());
        assert_eq!(sent[0], (1, WcStatus::RetryExceeded));
        assert_eq!(sent[1..], [(2, FLUSHED), (3, FLUSHED), (4, FLUSHED)]);
        assert!(pair.texts(B).is_empty());
        assert_eq!(pair.a().state(), QpState::Error);
        assert_eq!(pair.b().state(), state);
        assert_eq!(pair.b().read(TARGET, 8), before);
    }
}

/// QPS-020.
#[test]
fn request_to_peer_in_reset_or_init_times_out() {
    assert_times_out(&[QpState::Reset, QpState::Init]);
}

/// QPS-021.
#[test]
fn request_to_peer_in_err_times_out() {
    assert_times_out(&[QpState::Error]);
}

/// QPS-023.
#[test]
fn reads_continue_while_peer_moves_rtr_to_rts() {
    let setup = Setup::default();
    let (mut a, mut b) = (Host::new(1, &setup), Host::new(2, &setup));
    let (address_a, address_b, qpn_a, qpn_b) = (a.address, b.address, a.qpn, b.qpn);
    a.connect(qpn_a, address_b, qpn_b, setup.psn);
    let psn = [setup.psn[1], setup.psn[0]];
    let steps = b.path_to(QpState::Rts, address_a, qpn_a, psn);
    b.modify(steps[0]).unwrap();
    b.modify(steps[1]).unwrap();
    b.recv(7, TARGET, 100);
    let mut pair = Pair::connected(a, b, setup.psn);
    let remote = pair.b().remote(TARGET);
    for wr_id in 0..20 {
        pair.a().post(wr_id, SendOp::Read { remote }, 0, 1000);
        if wr_id == 10 {
            pair.step(pair.now);
            pair.b().modify(steps[2]).unwrap();
        }
        pair.drive();
        assert_eq!(only(pair.a().sent()).wr_id, wr_id);
    }
    assert_eq!(kinds(pair.b()), [EventKind::CommunicationEstablished]);
    pair.a().post(21, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 21);
    assert_eq!(only(pair.b().received()).wr_id, 7);
    assert_at_rest(&mut pair);
}

/// QPS-024: numbers of queue pairs that are gone come back with other high
/// bits, and never that of one that lives.
#[test]
fn qpn_reuse_leaves_live_qp_alone() {
    let mut pair = Pair::new(&Setup::default());
    let live = pair.b().qpn;
    let mut numbers = std::collections::HashSet::new();
    for _ in 0..2000 {
        let qpn = pair.b().create_qp();
        assert_ne!(qpn, live);
        numbers.insert(qpn);
        pair.b().nic.destroy_qp(qpn);
    }
    assert!(numbers.len() > 500, "{} different ones", numbers.len());
    pair.b().recv(1, TARGET, 8);
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(only(pair.b().received()).qp_num, live);
}
