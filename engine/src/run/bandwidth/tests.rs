//! The sender's loop over queues that complete at random times.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::any::Any;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use verbs_sys::{
    Notify, PostError, QpAttributes, QpCapabilities, QpType, ReceiveRequest, SendOp, VerbsError,
    WcStatus,
};

use super::*;
use crate::exchange::Presence;
use crate::interrupt::Interrupt;
use crate::options::{WRITE_BW, from_command_line};

/// What was posted on one queue pair: remote address and whether signalled.
type Posted = Vec<(u64, bool)>;

/// A send queue that takes everything it is promised to have room for.
#[derive(Default)]
struct Wire {
    posted: Vec<Posted>,
    /// Queue pair and status of completions that nobody has taken yet.
    ready: Vec<(u64, WcStatus)>,
    /// Requests that have not completed, per queue pair.
    outstanding: Vec<u64>,
    most_outstanding: u64,
    /// The message that fails, by number over all queue pairs.
    fails: Option<usize>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Wire>>);

struct FakeQp {
    index: usize,
    wire: Shared,
}

struct FakeCq(Shared);

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
            assert_eq!(request.wr_id, self.index as u64);
            let SendOp::Write { remote } = request.op else {
                panic!("{:?}", request.op);
            };
            let signalled = request.flags.contains(SendFlags::SIGNALED);
            let number = wire.posted.iter().map(Vec::len).sum::<usize>();
            wire.posted[self.index].push((remote.addr, signalled));
            wire.outstanding[self.index] += 1;
            wire.most_outstanding = wire.most_outstanding.max(wire.outstanding[self.index]);
            if wire.fails == Some(number) {
                let status = WcStatus::RetryExceeded;
                wire.ready.push((request.wr_id, status));
            } else if signalled {
                wire.ready.push((request.wr_id, WcStatus::Success));
            }
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
        let taken: Vec<_> = wire.ready.drain(..count).collect();
        for (slot, (wr_id, status)) in completions.iter_mut().zip(taken) {
            *slot = Completion {
                wr_id,
                status,
                ..Completion::default()
            };
            // A signalled request completes all before it on its queue pair.
            let posted = &wire.posted[wr_id as usize];
            let unsignalled = posted.iter().rev().take_while(|(_, signal)| !signal);
            wire.outstanding[wr_id as usize] = unsignalled.count() as u64;
        }
        count
    }

    fn arm(&mut self, _: Notify) {}

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Ends after a number of messages per queue pair, and counts.
struct Count {
    limit: u64,
    total: u64,
    posted: Vec<u64>,
    counted: u64,
}

impl Course for Count {
    fn limit(&self) -> u64 {
        self.limit
    }

    fn start(&mut self) {}

    fn posting(&mut self, index: u64) {
        self.posted.push(index);
    }

    fn burst(&mut self, _: u64) {}

    fn completed(&mut self, count: u64, total: u64) {
        self.counted += count;
        assert_eq!(self.counted, total);
    }

    fn received(&mut self) {}

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
    _peer: UnixStream,
}

fn rig(line: &str) -> Rig {
    let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let resolved = from_command_line(WRITE_BW, "ib_write_bw", &args, 1);
    let params = resolved
        .params()
        .unwrap_or_else(|| panic!("{resolved:?}"))
        .clone();
    let wire = Shared::default();
    let qps = params.qps as usize;
    {
        let mut wire = wire.0.lock().unwrap();
        wire.posted = vec![Vec::new(); qps];
        wire.outstanding = vec![0; qps];
    }
    let boxed = |index| {
        let wire = wire.clone();
        Box::new(FakeQp { index, wire }) as Box<dyn QueuePair>
    };
    let queues = Queues {
        send_cq: Box::new(FakeCq(wire.clone())),
        recv_cq: None,
        qps: (0..qps).map(boxed).collect(),
        srq: None,
        channel: None,
        inline: 0,
    };
    let (near, peer) = UnixStream::pair().unwrap();
    let watchdog = Watchdog::new(
        Presence::of_socket(&near).unwrap(),
        &Interrupt::new(),
        Duration::from_secs(5),
    );
    Rig {
        wire,
        queues,
        params,
        watchdog,
        _peer: peer,
    }
}

