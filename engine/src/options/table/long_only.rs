//! Options without a letter.

use verbs_sys::LinkLayer;

use super::cpu_list;
use super::raw_ethernet;
use super::row::{Check, OptionRow, Section, Tools};
use crate::options::number;
use crate::options::params::{MemorySource, Output, RateUnits};
use crate::options::refusal::Refusal;
use crate::options::settings::{Method, RateType, Settings};

const INT: &str = "int";

/// Before the accelerators, in the order of stock perftest.
pub(super) const FIRST: &[OptionRow] = &[
    OptionRow::text(Section::Device, "force-link", "<type>", force_link)
        .choices(&["IB", "ETHERNET"])
        .help("Link layer: IB or ETHERNET"),
    raw_ethernet::new_mac("remote_mac"),
    raw_ethernet::new_mac("local_mac"),
    OptionRow::text(Section::RawEthernet, "remote_ip", "<ip>", |s, v| {
        s.raw.new_names = true;
        s.raw.remote_ip = Some(v.to_owned());
        Ok(())
    }),
    OptionRow::text(Section::RawEthernet, "local_ip", "<ip>", |s, v| {
        s.raw.new_names = true;
        s.raw.local_ip = Some(v.to_owned());
        Ok(())
    }),
    OptionRow::number(
        Section::RawEthernet,
        "remote_port",
        "<port>",
        ("remote port", INT, Check::Any),
        |s, _| s.raw.new_names = true,
    ),
    OptionRow::number(
        Section::RawEthernet,
        "local_port",
        "<port>",
        ("local port", INT, Check::Any),
        |s, _| s.raw.new_names = true,
    ),
    OptionRow::flag(Section::Traffic, "run_infinitely", |s| {
        s.method = Method::Infinite;
    })
    .listed(Tools::BW)
    .symmetric()
    .help("Run for ever, one row per duration"),
    OptionRow::flag(Section::Report, "report_gbits", |s| s.gbits = true)
        .listed(Tools::BW)
        .symmetric()
        .help("Gb/s (10^9 bits) instead of MiB/s (2^20 bytes)"),
    OptionRow::flag(Section::Queues, "use-srq", |s| s.use_srq = true)
        .listed(Tools::SEND)
        .help("One shared receive queue; -r is its depth"),
    OptionRow::flag(Section::Queues, "no_lock", |s| s.no_lock = true)
        .help("One thread owns the queues, so they need no locks"),
    OptionRow::flag(Section::Queues, "use-null-mr", |s| s.null_mr = true)
        .listed(Tools::SEND.or(Tools::ATOMIC).not())
        .help("Null memory region as buffer"),
    OptionRow::flag(Section::Report, "report-both", |s| s.report_both = true)
        .listed(Tools::BW)
        .help("With -b: tables of both directions, too"),
    OptionRow::flag(Section::Traffic, "reversed", |s| s.reversed = true)
        .listed(Tools::BW)
        .symmetric()
        .help("Traffic from the server to the client"),
    OptionRow::number(
        Section::Device,
        "pkey_index",
        "<index>",
        ("Pkey index", INT, Check::Range(0, 65535)),
        |s, v| s.pkey_index = v as u16,
    )
    .default(|_| "0".into())
    .help("Partition key, by its index"),
    OptionRow::flag(Section::RawEthernet, "tcp", |_| {}),
    OptionRow::number(
        Section::Rate,
        "burst_size",
        "<messages>",
        ("Burst size", INT, Check::NonNegative),
        |s, v| s.burst_size = v as u32,
    )
    .listed(Tools::BW)
    .default(|_| "the send queue's depth".into())
    .help("Messages sent back to back"),
    OptionRow::number(
        Section::Rate,
        "typical_pkt_size",
        "<bytes>",
        ("Typical pkt size", INT, Check::Range(0, 0xffff)),
        |s, v| s.typical_packet_size = v as u32,
    )
    .listed(Tools::BW)
    .help("For packet pacing, which raw Ethernet only has"),
    OptionRow::text(Section::Rate, "rate_limit", "<rate>", rate_limit)
        .listed(Tools::BW)
        .help("Send no more than this"),
    OptionRow::text(Section::Rate, "rate_limit_type", "<type>", rate_type)
        .listed(Tools::BW)
        .choices(&["HW", "SW"])
        .default(|_| "HW, else SW".into())
        .help("HW (by the adapter) or SW (by the sender)"),
    OptionRow::text(Section::Rate, "rate_units", "<unit>", rate_units)
        .listed(Tools::BW)
        .choices(&["M", "g", "p"])
        .default(|_| "g".into())
        .help("M (MiB/s), g (Gb/s) or p (packets/s)"),
    OptionRow::text(Section::Report, "output", "<what>", output)
        .choices(&["bandwidth", "message_rate", "latency"])
        .help("Print one number: bandwidth, message_rate or latency"),
    OptionRow::flag(Section::Report, "cpu_util", |s| s.cpu_utilization = true)
        .help("CPU utilization; with -D"),
    OptionRow::flag(Section::Report, "out_json", |s| s.json = true).help("Save the report as JSON"),
    OptionRow::text(Section::Report, "out_json_file", "<file>", |s, v| {
        s.json_file = v.to_owned();
        Ok(())
    })
    .default(|_| Settings::DEFAULT_JSON_FILE.into())
    .help("Name of that file; with --out_json"),
    OptionRow::number(
        Section::Traffic,
        "latency_gap",
        "<us>",
        ("Latency gap time", INT, Check::NonNegative),
        |s, v| s.latency_gap = v as u32,
    )
    .listed(Tools::LAT)
    .default(|_| "0".into())
    .help("Wait before each message, in microseconds"),
    OptionRow::text(Section::Device, "flow_label", "<list>", flow_labels)
        .help("Flow labels of the GRH, separated by commas, for the queue pairs in turn"),
    OptionRow::number(
        Section::Connection,
        "retry_count",
        "<number>",
        ("Retry Count", INT, Check::NonNegative),
        |s, v| s.cm_retry_count = v as u32,
    )
    .default(|_| "7".into())
    .help("Retries of rdma_cm connections"),
    OptionRow::flag(Section::Connection, "dont_xchg_versions", |s| {
        s.dont_exchange_versions = true;
    })
    .help("Always fails, as in every perftest since 5.70"),
    OptionRow::text(Section::Traffic, "payload_file_path", "<file>", |s, v| {
        s.memory.payload_file = Some(v.to_owned());
        Ok(())
    })
    .help("Contents of the buffer: words 0x########, separated by commas"),
];

