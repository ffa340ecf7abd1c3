//! What users of stock perftest complain about, and what must not happen here.
//! Each test is named after what it shows.

use nix::sys::signal::Signal;
use std::time::Duration;

use crate::support::payload::PayloadFile;
use crate::support::{
    ATOMIC_BW, ATOMIC_LAT, Ended, READ_BW, READ_LAT, Running, SEND_BW, SEND_LAT, Turn, WRITE_BW,
    WRITE_LAT, free_port, good_pair, run, start, start_pair,
};

/// Runs a server and a client with arguments of their own.
fn pair_of(tool: &str, lines: [&str; 2]) -> [Ended; 2] {
    let _turn = Turn::take();
    start_pair([tool; 2], lines).map(Running::wait)
}

/// As [`pair_of`]; both have to end well.
fn good_pair_of(tool: &str, lines: [&str; 2]) -> [Ended; 2] {
    let ends = pair_of(tool, lines);
    for ended in &ends {
        assert_eq!(ended.code, Some(0), "{tool} {lines:?}: {ended:#?}");
    }
    ends
}

/// A number of the client's only row.
#[track_caller]
fn figure(ended: &Ended, column: usize) -> f64 {
    let rows = ended.rows();
    assert_eq!(rows.len(), 1, "{ended:#?}");
    rows[0][column].parse().unwrap()
}

const ITERATIONS: usize = 1;
const AVERAGE: usize = 3;
const MESSAGE_RATE: usize = 4;

/// Whether a limit is kept within 2 %. It is never exceeded, but a busy host
/// may hold the last message back, so there are three attempts.
fn keeps_limit(tool: &str, line: &str, column: usize, limit: f64) {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let line = format!("--rate_limit_type=SW {line}");
        let [_, client] = good_pair(tool, &line);
        let rate = figure(&client, column);
        assert!(rate <= limit * 1.02, "{tool} {line}: {rate}, not {limit}");
        if rate >= limit * 0.98 {
            return;
        }
        seen.push(rate);
    }
    panic!("{tool} {line}: {seen:?}, not {limit}");
}

#[test]
fn a_software_rate_limit_is_right_within_2_percent() {
    for (tool, line, column, limit) in [
        // Few bursts of many messages, the last one not full.
        (
            WRITE_BW,
            "--rate_limit=1000 --rate_units=p -s 64 -n 1000",
            MESSAGE_RATE,
            0.001,
        ),
        (
            WRITE_BW,
            "--rate_limit=2000 --rate_units=p -s 64 -D 1",
            MESSAGE_RATE,
            0.002,
        ),
        // Lists larger than bursts.
        (
            WRITE_BW,
            "--rate_limit=2000 --rate_units=p -s 64 -n 2000 -l 10 --burst_size=3",
            MESSAGE_RATE,
            0.002,
        ),
        // One limit for all queue pairs.
        (
            WRITE_BW,
            "--rate_limit=2000 --rate_units=p -s 64 -n 500 -q 4 --burst_size=7",
            MESSAGE_RATE,
            0.002,
        ),
        (
            SEND_BW,
            "--rate_limit=50 --rate_units=M -n 800",
            AVERAGE,
            50.0,
        ),
        (
            READ_BW,
            "--rate_limit=0.4 --rate_units=g --report_gbits -n 700",
            AVERAGE,
            0.4,
        ),
    ] {
        keeps_limit(tool, line, column, limit);
    }
}

/// MiB a second, of messages of 1 or 2 MiB.
#[test]
fn the_average_is_right_when_the_rate_limit_is_below_one_message_a_second() {
    for line in [
        "--rate_limit=1.6 --rate_units=M -s 2097152 -n 5",
        "--rate_limit=1.6 --rate_units=M -s 2097152 -D 5 --burst_size=1",
    ] {
        keeps_limit(WRITE_BW, line, AVERAGE, 1.6);
    }
}

#[test]
fn a_limited_sender_may_wait_for_longer_than_the_peer_timeout() {
    let line = "--rate_limit=0.8 --rate_units=p --rate_limit_type=SW --burst_size=1 -n 5 -s 64 \
                --peer-timeout 1";
    let [_, client] = good_pair(WRITE_BW, line);
    assert!(client.took >= Duration::from_secs(6), "{client:#?}");
}

/// The lines of the header that say how messages are posted.
fn posting(ended: &Ended) -> Vec<&str> {
    let lines = ended.out.lines();
    lines
        .filter(|line| line.contains("depth") || line.contains("CQ Moderation"))
        .collect()
}

