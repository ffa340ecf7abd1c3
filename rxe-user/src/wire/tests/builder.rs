//! Building packets, and reading them back.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::sample::select;

use super::vectors::{self, V2, V3, V4, V5};
use crate::wire::icrc::{Envelope, seal, verify, verify_ip_packet};
use crate::wire::ip::write_ip_udp_headers;
use crate::wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, BuildError, Deth, Feth, Headers, Ieth, ImmDt, IpPacket,
    IpUdp, MAX_HEADER_LEN, Msn, Opcode, Operation, Packet, PacketBuilder, Psn, Reth, Service,
    Syndrome, XrcEth, header_len,
};

fn rc(operation: Operation) -> Opcode {
    Opcode::new(Service::Rc, operation).unwrap()
}

/// `build` in front of IP and UDP headers of the vector `hex` gives the vector.
fn check_vector(hex: &str, build: impl FnOnce(&mut [u8]) -> usize) {
    let expected = vectors::bytes(hex);
    let header = IpPacket::parse(&expected).unwrap().header;
    let mut ib = [0xEE; 256];
    let len = build(&mut ib);
    seal(&Envelope::from(&header), &mut ib[..len]);

    let mut packet = [0xEE; 512];
    let headers = write_ip_udp_headers(&mut packet, &header, len).unwrap();
    packet[headers..headers + len].copy_from_slice(&ib[..len]);
    assert_eq!(packet[..headers + len], expected, "{hex}");
}

#[test]
fn vectors_byte_for_byte() {
    check_vector(V2, |buf| {
        let opcode = Opcode::new(Service::Uc, Operation::SendOnly).unwrap();
        let payload = vectors::bytes("4630818be28935d90e9a95505401be885e50");
        PacketBuilder::new(buf, Bth::new(opcode, 0xD3, Psn::new(0xCF_1710)))
            .unwrap()
            .payload(18, |dst| dst.copy_from_slice(&payload))
            .unwrap()
            .finish()
            .unwrap()
    });
    check_vector(V3, |buf| {
        let bth = Bth {
            ack_request: true,
            ..Bth::new(rc(Operation::SendOnly), 0x11, Psn::new(0x12_3456))
        };
        let mut builder = PacketBuilder::new(buf, bth).unwrap();
        builder.payload_mut(5).unwrap().copy_from_slice(b"hello");
        builder.finish().unwrap()
    });
    check_vector(V4, |buf| {
        let bth = Bth {
            solicited: true,
            ack_request: true,
            ..Bth::new(rc(Operation::WriteOnlyImm), 0xAB_CDEF, Psn::MAX)
        };
        PacketBuilder::new(buf, bth)
            .unwrap()
            .reth(Reth {
                va: 0x7F00_1234_5678,
                rkey: 0x10203,
                length: 6,
            })
            .immediate(ImmDt(0xDEAD_BEEF))
            .payload(6, |dst| dst.copy_from_slice(&[1, 2, 3, 4, 5, 6]))
            .unwrap()
            .finish()
            .unwrap()
    });
    check_vector(V5, |buf| {
        let syndrome = Syndrome::Ack {
            credits: Syndrome::NO_CREDITS,
        };
        PacketBuilder::new(
            buf,
            Bth::new(Opcode::RC_ACKNOWLEDGE, 0x12, Psn::new(0x12_3456)),
        )
        .unwrap()
        .aeth(Aeth::new(syndrome, Msn::new(1)))
        .finish()
        .unwrap()
    });
}

#[test]
fn a_buffer_too_small_is_an_error() {
    let bth = Bth::new(rc(Operation::WriteOnly), 1, Psn::new(0));
    let mut buf = [0; 31];
    let error = PacketBuilder::new(&mut buf, bth).unwrap_err();
    assert_eq!(
        error,
        BuildError::BufferTooSmall {
            needed: 32,
            available: 31
        }
    );

    // Headers, 5 bytes, 3 of pad, ICRC.
    let mut buf = [0; 40];
    let reth = Reth {
        va: 0,
        rkey: 0,
        length: 5,
    };
    let mut builder = PacketBuilder::new(&mut buf[..39], bth).unwrap().reth(reth);
    assert_eq!(
        builder.payload_mut(5).unwrap_err(),
        BuildError::BufferTooSmall {
            needed: 40,
            available: 39
        }
    );
    assert!(matches!(
        builder.payload_mut(usize::MAX),
        Err(BuildError::BufferTooSmall { .. })
    ));
    assert_eq!(
        builder.finish(),
        Ok(32),
        "a payload that did not fit leaves none"
    );
    let mut builder = PacketBuilder::new(&mut buf, bth).unwrap().reth(reth);
    assert_eq!(builder.payload_mut(5).unwrap().len(), 5);
    assert_eq!(builder.finish(), Ok(40));
}

