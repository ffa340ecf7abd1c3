//! Rate limiter.

use crate::options::message::{LINE, Messages};
use crate::options::params::RateUnits;
use crate::options::refusal::Refusal;
use crate::options::settings::{RateType, Settings};
use crate::words::Verb;

/// Static rates of a QP in Gb/s, compared as text.
const HARDWARE_RATES: [&str; 22] = [
    "2.5", "5", "10", "14", "20", "25", "28", "30", "40", "50", "56", "60", "80", "100", "112",
    "120", "168", "200", "300", "400", "600", "MAX",
];

/// All checks of the limiter.
pub(super) fn limiter(s: &mut Settings, messages: &mut Messages) -> Result<(), Refusal> {
    if s.burst_size > 0 && s.rate_type.is_none() {
        let text = " Can't enable burst mode when rate limiter is off\n";
        return Err(Refusal::rule(text).after_line());
    }
    if s.burst_size == 0 {
        if s.rate_type == Some(RateType::Software) {
            messages.err(format!(
                " Setting burst size to tx depth = {}\n",
                s.tx_depth
            ));
        }
        if s.rate_type != Some(RateType::PacketPacing) {
            s.burst_size = s.tx_depth;
        }
    }
    if s.typical_packet_size > 0 && s.rate_type != Some(RateType::PacketPacing) {
        let text = " Typical packet size only supports PP rate limiter\n";
        return Err(Refusal::rule(text).after_line());
    }
    match s.rate_type {
        None => Ok(()),
        Some(RateType::Software) => software(s),
        Some(RateType::Hardware) => hardware(s, messages),
        Some(RateType::PacketPacing) => Err(Refusal::rule(
            "Packet Pacing is only supported for Raw Ethernet.\n",
        )),
    }
}

fn software(s: &Settings) -> Result<(), Refusal> {
    let duplex_send = s.tool.verb == Verb::Send && s.bidirectional;
    if !s.tool.is_bandwidth() || s.tool.verb == Verb::Atomic || duplex_send {
        let text = "SW Rate limiter cann't be executed on non-BW, ATOMIC or bidirectional SEND / \
                    SEND_IMM tests\n";
        return Err(Refusal::rule(text).after_line());
    }
    Ok(())
}

fn hardware(s: &Settings, messages: &mut Messages) -> Result<(), Refusal> {
    if s.rdma_cm {
        return Err(Refusal::rule(
            " HW rate limit isn't supported yet with rdma_cm scenarios\n",
        ));
    }
    if s.rate_units == RateUnits::PacketsPerSecond {
        let text = " Failed: pps rate limit units is not supported when setting HW rate limit\n";
        return Err(Refusal::rule(text).after_line());
    }
    let Some(rate) = s.rate.as_deref() else {
        return Ok(());
    };
    if HARDWARE_RATES.contains(&rate) {
        return Ok(());
    }
    messages.out("\x1b[31mThe input value for hw rate limit is not supported\x1b[0m\n");
    for rate in HARDWARE_RATES {
        messages.out(format!("\t\t\t {rate} Gbps \t\t\n"));
    }
    messages.out(LINE);
    Err(Refusal::rule(" Failed: Unknown rate limit value\n"))
}
