//! Rows 6 to 12: requests that the requester should not have made.

use verbs_sys::{AccessFlags, EventKind, PathMtu, WcStatus};

use super::{
    INVALID_REQUEST, TARGET, assert_fatal, endpoint, refused, refused_with_event, write_only,
};
use crate::transport::tests::harness::{Lone, Raw, Setup};
use crate::wire::Operation as Op;

/// Row 6; RCE-013, T-066: an operation that can't come now.
#[test]
fn opcode_sequence_break_without_recv_in_use() {
    let none = refused_with_event(INVALID_REQUEST, EventKind::QpRequestError);
    for op in [Op::SendMiddle, Op::SendLast, Op::WriteMiddle, Op::WriteLast] {
        let lone = endpoint(&Setup::default());
        assert_fatal(lone, &[full(op, 0)], &none, &format!("{op} first"));
    }
    for op in [
        Op::SendMiddle,
        Op::SendLast,
        Op::SendOnly,
        Op::WriteFirst,
        Op::WriteOnly,
        Op::ReadRequest,
        Op::FetchAdd,
    ] {
        let lone = endpoint(&Setup::default());
        let mut intruder = full(op, 1);
        if matches!(op, Op::FetchAdd | Op::ReadRequest) {
            intruder.payload.clear();
        }
        intruder.reth = lone.reth(TARGET, 256);
        let first = Raw {
            reth: lone.reth(TARGET + 0x1000, 512),
            ..full(Op::WriteFirst, 0).no_ack()
        };
        assert_fatal(lone, &[first, intruder], &none, &format!("{op} in a Write"));
    }
}

/// Row 6; RCE-014, T-066: the receive that the Send has taken tells of it.
#[test]
fn opcode_sequence_break_with_recv_in_use() {
    let in_use = refused(INVALID_REQUEST, WcStatus::RemoteInvalidRequest, None);
    for op in [
        Op::SendFirst,
        Op::SendOnly,
        Op::WriteFirst,
        Op::WriteMiddle,
        Op::WriteLast,
        Op::WriteOnly,
        Op::ReadRequest,
    ] {
        let lone = endpoint(&Setup::default());
        let mut intruder = full(op, 1);
        if op == Op::ReadRequest {
            intruder.payload.clear();
        }
        intruder.reth = lone.reth(TARGET, 256);
        let raws = [full(Op::SendFirst, 0).no_ack(), intruder];
        assert_fatal(lone, &raws, &in_use, &format!("{op} in a Send"));
    }
}

/// A packet of one path MTU.
fn full(op: Op, psn: i32) -> Raw {
    Raw::new(op, psn).payload([2; 256])
}

/// Row 7; T-073, T-011: the queue pair doesn't allow it, or we don't offer it.
#[test]
fn row_7_operations_that_are_not_enabled() {
    let outcome = refused_with_event(INVALID_REQUEST, EventKind::QpRequestError);
    let all = AccessFlags::all();
    for (op, right) in [
        (Op::WriteOnly, AccessFlags::REMOTE_WRITE),
        (Op::WriteOnlyImm, AccessFlags::REMOTE_WRITE),
        (Op::ReadRequest, AccessFlags::REMOTE_READ),
        (Op::CompareSwap, AccessFlags::REMOTE_ATOMIC),
        (Op::FetchAdd, AccessFlags::REMOTE_ATOMIC),
    ] {
        let setup = Setup {
            access: all - right,
            ..Setup::default()
        };
        let lone = endpoint(&setup);
        let raw = Raw {
            reth: lone.reth(TARGET, 0),
            ..Raw::new(op, 0)
        };
        assert_fatal(lone, &[raw], &outcome, &format!("{op}"));
    }
    let lone = endpoint(&Setup::default());
    let atomic_write = Raw {
        reth: lone.reth(TARGET, 8),
        // The builder knows no AtomicWrite; its headers are those of a Write.
        patch: Some(|bytes| bytes[0] = 0x1d),
        ..Raw::new(Op::WriteOnly, 0).payload([1; 8])
    };
    assert_fatal(lone, &[atomic_write], &outcome, "Atomic Write");
}

