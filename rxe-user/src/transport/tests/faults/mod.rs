//! The responder's fault table (IBTA tables 60 and 61): a test for each row,
//! with raw packets (row 17, of XRC, is in [`super::conformance`]). Each checks what goes out, how a receive completes, which
//! event is raised, the queue pair's state, and that memory is untouched.

mod invalid;
mod memory;

use verbs_sys::{AsyncEvent, EventKind, EventSource, QpState, WcStatus};

use super::harness::{Datagram, Lone, Raw, Setup, outcomes};
use crate::wire::Operation as Op;

/// A place in the buffer that requests aim at.
const TARGET: usize = 0x8_0000;

/// An endpoint with one receive of 1000 bytes at 0 and a known buffer.
fn endpoint(setup: &Setup) -> Lone {
    let mut lone = Lone::new(setup);
    lone.host.buffer.fill(0, 1 << 20, 0xee).unwrap();
    lone.host.recv(7, 0, 1000);
    lone
}

fn write_only(lone: &Lone, psn: i32, payload: &[u8]) -> Raw {
    Raw {
        reth: lone.reth(TARGET, payload.len() as u32),
        ..Raw::new(Op::WriteOnly, psn).payload(payload)
    }
}

/// What a fatal fault must lead to.
struct Outcome {
    /// Of the packet with PSN `psn`, `msn` messages after the start.
    nak: &'static str,
    /// Status of the posted receive.
    receive: WcStatus,
    event: Option<EventKind>,
}

const INVALID_REQUEST: &str = "InvalidRequest";
const REMOTE_ACCESS: &str = "RemoteAccessError";
const REMOTE_OPERATIONAL: &str = "RemoteOperationalError";

fn refused(nak: &'static str, receive: WcStatus, event: Option<EventKind>) -> Outcome {
    Outcome {
        nak,
        receive,
        event,
    }
}

/// No receive was in use: it is flushed, and an event tells of the fault.
fn refused_with_event(nak: &'static str, event: EventKind) -> Outcome {
    refused(nak, WcStatus::WorkRequestFlushed, Some(event))
}

/// Delivers packets of which the last is refused for good.
fn assert_fatal(mut lone: Lone, raws: &[Raw], outcome: &Outcome, context: &str) {
    let psn = raws.last().unwrap().psn;
    let before = lone.host.read(TARGET, 4096);
    let answers = lone.answers(raws);
    assert_eq!(
        answers,
        [format!("Acknowledge {psn} {} msn 0", outcome.nak)],
        "{context}"
    );
    assert_eq!(lone.host.state(), QpState::Error, "{context}");
    let received = lone.host.received();
    assert_eq!(outcomes(&received), [(7, outcome.receive)], "{context}");
    let events: Vec<AsyncEvent> = outcome
        .event
        .map(|kind| AsyncEvent {
            kind,
            source: EventSource::Qp(lone.host.qpn),
        })
        .into_iter()
        .collect();
    assert_eq!(lone.host.events(), events, "{context}");
    assert_eq!(lone.host.read(TARGET, 4096), before, "{context}: memory");
    // The NAK is sent once; from now on the queue pair is silent.
    let again = write_only(&lone, psn, b"again");
    assert!(lone.answers(&[again]).is_empty(), "{context}");
    assert_eq!(lone.host.read(TARGET, 4096), before, "{context}: memory");
}

fn assert_untouched(lone: &mut Lone, context: &str) {
    assert_eq!(lone.host.state(), QpState::Rts, "{context}");
    assert_eq!(lone.host.received(), [], "{context}");
    assert_eq!(lone.host.events(), [], "{context}");
    let next = write_only(lone, 0, b"next");
    assert_eq!(lone.answers(&[next]), ["Acknowledge 0 msn 1"], "{context}");
}