#[test]
fn all_sizes_and_one_size_are_run_in_the_same_way() {
    for (tool, line) in [
        (WRITE_BW, "-n 300"),
        (READ_BW, "-n 300 -t 50"),
        (SEND_BW, "-n 300 -Q 20"),
        (SEND_BW, "-n 300 -b -Q 300"),
    ] {
        let all = good_pair(tool, &format!("{line} -a"));
        for size in ["2", "1024", "8192"] {
            let one = good_pair(tool, &format!("{line} -s {size}"));
            for (all, one) in all.iter().zip(&one) {
                assert!(!posting(all).is_empty(), "{all:#?}");
                assert_eq!(posting(all), posting(one), "{tool} {line} -s {size}");
            }
            // The active end knows every size.
            let [_, all] = &all;
            let rows = all.rows();
            let row = rows.iter().find(|row| row[0] == size).unwrap();
            assert_eq!(row[ITERATIONS], one[1].rows()[0][ITERATIONS]);
            let figures = |row: &[&str]| -> Vec<f64> {
                let fields = row[AVERAGE..=MESSAGE_RATE].iter();
                fields.map(|field| field.parse().unwrap()).collect()
            };
            // Both are of the same messages and the same time.
            for row in [row, &one[1].rows()[0]] {
                let [average, rate] = figures(row)[..] else {
                    panic!("{row:?}");
                };
                let size: f64 = size.parse().unwrap();
                let from_rate = rate * 1e6 * size / f64::from(1 << 20);
                assert!((from_rate - average).abs() <= average * 0.01 + 0.01);
            }
        }
    }
}

#[test]
fn report_gbit_may_be_abbreviated() {
    let [_, client] = good_pair(WRITE_BW, "--report_gbit -n 100");
    assert!(client.out.contains("BW average[Gb/sec]"), "{client:#?}");
}

#[test]
fn latency_tools_take_one_queue_pair() {
    for tool in [WRITE_LAT, READ_LAT, SEND_LAT, ATOMIC_LAT] {
        let [_, client] = good_pair(tool, "-q 1 -n 100");
        assert_eq!(client.rows().len(), 1, "{client:#?}");
    }
}

/// What a device with less gives is tested with the rules; here, that
/// as much as ours gives arrives.
#[test]
fn inline_messages_up_to_the_limit_arrive() {
    let payload = PayloadFile::new();
    for (tool, line) in [
        (WRITE_BW, "-I 1024 -s 1024 -q 3"),
        (SEND_BW, "-I 1024 -s 1023 -m 256"),
        (SEND_LAT, "-I 1024 -s 1024"),
        // Larger messages don't go inline.
        (WRITE_LAT, "-I 1024 -s 1025"),
    ] {
        good_pair(tool, &format!("{line} -n 100 {}", payload.options()));
    }
}

#[test]
fn a_client_may_start_before_its_server() {
    let _turn = Turn::take();
    let port = free_port();
    let client = start(
        WRITE_BW,
        &format!("-p {port} -n 100 --connect_retry 20 127.0.0.1"),
    );
    std::thread::sleep(Duration::from_millis(1500));
    let server = start(WRITE_BW, &format!("-p {port} -n 100"));
    for ended in [server, client].map(Running::wait) {
        assert_eq!(ended.code, Some(0), "{ended:#?}");
    }
}

#[test]
fn all_messages_of_all_queue_pairs_come() {
    for (tool, line, messages) in [
        (READ_BW, "-s 1024 -n 10000 -q 5 -t 12", 50_000),
        (SEND_BW, "-q 16 -s 32 -n 1024 -b", 16_384),
        (SEND_BW, "-q 300 -s 4096 -n 100", 30_000),
        (SEND_BW, "-q 300 -s 64 -n 20 -b", 6_000),
        // Nobody gives credits.
        (SEND_BW, "-q 64 -s 64 -n 200 --use-srq -r 200", 12_800),
    ] {
        for ended in good_pair(tool, line) {
            assert_eq!(
                figure(&ended, ITERATIONS),
                f64::from(messages),
                "{tool} {line}"
            );
        }
    }
}

#[test]
fn no_event_is_lost_with_many_queue_pairs_both_ways() {
    for line in [
        "-b -e -q 16 -n 200 -s 4096",
        "-b -e -q 16 -n 100 -s 2 -Q 1",
        "-b -e -q 16 -n 100 --use-srq",
    ] {
        good_pair(SEND_BW, line);
    }
}

#[test]
fn shallow_queues_that_do_not_divide_each_other_last_for_all_sizes() {
    for ended in good_pair(SEND_BW, "-a -b -t 83 -r 41 -n 100") {
        assert_eq!(ended.rows().len(), 23, "{ended:#?}");
    }
}

