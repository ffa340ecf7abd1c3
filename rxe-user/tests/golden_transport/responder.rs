//! Our responder in the place of B.

use std::collections::HashMap;

use rxe_user::wire::{Operation, Packet, Syndrome};
use verbs_sys::{AccessFlags, QpAttributes, QpState, WcOpcode, WcStatus};

use crate::connection_of_a;
use crate::deviations::{Answer, compare};
use crate::endpoint::{Connection, Endpoint};
use crate::record::{Captured, Record};

/// Where B's receives go.
const RECEIVES: usize = 65536;

/// B's memory before the run.
pub(crate) fn memory_of_b(index: usize) -> u8 {
    match index {
        0..8 => index as u8,
        _ => (3 * index + 0x40) as u8,
    }
}

/// Delivers A's packets and compares what comes back with what B answered.
pub(crate) fn replay(record: &Record) {
    let mut b = endpoint(record);
    let window = (record.scenario == "send_inv").then(|| bind_window(record, &mut b));
    let refusals = rnr_naks(record);
    let mut transmissions: HashMap<u32, usize> = HashMap::new();
    let (mut recorded, mut ours) = (Vec::new(), Vec::new());
    for captured in &record.packets {
        let packet = captured.packet();
        if !captured.from_a {
            recorded.push(Answer::of(&packet));
            continue;
        }
        let psn = packet.psn().value();
        let transmission = transmissions.entry(psn).or_default();
        // B had nothing posted as long as it said so; repetitions take none.
        let refusals = refusals.get(&psn).copied().unwrap_or(0);
        let is_taken = *transmission == refusals;
        *transmission += 1;
        if takes_receive(&packet) && is_taken && b.state() == QpState::Rts {
            post_receive(&mut b, record);
        }
        b.deliver(translated(record, captured, &b, window));
        while let Some(bytes) = b.next_packet() {
            ours.push(Answer::of(&Packet::parse(&bytes).unwrap()));
        }
    }
    compare(&record.name, &recorded, &ours);
    compare_completions(record, &mut b);
    if let (Some(state), true) = (record.states.get(1), record.scenario != "no_qp") {
        assert_eq!(b.state() as u64, *state, "{}: state of B", record.name);
    }
}

fn endpoint(record: &Record) -> Endpoint {
    let a = connection_of_a(record);
    let all = a.qp_access;
    let access = record
        .option("acc")
        .map_or(all, |bits| AccessFlags::from_bits_truncate(bits as u32));
    let connection = Connection {
        own: a.peer,
        peer: a.own,
        peer_qpn: record.fact("qpA") as u32,
        sq_psn: a.rq_psn,
        rq_psn: record.option("rq").map_or(a.sq_psn, |psn| psn as u32),
        qp_access: access,
        memory_access: match record.scenario.as_str() {
            "no_perm" => AccessFlags::LOCAL_WRITE,
            _ => a.memory_access,
        },
        max_dest_rd_atomic: record.option("rd").unwrap_or(4) as u8,
        ..a
    };
    let mut b = Endpoint::new(&connection, memory_of_b);
    match record.scenario.as_str() {
        "dead_qp" => {
            let error = QpAttributes::to_state(QpState::Error);
            b.nic.modify_qp(b.qpn, &error).unwrap();
        }
        "no_qp" => drop(b.nic.destroy_qp(b.qpn)),
        _ => {}
    }
    b
}

/// How often each PSN was refused for want of a receive.
fn rnr_naks(record: &Record) -> HashMap<u32, usize> {
    let mut counts = HashMap::new();
    for captured in record.packets.iter().filter(|captured| !captured.from_a) {
        let packet = captured.packet();
        let meaning = packet.aeth().map(|aeth| aeth.meaning());
        if let Some(Syndrome::RnrNak { .. }) = meaning {
            *counts.entry(packet.psn().value()).or_default() += 1;
        }
    }
    counts
}

