//! Group rc-error: what both ends are told when a request can't be done.

use verbs_sys::{
    AccessFlags, EventKind, PathMtu, QpType, SendFlags, SendOp, SendRequest, WcStatus,
};

use super::{A_ERR, BOTH_ERR, FLUSHED, SUCCESS, TARGET, kinds, states};
use crate::transport::tests::harness::{A, B, BUFFER, Fate, Host, Pair, Setup, outcomes};

const FLAGS: [SendFlags; 2] = [SendFlags::SIGNALED, SendFlags::empty()];

/// Posts a request of 8 bytes whose own key is wrong, if asked.
fn post_keyed(host: &mut Host, op: SendOp, bad_lkey: bool, flags: SendFlags) {
    let mut sge = host.sge(0, 8);
    sge.lkey ^= u32::from(bad_lkey);
    let list = [sge];
    host.try_post(&[SendRequest {
        flags,
        ..SendRequest::signaled(1, op, &list)
    }])
    .unwrap();
}

/// A fault at the requester: nothing was sent, and the peer is well.
fn assert_local_fault(pair: &mut Pair) {
    pair.drive();
    let failed = [(1, WcStatus::LocalProtectionError)];
    assert_eq!(outcomes(&pair.a().sent()), failed);
    assert_eq!(states(pair), A_ERR);
    assert_eq!(pair.b().received(), []);
    assert_eq!(pair.b().events(), []);
}

/// The responder refuses the only request.
fn assert_refused(pair: &mut Pair, status: WcStatus, event: EventKind) {
    let before = pair.b().read(TARGET, 64);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, status)]);
    assert_eq!(states(pair), BOTH_ERR);
    assert_eq!(kinds(pair.b()), [event]);
    assert_eq!(pair.a().events(), []);
    assert_eq!(pair.b().received(), []);
    assert_eq!(pair.b().read(TARGET, 64), before);
    assert_eq!(pair.texts(B).len(), 1, "one NAK");
}

/// RCE-001.
#[test]
fn send_with_bad_lkey_fails_locally() {
    for flags in FLAGS {
        let mut pair = Pair::new(&Setup::default());
        post_keyed(pair.a(), SendOp::Send, true, flags);
        assert_local_fault(&mut pair);
        assert!(pair.log.is_empty());
    }
}

/// RCE-003.
#[test]
fn write_with_bad_lkey_fails_locally() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    let write = SendOp::Write { remote };
    post_keyed(pair.a(), write, true, SendFlags::SIGNALED);
    assert_local_fault(&mut pair);
    assert!(pair.log.is_empty());
}

/// RCE-004.
#[test]
fn write_with_bad_rkey_is_naked() {
    for flags in FLAGS {
        let mut pair = Pair::new(&Setup::default());
        let mut remote = pair.b().remote(TARGET);
        remote.rkey ^= 1;
        post_keyed(pair.a(), SendOp::Write { remote }, false, flags);
        let event = EventKind::QpAccessError;
        assert_refused(&mut pair, WcStatus::RemoteAccessError, event);
    }
}

/// RCE-005.
#[test]
fn write_with_both_keys_bad_reports_local_error() {
    let mut pair = Pair::new(&Setup::default());
    let mut remote = pair.b().remote(TARGET);
    remote.rkey ^= 1;
    let write = SendOp::Write { remote };
    post_keyed(pair.a(), write, true, SendFlags::SIGNALED);
    assert_local_fault(&mut pair);
    assert!(pair.log.is_empty());
}

/// RCE-006.
#[test]
fn read_with_bad_lkey_fails_locally() {
    for flags in FLAGS {
        let mut pair = Pair::new(&Setup::default());
        let remote = pair.b().remote(TARGET);
        let before = pair.a().read(0, 8);
        post_keyed(pair.a(), SendOp::Read { remote }, true, flags);
        assert_local_fault(&mut pair);
        assert_eq!(pair.a().read(0, 8), before);
    }
}

/// RCE-007, RCE-008: the remote key is judged first, for a Read's own memory
/// is used only when its data comes.
#[test]
fn read_with_bad_rkey_is_naked() {
    for bad_lkey in [false, true] {
        let mut pair = Pair::new(&Setup::default());
        let mut remote = pair.b().remote(TARGET);
        remote.rkey ^= 1;
        let read = SendOp::Read { remote };
        post_keyed(pair.a(), read, bad_lkey, SendFlags::SIGNALED);
        let event = EventKind::QpAccessError;
        assert_refused(&mut pair, WcStatus::RemoteAccessError, event);
    }
}

