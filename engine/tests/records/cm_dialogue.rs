//! Recorded dialogues over the connection manager (`-R`, `-z`): the messages
//! are SENDs of the control connection's queue pairs in `handshake*/NAME.pcap`.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use engine::exchange::Side;

use crate::dialogue::{Dialogue, Message, commands};
use crate::records::{entries, golden_folder};

/// All dialogues over the connection manager.
pub(crate) fn cm_dialogues() -> Vec<Dialogue> {
    ["handshake", "handshake-6.29"]
        .into_iter()
        .filter_map(golden_folder)
        .flat_map(|folder| entries(&folder, "pcap"))
        .filter_map(|path| cm_dialogue(&path))
        .collect()
}

fn cm_dialogue(capture: &Path) -> Option<Dialogue> {
    let text = fs::read_to_string(capture.with_extension("txt")).ok()?;
    let (server_command, client_command, succeeded) = commands(&text);
    client_command.over_cm().then(|| Dialogue {
        name: capture.display().to_string(),
        client_command,
        server_command,
        messages: messages(&fs::read(capture).unwrap()),
        errors: None,
        screens: None,
        succeeded,
    })
}

/// A message that is being put together from its packets.
struct Flow {
    from: Side,
    source: [u8; 4],
    qpn: u32,
    bytes: Vec<u8>,
}

/// The first queue pair that gets a SEND in each direction is the control
/// connection's; the client speaks first.
fn messages(capture: &[u8]) -> Vec<Message> {
    let mut flows: Vec<Flow> = Vec::new();
    let mut messages = Vec::new();
    for packet in frames(capture).filter_map(roce) {
        // SEND First, Middle, Last, Only of RC (IBTA table 38).
        let (begins, ends) = match packet.opcode {
            0 => (true, false),
            1 => (false, false),
            2 => (false, true),
            4 => (true, true),
            _ => continue,
        };
        if flows.iter().all(|flow| flow.source != packet.source) {
            flows.push(Flow {
                from: match flows.len() {
                    0 => Side::Client,
                    _ => Side::Server,
                },
                source: packet.source,
                qpn: packet.qpn,
                bytes: Vec::new(),
            });
        }
        let flow = flows
            .iter_mut()
            .find(|flow| flow.source == packet.source && flow.qpn == packet.qpn);
        let Some(flow) = flow else {
            continue;
        };
        if begins {
            flow.bytes.clear();
        }
        flow.bytes.extend(packet.payload);
        if ends {
            messages.push(Message {
                from: flow.from,
                bytes: flow.bytes.clone(),
            });
        }
    }
    messages
}

struct Packet<'a> {
    source: [u8; 4],
    opcode: u8,
    qpn: u32,
    payload: &'a [u8],
}

/// The Ethernet frames of a capture file in the byte order of this machine.
fn frames(capture: &[u8]) -> impl Iterator<Item = &[u8]> {
    assert_eq!(capture[..4], 0xa1b2_c3d4_u32.to_le_bytes(), "not a capture");
    let mut rest = &capture[24..];
    std::iter::from_fn(move || {
        let length = rest.get(8..12)?;
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        let (frame, next) = rest[16..].split_at(length);
        rest = next;
        Some(frame)
    })
}

/// A RoCEv2 packet over IPv4 without extended headers.
fn roce(frame: &[u8]) -> Option<Packet<'_>> {
    let ip = frame.get(14..).filter(|_| frame[12..14] == [8, 0])?;
    let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let udp = ip.get(usize::from(ip[0] & 15) * 4..length)?;
    let bth = udp
        .get(8..)
        .filter(|_| udp[2..4] == 4791_u16.to_be_bytes())?;
    let pad = usize::from(bth[1] >> 4 & 3);
    Some(Packet {
        source: ip[12..16].try_into().unwrap(),
        opcode: bth[0],
        qpn: u32::from_be_bytes(bth[4..8].try_into().unwrap()) & 0xff_ffff,
        payload: &bth[12..bth.len() - 4 - pad],
    })
}
