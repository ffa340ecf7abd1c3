//! Peers that fall silent, talk rubbish or die, at every step.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::*;

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
