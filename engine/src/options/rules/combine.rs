//! Options that exclude, need or imply others.

use crate::options::message::Messages;
use crate::options::params::{Output, Sizes};
use crate::options::refusal::Refusal;
use crate::options::settings::{Method, Settings};
use crate::words::Connection;
use crate::words::{Measurement, Verb};

fn refuse(text: &'static str) -> Result<(), Refusal> {
    Err(Refusal::rule(text).after_line())
}

/// Like [`refuse`], with the text, too, on standard output.
fn refuse_on_stdout(text: &'static str) -> Result<(), Refusal> {
    Err(Refusal::rule(text).after_line().on_stdout())
}

/// Without the line of dashes, on standard output.
fn refuse_bare(text: &'static str) -> Result<(), Refusal> {
    Err(Refusal::rule(text).on_stdout())
}

/// READ and atomics have no inline data, `-a` needs the largest buffer,
/// atomics have eight bytes.
pub(super) fn sizes(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if let Verb::Read | Verb::Atomic = s.tool.verb {
        s.inline_size = Some(0);
    }
    if s.method == Method::AllSizes {
        s.size = u64::from(Sizes::LARGEST_OF_ALL);
    }
    if s.tool.verb == Verb::Atomic && s.size != 8 {
        return refuse_on_stdout("Message size cannot be changed for Atomic tests \n");
    }
    Ok(())
}

pub(super) fn shared_receive_queue(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    match s.use_srq && s.tool.verb != Verb::Send {
        true => refuse_on_stdout(" Using SRQ only avavilible in SEND / SEND_IMM tests.\n"),
        false => Ok(()),
    }
}

pub(super) fn connectionless(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    let possible = s.is_traffic_server()
        && s.multicast
        && s.tool.is_bandwidth()
        && s.connection == Connection::Ud
        && s.method == Method::Infinite;
    match s.connectionless && !possible {
        true => refuse_on_stdout(
            " Using Connectionless server only avavilible in Multicast, UD BW with RUN \
             INFINITELY tests.\n",
        ),
        false => Ok(()),
    }
}

/// Every queue pair on the SRQ needs a receive.
pub(super) fn shared_queue_depth(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    match s.use_srq && s.tool.verb == Verb::Send && s.qps > s.rx_depth {
        true => refuse_on_stdout(" Using SRQ depth should be greater than number of QPs.\n"),
        false => Ok(()),
    }
}

pub(super) fn dual_port(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if !s.dual_port {
        return Ok(());
    }
    s.qps *= 2;
    if !s.tool.is_bandwidth() {
        return refuse_bare(" Dual-port mode only supports BW tests.\n");
    }
    if s.multicast {
        return refuse_bare(" Dual-port mode not supported in multicast feature\n");
    }
    Ok(())
}

/// `-R`, and the options that need it or raw Ethernet.
pub(super) fn rdma_cm(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if s.multicast {
        s.gid_index.get_or_insert(0);
    }
    if s.rdma_cm_qps {
        if s.connection == Connection::Uc {
            return refuse_on_stdout(" UC is not supported in librdmacm\n");
        }
        if s.multicast {
            return refuse_on_stdout(" Perftest still doesn't support Multicast with rdma_cm\n");
        }
        if s.dual_port {
            return refuse_on_stdout(" Perftest still doesn't support Dual Port with rdma_cm\n");
        }
        s.rdma_cm = true;
    } else if s.type_of_service.is_some() {
        return refuse_bare(" TOS only valid for rdma_cm based QP and RawEth QP \n");
    }
    if s.hop_limit != Settings::DEFAULT_HOP_LIMIT {
        return refuse_bare(" Hop limit only valid for RawEth QP \n");
    }
    Ok(())
}

pub(super) fn multicast(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if !s.multicast {
        return Ok(());
    }
    s.connection = Connection::Ud;
    if s.bidirectional {
        return refuse_bare("Bidirectional mode not supported in multicast\n");
    }
    if s.qps > 1 {
        return refuse_bare("Only 1 QP supported in multicast\n");
    }
    Ok(())
}

/// A plain WRITE leaves no completion at the other end to sleep on.
pub(super) fn events_with_write(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    match s.events && s.is_plain_write() {
        true => refuse(" Events feature not available on WRITE verb\n"),
        false => Ok(()),
    }
}

pub(super) fn output(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    match (s.tool.measurement, s.output) {
        (Measurement::Bandwidth, Output::Latency) => {
            refuse(" Output verbosity level for BW can be: bandwidth, message_rate\n")
        }
        (Measurement::Latency, Output::Bandwidth | Output::MessageRate) => {
            refuse(" Output verbosity level for LAT can be: latency\n")
        }
        _ => Ok(()),
    }
}

pub(super) fn latency_gap(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    match s.latency_gap > 0 && s.tool.is_bandwidth() {
        true => refuse(" Latency gap feature is only for latency tests\n"),
        false => Ok(()),
    }
}

pub(super) fn null_memory_region(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    match s.null_mr && !matches!(s.tool.verb, Verb::Write | Verb::Read) {
        true => refuse("Perftest supports using a null memory region with write/read verbs only\n"),
        false => Ok(()),
    }
}

pub(super) fn per_port_report(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    match s.report_per_port && !(s.timed && s.dual_port) {
        true => refuse("report per port feature work only with Duration and Dualport\n"),
        false => Ok(()),
    }
}

pub(super) fn completion_vector(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    match s.completion_vector.is_some() && !s.events {
        true => Err(Refusal::rule(
            " Events must be enabled to select a completion vector\n",
        )),
        false => Ok(()),
    }
}