/// Row 1; T-004, T-010, T-013, T-014: checks of every packet fail in silence.
#[test]
fn row_1_packets_that_fail_the_checks_are_dropped() {
    type Change = fn(&mut Raw);
    let changes: [(&str, Change); 7] = [
        ("version", |raw| raw.patch = Some(|bytes| bytes[1] |= 5)),
        ("reserved opcode", |raw| {
            raw.patch = Some(|bytes| bytes[0] = 0x15);
        }),
        ("service UC", |raw| {
            raw.patch = Some(|bytes| bytes[0] |= 0x20);
        }),
        ("QPN 0", |raw| raw.dest_qpn = Some(0)),
        ("QPN of nobody", |raw| raw.dest_qpn = Some(0x12_3456)),
        ("P_Key of another partition", |raw| raw.pkey = 0x8001),
        ("invalid P_Key", |raw| raw.pkey = 0x8000),
    ];
    for (name, change) in changes {
        let mut lone = endpoint(&Setup::default());
        let mut raw = write_only(&lone, 0, b"nothing");
        change(&mut raw);
        assert!(lone.answers(&[raw]).is_empty(), "{name}");
        assert_untouched(&mut lone, name);
    }
    // The ICRC, and T-019 the addresses.
    let mut lone = endpoint(&Setup::default());
    let bytes = write_only(&lone, 0, b"nothing").bytes(lone.host.qpn, lone.setup.psn[1]);
    let good = Datagram::sealed(lone.route(), bytes);
    let mut broken = good.clone();
    broken.bytes[30] ^= 1;
    lone.host.nic.receive(lone.now, &broken.arrived());
    let mut route = lone.route();
    route.src = [10, 0, 0, 99].into();
    let stranger = Datagram::sealed(route, good.bytes.clone());
    lone.host.nic.receive(lone.now, &stranger.arrived());
    let counters = *lone.host.nic.counters();
    assert_eq!(counters.rx_icrc_errors, 1);
    assert_eq!(counters.rx_wrong_address, 1);
    assert_untouched(&mut lone, "ICRC and addresses");
    // Limited membership of the default partition is good enough.
    let limited = Raw {
        pkey: 0x7fff,
        ..write_only(&lone, 1, b"limited")
    };
    assert_eq!(lone.answers(&[limited]), ["Acknowledge 1 msn 2"]);
}

/// Row 2; RTY-015; T-057: a gap is reported once, until the missing packet has come.
#[test]
fn psn_gap_gets_one_nak_and_recovers() {
    let mut lone = endpoint(&Setup::default());
    let gap = write_only(&lone, 1, b"gap");
    let nak = ["Acknowledge 0 PsnSequenceError msn 0"];
    assert_eq!(lone.answers(std::slice::from_ref(&gap)), nak);
    for psn in 1..50 {
        let later = Raw { psn, ..gap.clone() };
        assert!(lone.answers(&[later]).is_empty(), "PSN {psn}");
    }
    let missing = write_only(&lone, 0, b"missing");
    assert_eq!(lone.answers(&[missing]), ["Acknowledge 0 msn 1"]);
    let gap = Raw { psn: 2, ..gap };
    assert_eq!(
        lone.answers(&[gap]),
        ["Acknowledge 1 PsnSequenceError msn 1"]
    );
    assert_eq!(lone.host.state(), QpState::Rts);
}

/// RTY-022, T-058: the half circle before the expected PSN is duplicates, the other
/// half is out of sequence.
#[test]
fn duplicate_and_future_psns_split_at_half_range() {
    for (psn, answer) in [
        (-1, "Acknowledge -1 msn 0"),
        (-(1 << 23), "Acknowledge -1 msn 0"),
        (1 - (1 << 23), "Acknowledge -1 msn 0"),
        ((1 << 23) - 1, "Acknowledge 0 PsnSequenceError msn 0"),
    ] {
        let mut lone = endpoint(&Setup::default());
        let raw = write_only(&lone, psn, b"?");
        assert_eq!(lone.answers(&[raw]), [answer], "PSN {psn}");
        assert_eq!(lone.host.read(TARGET, 1), [0xee]);
    }
}

/// Row 3; RTY-016; T-059, T-060: a repeated Send or Write isn't executed again.
#[test]
fn duplicate_send_or_write_is_acked_not_executed() {
    let mut lone = endpoint(&Setup::default());
    let first = Raw::new(Op::SendOnly, 0).payload(*b"first");
    let second = write_only(&lone, 1, b"second");
    assert_eq!(
        lone.answers(&[first.clone(), second.clone()]),
        ["Acknowledge 1 msn 2"],
        "acknowledgements merge"
    );
    lone.host.buffer.fill(TARGET, 100, 0x55).unwrap();
    assert_eq!(outcomes(&lone.host.received()), [(7, WcStatus::Success)]);
    assert_eq!(
        lone.answers(std::slice::from_ref(&first)),
        ["Acknowledge 1 msn 2"]
    );
    assert_eq!(lone.answers(&[second]), ["Acknowledge 1 msn 2"]);
    assert!(lone.answers(&[first.no_ack()]).is_empty(), "none asked for");
    assert_eq!(lone.host.received(), []);
    assert_eq!(lone.host.read(TARGET, 6), [0x55; 6]);
    assert_eq!(lone.host.nic.counters().duplicate_requests, 3);
}

