//! A test from its header to its end: walks through the dialogue's plan, runs
//! the traffic where the plan has it, and shows the results.

use std::net::TcpStream;
use std::time::Duration;

use verbs_sys::RemoteAddress;

use crate::exchange::{
    Action, BandwidthReport, KeyRecord, Scope, Session, Stage, TcpChannel, check_gid_types, plan,
};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::options::{Length, Machine, Params, RateLimiter, Sizes};
use crate::report::address::Whose;
use crate::report::notes;
use crate::reporter::Reporter;
use crate::run::{
    Counted, CountedRounds, Endless, Phases, PingPong, Prepared, RunError, Sender, Table, Timed,
    TimedRounds, Watchdog,
};
use crate::setup::{Adapter, Path, Resources, to_rtr, to_rts};
use crate::stats::{
    BandwidthFigures, BandwidthSamples, BandwidthShape, CpuTimes, CycleRate, LatencySamples, Scale,
    TimedLatency, Volume,
};

/// How long a latency test goes on after the peer has closed the connection:
/// it closes when it is done, and then its last message is on its way to us.
const LAST_MESSAGE_TIME: Duration = Duration::from_secs(1);

/// For so long the cycle counter is compared with the clock (`-C`).
const CYCLE_TIME: Duration = Duration::from_millis(50);

/// The test of one end.
pub(crate) struct Test<'a> {
    params: &'a Params,
    adapter: &'a Adapter,
    resources: Resources,
    path: Path,
    /// What we tell the peer, and what it tells us, of each queue pair.
    records: Vec<KeyRecord>,
    peers: Vec<KeyRecord>,
    reporter: Reporter<'a>,
    watchdog: Watchdog,
    interrupt: &'a Interrupt,
    /// What the last run of this end measured.
    measured: BandwidthReport,
    cpu: Option<f32>,
    /// The line below the rows is shown.
    lined: bool,
}

/// What [`Test::new`] is made from.
pub(crate) struct Parts<'a> {
    pub(crate) params: &'a Params,
    pub(crate) adapter: &'a Adapter,
    pub(crate) resources: Resources,
    pub(crate) path: Path,
    pub(crate) records: Vec<KeyRecord>,
    pub(crate) reporter: Reporter<'a>,
    pub(crate) interrupt: &'a Interrupt,
}

impl<'a> Test<'a> {
    /// Ready to begin; `control` is the connection that the session speaks over.
    pub(crate) fn new(parts: Parts<'a>, control: &TcpStream) -> Result<Self, Failure> {
        let patience = parts.params.control.peer_timeout;
        let watchdog = Watchdog::new(control, parts.interrupt, patience)?;
        let grace = match parts.params.tool.is_bandwidth() {
            true => Duration::ZERO,
            false => LAST_MESSAGE_TIME,
        };
        Ok(Self {
            params: parts.params,
            adapter: parts.adapter,
            resources: parts.resources,
            path: parts.path,
            records: parts.records,
            peers: Vec::new(),
            reporter: parts.reporter,
            watchdog: watchdog.with_grace(grace),
            interrupt: parts.interrupt,
            measured: BandwidthReport::default(),
            cpu: None,
            lined: false,
        })
    }

    /// Takes all steps.
    pub(crate) fn run(mut self, mut session: Session<TcpChannel>) -> Result<(), Failure> {
        if self.params.report.cpu_utilization {
            CpuTimes::now()?;
        }
        let side = session.side();
        let failed = |source| Failure::Exchange { side, source };
        // All tools so far have the same number of sizes.
        let actions = plan(&self.params.plan_input(Sizes::All.count()));
        for action in actions {
            log::debug!("{action:?}");
            match action {
                Action::Keys(stage) => self.exchange_keys(&mut session, stage)?,
                Action::Connect => self.connect()?,
                Action::Sync(stage) => {
                    self.before_sync(stage)?;
                    let peer = session.sync(stage, &self.records[0]).map_err(failed)?;
                    if let Some(first) = self.peers.first_mut() {
                        *first = peer;
                    }
                }
                Action::Run(scope) => self.traffic(scope)?,
                Action::Reports => {
                    let ours = self.measured;
                    let peer = session.exchange_reports(&ours).map_err(failed)?;
                    self.show_reports(&peer)?;
                }
                Action::Close => {
                    if self.is_active() {
                        self.end_of_rows()?;
                    }
                    session.close(&self.records[0]).map_err(failed)?;
                    return self.finish();
                }
            }
        }
        self.end_of_rows()?;
        session.end();
        self.finish()
    }

    /// Whether this end posts operations.
    fn is_active(&self) -> bool {
        self.params.machine == Machine::Client
            || self.params.bidirectional
            || !self.params.tool.is_bandwidth()
    }

    fn is_endless(&self) -> bool {
        matches!(self.params.length, Length::Infinite { .. })
    }

