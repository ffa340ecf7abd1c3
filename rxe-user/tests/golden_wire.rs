//! Recorded traffic of other implementations: every packet is read as the record says, built
//! again byte for byte, and has the ICRC that we compute.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rxe_user::wire::icrc::{self, Envelope};
use rxe_user::wire::ip::write_ip_udp_headers;
use rxe_user::wire::{
    IpPacket, NakCode, Opcode, Operation, Packet, PacketBuilder, ROCE_UDP_PORT, Syndrome, grh,
};

mod support;

use support::Row;
use support::pcap::{self, Frame};

/// A packet, and what the record says about it.
struct Case {
    /// File and frame, for messages.
    name: String,
    frame: Frame,
    row: Row,
}

/// The capture files that have a table beside them.
fn captures() -> Vec<PathBuf> {
    let Some(dir) = support::golden_dir("pcap") else {
        return Vec::new();
    };
    let mut captures: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "pcap")
        })
        .filter(|path| path.with_extension("tsv").is_file())
        .collect();
    captures.sort();
    assert!(!captures.is_empty(), "no captures in {}", dir.display());
    captures
}

/// All recorded packets of one capture.
fn cases_of(capture: &Path) -> Vec<Case> {
    let file = capture.file_name().unwrap().to_string_lossy();
    let mut rows: BTreeMap<usize, Row> = support::read_tsv(&capture.with_extension("tsv"))
        .into_iter()
        .map(|row| (row["frame"].parse().unwrap(), row))
        .collect();
    let cases: Vec<Case> = pcap::read(capture)
        .into_iter()
        .filter_map(|frame| {
            let row = rows.remove(&frame.number)?;
            Some(Case {
                name: format!("{file} frame {}", frame.number),
                frame,
                row,
            })
        })
        .collect();
    assert!(
        rows.is_empty(),
        "{file}: frames {:?} are not in the capture",
        rows.keys()
    );
    cases
}

fn cases() -> impl Iterator<Item = Case> {
    captures()
        .into_iter()
        .flat_map(|capture| cases_of(&capture))
}

/// An opcode's name in the records.
fn record_name(opcode: Opcode) -> String {
    let operation = match opcode.operation() {
        Operation::SendFirst => "SEND_FIRST",
        Operation::SendMiddle => "SEND_MIDDLE",
        Operation::SendLast => "SEND_LAST",
        Operation::SendLastImm => "SEND_LAST_IMM",
        Operation::SendOnly => "SEND_ONLY",
        Operation::SendOnlyImm => "SEND_ONLY_IMM",
        Operation::WriteFirst => "WRITE_FIRST",
        Operation::WriteMiddle => "WRITE_MIDDLE",
        Operation::WriteLast => "WRITE_LAST",
        Operation::WriteLastImm => "WRITE_LAST_IMM",
        Operation::WriteOnly => "WRITE_ONLY",
        Operation::WriteOnlyImm => "WRITE_ONLY_IMM",
        Operation::ReadRequest => "READ_REQUEST",
        Operation::ReadResponseFirst => "READ_RESP_FIRST",
        Operation::ReadResponseMiddle => "READ_RESP_MIDDLE",
        Operation::ReadResponseLast => "READ_RESP_LAST",
        Operation::ReadResponseOnly => "READ_RESP_ONLY",
        Operation::Acknowledge => "ACK",
        Operation::AtomicAcknowledge => "ATOMIC_ACK",
        Operation::CompareSwap => "CMP_SWAP",
        Operation::FetchAdd => "FETCH_ADD",
        Operation::SendLastInvalidate => "SEND_LAST_INV",
        Operation::SendOnlyInvalidate => "SEND_ONLY_INV",
        Operation::Flush => "FLUSH",
        Operation::AtomicWrite => "ATOMIC_WRITE",
        Operation::Cnp => "CNP",
    };
    format!("{}_{operation}", opcode.service())
}

/// A syndrome's name in the records.
fn syndrome_name(syndrome: Syndrome) -> String {
    match syndrome {
        Syndrome::Ack { credits } => format!("ACK:credit={credits}"),
        Syndrome::RnrNak { timer } => format!("RNR:timer={timer}"),
        Syndrome::Nak(NakCode::PsnSequenceError) => "NAK:PSN_SEQ".to_owned(),
        Syndrome::Nak(NakCode::InvalidRequest) => "NAK:INV_REQ".to_owned(),
        Syndrome::Nak(NakCode::RemoteAccessError) => "NAK:REM_ACC".to_owned(),
        Syndrome::Nak(NakCode::RemoteOperationalError) => "NAK:REM_OP".to_owned(),
        Syndrome::Nak(code) => format!("NAK:{}", u8::from(code)),
        Syndrome::Reserved(byte) => format!("RESERVED:{byte}"),
    }
}

