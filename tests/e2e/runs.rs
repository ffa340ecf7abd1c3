//! What options do to a test and to its screen.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{
    Ended, Running, Turn, WRITE_BW, WRITE_LAT, good_pair, run, start, start_pair,
};

/// A number of a row.
fn number(field: &str) -> f64 {
    field.parse().unwrap()
}

/// The rows of both ends of a bandwidth test that shows the same on both.
fn same_rows(line: &str) -> Vec<Vec<f64>> {
    let [server, client] = good_pair(WRITE_BW, line);
    for (server, client) in server.rows().iter().zip(client.rows()) {
        // Behind them is the processors' use, each end's own.
        assert_eq!(server[..5], client[..5], "{line}");
    }
    numbers(&client)
}

fn numbers(ended: &Ended) -> Vec<Vec<f64>> {
    let rows = ended.rows();
    assert!(!rows.is_empty(), "{ended:#?}");
    rows.iter()
        .map(|row| row.iter().map(|field| number(field)).collect())
        .collect()
}

#[test]
fn a_row_agrees_with_itself() {
    for (line, size, messages) in [
        ("-n 1000", 65536.0, 1000.0),
        ("-n 1000 -s 1", 1.0, 1000.0),
        ("-n 1000 -s 4097 -m 1024", 4097.0, 1000.0),
        ("-n 300 -q 4 -s 2048", 2048.0, 1200.0),
        ("-n 800 -l 8 -s 64", 64.0, 800.0),
        ("-n 1000 -s 64 -Q 300", 64.0, 1000.0),
        ("-n 130 -s 64 -t 128", 64.0, 130.0),
        ("-n 400 -l 4 -Q 2 -q 2 -s 256", 256.0, 800.0),
        ("-n 200 -c UC", 65536.0, 200.0),
        ("-n 200 -q 3 --mr_per_qp", 65536.0, 600.0),
        ("-n 200 -s 64 --perform_warm_up", 64.0, 200.0),
        ("-n 200 -x 0", 65536.0, 200.0),
        ("-n 200 --seed 7", 65536.0, 200.0),
        ("-n 200 --pin_cores=0", 65536.0, 200.0),
    ] {
        let rows = same_rows(line);
        let [row] = rows.as_slice() else {
            panic!("{line}: {rows:?}");
        };
        let [shown, count, peak, average, rate] = row[..] else {
            panic!("{line}: {row:?}");
        };
        assert_eq!((shown, count), (size, messages), "{line}");
        assert!(average > 0.0 && peak >= average * 0.99, "{line}: {row:?}");
        // Millions of messages a second times bytes are MiB/s; both are rounded.
        let from_rate = rate * 1e6 * size / f64::from(1 << 20);
        assert!(
            (from_rate - average).abs() <= average * 0.01 + 0.01,
            "{line}: {row:?}"
        );
    }
}

#[test]
fn all_sizes_have_a_row_each() {
    let [server, client] = good_pair(WRITE_BW, "-a -n 10");
    let sizes: Vec<f64> = numbers(&client).iter().map(|row| row[0]).collect();
    let expected: Vec<f64> = (1..=23).map(|power| f64::from(1 << power)).collect();
    assert_eq!(sizes, expected);
    // The passive end learns of the last size only.
    assert_eq!(server.rows().len(), 1);
    let [server, client] = good_pair(WRITE_BW, "-a -b -n 10");
    assert_eq!(server.rows().len(), 23);
    assert_eq!(client.rows().len(), 23);
    let [server, client] = good_pair(WRITE_LAT, "-a -n 20");
    assert_eq!(server.rows().len(), 23);
    assert_eq!(client.rows().len(), 23);
}

#[test]
fn a_timed_test_takes_its_time_and_shows_no_peak() {
    let start = Instant::now();
    let rows = same_rows("-D 1 --cpu_util -s 4096");
    assert!(start.elapsed() >= Duration::from_secs(1));
    let [_, count, peak, average, _, cpu] = rows[0][..] else {
        panic!("{rows:?}");
    };
    assert!(count > 0.0 && average > 0.0 && peak == 0.0, "{rows:?}");
    assert!((0.0..=100.0).contains(&cpu), "{rows:?}");
}

