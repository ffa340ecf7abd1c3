//! The invariant CRC.

use super::vectors::{self, V1, V2, V3, V4, V5, V6};
use crate::wire::icrc::{
    Envelope, RESIDUE, compute, compute_ip_packet, residue, seal, solve_ipv4_id, verify,
    verify_ip_packet,
};
use crate::wire::{IpError, IpPacket};

const CRCS: [(&str, u32); 6] = [
    (V1, 0x2A00_FD82),
    (V2, 0xF353_F378),
    (V3, 0x03BE_496C),
    (V4, 0x48C7_1FCE),
    (V5, 0xEEA0_9765),
    (V6, 0x06C7_EE8C),
];

/// T-001: the ICRC of the six vectors, from the whole packet and from what a socket shows.
#[test]
fn vectors_have_the_right_icrc() {
    for (hex, crc) in CRCS {
        let ip_packet = vectors::bytes(hex);
        let packet = IpPacket::parse(&ip_packet).unwrap();
        let envelope = Envelope::from(&packet.header);
        let ib = packet.udp_payload;
        assert_eq!(compute_ip_packet(&ip_packet), Ok(crc), "{hex}");
        assert_eq!(verify_ip_packet(&ip_packet), Ok(true), "{hex}");
        assert_eq!(compute(&envelope, &ib[..ib.len() - 4]), crc, "{hex}");
        assert!(verify(&envelope, ib), "{hex}");

        let mut unsealed = ib.to_vec();
        unsealed[ib.len() - 4..].fill(0);
        assert!(!verify(&envelope, &unsealed), "{hex}");
        seal(&envelope, &mut unsealed);
        assert_eq!(unsealed, ib, "{hex}");
    }
}
