//! Peers that fall silent, talk rubbish, die, or speak another dialect, at every step.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::*;

const STEP_TIME: Duration = Duration::from_millis(600);

fn timeouts() -> Timeouts {
    Timeouts {
        step: STEP_TIME,
        run: Some(STEP_TIME),
        keep_alive: Some(Duration::from_secs(5)),
    }
}

fn host() -> Host {
    Host {
        version: Version::announced(),
        page_size: 4096,
        cache_line: 64,
        mtu: 3,
    }
}

fn parameters() -> TestParameters {
    let mut device = DeviceAttributes::zeroed();
    device.max_qp_rd_atom = 16;
    TestParameters {
        method: Method::Regular,
        connection: Connection::Rc,
        verb: Verb::Write,
        measurement: Measurement::Bandwidth,
        atomic: Atomic::CompareSwap,
        ending: Ending::Iterations,
        units: Units::Mib,
        size: 65536,
        iterations: 1000,
        aes_xts: false,
        qps: 1,
        duration: 5,
        rdma_cm: false,
        no_enhanced_reorder: false,
        sig_offload: false,
        data_validation: false,
        device,
        mlx5_comp_mask: 0,
    }
}

fn key(gid: bool) -> KeyRecord {
    KeyRecord {
        lid: 1,
        out_reads: 1,
        qpn: 17,
        psn: 0xabcdef,
        rkey: 0x1800,
        vaddr: 0x7f00_0000_1000,
        tail_markers: None,
        gid: gid.then_some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1]),
        srqn: 0,
    }
}

const WRITE_BW: Tool = Tool {
    verb: Verb::Write,
    measurement: Measurement::Bandwidth,
};

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    far.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (near, far)
}

/// Our end of a whole `ib_write_bw` dialogue.
fn whole_dialogue(stream: TcpStream, side: Side) -> Result<(), ExchangeError> {
    let channel = TcpChannel::new(stream, &timeouts()).unwrap();
    let (mut session, _) = Session::start(channel, side, timeouts(), &host())?;
    session.negotiate(&parameters())?;
    let own = key(true);
    for stage in [Stage::Keys, Stage::KeysAgain, Stage::Ready, Stage::RunEnd] {
        session.exchange_keys(stage, &[own])?;
    }
    session.exchange_reports(&BandwidthReport::default())?;
    session.close(&own)
}

