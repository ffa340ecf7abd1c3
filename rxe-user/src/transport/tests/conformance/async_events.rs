//! Group async.

use verbs_sys::{AsyncEvent, EventKind, EventSource, QpAttributes, QpState, SendOp, WcStatus};

use super::{BOTH_ERR, TARGET, states};
use crate::transport::tests::harness::{A, B, Host, Pair, Setup, outcomes};

/// What `kind` says of the host's queue pair.
fn about(host: &Host, kind: EventKind) -> AsyncEvent {
    let source = EventSource::Qp(host.qpn);
    AsyncEvent { kind, source }
}

/// ASY-001.
#[test]
fn remote_access_fault_raises_qp_access_event() {
    for is_read in [false, true] {
        let mut pair = Pair::new(&Setup::default());
        let mut remote = pair.b().remote(TARGET);
        remote.rkey ^= 1 << 8;
        let op = match is_read {
            true => SendOp::Read { remote },
            false => SendOp::Write { remote },
        };
        pair.a().post(1, op, 0, 8);
        pair.drive();
        let refused = [(1, WcStatus::RemoteAccessError)];
        assert_eq!(outcomes(&pair.a().sent()), refused);
        let expected = about(&pair.hosts[B], EventKind::QpAccessError);
        assert_eq!(pair.b().events(), [expected], "once");
        assert_eq!(pair.a().events(), []);
        assert_eq!(states(&pair), BOTH_ERR);
    }
}

/// ASY-002.
#[test]
fn invalid_request_raises_qp_request_event() {
    let mut pair = Pair::new(&Setup::default());
    let change = QpAttributes {
        access_flags: Some(verbs_sys::AccessFlags::empty()),
        ..QpAttributes::default()
    };
    pair.b().modify(change).unwrap();
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Write { remote }, 0, 8);
    pair.drive();
    let refused = [(1, WcStatus::RemoteInvalidRequest)];
    assert_eq!(outcomes(&pair.a().sent()), refused);
    let expected = about(&pair.hosts[B], EventKind::QpRequestError);
    assert_eq!(pair.b().events(), [expected], "once");
    assert_eq!(pair.a().events(), []);
    assert_eq!(states(&pair), BOTH_ERR);
}

/// ASY-003.
#[test]
fn fault_reported_in_recv_completion_raises_no_event() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().recv(7, TARGET, 4);
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    let failed = [(7, WcStatus::LocalLengthError)];
    assert_eq!(outcomes(&pair.b().received()), failed);
    assert_eq!(pair.b().events(), []);
    assert_eq!(states(&pair), BOTH_ERR);
}

/// ASY-004.
#[test]
fn drained_event_only_when_enabled() {
    for enabled in [None, Some(false), Some(true)] {
        let mut pair = Pair::new(&Setup::default());
        let remote = pair.b().remote(TARGET);
        pair.a().post(1, SendOp::Write { remote }, 0, 600);
        let start = pair.now;
        assert!(pair.step(crate::time::Time::from_nanos(u64::MAX)));
        assert!(pair.now > start, "packets are in flight");
        let drain = QpAttributes {
            en_sqd_async_notify: enabled,
            ..QpAttributes::to_state(QpState::Sqd)
        };
        pair.a().modify(drain).unwrap();
        assert_eq!(pair.a().events(), [], "not drained yet");
        pair.drive();
        let expected = about(&pair.hosts[A], EventKind::SendQueueDrained);
        let expected: &[_] = match enabled {
            Some(true) => &[expected],
            _ => &[],
        };
        assert_eq!(pair.a().events(), expected, "{enabled:?}");
    }
}

/// ASY-005.
#[test]
fn first_packet_in_rtr_raises_comm_established() {
    let setup = Setup::default();
    let (mut a, mut b) = (Host::new(1, &setup), Host::new(2, &setup));
    a.connect(a.qpn, b.address, b.qpn, setup.psn);
    let back = [setup.psn[B], setup.psn[A]];
    let path = b.path_to(QpState::Rts, a.address, a.qpn, back);
    let (rts, to_rtr) = path.split_last().unwrap();
    for step in to_rtr {
        b.modify(*step).unwrap();
    }
    let mut pair = Pair::connected(a, b, setup.psn);
    let remote = pair.b().remote(TARGET);
    let write = |pair: &mut Pair| {
        pair.a().post(1, SendOp::Write { remote }, 0, 8);
        pair.drive();
        pair.b().events()
    };
    let expected = about(&pair.hosts[B], EventKind::CommunicationEstablished);
    assert_eq!(write(&mut pair), [expected]);
    assert_eq!(write(&mut pair), [], "once");
    pair.b().modify(*rts).unwrap();
    assert_eq!(write(&mut pair), [], "not in RTS");
}
