//! A test from its header to its end: walks through the dialogue's plan, runs
//! the traffic where the plan has it, and shows the results.
//!
//! - `bandwidth` and `latency`: the traffic of one message size;
//! - `outgoing`: what is sent, and which way it takes;
//! - `check`: whether the right data came in, and `validation`: the same while
//!   they come in (`--data_validation`).

mod bandwidth;
mod check;
mod latency;
mod outgoing;
mod validation;

pub use check::WrongData;

use std::sync::Arc;
use std::time::Duration;

use verbs_sys::{AddressHandle, QpType};

use crate::affinity;
use crate::exchange::{
    Action, BandwidthReport, Channel, KeyRecord, Presence, Scope, Session, Stage, check_gid_types,
    plan,
};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::manager::{Connections, Manager, Meeting};
use crate::options::{Length, Machine, Params, RateLimiter, Sizes};
use crate::report::address::Whose;
use crate::report::notes;
use crate::reporter::Reporter;
use crate::run::{
    Credit, Live, Operation, PreparedReceives, RunError, Validation, Watchdog, post_receives,
};
use crate::setup::{Adapter, Path, Resources, address_vector, to_rtr, to_rts};
use crate::stats::{CpuTimes, Steadiness};
use crate::words::Connection;

/// How long a latency test goes on after the peer has closed the connection:
/// it closes when it is done, and then its last message is on its way to us.
const LAST_MESSAGE_TIME: Duration = Duration::from_secs(1);

/// As long as stock's sender waits after it has joined a multicast group.
const JOIN_TIME: Duration = Duration::from_millis(50);

/// The test of one end.
pub(crate) struct Test<'a> {
    params: &'a Params,
    adapter: &'a Adapter,
    resources: Resources,
    path: Path,
    /// What we tell the peer, and what it tells us, of each queue pair.
    records: Vec<KeyRecord>,
    peers: Vec<KeyRecord>,
    /// The ways to the peer's queue pairs that datagrams take.
    handles: Vec<Box<dyn AddressHandle>>,
    /// The receives of one message size, for each queue pair that receives.
    inbox: Vec<PreparedReceives>,
    /// Under `--data_validation`: how far the sender may go, and the look at
    /// what comes in.
    credit: Option<Credit>,
    validation: Option<Validation>,
    reporter: Reporter<'a>,
    steadiness: Steadiness,
    watchdog: Watchdog,
    interrupt: &'a Interrupt,
    /// Connects the queue pairs (`-R`), and what has come of that.
    manager: Option<Manager>,
    connections: Connections,
    /// What the last run of this end measured.
    measured: BandwidthReport,
    cpu: Option<f32>,
    /// Rows show the sum of both ends, after they have told each other.
    sums_up: bool,
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
    /// Under `--data_validation`.
    pub(crate) credit: Option<Credit>,
    pub(crate) reporter: Reporter<'a>,
    /// Tells of the control connection's end.
    pub(crate) presence: Presence,
    /// With `-R`.
    pub(crate) manager: Option<Manager>,
    pub(crate) interrupt: &'a Interrupt,
}

impl<'a> Test<'a> {
    /// Ready to begin.
    pub(crate) fn new(parts: Parts<'a>) -> Self {
        let patience = match parts.params.connectionless {
            // Whoever sends to the group may take their time.
            true => Duration::MAX,
            false => parts.params.control.peer_timeout,
        };
        let context = Arc::clone(&parts.adapter.context);
        let watchdog = Watchdog::new(parts.presence, parts.interrupt, patience)
            .with_device(move || context.trouble().is_some());
        let grace = match parts.params.tool.is_bandwidth() {
            true => Duration::ZERO,
            false => LAST_MESSAGE_TIME,
        };
        let live = Live::new(parts.params, parts.reporter.error_stream());
        Self {
            params: parts.params,
            adapter: parts.adapter,
            resources: parts.resources,
            path: parts.path,
            records: parts.records,
            peers: Vec::new(),
            handles: Vec::new(),
            inbox: Vec::new(),
            credit: parts.credit,
            validation: None,
            reporter: parts.reporter,
            steadiness: Steadiness::of_host(!parts.params.report.ignore_cpu_frequency),
            watchdog: watchdog.with_grace(grace).with_live(live),
            interrupt: parts.interrupt,
            manager: parts.manager,
            connections: Connections::default(),
            measured: BandwidthReport::default(),
            cpu: None,
            sums_up: parts.params.plan_input().exchanges_reports(),
            lined: false,
        }
    }

