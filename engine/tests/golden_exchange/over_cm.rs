//! Replays every recorded dialogue over the connection manager against both
//! of our ends.

use std::collections::VecDeque;
use std::time::Duration;

use engine::exchange::binary_key::{self, BinaryForm};
use engine::exchange::{
    Action, BandwidthReport, Channel, ExchangeError, Host, KeyDialect, KeyForm, KeyRecord,
    ParameterBlock, Session, Side, Step, Timeouts, Version, plan,
};

use crate::cm_dialogue::cm_dialogues;
use crate::dialogue::Dialogue;
use crate::{other, records};

/// Of a record only these bytes mean something: stock sends whatever lies in
/// the padding and, without validation, in the tail markers.
fn meaningful(record: &[u8]) -> Vec<u8> {
    let mut record = record.to_vec();
    record[20..24].fill(0);
    if record.len() == BinaryForm::Long.length() {
        record[32..40].fill(0);
    }
    record
}

/// A peer that says what was recorded, and compares what it hears.
struct Script<'a> {
    name: String,
    theirs: VecDeque<&'a [u8]>,
    ours: VecDeque<&'a [u8]>,
    /// What is left of the peer's message.
    rest: &'a [u8],
}

impl Script<'_> {
    fn listen(&mut self) {
        if self.rest.is_empty() {
            self.rest = self.theirs.pop_front().unwrap();
        }
    }
}

impl Channel for Script<'_> {
    fn key_dialect(&self) -> KeyDialect {
        KeyDialect::Binary
    }

    fn send(&mut self, step: Step, message: &[u8]) -> Result<(), ExchangeError> {
        let recorded = self.ours.pop_front().unwrap();
        match step {
            Step::Key(_) => assert_eq!(meaningful(message), meaningful(recorded)),
            _ => assert_eq!(message, recorded, "{}: {step}", self.name),
        }
        Ok(())
    }

    fn receive(&mut self, step: Step, message: &mut [u8]) -> Result<(), ExchangeError> {
        self.listen();
        let (now, rest) = self.rest.split_at(message.len());
        message.copy_from_slice(now);
        self.rest = rest;
        // The parameter block is read in two parts; everything else at once.
        assert!(rest.is_empty() || step == Step::Parameters, "{}", self.name);
        Ok(())
    }

    fn wait(&mut self, _: Step, _: Option<Duration>) -> Result<bool, ExchangeError> {
        self.listen();
        Ok(true)
    }

    fn pending(&mut self, _: Step, limit: usize) -> Result<usize, ExchangeError> {
        self.listen();
        Ok(self.rest.len().min(limit))
    }

    fn finish(&mut self) {
        assert!(self.theirs.is_empty() && self.ours.is_empty());
    }
}

/// What our predecessor said.
struct Recorded<'a> {
    messages: VecDeque<&'a [u8]>,
    form: BinaryForm,
}

impl<'a> Recorded<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let message = self.messages.pop_front().unwrap();
        assert_eq!(message.len(), length);
        message
    }

    fn host(&mut self) -> Host {
        let version = Version::parse(self.take(16).try_into().unwrap()).unwrap();
        self.form = BinaryForm::of(&version);
        Host {
            version,
            page_size: u32::from_be_bytes(self.take(4).try_into().unwrap()),
            cache_line: u32::from_be_bytes(self.take(4).try_into().unwrap()),
            mtu: self.take(2)[0] - b'0',
        }
    }

    fn key(&mut self) -> KeyRecord {
        let message = self.take(self.form.length());
        let form = KeyForm {
            gid: true,
            tail_markers: false,
        };
        let key = binary_key::parse(message, self.form, form).unwrap();
        let again = binary_key::encode(&key, self.form);
        assert_eq!(meaningful(&again), meaningful(message));
        key
    }

    fn report(&mut self) -> BandwidthReport {
        let mut number = || <[u8; 8]>::try_from(self.take(8)).unwrap();
        BandwidthReport {
            size: u64::from_be_bytes(number()),
            iterations: u64::from_be_bytes(number()),
            peak: f64::from_be_bytes(number()),
            average: f64::from_be_bytes(number()),
            message_rate: f64::from_be_bytes(number()),
            ports: None,
        }
    }
}

fn replay(dialogue: &Dialogue, side: Side) -> Result<(), ExchangeError> {
    let mut ours = Recorded {
        messages: dialogue.of(side).collect(),
        form: BinaryForm::Short,
    };
    let script = Script {
        name: format!("{} as {side:?}", dialogue.name),
        theirs: dialogue.of(other(side)).collect(),
        ours: dialogue.of(side).collect(),
        rest: &[],
    };
    let timeouts = Timeouts::default();
    let host = ours.host();
    let (mut session, agreement) = Session::start(script, side, timeouts, &host)?;
    assert_eq!(agreement.page_size, host.page_size);
    if host.version.negotiates() {
        let block = ParameterBlock::parse(ours.messages.pop_front().unwrap()).unwrap();
        let parameters = block.decode().unwrap();
        // By -z as well as by -R.
        assert!(parameters.rdma_cm);
        assert!(session.negotiate(&parameters)?.peer.is_some());
    }
    let command = dialogue.command(side);
    for action in plan(&command.plan_input()) {
        match action {
            Action::Keys(stage) => {
                let keys: Vec<_> = (0..command.qps()).map(|_| ours.key()).collect();
                for peer in session.exchange_keys(stage, &keys)? {
                    assert_eq!(peer.gid_index, Some(1));
                    assert!(peer.gid.is_some_and(|gid| gid[10..12] == [0xff, 0xff]));
                    assert_ne!((peer.qpn, peer.vaddr), (0, 0));
                }
            }
            Action::Sync(stage) => {
                let key = ours.key();
                session.sync(stage, &key)?;
            }
            Action::Reports => {
                let report = ours.report();
                let peer = session.exchange_reports(&report)?;
                assert_eq!(peer.ports, None);
            }
            Action::Close => {
                let key = ours.key();
                return session.close(&key);
            }
            Action::Connect | Action::ConnectByManager | Action::Run(_) => {}
        }
    }
    Ok(())
}

#[test]
fn golden_dialogues_over_the_connection_manager_replay() {
    let dialogues = cm_dialogues();
    for dialogue in &dialogues {
        for side in [Side::Client, Side::Server] {
            replay(dialogue, side).unwrap();
        }
    }
    if let Some(folder) = records::golden_folder("handshake") {
        let captures = records::entries(&folder, "pcap");
        assert!(captures.is_empty() || !dialogues.is_empty());
    }
}
