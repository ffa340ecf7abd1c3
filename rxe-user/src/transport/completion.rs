//! Completion queues (IBTA 10.8, 11.4.2).

use std::collections::VecDeque;

use verbs_sys::{Completion, EventKind, EventSource, Notify, Result, VerbsError};

use super::CqId;
use super::events::EventQueue;

/// One completion queue. Its ring is allocated at creation.
#[derive(Debug)]
struct CompletionQueue {
    entries: VecDeque<Completion>,
    depth: usize,
    armed: Option<Notify>,
    /// A completion was lost: the queue is dead (IBTA 11.6.3, CQ error).
    overrun: bool,
    /// Queue pairs and XRC queues that report here; it can't be destroyed before them.
    users: usize,
}

/// All completion queues of a NIC.
#[derive(Debug, Default)]
pub(crate) struct CqTable {
    queues: Vec<Option<CompletionQueue>>,
    /// Armed queues that have something to announce.
    notified: VecDeque<CqId>,
    /// Queues that overran since the last look.
    overrun: Vec<CqId>,
}

impl CqTable {
    pub(crate) fn create(&mut self, depth: u32) -> CqId {
        let depth = depth as usize;
        let queue = CompletionQueue {
            entries: VecDeque::with_capacity(depth),
            depth,
            armed: None,
            overrun: false,
            users: 0,
        };
        let slot = self
            .queues
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.queues.push(None);
                self.queues.len() - 1
            });
        if let Some(place) = self.queues.get_mut(slot) {
            *place = Some(queue);
        }
        // A queue is announced once per arming, so this is enough for all.
        self.notified.reserve(self.queues.len());
        self.overrun.reserve(self.queues.len());
        CqId(slot as u32)
    }

    pub(crate) fn destroy(&mut self, id: CqId) -> Result<()> {
        if self.get(id).is_some_and(|queue| queue.users > 0) {
            return Err(VerbsError::Busy {
                what: "completion queue",
                user: "a queue pair or shared receive queue",
            });
        }
        if let Some(place) = self.queues.get_mut(id.0 as usize) {
            *place = None;
        }
        self.notified.retain(|notified| *notified != id);
        self.overrun.retain(|overrun| *overrun != id);
        Ok(())
    }

    /// Number of queues.
    pub(crate) fn len(&self) -> usize {
        self.queues.iter().flatten().count()
    }

    pub(crate) fn contains(&self, id: CqId) -> bool {
        self.get(id).is_some()
    }

    pub(crate) fn add_user(&mut self, id: CqId) {
        if let Some(queue) = self.get_mut(id) {
            queue.users += 1;
        }
    }

    pub(crate) fn remove_user(&mut self, id: CqId) {
        if let Some(queue) = self.get_mut(id) {
            queue.users = queue.users.saturating_sub(1);
        }
    }

    /// Adds a completion. One too many kills the queue: it is lost, an event
    /// is raised, and the queue pairs that report here have to fail.
    pub(crate) fn push(
        &mut self,
        id: CqId,
        completion: Completion,
        solicited: bool,
        events: &mut EventQueue,
    ) {
        let Some(queue) = self.queues.get_mut(id.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        if queue.entries.len() == queue.depth {
            if !queue.overrun {
                queue.overrun = true;
                self.overrun.push(id);
                events.raise(EventKind::CqError, EventSource::Cq(id.0));
            }
            return;
        }
        queue.entries.push_back(completion);
        let announce = match queue.armed {
            None => false,
            Some(Notify::Any) => true,
            Some(Notify::Solicited) => solicited || !completion.is_success(),
        };
        if announce {
            queue.armed = None;
            self.notified.push_back(id);
        }
    }

    /// Takes completions, oldest first.
    pub(crate) fn poll(&mut self, id: CqId, completions: &mut [Completion]) -> usize {
        let Some(queue) = self.get_mut(id) else {
            return 0;
        };
        let count = completions.len().min(queue.entries.len());
        for (target, source) in completions.iter_mut().zip(queue.entries.drain(..count)) {
            *target = source;
        }
        count
    }

    /// Asks for one announcement; asking for any completion wins over asking
    /// for solicited ones (`ibv_req_notify_cq(3)`).
    pub(crate) fn arm(&mut self, id: CqId, notify: Notify) {
        if let Some(queue) = self.get_mut(id)
            && queue.armed != Some(Notify::Any)
        {
            queue.armed = Some(notify);
        }
    }

    pub(crate) fn next_notified(&mut self) -> Option<CqId> {
        self.notified.pop_front()
    }

    pub(crate) fn next_overrun(&mut self) -> Option<CqId> {
        self.overrun.pop()
    }

    /// Forgets the completions of a queue pair that is reset or destroyed.
    pub(crate) fn purge(&mut self, id: CqId, qpn: u32) {
        if let Some(queue) = self.get_mut(id) {
            queue.entries.retain(|completion| completion.qp_num != qpn);
        }
    }

    fn get(&self, id: CqId) -> Option<&CompletionQueue> {
        self.queues.get(id.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, id: CqId) -> Option<&mut CompletionQueue> {
        self.queues.get_mut(id.0 as usize)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use verbs_sys::WcStatus;

    use super::*;

    fn completion(wr_id: u64) -> Completion {
        Completion {
            wr_id,
            ..Completion::default()
        }
    }

    #[test]
    fn one_completion_too_many_kills_the_queue() {
        let (mut table, mut events) = (CqTable::default(), EventQueue::new());
        let cq = table.create(2);
        for wr_id in 0..4 {
            table.push(cq, completion(wr_id), false, &mut events);
        }
        assert_eq!(table.next_overrun(), Some(cq));
        assert_eq!(table.next_overrun(), None, "reported once");
        assert_eq!(
            events.next().map(|event| event.kind),
            Some(EventKind::CqError)
        );
        assert_eq!(events.next(), None);
        let mut polled = [Completion::default(); 4];
        assert_eq!(table.poll(cq, &mut polled), 2, "what fitted is still there");
        assert_eq!([polled[0].wr_id, polled[1].wr_id], [0, 1]);
    }

    #[test]
    fn arming_is_one_shot_and_solicited_never_downgrades() {
        let (mut table, mut events) = (CqTable::default(), EventQueue::new());
        let cq = table.create(8);
        table.push(cq, completion(0), true, &mut events);
        assert_eq!(table.next_notified(), None, "not armed");
        table.arm(cq, Notify::Solicited);
        table.push(cq, completion(1), false, &mut events);
        assert_eq!(table.next_notified(), None, "not solicited");
        let failed = Completion {
            status: WcStatus::WorkRequestFlushed,
            ..completion(2)
        };
        table.push(cq, failed, false, &mut events);
        assert_eq!(table.next_notified(), Some(cq), "errors count as solicited");
        table.push(cq, completion(3), true, &mut events);
        assert_eq!(table.next_notified(), None, "one shot");
        table.arm(cq, Notify::Any);
        table.arm(cq, Notify::Solicited);
        table.push(cq, completion(4), false, &mut events);
        assert_eq!(table.next_notified(), Some(cq));
    }

    #[test]
    fn a_queue_in_use_is_not_destroyed() {
        let mut table = CqTable::default();
        let cq = table.create(1);
        table.add_user(cq);
        assert_eq!(
            table.destroy(cq).map_err(|error| error.errno()),
            Err(libc::EBUSY)
        );
        table.remove_user(cq);
        table.destroy(cq).unwrap();
        assert!(!table.contains(cq));
    }
}
