//! Group uc.

use verbs_sys::{QpState, QpType, SendOp, WcStatus};

use super::{SUCCESS, TARGET, only, states};
use crate::transport::tests::harness::{A, B, Fate, Pair, Setup, outcomes, pattern};

const UC: Setup = Setup {
    qp_type: QpType::Uc,
    ..Setup::DEFAULT
};

/// UC-001: without an answer, even without a peer.
#[test]
fn uc_send_and_write_complete_without_answers() {
    for peer_is_there in [true, false] {
        let mut pair = Pair::new(&UC);
        let remote = pair.b().remote(TARGET);
        if !peer_is_there {
            pair.faults = Box::new(|_, _, _| Fate::Drop);
        }
        let ops = [
            (SendOp::Send, true),
            (SendOp::SendImm { imm: 1 }, true),
            (SendOp::Write { remote }, false),
            (SendOp::WriteImm { remote, imm: 1 }, true),
        ];
        for (op, has_receive) in ops {
            for length in [0, 8, 256, 700] {
                pair.clear_log();
                if has_receive && peer_is_there {
                    pair.b().recv(2, 0, 1000);
                }
                pair.a().post(1, op, 0, length);
                pair.drive();
                assert_eq!(only(pair.a().sent()).wr_id, 1);
                let received = pair.b().received().len();
                let expected = has_receive && peer_is_there;
                assert_eq!(received, usize::from(expected), "{op:?} {length}");
                assert!(pair.texts(B).is_empty(), "no answers");
                let mut asked = pair.log.iter();
                assert!(asked.all(|sent| !sent.datagram.packet().ack_request()));
            }
        }
        assert_eq!(states(&pair), [QpState::Rts; 2]);
    }
}

/// UC-002, T-084.
#[test]
fn uc_loss_drops_whole_message_only() {
    for lost in 0..3 {
        let mut pair = Pair::new(&UC);
        pair.faults = Box::new(move |_, count, _| match count == lost {
            true => Fate::Drop,
            false => Fate::Deliver,
        });
        pair.b().recv(7, TARGET, 1000);
        pair.a().write(0, &pattern(1, 700));
        pair.a().post(1, SendOp::Send, 0, 700);
        pair.drive();
        assert_eq!(only(pair.a().sent()).wr_id, 1);
        assert_eq!(pair.b().received(), []);
        pair.a().write(0, &pattern(2, 600));
        pair.a().post(2, SendOp::Send, 0, 600);
        pair.drive();
        let received = only(pair.b().received());
        assert_eq!((received.wr_id, received.byte_len), (7, 600), "lost {lost}");
        assert_eq!(pair.b().read(TARGET, 600), pattern(2, 600));
        assert_eq!(states(&pair), [QpState::Rts; 2]);
    }
}

/// UC-004.
#[test]
fn uc_message_without_recv_is_dropped() {
    let mut pair = Pair::new(&UC);
    pair.a().write(0, &pattern(1, 700));
    let remote = pair.b().remote(TARGET);
    pair.a().post(1, SendOp::Send, 0, 700);
    pair.a()
        .post(2, SendOp::WriteImm { remote, imm: 1 }, 0, 700);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(1, SUCCESS), (2, SUCCESS)]);
    assert_eq!(pair.b().received(), []);
    assert_eq!(pair.b().read(TARGET, 700), pattern(1, 700));
    pair.b().recv(7, 0, 1000);
    pair.a().post(3, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(only(pair.b().received()).byte_len, 8);
    assert_eq!(states(&pair), [QpState::Rts; 2]);
}

/// UC-005, T-085.
#[test]
fn uc_remote_fault_is_silent() {
    let mut pair = Pair::new(&UC);
    pair.b().buffer.fill(0, 1 << 20, 0xee).unwrap();
    let good = pair.b().remote(TARGET);
    let (mut bad_key, mut outside) = (good, good);
    bad_key.rkey ^= 1;
    outside.addr += 0x8_0000 - 8;
    pair.b().recv(7, 0x1000, 300);
    for remote in [bad_key, outside] {
        pair.a().post(1, SendOp::Write { remote }, 0, 600);
        pair.drive();
        assert_eq!(only(pair.a().sent()).wr_id, 1);
    }
    pair.a().post(2, SendOp::Send, 0, 301);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 2);
    assert!(pair.texts(B).is_empty());
    assert_eq!(pair.b().received(), []);
    let memory = pair.b().read(0x1000 + 300, (1 << 20) - 0x1000 - 300);
    assert!(memory.iter().all(|byte| *byte == 0xee));
    pair.a().post(3, SendOp::Send, 0, 300);
    pair.drive();
    assert_eq!(only(pair.b().received()).wr_id, 7, "the receive was kept");
    assert_eq!(states(&pair), [QpState::Rts; 2]);
}

/// UC-006: an entry of a shared queue can't go back.
#[test]
fn uc_fault_with_srq_completes_taken_recv_in_error() {
    let mut pair = Pair::new(&Setup {
        shared_receive_queue: true,
        ..UC
    });
    for wr_id in [7, 8] {
        pair.b().recv(wr_id, TARGET, 1000);
    }
    pair.drop_packets(A, &[2]);
    pair.a().post(1, SendOp::Send, 0, 700);
    pair.a().post(2, SendOp::Send, 0, 600);
    pair.drive();
    let failed = (7, WcStatus::RemoteInvalidRequest);
    let received = outcomes(&pair.b().received());
    assert_eq!(received, [failed, (8, SUCCESS)]);
    assert_eq!(states(&pair), [QpState::Rts; 2]);
}

/// UC-007.
#[test]
fn uc_write_losing_middle_leaves_partial_memory() {
    let mut pair = Pair::new(&UC);
    pair.a().write(0, &pattern(1, 1000));
    pair.b().buffer.fill(TARGET, 1000, 0xee).unwrap();
    let remote = pair.b().remote(TARGET);
    pair.drop_packets(A, &[1]);
    pair.a().post(1, SendOp::Write { remote }, 0, 1000);
    pair.drive();
    let memory = pair.b().read(TARGET, 1000);
    assert_eq!(memory[..256], pattern(1, 1000)[..256]);
    assert!(memory[256..].iter().all(|byte| *byte == 0xee));
    assert_eq!(pair.b().events(), []);
    pair.a().post(2, SendOp::Write { remote }, 0, 1000);
    pair.drive();
    assert_eq!(pair.b().read(TARGET, 1000), pattern(1, 1000));
}