#[test]
fn a_wrong_set_of_headers_is_an_error() {
    let mut buf = [0; 64];
    let opcode = rc(Operation::WriteOnlyImm);
    let bth = Bth::new(opcode, 1, Psn::new(0));
    let reth = Reth {
        va: 0,
        rkey: 0,
        length: 0,
    };
    assert_eq!(
        PacketBuilder::new(&mut buf, bth)
            .unwrap()
            .reth(reth)
            .finish(),
        Err(BuildError::MissingHeader {
            opcode,
            missing: Headers::IMM_DT
        })
    );
    let error = PacketBuilder::new(&mut buf, bth)
        .unwrap()
        .reth(reth)
        .immediate(ImmDt(0))
        .ieth(Ieth { rkey: 0 })
        .finish()
        .unwrap_err();
    assert_eq!(
        error,
        BuildError::UnexpectedHeader {
            opcode,
            header: Headers::IETH
        }
    );
    assert_eq!(
        error.to_string(),
        "caller gave RC RDMA Write Only with Immediate a header it does not have: IETH"
    );
}

/// Nothing of what the buffer held before gets into pad, reserved bytes or the place of the ICRC.
#[test]
fn nothing_old_leaks() {
    let mut buf = [0xEE; 64];
    let bth = Bth::new(rc(Operation::SendOnly), 1, Psn::new(0));
    let len = PacketBuilder::new(&mut buf, bth)
        .unwrap()
        .payload(1, |dst| dst.fill(1))
        .unwrap();
    assert_eq!(len.finish(), Ok(20));
    assert_eq!(buf[12..21], [1, 0, 0, 0, 0, 0, 0, 0, 0xEE]);

    let mut buf = [0xEE; 64];
    let len = PacketBuilder::new(&mut buf, Bth::new(Opcode::CNP, 1, Psn::new(0)))
        .unwrap()
        .finish();
    assert_eq!(len, Ok(32));
    assert_eq!(buf[12..33], [[0; 20].as_slice(), &[0xEE]].concat());
}

/// Every header there is, filled with something.
#[derive(Clone, Copy, Debug)]
struct AllHeaders {
    xrceth: XrcEth,
    deth: Deth,
    feth: Feth,
    reth: Reth,
    atomic_eth: AtomicEth,
    aeth: Aeth,
    atomic_ack_eth: AtomicAckEth,
    immediate: ImmDt,
    ieth: Ieth,
}

prop_compose! {
    fn all_headers()(
        n in any::<[u64; 5]>(),
        rkey: u32,
        length: u32,
        qpn in 0u32..1 << 24,
        other: u32,
        syndrome: u8,
        selectivity in 0u8..4,
        placement in 0u8..16,
    ) -> AllHeaders {
        AllHeaders {
            xrceth: XrcEth { srqn: qpn ^ 0x55 },
            deth: Deth { qkey: other, source_qpn: qpn },
            feth: Feth { selectivity, placement },
            reth: Reth { va: n[0], rkey, length },
            atomic_eth: AtomicEth { va: n[1], rkey, swap_or_add: n[2], compare: n[3] },
            aeth: Aeth { syndrome, msn: Msn::new(length) },
            atomic_ack_eth: AtomicAckEth { original: n[4] },
            immediate: ImmDt(other),
            ieth: Ieth { rkey },
        }
    }
}

prop_compose! {
    fn bth()(
        opcode in select(Opcode::all().collect::<Vec<_>>()),
        flags in any::<[bool; 5]>(),
        pkey: u16,
        dest_qpn in 0u32..1 << 24,
        psn: u32,
    ) -> Bth {
        Bth {
            opcode,
            solicited: flags[0],
            migreq: flags[1],
            pad: 0,
            pkey,
            fecn: flags[2],
            becn: flags[3],
            dest_qpn,
            ack_request: flags[4],
            psn: Psn::new(psn),
        }
    }
}

fn address() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<[[u8; 4]; 2]>()
            .prop_map(|[s, d]| (Ipv4Addr::from(s).into(), Ipv4Addr::from(d).into())),
        any::<[[u8; 16]; 2]>()
            .prop_map(|[s, d]| (Ipv6Addr::from(s).into(), Ipv6Addr::from(d).into())),
    ]
}

