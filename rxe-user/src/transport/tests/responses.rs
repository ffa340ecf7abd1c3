//! The requester against answers by hand: what it takes, what it ignores,
//! and what ends the connection (rules ).

use verbs_sys::{QpState, SendOp, WcStatus};

use super::harness::{Lone, Raw, Setup, outcomes};
use crate::transport::requester::rnr_wait;
use crate::wire::{Aeth, NakCode, Operation as Op, Psn, Syndrome};

const TARGET: usize = 0x8_0000;

fn answer(op: Op, psn: i32) -> Raw {
    Raw::new(op, psn)
}

fn ack(psn: i32) -> Raw {
    answer(Op::Acknowledge, psn)
}

fn with_syndrome(raw: Raw, byte: u8) -> Raw {
    Raw {
        aeth: Aeth {
            syndrome: byte,
            msn: Psn::new(0),
        },
        ..raw
    }
}

fn nak(psn: i32, code: NakCode) -> Raw {
    with_syndrome(ack(psn), Syndrome::Nak(code).into())
}

/// A host that has sent `count` Sends of three packets each.
fn after_sends(count: u64) -> Lone {
    let mut lone = Lone::new(&Setup::default());
    for wr_id in 0..count {
        lone.host.post(wr_id, SendOp::Send, 0, 600);
    }
    assert_eq!(lone.requests(&[]).len(), 3 * count as usize);
    lone
}

/// A host that has sent a Read of 1000 bytes (four responses).
fn after_read() -> Lone {
    let mut lone = Lone::new(&Setup::default());
    let remote = lone.host.remote(0);
    lone.host.buffer.fill(TARGET, 2000, 0xee).unwrap();
    lone.host.post(1, SendOp::Read { remote }, TARGET, 1000);
    assert_eq!(lone.requests(&[]).len(), 1);
    lone
}

fn done(lone: &mut Lone) -> Vec<u64> {
    let sent = lone.host.sent();
    assert!(sent.iter().all(|done| done.is_success()), "{sent:?}");
    sent.iter().map(|done| done.wr_id).collect()
}

/// RTY-019, T-026, T-030: one acknowledgement completes all before it, once.
#[test]
fn one_ack_completes_many_requests() {
    let mut lone = after_sends(5);
    assert!(lone.requests(&[ack(14)]).is_empty());
    assert_eq!(done(&mut lone), [0, 1, 2, 3, 4]);
    assert!(lone.requests(&[ack(14)]).is_empty());
    assert_eq!(done(&mut lone), [] as [u64; 0]);
    assert_eq!(lone.host.nic.counters().rx_stale_responses, 1);
}

/// T-027: an acknowledgement inside a message completes nothing, but it is
/// progress: the timer starts anew, and so do the retries.
#[test]
fn acknowledgements_inside_a_message_are_progress() {
    let mut lone = after_sends(1);
    let first_deadline = lone.host.nic.next_deadline().unwrap();
    for round in 0..20 {
        assert!(lone.wait(), "round {round}");
        let resent = lone.requests(&[]);
        if round == 0 {
            assert_eq!(resent.len(), 3);
        }
        if round == 6 {
            assert!(lone.requests(&[ack(0)]).is_empty());
            assert_eq!(done(&mut lone), [] as [u64; 0]);
        }
        if lone.host.state() == QpState::Error {
            // Seven retries before the progress, and seven after it.
            let statuses = outcomes(&lone.host.sent());
            assert_eq!(statuses, [(0, WcStatus::RetryExceeded)]);
            assert!((14..=15).contains(&round), "{round}");
            return;
        }
    }
    panic!("no end after {first_deadline:?}");
}

/// RTY-013, T-028: what was never sent can't be acknowledged.
#[test]
fn response_outside_outstanding_range_is_ignored() {
    let mut lone = after_sends(1);
    for psn in [3, 4, 1000, (1 << 23) - 1] {
        lone.deliver(&ack(psn));
        lone.deliver(&nak(psn, NakCode::InvalidRequest));
    }
    assert_eq!(done(&mut lone), [] as [u64; 0]);
    assert_eq!(lone.host.state(), QpState::Rts);
    lone.deliver(&ack(2));
    assert_eq!(done(&mut lone), [0]);
}