fn takes_receive(packet: &Packet<'_>) -> bool {
    use Operation as Op;
    matches!(
        packet.operation(),
        Op::SendFirst
            | Op::SendOnly
            | Op::SendOnlyImm
            | Op::SendOnlyInvalidate
            | Op::WriteLastImm
            | Op::WriteOnlyImm
    )
}

fn post_receive(b: &mut Endpoint, record: &Record) {
    let length = match record.scenario.as_str() {
        "too_long" => 100,
        _ => 32768,
    };
    let mut sge = b.sge(RECEIVES, length);
    if record.scenario == "bad_lkey_recv" {
        sge.lkey ^= 1;
    }
    b.receive_into(sge);
}

/// The key of B's window, in the record and here.
#[derive(Clone, Copy)]
struct WindowKeys {
    recorded: u32,
    ours: u32,
}

/// B binds its window before A's first packet; A's requests name no other.
fn bind_window(record: &Record, b: &mut Endpoint) -> WindowKeys {
    let named = record.packets.iter().find_map(|captured| {
        let packet = captured.packet();
        let reth = packet.reth().map(|reth| reth.rkey);
        reth.or(packet.ieth().map(|ieth| ieth.rkey))
    });
    let recorded = named.unwrap_or_else(|| panic!("{}: no key in any request", record.name));
    WindowKeys {
        recorded,
        ours: b.bind_window(recorded as u8),
    }
}

/// A's packet with B's numbers in place of the record's.
fn translated(
    record: &Record,
    captured: &Captured,
    b: &Endpoint,
    window: Option<WindowKeys>,
) -> Vec<u8> {
    let packet = captured.packet();
    let mut bytes = captured.bytes.clone();
    bytes[5..8].copy_from_slice(&b.qpn.to_be_bytes()[1..]);
    if packet.reth().is_some() || packet.atomic_eth().is_some() {
        // Address and key lie in front of both headers.
        let at = |range: std::ops::Range<usize>| captured.bytes[range].try_into().unwrap();
        let va = u64::from_be_bytes(at(12..20));
        let rkey = u32::from_be_bytes(captured.bytes[20..24].try_into().unwrap());
        let offset = va.wrapping_sub(record.fact("vaB"));
        let va = b.memory.addr().wrapping_add(offset);
        let rkey = match window {
            Some(window) => rkey ^ window.recorded ^ window.ours,
            // The key of memory without remote rights is its local one.
            None => b.keys.lkey ^ rkey ^ record.fact("rkeyB") as u32,
        };
        bytes[12..20].copy_from_slice(&va.to_be_bytes());
        bytes[20..24].copy_from_slice(&rkey.to_be_bytes());
    }
    if let (Some(ieth), Some(window)) = (packet.ieth(), window) {
        let rkey = ieth.rkey ^ window.recorded ^ window.ours;
        bytes[12..16].copy_from_slice(&rkey.to_be_bytes());
    }
    bytes
}

/// The messages that B received.
fn compare_completions(record: &Record, b: &mut Endpoint) {
    let ours: Vec<_> = b
        .received()
        .into_iter()
        .filter(|completion| completion.status == WcStatus::Success)
        .map(|completion| {
            let opcode = completion.opcode as u8;
            (opcode, completion.byte_len, completion.immediate())
        })
        .collect();
    let recorded: Vec<_> = record
        .completions_b
        .iter()
        .filter(|completion| completion.status == 0)
        // The binding of the window is a send request.
        .filter(|completion| completion.opcode != WcOpcode::BindWindow as u8)
        .map(|completion| (completion.opcode, completion.byte_len, completion.imm))
        .collect();
    assert_eq!(ours, recorded, "{}: completions of B", record.name);
    let is_datagram = record.fact("qp_type") == 4;
    if is_datagram && !recorded.is_empty() {
        let version = b.read(RECEIVES + 20, 1)[0] >> 4;
        let is_ipv4 = record.packets[0].header.src.is_ipv4();
        assert_eq!(version == 4, is_ipv4, "{}: GRH", record.name);
    }
}
