//! The report file, and what is measured beyond stock perftest.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Ended, Running, Turn, WRITE_BW, WRITE_LAT, start_pair};

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
