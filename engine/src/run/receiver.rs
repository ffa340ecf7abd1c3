//! The receiver's loop of the bandwidth tests whose messages consume receives,
//! and the receives that it keeps posted.

use verbs_sys::{Completion, CompletionQueue, QueuePair, ReceiveRequest, WcFlags};

use super::course::Course;
use super::error::RunError;
use super::watchdog::Watchdog;
use crate::options::Params;
use crate::setup::Queues;

/// Receives until the course is over.
pub(crate) struct Receiver<'a> {
    qps: &'a mut [Box<dyn QueuePair>],
    receives: Receives<'a>,
}

/// The receives of all queue pairs.
pub(super) struct Receives<'a> {
    flows: Vec<Flow>,
    cq: &'a mut dyn CompletionQueue,
    completions: Vec<Completion>,
    /// Receives per post.
    list: u64,
    /// What the completion of every message has to show.
    flags: WcFlags,
    received: u64,
    /// The first message, which is still to come, starts the course.
    starts: bool,
}

/// The receives of one queue pair.
struct Flow {
    /// One list.
    requests: Vec<ReceiveRequest<'static>>,
    posted: u64,
    /// Messages that came since the last list was posted.
    consumed: u64,
}

/// Posts the receives that wait for the first messages. To be done before the
/// peer may send.
pub(crate) fn post_receives(queues: &mut Queues, params: &Params) -> Result<(), RunError> {
    for (index, qp) in queues.qps.iter_mut().enumerate() {
        let requests = requests(index, params.recv_post_list);
        for _ in 0..lists(params) {
            qp.post_recv(&requests)
                .map_err(|source| RunError::PostReceive {
                    qp: index,
                    received: None,
                    source,
                })?;
        }
    }
    Ok(())
}

/// One list of receives. RDMA WRITE with immediate says itself where the data
/// goes, so they have no memory.
pub(super) fn requests(qp: usize, list: u32) -> Vec<ReceiveRequest<'static>> {
    let request = ReceiveRequest {
        wr_id: qp as u64,
        sges: &[],
    };
    vec![request; list as usize]
}

/// Lists that are posted on a queue pair before the run: as many as the
/// receive queue has room for, which by the rules is at least one.
fn lists(params: &Params) -> u32 {
    params.rx_depth / params.recv_post_list
}

/// Receives that [`post_receives`] posts on each queue pair.
pub(super) fn initial_receives(params: &Params) -> u64 {
    u64::from(lists(params)) * u64::from(params.recv_post_list)
}

impl<'a> Receiver<'a> {
    /// Over all queue pairs. [`post_receives`] has been called.
    pub(crate) fn new(
        qps: &'a mut [Box<dyn QueuePair>],
        cq: &'a mut dyn CompletionQueue,
        params: &Params,
    ) -> Self {
        let receives = Receives::new(qps.len(), cq, params, true);
        Self { qps, receives }
    }

    /// Receives as the course has it; its clock starts with the first message.
    pub(crate) fn run<C: Course>(
        &mut self,
        course: &mut C,
        watchdog: &mut Watchdog,
    ) -> Result<(), RunError> {
        let Self { qps, receives } = self;
        let limit = course.limit();
        watchdog.start();
        while receives.starts || !course.is_over(receives.received)? {
            receives.poll(qps, course, limit)?;
            receives.watch(watchdog, receives.received, limit)?;
        }
        course.finish();
        Ok(())
    }
}

impl<'a> Receives<'a> {
    /// On so many queue pairs, completing on `cq`. `starts`: the first message
    /// starts the course.
    pub(super) fn new(
        qps: usize,
        cq: &'a mut dyn CompletionQueue,
        params: &Params,
        starts: bool,
    ) -> Self {
        let list = u64::from(params.recv_post_list);
        let flows = (0..qps)
            .map(|qp| Flow {
                requests: requests(qp, params.recv_post_list),
                posted: initial_receives(params),
                consumed: 0,
            })
            .collect();
        Self {
            flows,
            cq,
            completions: vec![Completion::default(); params.rx_depth as usize],
            list,
            flags: required_flags(params),
            received: 0,
            starts,
        }
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

    /// Takes one batch of messages, and posts receives in their place.
    #[inline]
    pub(super) fn poll<C: Course>(
        &mut self,
        qps: &mut [Box<dyn QueuePair>],
        course: &mut C,
        limit: u64,
    ) -> Result<(), RunError> {
        let ready = self.cq.poll(&mut self.completions);
        for completion in &self.completions[..ready] {
            check_receive(completion, self.flags, self.received)?;
            let index = completion.wr_id as usize;
            let (Some(flow), Some(qp)) = (self.flows.get_mut(index), qps.get_mut(index)) else {
                continue;
            };
            if std::mem::take(&mut self.starts) {
                course.start();
            }
            self.received += 1;
            course.received();
            flow.consumed += 1;
            if flow.consumed >= self.list && flow.posted + self.list <= limit {
                flow.consumed -= self.list;
                flow.posted += self.list;
                qp.post_recv(&flow.requests)
                    .map_err(|source| RunError::PostReceive {
                        qp: index,
                        received: Some(self.received),
                        source,
                    })?;
            }
        }
        Ok(())
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
