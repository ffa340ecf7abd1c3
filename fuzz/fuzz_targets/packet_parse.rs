//! Arbitrary UDP payloads: accepted exactly when a second decoder accepts them, readable without
//! a panic, and the same when built again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rxe_user::wire::{Bth, Cnp, Packet, PacketBuilder, header_len};

/// Bytes of the headers of an opcode, from the opcode table by hand.
fn headers(opcode: u8) -> Option<usize> {
    let after_bth = match opcode {
        0x00..=0x02 | 0x04 | 0x07 | 0x08 | 0x0E => 0,
        0x20..=0x22 | 0x24 | 0x27 | 0x28 => 0,
        0x03 | 0x05 | 0x09 | 0x23 | 0x25 | 0x29 => 4,
        0x06 | 0x0A | 0x0C | 0x1D | 0x26 | 0x2A => 16,
        0x0B | 0x2B | 0x1C => 20,
        0x0D | 0x0F..=0x11 | 0x16 | 0x17 => 4,
        0x12 => 12,
        0x13 | 0x14 => 28,
        0x64 => 8,
        0x65 => 12,
        0x81 => 16,
        // XRC requests have four bytes more than those of RC, responses have not.
        0xAD..=0xB2 => return headers(opcode - 0xA0),
        0xA0..=0xAC | 0xB3 | 0xB4 | 0xB6 | 0xB7 => return Some(headers(opcode - 0xA0)? + 4),
        _ => return None,
    };
    Some(12 + after_bth)
}

/// Whether the bytes are a packet, the long way round.
fn is_packet(bytes: &[u8]) -> bool {
    let Some(headers) = bytes.first().and_then(|&opcode| headers(opcode)) else {
        return false;
    };
    let Some(&flags) = bytes.get(1) else {
        return false;
    };
    let pad = usize::from((flags & 0x30) / 0x10);
    bytes.len() >= 16 && bytes.len() >= headers + pad + 4 && flags & 0x0F == 0
}

fuzz_target!(|bytes: &[u8]| {
    let parsed = Packet::parse(bytes);
    assert_eq!(parsed.is_ok(), is_packet(bytes), "{parsed:?}");
    let Ok(p) = parsed else {
        return;
    };
    assert_eq!(Some(header_len(p.opcode())), headers(bytes[0]));
    assert_eq!(p.bytes(), bytes);
    let payload_end = bytes.len() - 4 - usize::from(p.pad());
    assert_eq!(p.payload(), &bytes[header_len(p.opcode())..payload_end]);
    let _ = (
        format!("{p:?}"),
        p.icrc(),
        p.cnp_reserved(),
        Cnp::from_packet(&p),
    );

    let mut buf = vec![0xEE; bytes.len() + 3];
    let mut builder = PacketBuilder::new(&mut buf, p.bth()).expect("as large as the packet");
    if let Some(header) = p.xrceth() {
        builder = builder.xrceth(header);
    }
    if let Some(header) = p.deth() {
        builder = builder.deth(header);
    }
    if let Some(header) = p.feth() {
        builder = builder.feth(header);
    }
    if let Some(header) = p.reth() {
        builder = builder.reth(header);
    }
    if let Some(header) = p.atomic_eth() {
        builder = builder.atomic_eth(header);
    }
    if let Some(header) = p.aeth() {
        builder = builder.aeth(header);
    }
    if let Some(header) = p.atomic_ack_eth() {
        builder = builder.atomic_ack_eth(header);
    }
    if let Some(header) = p.immediate() {
        builder = builder.immediate(header);
    }
    if let Some(header) = p.ieth() {
        builder = builder.ieth(header);
    }
    let payload = p.payload();
    let len = builder
        .payload(payload.len(), |place| place.copy_from_slice(payload))
        .expect("three bytes more than the packet are room for any pad")
        .finish()
        .expect("all headers of the opcode were given");

    let q = Packet::parse(&buf[..len]).expect("what is built is a packet");
    assert_eq!(
        q.bth(),
        Bth {
            pad: q.pad(),
            ..p.bth()
        }
    );
    assert_eq!(q.payload(), payload);
    assert_eq!((payload.len() + usize::from(q.pad())) % 4, 0);
    assert_eq!(
        (q.xrceth(), q.deth(), q.feth(), q.reth(), q.atomic_eth()),
        (p.xrceth(), p.deth(), p.feth(), p.reth(), p.atomic_eth())
    );
    assert_eq!(
        (q.aeth(), q.atomic_ack_eth(), q.immediate(), q.ieth()),
        (p.aeth(), p.atomic_ack_eth(), p.immediate(), p.ieth())
    );
});