/// Row 8; T-069: a Send longer than the receive request, at its first packet
/// or a later one.
#[test]
fn row_8_a_send_that_does_not_fit() {
    let outcome = refused(INVALID_REQUEST, WcStatus::LocalLengthError, None);
    let setup = Setup {
        mtu: PathMtu::Mtu1024,
        ..Setup::default()
    };
    let raws = [Raw::new(Op::SendOnly, 0).payload([1; 1001])];
    assert_fatal(endpoint(&setup), &raws, &outcome, "Only");
    let raws: Vec<Raw> = (0..4)
        .map(|psn| {
            let op = if psn == 0 {
                Op::SendFirst
            } else {
                Op::SendMiddle
            };
            Raw::new(op, psn).no_ack().payload([1; 256])
        })
        .collect();
    let lone = endpoint(&Setup::default());
    assert_fatal(lone, &raws, &outcome, "the fourth packet");
    // Bytes behind the receive buffer stay.
    let mut lone = endpoint(&Setup::default());
    lone.answers(&raws);
    assert_eq!(lone.host.read(1000, 24), [0xee; 24]);
}

/// Delivers one Write or Send of `payload` bytes, the RETH saying `length`.
fn assert_length_refused(name: &str, op: Op, payload: usize, length: u32) {
    let none = refused_with_event(INVALID_REQUEST, EventKind::QpRequestError);
    let lone = endpoint(&Setup::default());
    let raw = Raw {
        reth: lone.reth(TARGET, length),
        ..Raw::new(op, 0).payload(vec![1; payload])
    };
    assert_fatal(lone, &[raw], &none, name);
}

/// Row 9; RCE-015, T-009, T-067: sizes and pads that break the rules.
#[test]
fn packet_of_wrong_payload_size_is_naked() {
    let none = refused_with_event(INVALID_REQUEST, EventKind::QpRequestError);
    let in_use = refused(INVALID_REQUEST, WcStatus::RemoteInvalidRequest, None);
    assert_length_refused("First too short", Op::WriteFirst, 252, 600);
    assert_length_refused("First too long", Op::WriteFirst, 260, 600);
    assert_length_refused("Only longer than the MTU", Op::WriteOnly, 257, 257);
    assert_length_refused("Send First too short", Op::SendFirst, 252, 0);
    assert_length_refused("Send Only longer than the MTU", Op::SendOnly, 257, 0);
    for (name, op, payload) in [
        ("empty Last", Op::SendLast, 0),
        ("Middle too short", Op::SendMiddle, 255),
        ("Last too long", Op::SendLast, 257),
    ] {
        let first = Raw::new(Op::SendFirst, 0).no_ack().payload([1; 256]);
        let raws = [first, Raw::new(op, 1).payload(vec![1; payload])];
        assert_fatal(endpoint(&Setup::default()), &raws, &in_use, name);
    }
    let lone = endpoint(&Setup::default());
    let wrong_pad = Raw {
        patch: Some(|bytes| bytes[1] = (bytes[1] & !0x30) | 0x10),
        ..write_only(&lone, 0, b"abcd")
    };
    assert_fatal(lone, &[wrong_pad], &none, "pad");
    let lone = endpoint(&Setup::default());
    let read_with_payload = Raw {
        reth: lone.reth(TARGET, 4),
        ..Raw::new(Op::ReadRequest, 0).payload([1; 4])
    };
    assert_fatal(lone, &[read_with_payload], &none, "Read with payload");
}

/// Row 9; RCE-016, T-068: a Write's bytes and what its RETH says.
#[test]
fn write_length_not_matching_reth_is_naked() {
    let none = refused_with_event(INVALID_REQUEST, EventKind::QpRequestError);
    assert_length_refused("First with all", Op::WriteFirst, 256, 256);
    assert_length_refused("First with more", Op::WriteFirst, 256, 255);
    assert_length_refused("Only with less", Op::WriteOnly, 4, 5);
    assert_length_refused("Only with more", Op::WriteOnly, 5, 4);
    for (name, op, payload) in [
        ("Last with less", Op::WriteLast, 3),
        ("Last with more", Op::WriteLast, 5),
        ("Middle in place of Last", Op::WriteMiddle, 256),
    ] {
        let lone = endpoint(&Setup::default());
        let first = Raw {
            reth: lone.reth(TARGET + 0x2000, 260),
            ..Raw::new(Op::WriteFirst, 0).no_ack().payload([1; 256])
        };
        let raws = [first, Raw::new(op, 1).payload(vec![1; payload])];
        assert_fatal(lone, &raws, &none, name);
    }
}