/// RTY-020, T-029, F-4: old answers of any kind change nothing.
#[test]
fn repeated_ack_or_stale_nak_has_no_effect() {
    let mut lone = after_sends(2);
    lone.deliver(&ack(2));
    assert_eq!(done(&mut lone), [0]);
    for psn in [2, 1, 0, -1, -1000, -(1 << 23)] {
        for byte in [0x1f, 0x21, 0x60, 0x61, 0x62, 0x63, 0x64, 0x7f] {
            let stale = with_syndrome(ack(psn), byte);
            assert!(lone.requests(&[stale]).is_empty(), "{byte:#x} {psn}");
        }
        lone.deliver(&answer(Op::ReadResponseOnly, psn));
        lone.deliver(&answer(Op::AtomicAcknowledge, psn));
    }
    assert_eq!(lone.host.state(), QpState::Rts);
    assert_eq!(done(&mut lone), [] as [u64; 0]);
}

/// a repeated sequence NAK costs neither a retry nor another repetition.
#[test]
fn repeated_sequence_naks_are_ignored() {
    let mut lone = after_sends(1);
    let sequence = nak(1, NakCode::PsnSequenceError);
    assert_eq!(
        lone.requests(std::slice::from_ref(&sequence)),
        ["Send Middle 1 [256]", "Send Last 2 [88] A"]
    );
    for _ in 0..20 {
        assert!(lone.requests(std::slice::from_ref(&sequence)).is_empty());
    }
    assert_eq!(lone.host.state(), QpState::Rts);
    lone.deliver(&ack(2));
    assert_eq!(done(&mut lone), [0]);
}

/// RNR-011, T-037: nothing leaves during an RNR wait; a sequence NAK for what was
/// under way behind the refused packet changes nothing.
#[test]
fn naks_during_rnr_wait_are_ignored() {
    let mut lone = after_sends(2);
    let rnr = with_syndrome(ack(3), 0x20 | 14);
    assert!(lone.requests(std::slice::from_ref(&rnr)).is_empty());
    assert_eq!(done(&mut lone), [0], "what came before is acknowledged");
    let sequence = nak(3, NakCode::PsnSequenceError);
    assert!(lone.requests(&[sequence, rnr]).is_empty());
    lone.host.post(5, SendOp::Send, 0, 8);
    assert!(lone.requests(&[]).is_empty());
    let deadline = lone.host.nic.next_deadline().unwrap();
    assert_eq!(deadline.since(lone.now), rnr_wait(14));
    assert!(lone.wait());
    let resumed = lone.requests(&[]);
    assert_eq!(resumed.len(), 4);
    assert_eq!(resumed[0], "Send First 3 [256]");
}

/// An RNR wait ends early when the peer turns out to be ready.
#[test]
fn progress_ends_an_rnr_wait() {
    let mut lone = after_sends(2);
    let rnr = with_syndrome(ack(0), 0x20);
    assert!(lone.requests(&[rnr]).is_empty());
    assert_eq!(
        lone.requests(&[ack(2)]),
        [
            "Send First 3 [256]",
            "Send Middle 4 [256]",
            "Send Last 5 [88] A"
        ]
    );
    assert_eq!(done(&mut lone), [0]);
}

