//! Loss and what follows: timeouts, NAKs, RNR waits, retries (rules Q-6 to
//! Q-25 of the requester), with both endpoints.

use std::time::Duration;

use verbs_sys::{QpState, SendOp, WcStatus};

use super::harness::{A, B, Fate, Pair, Setup, outcomes, pattern};
use crate::transport::requester::{ack_timeout, rnr_wait};

const TARGET: usize = 0x8_0000;

/// Times at which A sent a packet with this PSN (counted from its first).
fn times(pair: &Pair, psn: i32) -> Vec<u64> {
    let base = crate::wire::Psn::new(Setup::default().psn[A]);
    pair.log
        .iter()
        .filter(|sent| sent.from == A && sent.datagram.psn().diff(base) == psn)
        .map(|sent| sent.at.as_nanos())
        .collect()
}

/// RTY-006, T-031: a packet of a message is lost; the NAK names it, and A sends from
/// there, not from the start.
#[test]
fn lost_middle_packet_is_recovered_by_go_back() {
    let mut pair = Pair::new(&Setup::default());
    let message = pattern(1, 1000);
    pair.a().write(0, &message);
    let remote = pair.b().remote(TARGET);
    pair.drop_packets(A, &[1]);
    pair.a().post(1, SendOp::Write { remote }, 0, 1000);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
    assert_eq!(pair.b().read(TARGET, 1000), message);
    let sent = pair.texts(A);
    assert_eq!(sent[4..], sent[1..4], "identical, go-back-N");
    assert_eq!(
        pair.texts(B),
        [
            "Acknowledge 1 PsnSequenceError msn 0",
            "Acknowledge 3 msn 1"
        ]
    );
    assert_eq!(pair.a().nic.counters().timeouts, 0);
    assert_eq!(pair.a().nic.counters().retransmitted, 3);
}

/// RTY-002, T-032: the acknowledgement is lost; A asks again after T to 4T, B doesn't
/// execute again.
#[test]
fn answer_within_retry_budget_succeeds() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().recv(1, TARGET, 100);
    pair.drop_packets(B, &[0]);
    pair.a().post(1, SendOp::Send, 0, 10);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
    assert_eq!(outcomes(&pair.b().received()), [(1, WcStatus::Success)]);
    let sent = times(&pair, 0);
    let waited = Duration::from_nanos(sent[1] - sent[0]);
    let timeout = ack_timeout(14).unwrap();
    assert!((timeout..=4 * timeout).contains(&waited), "{waited:?}");
    assert_eq!(pair.texts(B), ["Acknowledge 0 msn 1"; 2]);
}

/// RTY-001, T-033: nobody answers: retry_cnt + 1 transmissions, then the end.
#[test]
fn silent_peer_exhausts_retry_count() {
    for retry_cnt in [0, 1, 7] {
        let mut pair = Pair::new(&Setup {
            retry_cnt,
            ..Setup::default()
        });
        pair.faults = Box::new(|_, _, _| Fate::Drop);
        pair.a().post(1, SendOp::Send, 0, 10);
        pair.a().post(2, SendOp::Send, 0, 10);
        pair.a().recv(3, 0, 10);
        pair.drive();
        assert_eq!(times(&pair, 0).len(), usize::from(retry_cnt) + 1);
        assert_eq!(
            outcomes(&pair.a().sent()),
            [
                (1, WcStatus::RetryExceeded),
                (2, WcStatus::WorkRequestFlushed)
            ]
        );
        let flushed = [(3, WcStatus::WorkRequestFlushed)];
        assert_eq!(outcomes(&pair.a().received()), flushed);
        assert_eq!(pair.a().state(), QpState::Error);
        assert_eq!(pair.a().nic.next_deadline(), None);
    }
}

/// RTY-003, T-034: timeout 0 is for ever.
#[test]
fn timeout_zero_never_retransmits() {
    let mut pair = Pair::new(&Setup {
        timeout: 0,
        ..Setup::default()
    });
    pair.faults = Box::new(|_, _, _| Fate::Drop);
    pair.a().post(1, SendOp::Send, 0, 10);
    pair.drive();
    assert_eq!(times(&pair, 0).len(), 1);
    assert_eq!(pair.a().state(), QpState::Rts);
}

