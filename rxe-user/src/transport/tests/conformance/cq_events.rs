//! Group cq-events: which completions an armed queue announces. The rows about
//! channels are beside those, in `device`.

use std::time::Duration;

use verbs_sys::{Notify, QpAttributes, QpState, SendFlags, SendOp, WcStatus};

use super::{FLUSHED, TARGET, only};
use crate::transport::CqId;
use crate::transport::tests::harness::{Host, Pair, Setup, outcomes};

const SOLICITED: SendFlags = SendFlags::SIGNALED.union(SendFlags::SOLICITED);

/// The queues that have been announced since the last call.
fn announced(host: &mut Host) -> Vec<CqId> {
    std::iter::from_fn(|| host.nic.next_notified()).collect()
}

/// A pair whose B has armed its receive queue, with some receives.
fn armed(notify: Notify) -> (Pair, CqId) {
    let mut pair = Pair::new(&Setup::default());
    for wr_id in 0..8 {
        pair.b().recv(wr_id, TARGET, 100);
    }
    let cq = pair.b().recv_cq;
    pair.b().nic.arm_cq(cq, notify);
    (pair, cq)
}

fn send(pair: &mut Pair, flags: SendFlags) {
    pair.a().post_flags(1, SendOp::Send, 0, 8, flags);
    pair.drive();
}

/// CQE-005.
#[test]
fn every_send_side_operation_can_raise_event() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    let pd = pair.a().pd;
    let window = pair.a().nic.alloc_window(pd).unwrap();
    let binding = pair.a().binding(window, 1, 0, 64);
    let cq = pair.a().send_cq;
    for op in [
        SendOp::Write { remote },
        SendOp::Read { remote },
        SendOp::FetchAdd { remote, add: 1 },
        SendOp::BindWindow { binding },
    ] {
        pair.a().nic.arm_cq(cq, Notify::Any);
        match op {
            SendOp::BindWindow { .. } => pair.a().post_bare(1, op),
            _ => pair.a().post(1, op, 0, 8),
        }
        pair.drive();
        assert_eq!(announced(pair.a()), [cq], "{op:?}");
        assert_eq!(only(pair.a().sent()).wr_id, 1, "{op:?}");
    }
}

/// CQE-006.
#[test]
fn recv_completion_raises_event_when_armed_for_any() {
    for flags in [SendFlags::SIGNALED, SOLICITED] {
        let (mut pair, cq) = armed(Notify::Any);
        send(&mut pair, flags);
        assert_eq!(announced(pair.b()), [cq]);
        assert_eq!(announced(pair.a()), [], "nobody has armed there");
        assert_eq!(only(pair.b().received()).wr_id, 0);
    }
}

/// CQE-007.
#[test]
fn solicited_send_raises_event_when_armed_for_solicited() {
    let (mut pair, cq) = armed(Notify::Solicited);
    send(&mut pair, SOLICITED);
    assert_eq!(announced(pair.b()), [cq]);
}

/// CQE-008.
#[test]
fn unsolicited_send_raises_no_event_when_armed_for_solicited() {
    let (mut pair, cq) = armed(Notify::Solicited);
    send(&mut pair, SendFlags::SIGNALED);
    assert_eq!(announced(pair.b()), []);
    assert_eq!(only(pair.b().received()).wr_id, 0, "it is there");
    send(&mut pair, SOLICITED);
    assert_eq!(announced(pair.b()), [cq], "still armed");
}

/// CQE-009.
#[test]
fn solicited_write_imm_raises_event() {
    let (mut pair, cq) = armed(Notify::Solicited);
    let remote = pair.b().remote(TARGET);
    let write_imm = SendOp::WriteImm { remote, imm: 1 };
    pair.a().post_flags(1, write_imm, 0, 8, SOLICITED);
    pair.drive();
    assert_eq!(announced(pair.b()), [cq]);
    assert_eq!(only(pair.b().received()).wr_id, 0);
    pair.b().nic.arm_cq(cq, Notify::Solicited);
    let write = SendOp::Write { remote };
    pair.a().post_flags(2, write, 0, 8, SOLICITED);
    pair.drive();
    assert_eq!(announced(pair.b()), []);
    assert_eq!(pair.b().received(), []);
}

