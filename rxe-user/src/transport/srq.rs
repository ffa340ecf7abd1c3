//! Shared receive queues (IBTA 10.2.9), those of XRC domains among them (annex
//! A14).

use verbs_sys::{EventKind, EventSource, PostError, ReceiveRequest, Result, Sge, VerbsError};

use super::events::EventQueue;
use super::memory::PdId;
use super::receive_queue::ReceiveQueue;
use super::{CqId, SrqId, XrcdId};

/// A queue's number is its slot with random bits above it, so that an XRC
/// packet for a queue that is gone doesn't find its successor.
const SLOT_BITS: u32 = 16;
const TAG_BITS: u32 = 24 - SLOT_BITS;

/// Most queues that the numbers allow.
pub(crate) const MAX_SRQ: u32 = 1 << SLOT_BITS;

/// What a shared receive queue is created from.
#[derive(Debug, Clone, Copy)]
pub struct SrqSettings {
    /// Protection domain: that of the keys in its requests.
    pub pd: PdId,
    /// Outstanding requests.
    pub depth: u32,
    /// Scatter/gather entries per request.
    pub max_sge: u32,
    /// Below how many requests an event is raised, once; 0 is never.
    pub limit: u32,
    /// For an XRC queue.
    pub xrc: Option<XrcQueue>,
}

/// What an XRC queue has that others take from the queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XrcQueue {
    /// Whose targets may draw from it.
    pub domain: XrcdId,
    /// Where receive completions go.
    pub cq: CqId,
}

#[derive(Debug)]
struct SharedQueue {
    id: SrqId,
    queue: ReceiveQueue,
    settings: SrqSettings,
    users: usize,
    /// Its completion queue is dead; nothing leaves it any more.
    failed: bool,
}

/// What was taken off a queue, beside the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) wr_id: u64,
    /// Domain of the keys in the list.
    pub(crate) pd: PdId,
    /// Where the completion goes, if not to the queue pair's own.
    pub(crate) cq: Option<CqId>,
}

/// All shared receive queues of a NIC.
#[derive(Debug, Default)]
pub(crate) struct SrqTable {
    queues: Vec<Option<SharedQueue>>,
}

impl SrqTable {
    /// `random` gives the upper bits of the number.
    pub(crate) fn create(&mut self, settings: SrqSettings, random: u32) -> SrqId {
        let free = self.queues.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.queues.push(None);
            self.queues.len() - 1
        });
        // Never 0, which stands for no queue in many a program.
        let tag = 1 + random % ((1 << TAG_BITS) - 1);
        let id = SrqId(tag << SLOT_BITS | slot as u32);
        if let Some(place) = self.queues.get_mut(slot) {
            *place = Some(SharedQueue {
                id,
                queue: ReceiveQueue::new(settings.depth, settings.max_sge),
                settings,
                users: 0,
                failed: false,
            });
        }
        id
    }

    /// Returns what the queue was made from.
    pub(crate) fn destroy(&mut self, id: SrqId) -> Result<SrqSettings> {
        let srq = self.get(id).ok_or(unknown())?;
        if srq.users > 0 {
            return Err(VerbsError::Busy {
                what: "shared receive queue",
                user: "a queue pair",
            });
        }
        let settings = srq.settings;
        if let Some(place) = self.queues.get_mut(slot(id)) {
            *place = None;
        }
        Ok(settings)
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.iter().flatten().count()
    }

    pub(crate) fn settings(&self, id: SrqId) -> Option<&SrqSettings> {
        self.get(id).map(|srq| &srq.settings)
    }

    /// The queue of an XRC domain that a packet names.
    pub(crate) fn in_domain(&self, domain: XrcdId, number: u32) -> Option<(SrqId, &SrqSettings)> {
        let srq = self.get(SrqId(number))?;
        let is_there = srq.settings.xrc.is_some_and(|xrc| xrc.domain == domain);
        is_there.then_some((srq.id, &srq.settings))
    }

    /// Ends the queues that report to a dead completion queue.
    pub(crate) fn fail_reporting_to(&mut self, cq: CqId, events: &mut EventQueue) {
        for srq in self.queues.iter_mut().flatten() {
            if srq.settings.xrc.is_some_and(|xrc| xrc.cq == cq) && !srq.failed {
                srq.failed = true;
                events.raise(EventKind::SrqError, EventSource::Srq(srq.id.0));
            }
        }
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
                .ok_or(unknown())
                .and_then(|srq| srq.queue.push(request))
                .map_err(|source| PostError { posted, source })?;
        }
        Ok(())
    }

    pub(crate) fn set_limit(&mut self, id: SrqId, limit: u32) -> Result<()> {
        let srq = self.get_mut(id).ok_or(unknown())?;
        if limit > srq.queue.depth() {
            return Err(VerbsError::InvalidArgument {
                what: "limit of the shared receive queue",
                seen: limit.to_string(),
                expected: format!("at most its depth, {}", srq.queue.depth()),
            });
        }
        srq.settings.limit = limit;
        Ok(())
    }

    /// Takes the oldest request: copies its list to `sges`, and raises the
    /// limit event when the queue falls below it.
    pub(crate) fn take(
        &mut self,
        id: SrqId,
        sges: &mut Vec<Sge>,
        events: &mut EventQueue,
    ) -> Option<Taken> {
        let srq = self.get_mut(id).filter(|srq| !srq.failed)?;
        sges.clear();
        sges.extend_from_slice(srq.queue.front()?.sges);
        let wr_id = srq.queue.pop()?;
        let settings = &mut srq.settings;
        if srq.queue.len() < settings.limit {
            settings.limit = 0;
            events.raise(EventKind::SrqLimitReached, EventSource::Srq(id.0));
        }
        Some(Taken {
            wr_id,
            pd: settings.pd,
            cq: settings.xrc.map(|xrc| xrc.cq),
        })
    }

    fn get(&self, id: SrqId) -> Option<&SharedQueue> {
        let srq = self.queues.get(slot(id))?.as_ref();
        srq.filter(|srq| srq.id == id)
    }

    fn get_mut(&mut self, id: SrqId) -> Option<&mut SharedQueue> {
        let srq = self.queues.get_mut(slot(id))?.as_mut();
        srq.filter(|srq| srq.id == id)
    }
}

