//! The loop of both ends where messages that consume receives go both ways.

use verbs_sys::{CompletionQueue, QueuePair};

use super::bandwidth::Sends;
use super::course::Course;
use super::error::RunError;
use super::receiver::Receives;
use super::requests::Prepared;
use super::watchdog::Watchdog;
use crate::options::{Machine, Params};

/// Sends and receives until the course is over for both directions.
pub(crate) struct Duplex<'a> {
    qps: &'a mut [Box<dyn QueuePair>],
    sends: Sends<'a>,
    receives: Receives<'a>,
}

impl<'a> Duplex<'a> {
    /// Over all queue pairs, with the requests prepared for each. The server
    /// sends nothing before it has received something.
    /// [`super::post_receives`] has been called.
    pub(crate) fn new(
        qps: &'a mut [Box<dyn QueuePair>],
        send_cq: &'a mut dyn CompletionQueue,
        recv_cq: &'a mut dyn CompletionQueue,
        prepared: &'a [Prepared],
        params: &Params,
        size: usize,
    ) -> Self {
        let waits = params.machine == Machine::Server;
        Self {
            receives: Receives::new(qps.len(), recv_cq, params, waits),
            sends: Sends::new(send_cq, prepared, params, size),
            qps,
        }
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
            if !receives.awaits_start() {
                sends.post(qps, course, limit)?;
            }
            receives.poll(qps, course, limit)?;
            sends.poll(course, limit)?;
            receives.watch(watchdog, sends.completed() + receives.received(), limit)?;
        }
        course.finish();
        Ok(())
    }
}