#[test]
fn messages_about_as_long_as_packets_arrive_whole() {
    let payload = PayloadFile::new();
    let sizes = [1023, 1024, 1025, 2047, 2048, 2049];
    for (tools, connections) in [
        ([WRITE_BW, WRITE_LAT], &["RC", "UC", "XRC"][..]),
        ([READ_BW, READ_LAT], &["RC", "XRC"]),
        ([SEND_BW, SEND_LAT], &["RC", "UC", "XRC", "UD"]),
    ] {
        for (tool, connection) in tools
            .iter()
            .flat_map(|tool| connections.iter().map(move |connection| (tool, connection)))
        {
            for size in sizes {
                if *connection == "UD" && size > 1024 {
                    continue;
                }
                let line = format!("-c {connection} -m 1024 -s {size} -n 50");
                good_pair(tool, &format!("{line} {}", payload.options()));
            }
        }
    }
}

#[test]
fn a_message_of_two_packets_is_no_datagram() {
    for ended in pair_of(SEND_BW, ["-c UD -m 1024 -s 1025 -n 100"; 2]) {
        assert_eq!(ended.code, Some(1), "{ended:#?}");
        assert!(ended.took < Duration::from_secs(10), "{ended:#?}");
        assert_eq!(ended.complaints().len(), 1, "{ended:#?}");
    }
}

#[test]
fn datagrams_of_a_path_mtu_arrive_in_a_shared_receive_queue() {
    let payload = PayloadFile::new();
    for (tool, line) in [
        (SEND_BW, "-m 4096 -s 4096 -n 200"),
        (
            SEND_BW,
            "-m 1024 -s 1024 -n 1000 -q 2 --rate_limit=5000 --rate_units=p --rate_limit_type=SW --burst_size=10",
        ),
        (SEND_LAT, "-m 1024 -s 1024 -n 200"),
    ] {
        let line = format!("-c UD --use-srq {line} {}", payload.options());
        good_pair(tool, &line);
    }
}

#[test]
fn different_numbers_of_datagram_queue_pairs_are_told_by_both() {
    for lines in [
        ["-c UD -q 4 -n 100", "-c UD -q 2 -n 100"],
        ["-c UD -q 2 -n 100", "-c UD -q 4 -n 100"],
    ] {
        for ended in pair_of(SEND_BW, lines) {
            ended.assert_failed(1, 10);
            assert!(
                ended.err.contains(" num_of_qps mismatch: local="),
                "{lines:?}: {ended:#?}"
            );
        }
    }
}

#[test]
fn ends_with_different_path_mtus_take_the_smaller() {
    let payload = PayloadFile::new();
    for (tool, line) in [
        (READ_BW, "-n 100"),
        (SEND_BW, "-n 100 -c UC"),
        (SEND_BW, "-n 100 -b -s 4097"),
        (SEND_LAT, "-n 100 -s 4097"),
        (SEND_BW, "-n 100 -c UD -s 512"),
        (ATOMIC_BW, "-n 100"),
    ] {
        let data = match tool {
            ATOMIC_BW => "--check_payload".to_owned(),
            _ => payload.options(),
        };
        for mtus in [["512", "4096"], ["4096", "512"]] {
            let lines = mtus.map(|mtu| format!("{line} -m {mtu} {data}"));
            for ended in good_pair_of(tool, [&lines[0], &lines[1]]) {
                let mtu = " Mtu             : 512[B]\n";
                assert!(ended.out.contains(mtu), "{lines:?}: {ended:#?}");
            }
        }
    }
}

/// Who asks for a datagram of the path MTU, without a size, gets another size
/// than the peer.
#[test]
fn different_path_mtus_of_datagrams_of_no_size_are_told_by_both() {
    for lines in [["-c UD -m 512", "-c UD"], ["-c UD", "-c UD -m 512"]] {
        for ended in pair_of(SEND_BW, lines) {
            ended.assert_failed(1, 10);
            assert!(
                ended.err.contains(" size mismatch: local="),
                "{lines:?}: {ended:#?}"
            );
        }
    }
}

#[test]
fn a_peer_that_takes_fewer_reads_at_a_time_gets_no_more() {
    let payload = PayloadFile::new();
    for (tool, line) in [
        (READ_BW, "-n 500"),
        (READ_BW, "-n 200 -q 3 -s 64 -b"),
        (READ_LAT, "-n 200"),
        (ATOMIC_BW, "-n 500"),
        (ATOMIC_BW, "-n 300 -b -q 2 -A CMP_AND_SWAP"),
    ] {
        let data = match tool {
            ATOMIC_BW => "--check_payload".to_owned(),
            _ => payload.options(),
        };
        for reads in [["1", "16"], ["16", "1"], ["3", "128"]] {
            let lines = reads.map(|reads| format!("{line} -o {reads} {data}"));
            good_pair_of(tool, [&lines[0], &lines[1]]);
        }
    }
}

