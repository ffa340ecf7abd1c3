//! Recorded screens, read into the numbers our own functions take.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use engine::exchange::{
    Atomic, BandwidthReport, Connection, KeyRecord, Measurement, PortReport, Units, Verb,
};
use engine::report::address::AddressStyle;
use engine::report::columns::Columns;
use engine::report::header::{CqePoll, Feature, Limit, Transport};
use engine::report::{HeaderInfo, Style};
use engine::stats::{LatencyFigures, TimedLatency};
use verbs_sys::LinkLayer;

/// The style of a recorded screen, by what it shows. 6.06 and 6.20 differ in
/// their notes only.
pub(crate) fn style_of(screen: &str) -> Style {
    let old_header = screen.contains("PCIe relax order") && !screen.contains("Lock-free");
    if old_header || screen.contains("[MB/sec]") {
        Style::V6_20
    } else {
        Style::V6_29
    }
}

/// The value of a header field, up to the tabs before the next one.
fn field<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header.lines().find_map(|line| {
        line.split("\t\t").find_map(|part| {
            let (found, value) = part.split_once(':')?;
            (found.trim() == name).then_some(value.trim())
        })
    })
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    let digits = text.trim_end_matches("[B]");
    digits
        .parse()
        .ok()
        .unwrap_or_else(|| panic!("{text:?} is no number"))
}

pub(crate) fn feature(text: Option<&str>) -> Feature {
    match text {
        Some("ON") => Feature::On,
        Some("Unsupported") => Feature::Unsupported,
        _ => Feature::Off,
    }
}

/// The words of a title (or of the file's `test`, with other separators).
pub(crate) struct Title {
    pub(crate) verb: Verb,
    pub(crate) atomic: Atomic,
    pub(crate) measurement: Measurement,
    pub(crate) duplex: bool,
    pub(crate) multicast: bool,
}

impl Title {
    pub(crate) fn parse(title: &str) -> Self {
        let words = title.replace('_', " ");
        let has = |word: &str| words.contains(word);
        let verb = match () {
            () if words.starts_with("Send imm") => Verb::SendImm,
            () if words.starts_with("Send") => Verb::Send,
            () if words.starts_with("RDMA Write imm") => Verb::WriteImm,
            () if words.starts_with("RDMA Write") => Verb::Write,
            () if words.starts_with("RDMA Read") => Verb::Read,
            () if words.starts_with("Atomic") => Verb::Atomic,
            () => panic!("unknown title {title}"),
        };
        Self {
            verb,
            atomic: if has("FETCH AND ADD") {
                Atomic::FetchAdd
            } else {
                Atomic::CompareSwap
            },
            measurement: if has(" BW ") {
                Measurement::Bandwidth
            } else {
                Measurement::Latency
            },
            duplex: has("Bidirectional"),
            multicast: has("Multicast"),
        }
    }
}

pub(crate) fn transport(text: &str) -> Transport {
    match text {
        "IB" => Transport::Ib,
        "IW" => Transport::Iwarp,
        _ => Transport::Unknown,
    }
}

pub(crate) fn link(text: &str) -> LinkLayer {
    match text {
        "IB" => LinkLayer::InfiniBand,
        "Ethernet" => LinkLayer::Ethernet,
        _ => LinkLayer::Unspecified,
    }
}

pub(crate) fn connection(text: &str) -> Connection {
    let index = Connection::NAMES.iter().position(|name| *name == text);
    Connection::from_number(u32::try_from(index.unwrap()).unwrap()).unwrap()
}

/// Reads a header, which begins with its title.
pub(crate) fn header(text: &str) -> HeaderInfo {
    let title = Title::parse(text.trim_start());
    let get = |name: &str| field(text, name);
    let optional = |name: &str| get(name).map(number::<u32>);
    let exchange = get("Data ex. method").unwrap();
    HeaderInfo {
        verb: title.verb,
        atomic: title.atomic,
        measurement: title.measurement,
        duplex: title.duplex,
        multicast: title.multicast,
        events: text
            .lines()
            .find(|line| line.starts_with(" Test with events."))
            .map(|line| number(line.rsplit_once("_comp").unwrap().1)),
        dual_port: get("Dual-port").unwrap() == "ON",
        device: get("Device").unwrap().to_owned(),
        qps: optional("Number of qps").unwrap(),
        transport: transport(get("Transport type").unwrap()),
        connection: connection(get("Connection type").unwrap()),
        srq: get("Using SRQ").unwrap() == "ON",
        relaxed_ordering: feature(get("PCIe relax order")),
        relaxed_ordering_warning: text.contains(" WARNING: CPU is not PCIe"),
        lock_free: feature(get("Lock-free")),
        wr_api: get("ibv_wr* API").unwrap() == "ON",
        enhanced_reorder: get("Using Enhanced Reorder") == Some("ON"),
        tx_depth: optional("TX depth"),
        post_list: optional("Post List").unwrap_or(1),
        recv_post_list: optional("Recv Post List").unwrap_or(1),
        rx_depth: optional("RX depth"),
        cq_moderation: optional("CQ Moderation"),
        cqe_poll: get("CQE Poll Batch").map(|batch| match batch {
            "Dynamic" => CqePoll::Dynamic,
            count => CqePoll::Fixed(number(count)),
        }),
        mtu: optional("Mtu").unwrap(),
        link: link(get("Link type").unwrap()),
        gid_index: optional("GID index"),
        gid_index2: optional("GID index2"),
        limit: match optional("Max inline data") {
            Some(bytes) => Limit::Inline(bytes),
            None => Limit::OutstandingReads(optional("Outstand reads").unwrap()),
        },
        cm_qps: get("rdma_cm QPs").unwrap() == "ON",
        cm_exchange: exchange.starts_with("rdma_cm"),
        tos: exchange
            .split_once("TOS")
            .map(|(_, tos)| number(tos.trim_start_matches([' ', ':']))),
        awaits_cm_client: text.contains("Waiting for client rdma_cm QP"),
        numa_node: optional("NUMA node"),
    }
}

