//! Group ud.

use verbs_sys::{QpAttributes, QpState, QpType, SendOp, SendRequest, UdTarget, WcFlags, WcStatus};

use super::{TARGET, only, states};
use crate::transport::tests::harness::{A, B, Host, Pair, QKEY, Setup, outcomes, pattern};
use crate::wire::grh::GRH_LEN;

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

/// UD-002.
#[test]
fn ud_send_with_immediate_delivers_value() {
    let mut pair = Pair::new(&UD);
    pair.b().recv(7, TARGET, 100);
    let (peer, qpn) = (pair.b().address, pair.b().qpn);
    let ah = pair.a().address_of(peer);
    let request = SendRequest {
        ud: Some(UdTarget {
            ah: &ah,
            qpn,
            qkey: QKEY,
        }),
        ..SendRequest::signaled(1, SendOp::SendImm { imm: 0x0102_0304 }, &[])
    };
    pair.a().try_post(&[request]).unwrap();
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 1);
    let received = only(pair.b().received());
    assert_eq!(received.flags, WcFlags::GRH | WcFlags::WITH_IMM);
    assert_eq!(received.immediate(), Some(0x0102_0304));
}

/// UD-003: the image is what the kernel's rule takes for IPv4 or IPv6.
#[test]
fn ud_header_image_identifies_ip_family() {
    for ipv6 in [false, true] {
        let mut pair = Pair::new(&Setup { ipv6, ..UD });
        pair.b().recv(7, TARGET, 100);
        send_datagram(&mut pair, 1, 8, None, QKEY);
        let image = pair.b().read(TARGET, GRH_LEN);
        let (src, dst) = (pair.a().address, pair.b().address);
        match (src, dst) {
            (std::net::IpAddr::V4(src), std::net::IpAddr::V4(dst)) => {
                let header = &image[20..];
                assert_eq!(header[0], 0x45);
                let words = header
                    .chunks(2)
                    .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
                let sum: u32 = words.sum();
                assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "checksum");
                assert_eq!(header[12..16], src.octets());
                assert_eq!(header[16..20], dst.octets());
            }
            (std::net::IpAddr::V6(src), std::net::IpAddr::V6(dst)) => {
                assert_eq!(image[0] >> 4, 6);
                assert_eq!(image[8..24], src.octets());
                assert_eq!(image[24..40], dst.octets());
            }
            _ => panic!("one family"),
        }
    }
}

/// UD-004.
#[test]
fn ud_traffic_class_reaches_receiver() {
    let mut pair = Pair::new(&UD);
    pair.b().recv(7, TARGET, 100);
    let (peer, qpn) = (pair.b().address, pair.b().qpn);
    let route = pair
        .a()
        .nic
        .route(0, verbs_sys::Gid::from_ip(peer), 0xff, 64);
    let ah = crate::transport::RoutedAddress {
        route: route.unwrap(),
    };
    let request = SendRequest {
        ud: Some(UdTarget {
            ah: &ah,
            qpn,
            qkey: QKEY,
        }),
        ..SendRequest::signaled(1, SendOp::Send, &[])
    };
    pair.a().try_post(&[request]).unwrap();
    pair.drive();
    only(pair.b().received());
    assert_eq!(pair.b().read(TARGET + 21, 1)[0] & 0xfc, 0xfc);
}

/// UD-013: two senders to two receivers each, in both directions.
#[test]
fn ud_many_to_many_traffic() {
    let mut pair = Pair::new(&UD);
    let mut qpns = [vec![pair.a().qpn], vec![pair.b().qpn]];
    for host in [A, B] {
        let peer = pair.hosts[1 - host].address;
        let second = pair.hosts[host].create_qp();
        pair.hosts[host].connect(second, peer, 0, [1, 1]);
        qpns[host].push(second);
    }
    let mut place = TARGET;
    for host in [A, B] {
        let peer = 1 - host;
        for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let length = 100 + 10 * from + to;
            let message = pattern(length as u64, length);
            pair.hosts[host].write(0, &message);
            pair.hosts[peer].qpn = qpns[peer][to];
            pair.hosts[peer].recv(7, place, 200);
            pair.hosts[host].qpn = qpns[host][from];
            let ah = pair.hosts[host].address_of(pair.hosts[peer].address);
            let sges = [pair.hosts[host].sge(0, length)];
            let request = SendRequest {
                ud: Some(UdTarget {
                    ah: &ah,
                    qpn: qpns[peer][to],
                    qkey: QKEY,
                }),
                ..SendRequest::signaled(1, SendOp::Send, &sges)
            };
            pair.hosts[host].try_post(&[request]).unwrap();
            pair.drive();
            only(pair.hosts[host].sent());
            let received = only(pair.hosts[peer].received());
            assert_eq!(received.src_qp, qpns[host][from]);
            assert_eq!(received.qp_num, qpns[peer][to]);
            let bytes = pair.hosts[peer].read(place + GRH_LEN, length);
            assert_eq!(bytes, message);
            place += 256;
        }
    }
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