    /// Takes all steps.
    pub(crate) fn run(mut self, mut session: Session<Box<dyn Channel>>) -> Result<(), Failure> {
        if self.params.report.cpu_utilization {
            CpuTimes::now()?;
        }
        let side = session.side();
        let failed = |source| Failure::Exchange { side, source };
        let mut actions = plan(&self.params.plan_input()).into_iter().peekable();
        while let Some(action) = actions.next() {
            log::debug!("{action:?}");
            match action {
                Action::Keys(stage) => self.exchange_keys(&mut session, stage)?,
                Action::Connect => self.connect()?,
                Action::ConnectByManager => self.connect_by_manager()?,
                Action::Sync(stage) => {
                    self.before_sync(stage, actions.peek())?;
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
                    if self.params.is_active() {
                        self.end_of_rows()?;
                    }
                    session
                        .sync(Stage::Close, &self.records[0])
                        .map_err(failed)?;
                    return self.finish(session);
                }
            }
        }
        self.finish(session)
    }

    /// Without a dialogue: receives from the group until the user stops it.
    pub(crate) fn run_alone(mut self) -> Result<(), Failure> {
        self.reporter.addresses(Whose::Local, &self.records)?;
        // Nobody else belongs to a datagram queue pair that only receives.
        self.peers.clone_from(&self.records);
        self.connect()?;
        self.post_receives(Scope::Whole)?;
        self.traffic(Scope::Whole)?;
        self.end_of_rows()
    }

    fn is_endless(&self) -> bool {
        matches!(self.params.length, Length::Infinite { .. })
    }

    fn exchange_keys(
        &mut self,
        session: &mut Session<Box<dyn Channel>>,
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
        self.check_rings()?;
        if let Some(lid) = self.params.path.destination_lid {
            for peer in &mut self.peers {
                peer.lid = lid;
            }
        }
        if stage == Stage::KeysAgain {
            self.reporter.addresses(Whose::Remote, &self.peers)?;
        } else if self.manager.is_some() {
            self.find_ways()?;
        } else if self.params.multicast.is_some() {
            // A group's GID has no type, and its members need time to join.
            std::thread::sleep(JOIN_TIME);
        } else if let (Some(ours), Some(theirs)) = (self.records.first(), self.peers.first()) {
            check_gid_types(ours, theirs).map_err(failed)?;
        }
        Ok(())
    }

    /// Connects the queue pairs by the connection manager.
    fn connect_by_manager(&mut self) -> Result<(), Failure> {
        let meeting = Meeting {
            params: self.params,
            adapter: self.adapter,
            path: &self.path,
            interrupt: self.interrupt,
        };
        if let Some(manager) = &mut self.manager {
            (self.connections, self.handles) =
                manager.connect_all(&meeting, &mut self.resources)?;
        }
        self.limit_rate()
    }