    fn exchange_keys(
        &mut self,
        session: &mut Session<TcpChannel>,
        stage: Stage,
    ) -> Result<(), Failure> {
        let side = session.side();
        let failed = |source| Failure::Exchange { side, source };
        if stage == Stage::KeysAgain {
            self.reporter.addresses(Whose::Local, &self.records)?;
        }
        self.peers = session
            .exchange_keys(stage, &self.records)
            .map_err(failed)?;
        if let Some(lid) = self.params.path.destination_lid {
            for peer in &mut self.peers {
                peer.lid = lid;
            }
        }
        if stage == Stage::KeysAgain {
            self.reporter.addresses(Whose::Remote, &self.peers)?;
        } else if let (Some(ours), Some(theirs)) = (self.records.first(), self.peers.first()) {
            check_gid_types(ours, theirs).map_err(failed)?;
        }
        Ok(())
    }

    /// Takes the queue pairs to RTR, and to RTS where they send.
    fn connect(&mut self) -> Result<(), Failure> {
        let keys = self.records.iter().zip(&self.peers);
        let qps = self.resources.queues.qps.iter_mut();
        for (index, (qp, (own, peer))) in qps.zip(keys).enumerate() {
            to_rtr(&mut **qp, index, self.params, &self.path, peer)?;
            if self.params.machine == Machine::Client
                || self.params.bidirectional
                || !self.params.tool.is_bandwidth()
            {
                to_rts(&mut **qp, self.params, own, peer)?;
            }
        }
        match self.params.rate_limit.map(|limit| limit.limiter) {
            Some(RateLimiter::Hardware) => Err(Failure::RateLimit),
            Some(RateLimiter::HardwareOrSoftware) => {
                Ok(self.reporter.warn(notes::SOFTWARE_RATE_LIMIT)?)
            }
            Some(RateLimiter::Software) | None => Ok(()),
        }
    }

    /// What is to be shown before a synchronisation.
    fn before_sync(&mut self, stage: Stage) -> Result<(), Failure> {
        match stage {
            Stage::SizeStart => self.reporter.titles()?,
            Stage::RunEnd if self.is_active() => self.end_of_rows()?,
            _ => {}
        }
        Ok(())
    }

