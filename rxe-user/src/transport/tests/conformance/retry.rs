//! Groups rnr and retry, as far as both ends take part.

use std::time::Duration;

use verbs_sys::{QpAttributes, QpState, SendOp, WcStatus};

use super::mw::{assert_writes, bound_of, remote};
use super::{A_ERR, FLUSHED, SUCCESS, TARGET, assert_at_rest, only, states};
use crate::transport::requester::ack_timeout;
use crate::transport::tests::harness::{A, B, Fate, Host, Pair, Setup, outcomes, pattern};

/// RNR-002.
#[test]
fn infinite_rnr_retry_never_gives_up() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.run_for(Duration::from_millis(5));
    assert!(pair.texts(B).len() > 100);
    assert_eq!(pair.a().sent(), []);
    pair.b().recv(2, TARGET, 8);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 1);
    assert_eq!(only(pair.b().received()).wr_id, 2);
    assert_at_rest(&mut pair);
}

/// RNR-003.
#[test]
fn recv_posted_during_rnr_wait_is_used_once() {
    for requester in [A, B] {
        let mut pair = Pair::new(&Setup {
            min_rnr_timer: 10,
            ..Setup::default()
        });
        let responder = 1 - requester;
        pair.hosts[requester].post(1, SendOp::Send, 0, 8);
        pair.run_for(Duration::from_micros(5));
        for wr_id in [2, 3] {
            pair.hosts[responder].recv(wr_id, TARGET, 8);
        }
        pair.drive();
        assert_eq!(only(pair.hosts[requester].sent()).wr_id, 1);
        assert_eq!(only(pair.hosts[responder].received()).wr_id, 2);
        assert_at_rest(&mut pair);
    }
}

fn half_of_batch(min_rnr_timer: u8, rnr_retry: u8) -> Pair {
    let mut pair = Pair::new(&Setup {
        min_rnr_timer,
        rnr_retry,
        timeout: 20,
        ..Setup::default()
    });
    for wr_id in 0..32 {
        pair.a().post(wr_id, SendOp::Send, 0, 8);
    }
    for wr_id in 0..16 {
        pair.b().recv(wr_id, TARGET, 8);
    }
    pair.run_for(Duration::from_millis(1));
    pair
}

fn successes(ids: std::ops::Range<u64>) -> Vec<(u64, WcStatus)> {
    ids.map(|wr_id| (wr_id, SUCCESS)).collect()
}

/// RNR-004.
#[test]
fn half_of_batch_waits_for_second_half_of_recvs() {
    let mut pair = half_of_batch(0, 7);
    assert_eq!(outcomes(&pair.a().sent()), successes(0..16));
    assert_eq!(outcomes(&pair.b().received()), successes(0..16));
    for wr_id in 16..32 {
        pair.b().recv(wr_id, TARGET, 8);
    }
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), successes(16..32));
    assert_eq!(outcomes(&pair.b().received()), successes(16..32));
    assert_at_rest(&mut pair);
}

/// RNR-005.
#[test]
fn half_of_batch_fails_when_recvs_run_out() {
    let mut pair = half_of_batch(1, 1);
    pair.drive();
    let mut expected = successes(0..16);
    expected.push((16, WcStatus::RnrRetryExceeded));
    expected.extend((17..32).map(|wr_id| (wr_id, FLUSHED)));
    assert_eq!(outcomes(&pair.a().sent()), expected);
    assert_eq!(outcomes(&pair.b().received()), successes(0..16));
    assert_eq!(states(&pair), A_ERR);
}

/// RNR-006.
#[test]
fn write_imm_without_recv_gets_rnr_at_its_last_packet() {
    for length in [8, 600] {
        for in_time in [false, true] {
            let mut pair = Pair::new(&Setup {
                rnr_retry: 2,
                ..Setup::default()
            });
            pair.a().write(0, &pattern(3, length));
            pair.b().buffer.fill(TARGET, length, 0xee).unwrap();
            let remote = pair.b().remote(TARGET);
            pair.a()
                .post(1, SendOp::WriteImm { remote, imm: 1 }, 0, length);
            pair.run_for(Duration::from_micros(4));
            if in_time {
                pair.b().recv(2, 0, 8);
            }
            pair.drive();
            let last = length.div_ceil(256) - 1;
            let refusal = format!("Acknowledge {last} RNR 1 msn 0");
            assert_eq!(pair.texts(B)[0], refusal);
            let again: Vec<_> = pair.texts(A).split_off(last + 1);
            assert!(again.iter().all(|text| text.contains("Immediate")));
            let placed = pair.b().read(TARGET, length);
            if in_time {
                assert_eq!(only(pair.a().sent()).wr_id, 1);
                assert_eq!(only(pair.b().received()).wr_id, 2);
                assert_eq!(placed, pattern(3, length));
            } else {
                let failed = [(1, WcStatus::RnrRetryExceeded)];
                assert_eq!(outcomes(&pair.a().sent()), failed);
                assert_eq!(states(&pair), A_ERR);
                let (before, rest) = placed.split_at(256 * last);
                assert_eq!(before, &pattern(3, length)[..256 * last]);
                assert!(rest.iter().all(|byte| *byte == 0xee));
            }
        }
    }
}

