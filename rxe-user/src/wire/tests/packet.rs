//! Views of packets, and what is refused.

use core::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::vectors::{self, V1, V2, V3, V4, V5, V6};
use crate::wire::icrc::{Envelope, seal, verify};
use crate::wire::{
    Aeth, Deth, ImmDt, IpPacket, Msn, Opcode, Operation, Packet, ParseError, Psn, Reth, Service,
    header_len,
};

/// The UDP payload of a vector.
fn udp_payload(hex: &str) -> Vec<u8> {
    IpPacket::parse(&vectors::bytes(hex))
        .unwrap()
        .udp_payload
        .to_vec()
}

/// T-001: the six vectors have the fields that they were made from.
#[test]
fn vectors() {
    let bytes = udp_payload(V1);
    let p = Packet::parse(&bytes).unwrap();
    assert_eq!((p.service(), p.operation()), (Service::Cnp, Operation::Cnp));
    assert_eq!(
        (p.migreq(), p.becn(), p.fecn(), p.ack_request()),
        (false, true, false, false)
    );
    assert_eq!(
        (p.dest_qpn(), p.psn(), p.cnp_reserved()),
        (0x118, Psn::new(0), Some(&[0; 16]))
    );
    assert!(p.payload().is_empty());

    let bytes = udp_payload(V2);
    let p = Packet::parse(&bytes).unwrap();
    assert_eq!(
        (p.service(), p.operation()),
        (Service::Uc, Operation::SendOnly)
    );
    assert_eq!(
        (p.pad(), p.dest_qpn(), p.psn()),
        (2, 0xD3, Psn::new(0xCF_1710))
    );
    assert_eq!(
        (p.payload().len(), p.migreq(), p.solicited()),
        (18, true, false)
    );

    let bytes = udp_payload(V3);
    let p = Packet::parse(&bytes).unwrap();
    assert_eq!(p.opcode().byte(), 0x04);
    assert_eq!((p.pad(), p.payload(), p.pkey()), (3, &b"hello"[..], 0xFFFF));
    assert_eq!(
        (p.dest_qpn(), p.psn(), p.ack_request()),
        (0x11, Psn::new(0x12_3456), true)
    );
    assert_eq!((p.icrc(), p.bytes()), (0x03BE_496C, &bytes[..]));
    assert_eq!(
        (p.reth(), p.aeth(), p.deth(), p.immediate()),
        (None, None, None, None)
    );

    let bytes = udp_payload(V4);
    let p = Packet::parse(&bytes).unwrap();
    assert_eq!(
        (p.service(), p.operation()),
        (Service::Rc, Operation::WriteOnlyImm)
    );
    assert_eq!((p.solicited(), p.pad(), p.psn()), (true, 2, Psn::MAX));
    assert_eq!(
        p.reth(),
        Some(Reth {
            va: 0x7F00_1234_5678,
            rkey: 0x10203,
            length: 6
        })
    );
    assert_eq!(
        (p.immediate(), p.payload()),
        (Some(ImmDt(0xDEAD_BEEF)), &[1, 2, 3, 4, 5, 6][..])
    );

    let bytes = udp_payload(V5);
    let p = Packet::parse(&bytes).unwrap();
    assert_eq!(p.opcode(), Opcode::RC_ACKNOWLEDGE);
    assert_eq!(
        p.aeth(),
        Some(Aeth {
            syndrome: 0x1F,
            msn: Msn::new(1)
        })
    );

    let bytes = udp_payload(V6);
    let p = Packet::parse(&bytes).unwrap();
    assert_eq!(p.opcode(), Opcode::UD_SEND_ONLY);
    assert_eq!(
        p.deth(),
        Some(Deth {
            qkey: 0x8001_0000,
            source_qpn: 1
        })
    );
    assert_eq!((p.dest_qpn(), p.payload().len()), (1, 256));
}

/// T-006: a datagram below 16 bytes is no packet.
#[test]
fn short_datagrams() {
    let packet = udp_payload(V3);
    for len in 0..16 {
        let parsed = Packet::parse(&packet[..len]);
        assert_eq!(parsed.unwrap_err(), ParseError::TooShort { len });
    }
}

/// A packet of `byte` with nothing but zeros behind it.
fn zeros(byte: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[0] = byte;
    packet
}

/// T-007: every opcode, cut below its headers and ICRC.
#[test]
fn truncated_headers() {
    for opcode in Opcode::all() {
        let needed = header_len(opcode) + 4;
        assert!(
            Packet::parse(&zeros(opcode.byte(), needed)).is_ok(),
            "{opcode}"
        );
        for len in 16..needed {
            let bytes = zeros(opcode.byte(), len);
            let parsed = Packet::parse(&bytes);
            assert_eq!(
                parsed.unwrap_err(),
                ParseError::Truncated {
                    opcode,
                    len,
                    needed
                },
                "{opcode}"
            );
        }
    }
}