fn slot(id: SrqId) -> usize {
    (id.0 & (MAX_SRQ - 1)) as usize
}

fn unknown() -> VerbsError {
    VerbsError::ForeignObject {
        what: "shared receive queue",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: SrqSettings = SrqSettings {
        pd: PdId(0),
        depth: 8,
        max_sge: 1,
        limit: 3,
        xrc: None,
    };

    #[test]
    fn the_limit_event_fires_once_and_can_be_armed_again() {
        let mut events = EventQueue::new();
        let mut table = SrqTable::default();
        let srq = table.create(SETTINGS, 0);
        for wr_id in 0..6 {
            table
                .post(srq, &[ReceiveRequest { wr_id, sges: &[] }])
                .unwrap();
        }
        let mut sges = Vec::with_capacity(1);
        let mut fired = Vec::new();
        for wr_id in 0..6 {
            let taken = table.take(srq, &mut sges, &mut events);
            assert_eq!(taken.map(|taken| taken.wr_id), Some(wr_id));
            fired.push(events.next().is_some());
            if wr_id == 4 {
                table.set_limit(srq, 1).unwrap();
            }
        }
        assert_eq!(fired, [false, false, false, true, false, true]);
        assert_eq!(table.take(srq, &mut sges, &mut events), None);
        assert!(table.set_limit(srq, 9).is_err());
    }

    #[test]
    fn numbers_fit_their_header_and_do_not_come_back() {
        let mut table = SrqTable::default();
        let first = table.create(SETTINGS, u32::MAX);
        table.destroy(first).unwrap();
        let second = table.create(SETTINGS, 7);
        assert_ne!(first, second);
        assert!(first.0 >> 24 == 0 && first.0 != 0);
        assert!(table.settings(first).is_none() && table.settings(second).is_some());
    }

    #[test]
    fn a_queue_is_found_in_its_xrc_domain_only() {
        let mut table = SrqTable::default();
        let plain = table.create(SETTINGS, 1);
        let xrc = XrcQueue {
            domain: XrcdId(1),
            cq: CqId(0),
        };
        let settings = SrqSettings {
            xrc: Some(xrc),
            ..SETTINGS
        };
        let srq = table.create(settings, 2);
        let found = |domain, id: SrqId| table.in_domain(XrcdId(domain), id.0).is_some();
        assert!(found(1, srq));
        assert!(!found(0, srq), "another domain");
        assert!(!found(1, plain), "not an XRC queue");
        assert!(!found(1, SrqId(srq.0 ^ 1 << 16)), "a former one");
    }
}