/// The steps of the dialogue and what a good peer says in them.
fn good_messages() -> Vec<(Step, Vec<u8>)> {
    let record = |stage| (Step::Key(stage), key(true).encode());
    let report = |field| (Step::Report(field), vec![0; 8]);
    vec![
        (Step::Version, Version::announced().bytes().to_vec()),
        (Step::PageSize, 4096_u32.to_be_bytes().to_vec()),
        (Step::CacheLine, 64_u32.to_be_bytes().to_vec()),
        (Step::Mtu, b"5\0".to_vec()),
        (Step::Parameters, parameters().encode().bytes().to_vec()),
        record(Stage::Keys),
        record(Stage::KeysAgain),
        record(Stage::Ready),
        record(Stage::RunEnd),
        report(ReportField::Size),
        report(ReportField::Iterations),
        report(ReportField::Peak),
        report(ReportField::Average),
        report(ReportField::MessageRate),
        record(Stage::Close),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Silence,
    HalfAMessage,
    Close,
    CloseHalfway,
    Rubbish,
}

/// A peer on the other side that commits the fault at the given step and then
/// keeps the connection open until we are gone.
fn bad_peer(mut stream: TcpStream, our_side: Side, fault_at: usize, fault: Fault) {
    for (index, (_, message)) in good_messages().into_iter().enumerate() {
        let mut ours = vec![0; message.len()];
        if our_side == Side::Client && stream.read_exact(&mut ours).is_err() {
            return;
        }
        if index == fault_at {
            let half = &message[..message.len() / 2];
            match fault {
                Fault::Silence => {}
                Fault::HalfAMessage => stream.write_all(half).unwrap(),
                Fault::Close => return,
                Fault::CloseHalfway => return stream.write_all(half).unwrap(),
                Fault::Rubbish => stream.write_all(&vec![0xe7; message.len()]).unwrap(),
            }
            // Until we close; the errors of a reset do not matter.
            let _ = stream.read_to_end(&mut ours);
            return;
        }
        stream.write_all(&message).unwrap();
        if our_side == Side::Server && stream.read_exact(&mut ours).is_err() {
            return;
        }
    }
    panic!("no fault was committed");
}

fn meet(fault_at: usize, fault: Fault, side: Side) -> Result<(), ExchangeError> {
    let (near, far) = pair();
    std::thread::scope(|scope| {
        scope.spawn(move || bad_peer(far, side, fault_at, fault));
        let start = Instant::now();
        let result = whole_dialogue(near, side);
        assert!(start.elapsed() < 20 * STEP_TIME, "{fault:?} at {fault_at}");
        result
    })
}

/// Meets the fault at every step in both roles, all at the same time.
fn at_every_step(fault: Fault, check: impl Fn(Step, usize, Result<(), ExchangeError>) + Sync) {
    std::thread::scope(|scope| {
        for side in [Side::Client, Side::Server] {
            for (index, (step, message)) in good_messages().into_iter().enumerate() {
                let check = &check;
                scope.spawn(move || check(step, message.len(), meet(index, fault, side)));
            }
        }
    });
}

#[test]
fn a_silent_peer_is_named_with_the_step() {
    at_every_step(Fault::Silence, |step, length, result| {
        match result.unwrap_err() {
            ExchangeError::Silent {
                step: at,
                seen: 0,
                expected,
                ..
            } => assert!(at == step && expected <= length, "{step}: {expected}"),
            other => panic!("{step}: {other}"),
        }
    });
}

#[test]
fn a_peer_that_stops_halfway_is_named_with_the_bytes() {
    at_every_step(Fault::HalfAMessage, |step, length, result| {
        let error = result.unwrap_err();
        assert!(
            matches!(error, ExchangeError::Silent { step: at, seen, .. } if at == step && seen <= length / 2),
            "{step}: {error}"
        );
        assert!(error.to_string().contains(&step.to_string()));
    });
}

#[test]
fn a_peer_that_closes_is_named_with_the_step() {
    for fault in [Fault::Close, Fault::CloseHalfway] {
        at_every_step(fault, |step, _, result| {
            let error = result.unwrap_err();
            match error {
                ExchangeError::Closed { step: at, .. } => assert_eq!(at, step),
                // The peer left without reading what we said: a reset.
                ExchangeError::Io { step: at, .. } => assert_eq!(at, step),
                other => panic!("{step}: {other}"),
            }
        });
    }
}

#[test]
fn rubbish_is_refused_where_it_can_be_told_from_sense() {
    at_every_step(Fault::Rubbish, |step, _, result| match (step, result) {
        (Step::Version, Err(ExchangeError::TooOld { announced })) => {
            assert!(announced.starts_with("\\xe7"));
        }
        (Step::PageSize | Step::CacheLine, Err(ExchangeError::Unintelligible { step: at, .. })) => {
            assert_eq!(at, step)
        }
        (Step::Parameters, Err(ExchangeError::Mismatch(mismatch))) => {
            assert_eq!(mismatch.field, "test_method");
        }
        (Step::Key(_), Err(ExchangeError::MalformedKey { step: at, seen, .. })) => {
            assert_eq!(at, step);
            assert!(seen.starts_with("\\xe7"));
        }
        // Any number is a number, and an MTU that is none does not count; the
        // peer's silence afterwards ends the dialogue.
        (Step::Mtu | Step::Report(_), Err(ExchangeError::Silent { step: at, .. })) => {
            assert_ne!(at, step);
        }
        (step, result) => panic!("{step}: {result:?}"),
    });
}

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

fn listen_options(port: u16) -> ListenOptions {
    ListenOptions {
        port,
        family: Family::V4,
        bind: Some("127.0.0.1".to_owned()),
    }
}

fn connect_options(port: u16) -> ConnectOptions {
    ConnectOptions {
        host: "127.0.0.1".to_owned(),
        port,
        family: Family::V4,
        source: None,
        attempt: Duration::from_secs(5),
        retry: Duration::ZERO,
    }
}

const NO_SOCKET: &str = "Unable to open file descriptor for socket connection\n \
                         Unable to init the socket connection\n";

#[test]
fn client_and_server_find_each_other() {
    for (address, family) in [("127.0.0.1", Family::V4), ("::1", Family::V6)] {
        let mut options = listen_options(0);
        options.family = family;
        options.bind = Some(address.to_owned());
        let listener = match Listener::bind(&options) {
            Ok(listener) => listener,
            // A host without IPv6.
            Err(ExchangeError::Listen { .. }) if family == Family::V6 => continue,
            Err(error) => panic!("{error}"),
        };
        let mut to = connect_options(listener.local_addr().unwrap().port());
        to.host = address.to_owned();
        to.family = family;
        to.source = Some(address.parse().unwrap());
        let client = connect(&to).unwrap();
        let server = listener.accept(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(client.local_addr().unwrap(), server.peer_addr().unwrap());
        // One client only: the listener is gone.
        assert!(connect(&to).is_err());
    }
}

#[test]
fn connection_failures_have_stocks_texts() {
    let listener = Listener::bind(&listen_options(0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let error = Listener::bind(&listen_options(port)).unwrap_err();
    assert!(
        error.to_string().contains("Address already in use"),
        "{error}"
    );
    assert_eq!(
        error.stock_text(WRITE_BW, Side::Server),
        format!("Couldn't listen to port {port}\n{NO_SOCKET}")
    );
    let error = listener
        .accept(Some(Duration::from_millis(20)))
        .unwrap_err();
    assert!(matches!(error, ExchangeError::NoClient(_)), "{error}");

    let error = connect(&connect_options(port)).unwrap_err();
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert_eq!(
        error.stock_text(WRITE_BW, Side::Client),
        format!("Couldn't connect to 127.0.0.1:{port}\n{NO_SOCKET}")
    );

    let mut wrong_family = connect_options(port);
    wrong_family.host = "fd00::1".to_owned();
    assert_eq!(
        connect(&wrong_family)
            .unwrap_err()
            .stock_text(WRITE_BW, Side::Client),
        format!(
            "Address family for hostname not supported for ai_family: 2 service: fd00::1 port: {port}\n\
             Problem in resolving basic address and port\n{NO_SOCKET}"
        )
    );
    let mut no_name = connect_options(port);
    no_name.host = "no-such-host.invalid".to_owned();
    no_name.family = Family::V6;
    let text = connect(&no_name)
        .unwrap_err()
        .stock_text(WRITE_BW, Side::Client);
    assert!(
        text.contains(" for ai_family: a service: no-such-host.invalid port: "),
        "{text}"
    );
    assert!(!text.contains("failed to lookup"), "{text}");

    for source in [
        // Documentation addresses are nobody's.
        IpAddr::from([192, 0, 2, 1]),
        "::1".parse().unwrap(),
    ] {
        let mut options = connect_options(port);
        options.source = Some(source);
        let error = connect(&options).unwrap_err();
        assert!(matches!(error, ExchangeError::Source { .. }), "{error}");
        assert!(error.to_string().contains(&source.to_string()), "{error}");
    }
}

#[test]
fn a_patient_client_waits_for_the_server() {
    let reserved = Listener::bind(&listen_options(0)).unwrap();
    let port = reserved.local_addr().unwrap().port();
    drop(reserved);
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(250));
            Listener::bind(&listen_options(port))
                .unwrap()
                .accept(Some(Duration::from_secs(5)))
                .unwrap()
        });
        let mut options = connect_options(port);
        options.retry = Duration::from_secs(10);
        let client = connect(&options).unwrap();
        let server = server.join().unwrap();
        assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
    });
}
