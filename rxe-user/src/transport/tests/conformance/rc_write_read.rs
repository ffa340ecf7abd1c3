//! Groups rc-write and rc-read.

use std::time::Duration;

use verbs_sys::{
    EventKind, RemoteAddress, SendFlags, SendOp, SendRequest, WcFlags, WcOpcode, WcStatus,
};

use super::{BOTH_ERR, FLUSHED, SUCCESS, TARGET, assert_at_rest, kinds, only, states};
use crate::transport::tests::harness::{A, B, Fate, Pair, Setup, outcomes, pattern};
use crate::wire::Operation;

const UNSIGNALED: SendFlags = SendFlags::empty();

/// RCW-001.
#[test]
fn write_places_data_silently() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().write(0, &pattern(1, 600));
    pair.b().buffer.fill(TARGET - 8, 616, 0xee).unwrap();
    pair.b().recv(9, 0, 10);
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Write { remote }, 0, 600);
    pair.drive();
    assert_eq!(only(pair.a().sent()).opcode, WcOpcode::Write);
    assert_eq!(pair.b().read(TARGET, 600), pattern(1, 600));
    assert_eq!(pair.b().read(TARGET - 8, 8), [0xee; 8]);
    assert_eq!(pair.b().read(TARGET + 600, 8), [0xee; 8]);
    assert_at_rest(&mut pair);
    pair.a().post(2, SendOp::Send, 0, 10);
    pair.drive();
    assert_eq!(only(pair.b().received()).wr_id, 9, "no receive was taken");
}

/// RCW-004.
#[test]
fn unsignaled_write_gives_no_cqe() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().write(0, &pattern(1, 16));
    let (first, second) = (pair.b().remote(TARGET), pair.b().remote(TARGET + 8));
    let write = |remote| SendOp::Write { remote };
    pair.a().post_flags(1, write(first), 0, 8, UNSIGNALED);
    pair.a().post(2, write(second), 8, 8);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 2);
    assert_eq!(pair.b().read(TARGET, 16), pattern(1, 16));
}

/// RCR-004.
#[test]
fn unsignaled_read_gives_no_cqe() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().write(TARGET, &pattern(1, 16));
    let (first, second) = (pair.b().remote(TARGET), pair.b().remote(TARGET + 8));
    let read = |remote| SendOp::Read { remote };
    pair.a().post_flags(1, read(first), 0, 8, UNSIGNALED);
    pair.a().post(2, read(second), 8, 8);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 2);
    assert_eq!(pair.a().read(0, 16), pattern(1, 16));
}

/// RCW-005.
#[test]
fn inline_write_copies_at_post() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().buffer.fill(TARGET, 300, 0xee).unwrap();
    let remote = pair.b().remote(TARGET);
    {
        let gone = pattern(3, 200);
        pair.a().post_inline(1, SendOp::Write { remote }, &gone);
    }
    pair.drive();
    assert_eq!(only(pair.a().sent()).opcode, WcOpcode::Write);
    assert_eq!(pair.b().read(TARGET, 200), pattern(3, 200));
    assert_eq!(pair.b().read(TARGET + 200, 100), [0xee; 100]);
}

/// RCW-006.
#[test]
fn gathered_write_is_contiguous_at_target() {
    let mut pair = Pair::new(&Setup::default());
    let message = pattern(4, 777);
    pair.a().write(0, &message[..333]);
    pair.a().write(5000, &message[333..334]);
    pair.a().write(9000, &message[334..]);
    let list = [
        pair.a().sge(0, 333),
        pair.a().sge(5000, 1),
        pair.a().sge(9000, 443),
    ];
    let remote = pair.b().remote(TARGET);
    let request = SendRequest::signaled(1, SendOp::Write { remote }, &list);
    pair.a().try_post(&[request]).unwrap();
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 1);
    assert_eq!(pair.b().read(TARGET, 777), message);
}

/// RCR-005.
#[test]
fn read_scatters_into_many_sges() {
    let mut pair = Pair::new(&Setup::default());
    let message = pattern(4, 777);
    pair.b().write(TARGET, &message);
    pair.a().buffer.fill(0, 10_000, 0xee).unwrap();
    let pieces = [(0, 333), (5000, 1), (9000, 443)];
    let list = pieces.map(|(place, length)| pair.a().sge(place, length));
    let remote = pair.b().remote(TARGET);
    let request = SendRequest::signaled(1, SendOp::Read { remote }, &list);
    pair.a().try_post(&[request]).unwrap();
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 1);
    let mut start = 0;
    for (place, length) in pieces {
        let piece = pair.a().read(place, length + 1);
        assert_eq!(piece[..length], message[start..start + length]);
        assert_eq!(piece[length], 0xee, "the gap");
        start += length;
    }
}

