//! The receiver's loop of the bandwidth tests whose messages consume receives,
//! and the receives that it keeps posted.

use verbs_sys::{
    Completion, CompletionQueue, Notify, PostError, QueuePair, ReceiveRequest, SharedReceiveQueue,
    WcFlags,
};

use super::course::Course;
use super::credits::Returns;
use super::error::RunError;
use super::requests::PreparedReceives;
use super::sleeper::Sleeper;
use super::watchdog::Watchdog;
use crate::options::Params;
use crate::setup::Queues;

/// Receives until the course is over.
pub(crate) struct Receiver<'a> {
    qps: &'a mut [Box<dyn QueuePair>],
    receives: Receives<'a>,
    sleeper: Sleeper,
}

/// The receives of all queue pairs.
pub(super) struct Receives<'a> {
    flows: Vec<Flow<'a>>,
    cq: &'a mut dyn CompletionQueue,
    srq: Option<&'a mut dyn SharedReceiveQueue>,
    credits: Option<Returns<'a>>,
    /// Where words about credits complete, if nobody else looks there.
    send_cq: Option<&'a mut dyn CompletionQueue>,
    completions: Vec<Completion>,
    /// Receives per post.
    list: u64,
    /// What the completion of every message has to show.
    flags: WcFlags,
    received: u64,
    /// The first message, which is still to come, starts the course.
    starts: bool,
}

/// The receives of one queue pair, or its share of a shared queue.
struct Flow<'a> {
    requests: Vec<ReceiveRequest<'a>>,
    /// The next of the requests, when they are posted one by one.
    next: usize,
    posted: u64,
    /// Messages that came since the last list was posted.
    consumed: u64,
}

impl<'a> Flow<'a> {
    fn new(prepared: &'a PreparedReceives) -> Self {
        Self {
            requests: prepared.requests(),
            next: 0,
            posted: 0,
            consumed: 0,
        }
    }

    /// The list, or the next single request.
    #[inline]
    fn take(&mut self, list: u64) -> &[ReceiveRequest<'a>] {
        self.posted += list;
        if list > 1 {
            return &self.requests;
        }
        let next = self.next;
        self.next = if next + 1 == self.requests.len() {
            0
        } else {
            next + 1
        };
        &self.requests[next..=next]
    }
}

/// Posts the receives that wait for the first messages. To be done before the
/// peer may send.
pub(crate) fn post_receives(
    queues: &mut Queues,
    prepared: &[PreparedReceives],
    params: &Params,
) -> Result<(), RunError> {
    let list = u64::from(params.recv_post_list);
    for (index, prepared) in prepared.iter().enumerate() {
        let mut flow = Flow::new(prepared);
        for _ in 0..lists(params) {
            let requests = flow.take(list);
            let posted = match &mut queues.srq {
                Some(srq) => srq.post_recv(requests),
                None => queues.qps[index].post_recv(requests),
            };
            posted.map_err(|source| RunError::PostReceive {
                qp: index,
                received: None,
                source,
            })?;
        }
    }
    Ok(())
}

/// Lists that are posted for a queue pair before the run: as many as its
/// receive queue has room for, which by the rules is at least one, or its
/// share of the shared queue.
fn lists(params: &Params) -> u32 {
    let depth = match params.use_srq {
        true => params.rx_depth / params.flows(),
        false => params.rx_depth,
    };
    depth / params.recv_post_list
}

/// Receives that [`post_receives`] posts for each queue pair.
pub(super) fn initial_receives(params: &Params) -> u64 {
    u64::from(lists(params)) * u64::from(params.recv_post_list)
}

impl<'a> Receiver<'a> {
    /// Over all queue pairs, with the receives prepared for each.
    /// [`post_receives`] has been called.
    pub(crate) fn new(
        queues: &'a mut Queues,
        prepared: &'a [PreparedReceives],
        params: &Params,
    ) -> Self {
        let sleeper = queues.sleeper();
        let Queues {
            send_cq,
            recv_cq,
            qps,
            srq,
            ..
        } = queues;
        type Queue<'q> = &'q mut dyn CompletionQueue;
        let (cq, rest): (Queue<'a>, Option<Queue<'a>>) = match recv_cq {
            Some(recv_cq) => (&mut **recv_cq, Some(&mut **send_cq)),
            None => (&mut **send_cq, None),
        };
        let mut receives = Receives::new(prepared, cq, srq, params, true);
        receives.send_cq = rest;
        Self {
            receives,
            qps,
            sleeper,
        }
    }

    /// Tells the senders how many messages have come.
    pub(crate) fn returning(mut self, credits: Option<Returns<'a>>) -> Self {
        self.receives.credits = credits;
        self
    }

    /// Receives as the course has it; its clock starts with the first message.
    pub(crate) fn run<C: Course>(
        &mut self,
        course: &mut C,
        watchdog: &mut Watchdog,
    ) -> Result<(), RunError> {
        let Self {
            qps,
            receives,
            sleeper,
        } = self;
        let limit = course.limit();
        watchdog.start();
        while receives.starts || !course.is_over(receives.received)? {
            let came = receives.poll(qps, course, limit)?;
            receives.watch(watchdog, receives.received, limit)?;
            if !came {
                sleeper.idle(watchdog, || receives.arm())?;
            }
        }
        course.finish();
        Ok(())
    }
}

