//! Messages of all kinds and sizes on a network that loses nothing.

use verbs_sys::{
    Gather, PathMtu, QpType, SendFlags, SendOp, SendRequest, UdTarget, WcFlags, WcOpcode, WcStatus,
};

use super::harness::{A, B, Host, Pair, QKEY, Setup, outcomes, pattern};
use crate::wire::grh::GRH_LEN;

/// Where messages come from and go to.
const SOURCE: usize = 0;
const TARGET: usize = 0x8_0000;

/// The lengths at which segmentation changes, per path MTU.
fn lengths(mtu: PathMtu) -> [usize; 7] {
    let mtu = mtu.bytes() as usize;
    [0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 1]
}

fn packets(length: usize, mtu: PathMtu) -> usize {
    length.div_ceil(mtu.bytes() as usize).max(1)
}

fn each_size(qp_type: QpType, mut test: impl FnMut(&mut Pair, PathMtu, usize)) {
    for mtu in PathMtu::ALL {
        for length in lengths(mtu) {
            for ipv6 in [false, true] {
                let mut pair = Pair::new(&Setup {
                    qp_type,
                    mtu,
                    ipv6,
                    ..Setup::default()
                });
                test(&mut pair, mtu, length);
            }
        }
    }
}

fn assert_sent(host: &mut Host, wr_id: u64, opcode: WcOpcode, context: &str) {
    let sent = host.sent();
    assert_eq!(outcomes(&sent), [(wr_id, WcStatus::Success)], "{context}");
    assert_eq!(sent[0].opcode, opcode, "{context}");
    assert_eq!(sent[0].qp_num, host.qpn, "{context}");
}

/// RCS-002, T-023, T-056: Sends, with and without immediate data, on RC and UC.
#[test]
fn send_of_boundary_sizes() {
    for qp_type in [QpType::Rc, QpType::Uc] {
        each_size(qp_type, |pair, mtu, length| {
            for imm in [None, Some(0xc0ff_ee01)] {
                let context = format!("{qp_type} {length} bytes, MTU {mtu:?}, {imm:?}");
                let message = pattern(length as u64, length);
                pair.clear_log();
                pair.a().write(SOURCE, &message);
                pair.b().buffer.fill(TARGET, length + 1, 0xee).unwrap();
                pair.b().recv(7, TARGET, length + 1);
                let op = imm.map_or(SendOp::Send, |imm| SendOp::SendImm { imm });
                pair.a().post(5, op, SOURCE, length);
                pair.drive();
                assert_sent(pair.a(), 5, WcOpcode::Send, &context);
                let received = pair.b().received();
                assert_eq!(outcomes(&received), [(7, WcStatus::Success)], "{context}");
                assert_eq!(received[0].opcode, WcOpcode::Receive);
                assert_eq!(received[0].byte_len as usize, length, "{context}");
                assert_eq!(received[0].immediate(), imm, "{context}");
                assert_eq!(received[0].src_qp, pair.a().qpn);
                assert_eq!(pair.b().read(TARGET, length), message, "{context}");
                assert_eq!(pair.b().read(TARGET + length, 1), [0xee], "{context}");
                assert_eq!(pair.texts(A).len(), packets(length, mtu), "{context}");
                let acks = usize::from(qp_type == QpType::Rc);
                assert_eq!(pair.texts(B).len(), acks, "{context}");
            }
        });
    }
}

/// RCW-002, T-023, T-056: Writes, with and without immediate data, on RC and UC.
#[test]
fn write_of_boundary_sizes() {
    for qp_type in [QpType::Rc, QpType::Uc] {
        each_size(qp_type, |pair, mtu, length| {
            for imm in [None, Some(0xc0ff_ee02)] {
                let context = format!("{qp_type} {length} bytes, MTU {mtu:?}, {imm:?}");
                let message = pattern(length as u64 + 1, length);
                pair.clear_log();
                pair.a().write(SOURCE, &message);
                pair.b().buffer.fill(TARGET - 1, length + 2, 0xee).unwrap();
                pair.b().recv(7, 0, 64);
                let before = pair.b().read(0, 64);
                let remote = pair.b().remote(TARGET);
                let op = match imm {
                    Some(imm) => SendOp::WriteImm { remote, imm },
                    None => SendOp::Write { remote },
                };
                pair.a().post(5, op, SOURCE, length);
                pair.drive();
                assert_sent(pair.a(), 5, WcOpcode::Write, &context);
                let received = pair.b().received();
                assert_eq!(received.len(), usize::from(imm.is_some()), "{context}");
                for completion in received {
                    assert_eq!(completion.opcode, WcOpcode::ReceiveWriteImm);
                    assert_eq!(completion.byte_len as usize, length, "{context}");
                    assert_eq!(completion.immediate(), imm, "{context}");
                }
                assert_eq!(pair.b().read(TARGET, length), message, "{context}");
                assert_eq!(pair.b().read(TARGET - 1, 1), [0xee], "{context}");
                assert_eq!(pair.b().read(TARGET + length, 1), [0xee], "{context}");
                assert_eq!(pair.b().read(0, 64), before, "the receive isn't touched");
                assert_eq!(pair.texts(A).len(), packets(length, mtu), "{context}");
            }
        });
    }
}