/// RNR-009, T-035: A waits at least as long as each RNR code says, and resumes at the
/// packet that was refused.
#[test]
fn requester_waits_at_least_coded_rnr_time() {
    for code in 0..32 {
        let mut pair = Pair::new(&Setup {
            min_rnr_timer: code,
            timeout: 18,
            ..Setup::default()
        });
        let remote = pair.b().remote(TARGET);
        pair.a().post(1, SendOp::Write { remote }, 0, 10);
        pair.a().post(2, SendOp::Send, 0, 600);
        pair.run_for(Duration::from_micros(3));
        pair.b().recv(3, 0, 600);
        pair.drive();
        let success = WcStatus::Success;
        assert_eq!(outcomes(&pair.a().sent()), [(1, success), (2, success)]);
        assert_eq!(outcomes(&pair.b().received()), [(3, success)]);
        let (first, refused) = (times(&pair, 0), times(&pair, 1));
        assert_eq!((first.len(), refused.len()), (1, 2), "code {code}");
        let waited = Duration::from_nanos(refused[1] - refused[0]);
        let told = rnr_wait(code);
        assert!(waited >= told, "code {code}: {waited:?} of {told:?}");
        assert!(waited <= told + Duration::from_micros(5), "{waited:?}");
    }
}

/// RNR-001, RNR-002, T-036: rnr_retry is the number of RNR NAKs that are forgiven, 7 any number;
/// progress forgives all.
#[test]
fn send_without_recv_exhausts_rnr_retries() {
    for rnr_retry in [0, 1, 6] {
        let mut pair = Pair::new(&Setup {
            rnr_retry,
            ..Setup::default()
        });
        pair.a().post(1, SendOp::Send, 0, 10);
        pair.a().post(2, SendOp::Send, 0, 10);
        pair.drive();
        assert_eq!(times(&pair, 0).len(), usize::from(rnr_retry) + 1);
        assert_eq!(
            outcomes(&pair.a().sent()),
            [
                (1, WcStatus::RnrRetryExceeded),
                (2, WcStatus::WorkRequestFlushed)
            ]
        );
        assert_eq!(pair.a().state(), QpState::Error);
        assert_eq!(pair.b().state(), QpState::Rts);
    }
    let mut pair = Pair::new(&Setup::default());
    pair.a().post(1, SendOp::Send, 0, 10);
    pair.run_for(100 * (rnr_wait(1) + Duration::from_micros(2)));
    assert!(times(&pair, 0).len() >= 100);
    assert_eq!(pair.a().state(), QpState::Rts);
    pair.b().recv(1, 0, 10);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
}

/// RNR-010.
#[test]
fn rnr_counter_reloads_on_progress() {
    let mut pair = Pair::new(&Setup {
        rnr_retry: 1,
        ..Setup::default()
    });
    for wr_id in 0..4 {
        pair.a().post(wr_id, SendOp::Send, 0, 10);
    }
    // One receive for each RNR NAK.
    for wr_id in 0..4 {
        pair.run_for(Duration::from_micros(5));
        pair.b().recv(wr_id, 0, 10);
    }
    pair.drive();
    assert_eq!(pair.a().sent().len(), 4);
    assert_eq!(pair.a().state(), QpState::Rts);
    assert!(pair.b().nic.counters().tx_rnr_naks >= 2);
}

/// RTY-008, T-040, T-041: a response of a Read is lost; the Read is repeated from
/// there, what has arrived stays.
#[test]
fn partial_read_retry_asks_for_remainder() {
    const LAST: usize = 3;
    for lost in 0..=LAST {
        let mut pair = Pair::new(&Setup::default());
        pair.b().write(0, &pattern(4, 1000));
        let remote = pair.b().remote(0);
        let faults = move |from, count, _: &_| match (from, count) {
            (B, count) if count == lost => Fate::Drop,
            _ => Fate::Deliver,
        };
        pair.faults = Box::new(faults);
        pair.a().post(1, SendOp::Read { remote }, TARGET, 1000);
        pair.drive();
        assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
        assert_eq!(pair.a().read(TARGET, 1000), pattern(4, 1000));
        let rest = 1000 - 256 * lost;
        assert_eq!(
            pair.texts(A),
            [
                "RDMA Read Request 0 of 1000 A".to_owned(),
                format!("RDMA Read Request {lost} of {rest} A"),
            ]
        );
        // The last one's loss shows by a timeout only.
        let timeouts = pair.a().nic.counters().timeouts;
        assert_eq!(timeouts, u64::from(lost == LAST), "lost {lost}");
        let again = &pair.texts(B)[4];
        let operation = if lost == LAST { "Only" } else { "First" };
        assert!(
            again.starts_with(&format!("RDMA Read Response {operation} {lost}")),
            "{again}"
        );
    }
}

