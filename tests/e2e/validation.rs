//! `--data_validation`: what is right, what is wrong, and what doesn't fit.

use std::fs;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::support::{READ_BW, Running, Turn, WRITE_BW, good_pair, pair, start_pair};

/// The lines about the validation on standard output.
fn results(out: &str) -> Vec<&str> {
    out.lines()
        .filter(|line| line.starts_with("VALIDATION"))
        .collect()
}

#[test]
fn the_end_that_receives_says_what_it_has_seen() {
    // Chunks of 128 messages, on each queue pair.
    let seen = |role: &str| format!("VALIDATION: PASSED{role} - 1792 chunks, 7340032 bytes");
    let options = "--data_validation -n 1000 -s 4096 -q 2";
    let [server, client] = good_pair(WRITE_BW, options);
    assert_eq!(results(&server.out), [seen("")]);
    assert!(results(&client.out).is_empty(), "{client:#?}");
    let [server, client] = good_pair(READ_BW, options);
    assert!(results(&server.out).is_empty(), "{server:#?}");
    assert_eq!(results(&client.out), [seen("")]);
    for tool in [WRITE_BW, READ_BW] {
        let [server, client] = good_pair(tool, &format!("-b {options}"));
        assert_eq!(results(&server.out), [seen(" (SERVER)")]);
        assert_eq!(results(&client.out), [seen(" (CLIENT)")]);
    }
}

#[test]
fn rings_go_round_for_as_long_as_a_timed_run_takes() {
    for (tool, side) in [(WRITE_BW, 0), (READ_BW, 1)] {
        let ends = good_pair(tool, "--data_validation -D 2 -s 2048 -Q 10");
        let out = &ends[side].out;
        let results = results(out);
        // Nothing overtaken, nothing missed.
        let ends_with_bytes = |line: &&str| line.ends_with(" bytes");
        assert!(
            matches!(&results[..], [line] if ends_with_bytes(line)),
            "{out}"
        );
        let messages: u64 = results[0].split(' ').nth(3).unwrap().parse().unwrap();
        assert!(messages > 0 && messages.is_multiple_of(128), "{out}");
    }
}

#[test]
fn too_few_messages_for_a_chunk_are_told() {
    let [server, client] = good_pair(WRITE_BW, "--data_validation -n 100 -s 64");
    assert!(
        server
            .err
            .contains("VALIDATION: WARNING - no data validated\n"),
        "{server:#?}"
    );
    assert!(server.err.contains("1100 messages"), "{server:#?}");
    assert!(!client.err.contains("VALIDATION"), "{client:#?}");
}

#[test]
fn ends_with_other_chunks_are_refused() {
    let _turn = Turn::take();
    let lines = ["--data_validation -t 64", "--data_validation"];
    for ended in start_pair([WRITE_BW; 2], lines).map(Running::wait) {
        ended.assert_failed(1, 25);
        assert!(ended.complaints()[0].contains("the same -t"), "{ended:#?}");
    }
}

#[test]
fn one_end_that_does_not_validate_is_refused() {
    let _turn = Turn::take();
    for ended in start_pair([READ_BW; 2], ["", "--data_validation"]).map(Running::wait) {
        ended.assert_failed(1, 25);
        let text = " data_validation mismatch: local=";
        assert!(ended.err.contains(text), "{ended:#?}");
    }
}

#[test]
fn loopback_validates_too() {
    let _turn = Turn::take();
    let ended = crate::support::run(READ_BW, "--loopback --data_validation -n 200");
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.out.contains("VALIDATION: PASSED"), "{ended:#?}");
}

/// Message bytes of the runs with an end that goes wrong.
const SIZE: u64 = 4096;

/// Which byte of the second pattern goes wrong, and what it becomes.
const WRONG: (u64, u8) = (77, 0xee);

/// The address of the three patterns in the memory of a process.
fn patterns(pid: u32) -> Option<u64> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let writable = maps.lines().filter(|line| line.contains(" rw-p "));
    let starts = writable.filter_map(|line| u64::from_str_radix(line.split('-').next()?, 16).ok());
    starts.into_iter().find(|start| {
        let mut bytes = vec![0; 3 * SIZE as usize];
        memory.read_exact_at(&mut bytes, *start).is_ok()
            && bytes
                .chunks(SIZE as usize)
                .zip([1, 2, 3])
                .all(|(part, byte)| part.iter().all(|b| *b == byte))
    })
}

/// Changes a byte of what a process sends.
fn corrupt(pid: u32) {
    let start = Instant::now();
    let address = loop {
        if let Some(address) = patterns(pid) {
            break address;
        }
        assert!(start.elapsed() < Duration::from_secs(15), "no patterns");
        std::thread::sleep(Duration::from_millis(10));
    };
    let memory = fs::File::options()
        .write(true)
        .open(format!("/proc/{pid}/mem"))
        .unwrap();
    memory
        .write_all_at(&[WRONG.1], address + SIZE + WRONG.0)
        .unwrap();
}

#[test]
fn a_peer_that_sends_other_bytes_is_found_out() {
    let line = format!("--data_validation -D 3 -s {SIZE}");
    // Who sends the data, and who looks at them.
    for (tool, sender) in [(WRITE_BW, 1), (READ_BW, 0)] {
        let _turn = Turn::take();
        let running = start_pair([tool; 2], [&line; 2]);
        corrupt(running[sender].id());
        let ended = running.map(Running::wait);
        assert_eq!(ended[sender].code, Some(0), "{ended:#?}");
        let receiver = &ended[1 - sender];
        receiver.assert_failed(1, 25);
        let failed = receiver
            .err
            .lines()
            .find(|line| line.starts_with("VALIDATION: FAILED - "))
            .unwrap_or_else(|| panic!("{receiver:#?}"));
        assert!(failed.contains("first at QP 0, Chunk "), "{failed}");
        assert!(
            failed.ends_with("Offset 77 (expected 0x02, got 0xee)"),
            "{failed}"
        );
        assert!(results(&receiver.out).is_empty(), "{receiver:#?}");
    }
}

#[test]
fn memory_that_stock_cannot_validate_is_refused() {
    let ends = pair(WRITE_BW, "--data_validation --mmap=/dev/zero");
    for ended in ends {
        assert_eq!(ended.code, Some(1));
        let text = " --data_validation requires --use_cuda or host memory\n";
        assert!(ended.err.contains(text), "{ended:#?}");
    }
}
