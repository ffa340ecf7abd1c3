//! The dialogue itself, step by step, over any [`Channel`].

use std::time::Duration;

use super::binary_key::{self, BinaryForm, MAX_BINARY_KEY_LEN};
use super::bw_report::BandwidthReport;
use super::channel::{Channel, KeyDialect, Timeouts};
use super::error::ExchangeError;
use super::key::{KeyForm, KeyRecord, MAX_KEY_LEN};
use super::parameters::{BLOCK_LEN, ParameterBlock, SHORT_BLOCK_LEN, TestParameters};
use super::step::{Stage, Step};
use super::version::{VERSION_LEN, Version};
use crate::words::Side;

/// What this end brings into the start of the dialogue.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// The version to announce, [`Version::announced`].
    pub version: Version,
    /// Page size in bytes.
    pub page_size: u32,
    /// Length of a line of the first-level data cache in bytes.
    pub cache_line: u32,
    /// Active MTU as `enum ibv_mtu`: 1 is 256 bytes, 5 is 4096.
    pub mtu: u8,
}

/// What both ends agreed on at the start; buffers are laid out by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// The larger page size.
    pub page_size: u32,
    /// The larger cache line.
    pub cache_line: u32,
    /// The smaller MTU, as `enum ibv_mtu`.
    pub mtu: u8,
}

/// What the negotiation found out about the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiation {
    /// The peer's block; `None` when the peer is too old to send one.
    pub peer: Option<ParameterBlock>,
}

impl Negotiation {
    /// Our outstanding reads after the peer's limit, and whether that lowered
    /// them: then stock prints [`OUT_READS_LOWERED`]. Not done for DC.
    pub fn limit_out_reads(&self, ours: u32) -> (u32, bool) {
        match &self.peer {
            Some(block) => {
                let limit = block.device().max_qp_rd_atom;
                (ours.min(limit), ours > limit)
            }
            None => (ours, false),
        }
    }
}

/// What stock prints on stdout when [`Negotiation::limit_out_reads`] lowered ours.
pub const OUT_READS_LOWERED: &str =
    " out_reads is greater than remote max_qp_rd_atom, using remote max_qp_rd_atom\n";

/// Largest page size a peer can have (IA-64 had the largest base pages there were).
const MAX_PAGE_SIZE: u32 = 16 << 20;

/// Largest cache line a peer can have.
const MAX_CACHE_LINE: u32 = 64 << 10;

/// How long the last 8 bytes of a parameter block may come after the others.
const BLOCK_TAIL_TIME: Duration = Duration::from_millis(100);

/// The dialogue with one peer.
#[derive(Debug)]
pub struct Session<C> {
    channel: C,
    side: Side,
    timeouts: Timeouts,
    ours: Version,
    peer: Version,
}

impl<C: Channel> Session<C> {
    /// Begins the dialogue: versions, page sizes, cache lines, MTU.
    ///
    /// # Errors
    /// Those of the [`Channel`]; [`ExchangeError::TooOld`];
    /// [`ExchangeError::Unintelligible`] for impossible sizes.
    pub fn start(
        channel: C,
        side: Side,
        timeouts: Timeouts,
        host: &Host,
    ) -> Result<(Self, Agreement), ExchangeError> {
        let mut session = Self {
            channel,
            side,
            timeouts,
            ours: host.version,
            peer: host.version,
        };
        let mut version = [0; VERSION_LEN];
        session.swap(Step::Version, host.version.bytes(), &mut version)?;
        session.peer = Version::parse(version)?;
        let page_size = session.larger(Step::PageSize, host.page_size, MAX_PAGE_SIZE)?;
        let cache_line = session.larger(Step::CacheLine, host.cache_line, MAX_CACHE_LINE)?;
        let mut mtu = [0; 2];
        session.swap(Step::Mtu, &[b'0' + host.mtu, 0], &mut mtu)?;
        let mtu = match mtu {
            [digit @ b'1'..=b'5', 0] => host.mtu.min(digit - b'0'),
            // Like stock: what is no MTU does not count.
            _ => host.mtu,
        };
        let agreement = Agreement {
            page_size,
            cache_line,
            mtu,
        };
        Ok((session, agreement))
    }

