//! The latency tests of operations that are answered: the client reads, or
//! swaps, and waits for the answer; the server does nothing.

use std::time::Duration;

use verbs_sys::{Completion, CompletionQueue, Notify, QueuePair, SendRequest};

use super::bandwidth::check;
use super::error::RunError;
use super::latency::{Game, Rounds, wait_gap};
use super::sleeper::Sleeper;
use super::watchdog::Watchdog;

/// One operation after the other.
pub(crate) struct RoundTrips<'a> {
    pub(crate) qp: &'a mut dyn QueuePair,
    pub(crate) cq: &'a mut dyn CompletionQueue,
    pub(crate) sleeper: Sleeper,
    /// The operation, signalled.
    pub(crate) request: SendRequest<'a>,
    /// Busy wait before each post.
    pub(crate) gap: Duration,
}

impl Game for RoundTrips<'_> {
    fn run<R: Rounds>(&mut self, rounds: &mut R, watchdog: &mut Watchdog) -> Result<(), RunError> {
        let limit = rounds.limit();
        let mut done = 0;
        watchdog.start();
        while done < limit && !rounds.is_over() {
            wait_gap(self.gap);
            rounds.posting(done);
            self.qp
                .post_send(std::slice::from_ref(&self.request))
                .map_err(|source| RunError::Post {
                    qp: None,
                    posted: done,
                    tx_depth: 1,
                    source,
                })?;
            let mut completion = [Completion::default()];
            while self.cq.poll(&mut completion) == 0 {
                watchdog.turn(done)?;
                let cq = &mut *self.cq;
                self.sleeper.idle(watchdog, || cq.arm(Notify::Any))?;
            }
            check(&completion[0], done + 1, done)?;
            done += 1;
            rounds.completed();
        }
        Ok(())
    }
}