/// RCE-022, T-038, T-039: each NAK and what the request it names is told.
#[test]
fn unknown_nak_codes_follow_policy() {
    let cases = [
        (0x61, Some(WcStatus::RemoteInvalidRequest)),
        (0x62, Some(WcStatus::RemoteAccessError)),
        (0x63, Some(WcStatus::RemoteOperationError)),
        (0x64, Some(WcStatus::RemoteOperationError)),
        (0x6f, Some(WcStatus::RemoteOperationError)),
        (0x7f, Some(WcStatus::RemoteOperationError)),
        (0x40, None),
        (0x5f, None),
        (0x80, None),
        (0xe1, None),
    ];
    for (byte, status) in cases {
        let mut lone = after_sends(3);
        lone.deliver(&with_syndrome(ack(4), byte));
        let sent = lone.host.sent();
        match status {
            Some(status) => {
                let flushed = WcStatus::WorkRequestFlushed;
                let expected = [(0, WcStatus::Success), (1, status), (2, flushed)];
                assert_eq!(outcomes(&sent), expected, "{byte:#x}");
                assert_eq!(sent[1].vendor_err, u32::from(byte));
                assert_eq!(lone.host.state(), QpState::Error);
            }
            None => {
                assert_eq!(sent, [], "{byte:#x}");
                assert_eq!(lone.host.state(), QpState::Rts);
            }
        }
    }
}

/// T-044: responses in order place their bytes; the last completes the Read.
#[test]
fn read_responses_in_order_are_placed() {
    let mut lone = after_read();
    for (op, psn, len) in [
        (Op::ReadResponseFirst, 0, 256),
        (Op::ReadResponseMiddle, 1, 256),
        (Op::ReadResponseMiddle, 2, 256),
        (Op::ReadResponseLast, 3, 232),
    ] {
        lone.deliver(&answer(op, psn).payload(vec![psn as u8; len]));
    }
    assert_eq!(done(&mut lone), [1]);
    let placed = lone.host.read(TARGET, 1001);
    for (index, byte) in placed.iter().enumerate() {
        let expected = if index < 1000 {
            (index / 256) as u8
        } else {
            0xee
        };
        assert_eq!(*byte, expected, "byte {index}");
    }
    // A response too many answers nothing.
    lone.deliver(&answer(Op::ReadResponseLast, 4).payload([9; 4]));
    assert_eq!(lone.host.state(), QpState::Rts);
}

/// The first response of a Read of 1000 bytes is wrong: nothing is placed.
fn assert_first_fails(name: &str, raw: &Raw, status: WcStatus) {
    let mut lone = after_read();
    lone.deliver(raw);
    assert_eq!(outcomes(&lone.host.sent()), [(1, status)], "{name}");
    assert_eq!(lone.host.state(), QpState::Error, "{name}");
    assert_eq!(lone.host.read(TARGET, 2000), [0xee; 2000], "{name}");
}

/// As above, for the last response.
fn assert_last_fails(name: &str, op: Op, len: usize, status: WcStatus) {
    let mut lone = after_read();
    for psn in 0..3 {
        let op = match psn {
            0 => Op::ReadResponseFirst,
            _ => Op::ReadResponseMiddle,
        };
        lone.deliver(&answer(op, psn).payload([1; 256]));
    }
    lone.deliver(&answer(op, 3).payload(vec![2; len]));
    assert_eq!(outcomes(&lone.host.sent()), [(1, status)], "{name}");
    let behind = lone.host.read(TARGET + 768, 300);
    assert_eq!(behind, [0xee; 300], "{name}");
}

fn full(op: Op) -> Raw {
    answer(op, 0).payload([1; 256])
}

/// RCE-023, T-043, T-046.
#[test]
fn unexpected_response_opcode_is_bad_response() {
    let bad = WcStatus::BadResponse;
    assert_first_fails("Last too early", &full(Op::ReadResponseLast), bad);
    assert_first_fails("Only too early", &full(Op::ReadResponseOnly), bad);
    let atomic = answer(Op::AtomicAcknowledge, 0);
    assert_first_fails("of an atomic", &atomic, bad);
    assert_last_fails("First at the end", Op::ReadResponseFirst, 256, bad);
    assert_last_fails("Middle at the end", Op::ReadResponseMiddle, 256, bad);
    // A Read's response for an atomic, and data for a Send.
    let mut lone = Lone::new(&Setup::default());
    let remote = lone.host.remote(0);
    lone.host
        .post(1, SendOp::FetchAdd { remote, add: 1 }, TARGET, 8);
    assert_eq!(lone.requests(&[]).len(), 1);
    lone.deliver(&answer(Op::ReadResponseOnly, 0).payload([1; 8]));
    assert_eq!(outcomes(&lone.host.sent()), [(1, bad)]);
    let mut lone = after_sends(1);
    lone.deliver(&answer(Op::ReadResponseOnly, 1).payload([1; 8]));
    assert_eq!(outcomes(&lone.host.sent()), [(0, bad)]);
}

