//! Group rc-send.

use verbs_sys::{
    Gather, QpState, SendFlags, SendOp, SendRequest, Sge, WcFlags, WcOpcode, WcStatus,
    WindowBinding,
};

use super::mw::{assert_refused, assert_writes, bound_of, remote};
use super::{SUCCESS, TARGET, assert_at_rest, only, states};
use crate::transport::tests::harness::{A, BUFFER, Pair, Setup, outcomes, pattern};
use crate::wire::Operation;

/// RCS-001.
#[test]
fn send_delivers_and_completes_on_both_sides() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().write(0, &pattern(1, 100));
    pair.b().recv(2, TARGET, 100);
    pair.a().post(1, SendOp::Send, 0, 100);
    pair.drive();
    let sent = only(pair.a().sent());
    assert_eq!((sent.wr_id, sent.opcode), (1, WcOpcode::Send));
    let received = only(pair.b().received());
    assert_eq!((received.wr_id, received.opcode), (2, WcOpcode::Receive));
    assert_eq!((received.byte_len, received.flags), (100, WcFlags::empty()));
    assert_eq!(pair.b().read(TARGET, 100), pattern(1, 100));
    assert_at_rest(&mut pair);
}

/// RCS-003.
#[test]
fn send_with_empty_sge_list() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().recv_into(2, &[]);
    let request = SendRequest::signaled(1, SendOp::Send, &[]);
    pair.a().try_post(&[request]).unwrap();
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 1);
    assert_eq!(only(pair.b().received()).byte_len, 0);
    assert_at_rest(&mut pair);
}

/// RCS-004.
#[test]
fn zero_length_segments_are_skipped_unchecked() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().write(0, &pattern(2, 40));
    let nowhere = Sge {
        addr: 7,
        length: 0,
        lkey: 0xdead,
    };
    let good = [pair.a().sge(0, 20), pair.a().sge(20, 20)];
    for list in [vec![nowhere], vec![good[0], nowhere, good[1], nowhere]] {
        let bytes = if list.len() == 1 { 0 } else { 40 };
        let place = pair.b().sge(TARGET, 40);
        pair.b().recv_into(2, &[nowhere, place, nowhere]);
        let request = SendRequest::signaled(1, SendOp::Send, &list);
        pair.a().try_post(&[request]).unwrap();
        pair.drive();
        assert_eq!(only(pair.a().sent()).wr_id, 1);
        assert_eq!(only(pair.b().received()).byte_len, bytes);
    }
    assert_eq!(pair.b().read(TARGET, 40), pattern(2, 40));
    assert_at_rest(&mut pair);
}

/// RCS-005.
#[test]
fn unsignaled_send_gives_no_cqe() {
    let mut pair = Pair::new(&Setup::default());
    // The send queue has 256 places: they are freed without completions.
    for round in 0..600 {
        pair.b().recv(round, TARGET, 8);
        pair.a()
            .post_flags(round, SendOp::Send, 0, 8, SendFlags::empty());
        pair.drive();
        assert_eq!(outcomes(&pair.b().received()), [(round, SUCCESS)]);
    }
    assert_at_rest(&mut pair);
}

/// RCS-008.
#[test]
fn inline_send_over_limit_is_refused() {
    let mut pair = Pair::new(&Setup::default());
    let request = SendRequest {
        data: Gather::Inline(&[1; 257]),
        ..SendRequest::signaled(1, SendOp::Send, &[])
    };
    let error = pair.a().try_post(&[request]).unwrap_err();
    assert_eq!((error.posted, error.source.errno()), (0, libc::EINVAL));
    pair.drive();
    assert!(pair.log.is_empty());
    assert_at_rest(&mut pair);
}

/// RCS-010.
#[test]
fn send_with_immediate_delivers_value() {
    let mut pair = Pair::new(&Setup::default());
    for (length, imm) in [(0, 0xffff_ffff), (40, 0x0102_0304)] {
        pair.b().recv(2, TARGET, 40);
        pair.a().post(1, SendOp::SendImm { imm }, 0, length);
        pair.drive();
        assert_eq!(only(pair.a().sent()).opcode, WcOpcode::Send);
        let received = only(pair.b().received());
        assert_eq!(received.opcode, WcOpcode::Receive);
        assert_eq!(received.flags, WcFlags::WITH_IMM);
        assert_eq!(received.immediate(), Some(imm));
    }
    assert_at_rest(&mut pair);
}

