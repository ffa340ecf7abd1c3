//! Groups uc and ud.

use verbs_sys::{QpAttributes, QpState, QpType, SendOp, SendRequest, UdTarget, WcStatus};

use super::{SUCCESS, TARGET, only, states};
use crate::transport::tests::harness::{A, B, Fate, Host, Pair, QKEY, Setup, outcomes, pattern};
use crate::wire::grh::GRH_LEN;

const UC: Setup = Setup {
    qp_type: QpType::Uc,
    ..Setup::DEFAULT
};

const UD: Setup = Setup {
    qp_type: QpType::Ud,
    ..Setup::DEFAULT
};

/// Sends a datagram from A to B.
fn send_datagram(pair: &mut Pair, wr_id: u64, length: usize, qpn: Option<u32>, qkey: u32) {
    let peer = pair.b().address;
    let qpn = qpn.unwrap_or(pair.b().qpn);
    let ah = pair.a().address_of(peer);
    let sges = [pair.a().sge(0, length)];
    let request = SendRequest {
        ud: Some(UdTarget { ah: &ah, qpn, qkey }),
        ..SendRequest::signaled(wr_id, SendOp::Send, &sges)
    };
    pair.a().try_post(&[request]).unwrap();
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, wr_id);
}

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

/// UD-005, T-087.
#[test]
fn ud_message_above_mtu_sends_nothing() {
    let mut pair = Pair::new(&UD);
    pair.b().recv(7, TARGET, 8192);
    send_datagram(&mut pair, 1, 4097, None, QKEY);
    assert!(pair.log.is_empty());
    send_datagram(&mut pair, 2, 4096, None, QKEY);
    assert_eq!(only(pair.b().received()).byte_len as usize, 4096 + GRH_LEN);
    assert_eq!(states(&pair), [QpState::Rts; 2]);
}

/// UD-006.
#[test]
fn ud_message_without_recv_is_dropped() {
    let mut pair = Pair::new(&UD);
    for wr_id in 0..100 {
        send_datagram(&mut pair, wr_id, 8, None, QKEY);
    }
    assert!(pair.texts(B).is_empty());
    pair.b().recv(7, TARGET, 100);
    assert_eq!(pair.b().received(), []);
    pair.a().write(0, b"later");
    send_datagram(&mut pair, 100, 5, None, QKEY);
    only(pair.b().received());
    assert_eq!(pair.b().read(TARGET + GRH_LEN, 5), b"later");
}

/// UD-007, T-086.
#[test]
fn ud_message_longer_than_buffer_keeps_recv() {
    let mut pair = Pair::new(&UD);
    pair.b().buffer.fill(TARGET, 200, 0xee).unwrap();
    pair.b().recv(7, TARGET, GRH_LEN + 10);
    send_datagram(&mut pair, 1, 11, None, QKEY);
    assert_eq!(pair.b().received(), []);
    assert_eq!(pair.b().read(TARGET, 200), [0xee; 200]);
    send_datagram(&mut pair, 2, 10, None, QKEY);
    assert_eq!(only(pair.b().received()).wr_id, 7);
}

/// UD-008.
#[test]
fn ud_wrong_qkey_or_qpn_is_dropped() {
    let mut pair = Pair::new(&UD);
    pair.b().recv(7, TARGET, 100);
    send_datagram(&mut pair, 1, 8, None, QKEY ^ 1);
    send_datagram(&mut pair, 2, 8, Some(0x12_3456), QKEY);
    assert_eq!(pair.b().received(), []);
    let counters = pair.b().nic.counters();
    assert_eq!((counters.rx_bad_qkey, counters.rx_unknown_qp), (1, 1));
    send_datagram(&mut pair, 3, 8, None, QKEY);
    assert_eq!(only(pair.b().received()).wr_id, 7);
}

/// UD-009.
#[test]
fn ud_qkey_with_high_bit_means_own_qkey() {
    let mut pair = Pair::new(&UD);
    pair.b().recv(7, TARGET, 100);
    send_datagram(&mut pair, 1, 8, None, 0x8000_0000);
    let deth = pair.log[0].datagram.packet().deth().unwrap();
    assert_eq!(deth.qkey, QKEY);
    assert_eq!(only(pair.b().received()).wr_id, 7);
}

/// UD-010.
#[test]
fn ud_refuses_read_write_and_atomic() {
    let mut pair = Pair::new(&UD);
    let remote = pair.b().remote(TARGET);
    let (peer, qpn) = (pair.b().address, pair.b().qpn);
    let ah = pair.a().address_of(peer);
    let sges = [pair.a().sge(0, 8)];
    for op in [
        SendOp::Read { remote },
        SendOp::Write { remote },
        SendOp::FetchAdd { remote, add: 1 },
        SendOp::CompareSwap {
            remote,
            compare: 1,
            swap: 1,
        },
    ] {
        let request = SendRequest {
            ud: Some(UdTarget {
                ah: &ah,
                qpn,
                qkey: QKEY,
            }),
            ..SendRequest::signaled(1, op, &sges)
        };
        let error = pair.a().try_post(&[request]).unwrap_err();
        assert_eq!(error.source.errno(), libc::EINVAL);
    }
    pair.drive();
    assert!(pair.log.is_empty());
    assert_eq!(states(&pair), [QpState::Rts; 2]);
}

/// UD-011: packets of another service than the queue pair's.
#[test]
fn rc_request_to_ud_qp_is_ignored() {
    let mut pair = Pair::new(&Setup::default());
    let mut ud = Host::new(2, &UD);
    let address = pair.a().address;
    ud.connect(ud.qpn, address, 0, [1, 1]);
    ud.recv(7, TARGET, 100);
    pair.hosts[B] = ud;
    let (qpn, peer) = (pair.b().qpn, pair.b().address);
    let own = pair.a().qpn;
    pair.a()
        .modify(QpAttributes::to_state(QpState::Reset))
        .unwrap();
    pair.a().connect(own, peer, qpn, [1, 1]);
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    let failed = [(1, WcStatus::RetryExceeded)];
    assert_eq!(outcomes(&pair.a().sent()), failed);
    assert!(pair.texts(B).is_empty());
    assert_eq!(pair.b().received(), []);
    assert_eq!(states(&pair), [QpState::Error, QpState::Rts]);
}

/// UD-012.
#[test]
fn ud_send_to_rc_qp_is_ignored() {
    let mut pair = Pair::new(&UD);
    let mut rc = Host::new(2, &Setup::default());
    let (address, qpn) = (pair.a().address, pair.a().qpn);
    rc.connect(rc.qpn, address, qpn, [1, 1]);
    rc.recv(7, TARGET, 100);
    pair.hosts[B] = rc;
    send_datagram(&mut pair, 1, 8, None, QKEY);
    assert_eq!(pair.b().received(), []);
    assert_eq!(states(&pair), [QpState::Rts; 2]);
}
