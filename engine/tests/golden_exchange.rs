//! Replays every recorded dialogue against both of our ends: over TCP here,
//! over the connection manager in `over_cm`.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "records/cm_dialogue.rs"]
mod cm_dialogue;
#[path = "records/dialogue.rs"]
mod dialogue;
#[path = "golden_exchange/over_cm.rs"]
mod over_cm;
mod records;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use dialogue::{Dialogue, dialogues};
use engine::exchange::{
    Action, BLOCK_LEN, BandwidthReport, ExchangeError, Host, KeyForm, KeyRecord, Method,
    ParameterBlock, PortReport, Session, Side, Stage, TcpChannel, Timeouts, Version,
    check_gid_types, plan,
};
use engine::report::Style;
use engine::report::columns::{
    bandwidth_row, bandwidth_row_per_port, shows_six_decimals, single_number,
};

/// The other side.
fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

/// Plays the peer of `side`: sends what the peer sent, and takes from us as
/// many bytes as our predecessor sent. Returns what we sent, message by message.
fn play_peer(mut stream: TcpStream, dialogue: &Dialogue, side: Side) -> Vec<Vec<u8>> {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut taken = Vec::new();
    for message in &dialogue.messages {
        if message.from == side {
            // `done` is not said any more.
            if message.is_done() {
                continue;
            }
            let mut bytes = vec![0; message.bytes.len()];
            if stream.read_exact(&mut bytes).is_err() {
                return taken;
            }
            taken.push(bytes);
        } else if stream.write_all(&message.bytes).is_err() {
            return taken;
        }
    }
    taken
}

/// For dialogues that broke off before the first record.
const ANY_KEY: &[u8] = b"0000:0001:000011:123456:00000001:0000000000001000:00000000\0";

/// What our predecessor brought into the dialogue, taken from its own messages.
struct Recorded<'a> {
    messages: Vec<&'a [u8]>,
    next: usize,
}

impl<'a> Recorded<'a> {
    fn of(dialogue: &'a Dialogue, side: Side) -> Self {
        Self {
            messages: dialogue.of(side).collect(),
            next: 0,
        }
    }

    /// The next message of this length. Past the end of a dialogue that broke
    /// off, what was said last is said again.
    fn take(&mut self, wanted: impl Fn(usize) -> bool) -> &'a [u8] {
        if let Some(message) = self.messages.get(self.next).filter(|m| wanted(m.len())) {
            self.next += 1;
            return message;
        }
        assert!(
            self.next >= self.messages.len(),
            "message {} has {} bytes",
            self.next,
            self.messages[self.next].len()
        );
        self.messages
            .iter()
            .rev()
            .find(|message| wanted(message.len()))
            .copied()
            .unwrap_or(ANY_KEY)
    }

    fn host(&mut self) -> Host {
        let version = self.take(|length| length == 16);
        let text = std::str::from_utf8(version).unwrap().trim_end_matches('\0');
        let page = self.take(|length| length == 4);
        let line = self.take(|length| length == 4);
        let mtu = self.take(|length| length == 2);
        Host {
            version: Version::from_text(text),
            page_size: u32::from_be_bytes(page.try_into().unwrap()),
            cache_line: u32::from_be_bytes(line.try_into().unwrap()),
            mtu: mtu[0] - b'0',
        }
    }

    fn key(&mut self) -> KeyRecord {
        let message = self.take(|length| KeyForm::from_length(length).is_some());
        let form = KeyForm::from_length(message.len()).unwrap();
        let key = KeyRecord::parse(message, form, Stage::Keys).unwrap();
        assert_eq!(key.encode(), message);
        key
    }

    /// The report. Missing numbers of a dialogue that broke off are zero.
    fn report(&mut self, ports: bool) -> BandwidthReport {
        let mut number = || {
            let message = self.messages.get(self.next).filter(|m| m.len() == 8);
            self.next += usize::from(message.is_some());
            message.map_or([0; 8], |message| (*message).try_into().unwrap())
        };
        let mut report = BandwidthReport {
            size: u64::from_be_bytes(number()),
            iterations: u64::from_be_bytes(number()),
            peak: f64::from_be_bytes(number()),
            average: f64::from_be_bytes(number()),
            message_rate: f64::from_be_bytes(number()),
            ports: None,
        };
        if ports {
            report.ports = Some([(); 2].map(|()| PortReport {
                average: f64::from_be_bytes(number()),
                message_rate: f64::from_be_bytes(number()),
            }));
        }
        report
    }
}

