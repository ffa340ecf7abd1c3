//! The resolved parameters of one run.

use std::time::Duration;

use verbs_sys::{Gid, LinkLayer, PathMtu};

use crate::report::Style;
use crate::stats::Distribution;
use crate::words::{Atomic, Connection, Measurement, Tool, Verb};

/// What `-m` asked for. A number that is no MTU is no parse error: stock
/// perftest complains when it sees the port and runs with the active MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuRequest {
    /// No `-m`, or `-m 0`: the port's active MTU.
    #[default]
    PortActive,
    /// One of the five.
    Exactly(PathMtu),
    /// Any other number.
    Invalid(i32),
}

/// Traffic role. Without `--reversed` the process that was given a host is
/// the client; with it the roles are swapped, not the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Passive side of a unidirectional test.
    Server,
    /// Side that sends, reads or swaps.
    Client,
}

/// Message sizes of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// `-s`, or the default: bytes, 1 to 2147483647.
    One(u32),
    /// `-a`: 2 to this many bytes in powers of two: 8388608, or for UD the
    /// path MTU.
    All {
        /// The last size.
        largest: u32,
    },
}

impl Sizes {
    /// Largest message under `-a`, in bytes.
    pub const LARGEST_OF_ALL: u32 = 1 << 23;

    /// How many sizes there are.
    pub const fn count(self) -> u32 {
        match self {
            Sizes::One(_) => 1,
            Sizes::All { largest } => largest.ilog2(),
        }
    }

    /// Bytes of buffer one message needs at most.
    pub const fn largest(self) -> u32 {
        match self {
            Sizes::One(bytes) => bytes,
            Sizes::All { largest } => largest,
        }
    }
}

/// How long the run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A number of messages per queue pair (`-n`), at least 5.
    Iterations(u64),
    /// `-D`: seconds, of which `margin` at each end are not measured.
    /// `duration > 2 * margin` holds.
    Timed {
        /// Whole run, in seconds.
        duration: u32,
        /// Not measured at the beginning and at the end, in seconds each.
        margin: u32,
    },
    /// `--run_infinitely`: one row per `interval` seconds, until interrupted.
    Infinite {
        /// Seconds between rows.
        interval: u32,
    },
}

impl Length {
    /// True when a clock ends the run, or nothing does.
    pub const fn is_timed(self) -> bool {
        !matches!(self, Length::Iterations(_))
    }
}

/// How many completions one poll asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// Adapts while running.
    Dynamic,
    /// Always this many: 16, 64, or the value of `--cqe_poll`.
    Fixed(u16),
}

/// Unit of `--rate_limit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateUnits {
    /// 2^20 bytes per second (`M`).
    MebibytesPerSecond,
    /// 10^9 bits per second (`g`).
    #[default]
    GigabitsPerSecond,
    /// Messages per second (`p`).
    PacketsPerSecond,
}

/// Who limits the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimiter {
    /// The sender's loop.
    Software,
    /// The static rate of the QP; by default, so that the software limiter
    /// takes over, with a warning, when the QP or the link refuses.
    HardwareOrSoftware,
    /// The static rate of the QP or failure (`--rate_limit_type=HW`).
    Hardware,
}

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Who limits.
    pub limiter: RateLimiter,
    /// Limit in `units`, greater than 0.
    pub rate: f64,
    /// Unit of `rate`.
    pub units: RateUnits,
    /// Messages sent back to back; the send queue depth unless given.
    pub burst_size: u32,
}

/// What goes to standard output (`--output`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Header, addresses and rows.
    #[default]
    Full,
    /// Average bandwidth only.
    Bandwidth,
    /// Message rate only.
    MessageRate,
    /// Average latency only.
    Latency,
}

/// Where the memory of the messages comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemorySource {
    /// Ordinary memory of the process.
    #[default]
    Anonymous,
    /// `--use_hugepages`.
    HugePages,
    /// `--mmap`: a file.
    File {
        /// Its name.
        path: String,
        /// `--mmap-offset`: the first byte to map.
        offset: u64,
    },
}

/// The memory of the messages, and what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryParams {
    /// `--use_hugepages`, `--mmap`.
    pub source: MemorySource,
    /// `--odp`.
    pub on_demand: bool,
    /// `--payload_file_path`: random bytes when absent.
    pub payload_file: Option<String>,
    /// `--check_payload`: what came in has to be the payload.
    pub check_payload: bool,
}

/// Which device and port, and which of the port's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceParams {
    /// `-d`; the first device when absent.
    pub name: Option<String>,
    /// `--userspace`: the userspace NIC, even where a kernel device exists.
    pub userspace: bool,
    /// `-i`, from 1.
    pub port: u8,
    /// `-x`, 0 to 64; chosen from the port's table when absent.
    pub gid_index: Option<u8>,
    /// `--ipv6`: the automatic choice prefers IPv6 GIDs.
    pub prefer_ipv6_gid: bool,
    /// `--force-link`.
    pub force_link: Option<LinkLayer>,
    /// `--pkey_index`.
    pub pkey_index: u16,
    /// `--capture`: pcap file for both directions of the userspace NIC.
    pub capture: Option<String>,
    /// `--pin_cores`: CPUs this process may run on; empty for all.
    pub pin_cores: Vec<u32>,
}

