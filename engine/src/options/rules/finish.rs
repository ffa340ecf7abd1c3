//! From settings that passed the rules to the parameters of the run.

use std::time::Duration;

use verbs_sys::Gid;

use super::queues::last_group_is_short;
use crate::options::params::{
    ControlParams, DeviceParams, Length, Machine, MemoryParams, MemorySource, Params, PathParams,
    Polling, RateLimit, RateLimiter, ReportParams, Sizes,
};
use crate::options::refusal::Refusal;
use crate::options::settings::{Method, RateType, Settings};
use crate::words::{Connection, Measurement, Verb};

/// Completions per poll unless chosen.
const POLL_BATCH: u16 = 16;

/// The multicast group unless `-M` names one.
const DEFAULT_GROUP: Gid = Gid([0xff, 1, 0, 0, 0, 2, 0xc9, 0x85, 0, 0, 0, 0, 0, 0, 0, 0]);

/// Command lines stock perftest takes and that cannot work.
pub(super) fn own_rules(s: &Settings) -> Result<(), Refusal> {
    if let (true, Some(host)) = (s.loopback, &s.host) {
        return Err(Refusal::stricter(format!(
            " --loopback runs both ends in this process, so there is no host to connect to: \
             leave '{host}' out\n"
        )));
    }
    // Each queue pair has its share of a shared receive queue.
    let rx_depth = match s.use_srq {
        true => s.rx_depth / s.qps.max(1),
        false => s.rx_depth,
    };
    for (option, list, depth_option, depth) in [
        ("-l", s.post_list, "-t", s.tx_depth),
        ("--recv_post_list", s.recv_post_list, "-r", rx_depth),
    ] {
        let used = option == "-l" || s.has_receive_completions();
        if used && list > depth {
            return Err(Refusal::stricter(format!(
                " A list of {list} requests ({option}) does not fit into a queue of {depth} \
                 ({depth_option}), so nothing could be posted: make {depth_option} at least \
                 {list}, or {option} smaller\n"
            )));
        }
    }
    if s.mmap.is_some() && s.memory.source == MemorySource::HugePages {
        return Err(Refusal::stricter(
            " The buffer is either a file (--mmap) or huge pages (--use_hugepages): leave one out\n",
        ));
    }
    if s.mgid.is_some() && !s.multicast {
        return Err(Refusal::stricter(
            " -M names a multicast group, which only -g sends to: add -g at both ends\n",
        ));
    }
    if s.mmap.is_none() && s.mmap_offset != 0 {
        return Err(Refusal::stricter(
            " --mmap-offset is an offset into a file: add --mmap=<file>\n",
        ));
    }
    if s.memory.check_payload && s.memory.payload_file.is_none() && s.tool.verb != Verb::Atomic {
        return Err(Refusal::stricter(
            " --check_payload has nothing to compare with: add --payload_file_path=<file>, the \
             same at both ends\n",
        ));
    }
    if s.repeat > 1 && s.timed {
        return Err(Refusal::stricter(
            " --repeat repeats a number of messages: give -n instead of a duration, or a longer \
             duration with --interval\n",
        ));
    }
    if s.connectionless && (s.host.is_some() || s.loopback) {
        return Err(Refusal::stricter(
            " --connectionless is for a receiver that nobody talks to: leave the host and \
             --loopback out\n",
        ));
    }
    if s.connectionless && s.device.is_none() {
        return Err(Refusal::stricter(
            " --connectionless has no connection that would tell the device: name it with -d\n",
        ));
    }
    if s.data_validation && s.repeat > 1 {
        return Err(Refusal::stricter(
            " --data_validation goes through its rings once: leave --repeat out, and give a \
             larger -n\n",
        ));
    }
    if s.data_validation && s.warm_up {
        return Err(Refusal::stricter(
            " --data_validation checks every message, and those of --perform_warm_up are none: \
             leave one of them out\n",
        ));
    }
    if s.rate_type.is_some() && s.rate.is_none() {
        return Err(Refusal::stricter(
            " --rate_limit_type without a rate limits nothing: add --rate_limit=<rate>\n",
        ));
    }
    Ok(())
}

/// Whether each queue pair carries messages one way only, so that traffic
/// both ways takes twice as many.
fn one_way_pairs(s: &Settings) -> bool {
    matches!(s.connection, Connection::Xrc | Connection::Dc)
        && (s.bidirectional || s.tool.measurement == Measurement::Latency)
}

