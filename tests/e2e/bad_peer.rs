//! Peers that are silent, strange, different, or die.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::support::{Running, Turn, WRITE_BW, WRITE_LAT, free_port, run, start, start_pair};

/// A listener that does something with its only client.
fn peer(act: impl FnOnce(TcpStream) + Send + 'static) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || act(listener.accept().unwrap().0));
    (port, thread)
}

/// Reads until the other side closes.
fn drain(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = stream.read_to_end(&mut bytes);
}

#[test]
fn a_silent_server_is_given_up() {
    let (port, thread) = peer(|mut stream| drain(&mut stream));
    let ended = run(WRITE_BW, &format!("-p {port} --peer-timeout 1 127.0.0.1"));
    ended.assert_failed(1, 15);
    assert!(ended.took >= Duration::from_secs(1));
    assert!(
        ended.complaints()[0].contains("0 of 16 bytes"),
        "{ended:#?}"
    );
    thread.join().unwrap();
}

/// Connects to a server as soon as it listens.
fn connect(port: u16) -> TcpStream {
    let start = Instant::now();
    loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(stream) => return stream,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(10), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_silent_client_is_given_up() {
    let port = free_port();
    let server = start(WRITE_LAT, &format!("-p {port} --peer-timeout 1"));
    let mut client = connect(port);
    drain(&mut client);
    server.wait().assert_failed(1, 15);
}

#[test]
fn rubbish_is_recognised() {
    let (port, thread) = peer(|mut stream| {
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        drain(&mut stream);
    });
    let ended = run(WRITE_BW, &format!("-p {port} 127.0.0.1"));
    ended.assert_failed(1, 10);
    assert!(ended.complaints()[0].contains("HTTP/1.1"), "{ended:#?}");
    thread.join().unwrap();

    let port = free_port();
    let server = start(WRITE_BW, &format!("-p {port}"));
    let mut client = connect(port);
    client.write_all(&[0xff; 500]).unwrap();
    drain(&mut client);
    server.wait().assert_failed(1, 10);
}

#[test]
fn a_peer_that_speaks_well_and_then_rubbish_is_recognised() {
    let _turn = Turn::take();
    let (port, thread) = peer(|mut stream| {
        stream.write_all(b"6.06\0\0\0\0\0\0\0\0\0\0\0\0").unwrap();
        stream
            .write_all(&[0, 0, 0x10, 0, 0, 0, 0, 64, b'5', 0])
            .unwrap();
        stream.write_all(&[b'z'; 200]).unwrap();
        drain(&mut stream);
    });
    let ended = run(WRITE_BW, &format!("-p {port} 127.0.0.1"));
    ended.assert_failed(1, 10);
    assert!(ended.complaints()[0].contains("key record"), "{ended:#?}");
    thread.join().unwrap();
}

#[test]
fn another_test_on_the_other_side_is_told_by_both() {
    let _turn = Turn::take();
    for (tools, lines, text) in [
        (
            [WRITE_BW, WRITE_LAT],
            ["-n 100"; 2],
            " tst mismatch: local=",
        ),
        (
            [WRITE_LAT, WRITE_BW],
            ["-n 100"; 2],
            " tst mismatch: local=",
        ),
        (
            [WRITE_BW; 2],
            ["-n 100", "-n 200"],
            " iters mismatch: local=",
        ),
        (
            [WRITE_BW; 2],
            ["", "--write_with_imm"],
            " verb mismatch: local=",
        ),
        ([WRITE_BW; 2], ["-s 8", "-s 16"], " size mismatch: local="),
        (
            [WRITE_BW; 2],
            ["-c RC", "-c UC"],
            " connection_type mismatch: local=",
        ),
        (
            [WRITE_BW; 2],
            ["-q 1", "-q 2"],
            " num_of_qps mismatch: local=",
        ),
        (
            [WRITE_BW; 2],
            ["-n 100", "-a -n 100"],
            " test_method mismatch: local=",
        ),
        ([WRITE_BW; 2], ["", "-D 2"], " test_type mismatch: local="),
    ] {
        for ended in start_pair(tools, lines).map(Running::wait) {
            ended.assert_failed(1, 25);
            assert!(ended.err.contains(text), "{lines:?}: {ended:#?}");
            assert!(ended.err.contains(" Failed to negotiate parameters\n"));
        }
    }
}

#[test]
fn the_smaller_mtu_is_used_by_both() {
    let _turn = Turn::take();
    let lines = ["-n 100 -m 1024", "-n 100 -m 2048"];
    for ended in start_pair([WRITE_BW; 2], lines).map(Running::wait) {
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        assert!(
            ended.out.contains(" Mtu             : 1024[B]\n"),
            "{ended:#?}"
        );
    }
}

/// One end dies in the middle of a test; the other says so, soon.
#[test]
fn a_peer_that_is_killed_ends_the_test() {
    let _turn = Turn::take();
    for (tool, line) in [
        (WRITE_BW, "-D 40"),
        (WRITE_BW, "-D 40 -b"),
        (WRITE_BW, "--run_infinitely"),
        (WRITE_BW, "-D 40 -c UC"),
        (WRITE_BW, "-D 40 --write_with_imm"),
        (WRITE_BW, "-D 40 --write_with_imm -b"),
        (WRITE_LAT, "-D 40"),
        (WRITE_LAT, "-D 40 -c UC"),
        (WRITE_LAT, "-D 40 --write_with_imm"),
        (WRITE_LAT, "-n 4000000"),
    ] {
        for server_dies in [true, false] {
            let [server, client] = start_pair([tool; 2], [line; 2]);
            let (victim, survivor) = match server_dies {
                true => (server, client),
                false => (client, server),
            };
            std::thread::sleep(Duration::from_millis(1200));
            victim.signal(Signal::SIGKILL);
            assert_eq!(victim.wait().code, None);
            let dead = Instant::now();
            let ended = survivor.wait();
            ended.assert_failed(1, 20);
            assert!(
                dead.elapsed() < Duration::from_secs(10),
                "{tool} {line}: {ended:#?}"
            );
        }
    }
}

/// One end stops answering, but its connection lives.
#[test]
fn a_peer_that_is_stopped_ends_the_test() {
    let _turn = Turn::take();
    for (tool, line) in [
        (WRITE_BW, "-D 40 --peer-timeout 3"),
        (WRITE_LAT, "-D 40 --peer-timeout 3"),
        (WRITE_LAT, "-D 40 --peer-timeout 3 -c UC"),
    ] {
        let [server, client] = start_pair([tool; 2], [line; 2]);
        std::thread::sleep(Duration::from_millis(1000));
        server.signal(Signal::SIGSTOP);
        let ended = client.wait();
        ended.assert_failed(1, 30);
        server.signal(Signal::SIGKILL);
        server.wait();
    }
    // The passive end of a timed test knows when it should be over.
    let [server, client] = start_pair([WRITE_BW; 2], ["-D 2 --peer-timeout 2"; 2]);
    std::thread::sleep(Duration::from_millis(1000));
    client.signal(Signal::SIGSTOP);
    server.wait().assert_failed(1, 20);
    client.signal(Signal::SIGKILL);
    client.wait();
}

/// A receiver that gets nothing more says how far it has got.
#[test]
fn a_receiver_tells_what_has_come() {
    let _turn = Turn::take();
    let line = "--write_with_imm -n 4000000 -s 64 --peer-timeout 2";
    let [server, client] = start_pair([WRITE_BW; 2], [line; 2]);
    std::thread::sleep(Duration::from_millis(1000));
    client.signal(Signal::SIGSTOP);
    let ended = server.wait();
    ended.assert_failed(1, 20);
    assert!(
        ended
            .err
            .contains(" Did not get Message for 120 Seconds, exiting..\n Total Received="),
        "{ended:#?}"
    );
    assert!(ended.err.contains(", Total Iters Required=4000000\n"));
    client.signal(Signal::SIGKILL);
    client.wait();
}