#[test]
fn both_directions_add_up() {
    let [server, client] = good_pair(WRITE_BW, "-b -n 300 --report-both");
    for ended in [&server, &client] {
        let rows: Vec<Vec<&str>> = ended
            .out
            .lines()
            .filter(|line| line.starts_with(" 65536 "))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 3, "{}", ended.out);
        let averages: Vec<f64> = rows.iter().map(|row| number(row[3])).collect();
        assert!(
            (averages[1] + averages[2] - averages[0]).abs() < 0.02,
            "{averages:?}"
        );
    }
}

/// With immediate data the receiver measures by itself.
#[test]
fn both_ends_of_a_write_with_immediate_measure() {
    for (line, size, messages) in [
        ("-n 300", 65536.0, 300.0),
        ("-n 101 -s 64", 64.0, 101.0),
        ("-n 300 -q 3 -s 4097 -m 1024", 4097.0, 900.0),
        ("-n 800 -l 8 --recv_post_list=4 -s 64", 64.0, 800.0),
        ("-n 1000 -r 6 -s 64", 64.0, 1000.0),
        ("-n 200 -c UC", 65536.0, 200.0),
        ("-n 200 -q 2 --mr_per_qp", 65536.0, 400.0),
        ("-n 200 -s 64 --reversed", 64.0, 200.0),
    ] {
        let ends = good_pair(WRITE_BW, &format!("--write_with_imm {line}"));
        let [receiver, sender] = match line.contains("--reversed") {
            true => [&ends[1], &ends[0]],
            false => [&ends[0], &ends[1]],
        };
        for (ended, has_peak) in [(receiver, false), (sender, true)] {
            let rows = numbers(ended);
            let [row] = rows.as_slice() else {
                panic!("{line}: {rows:?}");
            };
            assert_eq!((row[0], row[1]), (size, messages), "{line}");
            assert_eq!(row[2] > 0.0, has_peak, "{line}: {row:?}");
            assert!(row[3] > 0.0, "{line}: {row:?}");
            assert_eq!(ended.out.contains(" TX depth "), has_peak, "{line}");
            assert_eq!(ended.out.contains(" RX depth "), !has_peak, "{line}");
            assert!(!ended.out.contains("RKey"), "{line}");
        }
    }
}

#[test]
fn writes_with_immediate_go_both_ways() {
    for line in ["-n 300", "-n 301 -q 2 -s 64", "-n 200 -l 4 -c UC -s 64"] {
        let rows = same_rows(&format!("--write_with_imm -b {line}"));
        assert_eq!(rows.len(), 1, "{line}: {rows:?}");
    }
    // Each end knows both directions, and tells the other nothing.
    for ended in good_pair(WRITE_BW, "--write_with_imm -b -D 1 -s 4096") {
        let rows = numbers(&ended);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(rows[0][1] > 0.0 && rows[0][3] > 0.0, "{rows:?}");
    }
}

#[test]
fn all_sizes_with_immediate_have_a_row_at_both_ends() {
    for (tool, line) in [
        (WRITE_BW, "-a -n 10"),
        (WRITE_BW, "-a -b -n 10"),
        (WRITE_LAT, "-a -n 20"),
    ] {
        for ended in good_pair(tool, &format!("--write_with_imm {line}")) {
            assert_eq!(ended.rows().len(), 23, "{tool} {line}");
        }
    }
}

#[test]
fn a_timed_write_with_immediate_is_counted_at_both_ends() {
    for ended in good_pair(WRITE_BW, "--write_with_imm -D 1 --cpu_util -s 4096") {
        let rows = numbers(&ended);
        let [_, count, peak, average, _, _] = rows[0][..] else {
            panic!("{rows:?}");
        };
        assert!(count > 0.0 && average > 0.0 && peak == 0.0, "{rows:?}");
    }
}

#[test]
fn a_write_with_immediate_is_not_warmed_up() {
    let [server, client] = good_pair(WRITE_BW, "--write_with_imm -n 200 --perform_warm_up");
    assert!(client.err.contains("Warm up not supported for WRITE_IMM"));
    assert_eq!(numbers(&server)[0][1], 200.0);
}

#[test]
fn units_and_peak_are_chosen() {
    let gbits = good_pair(WRITE_BW, "-n 200 --report_gbits");
    assert!(gbits[1].out.contains("BW average[Gb/sec]"));
    let row = &numbers(&gbits[1])[0];
    let from_rate = row[4] * 65536.0 * 8.0 / 1000.0;
    assert!((from_rate - row[3]).abs() < 0.02, "{row:?}");
    let no_peak = good_pair(WRITE_BW, "-n 200 -N");
    assert_eq!(numbers(&no_peak[1])[0][2], 0.0);
}