/// T-041: the request itself is lost.
#[test]
fn a_lost_read_request_costs_a_timeout() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(0);
    pair.drop_packets(A, &[0]);
    pair.a().post(1, SendOp::Read { remote }, TARGET, 1000);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
    assert_eq!(pair.texts(A), ["RDMA Read Request 0 of 1000 A"; 2]);
}

/// RTY-011, T-042: an acknowledgement of what came after a Read implies that the
/// Read's answer was lost.
#[test]
fn implied_nak_retries_read() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().write(0, &pattern(4, 500));
    let remote = pair.b().remote(0);
    pair.b().recv(3, TARGET, 100);
    pair.drop_packets(B, &[0, 1]);
    pair.a().post(1, SendOp::Read { remote }, TARGET, 500);
    pair.a().post(2, SendOp::Send, 0, 10);
    pair.drive();
    let success = WcStatus::Success;
    assert_eq!(outcomes(&pair.a().sent()), [(1, success), (2, success)]);
    assert_eq!(outcomes(&pair.b().received()), [(3, success)]);
    assert_eq!(pair.a().read(TARGET, 500), pattern(4, 500));
    assert_eq!(pair.a().nic.counters().timeouts, 0);
}

/// Q-17, P-14, T-062: the answer of an atomic is lost; it is answered again
/// from memory.
#[test]
fn an_atomic_is_executed_once() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    pair.b().write(TARGET, &40_u64.to_ne_bytes());
    pair.drop_packets(B, &[0, 1, 2]);
    pair.a().post(1, SendOp::FetchAdd { remote, add: 2 }, 0, 8);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
    assert_eq!(pair.a().read_u64(0), 40);
    assert_eq!(pair.b().read_u64(TARGET), 42);
    assert_eq!(pair.texts(B), ["Atomic Acknowledge 0 msn 1"; 4]);
}

/// A retransmission that is lost as well is made up for by the timer: one
/// loss more, not a dead connection.
#[test]
fn a_lost_retransmission_is_recovered_by_the_timer() {
    let mut pair = Pair::new(&Setup::default());
    let message = pattern(1, 1000);
    pair.a().write(0, &message);
    let remote = pair.b().remote(TARGET);
    pair.drop_packets(A, &[1, 4, 5, 6]);
    pair.a().post(1, SendOp::Write { remote }, 0, 1000);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
    assert_eq!(pair.b().read(TARGET, 1000), message);
    assert_eq!(pair.a().nic.counters().timeouts, 1);
}

/// the timer starts anew with a retransmission, or the rest of the old
/// time would run out in the middle of it.
#[test]
fn going_back_restarts_the_timer() {
    let timeout = ack_timeout(14).unwrap();
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    // The second packet is lost, and its NAK takes almost as long as the timer.
    pair.faults = Box::new(move |from, count, _| match (from, count) {
        (A, 1) => Fate::Drop,
        (B, 0) => Fate::Delay(timeout - Duration::from_micros(5)),
        (B, 1) => Fate::Delay(timeout / 2),
        _ => Fate::Deliver,
    });
    pair.a().post(1, SendOp::Write { remote }, 0, 1000);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, WcStatus::Success)]);
    assert_eq!(pair.a().nic.counters().timeouts, 0);
}

/// RTY-021, T-024, T-078: PSNs and MSNs go round.
#[test]
fn psn_wrap_is_transparent() {
    for lost in [&[][..], &[2, 7, 8, 20][..]] {
        let mut pair = Pair::new(&Setup {
            psn: [0xff_fffa, 0xff_ffff],
            ..Setup::default()
        });
        pair.drop_packets(A, lost);
        let remote = pair.b().remote(TARGET);
        for wr_id in 0..10 {
            pair.b().recv(wr_id, 0, 1000);
            pair.a().post(2 * wr_id, SendOp::Send, 0, 600);
            pair.a()
                .post(2 * wr_id + 1, SendOp::Read { remote }, 0, 600);
        }
        pair.drive();
        let done: Vec<u64> = pair.a().sent().iter().map(|done| done.wr_id).collect();
        assert_eq!(done, Vec::from_iter(0..20));
        assert_eq!(pair.b().received().len(), 10);
        let qpn = pair.a().qpn;
        let psn = pair.a().nic.query_qp(qpn).unwrap().sq_psn;
        assert_eq!(psn, Some(0xff_fffa + 60 - (1 << 24)));
    }
}

