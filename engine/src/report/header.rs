//! The header: the effective parameters of a run, after the negotiation.

use verbs_sys::LinkLayer;

use super::notes::LINE;
use super::style::Style;
use crate::exchange::{Atomic, Connection, Measurement, Verb};

/// Everything the header and the report file say about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderInfo {
    /// The operation.
    pub verb: Verb,
    /// Which atomic operation; shown for ATOMIC only.
    pub atomic: Atomic,
    /// Bandwidth or latency.
    pub measurement: Measurement,
    /// Traffic both ways.
    pub duplex: bool,
    /// Multicast (`-g`).
    pub multicast: bool,
    /// Completion vector, with `-e`.
    pub events: Option<u32>,
    /// Two ports (`-O`).
    pub dual_port: bool,
    /// Device name.
    pub device: String,
    /// QPs after all doublings.
    pub qps: u32,
    /// The device's transport.
    pub transport: Transport,
    /// Transport service.
    pub connection: Connection,
    /// `--use-srq`.
    pub srq: bool,
    /// PCIe relaxed ordering of the memory regions.
    pub relaxed_ordering: Feature,
    /// Relaxed ordering on a processor known to get it wrong: two lines of warning.
    pub relaxed_ordering_warning: bool,
    /// `--no_lock`.
    pub lock_free: Feature,
    /// Posting by libibverbs' `ibv_wr_*` (its equivalent here).
    pub wr_api: bool,
    /// Out-of-order placement (mlx5).
    pub enhanced_reorder: bool,
    /// Send queue depth, on an end that posts operations.
    pub tx_depth: Option<u32>,
    /// WRs per post; shown above 1.
    pub post_list: u32,
    /// Receive WRs per post; shown above 1.
    pub recv_post_list: u32,
    /// Receive queue depth, on an end that posts receives.
    pub rx_depth: Option<u32>,
    /// WRs per completion; bandwidth only.
    pub cq_moderation: Option<u32>,
    /// Completions per poll; bandwidth only.
    pub cqe_poll: Option<CqePoll>,
    /// Path MTU in bytes.
    pub mtu: u32,
    /// Link layer.
    pub link: LinkLayer,
    /// GID index, if set.
    pub gid_index: Option<u32>,
    /// GID index of the second port, if set; shown with two ports.
    pub gid_index2: Option<u32>,
    /// Inline limit or outstanding reads, as the verb has it.
    pub limit: Limit,
    /// The connection manager connects the QPs (`-R`).
    pub cm_qps: bool,
    /// The dialogue runs over the connection manager (`-z`, `-R`).
    pub cm_exchange: bool,
    /// Type of service, if set; shown with [`HeaderInfo::cm_qps`].
    pub tos: Option<u32>,
    /// The serving end of `-R` says here what it waits for.
    pub awaits_cm_client: bool,
    /// NUMA node, if known.
    pub numa_node: Option<u32>,
}

/// A build- or device-dependent feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// In use.
    On,
    /// Not in use.
    Off,
    /// Not available.
    Unsupported,
}

impl Feature {
    /// As stock shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "ON",
            Self::Off => "OFF",
            Self::Unsupported => "Unsupported",
        }
    }
}

/// The transport of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// InfiniBand and RoCE.
    Ib,
    /// iWARP.
    Iwarp,
    /// Anything else.
    Unknown,
}

impl Transport {
    /// As stock shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ib => "IB",
            Self::Iwarp => "IW",
            Self::Unknown => "Unknown",
        }
    }
}

/// A link layer as stock shows it.
pub fn link_name(link: LinkLayer) -> &'static str {
    match link {
        LinkLayer::InfiniBand => "IB",
        LinkLayer::Ethernet => "Ethernet",
        LinkLayer::Unspecified => "Unknown",
    }
}

/// How many completions a poll asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CqePoll {
    /// As the completions come.
    Dynamic,
    /// Always so many.
    Fixed(u16),
}

/// The line that depends on the verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Largest inline message in bytes (SEND, WRITE).
    Inline(u32),
    /// Outstanding reads (READ, ATOMIC).
    OutstandingReads(u32),
}

pub(super) fn on_off(on: bool) -> &'static str {
    if on { "ON" } else { "OFF" }
}

/// The name of the exchange method.
pub(super) fn exchange_name(over_cm: bool) -> &'static str {
    if over_cm { "rdma_cm" } else { "Ethernet" }
}

