//! Timed and endless runs, and when there is no peak.

use crate::options::message::{LINE, Messages};
use crate::options::refusal::Refusal;
use crate::options::settings::{Method, Settings};

const NO_PEAK: &str = " WARNING: BW peak won't be measured in this run.\n";

/// Above this many messages their times are not kept.
const PEAK_ITERATIONS: u64 = 20_000;

fn refuse(text: &'static str) -> Result<(), Refusal> {
    Err(Refusal::rule(text).after_line())
}

fn without_peak(s: &mut Settings, messages: &mut Messages) {
    if !s.no_peak && s.tool.is_bandwidth() && s.style.says_no_peak() {
        messages.out(NO_PEAK);
    }
    s.no_peak = true;
}

/// `-D`.
pub(super) fn duration(s: &mut Settings, messages: &mut Messages) -> Result<(), Refusal> {
    if !s.timed {
        return Ok(());
    }
    s.iterations = 0;
    without_peak(s, messages);
    if s.events {
        return refuse("Duration mode doesn't work with events.\n");
    }
    if s.method == Method::AllSizes {
        return refuse("Duration mode currently doesn't support running on all sizes.\n");
    }
    Ok(())
}

/// `--cpu_util` without `-D` is only remarked on.
pub(super) fn cpu_utilization(s: &mut Settings, messages: &mut Messages) -> Result<(), Refusal> {
    if s.cpu_utilization && !s.timed {
        messages.out(LINE);
        messages.err(" CPU Utilization works only with Duration mode.\n");
        s.cpu_utilization = false;
    }
    Ok(())
}

/// The side that only receives cannot tell a peak; of both ends in one process
/// the sender is shown.
pub(super) fn receiver_peak(s: &mut Settings, messages: &mut Messages) -> Result<(), Refusal> {
    if s.has_receive_completions()
        && s.tool.is_bandwidth()
        && s.is_traffic_server()
        && !s.bidirectional
        && !s.loopback
    {
        without_peak(s, messages);
    }
    Ok(())
}

/// `--run_infinitely`.
pub(super) fn infinite(s: &mut Settings, messages: &mut Messages) -> Result<(), Refusal> {
    if s.method != Method::Infinite {
        return Ok(());
    }
    without_peak(s, messages);
    s.timed = true;
    if s.events {
        return refuse(" run_infinitely does not support events feature yet.\n");
    }
    if !s.tool.is_bandwidth() {
        return refuse(" run_infinitely exists only in BW tests for now.\n");
    }
    if s.bidirectional && s.has_receive_completions() {
        return refuse(
            " run_infinitely mode is not supported in SEND, SEND_IMM or WRITE_IMM Bidirectional \
             BW test\n",
        );
    }
    if s.rate_type.is_some() {
        return refuse(" run_infinitely does not support rate limit feature yet\n");
    }
    Ok(())
}

/// `-f` not given: a quarter of the duration, rounded down.
pub(super) fn default_margin(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if s.timed {
        s.margin.get_or_insert(s.duration / 4);
    }
    Ok(())
}

pub(super) fn many_iterations(s: &mut Settings, messages: &mut Messages) -> Result<(), Refusal> {
    if !s.timed && s.iterations > PEAK_ITERATIONS && s.tool.is_bandwidth() {
        without_peak(s, messages);
    }
    Ok(())
}

/// Something must be left to measure. Stock perftest checks this in counted
/// runs, too, against the default duration.
pub(super) fn margin_fits(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    let margins = 2 * u64::from(s.margin.unwrap_or(0));
    match u64::from(s.duration) > margins {
        true => Ok(()),
        false => refuse("please check that DURATION > 2*MARGIN\n"),
    }
}