prop_compose! {
    fn ip_udp()(
        (src, dst) in address(),
        tos: u8,
        ttl: u8,
        ipv4_id: u16,
        dont_fragment: bool,
        flow_label in 0u32..1 << 20,
        src_port: u16,
        udp_checksum: u16,
    ) -> IpUdp {
        let v4 = src.is_ipv4();
        IpUdp {
            src,
            dst,
            tos,
            ttl,
            ipv4_id: if v4 { ipv4_id } else { 0 },
            dont_fragment: dont_fragment || !v4,
            flow_label: if v4 { 0 } else { flow_label },
            src_port,
            dst_port: 4791,
            udp_checksum,
        }
    }
}

/// Builds a packet with the headers that its opcode has out of `all`.
fn build(buf: &mut [u8], bth: Bth, all: &AllHeaders, payload: &[u8]) -> usize {
    let headers = bth.opcode.headers();
    let mut b = PacketBuilder::new(buf, bth).unwrap();
    if headers.contains(Headers::XRCETH) {
        b = b.xrceth(all.xrceth);
    }
    if headers.contains(Headers::DETH) {
        b = b.deth(all.deth);
    }
    if headers.contains(Headers::FETH) {
        b = b.feth(all.feth);
    }
    if headers.contains(Headers::RETH) {
        b = b.reth(all.reth);
    }
    if headers.contains(Headers::ATOMIC_ETH) {
        b = b.atomic_eth(all.atomic_eth);
    }
    if headers.contains(Headers::AETH) {
        b = b.aeth(all.aeth);
    }
    if headers.contains(Headers::ATOMIC_ACK_ETH) {
        b = b.atomic_ack_eth(all.atomic_ack_eth);
    }
    if headers.contains(Headers::IMM_DT) {
        b = b.immediate(all.immediate);
    }
    if headers.contains(Headers::IETH) {
        b = b.ieth(all.ieth);
    }
    let b = b
        .payload(payload.len(), |dst| dst.copy_from_slice(payload))
        .unwrap();
    b.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// T-003: whatever is built is read back, for every opcode, pad, and IP version.
    #[test]
    fn round_trip(
        bth in bth(),
        all in all_headers(),
        payload in proptest::collection::vec(any::<u8>(), 0..40),
        ip in ip_udp(),
    ) {
        let mut ib = [0xEE; MAX_HEADER_LEN + 40 + 4];
        let len = build(&mut ib, bth, &all, &payload);
        seal(&Envelope::from(&ip), &mut ib[..len]);
        let mut bytes = [0xEE; 256];
        let ip_len = write_ip_udp_headers(&mut bytes, &ip, len).unwrap();
        bytes[ip_len..ip_len + len].copy_from_slice(&ib[..len]);

        // What is left of the buffer is as the filler of an Ethernet frame: not part of it.
        let ip_packet = IpPacket::parse(&bytes).unwrap();
        prop_assert_eq!(ip_packet.header, ip);
        prop_assert_eq!(ip_packet.header_bytes(), &bytes[..ip_len]);
        prop_assert_eq!(ip_packet.udp_payload, &ib[..len]);
        prop_assert_eq!(verify_ip_packet(&bytes), Ok(true));
        prop_assert!(verify(&Envelope::from(&ip_packet.header), ip_packet.udp_payload));

        let p = Packet::parse(ip_packet.udp_payload).unwrap();
        let pad = payload.len().wrapping_neg() & 3;
        prop_assert_eq!(len, header_len(bth.opcode) + payload.len() + pad + 4);
        prop_assert_eq!(len % 4, 0);
        prop_assert_eq!(p.bth(), Bth { pad: pad as u8, ..bth });
        prop_assert_eq!(p.payload(), &payload[..]);
        let has = |header| bth.opcode.headers().contains(header);
        prop_assert_eq!(p.xrceth(), has(Headers::XRCETH).then_some(all.xrceth));
        prop_assert_eq!(p.deth(), has(Headers::DETH).then_some(all.deth));
        prop_assert_eq!(p.feth(), has(Headers::FETH).then_some(all.feth));
        prop_assert_eq!(p.reth(), has(Headers::RETH).then_some(all.reth));
        prop_assert_eq!(p.atomic_eth(), has(Headers::ATOMIC_ETH).then_some(all.atomic_eth));
        prop_assert_eq!(p.aeth(), has(Headers::AETH).then_some(all.aeth));
        prop_assert_eq!(p.atomic_ack_eth(), has(Headers::ATOMIC_ACK_ETH).then_some(all.atomic_ack_eth));
        prop_assert_eq!(p.immediate(), has(Headers::IMM_DT).then_some(all.immediate));
        prop_assert_eq!(p.ieth(), has(Headers::IETH).then_some(all.ieth));
    }
}
