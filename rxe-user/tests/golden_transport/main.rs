//! Recorded conversations of kernel rxe with itself: our responder answers the
//! recorded requests as rxe did, and our requester, given the same work, sends
//! the recorded requests, byte for byte. Where rxe departs from the rules,
//! [`deviations`] says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod deviations;
mod endpoint;
mod record;
mod requester;
mod responder;
#[path = "../support/mod.rs"]
mod support;

use endpoint::Connection;
use record::Record;
use verbs_sys::{AccessFlags, PathMtu, QpType};

/// Scenarios of the recording program that can be played again, and whether
/// all requests are posted at once.
const SCENARIOS: [(&str, bool); 27] = [
    ("send", false),
    ("send_sol", false),
    ("send_imm", false),
    ("write", false),
    ("write_imm", false),
    ("read", false),
    ("cas", false),
    ("faa", false),
    ("burst", true),
    ("burst_send", true),
    ("burst_write", true),
    ("burst_read", true),
    ("burst_faa", true),
    ("burst_cas", true),
    ("mix", true),
    ("rnr", false),
    ("rnr_never", false),
    ("plain", false),
    ("bad_rkey", false),
    ("out_of_range", false),
    ("no_perm", false),
    ("too_long", false),
    ("bad_lkey_recv", false),
    ("send_inv", false),
    ("send_inv_bad", false),
    ("dead_qp", false),
    ("no_qp", false),
];

/// As [`SCENARIOS`], of UD.
const DATAGRAM_SCENARIOS: [&str; 2] = ["ud_grh", "ud_badqkey"];

/// Which packets a record shows that never arrived: the filter that dropped
/// them stood behind the capture, so it doesn't say which.
#[derive(Debug, PartialEq, Eq)]
enum Dropped {
    Nothing,
    Requests,
    Responses,
}

fn dropped(record: &Record) -> Dropped {
    let Some((what, _)) = record.shows.split_once("dropped") else {
        return Dropped::Nothing;
    };
    if what.contains("request") || what.contains("packet") {
        Dropped::Requests
    } else if what.contains("ACK") || what.contains("response") {
        Dropped::Responses
    } else {
        Dropped::Nothing
    }
}

/// Whether all requests are posted at once, for scenarios we can play.
fn posts_at_once(record: &Record) -> Option<bool> {
    let scenario = record.scenario.as_str();
    let known = SCENARIOS.iter().find(|(name, _)| *name == scenario);
    let datagrams = DATAGRAM_SCENARIOS.contains(&scenario).then_some(false);
    let result = known.map(|(_, at_once)| *at_once).or(datagrams);
    if result.is_none() {
        let name = &record.name;
        eprintln!("{name}: skipped, scenario {scenario} can't be played here");
    }
    result
}

/// The connection of the record, as the requester (A) sees it.
fn connection_of_a(record: &Record) -> Connection {
    let first = &record.packets[0].header;
    let option = |key, default| record.option(key).unwrap_or(default) as u8;
    let all = AccessFlags::REMOTE | AccessFlags::LOCAL_WRITE;
    Connection {
        qp_type: match record.fact("qp_type") {
            2 => QpType::Rc,
            3 => QpType::Uc,
            _ => QpType::Ud,
        },
        own: first.src,
        peer: first.dst,
        peer_qpn: record.fact("qpB") as u32,
        sq_psn: record.fact("psnA") as u32,
        rq_psn: record.fact("psnB") as u32,
        mtu: PathMtu::from_bytes(record.fact("mtu") as u32).unwrap(),
        qp_access: all,
        memory_access: all | AccessFlags::MW_BIND,
        max_dest_rd_atomic: 4,
        timeout: option("tmo", 14),
        retry_cnt: option("retry", 7),
        rnr_retry: option("rnr_retry", 7),
        traffic_class: first.tos,
    }
}

#[test]
fn golden_responder_answers_recorded_requests_as_rxe_did() {
    for record in record::conversations() {
        if posts_at_once(&record).is_none() {
            continue;
        }
        if dropped(&record) == Dropped::Requests {
            let name = &record.name;
            eprintln!("{name}: skipped, it doesn't say which requests arrived");
            continue;
        }
        responder::replay(&record);
    }
}

#[test]
fn golden_requester_sends_recorded_requests_byte_for_byte() {
    for record in record::conversations() {
        let Some(at_once) = posts_at_once(&record) else {
            continue;
        };
        if dropped(&record) == Dropped::Responses {
            let name = &record.name;
            eprintln!("{name}: skipped, it doesn't say which responses arrived");
            continue;
        }
        requester::replay(&record, at_once);
    }
}
