//! The receiver's and the duplex loop over queues that deliver what there is
//! a receive for.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::any::Any;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use verbs_sys::{
    Notify, PostError, QpAttributes, QpCapabilities, QpType, SendOp, SendRequest, VerbsError,
    WcStatus,
};

use super::*;
use crate::exchange::Presence;
use crate::interrupt::Interrupt;
use crate::options::{Machine, WRITE_BW, from_command_line};
use crate::run::duplex::Duplex;
use crate::run::requests::Prepared;

const EMPTY: VerbsError = VerbsError::Unsupported { what: "more" };

/// One queue pair: receives that wait, and what has come and gone.
#[derive(Default)]
struct Line {
    waiting: u64,
    most_waiting: u64,
    posted: u64,
    /// Messages that the peer still has to send.
    to_come: u64,
    sent: u64,
    /// Sends that completed and that nobody has taken yet.
    completed: u64,
}

struct Wire {
    lines: Vec<Line>,
    status: WcStatus,
    flags: WcFlags,
    /// Receives that a queue has room for.
    room: u64,
    /// The peer sends only what it got a message for before.
    answers: bool,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Wire>>);

struct FakeQp {
    index: usize,
    wire: Shared,
}

/// Completions of receives, or of sends.
struct FakeCq {
    wire: Shared,
    receives: bool,
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
        let line = &mut self.wire.0.lock().unwrap().lines[self.index];
        for request in requests {
            assert!(matches!(request.op, SendOp::WriteImm { .. }));
            line.sent += 1;
            line.completed += 1;
        }
        Ok(())
    }

    fn post_recv(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        let mut wire = self.wire.0.lock().unwrap();
        let room = wire.room;
        let line = &mut wire.lines[self.index];
        for (posted, request) in requests.iter().enumerate() {
            assert_eq!(request.wr_id, self.index as u64);
            if line.waiting == room {
                let source = EMPTY;
                return Err(PostError { posted, source });
            }
            line.waiting += 1;
            line.posted += 1;
            line.most_waiting = line.most_waiting.max(line.waiting);
        }
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
        let mut wire = self.wire.0.lock().unwrap();
        let (status, flags, answers) = (wire.status, wire.flags, wire.answers);
        let mut slots = completions.iter_mut();
        let mut count = 0;
        for (index, line) in wire.lines.iter_mut().enumerate() {
            let ready = match (self.receives, answers) {
                (false, _) => line.completed,
                (true, true) => line.waiting.min(line.to_come).min(line.sent),
                (true, false) => line.waiting.min(line.to_come),
            };
            for slot in slots.by_ref().take(ready as usize) {
                *slot = Completion {
                    wr_id: index as u64,
                    status,
                    flags,
                    ..Completion::default()
                };
                count += 1;
                match self.receives {
                    true => {
                        line.waiting -= 1;
                        line.to_come -= 1;
                    }
                    false => line.completed -= 1,
                }
            }
        }
        count
    }

    fn arm(&mut self, _: Notify) {}

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Counts until both directions have had so many messages.
#[derive(Default)]
struct Count {
    limit: u64,
    total: u64,
    started: u32,
    sent: u64,
    received: u64,
}

impl Course for Count {
    fn limit(&self) -> u64 {
        self.limit
    }

    fn start(&mut self) {
        assert_eq!((self.sent, self.received), (0, 0));
        self.started += 1;
    }

    fn posting(&mut self, _: u64) {
        assert_eq!(self.started, 1);
    }

    fn burst(&mut self, _: u64) {}

    fn completed(&mut self, count: u64, _: u64) {
        self.sent += count;
    }

    fn received(&mut self) {
        self.received += 1;
    }

    fn is_over(&mut self, total: u64) -> Result<bool, RunError> {
        Ok(total >= self.total)
    }

    fn finish(&mut self) {}
}

struct Rig {
    wire: Shared,
    queues: Queues,
    params: Params,
    watchdog: Watchdog,
    course: Count,
    _peer: UnixStream,
}

/// A test over fake queues, whose peer sends as many messages as are expected.
fn rig(line: &str) -> Rig {
    let line = format!("--write_with_imm -s 64 {line}");
    let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let resolved = from_command_line(WRITE_BW, "ib_write_bw", &args, 1);
    let params = resolved
        .params()
        .unwrap_or_else(|| panic!("{resolved:?}"))
        .clone();
    let crate::options::Length::Iterations(limit) = params.length else {
        panic!("{:?}", params.length);
    };
    let lines = (0..params.qps).map(|_| Line {
        to_come: limit,
        ..Line::default()
    });
    let wire = Shared(Arc::new(Mutex::new(Wire {
        lines: lines.collect(),
        status: WcStatus::Success,
        flags: WcFlags::WITH_IMM,
        room: params.rx_depth.into(),
        answers: false,
    })));
    let boxed = |index| {
        let wire = wire.clone();
        Box::new(FakeQp { index, wire }) as Box<dyn QueuePair>
    };
    let cq = |receives| {
        let wire = wire.clone();
        Box::new(FakeCq { wire, receives }) as Box<dyn CompletionQueue>
    };
    let queues = Queues {
        send_cq: cq(false),
        recv_cq: Some(cq(true)),
        qps: (0..params.qps as usize).map(boxed).collect(),
        srq: None,
        channel: None,
        inline: 0,
    };
    let (near, peer) = UnixStream::pair().unwrap();
    let watchdog = Watchdog::new(
        Presence::of_socket(&near).unwrap(),
        &Interrupt::new(),
        Duration::from_millis(200),
    );
    Rig {
        course: Count {
            limit,
            total: limit * u64::from(params.qps),
            ..Count::default()
        },
        wire,
        queues,
        params,
        watchdog,
        _peer: peer,
    }
}

