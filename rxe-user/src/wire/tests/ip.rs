//! IP and UDP headers, against those of etherparse.

use etherparse::{IpNumber, PacketBuilder as IpBuilder};
use proptest::prelude::*;

use super::vectors::{self, V3, V4};
use crate::wire::ip::write_ip_udp_headers;
use crate::wire::{IpError, IpPacket, Packet};

/// T-017: what an Ethernet frame of minimal size adds behind the IP packet.
#[test]
fn filler_is_ignored() {
    for hex in [V3, V4] {
        let packet = vectors::bytes(hex);
        let mut frame = packet.clone();
        frame.extend([0xA5; 18]);
        assert_eq!(IpPacket::parse(&frame), IpPacket::parse(&packet));
        assert!(Packet::parse(IpPacket::parse(&frame).unwrap().udp_payload).is_ok());
    }
}

/// The error of the vector `hex` with some bytes replaced.
fn error_of(hex: &str, changes: &[(usize, u8)]) -> IpError {
    let mut packet = vectors::bytes(hex);
    for &(at, byte) in changes {
        packet[at] = byte;
    }
    IpPacket::parse(&packet).unwrap_err()
}

/// T-018: options, fragments and the reserved flag are refused; DF = 0 is for the caller to judge.
#[test]
fn options_and_fragments() {
    assert_eq!(error_of(V3, &[(0, 0x46)]), IpError::HeaderLength(6));
    assert_eq!(error_of(V3, &[(0, 0x44)]), IpError::HeaderLength(4));
    assert_eq!(error_of(V3, &[(6, 0x20)]), IpError::Fragment(0x2000));
    assert_eq!(error_of(V3, &[(6, 0x60)]), IpError::Fragment(0x6000));
    assert_eq!(error_of(V3, &[(7, 0x01)]), IpError::Fragment(0x4001));
    assert_eq!(error_of(V3, &[(6, 0xC0)]), IpError::Fragment(0xC000));

    let mut packet = vectors::bytes(V3);
    packet[6] = 0;
    assert!(!IpPacket::parse(&packet).unwrap().header.dont_fragment);
}

#[test]
fn other_protocols() {
    assert_eq!(error_of(V3, &[(0, 0x55)]), IpError::Version(5));
    assert_eq!(error_of(V3, &[(9, 6)]), IpError::NotUdp(6));
    assert_eq!(
        error_of(V4, &[(6, 0)]),
        IpError::NotUdp(0),
        "hop-by-hop options"
    );
    assert_eq!(
        error_of(V4, &[(6, 44)]),
        IpError::NotUdp(44),
        "fragment header"
    );
}

/// E-1 of the encapsulation: IP length, UDP length and bytes agree.
#[test]
fn lengths_that_disagree() {
    assert_eq!(
        error_of(V3, &[(25, 31)]),
        IpError::LengthMismatch { udp: 31, ip: 32 }
    );
    assert_eq!(
        error_of(V3, &[(25, 33)]),
        IpError::LengthMismatch { udp: 33, ip: 32 }
    );
    assert_eq!(
        error_of(V4, &[(45, 0)]),
        IpError::LengthMismatch { udp: 0, ip: 52 }
    );
    assert_eq!(
        error_of(V3, &[(3, 53)]),
        IpError::Truncated {
            len: 52,
            needed: 53
        }
    );
    assert_eq!(
        error_of(V3, &[(3, 27)]),
        IpError::Truncated {
            len: 27,
            needed: 28
        }
    );
    assert_eq!(
        error_of(V3, &[(3, 0)]),
        IpError::Truncated { len: 0, needed: 28 }
    );
    assert_eq!(
        error_of(V4, &[(5, 7)]),
        IpError::Truncated {
            len: 47,
            needed: 48
        }
    );
}