/// RCW-007.
#[test]
fn zero_length_write_ignores_key_and_address() {
    let mut pair = Pair::new(&Setup::default());
    let good = pair.b().remote(TARGET);
    let nowhere = RemoteAddress { addr: 3, rkey: 99 };
    let unknown_key = RemoteAddress { rkey: 99, ..good };
    let outside = RemoteAddress { addr: 3, ..good };
    for remote in [good, nowhere, unknown_key, outside] {
        pair.clear_log();
        pair.a().post(1, SendOp::Write { remote }, 0, 0);
        pair.drive();
        assert_eq!(only(pair.a().sent()).opcode, WcOpcode::Write);
        assert!(pair.texts(A)[0].contains("of 0"));
    }
    assert_at_rest(&mut pair);
}

/// RCR-006.
#[test]
fn zero_length_read_ignores_key_and_address() {
    let mut pair = Pair::new(&Setup::default());
    let good = pair.b().remote(TARGET);
    for remote in [good, RemoteAddress { addr: 3, rkey: 99 }] {
        pair.clear_log();
        pair.a().post(1, SendOp::Read { remote }, 0, 0);
        pair.drive();
        assert_eq!(only(pair.a().sent()).opcode, WcOpcode::Read);
        let response = pair.log.last().unwrap().datagram.packet();
        assert_eq!(response.operation(), Operation::ReadResponseOnly);
        assert!(response.payload().is_empty());
    }
    assert_at_rest(&mut pair);
}

/// RCW-008.
#[test]
fn write_with_immediate_consumes_recv() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().write(0, &pattern(7, 600));
    pair.b().buffer.fill(0, 1000, 0xee).unwrap();
    let remote = pair.b().remote(TARGET);
    let op = SendOp::WriteImm {
        remote,
        imm: 0xc0ff_ee01,
    };
    pair.b().recv(4, 0, 1000);
    pair.a().post(1, op, 0, 600);
    pair.drive();
    assert_eq!(only(pair.a().sent()).opcode, WcOpcode::Write);
    let received = only(pair.b().received());
    assert_eq!(received.opcode, WcOpcode::ReceiveWriteImm);
    assert_eq!((received.wr_id, received.byte_len), (4, 600));
    assert_eq!(received.flags, WcFlags::WITH_IMM);
    assert_eq!(received.immediate(), Some(0xc0ff_ee01));
    assert_eq!(pair.b().read(TARGET, 600), pattern(7, 600));
    assert_eq!(pair.b().read(0, 1000), [0xee; 1000]);
    assert_at_rest(&mut pair);
}

/// RCW-010.
#[test]
fn write_with_immediate_accepts_recv_without_sges() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    for length in [8, 600] {
        pair.b().recv_into(4, &[]);
        let op = SendOp::WriteImm { remote, imm: 1 };
        pair.a().post(1, op, 0, length);
        pair.drive();
        assert_eq!(only(pair.a().sent()).wr_id, 1);
        assert_eq!(only(pair.b().received()).byte_len as usize, length);
    }
    assert_at_rest(&mut pair);
}

/// RCW-011: the receive tells of a local access error (IBTA 11.6.2).
#[test]
fn single_packet_write_imm_with_bad_rkey() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().recv(4, 0, 100);
    let mut remote = pair.b().remote(TARGET);
    remote.rkey ^= 1;
    let before = pair.b().read(TARGET, 8);
    pair.a().post(1, SendOp::WriteImm { remote, imm: 5 }, 0, 8);
    pair.drive();
    let refused = [(1, WcStatus::RemoteAccessError)];
    assert_eq!(outcomes(&pair.a().sent()), refused);
    let told = [(4, WcStatus::LocalAccessError)];
    assert_eq!(outcomes(&pair.b().received()), told);
    assert_eq!(pair.b().events(), []);
    assert_eq!(states(&pair), BOTH_ERR);
    assert_eq!(pair.b().read(TARGET, 8), before);
}

/// RCW-009.
#[test]
fn zero_length_write_with_immediate_is_a_notification() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().recv(4, 0, 100);
    let remote = RemoteAddress::default();
    let op = SendOp::WriteImm { remote, imm: 5 };
    let request = SendRequest::signaled(1, op, &[]);
    pair.a().try_post(&[request]).unwrap();
    pair.drive();
    assert_eq!(only(pair.a().sent()).opcode, WcOpcode::Write);
    let received = only(pair.b().received());
    assert_eq!(received.opcode, WcOpcode::ReceiveWriteImm);
    assert_eq!((received.byte_len, received.immediate()), (0, Some(5)));
}

/// RCW-012.
#[test]
fn multi_packet_write_imm_with_bad_rkey() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().recv(4, 0, 100);
    let mut remote = pair.b().remote(TARGET);
    remote.rkey ^= 1;
    let before = pair.b().read(TARGET, 600);
    pair.a()
        .post(1, SendOp::WriteImm { remote, imm: 5 }, 0, 600);
    pair.drive();
    let refused = [(1, WcStatus::RemoteAccessError)];
    assert_eq!(outcomes(&pair.a().sent()), refused);
    assert_eq!(outcomes(&pair.b().received()), [(4, FLUSHED)]);
    assert_eq!(kinds(pair.b()), [EventKind::QpAccessError]);
    assert_eq!(pair.texts(B), ["Acknowledge 0 RemoteAccessError msn 0"]);
    assert_eq!(states(&pair), BOTH_ERR);
    assert_eq!(pair.b().read(TARGET, 600), before);
}

