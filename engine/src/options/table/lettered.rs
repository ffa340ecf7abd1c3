//! Options with a letter.

use super::raw_ethernet;
use verbs_sys::{Gid, PathMtu};

use super::row::{Check, Number, OptionRow, Section, Tools};
use crate::options::number::{self, SizeError};
use crate::options::params::MtuRequest;
use crate::options::refusal::Refusal;
use crate::options::settings::{Method, Settings};
use crate::words::Verb;
use crate::words::{Atomic, Connection};

const INT: &str = "int";
const RDMA: Tools = Tools::READ.or(Tools::ATOMIC);
const LATENCY_ONLY: &str = " Available only on Latency tests\n";
const NO_EVENTS: &str = " Events feature not available on WRITE verb\n";

/// In the order of stock perftest.
pub(super) const ROWS: &[OptionRow] = &[
    OptionRow::number(
        Section::Connection,
        "port",
        "<port>",
        ("Port", INT, Check::Range(1, 65535)),
        |s, v| s.tcp_port = v as u16,
    )
    .letter('p')
    .symmetric()
    .default(|_| "18515".into())
    .help("TCP port to listen on or connect to"),
    OptionRow::text(Section::Device, "ib-dev", "<dev>", |s, v| {
        s.device = Some(v.to_owned());
        Ok(())
    })
    .letter('d')
    .default(|_| "first device found".into())
    .help("Use this device"),
    OptionRow::number(
        Section::Device,
        "ib-port",
        "<port>",
        ("IB Port", "uint8_t", Check::Range(0, 255)),
        |s, v| s.ib_port = v as u8,
    )
    .letter('i')
    .then(|s| match s.ib_port {
        0 => Err(Refusal::option("IB Port can't be less than 1\n")),
        _ => Ok(()),
    })
    .default(|_| "1".into())
    .help("Use this port of the device"),
    OptionRow::number(
        Section::Device,
        "mtu",
        "<mtu>",
        ("MTU", INT, Check::Any),
        |s, v| s.mtu = mtu(v),
    )
    .letter('m')
    .symmetric()
    .choices(&["256", "512", "1024", "2048", "4096"])
    .default(|_| "active MTU of the port".into())
    .help("Path MTU: 256, 512, 1024, 2048 or 4096"),
    OptionRow::text(Section::Traffic, "size", "<size>", size)
        .letter('s')
        .listed(Tools::ATOMIC.not())
        .symmetric()
        .default(|tool| tool.default_size().to_string())
        .help("Message size in bytes; K for 1024, M for 1048576"),
    OptionRow::number(
        Section::Traffic,
        "iters",
        "<iters>",
        ("Iteration num", "uint64_t", Check::Range(5, 4_294_967_296)),
        |s, v| s.iterations = v as u64,
    )
    .letter('n')
    .symmetric()
    .default(|tool| tool.default_iterations().to_string())
    .help("Messages per queue pair, at least 5"),
    OptionRow::number(
        Section::Queues,
        "tx-depth",
        "<depth>",
        ("Tx depth", INT, Check::Range(1, 15000)),
        |s, v| s.tx_depth = v as u32,
    )
    .letter('t')
    .listed(Tools::BW)
    .default(|tool| tool.default_tx_depth().to_string())
    .help("Depth of the send queue"),
    OptionRow::number(
        Section::Device,
        "qp-timeout",
        "<timeout>",
        ("QP Timeout", "uint8_t", Check::Range(0, 31)),
        |s, v| s.qp_timeout = v as u8,
    )
    .letter('u')
    .default(|_| "14".into())
    .help("Local ACK timeout: 4.096 us * 2^timeout"),
    OptionRow::number(
        Section::Device,
        "sl",
        "<sl>",
        ("Service Level", "uint8_t", Check::Any),
        |s, v| s.service_level = u8::try_from(v).unwrap_or(u8::MAX),
    )
    .letter('S')
    .then(|s| match s.service_level {
        0..=15 => Ok(()),
        _ => Err(Refusal::option(" Only 15 Service levels\n")),
    })
    .default(|_| "0".into())
    .help("Service level, 0 to 15"),
    OptionRow::number(
        Section::Device,
        "gid-index",
        "<index>",
        ("Gid index", "uint8_t", Check::Range(0, 64)),
        |s, v| s.gid_index = Some(v as u8),
    )
    .letter('x')
    .default(|_| "chosen from the port's table".into())
    .help("Use this entry of the port's GID table"),
    OptionRow::flag(Section::Traffic, "all", |s| s.method = Method::AllSizes)
        .letter('a')
        .listed(Tools::ATOMIC.not())
        .symmetric()
        .help("All sizes from 2 to 2^23 bytes"),
    OptionRow::flag(Section::Report, "CPU-freq", |s| {
        s.ignore_cpu_frequency = true;
    })
    .letter('F')
    .help("No warning when the CPU does not run at full frequency"),
    OptionRow::text(Section::Device, "connection", "<type>", connection)
        .letter('c')
        .choices(&["RC", "UC", "UD", "XRC", "DC", "SRD"])
        .symmetric()
        .default(|_| "RC".into())
        .help("Transport service: RC; UC for SEND and WRITE; UD for SEND"),
    OptionRow::number(
        Section::Queues,
        "qp",
        "<number>",
        ("num of Qps", INT, Check::Range(1, 16384)),
        |s, v| s.qps = v as u32,
    )
    .letter('q')
    .listed(Tools::BW)
    .then(|s| match s.qps {
        2.. if !s.tool.is_bandwidth() => Err(Refusal::option(
            " Multiple QPs only available on bw tests\n",
        )),
        _ => Ok(()),
    })
    .symmetric()
    .default(|_| "1".into())
    .help("Number of queue pairs"),
    OptionRow::flag(Section::Queues, "events", |s| s.events = true)
        .letter('e')
        .listed(Tools::WRITE.not())
        .help("Sleep on completion events instead of polling"),
    OptionRow::text(Section::Queues, "vector", "<vector>", |s, v| {
        const EQN: Number = Number {
            name: "EQN",
            c_type: INT,
            check: Check::Range(0, 2048),
        };
        s.completion_vector = Some(EQN.read(v)? as u32);
        Ok(())
    })
    .letter('X')
    .only(Tools::WRITE.not(), NO_EVENTS)
    .help("Completion vector for events"),
    OptionRow::number(
        Section::Queues,
        "inline_size",
        "<size>",
        ("Max inline", INT, Check::Range(0, 1024)),
        |s, v| s.inline_size = Some(v as u32),
    )
    .letter('I')
    .only(
        RDMA.not(),
        " Inline feature not available on READ/Atomic verbs\n",
    )
    .default(|_| "by device and tool".into())
    .help("Largest message sent inline"),
    OptionRow::number(
        Section::Queues,
        "outs",
        "<number>",
        ("Outstanding Reads", INT, Check::Any),
        |s, v| {
            s.outstanding_reads = (v > 0).then(|| u32::try_from(v).unwrap_or(u32::MAX));
        },
    )
    .letter('o')
    .only(
        RDMA,
        " Setting Outstanding reads only available on READ verb\n",
    )
    .default(|_| "maximum of the device".into())
    .help("Outstanding reads and atomics"),
    OptionRow::flag(Section::Connection, "mcg", |s| s.multicast = true)
        .letter('g')
        .only(
            Tools::SEND,
            " MultiCast feature only available on SEND verb\n",
        )
        .then(|s| match s.with_imm {
            true => Err(Refusal::option(
                " MultiCast feature only available on SEND verb\n",
            )),
            false => Ok(()),
        })
        .symmetric()
        .help("Send to a multicast group"),
    OptionRow::flag(Section::Connection, "comm_rdma_cm", |s| s.rdma_cm = true)
        .letter('z')
        .symmetric()
        .help("Exchange parameters over an rdma_cm queue pair"),
    OptionRow::flag(Section::Connection, "rdma_cm", |s| s.rdma_cm_qps = true)
        .letter('R')
        .symmetric()
        .help("Connect the queue pairs with rdma_cm, too"),
    OptionRow::number(
        Section::Connection,
        "tos",
        "<tos>",
        ("TOS", INT, Check::Range(0, 255)),
        |s, v| s.type_of_service = Some(v as u8),
    )
    .letter('T')
    .help("Type of service of rdma_cm queue pairs, 0 to 255; with -R"),
    OptionRow::number(
        Section::Hardware,
        "hop_limit",
        "<hops>",
        ("Hop Limit", INT, Check::Range(0, 255)),
        |s, v| s.hop_limit = v as u8,
    )
    .letter('L'),
    OptionRow::help_screen()
        .letter('h')
        .help("Show this help and exit with 1"),
    OptionRow::text(Section::Connection, "MGID", "<gid>", |s, v| {
        s.mgid = Some(multicast_gid(v).ok_or_else(|| {
            Refusal::option(format!(
                " {v} is no multicast GID: give 16 numbers joined by ':', the first 255 (0xff)\n"
            ))
        })?);
        Ok(())
    })
    .letter('M')
    .listed(Tools::SEND)
    .help("Multicast group, 16 numbers joined by ':'; with -g"),
    OptionRow::number(
        Section::Queues,
        "rx-depth",
        "<depth>",
        (" Rx depth", INT, Check::Range(1, 16384)),
        |s, v| s.rx_depth = v as u32,
    )
    .letter('r')
    .listed(RDMA.not())
    .then(|s| match (s.tool.verb, s.rx_depth) {
        (Verb::Read | Verb::Atomic, 2..) => {
            Err(Refusal::option(" On RDMA verbs rx depth can be only 1\n"))
        }
        _ => Ok(()),
    })
    .default(|_| "512".into())
    .help("Depth of the receive queue, or of the SRQ"),
    OptionRow::flag(Section::Traffic, "bidirectional", |s| {
        s.bidirectional = true
    })
    .letter('b')
    .only(Tools::BW, " Bidirectional is only available in BW test\n")
    .symmetric()
    .help("Traffic in both directions"),
    OptionRow::number(
        Section::Queues,
        "cq-mod",
        "<number>",
        ("CQ moderation", INT, Check::Range(1, 1024)),
        |s, v| {
            s.cq_mod = v as u32;
            s.cq_mod_given = true;
        },
    )
    .letter('Q')
    .listed(Tools::BW)
    .default(|_| "100, above 8192 bytes 1".into())
    .help("One completion per so many messages"),
    OptionRow::flag(Section::Report, "noPeak", |s| s.no_peak = true)
        .letter('N')
        .only(Tools::BW, " NoPeak only valid for BW tests\n")
        .help("No peak bandwidth"),
    OptionRow::version()
        .letter('V')
        .help("Show the version of perftest this is compatible with and exit with 1"),
    OptionRow::flag(Section::Report, "report-cycles", |s| s.cycles = true)
        .letter('C')
        .only(Tools::LAT, LATENCY_ONLY)
        .help("Report CPU cycles instead of microseconds"),
    OptionRow::flag(Section::Report, "report-histogrm", |s| s.histogram = true)
        .alias("report-histogram")
        .letter('H')
        .only(Tools::LAT, LATENCY_ONLY)
        .help("Print every sample, sorted"),
    OptionRow::flag(Section::Report, "report-unsorted", |s| s.unsorted = true)
        .letter('U')
        .only(Tools::LAT, " is Available only on Latency tests\n")
        .help("Print every sample, in order"),
    OptionRow::text(Section::Traffic, "atomic_type", "<type>", atomic)
        .letter('A')
        .only(
            Tools::ATOMIC,
            " You are not running the atomic_lat/bw test!\n \
             To change the atomic action type, you must run one of the atomic tests\n",
        )
        .choices(&["CMP_AND_SWAP", "FETCH_AND_ADD"])
        .symmetric()
        .default(|_| "FETCH_AND_ADD".into())
        .help("CMP_AND_SWAP or FETCH_AND_ADD"),
    OptionRow::flag(Section::Device, "dualport", |s| {
        s.dual_port = true;
        s.ib_port = 1;
    })
    .letter('O')
    .listed(Tools::BW)
    .symmetric()
    .help("Use ports 1 and 2 at once"),
    OptionRow::number(
        Section::Queues,
        "post_list",
        "<number>",
        ("Send Post List size", INT, Check::Range(1, i32::MAX as i64)),
        |s, v| s.post_list = v as u32,
    )
    .letter('l')
    .listed(Tools::BW)
    .default(|_| "1".into())
    .help("Send requests per post"),
    OptionRow::number(
        Section::Traffic,
        "duration",
        "<seconds>",
        ("Duration period", INT, Check::Positive),
        |s, v| {
            s.duration = v as u32;
            s.timed = true;
        },
    )
    .letter('D')
    .symmetric()
    .help("Run for so long instead of a number of messages"),
    OptionRow::number(
        Section::Traffic,
        "margin",
        "<seconds>",
        ("Margin", INT, Check::NonNegative),
        |s, v| s.margin = Some(v as u32),
    )
    .letter('f')
    .symmetric()
    .default(|_| "a quarter of the duration".into())
    .help("Do not measure so much at both ends of a timed run"),
    raw_ethernet::mac("source_mac", 'B'),
    raw_ethernet::mac("dest_mac", 'E'),
    OptionRow::text(Section::RawEthernet, "dest_ip", "<ip>", |s, v| {
        s.raw.old_names = true;
        s.raw.server_ip = Some(v.to_owned());
        Ok(())
    })
    .letter('J'),
    OptionRow::text(Section::RawEthernet, "source_ip", "<ip>", |s, v| {
        s.raw.old_names = true;
        s.raw.client_ip = Some(v.to_owned());
        Ok(())
    })
    .letter('j'),
    OptionRow::number(
        Section::RawEthernet,
        "dest_port",
        "<port>",
        ("Server Port", INT, Check::Any),
        |s, _| s.raw.old_names = true,
    )
    .letter('K'),
    OptionRow::number(
        Section::RawEthernet,
        "source_port",
        "<port>",
        ("Client Port", INT, Check::Any),
        |s, _| s.raw.old_names = true,
    )
    .letter('k'),
    OptionRow::text(Section::RawEthernet, "ethertype", "<type>", |_, v| {
        raw_ethernet::ethertype(v)
    }),
    OptionRow::text(Section::Report, "limit_bw", "<value>", |s, v| {
        s.minimum_bandwidth = Some(limit("-w", v, " Invalid Minimum BW Limit\n")?);
        Ok(())
    })
    .letter('w')
    .listed(Tools::BW)
    .help("Fail when the average bandwidth is lower, in the unit of the report"),
    OptionRow::text(Section::Report, "limit_msgrate", "<value>", |s, v| {
        s.minimum_message_rate = Some(limit("-y", v, " Invalid Minimum msgRate Limit\n")?);
        Ok(())
    })
    .letter('y')
    .listed(Tools::BW)
    .help("Fail when the message rate [Mpps] is lower; judged only with -w, which may be 0"),
    OptionRow::flag(Section::RawEthernet, "server", |_| {}).letter('Z'),
    OptionRow::flag(Section::RawEthernet, "client", |_| {}).letter('P'),
    OptionRow::flag(Section::RawEthernet, "mac_fwd", |_| {}).letter('v'),
    OptionRow::refuse(Section::Hardware, "use_rss", None, || {
        Refusal::option("RSS isn't supported\n")
    }),
    OptionRow::text(Section::Report, "report-counters", "<list>", |s, v| {
        s.counters = v.split(',').map(str::to_owned).collect();
        Ok(())
    })
    .letter('W')
    .help("After each row, by how much these counters of a kernel device's port have grown"),
];

