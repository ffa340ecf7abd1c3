//! The bandwidth tests: the loop that fits, and what its measurement gives.

use super::Test;
use super::outgoing::Outgoing;
use super::validation::targets;
use crate::exchange::BandwidthReport;
use crate::failure::{Failure, RunLoop};
use crate::options::{Length, Machine};
use crate::report::notes;
use crate::run::{
    Counted, Course, Duplex, Endless, Phases, Receiver, RingSender, RunError, Sender, Timed,
    Watchdog,
};
use crate::setup::Resources;
use crate::stats::{BandwidthFigures, BandwidthSamples, BandwidthShape, Volume};

/// The loop of one end, over all queue pairs.
enum Traffic<'a> {
    Sender(Sender<'a>),
    Receiver(Receiver<'a>),
    Duplex(Duplex<'a>),
    Rings(RingSender<'a>),
}

impl Traffic<'_> {
    fn run<C: Course>(&mut self, course: &mut C, watchdog: &mut Watchdog) -> Result<(), RunError> {
        match self {
            Self::Sender(sender) => sender.run(course, watchdog),
            Self::Receiver(receiver) => receiver.run(course, watchdog),
            Self::Duplex(duplex) => duplex.run(course, watchdog),
            Self::Rings(sender) => sender.run(course, watchdog),
        }
    }
}

impl Test<'_> {
    /// Which loop this end runs.
    pub(super) fn run_loop(&self) -> RunLoop {
        match (self.params.length, self.params.has_receive_completions()) {
            (Length::Infinite { .. }, _) => RunLoop::Endless,
            (_, true) if self.params.bidirectional => RunLoop::Duplex,
            (_, true) if self.params.machine == Machine::Server => RunLoop::Receiver,
            _ => RunLoop::Sender,
        }
    }

    /// Runs messages of one size, and shows what that gave.
    pub(super) fn bandwidth(&mut self, size: u32) -> Result<(), Failure> {
        let params = self.params;
        if let Length::Infinite { interval } = params.length {
            return self.endless(size, interval);
        }
        let run_loop = self.run_loop();
        if let (true, Some(why)) = (params.warm_up, notes::no_warm_up(params.wire_tool().verb)) {
            self.reporter.warn(why)?;
        }
        let outgoing = Outgoing {
            params,
            peers: &self.peers,
            handles: &self.handles,
            qkey: self.path.qkey,
        };
        let Resources {
            queues,
            memory,
            credits,
            ..
        } = &mut self.resources;
        let (granted, returns) = outgoing.credits(credits.as_ref());
        let rings = self.credit.zip(memory.layout.ring);
        let prepared = match rings {
            Some(_) => Vec::new(),
            None => outgoing.prepared(memory, size, queues.inline),
        };
        let bytes = size as usize;
        let watchdog = &mut self.watchdog;
        let mut traffic = match (run_loop, rings) {
            (_, Some((credit, ring))) => {
                let place = memory.layout.published(0);
                let local = (memory.buffer(place), memory.lkey(place));
                let targets = targets(&self.peers);
                let sender = RingSender::new(queues, local, ring, &targets, credit, params);
                Traffic::Rings(sender)
            }
            (RunLoop::Receiver, None) => {
                let receiver = Receiver::new(queues, &self.inbox, params);
                Traffic::Receiver(receiver.returning(returns))
            }
            (RunLoop::Duplex, None) => {
                match Duplex::new(queues, &prepared, &self.inbox, params, bytes) {
                    Some(duplex) => Traffic::Duplex(duplex.with_credits(granted, returns)),
                    None => return Ok(()),
                }
            }
            (RunLoop::Sender | RunLoop::Endless, None) => {
                let mut sender = Sender::new(queues, &prepared, params, bytes).within(granted);
                if params.warm_up && !params.has_receive_completions() {
                    sender.warm_up(watchdog)?;
                }
                Traffic::Sender(sender)
            }
        };
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
                let messages = limit.saturating_mul(params.flows().into());
                // Who only receives cannot tell.
                let peak = params.report.peak && run_loop != RunLoop::Receiver;
                // Runs with a peak have at most 20000 messages per queue pair.
                let mut samples = BandwidthSamples::new(messages as usize, peak);
                let mut course = Counted::new(&mut samples, peak, limit, params.flows());
                traffic.run(&mut course, watchdog)?;
                (messages, samples.figures(&shape(messages)))
            }
            Length::Timed { duration, margin } => {
                let watch_cpu = params.report.cpu_utilization;
                let mut phases = Phases::start(duration, margin, watch_cpu);
                let mut course = Timed::new(&mut phases);
                traffic.run(&mut course, watchdog)?;
                let (counted, bursts) = (course.counted, course.whole_bursts());
                let measured = phases.measured();
                self.cpu = measured.cpu;
                let (messages, start, stop) = match bursts {
                    Some(bursts) => (bursts.messages, bursts.start, bursts.stop),
                    None => (counted, measured.start, measured.stop),
                };
                let mut samples = BandwidthSamples::new(1, false);
                samples.mark_start(start);
                samples.mark_end(stop);
                (messages, samples.figures(&shape(messages)))
            }
            // Has a loop of its own, above.
            Length::Infinite { .. } => return Ok(()),
        };
        self.measured = report(size, messages, figures);
        if !self.sums_up {
            let ours = self.measured;
            self.reporter.bandwidth(&ours, &ours, self.cpu, true)?;
        }
        Ok(())
    }

    /// Sends until the user interrupts, with a row every `interval` seconds.
    fn endless(&mut self, size: u32, interval: u32) -> Result<(), Failure> {
        let params = self.params;
        let outgoing = Outgoing {
            params,
            peers: &self.peers,
            handles: &self.handles,
            qkey: self.path.qkey,
        };
        let Resources {
            queues,
            memory,
            credits,
            ..
        } = &mut self.resources;
        let prepared = outgoing.prepared(memory, size, queues.inline);
        let (granted, returns) = outgoing.credits(credits.as_ref());
        let receives = params.receives();
        let mut traffic = match receives {
            true => {
                let receiver = Receiver::new(queues, &self.inbox, params);
                Traffic::Receiver(receiver.returning(returns))
            }
            false => {
                let sender = Sender::new(queues, &prepared, params, size as usize);
                Traffic::Sender(sender.within(granted))
            }
        };
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
        let ran = traffic.run(&mut course, &mut self.watchdog);
        self.interrupt.leave_to_loop(false);
        match ran {
            Err(RunError::PeerGone) if receives => Ok(self.reporter.note(notes::CLIENT_CLOSED)?),
            Ok(()) | Err(RunError::Interrupted) if !params.bidirectional => {
                Ok(self.reporter.note(notes::USER_STOPPED)?)
            }
            Ok(()) => Err(Failure::Interrupted),
            Err(error) => Err(error.into()),
        }
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