    /// The version the peer announced.
    pub fn peer_version(&self) -> &Version {
        &self.peer
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Exchanges and compares the parameters, if the peer does that.
    ///
    /// # Errors
    /// Those of the [`Channel`]; [`ExchangeError::Mismatch`] on the first
    /// difference (the peer finds it too); [`ExchangeError::BlockLength`].
    pub fn negotiate(&mut self, ours: &TestParameters) -> Result<Negotiation, ExchangeError> {
        if !self.peer_negotiates()? {
            return Ok(Negotiation { peer: None });
        }
        let ours = ours.encode();
        let (ours, peer) = match self.side {
            Side::Client => {
                self.channel.send(Step::Parameters, ours.bytes())?;
                let peer = self.receive_block()?;
                if peer.bytes().len() != BLOCK_LEN {
                    return Err(ExchangeError::BlockLength {
                        seen: peer.bytes().len(),
                    });
                }
                (ours, peer)
            }
            Side::Server => {
                let peer = self.receive_block()?;
                let ours = if peer.bytes().len() == SHORT_BLOCK_LEN {
                    ours.shortened()
                } else {
                    ours
                };
                self.channel.send(Step::Parameters, ours.bytes())?;
                (ours, peer)
            }
        };
        match ours.first_mismatch(&peer) {
            Some(mismatch) => Err(ExchangeError::Mismatch(mismatch)),
            None => Ok(Negotiation { peer: Some(peer) }),
        }
    }

    /// Exchanges the records of all QPs, in their order.
    ///
    /// # Errors
    /// Those of the [`Channel`]; [`ExchangeError::KeyForm`] and
    /// [`ExchangeError::MalformedKey`] for what is no record of our form.
    pub fn exchange_keys(
        &mut self,
        stage: Stage,
        ours: &[KeyRecord],
    ) -> Result<Vec<KeyRecord>, ExchangeError> {
        ours.iter().map(|key| self.sync(stage, key)).collect()
    }

    /// Exchanges one record (always QP 0's): both ends have reached this
    /// point. Stages after a run wait for the peer's run as
    /// [`Timeouts::run`] says, the others for [`Timeouts::step`].
    ///
    /// # Errors
    /// As [`Session::exchange_keys`].
    pub fn sync(&mut self, stage: Stage, ours: &KeyRecord) -> Result<KeyRecord, ExchangeError> {
        let step = Step::Key(stage);
        let message = match self.channel.key_dialect() {
            KeyDialect::Text => ours.encode(),
            KeyDialect::Binary => binary_key::encode(ours, BinaryForm::of(&self.peer)),
        };
        match self.side {
            Side::Client => {
                self.channel.send(step, &message)?;
                self.await_run(step, message.len())?;
                self.receive_any_key(stage, ours.form())
            }
            Side::Server => {
                self.await_run(step, message.len())?;
                let peer = self.receive_any_key(stage, ours.form())?;
                self.channel.send(step, &message)?;
                Ok(peer)
            }
        }
    }

    /// Waits until the peer begins the next step, without taking part in it:
    /// how a passive server learns of the end of a run. `limit`: how long to
    /// wait, `None` as long as the peer's connection lives. Says whether the
    /// peer has begun.
    ///
    /// # Errors
    /// [`ExchangeError::Closed`] or [`ExchangeError::Io`] when the peer is gone.
    pub fn watch(&mut self, stage: Stage, limit: Option<Duration>) -> Result<bool, ExchangeError> {
        self.channel.wait(Step::Key(stage), limit)
    }

    /// Exchanges the reports of a run. `ours` is all zero on an end that did
    /// not measure. Ports are exchanged when `ours` has them; the peer must
    /// have been told the same (`--report-per-port`).
    ///
    /// # Errors
    /// Those of the [`Channel`].
    pub fn exchange_reports(
        &mut self,
        ours: &BandwidthReport,
    ) -> Result<BandwidthReport, ExchangeError> {
        let mut peer = BandwidthReport::default();
        for (field, message) in ours.messages() {
            let mut theirs = [0; 8];
            self.swap(Step::Report(field), &message, &mut theirs)?;
            peer.set(field, theirs);
        }
        Ok(peer)
    }

    /// The closing handshake, and the end of the connection.
    ///
    /// # Errors
    /// As [`Session::sync`]. Nothing that happens after the handshake is an error.
    pub fn close(mut self, ours: &KeyRecord) -> Result<(), ExchangeError> {
        self.sync(Stage::Close, ours)?;
        self.channel.finish();
        Ok(())
    }

    /// The end of the connection where there is no closing handshake
    /// (`ib_write_lat`): waits a little for the peer, whose last message may
    /// still want an acknowledgement.
    pub fn end(mut self) {
        self.channel.finish();
    }

    /// One exchange of messages of a length both ends know.
    fn swap(&mut self, step: Step, ours: &[u8], theirs: &mut [u8]) -> Result<(), ExchangeError> {
        match self.side {
            Side::Client => {
                self.channel.send(step, ours)?;
                self.await_run(step, theirs.len())?;
                self.channel.receive(step, theirs)
            }
            Side::Server => {
                self.await_run(step, theirs.len())?;
                self.channel.receive(step, theirs)?;
                self.channel.send(step, ours)
            }
        }
    }

    /// Exchanges a size in bytes and returns the larger one.
    fn larger(&mut self, step: Step, ours: u32, limit: u32) -> Result<u32, ExchangeError> {
        let mut theirs = [0; 4];
        self.swap(step, &ours.to_be_bytes(), &mut theirs)?;
        let theirs = u32::from_be_bytes(theirs);
        // Stock believes any number and allocates by it.
        if theirs == 0 || (theirs.is_power_of_two() && theirs <= limit) {
            Ok(ours.max(theirs))
        } else {
            Err(ExchangeError::Unintelligible {
                step,
                expected: format!("a power of two up to {limit}"),
                seen: theirs.to_string(),
            })
        }
    }

    /// Whether the parameter block is exchanged with this peer. 6.28 does it
    /// with everybody, 6.29 with those who announce 6.28 or more, which we do.
    fn peer_negotiates(&mut self) -> Result<bool, ExchangeError> {
        if self.ours.negotiates()
            && self.side == Side::Server
            && self.peer.may_negotiate_unannounced()
        {
            // The client writes first: what it writes tells a block from a key record.
            self.channel
                .wait(Step::Parameters, Some(self.timeouts.step))?;
            self.wait_for_tail(MAX_KEY_LEN)?;
            return Ok(self.channel.pending(Step::Parameters, BLOCK_LEN)? > MAX_KEY_LEN);
        }
        Ok(self.ours.negotiates() && self.peer.negotiates())
    }

    /// Reads a block of either length.
    fn receive_block(&mut self) -> Result<ParameterBlock, ExchangeError> {
        let step = Step::Parameters;
        let mut bytes = [0; BLOCK_LEN];
        let (head, tail) = bytes.split_at_mut(SHORT_BLOCK_LEN);
        self.channel.receive(step, head)?;
        if !self.tail_follows()? {
            return ParameterBlock::parse(head);
        }
        self.channel.receive(step, tail)?;
        ParameterBlock::parse(&bytes)
    }

    /// Whether the peer sends the last field of the block. A peer that closes
    /// right after a short block has found a mismatch; we shall, too.
    fn tail_follows(&mut self) -> Result<bool, ExchangeError> {
        match self.channel.wait(Step::Parameters, Some(BLOCK_TAIL_TIME)) {
            Err(ExchangeError::Closed { .. }) => Ok(false),
            other => other,
        }
    }

    /// Gives a message that is longer than `length` the time to arrive whole.
    fn wait_for_tail(&mut self, length: usize) -> Result<(), ExchangeError> {
        let deadline = std::time::Instant::now() + BLOCK_TAIL_TIME;
        while self.channel.pending(Step::Parameters, length + 1)? <= length
            && std::time::Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Before a step that follows a run: waits for the peer's run.
    fn await_run(&mut self, step: Step, expected: usize) -> Result<(), ExchangeError> {
        if !step.follows_run() {
            return Ok(());
        }
        let limit = self.timeouts.run;
        if self.channel.wait(step, limit)? {
            return Ok(());
        }
        Err(ExchangeError::Silent {
            step,
            seen: 0,
            expected,
            waited: limit.unwrap_or_default(),
        })
    }

    /// Reads a record in the channel's dialect.
    fn receive_any_key(&mut self, stage: Stage, form: KeyForm) -> Result<KeyRecord, ExchangeError> {
        match self.channel.key_dialect() {
            KeyDialect::Text => self.receive_key(stage, form),
            KeyDialect::Binary => self.receive_binary_key(stage, form),
        }
    }

    /// Reads a binary record. It comes as one message, whose length tells
    /// whether the peer is of the version that it announced.
    fn receive_binary_key(
        &mut self,
        stage: Stage,
        ours: KeyForm,
    ) -> Result<KeyRecord, ExchangeError> {
        let step = Step::Key(stage);
        let form = BinaryForm::of(&self.peer);
        let mut message = [0; MAX_BINARY_KEY_LEN];
        let message = &mut message[..form.length()];
        if self.channel.wait(step, Some(self.timeouts.step))? {
            let seen = self.channel.pending(step, BLOCK_LEN)?;
            if seen != form.length() {
                return Err(ExchangeError::Unintelligible {
                    step,
                    expected: format!(
                        "a record of {} bytes as version {} has it",
                        form.length(),
                        self.peer
                    ),
                    seen: format!("{seen} bytes"),
                });
            }
        }
        self.channel.receive(step, message)?;
        binary_key::parse(message, form, ours).ok_or_else(|| ExchangeError::MalformedKey {
            step,
            expected: form.length(),
            seen: message.escape_ascii().to_string(),
        })
    }

    /// Reads a record of our form. A peer that uses a shorter form is
    /// recognised by the NUL at the end of its record, so that we do not wait
    /// for bytes that never come.
    fn receive_key(&mut self, stage: Stage, form: KeyForm) -> Result<KeyRecord, ExchangeError> {
        let step = Step::Key(stage);
        let expected = form.length();
        let mut message = [0; MAX_KEY_LEN];
        let mut filled = 0;
        for length in KeyForm::all().map(KeyForm::length) {
            if length > expected {
                break;
            }
            self.channel.receive(step, &mut message[filled..length])?;
            filled = length;
            let ends_here = message[length - 1] == 0 && !message[..length - 1].contains(&0);
            if length < expected && ends_here {
                return Err(ExchangeError::KeyForm {
                    step,
                    expected,
                    seen: length,
                });
            }
        }
        if self.is_longer_form(step, &message[..expected])? {
            return Err(ExchangeError::KeyForm {
                step,
                expected,
                seen: self.channel.pending(step, MAX_KEY_LEN)? + expected,
            });
        }
        KeyRecord::parse(&message[..expected], form, stage)
    }

    /// Whether the peer's record goes on behind ours: no NUL yet, and more to come.
    fn is_longer_form(&mut self, step: Step, message: &[u8]) -> Result<bool, ExchangeError> {
        if message.contains(&0) {
            return Ok(false);
        }
        let pending = self.channel.pending(step, MAX_KEY_LEN)?;
        Ok(pending > 0 && KeyForm::from_length(message.len() + pending).is_some())
    }
}