impl<'a> Receives<'a> {
    /// Prepared for each queue pair, completing on `cq`. `starts`: the first
    /// message starts the course.
    pub(super) fn new(
        prepared: &'a [PreparedReceives],
        cq: &'a mut dyn CompletionQueue,
        srq: &'a mut Option<Box<dyn SharedReceiveQueue>>,
        params: &Params,
        starts: bool,
    ) -> Self {
        let flow = |prepared| {
            let mut flow = Flow::new(prepared);
            flow.posted = initial_receives(params);
            flow
        };
        Self {
            flows: prepared.iter().map(flow).collect(),
            cq,
            srq: srq.as_mut().map(|srq| &mut **srq as _),
            credits: None,
            send_cq: None,
            completions: vec![Completion::default(); params.rx_depth as usize],
            list: u64::from(params.recv_post_list),
            flags: required_flags(params),
            received: 0,
            starts,
        }
    }

    /// Tells the senders how many messages have come; somebody else looks at
    /// the send queue.
    pub(super) fn return_credits(&mut self, credits: Option<Returns<'a>>) {
        self.credits = credits;
    }

    /// Asks for a notification.
    pub(super) fn arm(&mut self) {
        self.cq.arm(Notify::Any);
    }

    /// Whether the message that starts the course is still to come.
    #[inline]
    pub(super) fn awaits_start(&self) -> bool {
        self.starts
    }

    /// Messages that came, over all queue pairs.
    #[inline]
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Takes one batch of messages, and posts receives in their place;
    /// `false` when none came.
    #[inline]
    pub(super) fn poll<C: Course>(
        &mut self,
        qps: &mut [Box<dyn QueuePair>],
        course: &mut C,
        limit: u64,
    ) -> Result<bool, RunError> {
        let ready = self.cq.poll(&mut self.completions);
        for completion in &self.completions[..ready] {
            check_receive(completion, self.flags, self.received)?;
            let index = completion.wr_id as usize;
            let Some(flow) = self.flows.get_mut(index) else {
                continue;
            };
            if std::mem::take(&mut self.starts) {
                course.start();
            }
            self.received += 1;
            course.received();
            flow.consumed += 1;
            if let Some(credits) = &mut self.credits {
                let cq = self.send_cq.as_mut().map(|cq| &mut **cq as _);
                credits
                    .received(index, qps, cq)
                    .map_err(|source| RunError::Post {
                        qp: Some(index),
                        posted: self.received,
                        tx_depth: 1,
                        source,
                    })?;
            }
            if flow.consumed >= self.list && flow.posted + self.list <= limit {
                flow.consumed -= self.list;
                let requests = flow.take(self.list);
                post(&mut self.srq, qps, index, requests).map_err(|source| {
                    RunError::PostReceive {
                        qp: index,
                        received: Some(self.received),
                        source,
                    }
                })?;
            }
        }
        Ok(ready > 0)
    }

    /// Lets the watchdog look at how far the run has got; `limit` messages are
    /// to come on each queue pair.
    #[inline]
    pub(super) fn watch(
        &self,
        watchdog: &mut Watchdog,
        progress: u64,
        limit: u64,
    ) -> Result<(), RunError> {
        let expected = limit.saturating_mul(self.flows.len() as u64);
        watchdog.turn(progress).map_err(|error| match error {
            RunError::Stalled { waited } if limit != u64::MAX && self.received < expected => {
                RunError::NothingCame {
                    waited,
                    received: self.received,
                    expected,
                }
            }
            error => error,
        })
    }
}

/// Posts where the receives of queue pair `index` are taken from.
#[inline]
pub(super) fn post(
    srq: &mut Option<&mut dyn SharedReceiveQueue>,
    qps: &mut [Box<dyn QueuePair>],
    index: usize,
    requests: &[ReceiveRequest<'_>],
) -> Result<(), PostError> {
    match (srq, qps.get_mut(index)) {
        (Some(srq), _) => srq.post_recv(requests),
        (None, Some(qp)) => qp.post_recv(requests),
        (None, None) => Ok(()),
    }
}

/// Whether a message came as it should.
#[inline]
pub(super) fn check_receive(
    completion: &Completion,
    flags: WcFlags,
    received: u64,
) -> Result<(), RunError> {
    if completion.is_success() && completion.flags.contains(flags) {
        return Ok(());
    }
    let completion = *completion;
    Err(match completion.is_success() {
        true => RunError::NoImmediate {
            completion,
            received,
        },
        false => RunError::Receive {
            completion,
            received,
        },
    })
}

/// What completions of receives have to show.
pub(super) fn required_flags(params: &Params) -> WcFlags {
    match params.with_imm {
        true => WcFlags::WITH_IMM,
        false => WcFlags::empty(),
    }
}

#[cfg(test)]
mod tests;
