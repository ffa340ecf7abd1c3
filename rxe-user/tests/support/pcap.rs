//! Reads a capture file: a header of 24 bytes, then records of 16 bytes and a frame each.

use std::path::Path;

/// A captured frame.
pub(crate) struct Frame {
    /// Counted from 1, as Wireshark does.
    pub(crate) number: usize,
    /// Microseconds since the first frame.
    pub(crate) microseconds: u64,
    /// The packet from its IP header on, with whatever the link layer added behind it.
    pub(crate) ip: Vec<u8>,
}

const ETHERNET: u32 = 1;
const RAW_IP: u32 = 101;

/// The IP packets in a capture file; frames of other protocols are left out.
pub(crate) fn read(path: &Path) -> Vec<Frame> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let magic = bytes
        .first_chunk::<4>()
        .unwrap_or_else(|| panic!("{}: empty", path.display()));
    let (number, per_microsecond): (fn([u8; 4]) -> u32, u32) = match magic {
        [0xD4, 0xC3, 0xB2, 0xA1] => (u32::from_le_bytes, 1),
        [0xA1, 0xB2, 0xC3, 0xD4] => (u32::from_be_bytes, 1),
        [0x4D, 0x3C, 0xB2, 0xA1] => (u32::from_le_bytes, 1000),
        [0xA1, 0xB2, 0x3C, 0x4D] => (u32::from_be_bytes, 1000),
        _ => panic!("{}: not a pcap file: {magic:02x?}", path.display()),
    };
    let field = |at: usize| {
        number(
            *bytes[at..]
                .first_chunk()
                .unwrap_or_else(|| panic!("{}: cut", path.display())),
        )
    };
    let link_type = field(20);

    let mut frames = Vec::new();
    let mut first = None;
    let mut at = 24;
    for count in 1.. {
        if at == bytes.len() {
            break;
        }
        let now = u64::from(field(at)) * 1_000_000 + u64::from(field(at + 4) / per_microsecond);
        let (captured, length) = (field(at + 8), field(at + 12));
        assert_eq!(
            captured,
            length,
            "{}: frame {count} was cut",
            path.display()
        );
        let start = at + 16;
        at = start + captured as usize;
        let first = *first.get_or_insert(now);
        if let Some(ip) = ip_packet(link_type, &bytes[start..at]) {
            let ip = ip.to_vec();
            frames.push(Frame {
                number: count,
                microseconds: now - first,
                ip,
            });
        }
    }
    frames
}

/// What follows the link layer's header, if that is IP.
fn ip_packet(link_type: u32, frame: &[u8]) -> Option<&[u8]> {
    match link_type {
        RAW_IP => Some(frame),
        ETHERNET => match frame.get(12..14)? {
            [0x08, 0x00] | [0x86, 0xDD] => frame.get(14..),
            // 802.1Q
            [0x81, 0x00] => match frame.get(16..18)? {
                [0x08, 0x00] | [0x86, 0xDD] => frame.get(18..),
                _ => None,
            },
            _ => None,
        },
        other => panic!("link type {other} is neither Ethernet nor raw IP"),
    }
}