/// RCE-024, T-044.
#[test]
fn read_response_of_wrong_length_is_length_error() {
    let length = WcStatus::LocalLengthError;
    let first = |bytes| answer(Op::ReadResponseFirst, 0).payload(vec![1; bytes]);
    assert_first_fails("too short", &first(252), length);
    assert_first_fails("too long", &first(260), length);
    assert_last_fails("Last too short", Op::ReadResponseLast, 228, length);
    assert_last_fails("Last too long", Op::ReadResponseLast, 236, length);
}

/// RCE-025, T-045.
#[test]
fn read_response_with_nak_syndrome_is_bad_response() {
    for byte in [0x21, 0x40, 0x60, 0x61, 0x80] {
        let raw = with_syndrome(full(Op::ReadResponseFirst), byte);
        let name = format!("{byte:#x}");
        assert_first_fails(&name, &raw, WcStatus::BadResponse);
        let mut lone = Lone::new(&Setup::default());
        let remote = lone.host.remote(0);
        lone.host
            .post(1, SendOp::FetchAdd { remote, add: 1 }, TARGET, 8);
        assert_eq!(lone.requests(&[]).len(), 1);
        lone.deliver(&with_syndrome(answer(Op::AtomicAcknowledge, 0), byte));
        let bad = [(1, WcStatus::BadResponse)];
        assert_eq!(outcomes(&lone.host.sent()), bad, "{name}");
    }
}

/// RCE-021, T-038.
#[test]
fn nak_in_middle_of_batch_splits_results() {
    for (byte, status) in [
        (0x61, WcStatus::RemoteInvalidRequest),
        (0x62, WcStatus::RemoteAccessError),
        (0x63, WcStatus::RemoteOperationError),
    ] {
        let mut lone = after_sends(5);
        lone.deliver(&with_syndrome(ack(7), byte));
        let (success, flushed) = (WcStatus::Success, WcStatus::WorkRequestFlushed);
        assert_eq!(
            outcomes(&lone.host.sent()),
            [
                (0, success),
                (1, success),
                (2, status),
                (3, flushed),
                (4, flushed)
            ]
        );
        assert_eq!(lone.host.state(), QpState::Error);
    }
}

/// RTY-007: after all were sent, the second packet turns out to be missing.
#[test]
fn partial_write_retry_resumes_in_the_middle() {
    let mut lone = Lone::new(&Setup::default());
    let remote = lone.host.remote(0);
    lone.host.post(1, SendOp::Write { remote }, 0, 1000);
    assert_eq!(lone.requests(&[]).len(), 4);
    assert_eq!(
        lone.requests(&[nak(1, NakCode::PsnSequenceError)]),
        [
            "RDMA Write Middle 1 [256]",
            "RDMA Write Middle 2 [256]",
            "RDMA Write Last 3 [232] A"
        ]
    );
    lone.deliver(&ack(3));
    assert_eq!(done(&mut lone), [1]);
}

/// T-040, T-043: after a gap the Read is repeated from the missing packet,
/// once; its answer may go on with Middle, as rxe's does, or start over with First.
#[test]
fn a_repeated_read_is_answered_with_middle_or_first() {
    for again in [Op::ReadResponseMiddle, Op::ReadResponseFirst] {
        let mut lone = after_read();
        lone.deliver(&answer(Op::ReadResponseFirst, 0).payload([1; 256]));
        let late = answer(Op::ReadResponseMiddle, 2).payload([3; 256]);
        assert_eq!(
            lone.requests(std::slice::from_ref(&late)),
            ["RDMA Read Request 1 of 744 A"]
        );
        assert!(
            lone.requests(std::slice::from_ref(&late)).is_empty(),
            "one per gap"
        );
        lone.deliver(&answer(again, 1).payload([2; 256]));
        lone.deliver(&late);
        lone.deliver(&answer(Op::ReadResponseLast, 3).payload([4; 232]));
        assert_eq!(done(&mut lone), [1], "{again}");
        assert_eq!(
            lone.host.read(TARGET + 256, 512),
            [[2; 256], [3; 256]].concat()
        );
    }
}

