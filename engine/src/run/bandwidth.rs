//! The sender's loop of the bandwidth tests.

use verbs_sys::{
    Completion, CompletionQueue, Notify, PostError, QueuePair, SendFlags, SendRequest,
};

use super::course::Course;
use super::credits::Granted;
use super::error::RunError;
use super::operation::Operation;
use super::pacer::{Admission, Pacer};
use super::requests::Prepared;
use super::sleeper::Sleeper;
use super::watchdog::Watchdog;
use crate::options::{Params, Polling, RateLimiter};
use crate::setup::Queues;

/// Completions per poll where the number adapts in stock: the most it goes to.
pub(super) const DYNAMIC_BATCH: u16 = 1024;

/// Keeps the send queues of all queue pairs filled.
pub(crate) struct Sender<'a> {
    qps: &'a mut [Box<dyn QueuePair>],
    sends: Sends<'a>,
    sleeper: Sleeper,
}

/// What is sent on all queue pairs.
pub(super) struct Sends<'a> {
    flows: Vec<Flow<'a>>,
    cq: &'a mut dyn CompletionQueue,
    completions: Vec<Completion>,
    tx_depth: u32,
    /// Requests per post.
    list: u64,
    /// Requests per completion.
    cq_mod: u64,
    pacer: Option<Pacer>,
    credits: Option<Granted<'a>>,
    /// The limiter has stopped the last attempt to post.
    held_back: bool,
    posted: u64,
    completed: u64,
}

/// What is sent on one queue pair.
struct Flow<'a> {
    requests: Vec<SendRequest<'a>>,
    /// The next of the requests, when they are posted one by one.
    next: usize,
    /// Requests until one is signalled.
    until_signal: u64,
    posted: u64,
    completed: u64,
}

impl<'a> Sender<'a> {
    /// Over all queue pairs that have requests prepared.
    pub(crate) fn new(
        queues: &'a mut Queues,
        prepared: &'a [Prepared<'a>],
        params: &Params,
        size: usize,
    ) -> Self {
        Self {
            sleeper: queues.sleeper(),
            qps: &mut queues.qps,
            sends: Sends::new(&mut *queues.send_cq, prepared, params, size),
        }
    }

    /// Keeps within what the receivers have room for.
    pub(crate) fn within(mut self, credits: Option<Granted<'a>>) -> Self {
        self.sends.within(credits);
        self
    }

    /// Sends some messages that don't count: a send queue's depth, or one list.
    pub(crate) fn warm_up(&mut self, watchdog: &mut Watchdog) -> Result<(), RunError> {
        let Self { qps, sends, .. } = self;
        let count = match sends.list {
            1 => u64::from(sends.tx_depth),
            list => list,
        };
        for (index, (qp, flow)) in qps.iter_mut().zip(&mut sends.flows).enumerate() {
            for request in &mut flow.requests {
                request.flags = SendFlags::SIGNALED;
            }
            let (mut posted, mut completed) = (0, 0);
            while posted < count {
                let next = (posted as usize) % flow.requests.len();
                let one = &flow.requests[next..=next];
                qp.post_send(one).map_err(|source| RunError::Post {
                    qp: Some(index),
                    posted,
                    tx_depth: sends.tx_depth,
                    source,
                })?;
                posted += 1;
            }
            while completed < count {
                let ready = sends.cq.poll(&mut sends.completions);
                for completion in &sends.completions[..ready] {
                    check(completion, posted, completed)?;
                    completed += 1;
                }
                watchdog.turn(completed)?;
            }
        }
        Ok(())
    }

    /// Sends as the course has it.
    pub(crate) fn run<C: Course>(
        &mut self,
        course: &mut C,
        watchdog: &mut Watchdog,
    ) -> Result<(), RunError> {
        let Self {
            qps,
            sends,
            sleeper,
        } = self;
        let limit = course.limit();
        sends.begin();
        watchdog.start();
        course.start();
        while !course.is_over(sends.completed)? {
            let posted = sends.post(qps, course, limit)?;
            let polled = sends.poll(course, limit)?;
            sends.look_around(watchdog)?;
            if !posted && !polled {
                sleeper.idle(watchdog, || sends.arm())?;
            }
        }
        sends.linger(course, limit, watchdog)?;
        course.finish();
        Ok(())
    }
}