/// After the accelerators, in the order of stock perftest.
pub(super) const SECOND: &[OptionRow] = &[
    OptionRow::text(Section::Queues, "mmap", "<file>", |s, v| {
        s.mmap = Some(v.to_owned());
        Ok(())
    })
    .help("Map this file as buffer"),
    OptionRow::number(
        Section::Queues,
        "mmap-offset",
        "<offset>",
        ("mmap offset", "unsigned long", Check::Any),
        |s, v| s.mmap_offset = v as u64,
    )
    .help("Map it from this offset; with --mmap"),
    OptionRow::flag(Section::Device, "ipv6", |s| s.prefer_ipv6_gid = true).help("Prefer IPv6 GIDs"),
    OptionRow::flag(Section::Connection, "ipv6-addr", |s| s.ipv6_control = true)
        .symmetric()
        .help("Control connection over IPv6"),
    OptionRow::flag(Section::RawEthernet, "raw_ipv6", |s| s.raw.ipv6 = true),
    OptionRow::flag(Section::Report, "report-per-port", |s| {
        s.report_per_port = true;
    })
    .listed(Tools::BW)
    .help("Bandwidth of each port; with -D and -O"),
    OptionRow::flag(Section::Queues, "odp", |s| s.memory.on_demand = true)
        .help("On-demand paging memory region"),
    OptionRow::flag(Section::Queues, "use_hugepages", |s| {
        s.memory.source = MemorySource::HugePages;
    })
    .help("Buffer of huge pages"),
    OptionRow::flag(Section::Queues, "use_old_post_send", |s| {
        s.old_post_send = true;
    })
    .help("Shown as 'ibv_wr* API: OFF'; there is one way to post here"),
    OptionRow::flag(Section::RawEthernet, "promiscuous", |_| {}),
    OptionRow::flag(Section::RawEthernet, "sniffer", |_| {}),
    OptionRow::flag(Section::RawEthernet, "raw_mcast", |_| {}),
    OptionRow::flag(Section::Queues, "mr_per_qp", |s| s.mr_per_qp = true)
        .listed(Tools::BW)
        .help("One buffer and memory region per queue pair"),
    OptionRow::number(
        Section::Device,
        "dlid",
        "<lid>",
        ("dlid", "uint16_t", Check::Range(0, 65535)),
        |s, v| s.destination_lid = (v != 0).then_some(v as u16),
    )
    .help("Destination LID instead of the peer's"),
    OptionRow::number(
        Section::Device,
        "tclass",
        "<value>",
        ("traffic class", "uint16_t", Check::Range(0, 255)),
        |s, v| s.traffic_class = v as u8,
    )
    .default(|_| "0".into())
    .help("Traffic class of the GRH, 0 to 255"),
    OptionRow::number(
        Section::Traffic,
        "wait_destroy",
        "<seconds>",
        ("wait_destroy", "uint32_t", Check::Range(0, u32::MAX as i64)),
        |s, v| s.wait_destroy = v as u32,
    )
    .default(|_| "0".into())
    .help("Sleep before the resources are released"),
    raw_flow("flows", "flows"),
    raw_flow("flows_burst", "flows burst"),
    OptionRow::number(
        Section::RawEthernet,
        "reply_every",
        "<number>",
        ("reply_every", "uint32_t", Check::Range(0, u32::MAX as i64)),
        |_, _| {},
    ),
    OptionRow::flag(Section::Traffic, "perform_warm_up", |s| s.warm_up = true)
        .help("Some messages before the measurement; not with SEND"),
    OptionRow::flag(Section::RawEthernet, "vlan_en", |_| {}),
    OptionRow::number(
        Section::RawEthernet,
        "vlan_pcp",
        "<pcp>",
        ("VLAN PCP", "uint32_t", Check::Range(0, 8)),
        |_, _| {},
    ),
    OptionRow::number(
        Section::Queues,
        "recv_post_list",
        "<number>",
        (
            "Receive Post List size",
            INT,
            Check::Range(1, i32::MAX as i64),
        ),
        |s, v| s.recv_post_list = v as u32,
    )
    .listed(Tools::BW)
    .default(|_| "1".into())
    .help("Receive requests per post"),
    OptionRow::flag(Section::Hardware, "aes_xts", |s| s.crypto.aes_xts = true),
    OptionRow::flag(Section::Hardware, "encrypt_on_tx", |s| {
        s.crypto.encrypt_on_tx = true;
    }),
    OptionRow::flag(Section::Hardware, "sig_before", |s| {
        s.crypto.sig_before = true;
    }),
    crypto_number("aes_block_size"),
    OptionRow::text(Section::Hardware, "kek_path", "<file>", |s, _| {
        s.crypto.kek = true;
        Ok(())
    }),
    OptionRow::text(Section::Hardware, "credentials_path", "<file>", |s, _| {
        s.crypto.credentials = true;
        Ok(())
    }),
    crypto_number("data_enc_keys_number"),
    OptionRow::text(
        Section::Hardware,
        "data_enc_key_app_path",
        "<file>",
        |s, _| {
            s.crypto.key_app = true;
            Ok(())
        },
    ),
    OptionRow::number(
        Section::Hardware,
        "log_dci_streams",
        "<log2>",
        ("log_dci_streams", "uint16_t", Check::Range(0, 65535)),
        |s, v| s.dci_streams = v as u16,
    ),
    OptionRow::number(
        Section::Hardware,
        "log_active_dci_streams",
        "<log2>",
        ("log_active_dci_streams", "uint16_t", Check::Range(0, 65535)),
        |s, v| s.active_dci_streams = Some(v as u16),
    ),
    OptionRow::flag(Section::Queues, "disable_pcie_relaxed", |s| {
        s.disable_pcie_relaxed = true;
    })
    .help("No relaxed ordering of the adapter's accesses"),
    OptionRow::text(Section::Connection, "bind_source_ip", "<ip>", |s, v| {
        s.bind_source_ip = Some(v.to_owned());
        Ok(())
    })
    .default(|_| "by the routing table".into())
    .help("Local address of the control connection"),
    OptionRow::flag(Section::Traffic, "write_with_imm", |s| s.with_imm = true)
        .only(
            Tools::WRITE,
            "Write_with_imm can only be used with write_lat and write_bw tests\n",
        )
        .symmetric()
        .help("WRITE with immediate data"),
    OptionRow::flag(Section::Traffic, "send_with_imm", |s| s.with_imm = true)
        .only(
            Tools::SEND,
            "Send_with_imm can only be used with send_lat and send_bw tests\n",
        )
        .help("SEND with immediate data"),
    OptionRow::flag(Section::Connection, "connectionless", |s| {
        s.connectionless = true;
    })
    .listed(Tools::SEND.and(Tools::BW))
    .help("Multicast server without control connection"),
    OptionRow::number(
        Section::Queues,
        "cqe_poll",
        "<number>",
        ("CQE Poll", "uint16_t", Check::Range(1, 65535)),
        |s, v| {
            s.cqe_poll = Some(v as u16);
            s.dynamic_polling = false;
        },
    )
    .default(|_| "16".into())
    .help("Completions per poll"),
    OptionRow::flag(Section::Queues, "disable_dynamic_polling", |s| {
        s.dynamic_polling = false;
    })
    .listed(Tools::BW)
    .help("Do not adapt the number of completions per poll"),
    OptionRow::flag(Section::Traffic, "data_validation", |s| {
        s.data_validation = true;
    })
    .listed(Tools::BW)
    .symmetric()
    .help(
        "Check every byte that arrives, a chunk of -t messages at a time; the exit code is not 0 \
             when one is wrong. Both ends need the same -t",
    ),
    OptionRow::flag(Section::Traffic, "data_validation_debug", |_| {})
        .listed(Tools::BW)
        .help("More about that check: nothing here"),
    OptionRow::text(Section::Queues, "pin_cores", "<list>", |s, v| {
        s.pin_cores = cpu_list::parse(v, s.cpus)?;
        Ok(())
    })
    .help("CPUs to run on, for example 0-3,8"),
];