/// RCS-011.
#[test]
fn send_with_invalidate_revokes_peer_window() {
    for length in [0, 40, 700] {
        let (mut pair, binding) = bound_of(&Setup::default());
        assert_writes(&mut pair, remote(&binding));
        pair.a().write(0, &pattern(4, length));
        pair.b().recv(2, 0, 1000);
        let rkey = binding.rkey();
        let list = [pair.a().sge(0, length)];
        let list = if length == 0 { &[] } else { &list[..] };
        let request = SendRequest::signaled(1, SendOp::SendInvalidate { rkey }, list);
        pair.a().try_post(&[request]).unwrap();
        pair.drive();
        assert_eq!(only(pair.a().sent()).opcode, WcOpcode::Send);
        let received = only(pair.b().received());
        assert_eq!((received.wr_id, received.opcode), (2, WcOpcode::Receive));
        assert_eq!(received.byte_len as usize, length);
        assert_eq!(received.flags, WcFlags::WITH_INV);
        assert_eq!(received.invalidated_rkey(), Some(rkey));
        assert_eq!(pair.b().read(0, length), pattern(4, length));
        let read = SendOp::Read {
            remote: remote(&binding),
        };
        assert_refused(&mut pair, read, "revoked");
        pair.b().nic.deregister(binding.lkey).unwrap();
    }
}

/// RCS-012: a window of another queue pair; unknown keys are row 15 of the
/// fault table.
#[test]
fn send_with_invalidate_of_bad_key_kills_responder_only() {
    let (mut pair, own) = bound_of(&Setup::default());
    let (pd, other) = (pair.b().pd, pair.b().create_qp());
    let window = pair.b().nic.alloc_window(pd).unwrap();
    let foreign = WindowBinding { window, ..own };
    let address = pair.a().address;
    pair.b().connect(other, address, 9, [0, 0]);
    let bind = SendOp::BindWindow { binding: foreign };
    let request = SendRequest::signaled(1, bind, &[]);
    pair.b().nic.post_send(other, &[request]).unwrap();
    pair.drive();
    only(pair.b().sent());
    pair.b().recv(2, 0, 8);
    let rkey = foreign.rkey();
    pair.a().post(3, SendOp::SendInvalidate { rkey }, 0, 8);
    pair.a().post(4, SendOp::Send, 0, 8);
    pair.drive();
    let (success, retries) = (SUCCESS, WcStatus::RetryExceeded);
    assert_eq!(outcomes(&pair.a().sent()), [(3, success), (4, retries)]);
    let received = outcomes(&pair.b().received());
    assert_eq!(received, [(2, WcStatus::RemoteInvalidRequest)]);
    assert_eq!(pair.b().state(), QpState::Error);
    // Still bound: it can't be bound once more.
    let request = SendRequest::signaled(5, bind, &[]);
    pair.b().nic.post_send(other, &[request]).unwrap();
    pair.drive();
    let refused = (5, WcStatus::MemoryWindowBindError);
    assert_eq!(outcomes(&pair.b().sent()), [refused]);
}

/// RCS-014.
#[test]
fn shorter_message_leaves_rest_of_buffer() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().buffer.fill(TARGET, 1000, 0xee).unwrap();
    pair.b().recv(2, TARGET, 1000);
    pair.a().post(1, SendOp::Send, 0, 301);
    pair.drive();
    assert_eq!(only(pair.b().received()).byte_len, 301);
    assert_eq!(pair.b().read(TARGET + 301, 699), [0xee; 699]);
}