/// Failures at the close come once in many runs.
#[test]
fn runs_in_a_row_all_close_well() {
    let ways = [
        (WRITE_BW, "-n 20"),
        (SEND_BW, "-n 20 -b"),
        (READ_BW, "-n 20 -q 2"),
        (ATOMIC_LAT, "-n 20"),
        (SEND_LAT, "-n 20 -c UD"),
        (WRITE_LAT, "-n 20 --write_with_imm"),
    ];
    for round in 0..10 {
        for (tool, line) in ways {
            for ended in good_pair(tool, line) {
                assert!(ended.complaints().is_empty(), "{round}: {ended:#?}");
            }
        }
    }
}

#[test]
fn a_failed_message_is_told_with_status_queue_pair_wr_id_and_advice() {
    let _turn = Turn::take();
    // Short timeouts: a stopped peer doesn't acknowledge.
    for (tool, line) in [
        (WRITE_BW, "-D 40 -u 8"),
        (READ_BW, "-D 40 -u 8"),
        (SEND_BW, "-D 40 -u 8"),
        (ATOMIC_BW, "-D 40 -u 8"),
    ] {
        let [server, client] = start_pair([tool; 2], [line; 2]);
        std::thread::sleep(Duration::from_millis(1000));
        server.signal(Signal::SIGSTOP);
        let ended = client.wait();
        server.signal(Signal::SIGKILL);
        server.wait();
        assert!(matches!(ended.code, Some(1 | 17)), "{ended:#?}");
        for text in [
            " Failed status-transport retry counter exceeded (12): wr_id 0 syndrom ",
            ": a message failed on queue pair 0x",
            "; the peer acknowledged nothing: see whether it still runs",
        ] {
            assert!(ended.err.contains(text), "{tool} {line}: {ended:#?}");
        }
        assert_eq!(ended.complaints().len(), 1, "{ended:#?}");
    }
}

#[test]
fn a_multicast_group_is_sent_to() {
    let payload = PayloadFile::new();
    for (tool, line) in [
        (SEND_BW, "-n 300"),
        (SEND_BW, "-n 300 -s 33 -e"),
        (
            SEND_BW,
            "-n 300 -M 255:14:0:0:0:0:0:0:0:0:0:0:0:0:0:7 -s 1000",
        ),
        (SEND_LAT, "-n 200"),
        (SEND_LAT, "-n 200 -s 4096 -e"),
    ] {
        for ended in good_pair(tool, &format!("-g {line} {}", payload.options())) {
            assert!(ended.out.contains(" MGID: "), "{tool} {line}: {ended:#?}");
            assert!(ended.out.contains("Multicast"), "{tool} {line}: {ended:#?}");
        }
    }
}

/// The slow sender's receiver counts what the fast one sends to the group, too.
#[test]
fn a_multicast_group_may_have_several_receivers() {
    let _turn = Turn::take();
    let lines = ["2000", "200"].map(|rate| {
        format!(
            "-g -D 2 -s 64 -M 255:14:0:0:0:0:0:0:0:0:0:0:0:0:0:8 --rate_limit={rate} --rate_units=p --rate_limit_type=SW \
             --burst_size=1"
        )
    });
    let fast = start_pair([SEND_BW; 2], [&lines[0]; 2].map(String::as_str));
    let slow = start_pair([SEND_BW; 2], [&lines[1]; 2].map(String::as_str));
    let fast = fast.map(Running::wait);
    let slow = slow.map(Running::wait);
    for ended in fast.iter().chain(&slow) {
        assert_eq!(ended.code, Some(0), "{ended:#?}");
    }
    let [receiver, sender] = slow.map(|ended| figure(&ended, ITERATIONS));
    assert!(receiver > sender * 2.0, "{receiver} of {sender}");
}

#[test]
fn nothing_but_datagrams_of_one_queue_pair_goes_to_a_group() {
    for (tool, line, text) in [
        (SEND_BW, "-g -q 2", "Only 1 QP supported in multicast\n"),
        (
            SEND_BW,
            "-g -b",
            "Bidirectional mode not supported in multicast\n",
        ),
        (
            WRITE_BW,
            "-g",
            " MultiCast feature only available on SEND verb\n",
        ),
    ] {
        let ended = run(tool, line);
        assert_eq!(ended.code, Some(1), "{line}: {ended:#?}");
        let said = format!("{}{}", ended.out, ended.err);
        assert!(said.contains(text), "{line}: {ended:#?}");
    }
}
