//! The command line as it was given, before the rules.

use std::time::Duration;

use verbs_sys::{Gid, LinkLayer};

use super::params::{MemoryParams, MtuRequest, Output, RateUnits, Verbosity};
use crate::report::Style;
use crate::words::{Atomic, Connection};
use crate::words::{Tool, Verb};

/// Which sizes and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// One size.
    Regular,
    /// `-a`.
    AllSizes,
    /// `--run_infinitely`, which wins over `-a`.
    Infinite,
}

/// `--rate_limit_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateType {
    /// Static rate of the QP.
    Hardware,
    /// The sender's loop.
    Software,
    /// Packet pacing, raw Ethernet only.
    PacketPacing,
}

/// Values in the order of stock perftest's table, defaults until set.
///
/// The rules change them in place, one after the other, exactly because
/// later rules of stock perftest look at what earlier ones left behind.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) tool: Tool,
    /// Long names of the options given, in order.
    pub(super) given: Vec<&'static str>,
    pub(super) host: Option<String>,

    pub(super) tcp_port: u16,
    pub(super) device: Option<String>,
    pub(super) ib_port: u8,
    pub(super) mtu: MtuRequest,
    pub(super) size: u64,
    pub(super) size_given: bool,
    pub(super) method: Method,
    pub(super) iterations: u64,
    pub(super) tx_depth: u32,
    pub(super) rx_depth: u32,
    pub(super) qp_timeout: u8,
    pub(super) service_level: u8,
    pub(super) gid_index: Option<u8>,
    pub(super) ignore_cpu_frequency: bool,
    pub(super) connection: Connection,
    pub(super) qps: u32,
    pub(super) events: bool,
    pub(super) completion_vector: Option<u32>,
    pub(super) inline_size: Option<u32>,
    pub(super) outstanding_reads: Option<u32>,
    pub(super) multicast: bool,
    pub(super) mgid: Option<Gid>,
    pub(super) rdma_cm: bool,
    pub(super) rdma_cm_qps: bool,
    pub(super) type_of_service: Option<u8>,
    pub(super) hop_limit: u8,
    pub(super) bidirectional: bool,
    pub(super) cq_mod: u32,
    pub(super) cq_mod_given: bool,
    pub(super) no_peak: bool,
    pub(super) cycles: bool,
    pub(super) histogram: bool,
    pub(super) unsorted: bool,
    pub(super) atomic: Atomic,
    pub(super) dual_port: bool,
    pub(super) post_list: u32,
    pub(super) recv_post_list: u32,
    /// A clock ends the run; set by `-D`, later by `--run_infinitely`.
    pub(super) timed: bool,
    pub(super) duration: u32,
    pub(super) margin: Option<u32>,
    pub(super) minimum_bandwidth: Option<f32>,
    pub(super) minimum_message_rate: Option<f32>,

    pub(super) force_link: Option<LinkLayer>,
    pub(super) gbits: bool,
    pub(super) use_srq: bool,
    pub(super) no_lock: bool,
    pub(super) null_mr: bool,
    pub(super) report_both: bool,
    pub(super) report_per_port: bool,
    pub(super) reversed: bool,
    pub(super) pkey_index: u16,
    pub(super) burst_size: u32,
    pub(super) typical_packet_size: u32,
    pub(super) rate: Option<String>,
    pub(super) rate_value: f64,
    pub(super) rate_type: Option<RateType>,
    /// `--rate_limit_type` was given, not implied.
    pub(super) rate_type_given: bool,
    pub(super) rate_units: RateUnits,
    pub(super) output: Output,
    pub(super) style: Style,
    pub(super) cpu_utilization: bool,
    pub(super) json: bool,
    pub(super) json_file: String,
    pub(super) latency_gap: u32,
    pub(super) flow_labels: Vec<u32>,
    pub(super) cm_retry_count: u32,
    pub(super) dont_exchange_versions: bool,
    pub(super) memory: MemoryParams,
    pub(super) mmap: Option<String>,
    pub(super) mmap_offset: u64,
    pub(super) prefer_ipv6_gid: bool,
    pub(super) ipv6_control: bool,
    pub(super) old_post_send: bool,
    pub(super) mr_per_qp: bool,
    pub(super) destination_lid: Option<u16>,
    pub(super) traffic_class: u8,
    pub(super) wait_destroy: u32,
    pub(super) warm_up: bool,
    pub(super) crypto: Crypto,
    pub(super) dci_streams: u16,
    pub(super) active_dci_streams: Option<u16>,
    pub(super) disable_pcie_relaxed: bool,
    pub(super) bind_source_ip: Option<String>,
    pub(super) with_imm: bool,
    pub(super) connectionless: bool,
    pub(super) cqe_poll: Option<u16>,
    pub(super) dynamic_polling: bool,
    pub(super) data_validation: bool,
    pub(super) cpus: u32,
    pub(super) pin_cores: Vec<u32>,
    pub(super) raw: RawEthernet,
    pub(super) pcie_mapping: Option<&'static str>,

    pub(super) loopback: bool,
    pub(super) userspace: bool,
    pub(super) capture: Option<String>,
    pub(super) peer_timeout: Duration,
    pub(super) connect_retry: Duration,
    pub(super) seed: Option<u64>,
    pub(super) percentiles: Vec<f64>,
    pub(super) hdr_file: Option<String>,
    pub(super) counters: Vec<String>,
    pub(super) repeat: u32,
    pub(super) interval: Option<Duration>,
    pub(super) verbosity: Verbosity,
}