/// Takes one side of the dialogue with the parameters of the record.
fn take_part(
    stream: TcpStream,
    dialogue: &Dialogue,
    side: Side,
    timeouts: Timeouts,
) -> Result<(), ExchangeError> {
    let command = dialogue.command(side);
    let mut ours = Recorded::of(dialogue, side);
    let channel = TcpChannel::new(stream, &timeouts).unwrap();
    let host = ours.host();
    let (mut session, agreement) = Session::start(channel, side, timeouts, &host)?;
    let theirs = Recorded::of(dialogue, other(side)).host();
    assert_eq!(agreement.page_size, host.page_size.max(theirs.page_size));
    assert_eq!(agreement.cache_line, host.cache_line.max(theirs.cache_line));
    assert_eq!(agreement.mtu, host.mtu.min(theirs.mtu));
    assert_eq!(session.peer_version(), &theirs.version);

    let Some(next) = ours.messages.get(ours.next) else {
        // Both ended here for reasons of their own.
        return Ok(());
    };
    if next.len() == BLOCK_LEN {
        let block = ParameterBlock::parse(ours.take(|length| length == BLOCK_LEN)).unwrap();
        let parameters = block.decode().unwrap();
        assert_eq!(parameters.encode(), block);
        let negotiation = session.negotiate(&parameters)?;
        assert!(negotiation.peer.is_some());
    } else {
        assert!(!(host.version.negotiates() && theirs.version.negotiates()));
    }

    let qps = command.qps();
    let mut keys = Vec::new();
    for action in plan(&command.plan_input()) {
        match action {
            Action::Keys(stage) => {
                keys = (0..qps).map(|_| ours.key()).collect();
                let peer = session.exchange_keys(stage, &keys)?;
                assert_eq!(peer.len(), qps);
                if stage == Stage::Keys {
                    check_gid_types(&keys[0], &peer[0])?;
                }
            }
            Action::Sync(stage) => {
                let key = ours.key();
                session.sync(stage, &key)?;
            }
            Action::Reports => {
                let report = ours.report(command.reports_per_port());
                let peer = session.exchange_reports(&report)?;
                assert_eq!(peer.ports.is_some(), report.ports.is_some());
            }
            Action::Close => {
                let key = ours.key();
                return session.close(&key);
            }
            Action::Connect | Action::ConnectByManager | Action::Run(_) => {
                assert!(!keys.is_empty())
            }
        }
    }
    Ok(())
}

/// Plays one dialogue with us on one side.
fn replay(dialogue: &Dialogue, side: Side) {
    let name = format!("{} as {side:?}", dialogue.name);
    // Shown with a failure only.
    println!("{name}");
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    let timeouts = Timeouts {
        step: Duration::from_secs(10),
        run: Some(Duration::from_secs(10)),
        keep_alive: None,
    };
    let (result, sent) = std::thread::scope(|scope| {
        let peer = scope.spawn(|| play_peer(far, dialogue, side));
        let result = take_part(near, dialogue, side, timeouts);
        (result, peer.join().unwrap())
    });
    let recorded: Vec<&[u8]> = dialogue.of(side).collect();
    let complete = sent.len() == recorded.len();
    for (index, (sent, recorded)) in sent.iter().zip(&recorded).enumerate() {
        assert_eq!(
            sent.escape_ascii().to_string(),
            recorded.escape_ascii().to_string(),
            "{name}: message {index}"
        );
    }
    match result {
        Ok(()) => assert!(complete, "{name}: we ended early"),
        Err(error) => {
            assert!(!dialogue.succeeded, "{name}: {error}");
            check_error(&name, dialogue, side, &error, complete);
        }
    }
}

