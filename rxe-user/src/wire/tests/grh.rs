//! The GRH image.

use super::vectors::{self, V3, V4};
use crate::wire::grh::image;
use crate::wire::{IpError, IpPacket, IpUdp};

#[test]
fn ipv4_is_in_the_last_twenty_bytes() {
    let bytes = vectors::bytes(V3);
    let packet = IpPacket::parse(&bytes).unwrap();
    let image = image(&packet.header, packet.udp_payload.len()).unwrap();
    assert_eq!(image[..20], [0; 20]);
    assert_eq!(image[20..], bytes[..20]);
}

/// What kernel rxe put in front of a UD receive of 64 bytes, and the fields of the packet.
#[test]
fn as_rxe_delivers_it() {
    let header = IpUdp {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
        tos: 0,
        ttl: 64,
        ipv4_id: 14243,
        dont_fragment: true,
        flow_label: 0,
        src_port: 54414,
        dst_port: 4791,
        udp_checksum: 0,
    };
    let expected = vectors::bytes(
        "0000000000000000 0000000000000000 0000000045000074 37a340004011eed3 0a0000010a000002",
    );
    assert_eq!(image(&header, 12 + 8 + 64 + 4).unwrap(), expected[..]);
}

#[test]
fn ipv6_is_the_header() {
    let bytes = vectors::bytes(V4);
    let packet = IpPacket::parse(&bytes).unwrap();
    assert_eq!(
        image(&packet.header, packet.udp_payload.len()).unwrap(),
        bytes[..40]
    );
}

#[test]
fn what_cannot_be_written() {
    let v4 = IpPacket::parse(&vectors::bytes(V3)).unwrap().header;
    let v6 = IpPacket::parse(&vectors::bytes(V4)).unwrap().header;
    assert_eq!(image(&v4, 65508), Err(IpError::TooLong(65508)));
    assert!(image(&v4, 65507).is_ok());
    let (src, dst) = (v4.src, v6.dst);
    let mixed = IpUdp { dst, ..v4 };
    assert_eq!(image(&mixed, 16), Err(IpError::MixedFamilies { src, dst }));
}