    /// The ways to the peer's queue pairs that datagrams take, where the
    /// connection manager hasn't told them.
    fn find_ways(&mut self) -> Result<(), Failure> {
        let params = self.params;
        let sends = params.is_active() || !params.tool.is_bandwidth();
        if !sends || params.connection != Connection::Ud || !self.handles.is_empty() {
            return Ok(());
        }
        let handle = |(index, peer)| {
            let av = address_vector(index, params, &self.path, peer);
            self.resources.address_handle(self.adapter, &av)
        };
        self.handles = self
            .peers
            .iter()
            .enumerate()
            .map(handle)
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Takes the queue pairs to RTR, and to RTS where they send.
    fn connect(&mut self) -> Result<(), Failure> {
        let (params, path) = (self.params, &self.path);
        let sends = params.is_active() || !params.tool.is_bandwidth();
        let qps = self.resources.queues.qps.iter_mut().zip(&self.records);
        for (index, (qp, own)) in qps.enumerate() {
            let Some(peer) = self.peers.get(params.partner(index)) else {
                continue;
            };
            to_rtr(&mut **qp, index, params, path, peer)?;
            if !sends || qp.qp_type() == QpType::XrcReceive {
                continue;
            }
            to_rts(&mut **qp, params, path, own, peer)?;
        }
        self.find_ways()?;
        self.limit_rate()
    }

    /// No device limits the rate by itself.
    fn limit_rate(&mut self) -> Result<(), Failure> {
        match self.params.rate_limit.map(|limit| limit.limiter) {
            Some(RateLimiter::Hardware) => Err(Failure::RateLimit),
            Some(RateLimiter::HardwareOrSoftware) => {
                Ok(self.reporter.warn(notes::SOFTWARE_RATE_LIMIT)?)
            }
            Some(RateLimiter::Software) | None => Ok(()),
        }
    }

    /// What is to be shown before a synchronisation.
    fn before_sync(&mut self, stage: Stage, next: Option<&Action>) -> Result<(), Failure> {
        match stage {
            Stage::BeforeManager => {
                if let Some(manager) = &mut self.manager {
                    manager.get_ready(self.params)?;
                }
            }
            Stage::SizeStart => {
                self.reporter.titles()?;
                if let Some(credits) = &self.resources.credits {
                    credits.forget();
                }
                if let (true, Some(Action::Run(scope))) = (self.params.receives(), next) {
                    // The peer may send as soon as it has heard of us.
                    self.post_receives(*scope)?;
                }
            }
            Stage::RunEnd if self.params.is_active() => self.end_of_rows()?,
            _ => {}
        }
        Ok(())
    }

    /// Prepares the receives of the run that comes, and posts the first of them.
    fn post_receives(&mut self, scope: Scope) -> Result<(), Failure> {
        let params = self.params;
        let Some(&size) = self.sizes(scope).first() else {
            return Ok(());
        };
        let Resources { memory, queues, .. } = &mut self.resources;
        let list = params.recv_post_list as usize;
        let first = params.first_receiver();
        self.inbox = (0..params.flows() as usize)
            .map(|flow| {
                PreparedReceives::new(
                    memory,
                    flow,
                    memory.layout.receives_into(first + flow),
                    size as usize,
                    list,
                    Operation::of(params),
                )
            })
            .collect();
        let posted = post_receives(queues, &self.inbox, params);
        posted.map_err(|error| self.failed(error))
    }

    /// The message sizes of a run.
    fn sizes(&self, scope: Scope) -> Vec<u32> {
        match (scope, self.params.sizes) {
            (_, Sizes::One(size)) => vec![size],
            (Scope::Size(index), Sizes::All { .. }) => vec![2 << (index / self.params.repeat)],
            (Scope::Whole, sizes @ Sizes::All { .. }) => {
                (0..sizes.count()).map(|index| 2 << index).collect()
            }
        }
    }

    fn end_of_rows(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.lined, true) {
            self.reporter.end_of_rows()?;
        }
        Ok(())
    }

    /// After the dialogue: ends the connections.
    fn finish(mut self, session: Session<Box<dyn Channel>>) -> Result<(), Failure> {
        self.end_of_rows()?;
        let validated = self.end_validation();
        self.connections.end(&mut self.resources.queues.qps);
        session.end();
        validated?;
        self.check_payload()?;
        if !self.params.tool.is_bandwidth() {
            return Ok(());
        }
        match self.reporter.missed_limit()? {
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
        // Who only answers round trips has nothing to show.
        if self.params.is_active() || self.params.tool.is_bandwidth() {
            self.reporter.titles()?;
        }
        self.start_validation()?;
        if !self.params.is_active() && !self.params.receives() {
            return Ok(());
        }
        self.steadiness.begin(affinity::current_cpu());
        // Where both ends have a word on each run, the plan repeats it.
        let times = match scope {
            Scope::Whole => self.params.repeat,
            Scope::Size(_) => 1,
        };
        for size in self.sizes(scope) {
            self.watchdog.announce(size);
            for run in 0..times {
                let ran = if self.params.tool.is_bandwidth() {
                    self.bandwidth(size)
                } else {
                    self.latency(size, run)
                };
                ran.map_err(|failure| match failure {
                    Failure::Run { error, .. } => self.failed(error),
                    failure => failure,
                })?;
            }
        }
        for note in self.steadiness.end() {
            let tool = self.params.tool;
            self.reporter.warn(&format!("{tool}: note: {note}\n"))?;
        }
        // The peer may still be at it while this side waits for the dialogue.
        self.adapter.context.stop_polling();
        Ok(())
    }

    /// A failure of this end's loop.
    fn failed(&self, error: RunError) -> Failure {
        let failure = Failure::Run {
            error,
            run_loop: self.run_loop(),
        };
        // A peer that is gone says more about itself.
        match self.adapter.context.trouble() {
            Some(trouble) if !failure.is_loss_of_peer() => Failure::Troubled {
                failure: Box::new(failure),
                trouble,
            },
            _ => failure,
        }
    }
}
