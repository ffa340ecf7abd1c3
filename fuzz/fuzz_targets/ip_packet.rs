//! Arbitrary IP packets: what is accepted, etherparse reads in the same way, and its headers are
//! built again byte for byte.

#![no_main]

use std::net::{IpAddr, Ipv6Addr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use libfuzzer_sys::fuzz_target;
use rxe_user::wire::icrc::{self, Envelope};
use rxe_user::wire::ip::write_ip_udp_headers;
use rxe_user::wire::{IpPacket, ROCE_UDP_PORT, grh};

fuzz_target!(|bytes: &[u8]| {
    let checked = icrc::verify_ip_packet(bytes);
    let Ok(packet) = IpPacket::parse(bytes) else {
        assert!(checked.is_err());
        return;
    };
    assert_eq!(checked.is_ok(), packet.udp_payload.len() >= 16);
    let header = packet.header;

    let sliced = SlicedPacket::from_ip(bytes).expect("etherparse accepts what we accept");
    let Some(TransportSlice::Udp(udp)) = sliced.transport else {
        panic!("etherparse sees no UDP: {:?}", sliced.transport);
    };
    assert_eq!(
        (udp.source_port(), udp.destination_port()),
        (header.src_port, header.dst_port)
    );
    assert_eq!(udp.payload(), packet.udp_payload);
    match sliced.net {
        Some(NetSlice::Ipv4(ip)) => {
            let ip = ip.header();
            assert_eq!(IpAddr::from(ip.source_addr()), header.src);
            assert_eq!(IpAddr::from(ip.destination_addr()), header.dst);
            assert_eq!(
                (ip.identification(), ip.ttl()),
                (header.ipv4_id, header.ttl)
            );
            assert_eq!(ip.dont_fragment(), header.dont_fragment);
        }
        Some(NetSlice::Ipv6(ip)) => {
            let ip = ip.header();
            assert_eq!(IpAddr::from(ip.source_addr()), header.src);
            assert_eq!(IpAddr::from(ip.destination_addr()), header.dst);
            assert_eq!(
                (ip.traffic_class(), ip.hop_limit()),
                (header.tos, header.ttl)
            );
            assert_eq!(ip.flow_label().value(), header.flow_label);
        }
        net => panic!("etherparse sees no IP: {net:?}"),
    }

    let mut expected = packet.header_bytes().to_vec();
    let mut headers = [0; 48];
    let len = write_ip_udp_headers(&mut headers, &header, packet.udp_payload.len())
        .expect("it was an IP packet before");
    let image = grh::image(&header, packet.udp_payload.len()).expect("as above");
    if header.src.is_ipv4() {
        // The checksum that came may be wrong; the one that is written is not.
        expected[10..12].copy_from_slice(&headers[10..12]);
    }
    assert_eq!(headers[..len], expected[..]);
    assert!(image.ends_with(&expected[..len - 8]));

    // The check with what a socket shows agrees with the full one. An IPv4-mapped address does not
    // appear in IPv6 packets; there it stands for IPv4.
    let mapped = |address: IpAddr| match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => Ipv6Addr::to_ipv4_mapped(&v6).is_some(),
    };
    if header.dst_port == ROCE_UDP_PORT && !mapped(header.src) && !mapped(header.dst) {
        let envelope = Envelope::from(&header);
        assert_eq!(
            checked.unwrap_or(false),
            icrc::verify(&envelope, packet.udp_payload)
        );
    }
});
