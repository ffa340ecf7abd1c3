//! Groups qp-state and qp-attr.

use verbs_sys::{
    AccessFlags, EventKind, QpAttributes, QpState, QpType, SendOp, VerbsError, WcStatus,
};

use super::{FLUSHED, SUCCESS, TARGET, assert_at_rest, kinds, only};
use crate::transport::NicLimits;
use crate::transport::tests::harness::{A, B, Host, Pair, QKEY, Setup, outcomes};

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

/// QPS-001, QPS-002, QPA-001, QPA-008: state by state, and all values back.
#[test]
fn rc_and_uc_qp_walk_reset_init_rtr_rts() {
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
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

/// QPS-004, QPS-005, QPS-010: with work queued.
#[test]
fn any_state_can_go_to_reset() {
    for target in [Some(QpState::Reset), Some(QpState::Error), None] {
        for state in [QpState::Init, QpState::Rtr, QpState::Rts, QpState::Sqd] {
            let mut host = Host::new(1, &Setup::default());
            let reached = if state == QpState::Sqd {
                QpState::Rts
            } else {
                state
            };
            for step in host.path_to(reached, [10, 0, 0, 2].into(), 0x55, [1, 2]) {
                host.modify(step).unwrap();
            }
            if state == QpState::Sqd {
                host.modify(to(state)).unwrap();
            }
            host.recv(1, 0, 8);
            if reached == QpState::Rts {
                host.post(2, SendOp::Send, 0, 8);
            }
            match target {
                Some(target) => {
                    host.modify(to(target)).unwrap();
                    assert_eq!(host.state(), target);
                }
                None => host.nic.destroy_qp(host.qpn),
            }
            let is_flushed = target == Some(QpState::Error);
            let received: &[_] = if is_flushed { &[(1, FLUSHED)] } else { &[] };
            assert_eq!(outcomes(&host.received()), received, "{state}");
            let sent: &[_] = if is_flushed && reached == QpState::Rts {
                &[(2, FLUSHED)]
            } else {
                &[]
            };
            assert_eq!(outcomes(&host.sent()), sent, "{state}");
        }
    }
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

/// QPS-013, QPS-018.
#[test]
fn post_send_in_err_is_flushed() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().modify(to(QpState::Error)).unwrap();
    for wr_id in 0..1000 {
        pair.a().post(wr_id, SendOp::Send, 0, 8);
        pair.a().recv(wr_id, 0, 8);
        assert_eq!(outcomes(&pair.a().sent()), [(wr_id, FLUSHED)]);
        assert_eq!(outcomes(&pair.a().received()), [(wr_id, FLUSHED)]);
    }
    pair.drive();
    assert!(pair.log.is_empty());
}

/// QPS-020, QPS-021.
#[test]
fn request_to_peer_in_reset_or_init_times_out() {
    for state in [QpState::Reset, QpState::Init, QpState::Error] {
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

/// QPS-017, QPS-023.
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

/// QPA-002 to QPA-007: what can't be granted is refused.
#[test]
fn create_qp_beyond_wr_limit_is_rejected() {
    let mut host = Host::new(1, &Setup::default());
    let limits = NicLimits::default();
    type Change = fn(&mut crate::transport::QpSettings, u32);
    let changes: [(Change, u32); 5] = [
        (|qp, n| qp.cap.max_send_wr = n, limits.max_qp_wr),
        (|qp, n| qp.cap.max_recv_wr = n, limits.max_qp_wr),
        (|qp, n| qp.cap.max_send_sge = n, limits.max_sge),
        (|qp, n| qp.cap.max_recv_sge = n, limits.max_sge),
        (|qp, n| qp.cap.max_inline_data = n, limits.max_inline_data),
    ];
    for (change, most) in changes {
        let mut small = host.settings();
        small.cap = verbs_sys::QpCapabilities::default();
        for (value, fits) in [(most, true), (most + 1, false), (u32::MAX, false)] {
            let mut settings = small;
            change(&mut settings, value);
            match host.nic.create_qp(settings) {
                Ok(qpn) => {
                    assert!(fits, "{value}");
                    host.nic.destroy_qp(qpn);
                }
                Err(error) => {
                    assert!(!fits, "{value}");
                    assert_eq!(error.errno(), libc::EINVAL);
                }
            }
        }
    }
    let mut xrc = host.settings();
    xrc.qp_type = QpType::XrcSend;
    let error = host.nic.create_qp(xrc).unwrap_err();
    assert_eq!(error.errno(), libc::EOPNOTSUPP);
    let mut dead = host.settings();
    dead.send_cq = host.nic.create_cq(1).unwrap();
    host.nic.destroy_cq(dead.send_cq).unwrap();
    assert!(host.nic.create_qp(dead).is_err());
}

/// QPA-004.
#[test]
fn create_qp_without_send_queue() {
    let mut host = Host::new(1, &Setup::default());
    let mut settings = host.settings();
    settings.cap.max_send_wr = 0;
    host.qpn = host.nic.create_qp(settings).unwrap();
    host.connect(host.qpn, [10, 0, 0, 2].into(), 0x55, [1, 2]);
    let request = verbs_sys::SendRequest::signaled(1, SendOp::Send, &[]);
    let error = host.try_post(&[request]).unwrap_err();
    assert_eq!(error.source.errno(), libc::ENOMEM);
}

/// QPA-009.
#[test]
fn ud_qkey_change_is_visible() {
    let mut pair = Pair::new(&of(QpType::Ud));
    pair.b().recv(7, TARGET, 100);
    let change = QpAttributes {
        qkey: Some(9),
        ..QpAttributes::default()
    };
    pair.b().modify(change).unwrap();
    let seen = pair.hosts[B].nic.query_qp(pair.hosts[B].qpn).unwrap();
    assert_eq!(seen.qkey, Some(9));
    let (peer, qpn) = (pair.b().address, pair.b().qpn);
    let ah = pair.a().address_of(peer);
    for qkey in [QKEY, 9] {
        let target = verbs_sys::UdTarget { ah: &ah, qpn, qkey };
        let request = verbs_sys::SendRequest {
            ud: Some(target),
            ..verbs_sys::SendRequest::signaled(1, SendOp::Send, &[])
        };
        pair.a().try_post(&[request]).unwrap();
        pair.drive();
        let received = outcomes(&pair.b().received());
        let expected: &[_] = if qkey == 9 { &[(7, SUCCESS)] } else { &[] };
        assert_eq!(received, expected);
    }
}

/// QPA-011.
#[test]
fn rd_atomic_attributes_are_at_least_as_requested() {
    let pair = Pair::new(&Setup {
        rd_atomic: [12, 12],
        ..Setup::default()
    });
    let seen = pair.hosts[A].nic.query_qp(pair.hosts[A].qpn).unwrap();
    assert_eq!(seen.max_qp_rd_atomic, Some(12));
    assert_eq!(seen.max_dest_rd_atomic, Some(12));
}

/// QPA-017.
#[test]
fn min_rnr_and_access_change_in_rts() {
    let mut pair = Pair::new(&Setup {
        rnr_retry: 0,
        ..Setup::default()
    });
    let change = QpAttributes {
        min_rnr_timer: Some(9),
        access_flags: Some(AccessFlags::REMOTE_READ),
        ..QpAttributes::default()
    };
    pair.b().modify(change).unwrap();
    let to_a = pair.a().remote(TARGET);
    pair.b().post(1, SendOp::Write { remote: to_a }, 0, 8);
    pair.drive();
    assert_eq!(only(pair.b().sent()).wr_id, 1, "A still allows it");
    pair.clear_log();
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(pair.texts(B), ["Acknowledge 0 RNR 9 msn 0"]);
    let mut pair = Pair::new(&Setup::default());
    pair.b().modify(change).unwrap();
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Write { remote }, 0, 8);
    pair.drive();
    let refused = [(1, WcStatus::RemoteInvalidRequest)];
    assert_eq!(outcomes(&pair.a().sent()), refused);
}

/// QPA-018.
#[test]
fn sqd_allows_path_and_timer_changes() {
    let mut pair = Pair::new(&Setup::default());
    let change = QpAttributes {
        timeout: Some(1),
        retry_cnt: Some(0),
        ..QpAttributes::default()
    };
    assert!(pair.a().modify(change).is_err(), "not in RTS");
    pair.a().modify(to(QpState::Sqd)).unwrap();
    pair.a().modify(change).unwrap();
    pair.a().modify(to(QpState::Rts)).unwrap();
    pair.b().modify(to(QpState::Error)).unwrap();
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(pair.texts(A).len(), 1);
    let failed = [(1, WcStatus::RetryExceeded)];
    assert_eq!(outcomes(&pair.a().sent()), failed);
    assert_eq!(pair.now.as_nanos(), 8192);
}