#[test]
fn only_the_number_is_shown() {
    let [server, client] = good_pair(WRITE_BW, "-n 200 --output=bandwidth");
    for ended in [&server, &client] {
        let last = ended.out.lines().last().unwrap();
        assert!(number(last) > 0.0, "{ended:#?}");
        assert_eq!(last.split_once('.').unwrap().1.len(), 6);
        assert!(!ended.out.contains("---"), "{ended:#?}");
    }
    let [_, client] = good_pair(WRITE_LAT, "-n 100 --output=latency");
    assert!(number(client.out.lines().last().unwrap()) > 0.0);
}

#[test]
fn limits_decide_the_exit_code_of_the_active_end() {
    let [server, client] = crate::support::pair(WRITE_BW, "-n 100 -w 10000000");
    assert_eq!(server.code, Some(0));
    client.assert_failed(1, 20);
    assert!(
        client.err.contains("Error: BW result is below bw limit\n"),
        "{client:#?}"
    );
    let [_, client] = crate::support::pair(WRITE_BW, "-n 100 -w 0.001 -y 10000000");
    client.assert_failed(1, 20);
    assert!(
        client
            .err
            .contains("Error: Msg rate  is below msg_rate limit\n")
    );
    // Stock doesn't judge the rate alone.
    good_pair(WRITE_BW, "-n 100 -y 10000000");
    good_pair(WRITE_BW, "-n 100 -w 0.001");
}

#[test]
fn the_rate_is_limited() {
    // 100 messages a second: 0.0001 million.
    let line = "-n 50 -s 1024 --rate_limit=100 --rate_units=p --rate_limit_type=SW --burst_size=10";
    let row = &same_rows(line)[0];
    assert!(row[4] <= 0.000_101, "{row:?}");
    let [_, client] = good_pair(WRITE_BW, "-n 50 --rate_limit=10");
    assert!(
        client.err.contains("providing SW rate limit"),
        "{client:#?}"
    );
}

#[test]
fn latency_is_ordered() {
    for line in [
        "-n 200",
        "-n 200 -s 4096",
        "-n 200 -c UC",
        "-n 200 --write_with_imm",
        "-n 200 --write_with_imm -s 4096 -r 4 -c UC",
        "-n 100 --latency_gap=20",
        "-n 100 -C",
    ] {
        for ended in good_pair(WRITE_LAT, line) {
            let rows = numbers(&ended);
            let [_, count, min, max, typical, average, _, p99, p99_9] = rows[0][..] else {
                panic!("{line}: {rows:?}");
            };
            assert!(count >= 100.0 && min > 0.0, "{line}: {rows:?}");
            assert!(min <= typical && typical <= p99, "{line}: {rows:?}");
            assert!(min <= average && average <= max, "{line}: {rows:?}");
            assert!(p99 <= p99_9 && p99_9 <= max, "{line}: {rows:?}");
        }
    }
}

#[test]
fn latency_lists_all_samples() {
    let [_, client] = good_pair(WRITE_LAT, "-n 30 -U -H");
    let lists: Vec<&str> = client.out.split("#, usec\n").skip(1).collect();
    let [unsorted, sorted] = lists[..] else {
        panic!("{}", client.out);
    };
    let samples = |list: &str| -> Vec<f64> {
        list.lines()
            .map_while(|line| line.split_once(", "))
            .map(|(_, value)| number(value))
            .collect()
    };
    assert_eq!(samples(unsorted).len(), 29);
    let sorted = samples(sorted);
    assert_eq!(sorted.len(), 27);
    assert!(sorted.is_sorted());
}

#[test]
fn timed_latency_counts_transactions() {
    for line in ["-D 1", "-D 1 --write_with_imm"] {
        let [_, client] = good_pair(WRITE_LAT, line);
        let rows = numbers(&client);
        let [size, count, average, tps] = rows[0][..] else {
            panic!("{rows:?}");
        };
        assert_eq!(size, 2.0);
        assert!(count > 10.0, "{rows:?}");
        // Half a round trip, in microseconds; both numbers are rounded.
        assert!((average * 2.0 * tps / 1e6 - 1.0).abs() < 0.01, "{rows:?}");
    }
}

/// A file of its own for one test.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}.{}.json", std::process::id()));
    // Left over from a run that failed.
    let _ = std::fs::remove_file(&file);
    file
}