/// The encryption options of mlx5, as far as the rules look at them.
#[derive(Clone, Debug, Default)]
pub(super) struct Crypto {
    pub(super) aes_xts: bool,
    pub(super) encrypt_on_tx: bool,
    pub(super) sig_before: bool,
    pub(super) kek: bool,
    pub(super) credentials: bool,
    pub(super) key_app: bool,
}

/// Raw Ethernet options: checked, then unused by the eight tools.
#[derive(Clone, Debug, Default)]
pub(super) struct RawEthernet {
    /// `-B -E -J -j -K -k` were used.
    pub(super) old_names: bool,
    /// `--local_* --remote_*` were used.
    pub(super) new_names: bool,
    pub(super) ipv6: bool,
    pub(super) server_ip: Option<String>,
    pub(super) client_ip: Option<String>,
    pub(super) local_ip: Option<String>,
    pub(super) remote_ip: Option<String>,
}

impl Settings {
    /// Defaults of `tool` on a machine with `cpus` configured CPUs.
    pub(super) fn new(tool: Tool, cpus: u32) -> Settings {
        Settings {
            tool,
            given: Vec::new(),
            host: None,
            tcp_port: 18515,
            device: None,
            ib_port: 1,
            mtu: MtuRequest::PortActive,
            size: u64::from(tool.default_size()),
            size_given: false,
            method: Method::Regular,
            iterations: tool.default_iterations(),
            tx_depth: tool.default_tx_depth(),
            rx_depth: tool.default_rx_depth(),
            qp_timeout: 14,
            service_level: 0,
            gid_index: None,
            ignore_cpu_frequency: false,
            connection: Connection::Rc,
            qps: 1,
            events: false,
            completion_vector: None,
            inline_size: None,
            outstanding_reads: None,
            multicast: false,
            mgid: None,
            rdma_cm: false,
            rdma_cm_qps: false,
            type_of_service: None,
            hop_limit: Settings::DEFAULT_HOP_LIMIT,
            bidirectional: false,
            cq_mod: 100,
            cq_mod_given: false,
            no_peak: false,
            cycles: false,
            histogram: false,
            unsorted: false,
            atomic: Atomic::FetchAdd,
            dual_port: false,
            post_list: 1,
            recv_post_list: 1,
            timed: false,
            duration: 5,
            margin: None,
            minimum_bandwidth: None,
            minimum_message_rate: None,
            force_link: None,
            gbits: false,
            use_srq: false,
            no_lock: false,
            null_mr: false,
            report_both: false,
            report_per_port: false,
            reversed: false,
            pkey_index: 0,
            burst_size: 0,
            typical_packet_size: 0,
            rate: None,
            rate_value: 0.0,
            rate_type: None,
            rate_type_given: false,
            rate_units: RateUnits::GigabitsPerSecond,
            output: Output::Full,
            style: Style::default(),
            cpu_utilization: false,
            json: false,
            json_file: Settings::DEFAULT_JSON_FILE.to_owned(),
            latency_gap: 0,
            flow_labels: Vec::new(),
            cm_retry_count: 7,
            dont_exchange_versions: false,
            memory: MemoryParams::default(),
            mmap: None,
            mmap_offset: 0,
            prefer_ipv6_gid: false,
            ipv6_control: false,
            old_post_send: false,
            mr_per_qp: false,
            destination_lid: None,
            traffic_class: 0,
            wait_destroy: 0,
            warm_up: false,
            crypto: Crypto::default(),
            dci_streams: 0,
            active_dci_streams: None,
            disable_pcie_relaxed: false,
            bind_source_ip: None,
            with_imm: false,
            connectionless: false,
            cqe_poll: None,
            dynamic_polling: true,
            data_validation: false,
            cpus,
            pin_cores: Vec::new(),
            raw: RawEthernet::default(),
            pcie_mapping: None,
            loopback: false,
            userspace: false,
            capture: None,
            peer_timeout: Duration::from_secs(30),
            connect_retry: Duration::ZERO,
            seed: None,
            percentiles: Vec::new(),
            hdr_file: None,
            counters: Vec::new(),
            repeat: 1,
            interval: None,
            verbosity: Verbosity::Quiet,
        }
    }

    /// Default of `-L`.
    pub(super) const DEFAULT_HOP_LIMIT: u8 = 64;
    /// Name of the report file without `--out_json_file`.
    pub(super) const DEFAULT_JSON_FILE: &'static str = "perftest_out.json";

    pub(super) fn was_given(&self, long: &str) -> bool {
        self.given.contains(&long)
    }

    /// The traffic server: the process without a host, or with `--reversed`
    /// the one that has one.
    pub(super) fn is_traffic_server(&self) -> bool {
        self.host.is_none() != self.reversed
    }

    /// SEND, SEND with immediate, WRITE with immediate.
    pub(super) fn has_receive_completions(&self) -> bool {
        self.tool.verb == Verb::Send || self.with_imm
    }

    /// WRITE without immediate data.
    pub(super) fn is_plain_write(&self) -> bool {
        self.tool.verb == Verb::Write && !self.with_imm
    }
}