/// RCE-009.
#[test]
fn valid_rkey_with_foreign_address_is_naked() {
    for write in [false, true] {
        for offset in [BUFFER - 7, BUFFER, usize::MAX - 7] {
            let mut pair = Pair::new(&Setup::default());
            let mut remote = pair.b().remote(0);
            remote.addr = remote.addr.wrapping_add(offset as u64);
            let op = match write {
                true => SendOp::Write { remote },
                false => SendOp::Read { remote },
            };
            post_keyed(pair.a(), op, false, SendFlags::SIGNALED);
            let event = EventKind::QpAccessError;
            assert_refused(&mut pair, WcStatus::RemoteAccessError, event);
        }
    }
}

/// A Send that fails at the receive it finds.
fn assert_receive_fails(pair: &mut Pair, length: usize, told: WcStatus, kept: WcStatus) {
    pair.b().recv(8, 0, 10);
    pair.a().post(1, SendOp::Send, 0, length);
    pair.a().post(2, SendOp::Send, 0, 8);
    pair.drive();
    let sent = outcomes(&pair.a().sent());
    assert_eq!(sent, [(1, told), (2, FLUSHED)]);
    let received = outcomes(&pair.b().received());
    assert_eq!(received, [(7, kept), (8, FLUSHED)]);
    assert_eq!(states(pair), BOTH_ERR);
    assert_eq!(pair.b().events(), []);
}

/// RCE-010.
#[test]
fn recv_buffer_with_bad_key_or_address_fails_at_responder() {
    for fault in ["unknown key", "outside", "released"] {
        let mut pair = Pair::new(&Setup::default());
        pair.b().buffer.fill(TARGET, 100, 0xee).unwrap();
        let mut sge = pair.b().sge(TARGET, 100);
        match fault {
            "unknown key" => sge.lkey ^= 1,
            "outside" => sge.addr += BUFFER as u64,
            _ => {
                let (pd, range) = (pair.b().pd, pair.b().buffer.whole());
                let access = AccessFlags::LOCAL_WRITE;
                sge.lkey = pair.b().nic.register(pd, range, access).unwrap().lkey;
            }
        }
        pair.b().recv_into(7, &[sge]);
        if fault == "released" {
            pair.b().nic.deregister(sge.lkey).unwrap();
        }
        let (told, kept) = (
            WcStatus::RemoteOperationError,
            WcStatus::LocalProtectionError,
        );
        assert_receive_fails(&mut pair, 50, told, kept);
        assert_eq!(pair.b().read(TARGET, 100), [0xee; 100], "{fault}");
        assert_eq!(
            pair.texts(B),
            ["Acknowledge 0 RemoteOperationalError msn 0"]
        );
    }
}

/// RCE-011.
#[test]
fn message_running_past_recv_mr_fails_at_responder() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().buffer.fill(TARGET, 2000, 0xee).unwrap();
    let range = pair.b().buffer.range(TARGET..TARGET + 500).unwrap();
    let pd = pair.b().pd;
    let access = AccessFlags::LOCAL_WRITE;
    let keys = pair.b().nic.register(pd, range, access).unwrap();
    let mut sge = pair.b().sge(TARGET, 1000);
    sge.lkey = keys.lkey;
    pair.b().recv_into(7, &[sge]);
    let (told, kept) = (
        WcStatus::RemoteOperationError,
        WcStatus::LocalProtectionError,
    );
    assert_receive_fails(&mut pair, 1000, told, kept);
    assert_eq!(pair.b().read(TARGET + 500, 1500), [0xee; 1500]);
}

/// RCE-012.
#[test]
fn message_longer_than_recv_buffer_fails() {
    for (room, length) in [(100, 101), (100, 256), (600, 601), (0, 1), (256, 1000)] {
        let mut pair = Pair::new(&Setup::default());
        pair.b().buffer.fill(TARGET, 2000, 0xee).unwrap();
        let sge = pair.b().sge(TARGET, room);
        let list = [sge];
        let list = if room == 0 { &[] } else { &list[..] };
        pair.b().recv_into(7, list);
        let (told, kept) = (WcStatus::RemoteInvalidRequest, WcStatus::LocalLengthError);
        assert_receive_fails(&mut pair, length, told, kept);
        let behind = pair.b().read(TARGET + room, 1000);
        assert_eq!(behind, [0xee; 1000], "{length} in {room}");
    }
}

