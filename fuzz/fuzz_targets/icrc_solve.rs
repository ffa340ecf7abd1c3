//! Sealed packets, intact and corrupt, whose IPv4 identification the receiver does not see.
//!
//! Input: identification, guess, source port, place of the error (two bytes each, big-endian),
//! the error's bits, flags (bit 0: IPv6, bit 1: DF), and the packet, BTH to ICRC.

#![no_main]

use std::net::{Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use rxe_user::wire::icrc::{Envelope, RESIDUE, residue, seal, solve_ipv4_id, verify};

/// The one byte of a packet that the ICRC does not cover.
const BTH_CONGESTION: usize = 4;

fuzz_target!(|input: &[u8]| {
    let Some((&[i0, i1, g0, g1, p0, p1, e0, e1, error, flags], packet)) = input.split_first_chunk()
    else {
        return;
    };
    let v6 = flags & 1 != 0;
    let (src, dst) = if v6 {
        (
            Ipv6Addr::LOCALHOST.into(),
            Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 2).into(),
        )
    } else {
        (
            Ipv4Addr::new(10, 0, 0, 1).into(),
            Ipv4Addr::new(10, 0, 0, 2).into(),
        )
    };
    let sent = Envelope {
        src,
        dst,
        src_port: u16::from_be_bytes([p0, p1]),
        ipv4_id: u16::from_be_bytes([i0, i1]),
        dont_fragment: flags & 2 != 0,
    };
    let seen = Envelope {
        ipv4_id: u16::from_be_bytes([g0, g1]),
        ..sent
    };

    // As it came: anything but a panic.
    let as_it_came = solve_ipv4_id(&seen, packet);
    if packet.len() < 16 {
        assert_eq!(as_it_came, None);
        return;
    }
    if let Some(id) = as_it_came {
        assert!(
            verify(
                &Envelope {
                    ipv4_id: id,
                    ..seen
                },
                packet
            ),
            "a solution that is none"
        );
    }

    let mut packet = packet.to_vec();
    seal(&sent, &mut packet);
    let expected = Some(if v6 { seen.ipv4_id } else { sent.ipv4_id });
    assert!(verify(&sent, &packet));
    assert_eq!(residue(&sent, &packet), RESIDUE);
    assert_eq!(solve_ipv4_id(&seen, &packet), expected);

    let at = usize::from(u16::from_be_bytes([e0, e1])) % packet.len();
    packet[at] ^= error;
    let intact = error == 0 || at == BTH_CONGESTION;
    assert_eq!(verify(&sent, &packet), intact);
    assert_eq!(solve_ipv4_id(&seen, &packet) == expected, intact);
});
