//! The latency tests: the game that fits, and what its measurement gives.

use std::time::Duration;

use verbs_sys::{RemoteAddress, SendFlags, SendRequest};

use super::Test;
use super::outgoing::Outgoing;
use crate::failure::Failure;
use crate::options::{Length, Machine, Params};
use crate::reporter::{Reporter, TimedRow};
use crate::run::{
    CountedRounds, Game, LastByte, Operation, Phases, PingPong, Receipt, RoundTrips, Table,
    TimedRounds, Watchdog,
};
use crate::setup::Resources;
use crate::stats::{CycleRate, LatencySamples, Scale, TimedLatency};

/// For so long the cycle counter is compared with the clock (`-C`).
const CYCLE_TIME: Duration = Duration::from_millis(50);

impl Test<'_> {
    /// Measures the latency of messages of one size, and shows what that gave;
    /// `run`: how often that has been done before.
    pub(super) fn latency(&mut self, size: u32, run: u32) -> Result<(), Failure> {
        let params = self.params;
        let earlier = match params.length {
            Length::Iterations(limit) => limit.wrapping_mul(run.into()),
            // Is measured once.
            Length::Timed { .. } | Length::Infinite { .. } => 0,
        };
        let outgoing = Outgoing {
            params,
            peers: &self.peers,
            handles: &self.handles,
            qkey: self.path.qkey,
        };
        let Resources { queues, memory, .. } = &mut self.resources;
        let sleeper = queues.sleeper();
        let (Some(qp), Some(peer)) = (queues.qps.first_mut(), outgoing.peer(0)) else {
            return Ok(());
        };
        let mut show = Show {
            params,
            size,
            reporter: &mut self.reporter,
            watchdog: &mut self.watchdog,
        };
        let operation = Operation::of(params);
        let send_cq = &mut *queues.send_cq;
        if params.tool.verb.is_round_trip() {
            let prepared = outgoing.prepared(memory, size, 0);
            let requests = prepared.first().map(|first| first.requests(operation));
            let Some(&request) = requests.as_ref().and_then(|requests| requests.first()) else {
                return Ok(());
            };
            return show.play(RoundTrips {
                qp: &mut **qp,
                cq: send_cq,
                sleeper,
                request: SendRequest {
                    flags: SendFlags::SIGNALED,
                    ..request
                },
                gap: params.latency_gap,
            });
        }
        let table = Table {
            operation,
            size: size as usize,
            inline: queues.inline,
            remote: RemoteAddress {
                addr: peer.vaddr,
                rkey: peer.rkey,
            },
            route: outgoing.route(0, peer),
            cq_mod: params.cq_mod,
            gap: params.latency_gap,
            earlier,
            // Who writes first is the server, who sends first the client.
            begins: (params.machine == Machine::Client) == operation.fills_receives(),
        };
        match (&mut queues.recv_cq, self.inbox.first()) {
            (Some(recv_cq), Some(receives)) => {
                let receipt = Receipt::new(&mut **recv_cq, &mut queues.srq, receives, params);
                show.play(PingPong::new(
                    &mut **qp, send_cq, sleeper, memory, receipt, &table,
                ))
            }
            _ => {
                let into = params.first_receiver();
                let byte = LastByte::new(&*self.adapter.context, memory, into, &table);
                show.play(PingPong::new(
                    &mut **qp, send_cq, sleeper, memory, byte, &table,
                ))
            }
        }
    }
}

/// What a game is played for.
struct Show<'a, 'b> {
    params: &'a Params,
    size: u32,
    reporter: &'a mut Reporter<'b>,
    watchdog: &'a mut Watchdog,
}

impl Show<'_, '_> {
    /// Plays, and shows the row.
    fn play(&mut self, mut game: impl Game) -> Result<(), Failure> {
        let (params, size) = (self.params, self.size);
        let round_trip = params.tool.verb.is_round_trip();
        match params.length {
            Length::Iterations(limit) => {
                let mut samples = LatencySamples::new(usize::try_from(limit).unwrap_or(usize::MAX));
                let mut rounds = CountedRounds::new(&mut samples, limit);
                game.run(&mut rounds, self.watchdog)?;
                let scale = Scale {
                    cycles: params.report.cycles.then(|| CycleRate::measure(CYCLE_TIME)),
                    round_trip,
                };
                self.reporter
                    .latency(size.into(), limit, &mut samples, scale)?;
            }
            Length::Timed { duration, margin } => {
                let watch_cpu = params.report.cpu_utilization;
                let mut phases = Phases::start(duration, margin, watch_cpu);
                let mut distribution = params.report.wants_distribution();
                let mut rounds = TimedRounds::new(&mut phases, distribution.as_mut());
                game.run(&mut rounds, self.watchdog)?;
                let count = rounds.counted;
                let measured = phases.measured();
                let elapsed = measured.stop - measured.start;
                let figures = TimedLatency::new(count, elapsed, round_trip);
                let timed = TimedRow {
                    size: size.into(),
                    iterations: count,
                    figures,
                    cpu: measured.cpu,
                    distribution,
                    round_trip,
                };
                self.reporter.latency_timed(&timed)?;
            }
            // The options know no endless latency tests.
            Length::Infinite { .. } => {}
        }
        Ok(())
    }
}