/// Row 4; RTY-010; T-061, T-062: repeated Reads and atomics that weren't there before.
#[test]
fn mismatching_duplicate_read_is_ignored() {
    let mut lone = endpoint(&Setup::default());
    let read = Raw {
        reth: lone.reth(TARGET, 600),
        ..Raw::new(Op::ReadRequest, 0)
    };
    assert_eq!(lone.answers(std::slice::from_ref(&read)).len(), 3);
    let reth = read.reth;
    let (mut other_key, mut shifted) = (reth, reth);
    other_key.rkey ^= 1;
    shifted.va += 4;
    let mut off_boundary = lone.reth(TARGET + 4, 596);
    off_boundary.rkey = reth.rkey;
    let longer = lone.reth(TARGET, 601);
    for (name, psn, reth) in [
        ("other key", 0, other_key),
        ("shifted", 0, shifted),
        ("off the packet boundary", 1, off_boundary),
        ("longer", 0, longer),
        ("before the first", -1, reth),
    ] {
        let raw = Raw {
            psn,
            reth,
            ..read.clone()
        };
        assert!(lone.answers(&[raw]).is_empty(), "{name}");
    }
    let atomic = Raw::new(Op::FetchAdd, 1);
    assert!(lone.answers(&[atomic]).is_empty(), "an atomic in a Read");
    assert_eq!(lone.host.state(), QpState::Rts);
}

/// Row 5; RNR-008: the code, the PSN of the packet, the messages so far; the
/// expected PSN stays.
#[test]
fn rnr_nak_carries_timer_and_position() {
    for code in 0..32 {
        let setup = Setup {
            min_rnr_timer: code,
            ..Setup::default()
        };
        let mut lone = Lone::new(&setup);
        let write = write_only(&lone, 0, b"first");
        let send = Raw::new(Op::SendOnly, 1);
        let refusal = format!("Acknowledge 1 RNR {code} msn 1");
        assert_eq!(
            lone.answers(&[write, send.clone()]),
            std::slice::from_ref(&refusal)
        );
        assert_eq!(lone.answers(std::slice::from_ref(&send)), [refusal]);
        lone.host.recv(1, 0, 8);
        assert_eq!(lone.answers(&[send]), ["Acknowledge 1 msn 2"]);
    }
}

/// Row 5; RNR-012; T-064, T-065: the peer is told to wait; nothing else changes.
#[test]
fn responder_is_silent_for_packets_behind_rnr() {
    let setup = Setup {
        min_rnr_timer: 14,
        ..Setup::default()
    };
    let mut lone = Lone::new(&setup);
    let first = Raw::new(Op::SendFirst, 0).no_ack().payload([1; 256]);
    let last = Raw::new(Op::SendLast, 1).payload([2; 4]);
    assert_eq!(
        lone.answers(&[first.clone(), last.clone()]),
        ["Acknowledge 0 RNR 14 msn 0"],
        "what follows is dropped in silence"
    );
    lone.host.recv(1, TARGET, 1000);
    assert_eq!(lone.answers(&[first, last]), ["Acknowledge 1 msn 1"]);
    let received = lone.host.received();
    assert_eq!(outcomes(&received), [(1, WcStatus::Success)]);
    assert_eq!(received[0].byte_len, 260);

    // A Write with immediate needs the request only at its end.
    let first = Raw {
        reth: lone.reth(TARGET, 260),
        ..Raw::new(Op::WriteFirst, 2).no_ack().payload([3; 256])
    };
    let last = Raw {
        imm: 9,
        ..Raw::new(Op::WriteLastImm, 3).payload([4; 4])
    };
    assert_eq!(
        lone.answers(&[first, last.clone()]),
        ["Acknowledge 3 RNR 14 msn 1"]
    );
    assert_eq!(
        lone.host.read(TARGET, 260),
        [[3; 256].as_slice(), &[2; 4]].concat()
    );
    lone.host.recv(2, 0, 0);
    assert_eq!(lone.answers(&[last]), ["Acknowledge 3 msn 2"]);
    let received = lone.host.received();
    assert_eq!(outcomes(&received), [(2, WcStatus::Success)]);
    assert_eq!(
        (received[0].byte_len, received[0].immediate()),
        (260, Some(9))
    );
    assert_eq!(lone.host.state(), QpState::Rts);
}
