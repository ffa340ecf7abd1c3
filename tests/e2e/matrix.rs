//! Every tool in every way of running it, over `lo`; what came in is compared
//! with what was sent.

use crate::support::payload::PayloadFile;
use crate::support::{Running, TOOLS, Turn, start_pair};

/// The ways, and how many rows a bandwidth client shows.
const WAYS: &[(&str, usize)] = &[
    ("-n 300", 1),
    ("-a -n 20", 23),
    ("-n 300 -b", 1),
    ("-n 300 -q 4", 1),
    ("-D 1", 1),
    ("-n 300 -e", 1),
    ("-n 300 -e -b -q 3", 1),
    ("-n 300 -c UC", 1),
    ("-n 300 -c UD", 1),
    ("-n 300 -c XRC", 1),
    ("-n 300 -c XRC -b", 1),
    ("-n 300 --use-srq", 1),
    ("-n 320 -l 8 -s 64", 1),
    ("-n 300 -I 64 -s 33", 1),
    ("-n 300 -m 1024 -s 2047", 1),
    ("-n 300 -m 1024 -s 1025 -e", 1),
];

/// Whether stock perftest lets this tool run this way.
fn is_legal(tool: &str, way: &str) -> bool {
    let has = |option: &str| way.split(' ').any(|word| word == option);
    let latency = tool.ends_with("_lat");
    let (send, write) = (tool.contains("send"), tool.contains("write"));
    let (read, atomic) = (tool.contains("read"), tool.contains("atomic"));
    !(latency && (has("-b") || has("-q") || has("-l"))
        || write && has("-e")
        || !send && (has("UD") || has("--use-srq"))
        || (read || atomic) && (has("UC") || has("-I"))
        || atomic && (has("-a") || has("-s")))
}

/// Runs a pair and looks at codes, rows and data. `Err` says what is wrong.
fn try_way(tool: &str, way: &str, rows: usize, payload: &PayloadFile) -> Result<(), String> {
    let line = format!("{way} {}", payload.options());
    let ended = {
        let _turn = Turn::take();
        start_pair([tool; 2], [&line; 2]).map(Running::wait)
    };
    let [server, client] = &ended;
    if (server.code, client.code) != (Some(0), Some(0)) {
        return Err(format!("{tool} {way}: {ended:#?}"));
    }
    // A datagram has at most 4096 bytes.
    let rows = match way.contains("-a") && way.contains("UD") {
        true => 12,
        false => rows,
    };
    match client.rows().len() == rows {
        true => Ok(()),
        false => Err(format!("{tool} {way}: not {rows} rows: {client:#?}")),
    }
}

#[test]
fn every_tool_runs_every_way_and_moves_the_right_data() {
    let payload = PayloadFile::new();
    let ways: Vec<(&str, &str, usize)> = TOOLS
        .iter()
        .flat_map(|tool| WAYS.iter().map(move |(way, rows)| (*tool, *way, *rows)))
        .filter(|(tool, way, _)| is_legal(tool, way))
        .collect();
    // Two lists side by side: what a run does mostly is to wait.
    let (even, odd): (Vec<_>, Vec<_>) = ways.iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let run = |ways: Vec<(usize, &(&str, &str, usize))>| -> Vec<String> {
        ways.iter()
            .filter_map(|(_, (tool, way, rows))| try_way(tool, way, *rows, &payload).err())
            .collect()
    };
    let failed = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(odd));
        let mut failed = run(even);
        failed.extend(other.join().unwrap());
        failed
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