/// RCE-017.
#[test]
fn path_mtu_mismatch_shows_as_invalid_request() {
    let large = Setup {
        mtu: PathMtu::Mtu1024,
        ..Setup::default()
    };
    let (a, b) = (Host::new(1, &large), Host::new(2, &Setup::default()));
    let mut pair = Pair::of(a, b, large.psn);
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Write { remote }, 0, 3000);
    let event = EventKind::QpRequestError;
    assert_refused(&mut pair, WcStatus::RemoteInvalidRequest, event);
}

/// RCE-018, T-073.
#[test]
fn qp_without_remote_read_or_write_right_naks() {
    for write in [false, true] {
        let right = match write {
            true => AccessFlags::REMOTE_READ,
            false => AccessFlags::REMOTE_WRITE,
        };
        let mut pair = Pair::new(&Setup {
            access: right,
            ..Setup::default()
        });
        let remote = pair.b().remote(TARGET);
        let op = match write {
            true => SendOp::Write { remote },
            false => SendOp::Read { remote },
        };
        pair.a().post(1, op, 0, 8);
        let event = EventKind::QpRequestError;
        assert_refused(&mut pair, WcStatus::RemoteInvalidRequest, event);
    }
}

/// RCE-019.
#[test]
fn remote_fault_puts_both_qps_in_err() {
    let mut pair = Pair::new(&Setup::default());
    let good = pair.b().remote(TARGET);
    let mut bad = good;
    bad.rkey ^= 1;
    pair.a().post(1, SendOp::Write { remote: bad }, 0, 8);
    pair.drive();
    let status = WcStatus::RemoteAccessError;
    assert_eq!(outcomes(&pair.a().sent()), [(1, status)]);
    assert_eq!(states(&pair), BOTH_ERR);
    let before = pair.b().read(TARGET, 8);
    pair.clear_log();
    pair.a().post(2, SendOp::Write { remote: good }, 0, 8);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(2, FLUSHED)]);
    assert!(pair.log.is_empty());
    assert_eq!(pair.b().read(TARGET, 8), before);
    assert_eq!(pair.b().received(), []);
}

/// RCE-020.
#[test]
fn local_fault_leaves_peer_in_rts() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    let before = pair.b().read(TARGET, 8);
    post_keyed(pair.a(), SendOp::Send, true, SendFlags::SIGNALED);
    pair.a().post(2, SendOp::Write { remote }, 0, 8);
    pair.drive();
    let local = WcStatus::LocalProtectionError;
    let sent = outcomes(&pair.a().sent());
    assert_eq!(sent, [(1, local), (2, FLUSHED)]);
    assert_eq!(states(&pair), A_ERR);
    assert_eq!(pair.b().read(TARGET, 8), before);
}

/// RCE-027.
#[test]
fn lost_error_nak_ends_in_retry_exhaustion() {
    let mut pair = Pair::new(&Setup::default());
    let mut remote = pair.b().remote(TARGET);
    remote.rkey ^= 1;
    pair.faults = Box::new(|from, _, _| if from == B { Fate::Drop } else { Fate::Deliver });
    pair.a().post(1, SendOp::Write { remote }, 0, 8);
    pair.drive();
    let sent = outcomes(&pair.a().sent());
    assert_eq!(sent, [(1, WcStatus::RetryExceeded)]);
    assert_eq!(pair.texts(B).len(), 1, "no second NAK");
    assert_eq!(pair.texts(A).len(), 8);
    assert_eq!(states(&pair), BOTH_ERR);
}

/// RCE-028.
#[test]
fn unsupported_operation_for_transport_is_refused() {
    let mut pair = Pair::new(&Setup {
        qp_type: QpType::Uc,
        ..Setup::default()
    });
    let remote = pair.b().remote(TARGET);
    let list = [pair.a().sge(0, 8)];
    for op in [
        SendOp::Read { remote },
        SendOp::FetchAdd { remote, add: 1 },
        SendOp::SendInvalidate { rkey: 1 },
    ] {
        let request = SendRequest::signaled(1, op, &list);
        let error = pair.a().try_post(&[request]).unwrap_err();
        assert_eq!(error.source.errno(), libc::EINVAL);
    }
    pair.drive();
    assert!(pair.log.is_empty());
    pair.a().post(2, SendOp::Write { remote }, 0, 8);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(2, SUCCESS)]);
}
