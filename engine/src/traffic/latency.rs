//! The latency tests: the ping-pong, and what its measurement gives.

use std::time::Duration;

use verbs_sys::RemoteAddress;

use super::Test;
use crate::failure::Failure;
use crate::options::{Length, Machine, Params};
use crate::reporter::Reporter;
use crate::run::{
    Arrival, CountedRounds, LastByte, Phases, PingPong, Receipt, Table, TimedRounds, Watchdog,
};
use crate::setup::Resources;
use crate::stats::{CycleRate, LatencySamples, Scale, TimedLatency};

/// For so long the cycle counter is compared with the clock (`-C`).
const CYCLE_TIME: Duration = Duration::from_millis(50);

impl Test<'_> {
    /// Plays ping-pong with messages of one size, and shows what that gave.
    pub(super) fn latency(&mut self, size: u32) -> Result<(), Failure> {
        let params = self.params;
        let Resources { queues, memory, .. } = &mut self.resources;
        let (Some(qp), Some(peer)) = (queues.qps.first_mut(), self.peers.first()) else {
            return Ok(());
        };
        let table = Table {
            size: size as usize,
            inline: queues.inline,
            remote: RemoteAddress {
                addr: peer.vaddr,
                rkey: peer.rkey,
            },
            with_imm: params.with_imm,
            gap: params.latency_gap,
            begins: params.machine == Machine::Server,
        };
        let mut show = Show {
            params,
            size,
            reporter: &mut self.reporter,
            watchdog: &mut self.watchdog,
        };
        let send_cq = &mut *queues.send_cq;
        match &mut queues.recv_cq {
            Some(recv_cq) => {
                let receipt = Receipt::new(&mut **recv_cq, params);
                show.play(PingPong::new(&mut **qp, send_cq, memory, receipt, &table))
            }
            None => {
                let byte = LastByte::new(&*self.adapter.context, memory, table.size);
                show.play(PingPong::new(&mut **qp, send_cq, memory, byte, &table))
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
    fn play<A: Arrival>(&mut self, mut game: PingPong<'_, A>) -> Result<(), Failure> {
        let (params, size) = (self.params, self.size);
        match params.length {
            Length::Iterations(limit) => {
                let mut samples = LatencySamples::new(usize::try_from(limit).unwrap_or(usize::MAX));
                let mut rounds = CountedRounds::new(&mut samples, limit);
                game.run(&mut rounds, self.watchdog)?;
                let scale = Scale {
                    cycles: params.report.cycles.then(|| CycleRate::measure(CYCLE_TIME)),
                    round_trip: false,
                };
                self.reporter
                    .latency(size.into(), limit, &mut samples, scale)?;
            }
            Length::Timed { duration, margin } => {
                let watch_cpu = params.report.cpu_utilization;
                let mut phases = Phases::start(duration, margin, watch_cpu);
                let mut rounds = TimedRounds::new(&mut phases);
                game.run(&mut rounds, self.watchdog)?;
                let count = rounds.counted;
                let measured = phases.measured();
                let elapsed = measured.stop - measured.start;
                let figures = TimedLatency::new(count, elapsed, false);
                self.reporter
                    .latency_timed(size.into(), count, &figures, measured.cpu)?;
            }
            // The options know no endless latency tests.
            Length::Infinite { .. } => {}
        }
        Ok(())
    }
}