/// RCS-016.
#[test]
fn sends_and_recvs_complete_in_post_order() {
    let mut pair = Pair::new(&Setup::default());
    let lengths: Vec<usize> = (0..40).map(|index| index * 37 % 900).collect();
    for (index, length) in lengths.iter().enumerate() {
        pair.a()
            .write(index * 1000, &pattern(index as u64, *length));
        pair.b().recv(index as u64, TARGET + index * 1000, 900);
        pair.a()
            .post(index as u64, SendOp::Send, index * 1000, *length);
    }
    pair.drive();
    let expected: Vec<_> = (0..40).map(|index| (index, SUCCESS)).collect();
    assert_eq!(outcomes(&pair.a().sent()), expected);
    let received = pair.b().received();
    assert_eq!(outcomes(&received), expected);
    for (index, length) in lengths.iter().enumerate() {
        assert_eq!(received[index].byte_len as usize, *length);
        let place = pair.b().read(TARGET + index * 1000, *length);
        assert_eq!(place, pattern(index as u64, *length), "message {index}");
    }
}

/// RCS-018.
#[test]
fn sge_list_may_be_reused_after_post() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().write(0, &pattern(1, 64));
    let mut list = [pair.b().sge(TARGET, 64)];
    pair.b().recv_into(2, &list);
    list[0] = Sge::default();
    let mut sources = [pair.a().sge(0, 64)];
    let request = SendRequest::signaled(1, SendOp::Send, &sources);
    pair.a().try_post(&[request]).unwrap();
    sources[0] = Sge::default();
    pair.drive();
    assert_eq!(only(pair.b().received()).byte_len, 64);
    assert_eq!(pair.b().read(TARGET, 64), pattern(1, 64));
    assert_eq!([list, sources], [[Sge::default()]; 2]);
}

/// RCS-019, T-051.
#[test]
fn peer_gets_solicited_bit_only_when_asked() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    let both = SendFlags::SIGNALED | SendFlags::SOLICITED;
    for flags in [SendFlags::SIGNALED, both] {
        pair.clear_log();
        let ops = [
            (SendOp::Send, true),
            (SendOp::WriteImm { remote, imm: 1 }, true),
            (SendOp::Write { remote }, false),
            (SendOp::Read { remote }, false),
        ];
        for (op, has_receive) in ops {
            pair.b().recv(2, TARGET, 600);
            pair.a().post_flags(1, op, 0, 600, flags);
            pair.drive();
            let solicited: Vec<bool> = pair
                .log
                .iter()
                .filter(|sent| sent.from == A)
                .map(|sent| sent.datagram.packet().solicited())
                .collect();
            let asked = has_receive && flags == both;
            let (last, others) = solicited.split_last().unwrap();
            assert_eq!(*last, asked, "{op:?}");
            assert!(others.iter().all(|solicited| !solicited), "{op:?}");
            pair.clear_log();
        }
    }
}

/// RCS-006, RCW-003, RCR-003: long messages, in a buffer's bounds.
#[test]
fn write_of_large_payload() {
    let length = BUFFER / 2;
    let mut pair = Pair::new(&Setup::default());
    pair.a().write(0, &pattern(5, length));
    let remote = pair.b().remote(TARGET);
    pair.b().recv(2, 0, length);
    pair.a().post(1, SendOp::Write { remote }, 0, length);
    pair.a().post(2, SendOp::Send, 0, length);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, SUCCESS), (2, SUCCESS)]);
    assert_eq!(only(pair.b().received()).byte_len as usize, length);
    assert_eq!(pair.b().read(TARGET, length), pattern(5, length));
    assert_eq!(pair.b().read(0, length), pattern(5, length));
    let requests = pair.log.iter().filter(|sent| sent.from == A);
    assert_eq!(requests.count(), 2 * length / 256);
    assert_eq!(states(&pair), [QpState::Rts; 2]);
}

/// RCR-003.
#[test]
fn read_of_large_payload() {
    let length = BUFFER / 2;
    let mut pair = Pair::new(&Setup::default());
    pair.b().write(0, &pattern(6, length));
    let remote = pair.b().remote(0);
    pair.a().post(1, SendOp::Read { remote }, TARGET, length);
    pair.drive();
    assert_eq!(only(pair.a().sent()).opcode, WcOpcode::Read);
    assert_eq!(pair.a().read(TARGET, length), pattern(6, length));
    let first = pair.log[1].datagram.packet();
    assert_eq!(first.operation(), Operation::ReadResponseFirst);
}
