//! Depths, moderation, lists, polling.

use crate::options::message::{LINE, Messages};
use crate::options::refusal::Refusal;
use crate::options::settings::{Method, Settings};
use crate::words::Connection;
use crate::words::{Measurement, Verb};

/// Receives a shared queue needs at least, UD and UC.
const MIN_SHARED_DATAGRAMS: u32 = 100;
/// Most receives of a UC or UD queue whose depth was not chosen.
const MAX_DATAGRAMS: u32 = 16000;
/// Above this many bytes each message is signalled.
const MODERATED_SIZE: u64 = 8192;

fn cut(depth: u32, iterations: u64) -> u32 {
    u32::try_from(iterations).map_or(depth, |iterations| depth.min(iterations))
}

/// No queue is deeper than there are messages.
pub(super) fn depths(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if s.is_plain_write() {
        s.rx_depth = 1;
    }
    if s.method == Method::Infinite || s.timed {
        return Ok(());
    }
    s.tx_depth = cut(s.tx_depth, s.iterations);
    if s.has_receive_completions() {
        s.rx_depth = cut(s.rx_depth, s.iterations);
    }
    if let Connection::Ud | Connection::Uc = s.connection {
        if s.use_srq && s.iterations <= u64::from(MIN_SHARED_DATAGRAMS) {
            s.rx_depth = MIN_SHARED_DATAGRAMS;
        }
        if s.rx_depth == 512 {
            s.rx_depth = cut(MAX_DATAGRAMS, s.iterations);
        }
    }
    Ok(())
}

/// Large messages: one completion each, unless the user wants it otherwise.
pub(super) fn large_messages(s: &mut Settings, messages: &mut Messages) -> Result<(), Refusal> {
    if s.size > MODERATED_SIZE
        && s.connection != Connection::Ud
        && s.method != Method::AllSizes
        && !s.events
    {
        if !s.cq_mod_given {
            s.cq_mod = 1;
        } else if s.cq_mod > 1 {
            messages.out(LINE);
            messages.out(
                "Warning: Large message requested and CQ moderation enabled\n\
                 Warning: It can lead to inaccurate results\n",
            );
        }
    }
    Ok(())
}

/// A completion at least every time the queue is full.
pub(super) fn cap_moderation(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    s.cq_mod = s.cq_mod.min(s.tx_depth);
    Ok(())
}

fn multiple(s: &Settings, list: u32, text: &'static str) -> Result<(), Refusal> {
    if !s.timed && !s.iterations.is_multiple_of(u64::from(list)) {
        return Err(Refusal::rule(text).after_line());
    }
    Ok(())
}

/// `-l`: a list is posted whole and completes with its last request.
pub(super) fn post_list(s: &mut Settings, messages: &mut Messages) -> Result<(), Refusal> {
    if s.post_list <= 1 {
        return Ok(());
    }
    if !s.tool.is_bandwidth() {
        return Err(Refusal::rule("Post list is supported in BW tests only\n").after_line());
    }
    let text = "Number of iterations must be a multiple of post list size\n";
    multiple(s, s.post_list, text)?;
    if !s.cq_mod_given {
        s.cq_mod = s.post_list;
        messages.out(LINE);
        messages.out("Post List requested - CQ moderation will be the size of the post list\n");
    } else if !s.post_list.is_multiple_of(s.cq_mod) {
        let text = "Post list size must be a multiple of CQ moderation\n";
        return Err(Refusal::rule(text).after_line());
    }
    Ok(())
}

/// `--recv_post_list`.
pub(super) fn receive_post_list(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if s.recv_post_list <= 1 {
        return Ok(());
    }
    if !s.tool.is_bandwidth() {
        let text = "Receive post list is supported in BW tests only\n";
        return Err(Refusal::rule(text).after_line());
    }
    let text = "Number of iterations must be a multiple of receive post list size\n";
    multiple(s, s.recv_post_list, text)
}

/// Stock perftest cannot do with an odd receive queue; the depth shows.
pub(super) fn odd_receive_depth(s: &mut Settings, _: &mut Messages) -> Result<(), Refusal> {
    if s.has_receive_completions() && s.rx_depth % 2 == 1 && s.method == Method::Regular {
        s.rx_depth += 1;
    }
    Ok(())
}

/// `--cqe_poll` and its default; see [`crate::options::Polling`].
pub(super) fn dynamic_polling(s: &mut Settings, messages: &mut Messages) -> Result<(), Refusal> {
    let few = !s.timed && s.iterations < 3000;
    // SEND with immediate data is not meant: stock perftest compares verbs.
    let duplex_send =
        s.tool.is_bandwidth() && s.bidirectional && s.tool.verb == Verb::Send && !s.with_imm;
    if few || duplex_send || s.tool.measurement == Measurement::Latency {
        if s.style.says_polling() {
            messages.out("Disabling dynamic polling\n");
        }
        s.dynamic_polling = false;
    }
    if !s.dynamic_polling && s.cqe_poll.is_none() && s.qps > 2048 && s.size > MODERATED_SIZE {
        if s.style.says_polling() {
            messages.out("Increasing CQE polling batch to 64\n");
        }
        s.cqe_poll = Some(64);
    }
    Ok(())
}

/// Whether the last group of requests is smaller than the others.
pub(super) fn last_group_is_short(s: &Settings) -> bool {
    // Both are at least 1.
    let group = s.cq_mod.min(s.tx_depth);
    !s.timed && !s.iterations.is_multiple_of(group.into())
}