/// RCR-002, T-023: Reads. The PSNs that follow are those of the responses.
#[test]
fn read_of_boundary_sizes() {
    each_size(QpType::Rc, |pair, mtu, length| {
        let context = format!("{length} bytes, MTU {mtu:?}");
        let message = pattern(length as u64 + 2, length);
        pair.b().write(SOURCE, &message);
        pair.a().buffer.fill(TARGET - 1, length + 2, 0xee).unwrap();
        let remote = pair.b().remote(SOURCE);
        pair.a().post(5, SendOp::Read { remote }, TARGET, length);
        pair.drive();
        assert_sent(pair.a(), 5, WcOpcode::Read, &context);
        assert_eq!(pair.a().read(TARGET, length), message, "{context}");
        assert_eq!(pair.a().read(TARGET - 1, 1), [0xee], "{context}");
        assert_eq!(pair.a().read(TARGET + length, 1), [0xee], "{context}");
        let responses = packets(length, mtu);
        assert_eq!(
            pair.texts(A),
            [format!("RDMA Read Request 0 of {length} A")]
        );
        assert_eq!(pair.texts(B).len(), responses, "{context}");
        // T-025
        pair.clear_log();
        pair.a().post(6, SendOp::Write { remote }, TARGET, 1);
        pair.drive();
        assert_eq!(
            pair.texts(A),
            [format!("RDMA Write Only {responses} [1] of 1 A")],
            "{context}"
        );
    });
}

/// The headers of one message of each kind, and their answers.
#[test]
fn packets_of_a_message_carry_the_right_headers() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    for _ in 0..3 {
        pair.b().recv(0, TARGET, 1024);
    }
    pair.a()
        .post_flags(1, SendOp::Send, 0, 700, SendFlags::SOLICITED);
    pair.a()
        .post(2, SendOp::WriteImm { remote, imm: 1 }, 0, 300);
    pair.a().post(3, SendOp::Read { remote }, 0, 700);
    pair.a().post(4, SendOp::FetchAdd { remote, add: 1 }, 0, 8);
    pair.a()
        .post_inline(5, SendOp::SendImm { imm: 1 }, b"hello");
    pair.drive();
    assert_eq!(
        pair.texts(A),
        [
            "Send First 0 [256]",
            "Send Middle 1 [256]",
            "Send Last 2 [188] A SE",
            "RDMA Write First 3 [256] of 300",
            "RDMA Write Last with Immediate 4 [44] A",
            "RDMA Read Request 5 of 700 A",
            "Fetch and Add 8 A",
            "Send Only with Immediate 9 [5] A",
        ]
    );
    assert_eq!(
        pair.texts(B),
        [
            "Acknowledge 4 msn 2",
            "RDMA Read Response First 5 [256] msn 3",
            "RDMA Read Response Middle 6 [256]",
            "RDMA Read Response Last 7 [188] msn 3",
            "Atomic Acknowledge 8 msn 4",
            "Acknowledge 9 msn 5",
        ]
    );
    let ids: Vec<u64> = pair.a().sent().iter().map(|done| done.wr_id).collect();
    assert_eq!(ids, [2, 3, 4, 5], "the Send was not signalled");
}

/// T-074: atomics change memory once and return what was there.
#[test]
fn atomics_return_the_value_before() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    pair.b().write(TARGET, &5_u64.to_ne_bytes());
    let add = |add| SendOp::FetchAdd { remote, add };
    let swap = |compare, swap| SendOp::CompareSwap {
        remote,
        compare,
        swap,
    };
    let steps = [
        (add(3), WcOpcode::FetchAdd, 5, 8),
        (add(u64::MAX), WcOpcode::FetchAdd, 8, 7),
        (swap(7, 100), WcOpcode::CompareSwap, 7, 100),
        (swap(7, 200), WcOpcode::CompareSwap, 100, 100),
    ];
    for (wr_id, (op, opcode, before, after)) in steps.into_iter().enumerate() {
        pair.a().post(wr_id as u64, op, 64, 8);
        pair.drive();
        assert_sent(pair.a(), wr_id as u64, opcode, "atomic");
        assert_eq!(pair.a().read_u64(64), before, "{op:?}");
        assert_eq!(pair.b().read_u64(TARGET), after, "{op:?}");
    }
}