/// The packets' way: what goes into the address vector and the QP timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathParams {
    /// `-m`.
    pub mtu: MtuRequest,
    /// `-S`, 0 to 15.
    pub service_level: u8,
    /// `--tclass`, the traffic class byte of the GRH or IP header.
    pub traffic_class: u8,
    /// `--flow_label`, given to the queue pairs in turn; empty for 0.
    pub flow_labels: Vec<u32>,
    /// `--dlid`, instead of the peer's LID.
    pub destination_lid: Option<u16>,
    /// `-u`: local ACK timeout is 4.096 us * 2^n, 0 to 31.
    pub qp_timeout: u8,
}

/// The dialogue with the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlParams {
    /// `-p`.
    pub tcp_port: u16,
    /// `--bind_source_ip`: local address of the control connection.
    pub bind_source_ip: Option<String>,
    /// `--ipv6-addr`: the control connection is IPv6 only.
    pub ipv6: bool,
    /// `-z` or `-R`: parameters travel over an rdma_cm queue pair.
    pub rdma_cm: bool,
    /// `-R`: the test's queue pairs are connected by rdma_cm, too.
    pub rdma_cm_qps: bool,
    /// `-T`, with `-R` only.
    pub type_of_service: Option<u8>,
    /// `--retry_count`, of the connection manager.
    pub cm_retry_count: u32,
    /// `--peer-timeout`: longest wait for each step the peer has to take.
    pub peer_timeout: Duration,
    /// `--connect_retry`: how long a client tries again while nobody listens.
    pub connect_retry: Duration,
}

/// What is printed and saved.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportParams {
    /// `-W`: counters, as files below the port's folder in sysfs.
    pub counters: Vec<String>,
    /// `--percentiles`: percents of latency samples to show, each above 0, at most 100.
    pub percentiles: Vec<f64>,
    /// `--interval`: time between the lines about how the run gets on.
    pub interval: Option<Duration>,
    /// `--hdr_file`: file for the distribution of latencies.
    pub hdr_file: Option<String>,
    /// `--output_style`.
    pub style: Style,
    /// `--output`.
    pub output: Output,
    /// `--report_gbits`.
    pub gbits: bool,
    /// `--report-both`.
    pub both_directions: bool,
    /// `-C`.
    pub cycles: bool,
    /// `-H`.
    pub histogram: bool,
    /// `-U`.
    pub unsorted: bool,
    /// False with `-N`, and where the rules switch the peak off.
    pub peak: bool,
    /// `--cpu_util`; needs a timed run.
    pub cpu_utilization: bool,
    /// `--out_json`: the file to write, `perftest_out.json` unless named.
    pub json_file: Option<String>,
    /// `-F`: no warning about the CPU's frequency.
    pub ignore_cpu_frequency: bool,
    /// `-w`, in the unit of the report.
    pub minimum_bandwidth: Option<f32>,
    /// `-y`, in millions per second. Judged only together with `-w`.
    pub minimum_message_rate: Option<f32>,
}

impl ReportParams {
    /// Room for a distribution of latencies, if something is to be shown of it.
    pub(crate) fn wants_distribution(&self) -> Option<Distribution> {
        let wanted = !self.percentiles.is_empty() || self.hdr_file.is_some();
        wanted.then(Distribution::new).flatten()
    }
}

/// Logging of fallbacks and of the dialogue, to standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Nothing that stock perftest would not say.
    #[default]
    Quiet,
    /// `--verbose`: which fallback was taken and why.
    Verbose,
    /// `--debug`: every step.
    Debug,
}