impl HeaderInfo {
    /// The words of the title.
    pub(super) fn title_words(&self) -> Vec<&'static str> {
        let mut words = vec![match self.verb {
            Verb::Send => "Send",
            Verb::SendImm => "Send_imm",
            Verb::Write => "RDMA_Write",
            Verb::WriteImm => "RDMA_Write_imm",
            Verb::Read => "RDMA_Read",
            Verb::Atomic => "Atomic",
        }];
        if self.verb == Verb::Atomic {
            words.push(self.atomic.name());
        }
        match self.measurement {
            Measurement::Bandwidth => {
                if self.duplex {
                    words.push("Bidirectional");
                }
                if self.post_list > 1 {
                    words.push("Post List");
                }
                words.push("BW");
            }
            Measurement::Latency => words.push("Latency"),
        }
        if self.multicast {
            words.push("Multicast");
        }
        words.push("Test");
        words
    }

    /// The header with its two lines.
    pub fn render(&self, style: Style) -> String {
        let mut text = String::from(LINE);
        let mut put = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        put(format!("{:20}{}", "", self.title_words().join(" ")));
        if let Some(vector) = self.events {
            put(format!(
                " Test with events. Using {}_comp{vector}",
                self.device
            ));
        }
        if self.multicast {
            put(" MultiCast runs on UD!".to_owned());
        }
        put(format!(
            " Dual-port       : {}\t\tDevice         : {}",
            on_off(self.dual_port),
            self.device
        ));
        put(format!(
            " Number of qps   : {}\t\tTransport type : {}",
            self.qps,
            self.transport.name()
        ));
        put(format!(
            " Connection type : {}\t\tUsing SRQ      : {}",
            self.connection.name(),
            on_off(self.srq)
        ));
        put(self.ordering_line(style));
        if self.relaxed_ordering_warning {
            put(" WARNING: CPU is not PCIe relaxed ordering compliant.".to_owned());
            put(" WARNING: You should disable PCIe RO with `--disable_pcie_relaxed` for both server and client.".to_owned());
        }
        let reorder = match style.has_newer_fields() {
            true => format!(
                "\t\tUsing Enhanced Reorder      : {}",
                on_off(self.enhanced_reorder)
            ),
            false => String::new(),
        };
        put(format!(
            " ibv_wr* API     : {}{reorder}",
            on_off(self.wr_api)
        ));
        for line in self.queue_lines(style) {
            put(line);
        }
        put(format!(" Mtu             : {}[B]", self.mtu));
        put(format!(" Link type       : {}", link_name(self.link)));
        if let Some(index) = self.gid_index {
            put(format!(" GID index       : {index}"));
        }
        if let Some(index) = self.gid_index2.filter(|_| self.dual_port) {
            put(format!(" GID index2      : {index}"));
        }
        put(match self.limit {
            Limit::Inline(bytes) => format!(" Max inline data : {bytes}[B]"),
            Limit::OutstandingReads(count) => format!(" Outstand reads  : {count}"),
        });
        put(format!(" rdma_cm QPs\t : {}", on_off(self.cm_qps)));
        put(self.exchange_lines());
        if let Some(node) = self.numa_node.filter(|_| style.has_newer_fields()) {
            put(format!(" NUMA node       : {node}"));
        }
        text.push_str(LINE);
        text
    }

    fn ordering_line(&self, style: Style) -> String {
        let ordering = format!(" PCIe relax order: {}", self.relaxed_ordering.name());
        if !style.has_newer_fields() {
            return ordering;
        }
        // Stock's one line for builds that have neither is spaced differently.
        let lock_free = match (self.relaxed_ordering, self.lock_free) {
            (Feature::Unsupported, Feature::Unsupported) => "Lock-free\t: Unsupported".to_owned(),
            (_, feature) => format!("Lock-free      : {}", feature.name()),
        };
        format!("{ordering}\t\t{lock_free}")
    }

    /// Queue depths and moderation, as far as they apply.
    fn queue_lines(&self, style: Style) -> Vec<String> {
        let above_one = |count: u32| Some(count).filter(|count| *count > 1);
        let mut lines: Vec<String> = [
            ("TX depth        ", self.tx_depth),
            ("Post List       ", above_one(self.post_list)),
            ("Recv Post List  ", above_one(self.recv_post_list)),
            ("RX depth        ", self.rx_depth),
            ("CQ Moderation   ", self.cq_moderation),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some(format!(" {name}: {}", value?)))
        .collect();
        let batch = self.cqe_poll.filter(|_| style.has_newer_fields());
        lines.extend(batch.map(|batch| match batch {
            CqePoll::Dynamic => " CQE Poll Batch  : Dynamic".to_owned(),
            CqePoll::Fixed(count) => format!(" CQE Poll Batch  : {count}"),
        }));
        lines
    }

    fn exchange_lines(&self) -> String {
        let mut text = format!(" Data ex. method : {}", exchange_name(self.cm_exchange));
        if let Some(tos) = self.tos.filter(|_| self.cm_qps) {
            text.push_str(&format!(" \tTOS    : {tos}"));
        }
        if self.awaits_cm_client {
            text.push_str(&format!(
                "\n{LINE} Waiting for client rdma_cm QP to connect\n \
                 Please run the same command with the IB/RoCE interface IP"
            ));
        }
        text
    }
}