impl<'a> Sends<'a> {
    /// The requests prepared for each queue pair, which complete on `cq`.
    pub(super) fn new(
        cq: &'a mut dyn CompletionQueue,
        prepared: &'a [Prepared<'a>],
        params: &Params,
        size: usize,
    ) -> Self {
        let operation = Operation::of(params);
        let batch = match params.polling {
            Polling::Dynamic => DYNAMIC_BATCH,
            Polling::Fixed(batch) => batch,
        };
        let (list, cq_mod) = (u64::from(params.post_list), u64::from(params.cq_mod));
        let flows = prepared
            .iter()
            .map(|prepared| Flow {
                requests: prepared.requests(operation),
                next: 0,
                until_signal: cq_mod,
                posted: 0,
                completed: 0,
            })
            .collect();
        let pacer = params
            .rate_limit
            .filter(|limit| limit.limiter != RateLimiter::Hardware)
            .map(|limit| Pacer::new(&limit, size));
        Self {
            flows,
            cq,
            completions: vec![Completion::default(); batch.into()],
            tx_depth: params.tx_depth,
            list,
            cq_mod,
            pacer,
            credits: None,
            held_back: false,
            posted: 0,
            completed: 0,
        }
    }

    /// Keeps within what the receivers have room for.
    pub(super) fn within(&mut self, credits: Option<Granted<'a>>) {
        self.credits = credits;
    }

    /// Messages completed, over all queue pairs.
    #[inline]
    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// A run begins.
    pub(super) fn begin(&mut self) {
        for flow in &mut self.flows {
            flow.begin(self.list, self.cq_mod);
        }
        (self.posted, self.completed) = (0, 0);
        if let Some(pacer) = &mut self.pacer {
            pacer.begin();
        }
    }

    /// Lets the watchdog look at how far the run has got.
    #[inline]
    pub(super) fn look_around(&self, watchdog: &mut Watchdog) -> Result<(), RunError> {
        if self.held_back {
            watchdog.excuse();
        }
        watchdog.turn(self.completed)
    }

    /// Ends a counted run no sooner than the limit of the rate has it: without
    /// the time that belongs to the last burst, few bursts would seem too fast.
    pub(super) fn linger<C: Course>(
        &mut self,
        course: &mut C,
        limit: u64,
        watchdog: &mut Watchdog,
    ) -> Result<(), RunError> {
        let is_early = |sends: &Self| {
            let pacer = sends.pacer.as_ref();
            pacer.is_some_and(|pacer| pacer.is_early(sends.posted))
        };
        if limit == u64::MAX || !is_early(self) {
            return Ok(());
        }
        self.held_back = true;
        while is_early(self) {
            self.poll(course, limit)?;
            self.look_around(watchdog)?;
        }
        course.completed(0, self.completed);
        Ok(())
    }

    /// Asks for a notification.
    pub(super) fn arm(&mut self) {
        self.cq.arm(Notify::Any);
    }

    /// Fills the send queues. `false`: there was no room, and nothing else to
    /// wait for.
    #[inline]
    pub(super) fn post<C: Course>(
        &mut self,
        qps: &mut [Box<dyn QueuePair>],
        course: &mut C,
        limit: u64,
    ) -> Result<bool, RunError> {
        let tx_depth = u64::from(self.tx_depth);
        let before = self.posted;
        self.held_back = false;
        for (index, (qp, flow)) in qps.iter_mut().zip(&mut self.flows).enumerate() {
            while flow.posted < limit && flow.posted + self.list <= tx_depth + flow.completed {
                if let Some(credits) = &self.credits
                    && !credits.allows(index, flow.posted, self.list)
                {
                    break;
                }
                // A list has at most the depth of the send queue.
                match self.pacer.as_mut().map(|p| p.admit(self.list as u32)) {
                    Some(Admission::Wait) => {
                        self.held_back = true;
                        return Ok(true);
                    }
                    Some(Admission::Burst) => course.burst(self.posted),
                    Some(Admission::Go) | None => {}
                }
                course.posting(self.posted);
                flow.post(&mut **qp, self.list, self.cq_mod, limit)
                    .map_err(|source| RunError::Post {
                        qp: Some(index),
                        posted: flow.posted,
                        tx_depth: self.tx_depth,
                        source,
                    })?;
                self.posted += self.list;
            }
        }
        Ok(self.posted != before)
    }

    /// Takes one batch of completions; `false` when there were none.
    #[inline]
    pub(super) fn poll<C: Course>(&mut self, course: &mut C, limit: u64) -> Result<bool, RunError> {
        let ready = self.cq.poll(&mut self.completions);
        for completion in &self.completions[..ready] {
            check(completion, self.posted, self.completed)?;
            let Some(flow) = self.flows.get_mut(completion.wr_id as usize) else {
                continue;
            };
            // The last group of a counted run may be shorter.
            let count = self.cq_mod.min(limit - flow.completed);
            flow.completed += count;
            self.completed += count;
            course.completed(count, self.completed);
        }
        Ok(ready > 0)
    }
}

impl Flow<'_> {
    fn begin(&mut self, list: u64, cq_mod: u64) {
        self.next = 0;
        self.until_signal = cq_mod;
        (self.posted, self.completed) = (0, 0);
        for (request, number) in self.requests.iter_mut().zip(1_u64..) {
            // Single requests get their flag when they are posted.
            let signalled = list > 1 && number.is_multiple_of(cq_mod);
            request.flags = flag(signalled);
        }
    }

    /// Posts the list, or the next request.
    #[inline]
    fn post(
        &mut self,
        qp: &mut dyn QueuePair,
        list: u64,
        cq_mod: u64,
        limit: u64,
    ) -> Result<(), PostError> {
        self.posted += list;
        if list > 1 {
            return qp.post_send(&self.requests);
        }
        self.until_signal -= 1;
        let signalled = self.until_signal == 0 || self.posted == limit;
        if self.until_signal == 0 {
            self.until_signal = cq_mod;
        }
        let next = self.next;
        self.next = if next + 1 == self.requests.len() {
            0
        } else {
            next + 1
        };
        self.requests[next].flags = flag(signalled);
        qp.post_send(&self.requests[next..=next])
    }
}

#[inline]
fn flag(signalled: bool) -> SendFlags {
    if signalled {
        SendFlags::SIGNALED
    } else {
        SendFlags::empty()
    }
}

#[inline]
pub(super) fn check(completion: &Completion, posted: u64, completed: u64) -> Result<(), RunError> {
    if completion.is_success() {
        return Ok(());
    }
    Err(RunError::Completion {
        completion: *completion,
        posted,
        completed,
    })
}

#[cfg(test)]
mod tests;