/// RNR-007.
#[test]
fn send_inv_without_recv_keeps_window() {
    let (mut pair, binding) = bound_of(&Setup {
        rnr_retry: 1,
        ..Setup::default()
    });
    let rkey = binding.rkey();
    pair.a().post(1, SendOp::SendInvalidate { rkey }, 0, 8);
    pair.drive();
    let failed = [(1, WcStatus::RnrRetryExceeded)];
    assert_eq!(outcomes(&pair.a().sent()), failed);
    assert_eq!(states(&pair), A_ERR);
    // A comes back with the PSN that B waits for.
    let setup = Setup::default();
    let reset = QpAttributes::to_state(QpState::Reset);
    let (address, dest_qpn) = (pair.b().address, pair.b().qpn);
    let a = pair.a();
    a.modify(reset).unwrap();
    a.connect(a.qpn, address, dest_qpn, setup.psn);
    assert_writes(&mut pair, remote(&binding));
}

/// RTY-004.
#[test]
fn ack_timeout_expires_between_one_and_four_periods() {
    for code in [1, 8, 14, 20, 31] {
        let mut pair = Pair::new(&Setup {
            timeout: code,
            ..Setup::default()
        });
        pair.faults = Box::new(|_, _, _| Fate::Drop);
        pair.a().post(1, SendOp::Send, 0, 8);
        pair.drive();
        let period = ack_timeout(code).unwrap();
        let times: Vec<_> = pair.log.iter().map(|sent| sent.at).collect();
        assert_eq!(times.len(), 8);
        for pair in times.windows(2) {
            let waited = pair[1].since(pair[0]);
            assert!((period..=4 * period).contains(&waited), "{waited:?}");
        }
    }
}

/// RTY-005.
#[test]
fn retry_counter_reloads_on_progress() {
    let mut pair = Pair::new(&Setup {
        retry_cnt: 1,
        timeout: 8,
        ..Setup::default()
    });
    // Each message is lost once.
    pair.faults = Box::new(|from, count, _| match (from, count % 2) {
        (A, 0) => Fate::Drop,
        _ => Fate::Deliver,
    });
    let remote = pair.b().remote(TARGET);
    for wr_id in 0..20 {
        pair.a().post(wr_id, SendOp::Write { remote }, 0, 8);
        pair.drive();
    }
    assert_eq!(outcomes(&pair.a().sent()), successes(0..20));
    assert_eq!(pair.a().nic.counters().timeouts, 20);
}

/// RTY-012.
#[test]
fn implied_nak_without_retries_is_fatal() {
    let mut pair = Pair::new(&Setup {
        retry_cnt: 0,
        ..Setup::default()
    });
    pair.a().buffer.fill(0, 8, 0xee).unwrap();
    let remote = pair.b().remote(TARGET);
    pair.drop_packets(B, &[0]);
    pair.a().post(1, SendOp::Read { remote }, 0, 8);
    pair.a().post(2, SendOp::Write { remote }, 64, 8);
    pair.drive();
    let sent = outcomes(&pair.a().sent());
    assert_eq!(sent, [(1, WcStatus::RetryExceeded), (2, FLUSHED)]);
    assert_eq!(states(&pair), A_ERR);
    assert_eq!(pair.a().read(0, 8), [0xee; 8]);
    assert_eq!(pair.a().nic.counters().timeouts, 0);
}

