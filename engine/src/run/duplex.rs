//! The loop of both ends where messages that consume receives go both ways.

use verbs_sys::QueuePair;

use super::bandwidth::Sends;
use super::course::Course;
use super::credits::{Granted, Returns};
use super::error::RunError;
use super::receiver::Receives;
use super::requests::{Prepared, PreparedReceives};
use super::sleeper::Sleeper;
use super::watchdog::Watchdog;
use crate::options::{Machine, Params};
use crate::setup::Queues;

/// Sends and receives until the course is over for both directions.
pub(crate) struct Duplex<'a> {
    qps: &'a mut [Box<dyn QueuePair>],
    sends: Sends<'a>,
    receives: Receives<'a>,
    sleeper: Sleeper,
}

impl<'a> Duplex<'a> {
    /// Over all queue pairs, with what is prepared for each. The server sends
    /// nothing before it has received something.
    /// [`super::post_receives`] has been called. `None` for queues that
    /// receive nothing.
    pub(crate) fn new(
        queues: &'a mut Queues,
        prepared: &'a [Prepared<'a>],
        receives: &'a [PreparedReceives],
        params: &Params,
        size: usize,
    ) -> Option<Self> {
        let waits = params.machine == Machine::Server;
        let sleeper = queues.sleeper();
        let Queues {
            send_cq,
            recv_cq,
            qps,
            srq,
            ..
        } = queues;
        let recv_cq = recv_cq.as_mut()?;
        Some(Self {
            receives: Receives::new(receives, &mut **recv_cq, srq, params, waits),
            sends: Sends::new(&mut **send_cq, prepared, params, size),
            qps,
            sleeper,
        })
    }

    /// Keeps within what the receivers have room for, and tells the senders
    /// how many messages have come.
    pub(crate) fn with_credits(
        mut self,
        granted: Option<Granted<'a>>,
        returns: Option<Returns<'a>>,
    ) -> Self {
        self.sends.within(granted);
        self.receives.return_credits(returns);
        self
    }

    /// Sends and receives as the course has it.
    pub(crate) fn run<C: Course>(
        &mut self,
        course: &mut C,
        watchdog: &mut Watchdog,
    ) -> Result<(), RunError> {
        let Self {
            qps,
            sends,
            receives,
            sleeper,
        } = self;
        let limit = course.limit();
        sends.begin();
        watchdog.start();
        if !receives.awaits_start() {
            course.start();
        }
        while receives.awaits_start()
            || !course.is_over(sends.completed().min(receives.received()))?
        {
            let mut moved = false;
            if !receives.awaits_start() {
                moved = sends.post(qps, course, limit)?;
            }
            moved |= receives.poll(qps, course, limit)?;
            moved |= sends.poll(course, limit)?;
            receives.watch(watchdog, sends.completed() + receives.received(), limit)?;
            if !moved {
                sleeper.idle(watchdog, || {
                    receives.arm();
                    sends.arm();
                })?;
            }
        }
        sends.linger(course, limit, watchdog)?;
        course.finish();
        Ok(())
    }
}
