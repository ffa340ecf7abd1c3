//! The invariant CRC.

use core::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::vectors::{self, V1, V2, V3, V4, V5, V6};
use crate::wire::icrc::{
    Envelope, RESIDUE, compute, compute_ip_packet, residue, seal, solve_ipv4_id, verify,
    verify_ip_packet,
};
use crate::wire::{IpError, IpPacket, Packet};

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

/// The bits that the ICRC does not cover, of byte `at` in a packet of IP version `version`.
fn uncovered(version: u8, at: usize) -> u8 {
    let masked = match (version, at) {
        // Type of service, time to live, header checksum, UDP checksum, BTH byte 4.
        (4, 1 | 8 | 10 | 11 | 26 | 27 | 32) => true,
        // Traffic class (its upper half is in byte 0), flow label, hop limit, UDP checksum, BTH.
        (6, 1..=3 | 7 | 46 | 47 | 52) => true,
        _ => false,
    };
    match (version, at) {
        (6, 0) => 0x0F,
        _ if masked => 0xFF,
        _ => 0,
    }
}

/// T-001: any single bit that is covered makes the packet bad, any other does not.
#[test]
fn every_flipped_bit() {
    for hex in vectors::ALL {
        let mut packet = vectors::bytes(hex);
        let version = packet[0] >> 4;
        let mut accepted = 0;
        for at in 0..packet.len() {
            for bit in 0..8 {
                packet[at] ^= 1 << bit;
                let good = verify_ip_packet(&packet) == Ok(true);
                let covered = uncovered(version, at) >> bit & 1 == 0;
                assert_eq!(good, !covered, "byte {at} bit {bit} of {hex}");
                accepted += usize::from(good);
                packet[at] ^= 1 << bit;
            }
        }
        let expected = if version == 4 {
            8 + 8 + 16 + 16 + 8
        } else {
            4 + 24 + 8 + 16 + 8
        };
        assert_eq!(accepted, expected);
    }
}

/// T-002: the CRC over the masked packet and its ICRC is a constant.
#[test]
fn residue_of_intact_packets() {
    for hex in vectors::ALL {
        let ip_packet = vectors::bytes(hex);
        let packet = IpPacket::parse(&ip_packet).unwrap();
        let envelope = Envelope::from(&packet.header);
        assert_eq!(residue(&envelope, packet.udp_payload), RESIDUE, "{hex}");
        let mut corrupt = packet.udp_payload.to_vec();
        corrupt[13] ^= 1;
        assert_ne!(residue(&envelope, &corrupt), RESIDUE, "{hex}");
    }
}

/// T-005: an identification that the receiver does not see.
#[test]
fn hidden_identification_of_a_vector() {
    let mut ip_packet = vectors::bytes(V3);
    let guess = Envelope::from(&IpPacket::parse(&ip_packet).unwrap().header);
    let sent = Envelope {
        ipv4_id: 0xBEEF,
        ..guess
    };
    let ib = &mut ip_packet[28..];
    seal(&sent, ib);
    assert!(!verify(&guess, ib));
    assert_eq!(solve_ipv4_id(&guess, ib), Some(0xBEEF));
    assert_eq!(solve_ipv4_id(&sent, ib), Some(0xBEEF));
    assert_eq!(
        solve_ipv4_id(
            &Envelope {
                dont_fragment: false,
                ..guess
            },
            ib
        ),
        None
    );

    for at in 0..ib.len() {
        for bit in 0..8 {
            ib[at] ^= 1 << bit;
            let expected = if at == 4 { Some(0xBEEF) } else { None };
            assert_eq!(solve_ipv4_id(&guess, ib), expected, "byte {at} bit {bit}");
            ib[at] ^= 1 << bit;
        }
    }
}

#[test]
fn ipv6_has_no_identification() {
    let ip_packet = vectors::bytes(V4);
    let packet = IpPacket::parse(&ip_packet).unwrap();
    let envelope = Envelope {
        ipv4_id: 77,
        ..Envelope::from(&packet.header)
    };
    assert!(verify(&envelope, packet.udp_payload));
    assert_eq!(solve_ipv4_id(&envelope, packet.udp_payload), Some(77));
    let mut corrupt = packet.udp_payload.to_vec();
    corrupt[20] ^= 0x10;
    assert_eq!(solve_ipv4_id(&envelope, &corrupt), None);
}

/// T-022: an IPv4-mapped address, as GIDs have it, is the IPv4 address on the wire.
#[test]
fn mapped_addresses_are_ipv4() {
    let ip_packet = vectors::bytes(V3);
    let packet = IpPacket::parse(&ip_packet).unwrap();
    let mapped = |address| match address {
        IpAddr::V4(v4) => IpAddr::V6(v4.to_ipv6_mapped()),
        v6 => v6,
    };
    let envelope = Envelope::from(&packet.header);
    let envelope = Envelope {
        src: mapped(envelope.src),
        dst: mapped(envelope.dst),
        ..envelope
    };
    assert!(verify(&envelope, packet.udp_payload));
}