/// The column `ext`: the extended headers, as the records write them.
fn ext(p: &Packet<'_>) -> String {
    let mut parts = Vec::new();
    if let Some(h) = p.deth() {
        parts.push(format!(
            "deth.qkey=0x{:08x},deth.srcqp=0x{:06x}",
            h.qkey, h.source_qpn
        ));
    }
    if let Some(h) = p.reth() {
        parts.push(format!(
            "reth.va=0x{:016x},reth.rkey=0x{:08x},reth.len={}",
            h.va, h.rkey, h.length
        ));
    }
    if let Some(h) = p.atomic_eth() {
        parts.push(format!(
            "atomic.va=0x{:016x},atomic.rkey=0x{:08x},atomic.swap_add=0x{:016x},atomic.cmp=0x{:016x}",
            h.va, h.rkey, h.swap_or_add, h.compare
        ));
    }
    if let Some(h) = p.aeth() {
        parts.push(format!(
            "aeth.syndrome=0x{:02x}({}),aeth.msn={}",
            h.syndrome,
            syndrome_name(h.meaning()),
            h.msn.value()
        ));
    }
    if let Some(h) = p.atomic_ack_eth() {
        parts.push(format!("atomicack=0x{:016x}", h.original));
    }
    if let Some(h) = p.immediate() {
        parts.push(format!("imm=0x{:08x}", h.0));
    }
    if let Some(h) = p.ieth() {
        parts.push(format!("ieth.rkey=0x{:08x}", h.rkey));
    }
    parts.join(",")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The columns of a record, filled with what we read in its packet.
fn read_back(frame: &Frame) -> Row {
    let ip_packet = IpPacket::parse(&frame.ip).unwrap();
    let ip = ip_packet.header;
    let p = Packet::parse(ip_packet.udp_payload).unwrap();
    let v4 = ip.src.is_ipv4();
    let only_v4 = |text: String| if v4 { text } else { String::new() };
    let (pad_at, icrc_at) = (
        p.bytes().len() - 4 - usize::from(p.pad()),
        p.bytes().len() - 4,
    );
    let icrc = icrc::compute_ip_packet(&frame.ip).unwrap();
    let bit = |set: bool| u8::from(set).to_string();
    [
        ("frame", frame.number.to_string()),
        (
            "time",
            format!(
                "{}.{:06}",
                frame.microseconds / 1_000_000,
                frame.microseconds % 1_000_000
            ),
        ),
        ("ip_src", ip.src.to_string()),
        ("ip_dst", ip.dst.to_string()),
        ("tos_or_tclass", ip.tos.to_string()),
        ("ttl_or_hop", ip.ttl.to_string()),
        (
            "flow_label",
            if v4 {
                String::new()
            } else {
                format!("0x{:05x}", ip.flow_label)
            },
        ),
        ("ip_id", only_v4(ip.ipv4_id.to_string())),
        (
            "ip_flags",
            only_v4((u8::from(ip.dont_fragment) * 2).to_string()),
        ),
        ("udp_src", ip.src_port.to_string()),
        ("udp_csum", format!("0x{:04x}", ip.udp_checksum)),
        (
            "ip_len",
            (ip_packet.header_bytes().len() + p.bytes().len()).to_string(),
        ),
        ("opcode", format!("0x{:02x}", p.opcode().byte())),
        ("op_name", record_name(p.opcode())),
        ("se", bit(p.solicited())),
        ("migreq", bit(p.migreq())),
        ("pad", p.pad().to_string()),
        ("tver", "0".to_owned()),
        ("pkey", format!("0x{:04x}", p.pkey())),
        (
            "bth4",
            format!(
                "0x{:02x}",
                u8::from(p.fecn()) << 7 | u8::from(p.becn()) << 6
            ),
        ),
        ("dest_qp", format!("0x{:06x}", p.dest_qpn())),
        ("ackreq", bit(p.ack_request())),
        ("bth_resv7", format!("0x{:02x}", p.bytes()[8] & 0x7F)),
        ("psn", format!("0x{:06x}", p.psn().value())),
        ("ext", ext(&p)),
        ("payload_len", p.payload().len().to_string()),
        ("pad_bytes", hex(&p.bytes()[pad_at..icrc_at])),
        ("icrc_wire_bytes", hex(&p.icrc().to_le_bytes())),
        ("icrc_calc", format!("0x{icrc:08x}")),
        (
            "icrc",
            if icrc == p.icrc() { "ok" } else { "bad" }.to_owned(),
        ),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// Every column of every packet.
#[test]
fn golden_packets_are_read_as_recorded() {
    for Case { name, frame, row } in cases() {
        let ours = read_back(&frame);
        for (column, expected) in &row {
            match ours.get(column) {
                // An IPv6 address has several spellings.
                Some(value) if column == "ip_src" || column == "ip_dst" => {
                    let parse = |text: &str| text.parse::<IpAddr>().unwrap();
                    assert_eq!(parse(value), parse(expected), "{name}: {column}");
                }
                Some(value) => assert_eq!(value, expected, "{name}: {column}"),
                None => panic!("{name}: no such column: {column}"),
            }
        }
    }
}

/// The same fields, through our builders, make the same bytes.
#[test]
fn golden_packets_are_built_byte_for_byte() {
    for Case { name, frame, .. } in cases() {
        let ip_packet = IpPacket::parse(&frame.ip).unwrap();
        let p = Packet::parse(ip_packet.udp_payload).unwrap();
        let mut ib = vec![0xEE; p.bytes().len()];
        let mut builder = PacketBuilder::new(&mut ib, p.bth()).unwrap();
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
        let len = builder
            .payload(p.payload().len(), |dst| dst.copy_from_slice(p.payload()))
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!(len, ib.len(), "{name}");
        icrc::seal(&Envelope::from(&ip_packet.header), &mut ib);

        let mut packet = vec![0xEE; 48];
        let headers = write_ip_udp_headers(&mut packet, &ip_packet.header, len).unwrap();
        packet.truncate(headers);
        packet.extend(ib);
        assert_eq!(hex(&packet), hex(&frame.ip[..packet.len()]), "{name}");
    }
}

/// The full check, the check of what a socket shows, and the identification that it hides.
#[test]
fn golden_icrc_is_right_and_tells_the_identification() {
    for Case { name, frame, row } in cases() {
        let ip_packet = IpPacket::parse(&frame.ip).unwrap();
        let ib = ip_packet.udp_payload;
        let envelope = Envelope::from(&ip_packet.header);
        assert_eq!(ip_packet.header.dst_port, ROCE_UDP_PORT, "{name}");
        let good = row["icrc"] == "ok";
        assert_eq!(icrc::verify_ip_packet(&frame.ip), Ok(good), "{name}");
        assert_eq!(icrc::verify(&envelope, ib), good, "{name}");
        assert_eq!(
            icrc::residue(&envelope, ib) == icrc::RESIDUE,
            good,
            "{name}"
        );
        if good {
            let hidden = Envelope {
                ipv4_id: 0,
                ..envelope
            };
            let id = icrc::solve_ipv4_id(&hidden, ib);
            assert_eq!(id, Some(ip_packet.header.ipv4_id), "{name}");
        }
    }
}

/// The GRH image is the IP header that was received.
#[test]
fn golden_grh_is_the_ip_header() {
    for Case { name, frame, .. } in cases() {
        let ip_packet = IpPacket::parse(&frame.ip).unwrap();
        let image = grh::image(&ip_packet.header, ip_packet.udp_payload.len()).unwrap();
        let ip_header = &frame.ip[..ip_packet.header_bytes().len() - 8];
        let (zeros, header) = image.split_at(grh::GRH_LEN - ip_header.len());
        assert_eq!(hex(header), hex(ip_header), "{name}");
        assert!(zeros.iter().all(|&byte| byte == 0), "{name}");
    }
}

/// What the index says of each capture: packets, bytes, and how many of each opcode and NAK.
#[test]
fn golden_index_counts_what_we_count() {
    let Some(dir) = support::golden_dir("pcap") else {
        return;
    };
    for row in support::read_tsv(&dir.join("index.tsv")) {
        let capture = dir.join(&row["file"]);
        if !capture.is_file() {
            eprintln!(
                "skipped: {} is in the index, but not there",
                capture.display()
            );
            continue;
        }
        let cases = cases_of(&capture);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for case in &cases {
            let ip_packet = IpPacket::parse(&case.frame.ip).unwrap();
            let p = Packet::parse(ip_packet.udp_payload).unwrap();
            *counts.entry(record_name(p.opcode())).or_default() += 1;
            match p.aeth().map(|aeth| aeth.meaning()) {
                None | Some(Syndrome::Ack { .. }) => {}
                Some(nak) => {
                    *counts
                        .entry(format!("!{}", syndrome_name(nak)))
                        .or_default() += 1
                }
            }
        }
        let counts: Vec<String> = counts
            .into_iter()
            .map(|(name, count)| format!("{name}:{count}"))
            .collect();
        let file = &row["file"];
        assert_eq!(row["packets"], cases.len().to_string(), "{file}");
        assert_eq!(
            row["bytes"],
            std::fs::metadata(&capture).unwrap().len().to_string(),
            "{file}"
        );
        assert_eq!(row["opcodes_and_syndromes"], counts.join(" "), "{file}");
    }
}