fn course(limit: u64, qps: u32) -> Count {
    Count {
        limit,
        total: limit * u64::from(qps),
        posted: Vec::new(),
        counted: 0,
    }
}

proptest! {
    /// Whatever the depths, every message is sent once, counted once, the
    /// send queue never overflows, and the last one is signalled.
    #[test]
    fn every_message_counts_once(
        iterations in 5_u64..400,
        depth in 1_u32..200,
        cq_mod in 1_u32..150,
        qps in 1_u32..4,
        slots in 1_u64..9,
    ) {
        let mut rig = rig(&format!("-s 64 -n {iterations} -t {depth} -Q {cq_mod} -q {qps}"));
        let offsets: Vec<u64> = (0..slots).collect();
        let prepared: Vec<_> = (0..qps as usize).map(|qp| Prepared::at(qp, &offsets)).collect();
        let mut count = course(iterations, qps);
        Sender::new(&mut rig.queues, &prepared, &rig.params, 64)
            .run(&mut count, &mut rig.watchdog)
            .unwrap();
        prop_assert_eq!(count.counted, iterations * u64::from(qps));
        prop_assert_eq!(count.posted.len() as u64, iterations * u64::from(qps));
        prop_assert!(count.posted.iter().copied().eq(0..iterations * u64::from(qps)));
        let wire = rig.wire.0.lock().unwrap();
        prop_assert!(wire.most_outstanding <= u64::from(rig.params.tx_depth));
        for posted in &wire.posted {
            prop_assert_eq!(posted.len() as u64, iterations);
            for (number, (addr, signalled)) in posted.iter().enumerate() {
                let number = number as u64;
                prop_assert_eq!(*addr, number % slots);
                let group = u64::from(rig.params.cq_mod);
                let expected = (number + 1).is_multiple_of(group) || number + 1 == iterations;
                prop_assert_eq!(*signalled, expected, "message {}", number);
            }
        }
    }
}

#[test]
fn lists_are_posted_whole() {
    let mut rig = rig("-s 64 -n 40 -t 16 -l 4 -Q 2 -q 2");
    let prepared: Vec<_> = (0..2)
        .map(|qp| Prepared::at(qp, &[0, 64, 128, 192]))
        .collect();
    let mut count = course(40, 2);
    Sender::new(&mut rig.queues, &prepared, &rig.params, 64)
        .run(&mut count, &mut rig.watchdog)
        .unwrap();
    assert_eq!(count.counted, 80);
    assert!(count.posted.iter().all(|index| index % 4 == 0));
    let wire = rig.wire.0.lock().unwrap();
    for posted in &wire.posted {
        for (number, (addr, signalled)) in posted.iter().enumerate() {
            assert_eq!(*addr, number as u64 % 4 * 64);
            assert_eq!(*signalled, number % 2 == 1);
        }
    }
}

#[test]
fn a_failed_message_ends_the_run() {
    let mut rig = rig("-s 64 -n 100");
    rig.wire.0.lock().unwrap().fails = Some(20);
    let prepared = [Prepared::at(0, &[0])];
    let mut count = course(100, 1);
    let error = Sender::new(&mut rig.queues, &prepared, &rig.params, 64)
        .run(&mut count, &mut rig.watchdog)
        .unwrap_err();
    let RunError::Completion {
        completion, posted, ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!((completion.status, posted), (WcStatus::RetryExceeded, 100));
}

#[test]
fn the_warm_up_leaves_nothing_behind() {
    let mut rig = rig("-s 64 -n 100 -t 10 -q 2 --perform_warm_up");
    let prepared: Vec<_> = (0..2).map(|qp| Prepared::at(qp, &[0, 64, 128])).collect();
    let mut sender = Sender::new(&mut rig.queues, &prepared, &rig.params, 64);
    sender.warm_up(&mut rig.watchdog).unwrap();
    {
        let mut wire = rig.wire.0.lock().unwrap();
        assert!(wire.ready.is_empty());
        for posted in &mut wire.posted {
            assert_eq!(posted.len(), 10);
            assert!(posted.drain(..).all(|(_, signalled)| signalled));
        }
    }
    let mut count = course(100, 2);
    sender.run(&mut count, &mut rig.watchdog).unwrap();
    assert_eq!(count.counted, 200);
}
