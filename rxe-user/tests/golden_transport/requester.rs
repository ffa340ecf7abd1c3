//! Our requester in the place of A.

use std::collections::HashSet;

use rxe_user::transport::RoutedAddress;
use rxe_user::wire::{NakCode, Operation, Packet, Psn, Syndrome};
use verbs_sys::{RemoteAddress, SendFlags, SendOp, SendRequest, UdTarget, WcStatus};

use crate::connection_of_a;
use crate::endpoint::{Connection, Endpoint};
use crate::record::{Captured, Record};
use crate::responder::memory_of_b;

/// Where the results of Reads and atomics go, one after the other.
const RESULTS: usize = 0x4_0000;
const RESULT_SIZE: usize = 0x4000;

/// A request of A, as its packets show it.
#[derive(Debug)]
struct Message {
    op: SendOp,
    length: usize,
    solicited: bool,
    /// Queue pair and Q_Key of a datagram.
    datagram: Option<(u32, u32)>,
}

/// Posts A's requests; packets in the record are either what has to come
/// next, or responses to be delivered.
pub(crate) fn replay(record: &Record, at_once: bool) {
    let connection = connection_of_a(record);
    let mut a = Endpoint::new(&connection, |index| index as u8);
    let messages = messages(record, &connection);
    let mut posted = 0;
    let mut statuses = Vec::new();
    // The PSN that B has just refused, and that A will come back to.
    let mut refused: Option<Psn> = None;
    let mut seen = HashSet::new();
    for captured in &record.packets {
        if !captured.from_a {
            refused = refusal(&captured.packet()).filter(|psn| seen.contains(&psn.value()));
            let mut bytes = captured.bytes.clone();
            bytes[5..8].copy_from_slice(&a.qpn.to_be_bytes()[1..]);
            a.deliver(bytes);
            continue;
        }
        let psn = captured.packet().psn();
        // Packets that had left before the refusal was seen.
        if refused.is_some_and(|refused| psn.is_after(refused)) {
            continue;
        }
        refused = None;
        statuses.extend(a.sent().into_iter().map(|done| done.status));
        while posted < messages.len() && (at_once || statuses.len() == posted) {
            post(&mut a, record, &messages, posted);
            posted += 1;
            if !at_once {
                break;
            }
        }
        let sent = next_packet(&mut a);
        let context = format!(
            "{} frame {} at {} us",
            record.name, captured.number, captured.microseconds
        );
        let sent = sent.unwrap_or_else(|| panic!("{context}: we send nothing"));
        // Where a repetition asks for an acknowledgement is left to the sender.
        let is_first = seen.insert(psn.value());
        assert_eq!(
            comparable(&sent, is_first),
            comparable(&captured.bytes, is_first),
            "{context}, {:?}",
            captured.packet()
        );
    }
    // Retries that run out do so after the last packet of the record.
    while a.wait() {
        assert_eq!(a.next_packet(), None, "{}: one packet more", record.name);
    }
    statuses.extend(a.sent().into_iter().map(|done| done.status));
    let recorded: Vec<u8> = record
        .completions_a
        .iter()
        .take(messages.len())
        .map(|completion| completion.status)
        .collect();
    let ours: Vec<u8> = statuses.iter().map(|status| *status as u8).collect();
    assert_eq!(ours, recorded, "{}: completions of A", record.name);
    check_results(record, &a, &messages, &statuses);
}

/// The next packet, now or when a timer has let it go.
fn next_packet(a: &mut Endpoint) -> Option<Vec<u8>> {
    loop {
        if let Some(packet) = a.next_packet() {
            return Some(packet);
        }
        if !a.wait() {
            return None;
        }
    }
}

fn refusal(packet: &Packet<'_>) -> Option<Psn> {
    match packet.aeth()?.meaning() {
        Syndrome::RnrNak { .. } | Syndrome::Nak(NakCode::PsnSequenceError) => Some(packet.psn()),
        _ => None,
    }
}

/// A packet without what may differ: the M bit, which rxe leaves 0, the own
/// queue pair number of datagrams, the ICRC, and the acknowledge request
/// unless it's wanted.
fn comparable(bytes: &[u8], ack_request: bool) -> Vec<u8> {
    let packet = Packet::parse(bytes).unwrap();
    let is_datagram = packet.deth().is_some();
    let mut bytes = bytes[..bytes.len() - 4].to_vec();
    bytes[1] &= !0x40;
    if !ack_request {
        bytes[8] &= !0x80;
    }
    if is_datagram {
        bytes[17..20].fill(0);
    }
    bytes
}

