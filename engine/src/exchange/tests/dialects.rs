//! Peers that speak another dialect.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::*;

/// Runs our end against a script for the peer.
fn against<T: Send>(
    ours: impl FnOnce(TcpChannel) -> T + Send,
    peer: impl FnOnce(&mut TcpStream) + Send,
) -> T {
    let (near, mut far) = pair();
    std::thread::scope(|scope| {
        let peer = scope.spawn(move || {
            peer(&mut far);
            // Open until the other end has drawn its conclusions.
            far
        });
        let channel = TcpChannel::new(near, &timeouts()).unwrap();
        let result = ours(channel);
        peer.join().unwrap();
        result
    })
}

fn say(stream: &mut TcpStream, message: &[u8]) {
    stream.write_all(message).unwrap();
}

fn hear(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut message = vec![0; length];
    stream.read_exact(&mut message).unwrap();
    message
}

/// A client up to and including the MTU.
fn client_opening(stream: &mut TcpStream, version: &str) {
    let version = Version::from_text(version);
    for message in [&version.bytes()[..], &[0, 0, 16, 0], &[0, 0, 0, 64], b"5\0"] {
        say(stream, message);
        hear(stream, message.len());
    }
}

fn serve(channel: TcpChannel) -> Result<(Negotiation, KeyRecord), ExchangeError> {
    let (mut session, agreement) = Session::start(channel, Side::Server, timeouts(), &host())?;
    assert_eq!(
        agreement,
        Agreement {
            page_size: 4096,
            cache_line: 64,
            mtu: 3
        }
    );
    let negotiation = session.negotiate(&parameters())?;
    let key = session.sync(Stage::Keys, &key(true))?;
    Ok((negotiation, key))
}

#[test]
fn a_client_with_the_short_block_gets_a_short_one() {
    let (negotiation, _) = against(serve, |stream| {
        client_opening(stream, "6.29");
        say(stream, parameters().encode().shortened().bytes());
        hear(stream, SHORT_BLOCK_LEN);
        say(stream, &key(true).encode());
        hear(stream, 108);
    })
    .unwrap();
    assert_eq!(negotiation.peer.unwrap().bytes().len(), SHORT_BLOCK_LEN);
}

#[test]
fn a_server_with_the_short_block_is_refused() {
    let error = against(
        |channel| {
            let (mut session, _) = Session::start(channel, Side::Client, timeouts(), &host())?;
            session.negotiate(&parameters())
        },
        |stream| {
            let version = Version::announced();
            for message in [&version.bytes()[..], &[0, 0, 16, 0], &[0, 0, 0, 64], b"5\0"] {
                hear(stream, message.len());
                say(stream, message);
            }
            hear(stream, BLOCK_LEN);
            say(stream, parameters().encode().shortened().bytes());
        },
    )
    .unwrap_err();
    assert!(
        matches!(error, ExchangeError::BlockLength { seen: 312 }),
        "{error}"
    );
}

#[test]
fn snapshots_that_announce_6_27_may_send_a_block_or_not() {
    let (negotiation, _) = against(serve, |stream| {
        client_opening(stream, "6.27");
        say(stream, parameters().encode().bytes());
        hear(stream, BLOCK_LEN);
        say(stream, &key(true).encode());
        hear(stream, 108);
    })
    .unwrap();
    assert!(negotiation.peer.is_some());
    let (negotiation, peer) = against(serve, |stream| {
        client_opening(stream, "6.27");
        say(stream, &key(true).encode());
        hear(stream, 108);
    })
    .unwrap();
    assert_eq!(negotiation.peer, None);
    assert_eq!(peer, key(true));
}

#[test]
fn other_forms_of_the_key_record_are_told_at_once() {
    for (ours, theirs) in [(true, false), (false, true)] {
        let error = against(
            |channel| {
                let (mut session, _) = Session::start(channel, Side::Server, timeouts(), &host())?;
                session.negotiate(&parameters())?;
                session.sync(Stage::Keys, &key(ours))
            },
            |stream| {
                client_opening(stream, "6.06");
                say(stream, &key(theirs).encode());
            },
        )
        .unwrap_err();
        let length = |gid: bool| if gid { 108 } else { 59 };
        assert!(
            matches!(error, ExchangeError::KeyForm { step: Step::Key(Stage::Keys), expected, seen }
                if expected == length(ours) && seen == length(theirs)),
            "{error}"
        );
        assert_eq!(
            error.stock_text(WRITE_BW, Side::Server),
            "ethernet_read_keys: Couldn't read remote address\n \
             Unable to read to socket/rdma_cm\n \
             Failed to exchange data between server and clients\n"
        );
    }
}

#[test]
fn split_messages_are_put_together() {
    let (_, peer) = against(serve, |stream| {
        stream.set_nodelay(true).unwrap();
        client_opening(stream, "6.06");
        for byte in key(true).encode() {
            say(stream, &[byte]);
        }
        hear(stream, 108);
    })
    .unwrap();
    assert_eq!(peer, key(true));
}

#[test]
fn a_watcher_hears_the_peer_or_of_its_death() {
    let watching = |channel: TcpChannel| {
        let (mut session, _) = Session::start(channel, Side::Server, timeouts(), &host()).unwrap();
        let first = session.watch(Stage::RunEnd, Some(Duration::from_millis(30)));
        let then = session.watch(Stage::RunEnd, None);
        (first.unwrap(), then)
    };
    let (first, then) = against(watching, |stream| {
        client_opening(stream, "6.29");
        std::thread::sleep(Duration::from_millis(200));
        say(stream, b"0");
    });
    assert!(!first);
    assert!(then.unwrap());
    let (near, far) = pair();
    let mut channel = TcpChannel::new(near, &timeouts()).unwrap();
    drop(far);
    let error = channel.wait(Step::Key(Stage::RunEnd), None).unwrap_err();
    assert!(
        matches!(
            error,
            ExchangeError::Closed {
                step: Step::Key(Stage::RunEnd),
                seen: 0,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_peer_that_does_not_read_is_not_waited_for() {
    let (near, _far) = pair();
    let mut channel = TcpChannel::new(near, &timeouts()).unwrap();
    let start = Instant::now();
    let error = channel.send(Step::Version, &vec![0; 64 << 20]).unwrap_err();
    assert!(matches!(error, ExchangeError::NotTaken { .. }), "{error}");
    assert!(start.elapsed() < 20 * STEP_TIME);
    assert_eq!(
        error.stock_text(WRITE_BW, Side::Client),
        "client write: Resource temporarily unavailable\nCouldn't send reports\n \
         Unable to write to socket/rdma_cm\n Failed to exchange data between server and clients\n"
    );
}

#[test]
fn outstanding_reads_follow_the_peers_device() {
    let block = parameters().encode();
    let told = Negotiation { peer: Some(block) };
    assert_eq!(told.limit_out_reads(128), (16, true));
    assert_eq!(told.limit_out_reads(1), (1, false));
    let untold = Negotiation { peer: None };
    assert_eq!(untold.limit_out_reads(128), (128, false));
}