    fn end_of_rows(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.lined, true) {
            self.reporter.end_of_rows()?;
        }
        Ok(())
    }

    /// After the dialogue.
    fn finish(&mut self) -> Result<(), Failure> {
        self.end_of_rows()?;
        let measures = self.is_active() && self.params.tool.is_bandwidth();
        match self.reporter.missed_limit().filter(|_| measures) {
            Some(stock) => Err(Failure::BelowLimit { stock }),
            None => Ok(()),
        }
    }

    /// After the exchange of reports: the row, where it isn't shown yet.
    fn show_reports(&mut self, peer: &BandwidthReport) -> Result<(), Failure> {
        let ours = self.measured;
        if self.params.bidirectional {
            let sum = ours.combined(peer);
            self.reporter.bandwidth(&ours, &sum, self.cpu, true)?;
            if self.params.report.both_directions && matches!(self.params.sizes, Sizes::One(_)) {
                self.reporter.both_directions(&ours, peer, self.cpu)?;
            }
        } else if self.params.machine == Machine::Server {
            if self.is_endless() {
                self.reporter.note(notes::CLIENT_CLOSED)?;
            } else {
                self.reporter.bandwidth(peer, peer, None, false)?;
            }
        }
        Ok(())
    }

    /// Runs the traffic of some sizes.
    fn traffic(&mut self, scope: Scope) -> Result<(), Failure> {
        self.reporter.titles()?;
        if !self.is_active() {
            return Ok(());
        }
        let sizes: Vec<u32> = match (scope, self.params.sizes) {
            (Scope::Size(index), _) => vec![2 << index],
            (Scope::Whole, Sizes::One(size)) => vec![size],
            (Scope::Whole, Sizes::All) => (0..Sizes::All.count()).map(|index| 2 << index).collect(),
        };
        for size in sizes {
            let ran = if self.params.tool.is_bandwidth() {
                self.bandwidth(size)
            } else {
                self.latency(size)
            };
            ran.map_err(|failure| match failure {
                Failure::Run { error, .. } => Failure::Run {
                    error,
                    endless: self.is_endless(),
                },
                failure => failure,
            })?;
        }
        // The peer may still be at it while this side waits for the dialogue.
        self.adapter.context.stop_polling();
        Ok(())
    }

    /// Sends messages of one size, and shows what that gave.
    fn bandwidth(&mut self, size: u32) -> Result<(), Failure> {
        let params = self.params;
        let bytes = size as usize;
        let Resources { queues, memory, .. } = &mut self.resources;
        let prepared: Vec<Prepared> = self
            .peers
            .iter()
            .enumerate()
            .map(|(qp, peer)| {
                let list = params.post_list as usize;
                Prepared::new(memory, qp, peer, bytes, list, queues.inline)
            })
            .collect();
        let mut sender = Sender::new(queues, &prepared, params, bytes);
        let watchdog = &mut self.watchdog;
        if params.warm_up {
            sender.warm_up(watchdog)?;
        }
        let shape = |messages: u64| BandwidthShape {
            size: size.into(),
            messages,
            post_list: params.post_list,
            cq_mod: params.cq_mod,
            gbits: params.report.gbits,
            directions: 1,
        };
        let (messages, figures) = match params.length {
            Length::Iterations(limit) => {
                let messages = limit.saturating_mul(params.qps.into());
                let peak = params.report.peak;
                // Runs with a peak have at most 20000 messages per queue pair.
                let mut samples = BandwidthSamples::new(messages as usize, peak);
                let mut course = Counted::new(&mut samples, peak, limit, params.qps);
                sender.run(&mut course, watchdog)?;
                (messages, samples.figures(&shape(messages)))
            }
            Length::Timed { duration, margin } => {
                let watch_cpu = params.report.cpu_utilization;
                let mut phases = Phases::start(duration, margin, watch_cpu);
                let mut course = Timed::new(&mut phases);
                sender.run(&mut course, watchdog)?;
                let messages = course.counted;
                let measured = phases.measured();
                self.cpu = measured.cpu;
                let mut samples = BandwidthSamples::new(1, false);
                samples.mark_start(measured.start);
                samples.mark_end(measured.stop);
                (messages, samples.figures(&shape(messages)))
            }
            Length::Infinite { interval } => return self.endless(size, interval),
        };
        self.measured = report(size, messages, figures);
        if !params.bidirectional {
            let ours = self.measured;
            self.reporter.bandwidth(&ours, &ours, self.cpu, true)?;
        }
        Ok(())
    }

    /// Sends until the user interrupts, with a row every `interval` seconds.
    fn endless(&mut self, size: u32, interval: u32) -> Result<(), Failure> {
        let params = self.params;
        let Resources { queues, memory, .. } = &mut self.resources;
        let prepared: Vec<Prepared> = self
            .peers
            .iter()
            .enumerate()
            .map(|(qp, peer)| {
                let list = params.post_list as usize;
                Prepared::new(memory, qp, peer, size as usize, list, queues.inline)
            })
            .collect();
        let mut sender = Sender::new(queues, &prepared, params, size as usize);
        // Both directions are shown, each end knowing one of them.
        let directions = f64::from(1 + u32::from(params.bidirectional));
        let reporter = &mut self.reporter;
        let measured = &mut self.measured;
        let row = |messages: u64, elapsed: u64| -> Result<(), RunError> {
            let volume = Volume {
                size: size.into(),
                messages,
                elapsed,
            };
            let figures = BandwidthFigures {
                peak: 0.0,
                average: volume.average(params.report.gbits) * directions,
                message_rate: volume.message_rate() * directions,
            };
            *measured = report(size, messages, figures);
            Ok(reporter.bandwidth(measured, measured, None, true)?)
        };
        let mut course = Endless::new(self.interrupt, interval, row);
        // One-way tests end in good order; with traffic both ways the peer
        // doesn't listen.
        self.interrupt.leave_to_loop(!params.bidirectional);
        let ran = sender.run(&mut course, &mut self.watchdog);
        self.interrupt.leave_to_loop(false);
        match ran {
            Ok(()) | Err(RunError::Interrupted) if !params.bidirectional => {
                Ok(self.reporter.note(notes::USER_STOPPED)?)
            }
            Ok(()) => Err(Failure::Interrupted),
            Err(error) => Err(error.into()),
        }
    }

    /// Plays ping-pong with messages of one size, and shows what that gave.
    fn latency(&mut self, size: u32) -> Result<(), Failure> {
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
            gap: params.latency_gap,
            begins: params.machine == Machine::Server,
        };
        let context = &*self.adapter.context;
        let mut game = PingPong::new(context, &mut **qp, &mut *queues.send_cq, memory, &table);
        match params.length {
            Length::Iterations(limit) => {
                let mut samples = LatencySamples::new(usize::try_from(limit).unwrap_or(usize::MAX));
                let mut rounds = CountedRounds::new(&mut samples, limit);
                game.run(&mut rounds, &mut self.watchdog)?;
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
                game.run(&mut rounds, &mut self.watchdog)?;
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

fn report(size: u32, messages: u64, figures: BandwidthFigures) -> BandwidthReport {
    BandwidthReport {
        size: size.into(),
        iterations: messages,
        peak: figures.peak,
        average: figures.average,
        message_rate: figures.message_rate,
        ports: None,
    }
}