impl Rig {
    /// The receives of all queue pairs.
    fn inbox(&self) -> Vec<PreparedReceives> {
        let list = self.params.recv_post_list as usize;
        (0..self.params.qps as usize)
            .map(|qp| PreparedReceives::without_memory(qp, list))
            .collect()
    }

    fn receive(&mut self) -> Result<(), RunError> {
        let inbox = self.inbox();
        post_receives(&mut self.queues, &inbox, &self.params)?;
        Receiver::new(&mut self.queues, &inbox, &self.params)
            .run(&mut self.course, &mut self.watchdog)
    }

    fn exchange(&mut self) -> Result<(), RunError> {
        let inbox = self.inbox();
        post_receives(&mut self.queues, &inbox, &self.params)?;
        let qps = 0..self.params.qps as usize;
        let prepared: Vec<_> = qps.map(|qp| Prepared::at(qp, &[0])).collect();
        Duplex::new(&mut self.queues, &prepared, &inbox, &self.params, 64)
            .unwrap()
            .run(&mut self.course, &mut self.watchdog)
    }
}

proptest! {
    /// Whatever the depth and the list, every message finds a receive and
    /// counts once, the receive queue never overflows, and none is left over.
    #[test]
    fn every_message_finds_a_receive(
        lists in 5_u64..80,
        list in 1_u32..9,
        depth in 1_u32..40,
        qps in 1_u32..4,
    ) {
        let (iterations, depth) = (lists * u64::from(list), depth * list);
        let mut rig = rig(&format!(
            "-n {iterations} -r {depth} -q {qps} --recv_post_list={list}"
        ));
        rig.receive().unwrap();
        prop_assert_eq!(rig.course.started, 1);
        prop_assert_eq!(rig.course.received, iterations * u64::from(qps));
        let rx_depth = u64::from(rig.params.rx_depth);
        for line in &rig.wire.0.lock().unwrap().lines {
            prop_assert_eq!(line.to_come, 0);
            prop_assert!(line.most_waiting <= rx_depth);
            // An odd depth is made even, which may be one more than needed.
            prop_assert!(line.posted <= iterations + 1);
        }
    }
}

#[test]
fn both_directions_have_to_be_through() {
    let mut client = rig("-n 300 -r 20 -t 16 -q 2 -b");
    client.params.machine = Machine::Client;
    client.wire.0.lock().unwrap().answers = true;
    client.exchange().unwrap();
    assert_eq!((client.course.sent, client.course.received), (600, 600));
    assert_eq!(client.course.started, 1);
}

#[test]
fn the_server_sends_when_it_has_received() {
    let mut server = rig("-n 300 -r 20 -q 2 -b");
    assert_eq!(server.params.machine, Machine::Server);
    server.exchange().unwrap();
    assert_eq!((server.course.sent, server.course.received), (600, 600));
    // Two servers would wait for each other.
    let mut server = rig("-n 300 -r 20 -q 2 -b");
    server.wire.0.lock().unwrap().answers = true;
    let error = server.exchange().unwrap_err();
    assert!(matches!(error, RunError::NothingCame { received: 0, .. }));
    assert_eq!(server.wire.0.lock().unwrap().lines[0].sent, 0);
}

#[test]
fn silence_ends_the_run() {
    let mut rig = rig("-n 100");
    rig.wire.0.lock().unwrap().lines[0].to_come = 60;
    let error = rig.receive().unwrap_err();
    let RunError::NothingCame {
        received, expected, ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!((received, expected), (60, 100));
}

#[test]
fn a_message_without_immediate_data_ends_the_run() {
    let mut rig = rig("-n 100");
    rig.wire.0.lock().unwrap().flags = WcFlags::empty();
    let error = rig.receive().unwrap_err();
    assert!(matches!(error, RunError::NoImmediate { received: 0, .. }));
}

#[test]
fn a_failed_receive_ends_the_run() {
    let mut rig = rig("-n 100");
    rig.wire.0.lock().unwrap().status = WcStatus::WorkRequestFlushed;
    let error = rig.receive().unwrap_err();
    assert!(matches!(error, RunError::Receive { received: 0, .. }));
}

#[test]
fn a_refused_receive_is_told() {
    let mut rig = rig("-n 100 -r 10");
    rig.wire.0.lock().unwrap().room = 9;
    let error = rig.receive().unwrap_err();
    assert!(matches!(
        error,
        RunError::PostReceive {
            qp: 0,
            received: None,
            ..
        }
    ));
    assert_eq!(error.stock_text(), " Failed to post receive recv_wqes\n");
}
