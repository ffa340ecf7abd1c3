//! `--data_validation`: what it does not go with.

use crate::options::message::Messages;
use crate::options::refusal::Refusal;
use crate::options::settings::{Method, Settings};
use crate::words::Connection;
use crate::words::Verb;

/// The checks in order; the first that holds refuses.
pub(super) fn data_validation(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if !s.data_validation {
        return Ok(());
    }
    let checks = [
        (s.mmap.is_some(), "requires --use_cuda or host memory"),
        (
            !(s.is_plain_write() || s.tool.verb == Verb::Read),
            "is only supported with WRITE or READ verb",
        ),
        (
            !s.tool.is_bandwidth(),
            "is only supported in bandwidth tests",
        ),
        (s.post_list > 1, "is incompatible with --post_list > 1"),
        (
            s.method == Method::Infinite,
            "is incompatible with --run_infinitely",
        ),
        (
            s.connection != Connection::Rc,
            "requires RC connection type",
        ),
        (s.mr_per_qp, "is incompatible with --mr_per_qp"),
        (
            s.memory.payload_file.is_some(),
            "is incompatible with payload modification",
        ),
        (
            s.method == Method::AllSizes,
            "is incompatible with -a (run all sizes)",
        ),
        (s.null_mr, "is incompatible with --use-null-mr"),
        (s.tx_depth < 32, "requires tx_depth >= 32 (use -t)"),
    ];
    match checks.into_iter().find(|(holds, _)| *holds) {
        Some((_, text)) => Err(Refusal::rule(format!(" --data_validation {text}\n")).after_line()),
        None => Ok(()),
    }
}
