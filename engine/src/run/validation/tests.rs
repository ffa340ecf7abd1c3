//! Rings between two buffers, with a wire that does at once what is posted.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::any::Any;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use verbs_sys::memory::Buffer;
use verbs_sys::{
    Completion, CompletionQueue, Gather, Notify, PostError, QpAttributes, QpCapabilities, QpType,
    QueuePair, ReceiveRequest, SendFlags, SendOp, SendRequest, VerbsError, WcStatus,
};

use super::validator::{Mismatch, Validator};
use super::*;
use crate::exchange::Presence;
use crate::interrupt::Interrupt;
use crate::options::{READ_BW, WRITE_BW, from_command_line};
use crate::run::{Counted, RunError, Watchdog};
use crate::setup::{Queues, RingLayout};
use crate::stats::BandwidthSamples;

/// A byte that the wire changes: of this message of this queue pair.
#[derive(Clone, Copy)]
struct Corruption {
    qp: usize,
    message: usize,
    offset: usize,
    to: u8,
}

struct Wire {
    /// This end, and the peer.
    here: Buffer,
    there: Buffer,
    messages: Vec<usize>,
    ready: Vec<u64>,
    corruption: Option<Corruption>,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Wire>>);

struct FakeQp {
    index: usize,
    wire: Shared,
}

struct FakeCq(Shared);

impl Wire {
    fn execute(&mut self, qp: usize, request: &SendRequest<'_>) {
        let Gather::Sges([sge]) = request.data else {
            panic!("one piece of memory");
        };
        let local = (sge.addr - self.here.addr()) as usize;
        let there = self.there.addr();
        let at = |remote: u64| (remote - there) as usize;
        let mut bytes = vec![0; sge.length as usize];
        match request.op {
            SendOp::Write { remote } => {
                self.here.read(local, &mut bytes).unwrap();
                self.spoil(qp, &mut bytes);
                self.there.write(at(remote.addr), &bytes).unwrap();
            }
            SendOp::Read { remote } => {
                self.there.read(at(remote.addr), &mut bytes).unwrap();
                self.spoil(qp, &mut bytes);
                self.here.write(local, &bytes).unwrap();
            }
            SendOp::FetchAdd { remote, add } => {
                let old = self
                    .there
                    .with_atomic_u64(at(remote.addr), |word| {
                        word.fetch_add(add, Ordering::Release)
                    })
                    .unwrap();
                let store =
                    |word: &std::sync::atomic::AtomicU64| word.store(old, Ordering::Release);
                self.here.with_atomic_u64(local, store).unwrap();
            }
            op => panic!("{op:?}"),
        }
        if request.flags.contains(SendFlags::SIGNALED) {
            self.ready.push(request.wr_id);
        }
    }

    /// Changes the byte of the corruption; counters are no messages.
    fn spoil(&mut self, qp: usize, bytes: &mut [u8]) {
        if bytes.len() == 8 {
            return;
        }
        if let Some(wrong) = &self.corruption
            && (wrong.qp, wrong.message) == (qp, self.messages[qp])
        {
            bytes[wrong.offset] = wrong.to;
        }
        self.messages[qp] += 1;
    }
}

impl QueuePair for FakeQp {
    fn qpn(&self) -> u32 {
        7
    }

    fn qp_type(&self) -> QpType {
        QpType::Rc
    }

    fn capabilities(&self) -> QpCapabilities {
        QpCapabilities::default()
    }

    fn modify(&mut self, _: &QpAttributes) -> Result<(), VerbsError> {
        Ok(())
    }

    fn query(&self) -> Result<QpAttributes, VerbsError> {
        Ok(QpAttributes::default())
    }

    fn post_send(&mut self, requests: &[SendRequest<'_>]) -> Result<(), PostError> {
        let mut wire = self.wire.0.lock().unwrap();
        for request in requests {
            wire.execute(self.index, request);
        }
        Ok(())
    }

    fn post_recv(&mut self, _: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        Ok(())
    }
}

impl CompletionQueue for FakeCq {
    fn handle(&self) -> u32 {
        0
    }

    fn depth(&self) -> u32 {
        0
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let mut wire = self.0.0.lock().unwrap();
        let count = wire.ready.len().min(completions.len());
        for (slot, wr_id) in completions.iter_mut().zip(wire.ready.drain(..count)) {
            *slot = Completion {
                wr_id,
                status: WcStatus::Success,
                ..Completion::default()
            };
        }
        count
    }

