//! Group qp-attr; what each transition takes is in [`super::super::attributes`].

use verbs_sys::{AccessFlags, QpAttributes, QpState, QpType, SendOp, VerbsError, WcStatus};

use super::{SUCCESS, TARGET, only};
use crate::transport::tests::harness::{A, B, Host, Pair, QKEY, Setup, outcomes};
use crate::transport::{CqId, NicLimits, QpSettings, SrqId, SrqSettings};

fn of(qp_type: QpType) -> Setup {
    Setup {
        qp_type,
        ..Setup::DEFAULT
    }
}

fn to(state: QpState) -> QpAttributes {
    QpAttributes::to_state(state)
}

type Change = fn(&mut QpSettings, u32);

/// Creates with a capability at its limit and above.
fn assert_limited(change: Change, most: u32) {
    let mut host = Host::new(1, &Setup::default());
    {
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
}

/// QPA-005.
#[test]
fn create_qp_beyond_wr_limit_is_rejected() {
    let most = NicLimits::default().max_qp_wr;
    assert_limited(|qp, value| qp.cap.max_send_wr = value, most);
    assert_limited(|qp, value| qp.cap.max_recv_wr = value, most);
}

/// QPA-006.
#[test]
fn create_qp_beyond_sge_limit_is_rejected() {
    let most = NicLimits::default().max_sge;
    assert_limited(|qp, value| qp.cap.max_send_sge = value, most);
    assert_limited(|qp, value| qp.cap.max_recv_sge = value, most);
}

/// QPA-007.
#[test]
fn inline_request_is_granted_or_refused() {
    let most = NicLimits::default().max_inline_data;
    assert_limited(|qp, value| qp.cap.max_inline_data = value, most);
}

/// QPA-003.
#[test]
fn create_qp_with_dead_cq_or_srq_is_rejected() {
    let mut host = Host::new(1, &Setup::default());
    let dead = host.nic.create_cq(1).unwrap();
    let settings = SrqSettings {
        pd: host.pd,
        depth: 1,
        max_sge: 1,
        limit: 0,
        xrc: None,
    };
    let srq = host.nic.create_srq(settings).unwrap();
    host.nic.destroy_cq(dead).unwrap();
    host.nic.destroy_srq(srq).unwrap();
    let changes: [fn(&mut QpSettings, CqId, SrqId); 3] = [
        |qp, dead, _| qp.send_cq = dead,
        |qp, dead, _| qp.recv_cq = dead,
        |qp, _, srq| qp.srq = Some(srq),
    ];
    for change in changes {
        let mut settings = host.settings();
        change(&mut settings, dead, srq);
        assert!(host.nic.create_qp(settings).is_err());
    }
    let (send_cq, recv_cq) = (host.send_cq, host.recv_cq);
    host.nic.destroy_qp(host.qpn);
    host.nic.destroy_cq(send_cq).unwrap();
    host.nic.destroy_cq(recv_cq).unwrap();
}

/// QPA-013.
#[test]
fn superfluous_attribute_is_rejected() {
    let mut host = Host::new(1, &Setup::default());
    let [mut init, ..] = host.path_to(QpState::Rts, [10, 0, 0, 2].into(), 1, [1, 2])[..] else {
        panic!("three steps");
    };
    init.sq_psn = Some(1);
    let error = host.modify(init).unwrap_err();
    assert!(matches!(error, VerbsError::UnexpectedAttribute { .. }));
    assert_eq!(host.state(), QpState::Reset);
}

/// QPA-016: on RoCE every path is global; the zero GID names nobody.
#[test]
fn address_vector_without_global_route_is_refused() {
    let mut host = Host::new(1, &Setup::default());
    let steps = host.path_to(QpState::Rtr, [10, 0, 0, 2].into(), 1, [1, 2]);
    host.modify(steps[0]).unwrap();
    let mut rtr = steps[1];
    if let Some(av) = &mut rtr.av {
        av.dgid = verbs_sys::Gid::ZERO;
    }
    assert_eq!(host.modify(rtr).unwrap_err().errno(), libc::EINVAL);
    assert_eq!(host.state(), QpState::Init);
}

/// QPA-019.
#[test]
fn separate_send_and_recv_cqs_are_honoured() {
    let mut pair = Pair::new(&Setup::default());
    for host in [A, B] {
        pair.hosts[host].recv(20, TARGET, 8);
        pair.hosts[host].post(10, SendOp::Send, 0, 8);
    }
    pair.drive();
    for host in [A, B] {
        assert_eq!(only(pair.hosts[host].sent()).wr_id, 10);
        assert_eq!(only(pair.hosts[host].received()).wr_id, 20);
    }
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