/// Everything a run needs, after all rules that need no device.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Which of the eight tools.
    pub tool: Tool,
    /// `--write_with_imm` or `--send_with_imm`.
    pub with_imm: bool,
    /// `-c`.
    pub connection: Connection,
    /// `-g`, `-M`: the multicast group that the server receives from.
    pub multicast: Option<Gid>,
    /// `-A`.
    pub atomic: Atomic,
    /// The host to connect to; absent on the side that listens.
    pub host: Option<String>,
    /// `--loopback`: both ends in this process; `host` is absent.
    pub loopback: bool,
    /// `--connectionless`: a multicast receiver without control connection.
    pub connectionless: bool,
    /// `--reversed`.
    pub reversed: bool,
    /// Traffic role, `--reversed` applied.
    pub machine: Machine,
    /// `-b`.
    pub bidirectional: bool,
    /// `-s` and `-a`.
    pub sizes: Sizes,
    /// True when the user gave `-s` (UD limits depend on it).
    pub size_given: bool,
    /// `-n`, `-D`, `-f`, `--run_infinitely`.
    pub length: Length,
    /// `-q`, doublings applied: queue pairs on this side.
    pub qps: u32,
    /// `-t`, cut to the iterations.
    pub tx_depth: u32,
    /// `-r`, as the rules leave it.
    pub rx_depth: u32,
    /// `-Q`, as the rules leave it: one signalled request in so many.
    pub cq_mod: u32,
    /// The last, incomplete group of `cq_mod` requests is counted by itself.
    pub fill_count: bool,
    /// `-l`: requests per post.
    pub post_list: u32,
    /// `--recv_post_list`: receives per post.
    pub recv_post_list: u32,
    /// `-I`; the device's and tool's default when absent.
    pub inline_size: Option<u32>,
    /// `-o`; the device's maximum when absent.
    pub outstanding_reads: Option<u32>,
    /// `-e`, with the completion vector of `-X`.
    pub events: Option<u32>,
    /// `--use-srq`.
    pub use_srq: bool,
    /// `--mr_per_qp`.
    pub mr_per_qp: bool,
    /// `--data_validation`.
    pub data_validation: bool,
    /// `--cqe_poll`, `--disable_dynamic_polling`.
    pub polling: Polling,
    /// `--rate_limit` and company.
    pub rate_limit: Option<RateLimit>,
    /// `--latency_gap`: busy wait before each post of a latency test.
    pub latency_gap: Duration,
    /// `--perform_warm_up`.
    pub warm_up: bool,
    /// `--wait_destroy`: sleep before the resources go.
    pub wait_destroy: Duration,
    /// Relaxed ordering access flag; off with `--disable_pcie_relaxed`, and
    /// always off in `ib_write_lat`, which polls the last byte of the data.
    pub relaxed_ordering: bool,
    /// `--use_old_post_send`.
    pub old_post_send: bool,
    /// `--no_lock`.
    pub no_lock: bool,
    /// `--repeat`: how often each size is measured, 1 to 1000; 1 unless
    /// `length` is a number of messages.
    pub repeat: u32,
    /// `--seed`: reproducible packet sequence numbers.
    pub seed: Option<u64>,
    /// `--verbose`, `--debug`.
    pub verbosity: Verbosity,
    /// Where messages lie.
    pub memory: MemoryParams,
    /// Device, port, GID.
    pub device: DeviceParams,
    /// Address vector and timers.
    pub path: PathParams,
    /// The dialogue with the peer.
    pub control: ControlParams,
    /// What is printed and saved.
    pub report: ReportParams,
}

impl Params {
    /// Whether this is the end that the multicast group belongs to.
    pub const fn is_in_group(&self) -> bool {
        self.multicast.is_some() && matches!(self.machine, Machine::Server)
    }

    /// The operation.
    pub const fn verb(&self) -> Verb {
        self.tool.verb
    }

    /// Bandwidth or latency.
    pub const fn measurement(&self) -> Measurement {
        self.tool.measurement
    }

    /// True for `ib_write_lat`, which learns of a message by its last byte.
    pub const fn polls_memory(&self) -> bool {
        matches!(
            (self.tool.verb, self.tool.measurement),
            (Verb::Write, Measurement::Latency)
        ) && !self.with_imm
    }

    /// Whether each queue pair serves one direction only, the first half ours
    /// and the second half the peer's: XRC with traffic both ways.
    pub const fn splits_directions(&self) -> bool {
        matches!(self.connection, Connection::Xrc)
            && (self.bidirectional || !self.tool.is_bandwidth())
    }

    /// Queue pairs that send, or that receive, on an end that does.
    pub const fn flows(&self) -> u32 {
        match self.splits_directions() {
            true => self.qps / 2,
            false => self.qps,
        }
    }

    /// Index of the peer's queue pair that queue pair `qp` is connected to.
    pub const fn partner(&self, qp: usize) -> usize {
        match self.splits_directions() {
            true => (qp + self.flows() as usize) % self.qps as usize,
            false => qp,
        }
    }

    /// Index of the first queue pair that receives.
    pub const fn first_receiver(&self) -> usize {
        match self.splits_directions() {
            true => self.flows() as usize,
            false => 0,
        }
    }

    /// Whether this end posts operations.
    pub const fn is_active(&self) -> bool {
        match (self.tool.verb, self.tool.measurement) {
            (_, Measurement::Bandwidth) | (Verb::Read | Verb::Atomic, _) => {
                matches!(self.machine, Machine::Client) || self.bidirectional
            }
            // The ends of a ping-pong do the same.
            _ => true,
        }
    }

    /// Whether messages of the peer consume receives of this end.
    pub const fn receives(&self) -> bool {
        self.has_receive_completions()
            && (matches!(self.machine, Machine::Server)
                || self.bidirectional
                || !self.tool.is_bandwidth())
    }

    /// Whether Reads or atomics are in flight.
    pub fn asks_peer_memory(&self) -> bool {
        self.tool.verb.is_round_trip() || self.data_validation
    }

    /// Whether the data that this end validates come in here.
    pub const fn validates(&self) -> bool {
        let receives = match self.tool.verb {
            Verb::Read => matches!(self.machine, Machine::Client),
            _ => matches!(self.machine, Machine::Server),
        };
        self.data_validation && (receives || self.bidirectional)
    }

    /// True for SEND and for anything with immediate data: the responder
    /// posts receives and sees completions.
    pub const fn has_receive_completions(&self) -> bool {
        matches!(self.tool.verb, Verb::Send) || self.with_imm
    }
}