    fn arm(&mut self, _: Notify) {}

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Two ends with `qps` rings each, as [`crate::setup::Memory`] fills them.
struct Rig {
    wire: Shared,
    layout: RingLayout,
    here: Buffer,
    there: Buffer,
    /// How long the sender waits for the receiver.
    patience: Duration,
}

fn end(layout: &RingLayout) -> Buffer {
    let buffer = Buffer::allocate(layout.len()).unwrap();
    for round in 0..RingLayout::PATTERNS {
        let byte = RingLayout::pattern_byte(round);
        buffer
            .fill(layout.pattern(round), layout.size, byte)
            .unwrap();
    }
    for chunk in 0..layout.qps * layout.chunks {
        let first = u64::from(layout.reads);
        let marker = layout.marker(0, chunk);
        buffer.write(marker, &first.to_ne_bytes()).unwrap();
    }
    buffer
}

impl Rig {
    fn new(size: usize, tx_depth: usize, qps: usize, reads: bool) -> Self {
        let layout = RingLayout::new(size, tx_depth, qps, reads);
        let (here, there) = (end(&layout), end(&layout));
        let wire = Wire {
            here: here.clone(),
            there: there.clone(),
            messages: vec![0; qps],
            ready: Vec::new(),
            corruption: None,
        };
        Self {
            wire: Shared(Arc::new(Mutex::new(wire))),
            layout,
            here,
            there,
            patience: Duration::from_secs(30),
        }
    }

    /// The buffer that data come into.
    fn receiver(&self) -> &Buffer {
        match self.layout.reads {
            true => &self.here,
            false => &self.there,
        }
    }

    /// Sends so many messages on each queue pair.
    fn send(
        &self,
        messages: u64,
        tx_depth: u32,
        cq_mod: u32,
        credit: Credit,
    ) -> Result<(), RunError> {
        let layout = &self.layout;
        let tool = match layout.reads {
            true => READ_BW,
            false => WRITE_BW,
        };
        let line = format!("-n {messages} -t {tx_depth} -Q {cq_mod} -s {}", layout.size);
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let resolved = from_command_line(tool, "ib", &args, 1);
        let params = resolved.params().unwrap();
        let boxed = |index| {
            let wire = self.wire.clone();
            Box::new(FakeQp { index, wire }) as Box<dyn QueuePair>
        };
        let mut queues = Queues {
            send_cq: Box::new(FakeCq(self.wire.clone())),
            recv_cq: None,
            qps: (0..layout.qps).map(boxed).collect(),
            srq: None,
            channel: None,
            inline: 0,
        };
        let targets: Vec<Target> = (0..layout.qps)
            .map(|qp| Target {
                rkey: 1,
                area: self.there.addr() + layout.published(qp) as u64,
                markers: self.there.addr() + layout.marker(0, 0) as u64,
            })
            .collect();
        let (near, _peer) = UnixStream::pair().unwrap();
        let mut watchdog = Watchdog::new(
            Presence::of_socket(&near).unwrap(),
            &Interrupt::new(),
            self.patience,
        );
        let total = messages * layout.qps as u64;
        let mut samples = BandwidthSamples::new(total as usize, true);
        let mut course = Counted::new(&mut samples, true, messages, layout.qps as u32);
        RingSender::new(
            &mut queues,
            (&self.here, 2),
            *layout,
            &targets,
            credit,
            params,
        )
        .run(&mut course, &mut watchdog)
    }

