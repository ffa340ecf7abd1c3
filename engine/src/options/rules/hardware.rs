//! Transports and encryption that need special adapters. None runs here, but
//! a command line that stock perftest refuses gets stock perftest's reason.

use crate::options::message::Messages;
use crate::options::refusal::Refusal;
use crate::options::settings::Settings;
use crate::words::Connection;
use crate::words::{Measurement, Verb};

/// The first check that holds refuses.
fn first_of(checks: &[(bool, &'static str)]) -> Result<(), Refusal> {
    match checks.iter().find(|(holds, _)| *holds) {
        Some((_, text)) => Err(Refusal::rule(*text).after_line()),
        None => Ok(()),
    }
}

/// XRC and DC receive through an SRQ.
pub(super) fn extended_transports(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    match s.connection {
        Connection::Xrc => {
            first_of(&[(s.rdma_cm_qps, " XRC does not support RDMA_CM\n")])?;
            s.use_srq = true;
        }
        Connection::Dc => {
            s.use_srq = true;
            s.rx_depth = s.rx_depth.max(s.qps);
        }
        _ => {}
    }
    Ok(())
}

/// DC, and its streams.
pub(super) fn dynamically_connected(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    let dc = s.connection == Connection::Dc;
    let streams = s.dci_streams > 0;
    let active = s.active_dci_streams.unwrap_or(s.dci_streams) > 0;
    first_of(&[
        (
            dc && s.old_post_send,
            " DC does not support old post send flow\n",
        ),
        (dc && s.rdma_cm_qps, " DC does not support RDMA_CM\n"),
        (streams && !dc, " log_dci_streams supported only on DC\n"),
        (
            active && !dc,
            " log_active_dci_streams supported only on DC\n",
        ),
        (
            active && !streams,
            " log_dci_streams must be greater than 0\n",
        ),
    ])
}

/// AES-XTS of mlx5.
pub(super) fn encryption(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    let crypto = &s.crypto;
    if crypto.aes_xts {
        let write_latency =
            s.tool.verb == Verb::Write && s.tool.measurement == Measurement::Latency;
        let inline = s
            .inline_size
            .is_some_and(|inline| s.size <= u64::from(inline));
        return first_of(&[
            (
                s.connection != Connection::Rc,
                " aes_xts supported only on RC\n",
            ),
            (
                !crypto.kek,
                " Please provide key encryption key file path\n",
            ),
            (
                !crypto.key_app,
                " Please provide data encryption key app path\n",
            ),
            (
                !crypto.credentials,
                " Please provide credentials file path\n",
            ),
            (s.old_post_send, " aes_xts doesn't support old post send\n"),
            (s.rdma_cm_qps, " rdma_cm doesn't support aes_xts\n"),
            (write_latency, " aes_xts isn't supported on write_lat\n"),
            (inline, " aes_xts doesn't support Inline messages\n"),
        ]);
    }
    first_of(&[
        (
            crypto.encrypt_on_tx,
            " encrypt_on_tx supported only when enc/dec traffic\n",
        ),
        (
            crypto.sig_before,
            " sig_before supported only when enc/dec traffic\n",
        ),
        (
            crypto.credentials,
            " giving credentials path supported only with enc/dec traffic\n",
        ),
        (
            crypto.kek,
            " giving kek path supported only with enc/dec traffic\n",
        ),
        // Stock perftest names the wrong file here.
        (
            crypto.key_app,
            " giving kek path supported only with enc/dec traffic\n",
        ),
    ])
}

/// SRD of EFA.
pub(super) fn scalable_datagram(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if s.connection == Connection::Srd {
        first_of(&[(s.rdma_cm_qps, " SRD does not support RDMA_CM\n")])?;
        s.cq_mod = 1;
    }
    Ok(())
}
