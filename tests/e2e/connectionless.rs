//! `--connectionless`: a multicast receiver that nobody talks to.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Running, SEND_BW, Turn, run, start, start_pair};

#[test]
fn a_receiver_without_connection_hears_what_others_send_to_the_group() {
    let _turn = Turn::take();
    let line = "-d urxe_lo -g --run_infinitely -D 1 -s 512";
    let alone = start(SEND_BW, &format!("{line} -c UD --connectionless"));
    let pair = start_pair([SEND_BW; 2], [line; 2]);
    std::thread::sleep(Duration::from_millis(3500));
    let [server, client] = pair;
    let running = [client, alone, server];
    for end in &running {
        end.signal(Signal::SIGINT);
    }
    let ended = running.map(Running::wait);
    for ended in &ended {
        assert_eq!(ended.code, Some(0), "{ended:#?}");
    }
    let [client, alone, _] = &ended;
    assert!(!alone.out.contains("Waiting for client"), "{alone:#?}");
    assert!(!alone.out.contains("remote address"), "{alone:#?}");
    let messages = |rows: Vec<Vec<&str>>| -> u64 {
        // The farewell has no numbers.
        let counts = rows
            .iter()
            .filter_map(|row| row.get(1)?.parse::<u64>().ok());
        counts.sum()
    };
    assert!(messages(client.rows()) > 0, "{client:#?}");
    assert!(messages(alone.rows()) > 0, "{alone:#?}");
}

#[test]
fn nobody_tells_a_receiver_without_connection_its_device() {
    let line = "-g --run_infinitely -c UD --connectionless";
    let ended = run(SEND_BW, line);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.err.contains("name it with -d"), "{ended:#?}");
}