/// RCS-013: Gather and scatter lists whose pieces straddle packets, with an empty
/// piece whose key is wrong.
#[test]
fn gather_and_scatter_across_many_sges() {
    let mut pair = Pair::new(&Setup::default());
    let message = pattern(3, 1000);
    for (host, read) in [(A, false), (B, true)] {
        pair.hosts[host].write(0, &message[..300]);
        pair.hosts[host].write(5000, &message[300..301]);
        pair.hosts[host].write(9000, &message[301..]);
        let other = &mut pair.hosts[1 - host];
        let mut empty = other.sge(0, 0);
        empty.lkey ^= 1;
        let scatter = [other.sge(0x4_0000, 511), empty, other.sge(0x5_0000, 489)];
        let gather = {
            let host = &pair.hosts[host];
            [host.sge(0, 300), host.sge(5000, 1), host.sge(9000, 699)]
        };
        if read {
            // B's pieces lie apart; read a part that is in one piece.
            let remote = pair.b().remote(9000);
            let list = [pair.a().sge(0x4_0000, 300), pair.a().sge(0x5_0000, 399)];
            pair.a()
                .try_post(&[SendRequest::signaled(1, SendOp::Read { remote }, &list)])
                .unwrap();
            pair.drive();
            assert_eq!(pair.a().read(0x4_0000, 300), message[301..601]);
            assert_eq!(pair.a().read(0x5_0000, 399), message[601..]);
        } else {
            pair.b().recv_into(2, &scatter);
            pair.a()
                .try_post(&[SendRequest::signaled(1, SendOp::Send, &gather)])
                .unwrap();
            pair.drive();
            assert_eq!(pair.b().read(0x4_0000, 511), message[..511]);
            assert_eq!(pair.b().read(0x5_0000, 489), message[511..]);
        }
        assert_sent(
            pair.a(),
            1,
            if read { WcOpcode::Read } else { WcOpcode::Send },
            "list",
        );
    }
}

/// RCS-007, Q-29: inline bytes are taken when the request is posted.
#[test]
fn inline_send_copies_at_post() {
    let mut pair = Pair::new(&Setup::default());
    pair.b().recv(1, TARGET, 256);
    let mut bytes = pattern(9, 256);
    pair.a().post_inline(1, SendOp::Send, &bytes);
    let sent = bytes.clone();
    bytes.fill(0);
    pair.drive();
    assert_eq!(pair.b().read(TARGET, 256), sent);
}

/// QPA-020, T-050: only signalled requests complete when they succeed, in order.
#[test]
fn signal_all_setting_overrides_unsignaled() {
    for sq_sig_all in [false, true] {
        let mut pair = Pair::new(&Setup {
            sq_sig_all,
            ..Setup::default()
        });
        let remote = pair.b().remote(TARGET);
        let sge = [pair.a().sge(0, 64)];
        let list: Vec<SendRequest<'_>> = (0..8)
            .map(|wr_id| SendRequest {
                flags: if wr_id % 4 == 3 {
                    SendFlags::SIGNALED
                } else {
                    SendFlags::empty()
                },
                ..SendRequest::signaled(wr_id, SendOp::Write { remote }, &sge)
            })
            .collect();
        pair.a().try_post(&list).unwrap();
        pair.drive();
        let ids: Vec<u64> = pair.a().sent().iter().map(|done| done.wr_id).collect();
        match sq_sig_all {
            true => assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7]),
            false => assert_eq!(ids, [3, 7]),
        }
    }
}

/// RCS-017: A list that is refused in the middle: what came before runs.
#[test]
fn chained_posts_report_first_bad_request() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(TARGET);
    let good = [pair.a().sge(0, 64)];
    let bad = [pair.a().sge(0, 8); 5];
    let write = SendOp::Write { remote };
    let error = pair
        .a()
        .try_post(&[
            SendRequest::signaled(0, write, &good),
            SendRequest::signaled(1, write, &bad),
            SendRequest::signaled(2, write, &good),
        ])
        .unwrap_err();
    assert_eq!(error.posted, 1);
    pair.drive();
    assert_sent(pair.a(), 0, WcOpcode::Write, "the first");
}

