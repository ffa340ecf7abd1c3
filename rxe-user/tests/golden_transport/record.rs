//! A recorded conversation of two queue pairs of kernel rxe: what was run,
//! the packets, and what both ends saw.

use std::collections::BTreeMap;
use std::path::Path;

use rxe_user::wire::{IpPacket, IpUdp, Packet};

use crate::support::{Row, golden_dir, pcap, read_tsv};

/// One captured packet.
pub(crate) struct Captured {
    pub(crate) number: usize,
    /// Since the first packet.
    pub(crate) microseconds: u64,
    pub(crate) header: IpUdp,
    /// BTH to ICRC.
    pub(crate) bytes: Vec<u8>,
    /// From the requester, A, to the responder, B.
    pub(crate) from_a: bool,
}

impl Captured {
    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet::parse(&self.bytes).unwrap()
    }
}

/// A `wc` line of the log.
#[derive(Debug)]
pub(crate) struct LoggedCompletion {
    pub(crate) opcode: u8,
    pub(crate) status: u8,
    pub(crate) byte_len: u32,
    /// Where flags say there is one.
    pub(crate) imm: Option<u32>,
}

/// A conversation made by `vt SCENARIO [numbers] [key=value]`.
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) shows: String,
    pub(crate) scenario: String,
    options: BTreeMap<String, u64>,
    log: BTreeMap<String, u64>,
    pub(crate) packets: Vec<Captured>,
    pub(crate) completions_a: Vec<LoggedCompletion>,
    pub(crate) completions_b: Vec<LoggedCompletion>,
    /// States at the end, A's first.
    pub(crate) states: Vec<u64>,
}

impl Record {
    fn read(dir: &Path, row: &Row) -> Option<Self> {
        let name = row["file"].trim_end_matches(".pcap").to_owned();
        let mut words = row["made_by"].strip_prefix("vt ")?.split_whitespace();
        let scenario = words.next()?.to_owned();
        let options: BTreeMap<String, u64> = words.flat_map(pairs).collect();
        let log = std::fs::read_to_string(dir.join(&name).with_extension("log"));
        let Ok(log) = log else {
            eprintln!("{name}: skipped, its log isn't there");
            return None;
        };
        let mut lines = log.lines();
        let facts = pairs(lines.next()?);
        let completions = |end: &str| {
            let lines = log.lines().filter_map(|line| line.strip_prefix(end));
            lines.map(logged_completion).collect()
        };
        let states = lines
            .filter(|line| line.starts_with("query_qp"))
            .filter_map(|line| pairs(line).get("state").copied());
        let mut record = Self {
            shows: row["shows"].clone(),
            scenario,
            options,
            packets: Vec::new(),
            completions_a: completions("wc A: "),
            completions_b: completions("wc B: "),
            states: states.collect(),
            log: facts,
            name,
        };
        record.packets = record.captured(&dir.join(&row["file"]));
        Some(record)
    }

    fn captured(&self, path: &Path) -> Vec<Captured> {
        let frames = pcap::read(path);
        let mut requester = None;
        frames
            .into_iter()
            .filter_map(|frame| {
                let ip = IpPacket::parse(&frame.ip).ok()?;
                let a = *requester.get_or_insert(ip.header.src);
                Some(Captured {
                    number: frame.number,
                    microseconds: frame.microseconds,
                    header: ip.header,
                    bytes: ip.udp_payload.to_vec(),
                    from_a: ip.header.src == a,
                })
            })
            .collect()
    }

    /// An option of the command line.
    pub(crate) fn option(&self, key: &str) -> Option<u64> {
        self.options.get(key).copied()
    }

    /// A number of the log's first line.
    pub(crate) fn fact(&self, key: &str) -> u64 {
        let fact = self.log.get(key);
        *fact.unwrap_or_else(|| panic!("{}: no {key} in the log", self.name))
    }
}

fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// The numbers among the `key=value` words of a line.
fn pairs(line: &str) -> BTreeMap<String, u64> {
    line.split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(key, value)| (key, value.split('(').next().unwrap_or_default()))
        .filter(|(_, value)| value.starts_with(|first: char| first.is_ascii_digit()))
        .map(|(key, value)| (key.to_owned(), number(value)))
        .collect()
}

fn logged_completion(line: &str) -> LoggedCompletion {
    let fields = pairs(line);
    let with_imm = fields["flags"] & 2 != 0;
    LoggedCompletion {
        opcode: fields["opcode"] as u8,
        status: fields["status"] as u8,
        byte_len: fields["byte_len"] as u32,
        imm: with_imm.then_some(fields["imm"] as u32),
    }
}

/// All conversations of the golden records that `vt` made and a log describes.
pub(crate) fn conversations() -> Vec<Record> {
    let Some(dir) = golden_dir("pcap") else {
        return Vec::new();
    };
    read_tsv(&dir.join("index.tsv"))
        .iter()
        .filter_map(|row| Record::read(&dir, row))
        .collect()
}