fn mtu(value: i64) -> MtuRequest {
    let known = u32::try_from(value).ok().and_then(PathMtu::from_bytes);
    match (value, known) {
        (0, _) => MtuRequest::PortActive,
        (_, Some(mtu)) => MtuRequest::Exactly(mtu),
        (_, None) => MtuRequest::Invalid(value.clamp(i32::MIN.into(), i32::MAX.into()) as i32),
    }
}

fn size(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.size = number::size(text).map_err(|error| match error {
        SizeError::OutOfRange => Refusal::option(format!(
            " Message Size should be between 1 and {}\n",
            number::MAX_SIZE
        )),
        SizeError::Garbage => Refusal::stricter(format!(
            " Message size '{text}' is not understood: give bytes, or append K (1024) or M \
             (1048576), for example -s 4K\n"
        )),
    })?;
    settings.size_given = true;
    Ok(())
}

fn connection(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    let verb = settings.tool.verb;
    let rdma = matches!(verb, Verb::Read | Verb::Atomic);
    let (connection, refusal) = match text {
        "RC" => (Connection::Rc, None),
        "UC" => (
            Connection::Uc,
            rdma.then_some(" UC connection not possible in READ/ATOMIC verbs\n"),
        ),
        "UD" => (
            Connection::Ud,
            (verb != Verb::Send).then_some(" UD connection only possible in SEND verb\n"),
        ),
        "XRC" => (Connection::Xrc, None),
        "DC" => (Connection::Dc, None),
        "SRD" => (
            Connection::Srd,
            (verb == Verb::Atomic)
                .then_some(" SRD connection only possible in SEND/READ/WRITE/WRITE_IMM verbs\n"),
        ),
        "RawEth" => {
            return Err(Refusal::rule(
                " This test cannot run Raw Ethernet QPs (you have chosen RawEth as connection type\n \
                 For this we have raw_ethernet_bw test in this package.\n",
            ));
        }
        _ => {
            return Err(Refusal::rule(
                " Invalid Connection type. Please choose from {RC,UC,UD,XRC,DC,SRD}\n",
            ));
        }
    };
    settings.connection = connection;
    refusal.map_or(Ok(()), |text| Err(Refusal::rule(text)))
}

