//! Congestion notification packets.

use super::vectors::{self, V1};
use crate::wire::icrc::{Envelope, seal};
use crate::wire::{BuildError, Cnp, IpPacket, Packet};

/// T-105: the shape of what a ConnectX sends.
#[test]
fn as_hardware_sends_it() {
    let vector = vectors::bytes(V1);
    let ip_packet = IpPacket::parse(&vector).unwrap();
    let cnp = Cnp {
        dest_qpn: 0x118,
        pkey: 0xFFFF,
    };
    let mut buf = [0xEE; Cnp::LEN];
    assert_eq!(cnp.write(&mut buf), Ok(Cnp::LEN));
    seal(&Envelope::from(&ip_packet.header), &mut buf);
    assert_eq!(buf, ip_packet.udp_payload);
    assert_eq!(Cnp::from_packet(&Packet::parse(&buf).unwrap()), Some(cnp));
}

#[test]
fn needs_32_bytes() {
    let error = Cnp {
        dest_qpn: 1,
        pkey: 0xFFFF,
    }
    .write(&mut [0; 31])
    .unwrap_err();
    assert_eq!(
        error,
        BuildError::BufferTooSmall {
            needed: 32,
            available: 31
        }
    );
}

/// T-106: 15 or 17 reserved bytes, no B bit, and other opcodes are no notification; what is in the
/// reserved bytes does not matter.
#[test]
fn what_is_accepted() {
    let cnp = Cnp {
        dest_qpn: 0x12_3456,
        pkey: 0xFFFF,
    };
    let mut good = [0; Cnp::LEN];
    cnp.write(&mut good).unwrap();
    let read = |bytes: &[u8]| Packet::parse(bytes).ok().and_then(|p| Cnp::from_packet(&p));
    assert_eq!(read(&good), Some(cnp));
    assert_eq!(read(&good[..31]), None);
    assert_eq!(read(&[&good[..], &[0]].concat()), None);

    let mut reserved = good;
    reserved[12..28].fill(0xFF);
    assert_eq!(read(&reserved), Some(cnp));
    let mut migrated = good;
    migrated[1] |= 0x40;
    assert_eq!(read(&migrated), Some(cnp));

    for (byte, value) in [(0, 0x04), (4, 0x80), (1, 0x10)] {
        let mut other = good;
        other[byte] = value;
        assert_eq!(read(&other), None, "byte {byte} = 0x{value:02x}");
    }
}
