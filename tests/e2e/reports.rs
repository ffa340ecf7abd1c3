//! The report file, and what is measured beyond stock perftest.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{
    Ended, READ_LAT, Running, SEND_BW, SEND_LAT, Turn, WRITE_BW, WRITE_LAT, good_pair, pair, run,
    start_pair,
};

/// A file of its own for one test, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let file = folder.join(format!("{name}.{}", std::process::id()));
        // Left over from a run that failed.
        let _ = std::fs::remove_file(&file);
        Self(file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs a pair whose client has more arguments; both have to end well.
fn pair_with(tool: &str, line: &str, client_has: &str) -> [Ended; 2] {
    let client = format!("{line} {client_has}");
    let _turn = Turn::take();
    let ends = start_pair([tool; 2], [line, &client]).map(Running::wait);
    for ended in &ends {
        assert_eq!(ended.code, Some(0), "{client}: {ended:#?}");
    }
    ends
}

/// Runs a pair, and reads the report file of its client.
fn report(tool: &str, line: &str, client_has: &str) -> (Value, [Ended; 2]) {
    let name: String = line.chars().filter(char::is_ascii_alphanumeric).collect();
    let file = Scratch::new(&format!("{tool}{name}.json"));
    let name = file.0.display();
    let options = format!("--out_json --out_json_file={name} {client_has}");
    let ends = pair_with(tool, line, &options);
    let text = std::fs::read(&file.0).unwrap();
    (serde_json::from_slice(&text).unwrap(), ends)
}

#[test]
fn json_under_all_sizes_has_every_size_and_not_only_the_last() {
    let (report, _) = report(WRITE_BW, "-a -n 5", "");
    let sizes: Vec<u64> = report["all_results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["MsgSize"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (1..=23).map(|exponent| 1 << exponent).collect();
    assert_eq!(sizes, expected);
    assert_eq!(report["results"]["MsgSize"], 1 << 23);
}

#[test]
fn json_of_one_size_has_no_keys_that_stock_has_not() {
    let (report, _) = report(WRITE_BW, "-n 100", "");
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["test_info", "results"]);
}

#[test]
fn json_of_report_both_is_one_document_with_both_directions() {
    let (report, [_, client]) = report(WRITE_BW, "-b -n 200 --report-both", "");
    let average = |key: &str| report[key]["BW_average"].as_f64().unwrap();
    let (sum, local, remote) = (
        average("results"),
        average("local_results"),
        average("remote_results"),
    );
    assert!((sum - local - remote).abs() < 0.02, "{report}");
    assert!(client.out.contains(" Remote results:"), "{client:#?}");
}

#[test]
fn json_with_a_single_number_parses() {
    for (tool, output, key) in [
        (WRITE_BW, "bandwidth", "bw_avg"),
        (WRITE_BW, "message_rate", "msgRate_avg"),
        (WRITE_LAT, "latency", "avg_lat"),
    ] {
        let line = format!("-n 100 --output={output}");
        let (report, [_, client]) = report(tool, &line, "");
        let shown = client.out.lines().last().unwrap();
        let shown: f64 = shown.parse().unwrap();
        assert_eq!(report["results"][key].as_f64(), Some(shown), "{report}");
    }
}

#[test]
fn msgrate_matches_iterations_and_duration() {
    let (report, _) = report(WRITE_BW, "-D 2 -f 0 -s 4096", "");
    let get = |key: &str| report["results"][key].as_f64().unwrap();
    let rate = get("n_iterations") / 2e6;
    // The sampled time ends with the first look at the clock after it.
    assert!((get("MsgRate") / rate - 1.0).abs() < 0.02, "{report}");
    let bandwidth = get("MsgRate") * 1e6 * 4096.0 / f64::from(1 << 20);
    assert!(
        (get("BW_average") / bandwidth - 1.0).abs() < 0.01,
        "{report}"
    );
}

/// The values of the line about percentiles on stderr.
fn percentiles(ended: &Ended) -> Vec<f64> {
    let line = ended
        .err
        .lines()
        .find(|line| line.contains(": percentiles of "));
    let (_, values) = line.unwrap().split_once("[usec]: ").unwrap();
    values
        .split(", ")
        .map(|value| value.split_once("% ").unwrap().1.parse().unwrap())
        .collect()
}

#[test]
fn percentiles_are_shown_in_counted_and_in_timed_runs() {
    for line in ["-n 1000", "-D 1", "-D 1 --write_with_imm", "-D 1 -C"] {
        let wanted = "--percentiles=50,99,100";
        let (report, [server, client]) = report(WRITE_LAT, line, wanted);
        let shown = percentiles(&client);
        assert_eq!(shown.len(), 3, "{client:#?}");
        assert!(shown[0] > 0.0 && shown.is_sorted(), "{client:#?}");
        let file = &report["results"]["percentiles"];
        let filed = ["50", "99", "100"].map(|percent| file[percent].as_f64().unwrap());
        assert_eq!(shown, filed);
        assert!(!server.err.contains("percentiles"), "{server:#?}");
        // Not where a script looks for rows.
        assert!(!client.out.contains("percentiles"), "{client:#?}");
    }
}

#[test]
fn percentiles_agree_with_the_row() {
    let [_, client] = pair_with(WRITE_LAT, "-n 1001", "--percentiles=0.01,99");
    let shown = percentiles(&client);
    let row: Vec<f64> = client.rows()[0]
        .iter()
        .map(|f| f.parse().unwrap())
        .collect();
    let (least, p99) = (row[2], row[7]);
    assert!((shown[0] - least).abs() < 0.02, "{client:#?}");
    // Stock leaves two samples out of 1000.
    assert!((shown[1] / p99 - 1.0).abs() < 0.5, "{client:#?}");
}

#[test]
fn the_distribution_is_saved_for_hdrhistogram() {
    for line in ["-n 1000", "-D 1"] {
        let file = Scratch::new(&format!("distribution{}", line.len()));
        let option = format!("--hdr_file={}", file.0.display());
        let [_, client] = pair_with(WRITE_LAT, line, &option);
        let text = std::fs::read_to_string(&file.0).unwrap();
        let count = text.rsplit_once("Total count    = ").unwrap().1;
        let count: u64 = count.trim().trim_end_matches(']').parse().unwrap();
        let iterations: u64 = client.rows()[0][1].parse().unwrap();
        // The first span begins with the first message of the sampled time.
        assert!(count.abs_diff(iterations) <= 2, "{count}: {client:#?}");
    }
}

#[test]
fn percentiles_are_checked() {
    for (tool, line, text) in [
        (WRITE_LAT, "--percentiles=50,101", "'101' in --percentiles"),
        (WRITE_LAT, "--percentiles=0", "'0' in --percentiles"),
        (WRITE_LAT, "--percentiles=50,", "'' in --percentiles"),
        (WRITE_BW, "--percentiles=50", "only on latency tests"),
        (WRITE_BW, "--hdr_file=x", "only on latency tests"),
    ] {
        let ended = run(tool, line);
        assert_eq!(ended.code, Some(1), "{ended:#?}");
        assert!(ended.err.contains(text), "{ended:#?}");
    }
}

#[test]
fn live_lines_go_to_stderr_while_messages_flow() {
    for (tool, line, unit) in [
        (WRITE_BW, "-D 2 -f 0", "MiB/sec"),
        (WRITE_LAT, "-D 2 -f 0", "usec"),
        (WRITE_BW, "-D 2 -f 0 --write_with_imm", "MiB/sec"),
    ] {
        let [server, client] = pair_with(tool, line, "--interval=0.5");
        let lines: Vec<&str> = client
            .err
            .lines()
            .filter(|line| line.contains(" messages of "))
            .collect();
        // The first at 0.5 s, the last before 2 s; a busy host may skip one.
        assert!((2..=4).contains(&lines.len()), "{client:#?}");
        assert!(lines.iter().all(|line| line.contains(unit)), "{client:#?}");
        assert!(!lines.iter().any(|line| line.contains(" 0 messages")));
        assert!(!client.out.contains(" messages of "), "{client:#?}");
        assert!(!server.err.contains(" messages of "), "{server:#?}");
    }
}

#[test]
fn live_lines_agree_with_the_row() {
    let [_, client] = pair_with(WRITE_BW, "-D 2 -f 0", "--interval=1.5 -s 65536");
    let line = client
        .err
        .lines()
        .find(|line| line.contains("MiB/sec"))
        .unwrap();
    let (before, _) = line.split_once(" MiB/sec").unwrap();
    let live: f64 = before.rsplit(' ').next().unwrap().parse().unwrap();
    let row: f64 = client.rows()[0][3].parse().unwrap();
    // Three quarters of the same run.
    assert!((0.6..1.7).contains(&(live / row)), "{client:#?}");
}

/// The line about several runs on stderr.
fn summaries(ended: &Ended) -> Vec<&str> {
    let lines = ended.err.lines();
    lines.filter(|line| line.contains(" runs of ")).collect()
}

#[test]
fn repeats_of_one_way_writes_need_no_word_of_the_server() {
    let (report, [server, client]) = report(WRITE_BW, "-n 200", "--repeat=8");
    assert_eq!(client.rows().len(), 8, "{client:#?}");
    assert_eq!(server.rows().len(), 1, "{server:#?}");
    assert_eq!(summaries(&client).len(), 1, "{client:#?}");
    assert!(summaries(&client)[0].contains("with 95% confidence"));
    let rows = report["all_results"].as_array().unwrap();
    let mut averages: Vec<f64> = rows
        .iter()
        .map(|row| row["BW_average"].as_f64().unwrap())
        .collect();
    averages.sort_by(f64::total_cmp);
    let repeats = &report["repeats"][0];
    assert_eq!(repeats["runs"], 8);
    assert_eq!(repeats["min"].as_f64(), Some(averages[0]));
    assert_eq!(repeats["max"].as_f64(), Some(averages[7]));
    let median = repeats["median"].as_f64().unwrap();
    assert!((median - f64::midpoint(averages[3], averages[4])).abs() < 0.02);
}

#[test]
fn repeats_that_both_ends_take_part_in() {
    for (tool, line, rows) in [
        // The last byte of a run's last message is that of the next one's first.
        (WRITE_LAT, "-n 257 --repeat=6", 6),
        (WRITE_LAT, "-n 100 --repeat=2 --write_with_imm", 2),
        (WRITE_BW, "-n 100 --repeat=3 -b", 3),
        (WRITE_BW, "-n 100 --repeat=3 --write_with_imm", 3),
        (SEND_BW, "-n 100 --repeat=3 -q 2", 3),
        (SEND_LAT, "-n 100 --repeat=3", 3),
        (WRITE_LAT, "-n 5 --repeat=2 -a", 46),
        (SEND_BW, "-n 5 --repeat=2 -a -b", 46),
    ] {
        for ended in good_pair(tool, line) {
            assert_eq!(ended.rows().len(), rows, "{tool} {line}: {ended:#?}");
            let sizes = if rows == 46 { 23 } else { 1 };
            assert_eq!(summaries(&ended).len(), sizes, "{tool} {line}: {ended:#?}");
        }
    }
    let [_, client] = good_pair(READ_LAT, "-n 100 --repeat=6");
    assert_eq!(summaries(&client).len(), 1, "{client:#?}");
}

#[test]
fn repeats_that_only_one_end_wants_are_refused_at_both() {
    let _turn = Turn::take();
    let lines = ["-n 100", "-n 100 --repeat=5"];
    let [server, client] = start_pair([WRITE_LAT; 2], lines).map(Running::wait);
    server.assert_failed(1, 10);
    client.assert_failed(1, 10);
    assert!(
        client.err.contains("5 times and the peer 1 times"),
        "{client:#?}"
    );
    assert!(
        server.err.contains("1 times and the peer 5 times"),
        "{server:#?}"
    );
    let ended = run(WRITE_BW, "-D 2 --repeat=5");
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.err.contains("--repeat repeats a number"),
        "{ended:#?}"
    );
}