/// T-008: more pad than there is behind the headers.
#[test]
fn pad_beyond_the_payload() {
    for opcode in Opcode::all() {
        for pad in 1..=3 {
            let needed = header_len(opcode) + usize::from(pad) + 4;
            let mut packet = zeros(opcode.byte(), needed);
            packet[1] = pad << 4;
            assert_eq!(Packet::parse(&packet).unwrap().payload(), b"");
            packet.pop();
            let len = packet.len();
            let expected = if len < 16 {
                ParseError::TooShort { len }
            } else {
                ParseError::Truncated {
                    opcode,
                    len,
                    needed,
                }
            };
            assert_eq!(Packet::parse(&packet).unwrap_err(), expected, "{opcode}");
        }
    }
}

/// T-009: whether the pad count fits the payload is for the transport to say, and what is in the
/// pad does not matter.
#[test]
fn odd_pads_are_shown() {
    let mut packet = udp_payload(V3);
    packet[1] = 0x50; // 1 instead of 3
    let p = Packet::parse(&packet).unwrap();
    assert_eq!((p.pad(), p.payload()), (1, &b"hello\0\0"[..]));

    let mut packet = udp_payload(V3);
    packet[17..20].copy_from_slice(b"pad");
    assert_eq!(Packet::parse(&packet).unwrap().payload(), b"hello");
}

/// T-010: transport versions 1 to 15.
#[test]
fn other_transport_versions() {
    for version in 1..=15 {
        let mut packet = udp_payload(V3);
        packet[1] |= version;
        let parsed = Packet::parse(&packet);
        assert_eq!(
            parsed.unwrap_err(),
            ParseError::UnsupportedVersion { version }
        );
    }
}

/// T-011: reserved opcodes, whatever else is in the packet.
#[test]
fn unknown_opcodes() {
    for byte in (0..=u8::MAX).filter(|&byte| Opcode::from_byte(byte).is_none()) {
        let parsed = Packet::parse(&zeros(byte, 64)).map(|p| p.opcode());
        assert_eq!(parsed, Err(ParseError::UnknownOpcode { opcode: byte }));
    }
}

/// T-015 and T-016: reserved bits and the M, F and B bits make no difference to the rest.
#[test]
fn reserved_and_state_bits_are_accepted() {
    let envelope = Envelope {
        src: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        dst: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
        src_port: 0xC123,
        ipv4_id: 0,
        dont_fragment: true,
    };
    let mut packet = udp_payload(V3);
    packet[4] = 0x3F;
    packet[8] |= 0x7F;
    seal(&envelope, &mut packet);
    let p = Packet::parse(&packet).unwrap();
    assert_eq!(
        (p.fecn(), p.becn(), p.ack_request(), p.dest_qpn()),
        (false, false, true, 0x11)
    );
    assert!(verify(&envelope, &packet));

    // F and B are not even covered.
    packet[4] = 0xC0;
    let p = Packet::parse(&packet).unwrap();
    assert_eq!(
        (p.fecn(), p.becn(), p.psn()),
        (true, true, Psn::new(0x12_3456))
    );
    assert!(verify(&envelope, &packet));

    packet[1] &= !0x40;
    seal(&envelope, &mut packet);
    let p = Packet::parse(&packet).unwrap();
    assert_eq!((p.migreq(), p.payload()), (false, &b"hello"[..]));
    assert!(verify(&envelope, &packet));
}

#[test]
fn errors_say_whose_fault_it_is() {
    let error = Packet::parse(&zeros(0x0A, 20)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "peer sent 20 bytes of RC RDMA Write Only; its headers, pad and ICRC are 32 bytes"
    );
}

#[test]
fn debug_shows_the_headers_that_are_there() {
    let packet = udp_payload(V5);
    let text = format!("{:?}", Packet::parse(&packet).unwrap());
    assert!(
        text.contains("RC Acknowledge") && text.contains("Ack { credits: 31 }"),
        "{text}"
    );
    assert!(!text.contains("reth"), "{text}");
}

proptest! {
    /// Arbitrary bytes are refused or fully readable; the parts add up to the whole.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
        if let Ok(p) = Packet::parse(&bytes) {
            let pad = usize::from(p.pad());
            prop_assert_eq!(header_len(p.opcode()) + p.payload().len() + pad + 4, bytes.len());
            let operation = p.operation();
            prop_assert_eq!(p.reth().is_some(), operation.has_reth());
            prop_assert_eq!(p.aeth().is_some(), operation.has_aeth());
            prop_assert_eq!(p.immediate().is_some(), operation.has_immediate());
            prop_assert_eq!(p.ieth().is_some(), operation.has_invalidate());
            prop_assert_eq!(p.atomic_eth().is_some(), operation.is_atomic());
            prop_assert_eq!(p.atomic_ack_eth().is_some(), operation == Operation::AtomicAcknowledge);
            prop_assert_eq!(p.feth().is_some(), operation == Operation::Flush);
            prop_assert_eq!(p.deth().is_some(), p.service() == Service::Ud);
            let xrc_request = p.service() == Service::Xrc && operation.is_request();
            prop_assert_eq!(p.xrceth().is_some(), xrc_request);
            prop_assert_eq!(p.cnp_reserved().is_some(), p.service() == Service::Cnp);
        }
    }
}