/// RTY-014.
#[test]
fn start_psn_mismatch_exhausts_retries() {
    let setup = Setup {
        retry_cnt: 2,
        ..Setup::default()
    };
    let (mut a, mut b) = (Host::new(1, &setup), Host::new(2, &setup));
    let (address_a, address_b, qpn_a, qpn_b) = (a.address, b.address, a.qpn, b.qpn);
    a.connect(qpn_a, address_b, qpn_b, [101, 5]);
    b.connect(qpn_b, address_a, qpn_a, [5, 100]);
    let mut pair = Pair::connected(a, b, [101, 5]);
    let remote = pair.b().remote(TARGET);
    let before = pair.b().read(TARGET, 8);
    pair.a().post(1, SendOp::Write { remote }, 0, 8);
    pair.drive();
    let failed = [(1, WcStatus::RetryExceeded)];
    assert_eq!(outcomes(&pair.a().sent()), failed);
    assert_eq!(pair.texts(B), ["Acknowledge -1 PsnSequenceError msn 0"]);
    assert_eq!(states(&pair), [QpState::Error, QpState::Rts]);
    assert_eq!(pair.b().read(TARGET, 8), before);
}

/// RTY-007, RTY-024: from the packet that is missing on, and the same bytes.
#[test]
fn resent_packets_are_identical() {
    let mut pair = Pair::new(&Setup::default());
    pair.a().write(0, &pattern(1, 2000));
    let remote = pair.b().remote(TARGET);
    pair.drop_packets(A, &[1, 6]);
    pair.a().post(1, SendOp::Write { remote }, 0, 1000);
    pair.a()
        .post(2, SendOp::WriteImm { remote, imm: 5 }, 0, 700);
    pair.b().recv(3, 0, 0);
    pair.drive();
    let mut first: std::collections::HashMap<u32, Vec<u8>> = std::collections::HashMap::new();
    let mut repeated = 0;
    for sent in pair.log.iter().filter(|sent| sent.from == A) {
        let mut bytes = sent.datagram.bytes.clone();
        bytes.truncate(bytes.len() - 4);
        bytes[8] &= 0x7f;
        let psn = sent.datagram.psn().value();
        if let Some(before) = first.get(&psn) {
            assert_eq!(*before, bytes);
            repeated += 1;
        }
        first.insert(psn, bytes);
    }
    assert!(repeated >= 6, "{repeated}");
    assert_eq!(pair.a().sent().len(), 2);
}

/// RTY-017, T-062: repeated from memory; what is older than the store isn't
/// answered.
#[test]
fn duplicate_atomic_replays_saved_result() {
    let mut pair = Pair::new(&Setup {
        rd_atomic: [2, 2],
        ..Setup::default()
    });
    pair.b().write(TARGET, &0_u64.to_ne_bytes());
    let remote = pair.b().remote(TARGET);
    for wr_id in 0..4 {
        pair.a()
            .post(wr_id, SendOp::FetchAdd { remote, add: 1 }, 0, 8);
        pair.drive();
    }
    let requests: Vec<_> = pair
        .log
        .iter()
        .filter(|sent| sent.from == A)
        .map(|sent| sent.datagram.clone())
        .collect();
    pair.clear_log();
    for request in &requests {
        pair.arrive(B, Duration::ZERO, request.clone());
    }
    pair.drive();
    let replies: Vec<_> = pair
        .log
        .iter()
        .map(|sent| sent.datagram.packet().atomic_ack_eth().unwrap().original)
        .collect();
    assert_eq!(replies, [2, 3], "of the last two");
    assert_eq!(pair.b().read_u64(TARGET), 4);
}

/// RTY-018, T-063: a peer of rxe's kind has more Reads outstanding than agreed.
#[test]
fn replay_store_covers_rounded_up_depth() {
    let mut pair = Pair::new(&Setup {
        rd_atomic: [8, 5],
        ..Setup::default()
    });
    let remote = pair.b().remote(TARGET);
    let mut lost = 0;
    pair.faults = Box::new(move |from, _, _| {
        lost += usize::from(from == B);
        match from {
            B if lost <= 8 => Fate::Drop,
            _ => Fate::Deliver,
        }
    });
    for wr_id in 0..8 {
        pair.a().post(wr_id, SendOp::Read { remote }, 0, 8);
    }
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), successes(0..8));
    assert_eq!(pair.b().nic.counters().duplicate_requests, 8);
}

/// RTY-009.
#[test]
fn responder_serves_partial_read_retry() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().write(0, &pattern(2, 1000));
    let remote = pair.b().remote(0);
    pair.drop_packets(B, &[2, 3]);
    pair.a().post(1, SendOp::Read { remote }, TARGET, 1000);
    pair.drive();
    assert_eq!(
        pair.texts(B)[4..],
        [
            "RDMA Read Response First 2 [256] msn 1",
            "RDMA Read Response Last 3 [232] msn 1"
        ]
    );
    assert_eq!(pair.a().read(TARGET, 1000), pattern(2, 1000));
}