/// Runs a pair with the same arguments; returns the exit codes and stderr.
fn codes(tool: &str, line: &str) -> ([Option<i32>; 2], [String; 2]) {
    let ends = pair(tool, line);
    (ends.each_ref().map(|end| end.code), ends.map(|end| end.err))
}

#[test]
fn limits_fail_the_test_in_both_directions_and_in_timed_runs_too() {
    const LOW: &str = "Error: BW result is below bw limit\n";
    const SLOW: &str = "Error: Msg rate  is below msg_rate limit\n";
    for (tool, line, failing, text) in [
        (WRITE_BW, "-n 100 -w 1e9", [0, 1], LOW),
        (WRITE_BW, "-n 100 -b -w 1e9", [1, 1], LOW),
        (WRITE_BW, "-D 1 -w 1e9", [0, 1], LOW),
        (WRITE_BW, "-D 1 -b -w 1e9", [1, 1], LOW),
        (WRITE_BW, "-D 1 -b -w 0 -y 1e6", [1, 1], SLOW),
        (SEND_BW, "-n 100 -w 1e9", [1, 1], LOW),
        (SEND_BW, "-D 1 -b -w 0.001 -y 1e6", [1, 1], SLOW),
        (WRITE_BW, "-D 1 -w 0.001 -y 0.000001", [0, 0], ""),
    ] {
        let (found, err) = codes(tool, line);
        assert_eq!(found, failing.map(Some), "{tool} {line}: {err:#?}");
        for (code, err) in failing.iter().zip(&err) {
            assert_eq!(*code == 1, err.contains(": the test ran, but"), "{err}");
            assert!(*code == 0 || err.contains(text), "{tool} {line}: {err}");
        }
    }
}

#[test]
fn a_limit_of_the_message_rate_alone_is_remarked_on() {
    let (found, err) = codes(WRITE_BW, "-n 100 -y 1e6");
    assert_eq!(found, [Some(0), Some(0)], "{err:#?}");
    assert!(err[1].contains("give -w 0, too"), "{err:#?}");
    assert!(!err[0].contains("-w 0"), "{err:#?}");
}