#[test]
fn every_truncation_is_refused() {
    for hex in vectors::ALL {
        let packet = vectors::bytes(hex);
        for len in 0..packet.len() {
            let error = IpPacket::parse(&packet[..len]).unwrap_err();
            assert!(
                matches!(error, IpError::Truncated { len: l, .. } if l == len),
                "{error}"
            );
        }
    }
}

#[test]
fn a_buffer_too_small_is_an_error() {
    for (hex, needed) in [(V3, 28), (V4, 48)] {
        let header = IpPacket::parse(&vectors::bytes(hex)).unwrap().header;
        let mut buf = [0; 48];
        let error = write_ip_udp_headers(&mut buf[..needed - 1], &header, 16).unwrap_err();
        assert_eq!(
            error,
            IpError::Truncated {
                len: needed - 1,
                needed
            }
        );
        assert_eq!(
            write_ip_udp_headers(&mut buf[..needed], &header, 16),
            Ok(needed)
        );
        assert_eq!(
            write_ip_udp_headers(&mut buf, &header, 70_000),
            Err(IpError::TooLong(70_000))
        );
    }
}

proptest! {
    /// What etherparse builds is read as it was meant, and written again byte for byte.
    #[test]
    fn agrees_with_etherparse(
        v6: bool,
        addresses in any::<[[u8; 16]; 2]>(),
        tos: u8,
        ttl: u8,
        id: u16,
        dont_fragment: bool,
        flow_label in 0u32..1 << 20,
        src_port: u16,
        dst_port: u16,
        payload in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let [src, dst] = addresses;
        let builder = if v6 {
            IpBuilder::ip(etherparse::IpHeaders::Ipv6(
                etherparse::Ipv6Header {
                    traffic_class: tos,
                    flow_label: flow_label.try_into().unwrap(),
                    hop_limit: ttl,
                    source: src,
                    destination: dst,
                    ..Default::default()
                },
                Default::default(),
            ))
        } else {
            let [s, d] = [src, dst].map(|address| *address.first_chunk::<4>().unwrap());
            let mut ip = etherparse::Ipv4Header::new(0, ttl, IpNumber::UDP, s, d).unwrap();
            ip.dscp = (tos >> 2).try_into().unwrap();
            ip.ecn = (tos & 3).try_into().unwrap();
            ip.identification = id;
            ip.dont_fragment = dont_fragment;
            IpBuilder::ip(etherparse::IpHeaders::Ipv4(ip, Default::default()))
        }
        .udp(src_port, dst_port);
        let mut packet = Vec::new();
        builder.write(&mut packet, &payload).unwrap();

        let parsed = IpPacket::parse(&packet).unwrap();
        let header = parsed.header;
        prop_assert_eq!(parsed.udp_payload, &payload[..]);
        prop_assert_eq!((header.tos, header.ttl), (tos, ttl));
        prop_assert_eq!((header.src_port, header.dst_port), (src_port, dst_port));
        if v6 {
            prop_assert_eq!((header.src, header.dst), (src.into(), dst.into()));
            prop_assert_eq!((header.flow_label, header.ipv4_id), (flow_label, 0));
        } else {
            let [s, d] = [src, dst].map(|address| *address.first_chunk::<4>().unwrap());
            prop_assert_eq!((header.src, header.dst), (s.into(), d.into()));
            prop_assert_eq!((header.ipv4_id, header.dont_fragment), (id, dont_fragment));
        }

        let mut headers = [0xEE; 48];
        let len = write_ip_udp_headers(&mut headers, &header, payload.len()).unwrap();
        prop_assert_eq!(&headers[..len], &packet[..len]);
        prop_assert_eq!(&headers[..len], parsed.header_bytes());
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..128), version in 0u8..16) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = version << 4 | 5;
        }
        if let Ok(packet) = IpPacket::parse(&bytes) {
            let total = packet.header_bytes().len() + packet.udp_payload.len();
            prop_assert!(total <= bytes.len());
        }
    }
}