/// CQE-010.
#[test]
fn error_completion_counts_as_solicited() {
    // A request that fails.
    let mut pair = Pair::new(&Setup::default());
    let cq = pair.a().send_cq;
    pair.a().nic.arm_cq(cq, Notify::Solicited);
    let mut remote = pair.b().remote(TARGET);
    remote.rkey ^= 1 << 8;
    pair.a().post(1, SendOp::Write { remote }, 0, 8);
    pair.drive();
    let refused = [(1, WcStatus::RemoteAccessError)];
    assert_eq!(outcomes(&pair.a().sent()), refused);
    assert_eq!(announced(pair.a()), [cq]);
    // Receives that are flushed.
    let (mut pair, cq) = armed(Notify::Solicited);
    let error = QpAttributes::to_state(QpState::Error);
    pair.b().modify(error).unwrap();
    assert_eq!(announced(pair.b()), [cq], "once, for eight");
    assert_eq!(pair.b().received()[7].status, FLUSHED);
}

/// CQE-011.
#[test]
fn arm_is_one_shot() {
    let (mut pair, cq) = armed(Notify::Any);
    send(&mut pair, SendFlags::SIGNALED);
    assert_eq!(announced(pair.b()), [cq]);
    send(&mut pair, SendFlags::SIGNALED);
    assert_eq!(announced(pair.b()), []);
    assert_eq!(pair.b().received().len(), 2);
    pair.b().nic.arm_cq(cq, Notify::Any);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(announced(pair.b()), [], "arming alone tells nothing");
}

/// CQE-012.
#[test]
fn completion_before_arm_raises_no_event() {
    let (mut pair, cq) = armed(Notify::Any);
    send(&mut pair, SendFlags::SIGNALED);
    assert_eq!(announced(pair.b()), [cq]);
    pair.b().nic.arm_cq(cq, Notify::Any);
    assert_eq!(announced(pair.b()), []);
    assert_eq!(only(pair.b().received()).wr_id, 0, "polling finds it");
    send(&mut pair, SendFlags::SIGNALED);
    assert_eq!(announced(pair.b()), [cq], "the next one tells");
}

/// CQE-013: one for each arming.
#[test]
fn completions_between_arm_and_read_coalesce() {
    let (mut pair, cq) = armed(Notify::Any);
    for round in 0..1000 {
        send(&mut pair, SendFlags::SIGNALED);
        send(&mut pair, SendFlags::SIGNALED);
        pair.b().nic.arm_cq(cq, Notify::Any);
        pair.b().received();
        for _ in 0..2 {
            pair.b().recv(round, TARGET, 100);
        }
        pair.a().sent();
        pair.clear_log();
    }
    send(&mut pair, SendFlags::SIGNALED);
    assert_eq!(announced(pair.b()), [cq; 1001]);
}

/// CQE-014, CQE-015.
#[test]
fn arm_for_solicited_does_not_downgrade() {
    for second in [Notify::Solicited, Notify::Any] {
        let (mut pair, cq) = armed(Notify::Any);
        pair.b().nic.arm_cq(cq, second);
        send(&mut pair, SendFlags::SIGNALED);
        assert_eq!(announced(pair.b()), [cq], "{second:?}");
    }
}

/// CQE-015.
#[test]
fn arm_for_any_upgrades() {
    let (mut pair, cq) = armed(Notify::Solicited);
    pair.b().nic.arm_cq(cq, Notify::Any);
    send(&mut pair, SendFlags::SIGNALED);
    assert_eq!(announced(pair.b()), [cq]);
}