    /// The same, with an eye on what comes in.
    fn validated(&self, messages: u64, tx_depth: u32, cq_mod: u32) -> Verdict {
        let credit = match self.layout.reads {
            true => Credit::Here,
            false => Credit::AtPeer,
        };
        let validation = Validation::start(self.receiver().clone(), self.layout).unwrap();
        self.send(messages, tx_depth, cq_mod, credit).unwrap();
        validation.end()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every whole chunk is looked at, however often the ring goes round.
    #[test]
    fn whole_chunks_are_validated_in_every_round(
        size in 9_usize..3000,
        tx_depth in 32_u32..200,
        cq_mod in 1_u32..60,
        qps in 1_usize..4,
        reads: bool,
        rounds in 1_u64..5,
        rest in 0_u64..200,
    ) {
        let rig = Rig::new(size, tx_depth as usize, qps, reads);
        let messages = rig.layout.ring_messages() as u64 * rounds + rest;
        let verdict = rig.validated(messages, tx_depth, cq_mod.min(tx_depth));
        let whole = messages - messages % rig.layout.chunk as u64;
        let expected = Verdict {
            messages: whole * qps as u64,
            bytes: whole * (qps * size) as u64,
            ..Verdict::default()
        };
        prop_assert_eq!(verdict, expected);
    }

    /// A single wrong byte is found, and named.
    #[test]
    fn a_wrong_byte_is_found_wherever_it_is(
        size in 9_usize..3000,
        at in 0.0..1.0,
        offset in 0.0..1.0,
        qp in 0_usize..3,
        to in 4_u8..,
        reads: bool,
    ) {
        let rig = Rig::new(size, 64, 3, reads);
        let messages = rig.layout.ring_messages() * 2;
        let wrong = Corruption {
            qp,
            message: (at * messages as f64) as usize,
            offset: (offset * size as f64) as usize,
            to,
        };
        rig.wire.0.lock().unwrap().corruption = Some(wrong);
        let verdict = rig.validated(messages as u64, 64, 1);
        prop_assert_eq!(verdict.errors, 1);
        let chunk = wrong.message / rig.layout.chunk;
        prop_assert_eq!(verdict.first, Some(Mismatch {
            qp,
            chunk: chunk % rig.layout.chunks,
            offset: wrong.offset,
            expected: RingLayout::pattern_byte((chunk / rig.layout.chunks) as u64),
            found: to,
        }));
    }
}

#[test]
fn the_sender_waits_for_the_receiver() {
    for (reads, credit) in [(true, Credit::Here), (false, Credit::AtPeer)] {
        let mut rig = Rig::new(64, 64, 2, reads);
        rig.patience = Duration::from_millis(100);
        let around = rig.layout.ring_messages();
        let error = rig.send(around as u64 + 1, 64, 1, credit).unwrap_err();
        assert!(matches!(error, RunError::Stalled { .. }), "{error:?}");
        assert_eq!(rig.wire.0.lock().unwrap().messages, [around; 2]);
    }
}

#[test]
fn a_receiver_that_falls_behind_knows_what_it_has_missed() {
    let rig = Rig::new(64, 64, 1, false);
    let (around, chunk) = (rig.layout.ring_messages(), rig.layout.chunk);
    rig.send((around + 3 * chunk) as u64, 64, 1, Credit::Unknown)
        .unwrap();
    let mut validator = Validator::new(rig.there.clone(), rig.layout);
    while validator.look() {}
    let expected = Verdict {
        messages: around as u64,
        bytes: (around * 64) as u64,
        missed: 3,
        ..Verdict::default()
    };
    assert_eq!(validator.verdict, expected);
}

#[test]
fn what_is_overwritten_meanwhile_is_not_wrong() {
    for (chunk, others_done, overtaken) in
        [(0, 1, true), (3, 2, true), (0, 0, false), (3, 1, false)]
    {
        let layout = RingLayout::new(64, 64, 1, false);
        let buffer = end(&layout);
        let signal = |chunk: usize, times: u64| {
            buffer
                .write(layout.marker(0, chunk), &times.to_ne_bytes())
                .unwrap();
        };
        // Everything before is complete once, and has been looked at.
        for before in 0..=chunk {
            buffer
                .fill(
                    layout.message(0, before * layout.chunk),
                    layout.chunk_bytes(),
                    1,
                )
                .unwrap();
            signal(before, 1);
        }
        let mut validator = Validator::new(buffer.clone(), layout);
        for _ in 0..chunk {
            assert!(validator.look());
        }
        // The sender is a round ahead, and in the middle of this chunk.
        let before = chunk.checked_sub(1).unwrap_or(layout.chunks - 1);
        signal(before, others_done);
        buffer
            .fill(layout.message(0, chunk * layout.chunk), 100, 2)
            .unwrap();
        assert!(validator.look());
        let verdict = validator.verdict;
        assert_eq!(
            (verdict.overtaken == 1, verdict.errors == 1),
            (overtaken, !overtaken)
        );
    }
}