fn atomic(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.atomic = match text {
        "CMP_AND_SWAP" => Atomic::CompareSwap,
        "FETCH_AND_ADD" => Atomic::FetchAdd,
        _ => {
            return Err(Refusal::rule(
                " Invalid Atomic type! please choose from {CMP_AND_SWAP,FETCH_AND_ADD}\n",
            ));
        }
    };
    Ok(())
}

fn limit(option: &str, text: &str, negative: &'static str) -> Result<f32, Refusal> {
    match text.trim().parse::<f32>() {
        Ok(limit) if limit < 0.0 => Err(Refusal::option(negative)),
        Ok(limit) if !limit.is_nan() => Ok(limit),
        _ => Err(Refusal::stricter(format!(
            " The limit '{text}' of {option} is not a number: give one such as 92.5\n"
        ))),
    }
}

/// 16 numbers, decimal unless they begin with `0x`, of which the first makes
/// the GID a group's.
fn multicast_gid(text: &str) -> Option<Gid> {
    let numbers = text.split(':').map(|field| match field.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => field.parse().ok(),
    });
    let bytes: Vec<u8> = numbers.collect::<Option<_>>()?;
    let gid = Gid(bytes.try_into().ok()?);
    (gid.0[0] == 0xff).then_some(gid)
}