/// Everything the run needs.
pub(super) fn params(s: Settings) -> Params {
    let fill_count = last_group_is_short(&s);
    let write_latency = s.tool.verb == Verb::Write && s.tool.measurement == Measurement::Latency;
    Params {
        tool: s.tool,
        with_imm: s.with_imm,
        connection: s.connection,
        multicast: s.multicast.then_some(s.mgid.unwrap_or(DEFAULT_GROUP)),
        atomic: s.atomic,
        machine: match s.is_traffic_server() {
            true => Machine::Server,
            false => Machine::Client,
        },
        loopback: s.loopback,
        connectionless: s.connectionless,
        reversed: s.reversed,
        bidirectional: s.bidirectional,
        sizes: match s.method {
            Method::AllSizes => Sizes::All {
                largest: Sizes::LARGEST_OF_ALL,
            },
            // At most 2^31 - 1: checked when it was read.
            _ => Sizes::One(s.size as u32),
        },
        size_given: s.size_given,
        length: length(&s),
        qps: match one_way_pairs(&s) {
            true => s.qps.saturating_mul(2),
            false => s.qps,
        },
        tx_depth: s.tx_depth,
        rx_depth: s.rx_depth,
        cq_mod: s.cq_mod,
        fill_count,
        post_list: s.post_list,
        recv_post_list: s.recv_post_list,
        inline_size: s.inline_size,
        outstanding_reads: s.outstanding_reads,
        events: s.events.then(|| s.completion_vector.unwrap_or(0)),
        use_srq: s.use_srq,
        mr_per_qp: s.mr_per_qp,
        data_validation: s.data_validation,
        polling: match s.dynamic_polling {
            true => Polling::Dynamic,
            false => Polling::Fixed(s.cqe_poll.unwrap_or(POLL_BATCH)),
        },
        rate_limit: rate_limit(&s),
        latency_gap: Duration::from_micros(s.latency_gap.into()),
        warm_up: s.warm_up,
        wait_destroy: Duration::from_secs(s.wait_destroy.into()),
        relaxed_ordering: !s.disable_pcie_relaxed && !write_latency,
        old_post_send: s.old_post_send,
        no_lock: s.no_lock,
        repeat: s.repeat,
        seed: s.seed,
        verbosity: s.verbosity,
        memory: MemoryParams {
            source: match s.mmap {
                Some(path) => MemorySource::File {
                    path,
                    offset: s.mmap_offset,
                },
                None => s.memory.source,
            },
            ..s.memory
        },
        device: DeviceParams {
            name: s.device,
            userspace: s.userspace,
            port: s.ib_port,
            gid_index: s.gid_index,
            prefer_ipv6_gid: s.prefer_ipv6_gid,
            force_link: s.force_link,
            pkey_index: s.pkey_index,
            capture: s.capture,
            pin_cores: s.pin_cores,
        },
        path: PathParams {
            mtu: s.mtu,
            service_level: s.service_level,
            traffic_class: s.traffic_class,
            flow_labels: s.flow_labels,
            destination_lid: s.destination_lid,
            qp_timeout: s.qp_timeout,
        },
        control: ControlParams {
            tcp_port: s.tcp_port,
            bind_source_ip: s.bind_source_ip,
            ipv6: s.ipv6_control,
            rdma_cm: s.rdma_cm,
            rdma_cm_qps: s.rdma_cm_qps,
            type_of_service: s.type_of_service,
            cm_retry_count: s.cm_retry_count,
            peer_timeout: s.peer_timeout,
            connect_retry: s.connect_retry,
        },
        report: ReportParams {
            output: s.output,
            style: s.style,
            percentiles: s.percentiles,
            hdr_file: s.hdr_file,
            counters: s.counters,
            interval: s.interval,
            gbits: s.gbits,
            both_directions: s.report_both,
            cycles: s.cycles,
            histogram: s.histogram,
            unsorted: s.unsorted,
            peak: !s.no_peak,
            cpu_utilization: s.cpu_utilization,
            json_file: s.json.then_some(s.json_file),
            ignore_cpu_frequency: s.ignore_cpu_frequency,
            minimum_bandwidth: s.minimum_bandwidth,
            minimum_message_rate: s.minimum_message_rate,
        },
        host: s.host,
    }
}

fn length(s: &Settings) -> Length {
    match (s.method, s.timed) {
        (Method::Infinite, _) => Length::Infinite {
            interval: s.duration,
        },
        (_, true) => Length::Timed {
            duration: s.duration,
            margin: s.margin.unwrap_or(0),
        },
        (_, false) => Length::Iterations(s.iterations),
    }
}

fn rate_limit(s: &Settings) -> Option<RateLimit> {
    let limiter = match s.rate_type? {
        RateType::Software => RateLimiter::Software,
        RateType::Hardware if s.rate_type_given => RateLimiter::Hardware,
        RateType::Hardware => RateLimiter::HardwareOrSoftware,
        RateType::PacketPacing => return None,
    };
    Some(RateLimit {
        limiter,
        rate: s.rate_value,
        units: s.rate_units,
        burst_size: s.burst_size,
    })
}
