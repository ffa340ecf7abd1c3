//! What holds requests back: the peer's resources, fences, the window.

use verbs_sys::{SendFlags, SendOp};

use super::harness::{A, Pair, Setup};
use crate::time::Time;
use crate::wire::Operation;

const TARGET: usize = 0x8_0000;

/// RCR-008, T-047: no more Reads and atomics outstanding than agreed; what comes
/// behind waits, in order.
#[test]
fn outstanding_reads_never_exceed_max_rd_atomic() {
    for depth in [1, 4, 16] {
        let mut pair = Pair::new(&Setup {
            rd_atomic: [depth, depth],
            ..Setup::default()
        });
        let remote = pair.b().remote(TARGET);
        for wr_id in 0..20 {
            pair.a().post(wr_id, SendOp::Read { remote }, 0, 8);
        }
        pair.a().post(20, SendOp::Write { remote }, 0, 8);
        let mut outstanding = 0;
        pair.drive();
        for sent in &pair.log {
            let operation = sent.datagram.packet().operation();
            match operation {
                Operation::ReadRequest => outstanding += 1,
                Operation::ReadResponseOnly => outstanding -= 1,
                _ => {}
            }
            assert!(outstanding <= i32::from(depth), "{outstanding}");
        }
        assert_eq!(pair.a().sent().len(), 21);
        let last = pair.texts(A).pop();
        assert_eq!(last.as_deref(), Some("RDMA Write Only 20 [8] of 8 A"));
    }
}

/// RCR-011, RCR-012, T-048: a fenced request waits for the data of all Reads before it.
#[test]
fn fenced_send_waits_for_read() {
    for (fence, expected) in [(false, 2), (true, 1)] {
        let mut pair = Pair::new(&Setup::default());
        let remote = pair.b().remote(TARGET);
        pair.a().post(1, SendOp::Read { remote }, 0, 500);
        let flags = if fence {
            SendFlags::FENCE | SendFlags::SIGNALED
        } else {
            SendFlags::SIGNALED
        };
        pair.a()
            .post_flags(2, SendOp::Write { remote }, 4096, 8, flags);
        pair.step(Time::ZERO);
        assert_eq!(pair.texts(A).len(), expected, "fence {fence}");
        pair.drive();
        assert_eq!(pair.a().sent().len(), 2);
    }
}

/// RTY-023, T-049: no more packets in flight than the window; the last one before a
/// stall asks for an acknowledgement.
#[test]
fn full_window_stalls_with_ack_request() {
    let mut pair = Pair::new(&Setup {
        window: 8,
        ..Setup::default()
    });
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Write { remote }, 0, 256 * 50);
    pair.step(Time::ZERO);
    let sent = pair.texts(A);
    assert_eq!(sent.len(), 8);
    assert_eq!(sent[7], "RDMA Write Middle 7 [256] A");
    pair.drive();
    assert_eq!(pair.texts(A).len(), 50);
    assert_eq!(pair.a().nic.counters().timeouts, 0);
}
