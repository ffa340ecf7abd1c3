//! Shared receive queues (IBTA 10.2.9).

use verbs_sys::{EventKind, EventSource, PostError, ReceiveRequest, Result, Sge, VerbsError};

use super::SrqId;
use super::events::EventQueue;
use super::memory::PdId;
use super::receive_queue::ReceiveQueue;

#[derive(Debug)]
struct SharedQueue {
    queue: ReceiveQueue,
    pd: PdId,
    /// Below how many requests an event is raised, once; 0 is never.
    limit: u32,
    users: usize,
}

/// All shared receive queues of a NIC.
#[derive(Debug, Default)]
pub(crate) struct SrqTable {
    queues: Vec<Option<SharedQueue>>,
}

impl SrqTable {
    pub(crate) fn create(&mut self, pd: PdId, depth: u32, max_sge: u32, limit: u32) -> SrqId {
        let srq = SharedQueue {
            queue: ReceiveQueue::new(depth, max_sge),
            pd,
            limit,
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
            *place = Some(srq);
        }
        SrqId(slot as u32)
    }

    /// Returns the domain that the queue was made in.
    pub(crate) fn destroy(&mut self, id: SrqId) -> Result<PdId> {
        let place = self.queues.get_mut(id.0 as usize);
        match place.and_then(|place| {
            if place.as_ref()?.users == 0 {
                place.take()
            } else {
                None
            }
        }) {
            Some(srq) => Ok(srq.pd),
            None => Err(VerbsError::Busy {
                what: "shared receive queue",
                user: "a queue pair",
            }),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.iter().flatten().count()
    }

    pub(crate) fn max_sge(&self, id: SrqId) -> Option<usize> {
        self.get(id).map(|srq| srq.queue.max_sge())
    }

    pub(crate) fn add_user(&mut self, id: SrqId) {
        if let Some(srq) = self.get_mut(id) {
            srq.users += 1;
        }
    }

    pub(crate) fn remove_user(&mut self, id: SrqId) {
        if let Some(srq) = self.get_mut(id) {
            srq.users = srq.users.saturating_sub(1);
        }
    }

    pub(crate) fn post(
        &mut self,
        id: SrqId,
        requests: &[ReceiveRequest<'_>],
    ) -> Result<(), PostError> {
        for (posted, request) in requests.iter().enumerate() {
            self.get_mut(id)
                .ok_or(VerbsError::ForeignObject {
                    what: "shared receive queue",
                })
                .and_then(|srq| srq.queue.push(request))
                .map_err(|source| PostError { posted, source })?;
        }
        Ok(())
    }

    pub(crate) fn set_limit(&mut self, id: SrqId, limit: u32) -> Result<()> {
        let srq = self.get_mut(id).ok_or(VerbsError::ForeignObject {
            what: "shared receive queue",
        })?;
        if limit > srq.queue.depth() {
            return Err(VerbsError::InvalidArgument {
                what: "limit of the shared receive queue",
                seen: limit.to_string(),
                expected: format!("at most its depth, {}", srq.queue.depth()),
            });
        }
        srq.limit = limit;
        Ok(())
    }

    /// Takes the oldest request: copies its list to `sges`, returns its
    /// `wr_id`, and raises the limit event when the queue falls below it.
    pub(crate) fn take(
        &mut self,
        id: SrqId,
        sges: &mut Vec<Sge>,
        events: &mut EventQueue,
    ) -> Option<u64> {
        let srq = self.get_mut(id)?;
        sges.clear();
        sges.extend_from_slice(srq.queue.front()?.sges);
        let wr_id = srq.queue.pop();
        if srq.queue.len() < srq.limit {
            srq.limit = 0;
            events.raise(EventKind::SrqLimitReached, EventSource::Srq(id.0));
        }
        wr_id
    }

    fn get(&self, id: SrqId) -> Option<&SharedQueue> {
        self.queues.get(id.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, id: SrqId) -> Option<&mut SharedQueue> {
        self.queues.get_mut(id.0 as usize)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_event_fires_once_and_can_be_armed_again() {
        let mut events = EventQueue::new();
        let mut table = SrqTable::default();
        let srq = table.create(PdId(0), 8, 1, 3);
        for wr_id in 0..6 {
            table
                .post(srq, &[ReceiveRequest { wr_id, sges: &[] }])
                .unwrap();
        }
        let mut sges = Vec::with_capacity(1);
        let mut fired = Vec::new();
        for wr_id in 0..6 {
            assert_eq!(table.take(srq, &mut sges, &mut events), Some(wr_id));
            fired.push(events.next().is_some());
            if wr_id == 4 {
                table.set_limit(srq, 1).unwrap();
            }
        }
        assert_eq!(fired, [false, false, false, true, false, true]);
        assert_eq!(table.take(srq, &mut sges, &mut events), None);
        assert!(table.set_limit(srq, 9).is_err());
    }
}