/// Row 10; T-072.
#[test]
fn row_10_longer_than_any_message() {
    let outcome = refused_with_event(INVALID_REQUEST, EventKind::QpRequestError);
    for op in [Op::ReadRequest, Op::WriteFirst] {
        let lone = endpoint(&Setup::default());
        let payload = vec![1; if op == Op::WriteFirst { 256 } else { 0 }];
        let raw = Raw {
            reth: lone.reth(TARGET, (1 << 31) + 1),
            ..Raw::new(op, 0).payload(payload)
        };
        assert_fatal(lone, &[raw], &outcome, &format!("{op}"));
    }
}

/// Row 11; RCA-009, T-074.
#[test]
fn atomic_to_unaligned_address_is_naked() {
    let outcome = refused_with_event(INVALID_REQUEST, EventKind::QpRequestError);
    for op in [Op::FetchAdd, Op::CompareSwap] {
        for offset in 1..8 {
            let lone = endpoint(&Setup::default());
            let remote = lone.host.remote(TARGET + offset);
            let mut raw = Raw::new(op, 0);
            (raw.atomic.va, raw.atomic.rkey) = (remote.addr, remote.rkey);
            assert_fatal(lone, &[raw], &outcome, &format!("{op} at {offset}"));
        }
    }
}

/// Row 12; RCR-010: more Reads and atomics than the responder has resources for.
#[test]
fn read_beyond_zero_responder_resources_is_naked() {
    let outcome = refused_with_event(INVALID_REQUEST, EventKind::QpRequestError);
    let none = Setup {
        rd_atomic: [4, 0],
        ..Setup::default()
    };
    let lone = endpoint(&none);
    let read = Raw {
        reth: lone.reth(TARGET, 4),
        ..Raw::new(Op::ReadRequest, 0)
    };
    assert_fatal(lone, &[read], &outcome, "depth 0");
    let two = Setup {
        rd_atomic: [4, 2],
        ..Setup::default()
    };
    let mut lone = endpoint(&two);
    let read = |lone: &Lone, psn| Raw {
        reth: lone.reth(TARGET, 4),
        ..Raw::new(Op::ReadRequest, psn)
    };
    let raws = [read(&lone, 0), read(&lone, 1), read(&lone, 2)];
    let answers = lone.answers(&raws);
    assert_eq!(
        answers.last().unwrap(),
        "Acknowledge 2 InvalidRequest msn 2"
    );
    assert_eq!(
        answers.len(),
        3,
        "those within the limit are answered first"
    );
}

/// A Read that the network repeats takes no second resource: the new one
/// behind it is within the limit.
#[test]
fn repeated_reads_take_no_resources() {
    let setup = Setup {
        rd_atomic: [4, 1],
        ..Setup::default()
    };
    let mut lone = endpoint(&setup);
    let read = |lone: &Lone, psn| Raw {
        reth: lone.reth(TARGET, 4),
        ..Raw::new(Op::ReadRequest, psn)
    };
    let (first, second) = (read(&lone, 0), read(&lone, 1));
    assert_eq!(lone.answers(std::slice::from_ref(&first)).len(), 1);
    let mut atomic = Raw::new(Op::FetchAdd, 2);
    (atomic.atomic.va, atomic.atomic.rkey) = (first.reth.va, first.reth.rkey);
    assert_eq!(
        lone.answers(&[first, second.clone()]),
        [
            "RDMA Read Response Only 0 [4] msn 1",
            "RDMA Read Response Only 1 [4] msn 2"
        ]
    );
    assert_eq!(
        lone.answers(&[second, atomic]),
        [
            "RDMA Read Response Only 1 [4] msn 2",
            "Atomic Acknowledge 2 msn 3"
        ]
    );
}