/// Reads an address line and, if there is one, the GID line below it.
pub(crate) fn address(text: &str, info: &HeaderInfo) -> (KeyRecord, AddressStyle) {
    let mut lines = text.lines();
    let words: Vec<&str> = lines.next().unwrap().split_ascii_whitespace().collect();
    let get = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        let digits = words[at + 1].trim_start_matches("0x");
        Some(u64::from_str_radix(digits, 16).unwrap())
    };
    let gid_line = lines.next().filter(|line| line.contains("GID: "));
    let gid = gid_line.map(|line| {
        let (_, numbers) = line.split_once("GID: ").unwrap();
        let bytes: Vec<u8> = numbers.split(':').map(number).collect();
        <[u8; 16]>::try_from(bytes).unwrap()
    });
    let small = |name: &str| u32::try_from(get(name).unwrap_or(0)).unwrap();
    let key = KeyRecord {
        lid: u16::try_from(small("LID")).unwrap(),
        out_reads: small("OUT"),
        qpn: small("QPN"),
        psn: small("PSN"),
        rkey: small("RKey"),
        vaddr: get("VAddr").unwrap_or(0),
        tail_markers: None,
        gid,
        srqn: small("SRQn"),
        gid_index: None,
    };
    let style = AddressStyle {
        verb: if info.cm_exchange {
            Verb::Send
        } else {
            info.verb
        },
        connection: info.connection,
        multicast: gid_line.is_some_and(|line| line.starts_with(" MGID")),
    };
    (key, style)
}

/// A row, read with the columns above it.
#[derive(Debug)]
pub(crate) enum Row {
    Bandwidth(BandwidthReport, Option<f32>),
    Latency(u64, u64, LatencyFigures, Option<f32>),
    LatencyTimed(u64, u64, TimedLatency, Option<f32>),
}

/// A number as C prints it.
pub(crate) fn c_number(text: &str) -> f64 {
    match text {
        "-nan" => -f64::NAN,
        text => number(text),
    }
}

pub(crate) fn row(line: &str, columns: Columns) -> Row {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let size = number(words[0]);
    let iterations = number(words[1]);
    let values: Vec<f64> = words[2..].iter().map(|word| c_number(word)).collect();
    let cpu = |at: usize| values.get(at).map(|percent| *percent as f32);
    let figure = |at: usize| values.get(at).copied().unwrap_or(0.0);
    match columns {
        Columns::Bandwidth(_) | Columns::BandwidthPerPort(_) => {
            let per_port = matches!(columns, Columns::BandwidthPerPort(_));
            let ports = per_port.then(|| {
                [3, 5].map(|at| PortReport {
                    average: figure(at),
                    message_rate: figure(at + 1),
                })
            });
            let report = BandwidthReport {
                size,
                iterations,
                peak: figure(0),
                average: figure(1),
                message_rate: figure(2),
                ports,
            };
            Row::Bandwidth(report, cpu(if per_port { 7 } else { 3 }))
        }
        Columns::Latency => {
            let figures = LatencyFigures {
                min: figure(0),
                max: figure(1),
                typical: figure(2),
                average: figure(3),
                stdev: figure(4),
                p99: figure(5),
                p99_9: figure(6),
            };
            Row::Latency(size, iterations, figures, cpu(7))
        }
        Columns::LatencyTimed => {
            let figures = TimedLatency {
                average: figure(0),
                transactions: figure(1),
            };
            Row::LatencyTimed(size, iterations, figures, cpu(2))
        }
    }
}

/// All sets of columns there are.
pub(crate) const ALL_COLUMNS: [Columns; 6] = [
    Columns::Bandwidth(Units::Mib),
    Columns::Bandwidth(Units::Gbits),
    Columns::BandwidthPerPort(Units::Mib),
    Columns::BandwidthPerPort(Units::Gbits),
    Columns::Latency,
    Columns::LatencyTimed,
];