/// RCW-013.
#[test]
fn writes_become_visible_before_following_send() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().write(0, &pattern(8, 2000));
    pair.b().recv(4, 0, 100);
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Write { remote }, 0, 2000);
    pair.a().post(2, SendOp::Send, 0, 1);
    loop {
        assert!(pair.step(crate::time::Time::from_nanos(u64::MAX)));
        if !pair.b().received().is_empty() {
            break;
        }
    }
    assert_eq!(pair.b().read(TARGET, 2000), pattern(8, 2000));
}

/// RCW-014.
#[test]
fn later_write_wins_on_same_target() {
    for lost in [None, Some(0), Some(1), Some(2), Some(3)] {
        let mut pair = Pair::new(&Setup::default());
        pair.a().buffer.fill(0, 300, 1).unwrap();
        pair.a().buffer.fill(300, 300, 2).unwrap();
        pair.faults = Box::new(move |from, count, _| match (from, count) {
            (A, count) if Some(count) == lost => Fate::Drop,
            // The first acknowledgement comes late, and requests come twice.
            (B, 0) => Fate::Delay(Duration::from_millis(80)),
            _ => Fate::Duplicate(Duration::from_micros(30)),
        });
        let remote = pair.b().remote(TARGET);
        pair.a().post(1, SendOp::Write { remote }, 0, 300);
        pair.a().post(2, SendOp::Write { remote }, 300, 300);
        pair.drive();
        assert_eq!(outcomes(&pair.a().sent()), [(1, SUCCESS), (2, SUCCESS)]);
        assert_eq!(pair.b().read(TARGET, 300), [2; 300], "lost {lost:?}");
    }
}

/// RCR-001.
#[test]
fn read_fetches_remote_bytes() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().write(TARGET, &pattern(9, 600));
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Read { remote }, 0, 600);
    pair.drive();
    let read = only(pair.a().sent());
    assert_eq!((read.opcode, read.byte_len), (WcOpcode::Read, 600));
    assert_eq!(pair.a().read(0, 600), pattern(9, 600));
    assert_at_rest(&mut pair);
}

/// RCR-009.
#[test]
fn read_with_zero_initiator_depth_is_refused() {
    let mut pair = Pair::new(&Setup {
        rd_atomic: [0, 4],
        ..Setup::default()
    });
    let remote = pair.b().remote(TARGET);
    let list = [pair.a().sge(0, 8)];
    for op in [SendOp::Read { remote }, SendOp::FetchAdd { remote, add: 1 }] {
        let request = SendRequest::signaled(1, op, &list);
        let error = pair.a().try_post(&[request]).unwrap_err();
        assert_eq!(error.source.errno(), libc::EINVAL);
    }
    pair.drive();
    assert!(pair.log.is_empty());
    assert_at_rest(&mut pair);
}

/// RCR-013, T-025.
#[test]
fn request_after_read_skips_response_psns() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Read { remote }, 0, 1000);
    pair.a().post(2, SendOp::Write { remote }, 0, 8);
    pair.drive();
    assert_eq!(pair.texts(A)[1], "RDMA Write Only 4 [8] of 8 A");
}

/// RCR-014, T-080.
#[test]
fn responses_leave_in_psn_order() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    pair.b().recv(1, 0, 8);
    pair.b().recv(2, 0, 8);
    pair.a().post(1, SendOp::Read { remote }, 4096, 30_000);
    pair.a().post(2, SendOp::Send, 0, 8);
    pair.a().post(3, SendOp::FetchAdd { remote, add: 0 }, 0, 8);
    pair.a().post(4, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(pair.a().sent().len(), 4);
    let (mut last, mut last_msn) = (-1, 0);
    for sent in pair.log.iter().filter(|sent| sent.from == B) {
        let base = crate::wire::Psn::new(Setup::default().psn[A]);
        let psn = sent.datagram.psn().diff(base);
        assert!(psn > last, "{psn} after {last}");
        last = psn;
        if let Some(aeth) = sent.datagram.packet().aeth() {
            assert!(aeth.msn.value() >= last_msn);
            last_msn = aeth.msn.value();
        }
    }
    assert_eq!(last_msn, 4);
}

/// RCR-015.
#[test]
fn reads_in_both_directions_at_once() {
    let mut pair = Pair::new(&Setup::default());
    for host in [A, B] {
        pair.hosts[host].write(0, &pattern(host as u64, 20_000));
    }
    for round in 0..20 {
        for host in [A, B] {
            let remote = pair.hosts[1 - host].remote(round * 1000);
            let place = TARGET + round * 1000;
            pair.hosts[host].post(round as u64, SendOp::Read { remote }, place, 1000);
        }
    }
    pair.drive();
    for host in [A, B] {
        assert_eq!(pair.hosts[host].sent().len(), 20);
        let read = pair.hosts[host].read(TARGET, 20_000);
        assert_eq!(read, pattern(1 - host as u64, 20_000));
    }
}