/// a response of a Read acknowledges the Sends before it.
#[test]
fn read_responses_acknowledge_what_comes_before() {
    let mut lone = Lone::new(&Setup::default());
    let remote = lone.host.remote(0);
    lone.host.post(1, SendOp::Send, 0, 600);
    lone.host.post(2, SendOp::Read { remote }, TARGET, 8);
    assert_eq!(lone.requests(&[]).len(), 4);
    lone.deliver(&answer(Op::ReadResponseOnly, 3).payload([5; 8]));
    assert_eq!(done(&mut lone), [1, 2]);
    assert_eq!(
        lone.host.nic.next_deadline(),
        Some(lone.now + crate::transport::requester::ack_timeout(14).unwrap()),
        "a stale entry, taken off when it comes up"
    );
    assert!(lone.wait());
    assert_eq!(lone.host.nic.next_deadline(), None);
}

/// A Read's memory that can't be written fails the Read alone.
#[test]
fn a_read_into_bad_memory_fails() {
    let mut lone = Lone::new(&Setup::default());
    let remote = lone.host.remote(0);
    let mut sge = lone.host.sge(TARGET, 8);
    sge.lkey ^= 1;
    let list = [sge];
    let read = verbs_sys::SendRequest::signaled(1, SendOp::Read { remote }, &list);
    lone.host.try_post(&[read]).unwrap();
    assert_eq!(lone.requests(&[]).len(), 1);
    lone.deliver(&answer(Op::ReadResponseOnly, 0).payload([5; 8]));
    let failed = [(1, WcStatus::LocalProtectionError)];
    assert_eq!(outcomes(&lone.host.sent()), failed);
    assert_eq!(lone.host.state(), QpState::Error);
}

/// RNR-013, Q-9, 9.2 of rxe's deviations: even a Read can be refused for a while.
#[test]
fn requester_accepts_rnr_for_reads() {
    let mut lone = after_read();
    assert!(lone.requests(&[with_syndrome(ack(0), 0x21)]).is_empty());
    assert!(lone.wait());
    assert_eq!(lone.requests(&[]), ["RDMA Read Request 0 of 1000 A"]);
}

/// QPS-009, T-055: after a reset, answers to the former life find nothing.
#[test]
fn packets_of_former_life_are_ignored() {
    let mut lone = after_sends(2);
    let reset = verbs_sys::QpAttributes::to_state(QpState::Reset);
    lone.host.modify(reset).unwrap();
    let (qpn, peer) = (lone.host.qpn, lone.peer);
    lone.host.connect(qpn, peer, 0x77, [0x50_0000, 1]);
    lone.host.post(9, SendOp::Send, 0, 8);
    assert_eq!(lone.requests(&[]).len(), 1);
    lone.deliver(&ack(5));
    assert_eq!(done(&mut lone), [] as [u64; 0]);
    lone.setup.psn[0] = 0x50_0000;
    lone.deliver(&ack(0));
    assert_eq!(done(&mut lone), [9]);
}

/// Late answers to the first transmission while the second is under way: what
/// they acknowledge isn't sent any more.
#[test]
fn answers_overtake_a_retransmission() {
    let mut lone = after_sends(30);
    assert!(lone.wait());
    let now = lone.now;
    let acks = crate::transport::Acks::All;
    lone.host.nic.transmit(now, &mut lone.host.tx, acks);
    let count = lone.host.tx.packets().len();
    lone.host.tx.consume(count);
    assert!(count < 80, "one turn");
    assert_eq!(lone.requests(&[ack(86)]).len(), 3, "the last message");
    assert_eq!(done(&mut lone), Vec::from_iter(0..29));
}