/// RCE-002, T-052: a request whose memory can't be read fails alone, in order; what
/// was before it completes, nothing of it leaves any more.
#[test]
fn bad_second_sge_stops_long_send() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    let mut bad = pair.a().sge(4096, 600);
    bad.lkey ^= 1;
    let list = [pair.a().sge(0, 600), bad];
    pair.a().post(1, SendOp::Write { remote }, 0, 600);
    let request = verbs_sys::SendRequest::signaled(2, SendOp::Write { remote }, &list);
    pair.a().try_post(&[request]).unwrap();
    pair.a().post(3, SendOp::Write { remote }, 0, 600);
    pair.drive();
    assert_eq!(
        outcomes(&pair.a().sent()),
        [
            (1, WcStatus::Success),
            (2, WcStatus::LocalProtectionError),
            (3, WcStatus::WorkRequestFlushed)
        ]
    );
    assert_eq!(pair.a().state(), QpState::Error);
    assert_eq!(
        pair.texts(A).len(),
        5,
        "three packets of the first, two of the second"
    );
    assert_eq!(pair.b().state(), QpState::Rts);
}

/// T-038: the peer refuses the third of five; those before it have succeeded.
#[test]
fn a_refused_request_ends_the_connection() {
    let mut pair = Pair::new(&Setup::default());
    let good = pair.b().remote(TARGET);
    let mut bad = good;
    bad.rkey ^= 1;
    for wr_id in 0..5 {
        let remote = if wr_id == 2 { bad } else { good };
        pair.a().post(wr_id, SendOp::Write { remote }, 0, 8);
    }
    pair.drive();
    let sent = pair.a().sent();
    let (success, flushed) = (WcStatus::Success, WcStatus::WorkRequestFlushed);
    assert_eq!(
        outcomes(&sent),
        [
            (0, success),
            (1, success),
            (2, WcStatus::RemoteAccessError),
            (3, flushed),
            (4, flushed)
        ]
    );
    assert_eq!(sent[2].vendor_err, 0x62);
    assert_eq!(pair.a().state(), QpState::Error);
    assert_eq!(pair.b().state(), QpState::Error);
}

/// Q-10 with Q-7: the answer of a Read is lost, and a later request is
/// refused. The Read's data is missing, so it can't succeed; but it wasn't
/// refused either. It is asked for again, and finds a dead peer.
#[test]
fn a_nak_behind_an_unanswered_read_does_not_blame_the_read() {
    let mut pair = Pair::new(&Setup::default());
    let good = pair.b().remote(TARGET);
    let mut bad = good;
    bad.rkey ^= 1;
    pair.drop_packets(B, &[0]);
    pair.a().post(1, SendOp::Read { remote: good }, 0, 8);
    pair.a().post(2, SendOp::Write { remote: bad }, 0, 8);
    pair.drive();
    assert_eq!(
        outcomes(&pair.a().sent()),
        [
            (1, WcStatus::RetryExceeded),
            (2, WcStatus::WorkRequestFlushed)
        ]
    );
}

/// A network that repeats a Read's request while all resources are taken: the
/// repetition takes none.
#[test]
fn repeated_requests_take_no_resources() {
    let mut pair = Pair::new(&Setup {
        rd_atomic: [1, 1],
        ..Setup::default()
    });
    pair.faults = Box::new(|from, _, _| {
        if from == A {
            Fate::Duplicate(Duration::from_nanos(1))
        } else {
            Fate::Deliver
        }
    });
    let remote = pair.b().remote(TARGET);
    for wr_id in 0..50 {
        let op = match wr_id % 2 {
            0 => SendOp::Read { remote },
            _ => SendOp::FetchAdd { remote, add: 1 },
        };
        pair.a().post(wr_id, op, 0, 8);
    }
    pair.drive();
    assert_eq!(pair.a().sent().len(), 50);
    assert_eq!(pair.a().state(), QpState::Rts);
    assert_eq!(pair.b().read_u64(TARGET), 25);
}