/// SRQ-008, U-13: two queue pairs take receives from one shared queue in its order.
#[test]
fn srq_is_shared_by_many_qps() {
    let setup = Setup {
        shared_receive_queue: true,
        ..Setup::default()
    };
    let mut pair = Pair::new(&setup);
    let (second_a, second_b) = (pair.a().create_qp(), pair.b().create_qp());
    let (address_a, address_b) = (pair.a().address, pair.b().address);
    pair.a().connect(second_a, address_b, second_b, [1, 2]);
    pair.b().connect(second_b, address_a, second_a, [2, 1]);
    for wr_id in 0..6 {
        pair.b().recv(wr_id, TARGET + 1000 * wr_id as usize, 1000);
    }
    let first_a = pair.a().qpn;
    for turn in 0..6 {
        pair.a().qpn = if turn % 2 == 0 { first_a } else { second_a };
        pair.a().write(0, &pattern(turn, 600));
        pair.a().post(turn, SendOp::Send, 0, 600);
        pair.drive();
        let received = pair.b().received();
        assert_eq!(outcomes(&received), [(turn, WcStatus::Success)]);
        let expected = if turn % 2 == 0 { first_a } else { second_a };
        assert_eq!(received[0].src_qp, expected);
        let at = TARGET + 1000 * turn as usize;
        assert_eq!(pair.b().read(at, 600), pattern(turn, 600));
    }
}

/// UD-001, UD-002, T-086, T-087: UD with and without immediate data, IPv4 and IPv6; the GRH
/// image comes first.
#[test]
fn ud_send_delivers_with_40_byte_header() {
    for ipv6 in [false, true] {
        let mut pair = Pair::new(&Setup {
            qp_type: QpType::Ud,
            ipv6,
            ..Setup::default()
        });
        for (length, imm) in [(0, None), (1, None), (5, Some(3)), (4096, None)] {
            let message = pattern(length as u64, length);
            pair.a().write(0, &message);
            pair.b().recv(8, TARGET, GRH_LEN + length);
            let peer = pair.b().address;
            let (ah, qpn) = (pair.a().address_of(peer), pair.b().qpn);
            let sges = [pair.a().sge(0, length)];
            let op = imm.map_or(SendOp::Send, |imm| SendOp::SendImm { imm });
            let request = SendRequest {
                ud: Some(UdTarget {
                    ah: &ah,
                    qpn,
                    qkey: QKEY,
                }),
                ..SendRequest::signaled(6, op, &sges)
            };
            pair.a().try_post(&[request]).unwrap();
            pair.drive();
            assert_sent(pair.a(), 6, WcOpcode::Send, "datagram");
            let received = pair.b().received();
            assert_eq!(outcomes(&received), [(8, WcStatus::Success)], "{length}");
            assert_eq!(received[0].byte_len as usize, GRH_LEN + length);
            assert!(received[0].flags.contains(WcFlags::GRH));
            assert_eq!(received[0].immediate(), imm);
            assert_eq!(received[0].src_qp, pair.a().qpn);
            assert_eq!(pair.b().read(TARGET + GRH_LEN, length), message);
            let version = pair.b().read(TARGET + if ipv6 { 0 } else { 20 }, 1)[0] >> 4;
            assert_eq!(version, if ipv6 { 6 } else { 4 });
        }
    }
}

/// QPA-022: A queue pair may be connected to itself: its halves count apart.
#[test]
fn qp_connected_to_itself_works() {
    let setup = Setup::default();
    let mut host = Host::new(1, &setup);
    let (qpn, address) = (host.qpn, host.address);
    host.connect(qpn, address, qpn, [77, 77]);
    host.recv(2, TARGET, 1000);
    host.write(0, &pattern(1, 1000));
    host.post(1, SendOp::Send, 0, 1000);
    let remote = host.remote(TARGET);
    host.post(3, SendOp::Read { remote }, 4096, 1000);
    let now = crate::time::Time::ZERO;
    loop {
        let sent = host.transmit(now, crate::transport::Acks::All);
        if sent.is_empty() {
            break;
        }
        for datagram in sent {
            host.nic.receive(now, &datagram.arrived());
        }
    }
    let success = WcStatus::Success;
    assert_eq!(outcomes(&host.sent()), [(1, success), (3, success)]);
    assert_eq!(outcomes(&host.received()), [(2, success)]);
    assert_eq!(host.read(4096, 1000), pattern(1, 1000));
}

/// RCS-009: Inline data on operations that carry none is refused.
#[test]
fn inline_flag_on_read_is_refused() {
    let mut pair = Pair::new(&Setup::default());
    let remote = pair.b().remote(0);
    let request = SendRequest {
        data: Gather::Inline(&[0; 8]),
        ..SendRequest::signaled(0, SendOp::Read { remote }, &[])
    };
    assert_eq!(pair.a().try_post(&[request]).unwrap_err().posted, 0);
}