#[test]
fn too_short_for_an_icrc() {
    let envelope = Envelope::from(&IpPacket::parse(&vectors::bytes(V3)).unwrap().header);
    for len in 0..16 {
        let mut packet = vec![0xEE; len];
        assert!(!verify(&envelope, &packet));
        assert_eq!(solve_ipv4_id(&envelope, &packet), None);
        seal(&envelope, &mut packet);
        assert_eq!(packet, vec![0xEE; len]);
    }
    let mut ip_packet = vectors::bytes(V3);
    ip_packet[3] = 28 + 15;
    ip_packet[25] = 8 + 15;
    let expected = IpError::Truncated {
        len: 43,
        needed: 44,
    };
    assert_eq!(verify_ip_packet(&ip_packet), Err(expected));
    assert_eq!(compute_ip_packet(&ip_packet), Err(expected));
}

/// CRC-32 bit by bit, and the masks one by one: slow, and independent of the code under test.
fn reference(envelope: &Envelope, bth_to_pad: &[u8]) -> u32 {
    let udp_len = bth_to_pad.len() + 12;
    let mut covered = vec![0xFF; 8];
    match (envelope.src, envelope.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            covered.extend([0x45, 0xFF]);
            covered.extend((udp_len as u16 + 20).to_be_bytes());
            covered.extend(envelope.ipv4_id.to_be_bytes());
            covered.extend([
                if envelope.dont_fragment { 0x40 } else { 0 },
                0,
                0xFF,
                17,
                0xFF,
                0xFF,
            ]);
            covered.extend(src.octets());
            covered.extend(dst.octets());
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            covered.extend([0x6F, 0xFF, 0xFF, 0xFF]);
            covered.extend((udp_len as u16).to_be_bytes());
            covered.extend([17, 0xFF]);
            covered.extend(src.octets());
            covered.extend(dst.octets());
        }
        _ => unreachable!("tests do not mix"),
    }
    covered.extend(envelope.src_port.to_be_bytes());
    covered.extend([0x12, 0xB7]);
    covered.extend((udp_len as u16).to_be_bytes());
    covered.extend([0xFF, 0xFF]);
    let bth = covered.len();
    covered.extend(bth_to_pad);
    covered[bth + 4] = 0xFF;

    let mut register = u32::MAX;
    for byte in covered {
        register ^= u32::from(byte);
        for _ in 0..8 {
            register = if register & 1 == 1 {
                register >> 1 ^ 0xEDB8_8320
            } else {
                register >> 1
            };
        }
    }
    !register
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let addresses = prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|[s, d]| (IpAddr::from(s), IpAddr::from(d))),
        // Not ::ffff:0:0/96.
        any::<[[u8; 16]; 2]>().prop_map(|mut pair| {
            for address in &mut pair {
                address[0] |= 1;
            }
            (IpAddr::from(pair[0]), IpAddr::from(pair[1]))
        }),
    ];
    (addresses, any::<u16>(), any::<u16>(), any::<bool>()).prop_map(
        |((src, dst), src_port, ipv4_id, dont_fragment)| Envelope {
            src,
            dst,
            src_port,
            ipv4_id,
            dont_fragment,
        },
    )
}

/// Lengths around the block in which small packets are assembled, and up to a jumbo packet.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 16..320),
        (4000..9000usize, any::<u8>()).prop_map(|(len, seed)| {
            (0..len).map(|i| (i as u8).wrapping_mul(seed | 1)).collect()
        }),
    ]
}

proptest! {
    #[test]
    fn agrees_with_the_reference(envelope in envelope(), packet in packet()) {
        let covered = &packet[..packet.len() - 4];
        prop_assert_eq!(compute(&envelope, covered), reference(&envelope, covered));
    }

    /// T-005: any identification is found, whatever the guess and the length.
    #[test]
    fn hidden_identification(
        envelope in envelope(),
        packet in packet(),
        guess: u16,
        corrupt: prop::sample::Index,
        bit in 0u8..8,
    ) {
        let mut packet = packet;
        seal(&envelope, &mut packet);
        let seen = Envelope { ipv4_id: guess, ..envelope };
        let expected = if envelope.src.is_ipv4() { envelope.ipv4_id } else { guess };
        prop_assert_eq!(solve_ipv4_id(&seen, &packet), Some(expected));
        prop_assert!(verify(&envelope, &packet));
        prop_assert_eq!(residue(&envelope, &packet), RESIDUE);

        // One flipped bit: never taken for intact by the full check. The check without the
        // identification may find some other identification, but never the one that was sent.
        let at = corrupt.index(packet.len());
        prop_assume!(at != 4);
        packet[at] ^= 1 << bit;
        prop_assert!(!verify(&envelope, &packet));
        prop_assert_ne!(solve_ipv4_id(&seen, &packet), Some(expected));
    }
}

/// About one in 2^16 of random errors has a solution: that is what is left of the check.
#[test]
fn random_errors_are_mostly_rejected() {
    let envelope = Envelope {
        src: Ipv4Addr::new(10, 0, 0, 1).into(),
        dst: Ipv4Addr::new(10, 0, 0, 2).into(),
        src_port: 0xC000,
        ipv4_id: 0,
        dont_fragment: true,
    };
    let mut packet = vectors::bytes(V3)[28..].to_vec();
    seal(&envelope, &mut packet);
    assert!(Packet::parse(&packet).is_ok());
    let icrc_at = packet.len() - 4;
    let mut accepted = 0;
    let mut state = 1u32;
    for _ in 0..1 << 18 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        packet[icrc_at..].copy_from_slice(&state.to_le_bytes());
        accepted += usize::from(solve_ipv4_id(&envelope, &packet).is_some());
    }
    assert!(
        (1..=16).contains(&accepted),
        "4 are to be expected, {accepted} were accepted"
    );
}