/// A dialogue that broke off must break off for us at the same place, and
/// with the same words where stock's are recorded.
fn check_error(name: &str, dialogue: &Dialogue, side: Side, error: &ExchangeError, complete: bool) {
    // Stock takes a short record for a long one and only fails afterwards.
    let early = matches!(error, ExchangeError::KeyForm { .. });
    assert!(complete || early, "{name}: {error}");
    let Some(errors) = &dialogue.errors else {
        return;
    };
    let stock = &errors[usize::from(side == Side::Server)];
    let text = error.stock_text(dialogue.command(side).tool(), side);
    let speaks_of_dialogue = [" mismatch: ", "Couldn't read", "GID types"]
        .iter()
        .any(|words| stock.contains(words));
    if speaks_of_dialogue {
        assert!(stock.ends_with(&text), "{name}: {text:?} is not {stock:?}");
    }
}

#[test]
fn golden_dialogues_replay_as_client() {
    for dialogue in dialogues() {
        replay(&dialogue, Side::Client);
    }
}

#[test]
fn golden_dialogues_replay_as_server() {
    for dialogue in dialogues() {
        replay(&dialogue, Side::Server);
    }
}

/// The report in a side's messages: the last numbers before the closing handshake.
fn last_report(dialogue: &Dialogue, side: Side) -> Option<BandwidthReport> {
    let messages: Vec<&[u8]> = dialogue.of(side).collect();
    let numbers = messages.iter().rev().skip(1);
    let count = numbers.take_while(|message| message.len() == 8).count();
    let ports = dialogue.command(side).reports_per_port();
    let length = if ports { 9 } else { 5 };
    (count >= length).then(|| {
        Recorded {
            next: messages.len() - 1 - length,
            messages,
        }
        .report(ports)
    })
}

/// What stock sent over the wire is what both ends then showed.
#[test]
fn golden_reports_are_the_rows_of_both_screens() {
    for dialogue in dialogues().iter().filter(|dialogue| dialogue.succeeded) {
        if dialogue.client_command.plan_input().method == Method::Infinite {
            // Stopped by the user, it reports nothing of use.
            continue;
        }
        let Some(screens) = &dialogue.screens else {
            continue;
        };
        let Some(client) = last_report(dialogue, Side::Client) else {
            continue;
        };
        let server = last_report(dialogue, Side::Server).unwrap();
        let reversed = dialogue.client_command.is_reversed();
        for (side, screen) in [Side::Client, Side::Server].into_iter().zip(screens) {
            let (ours, theirs) = match side {
                Side::Client => (&client, &server),
                Side::Server => (&server, &client),
            };
            let own = dialogue.command(side);
            let duplex = own.plan_input().duplex;
            // Of a one-way run the active end's numbers are shown by both.
            let active = if (side == Side::Client) == reversed {
                theirs
            } else {
                ours
            };
            let row = if duplex {
                ours.combined(theirs)
            } else {
                *active
            };
            let local_average = if duplex { ours.average } else { row.average };
            let older = screen.contains("PCIe relax order") && !screen.contains("Lock-free");
            let style = match older {
                true => Style::V6_20,
                false => Style::V6_29,
            };
            let shown = if own.reports_per_port() {
                bandwidth_row_per_port(&row, None)
            } else {
                let six_decimals = shows_six_decimals(own.units(), local_average);
                bandwidth_row(&row, six_decimals, None, style)
            };
            let number = own.output().map(|output| match output {
                "bandwidth" => single_number(row.average),
                _ => single_number(row.message_rate),
            });
            let shown = number.unwrap_or(shown);
            // The use of the processor may follow.
            let row = shown.trim_end_matches('\n');
            assert!(
                screen.contains(row),
                "{} as {side:?}: {shown:?} is not in\n{screen}",
                dialogue.name
            );
        }
    }
}