/// What A posted, from the first transmission of each of its packets.
fn messages(record: &Record, connection: &Connection) -> Vec<Message> {
    let mtu = connection.mtu.bytes();
    let mut next = Psn::new(connection.sq_psn);
    let mut messages: Vec<Message> = Vec::new();
    let mut is_open = false;
    for captured in record.packets.iter().filter(|captured| captured.from_a) {
        let packet = captured.packet();
        if packet.psn() != next {
            continue;
        }
        let operation = packet.operation();
        is_open = !operation.is_end();
        if operation.is_start() {
            messages.push(message(captured));
        } else if operation.is_send()
            && let Some(message) = messages.last_mut()
        {
            message.length += packet.payload().len();
        }
        if let Some(message) = messages.last_mut().filter(|_| operation.is_end()) {
            message.solicited = packet.solicited();
            let imm = packet.immediate().map(|imm| imm.0);
            let ieth = packet.ieth();
            message.op = match (message.op, imm, ieth) {
                (SendOp::Send, Some(imm), _) => SendOp::SendImm { imm },
                (SendOp::Send, _, Some(ieth)) => SendOp::SendInvalidate { rkey: ieth.rkey },
                (SendOp::Write { remote }, Some(imm), _) => SendOp::WriteImm { remote, imm },
                (op, _, _) => op,
            };
        }
        next += match packet
            .reth()
            .filter(|_| operation == Operation::ReadRequest)
        {
            Some(reth) => reth.length.div_ceil(mtu).max(1),
            None => 1,
        };
    }
    // A Send that was refused in its middle was longer than its packets show.
    if let Some(message) = messages.last_mut().filter(|_| is_open)
        && message.op == SendOp::Send
    {
        message.length += 1;
    }
    messages
}

fn message(captured: &Captured) -> Message {
    let packet = captured.packet();
    let (mut op, mut length) = (SendOp::Send, packet.payload().len());
    if let Some(reth) = packet.reth() {
        let remote = RemoteAddress {
            addr: reth.va,
            rkey: reth.rkey,
        };
        length = reth.length as usize;
        op = match packet.operation() {
            Operation::ReadRequest => SendOp::Read { remote },
            _ => SendOp::Write { remote },
        };
    }
    if let Some(atomic) = packet.atomic_eth() {
        let remote = RemoteAddress {
            addr: atomic.va,
            rkey: atomic.rkey,
        };
        length = 8;
        op = match packet.operation() {
            Operation::FetchAdd => SendOp::FetchAdd {
                remote,
                add: atomic.swap_or_add,
            },
            _ => SendOp::CompareSwap {
                remote,
                compare: atomic.compare,
                swap: atomic.swap_or_add,
            },
        };
    }
    Message {
        op,
        length,
        solicited: false,
        datagram: packet.deth().map(|deth| (packet.dest_qpn(), deth.qkey)),
    }
}

fn is_fetched(op: SendOp) -> bool {
    matches!(
        op,
        SendOp::Read { .. } | SendOp::FetchAdd { .. } | SendOp::CompareSwap { .. }
    )
}

fn post(a: &mut Endpoint, record: &Record, messages: &[Message], index: usize) {
    let message = &messages[index];
    let place = match is_fetched(message.op) {
        true => RESULTS + index * RESULT_SIZE,
        false => 0,
    };
    let sges = [a.sge(place, message.length)];
    let mut flags = SendFlags::SIGNALED;
    flags.set(SendFlags::SOLICITED, message.solicited);
    // The mix ends with a fenced Read.
    let is_last = index + 1 == messages.len();
    flags.set(SendFlags::FENCE, is_last && record.scenario == "mix");
    let ah = RoutedAddress { route: a.route };
    let request = SendRequest {
        flags,
        ud: message
            .datagram
            .map(|(qpn, qkey)| UdTarget { ah: &ah, qpn, qkey }),
        ..SendRequest::signaled(index as u64, message.op, &sges)
    };
    a.nic.post_send(a.qpn, &[request]).unwrap();
}

/// What Reads and atomics brought: B's bytes, and the recorded values.
fn check_results(record: &Record, a: &Endpoint, messages: &[Message], statuses: &[WcStatus]) {
    let originals: Vec<u64> = record
        .packets
        .iter()
        .filter(|captured| !captured.from_a)
        .filter_map(|captured| captured.packet().atomic_ack_eth())
        .map(|ack| ack.original)
        .collect();
    let mut atomics = 0;
    for (index, message) in messages.iter().enumerate() {
        if statuses.get(index) != Some(&WcStatus::Success) || !is_fetched(message.op) {
            continue;
        }
        let fetched = a.read(RESULTS + index * RESULT_SIZE, message.length);
        match message.op {
            SendOp::Read { remote } if record.scenario != "mix" => {
                let start = (remote.addr - record.fact("vaB")) as usize;
                let expected: Vec<u8> = (start..start + message.length).map(memory_of_b).collect();
                assert_eq!(fetched, expected, "{}: Read {index}", record.name);
            }
            SendOp::Read { .. } => {}
            _ => {
                let expected = originals[atomics].to_ne_bytes();
                assert_eq!(fetched, expected, "{}: atomic {index}", record.name);
                atomics += 1;
            }
        }
    }
}