const fn raw_flow(long: &'static str, name: &'static str) -> OptionRow {
    OptionRow::number(
        Section::RawEthernet,
        long,
        "<number>",
        (name, "uint16_t", Check::Range(1, 65535)),
        |_, _| {},
    )
}

const fn crypto_number(long: &'static str) -> OptionRow {
    OptionRow::number(
        Section::Hardware,
        long,
        "<number>",
        (long, "uint16_t", Check::Range(0, 65535)),
        |_, _| {},
    )
}

/// Stock perftest compares the first letters only, in any case.
fn force_link(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    let begins = |prefix: &str| {
        text.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    settings.force_link = Some(if begins("IB") {
        LinkLayer::InfiniBand
    } else if begins("Ethernet") {
        LinkLayer::Ethernet
    } else {
        return Err(Refusal::option(
            "Invalid link layer value should be IB or ETHERNET.\n",
        ));
    });
    Ok(())
}

fn rate_limit(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    match text.trim().parse::<f64>() {
        Ok(rate) if rate > 0.0 => {
            settings.rate = Some(text.to_owned());
            settings.rate_value = rate;
            settings.rate_type.get_or_insert(RateType::Hardware);
            Ok(())
        }
        _ => Err(Refusal::option(
            " Rate limit must be non-negative floating point number\n",
        )),
    }
}

fn rate_type(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.rate_type_given = true;
    settings.rate_type = Some(match text {
        "SW" => RateType::Software,
        "HW" => RateType::Hardware,
        "PP" => RateType::PacketPacing,
        _ => {
            return Err(Refusal::option(
                " Invalid rate limit type flag. Please use HW, SW or PP.\n",
            ));
        }
    });
    Ok(())
}

fn rate_units(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.rate_units = match text {
        "M" => RateUnits::MebibytesPerSecond,
        "g" => RateUnits::GigabitsPerSecond,
        "p" => RateUnits::PacketsPerSecond,
        _ => {
            return Err(Refusal::option(
                " Invalid rate limit units. Please use M,g or p\n",
            ));
        }
    };
    Ok(())
}

fn output(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.output = match text {
        "bandwidth" => Output::Bandwidth,
        "message_rate" => Output::MessageRate,
        "latency" => Output::Latency,
        _ => {
            return Err(Refusal::option(
                " Invalid verbosity level output flag. Please use bandwidth, latency, \
                 message_rate\n",
            ));
        }
    };
    Ok(())
}

/// Flow labels have 20 bits (IBTA volume 1, 8.3).
fn flow_labels(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.flow_labels = text
        .split(',')
        .map(|label| match number::whole(label) {
            Some(value @ 0..=0xf_ffff) => Ok(value as u32),
            _ => Err(Refusal::stricter(format!(
                " Flow label '{label}' in --flow_label is not a number from 0 to 0xfffff: \
                 separate the labels by commas only\n"
            ))),
        })
        .collect::<Result<_, _>>()?;
    Ok(())
}