#[test]
fn the_report_file_says_what_the_screen_says() {
    let file = scratch("bandwidth");
    let name = file.display();
    let _turn = Turn::take();
    let line = format!("-n 200 -q 2 --out_json --out_json_file={name}");
    let [server, client] = start_pair([WRITE_BW; 2], ["-n 200 -q 2", &line]).map(Running::wait);
    assert_eq!(
        (server.code, client.code),
        (Some(0), Some(0)),
        "{client:#?}"
    );
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let row = &numbers(&client)[0];
    let results = &report["results"];
    assert_eq!(results["MsgSize"], 65536);
    assert_eq!(results["n_iterations"], 400);
    assert_eq!(results["BW_average"].as_f64(), Some(row[3]));
    assert_eq!(report["test_info"]["Device"], "urxe_lo");
    assert_eq!(report["test_info"]["Number_of_qps"], 2);
}

#[test]
fn an_unwritable_report_file_is_told_and_no_failure() {
    let _turn = Turn::take();
    let line = "-n 100 --out_json --out_json_file=/nonexistent/report.json";
    let [server, client] = start_pair([WRITE_BW; 2], ["-n 100", line]).map(Running::wait);
    assert_eq!((server.code, client.code), (Some(0), Some(0)));
    assert!(
        client.err.contains("/nonexistent/report.json"),
        "{client:#?}"
    );
}

#[test]
fn roles_can_be_reversed() {
    let [server, client] = good_pair(WRITE_BW, "-n 200 --reversed");
    assert!(server.out.contains(" TX depth        : 128"));
    assert!(!client.out.contains(" TX depth "));
    assert!(client.out.contains("* Waiting for client to connect... *"));
    assert_eq!(server.rows(), client.rows());
}

#[test]
fn an_interrupt_ends_an_endless_test_in_good_order() {
    let _turn = Turn::take();
    let line = "--run_infinitely -D 1 -s 4096";
    let [server, client] = start_pair([WRITE_BW; 2], [line; 2]);
    std::thread::sleep(Duration::from_millis(2600));
    client.signal(Signal::SIGINT);
    let (client, server) = (client.wait(), server.wait());
    assert_eq!(
        (server.code, client.code),
        (Some(0), Some(0)),
        "{client:#?}{server:#?}"
    );
    assert!(
        client.out.contains("\n User stopped traffic\n---"),
        "{}",
        client.out
    );
    assert!(
        server.out.contains("\n Client closed connection\n---"),
        "{}",
        server.out
    );
    let rows = client.out.lines().filter(|line| line.starts_with(" 4096 "));
    assert!((1..=3).contains(&rows.count()), "{}", client.out);
}

#[test]
fn an_interrupt_ends_any_other_test_at_once() {
    let _turn = Turn::take();
    let server = start(WRITE_BW, &format!("-p {}", crate::support::free_port()));
    std::thread::sleep(Duration::from_millis(300));
    server.signal(Signal::SIGINT);
    server.wait().assert_failed(130, 10);

    for (tool, line) in [(WRITE_BW, "-D 30"), (WRITE_LAT, "-D 30")] {
        let [server, client] = start_pair([tool; 2], [line; 2]);
        std::thread::sleep(Duration::from_millis(1000));
        client.signal(Signal::SIGINT);
        client.wait().assert_failed(130, 10);
        server.wait().assert_failed(1, 15);
    }
}

#[test]
fn both_ends_in_one_process() {
    let _turn = Turn::take();
    for (tool, line) in [
        (WRITE_BW, "--loopback -n 300"),
        (WRITE_BW, "--loopback -n 100 -b -q 2"),
        (WRITE_BW, "--loopback -n 100 --ipv6-addr"),
        (WRITE_BW, "--loopback -n 300 --write_with_imm"),
        (WRITE_LAT, "--loopback -n 200"),
        (WRITE_LAT, "--loopback -n 200 --write_with_imm"),
    ] {
        let ended = run(tool, line);
        assert_eq!(ended.code, Some(0), "{line}: {ended:#?}");
        assert_eq!(ended.rows().len(), 1, "{line}: {ended:#?}");
        assert!(!ended.out.contains("Waiting for client"), "{line}");
    }
    let ended = run(WRITE_BW, "--loopback -x 63");
    ended.assert_failed(1, 10);
}

#[test]
fn a_named_device_is_used() {
    let [server, client] = good_pair(WRITE_BW, "-n 100 -d urxe_lo");
    for ended in [server, client] {
        assert!(ended.out.contains("Device         : urxe_lo"));
        assert_eq!(ended.err, "", "nothing to say");
    }
}
