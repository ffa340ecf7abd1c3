//! The receive queue: posted requests in a ring that is allocated once. Also
//! the body of a shared receive queue.

use verbs_sys::{ReceiveRequest, Result, Sge, VerbsError};

use super::send_queue::too_many_sges;

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    wr_id: u64,
    sges: usize,
}

/// Receive requests, oldest first.
#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    slots: Box<[Slot]>,
    sges: Box<[Sge]>,
    max_sge: usize,
    head: u64,
    tail: u64,
}

impl ReceiveQueue {
    pub(crate) fn new(depth: u32, max_sge: u32) -> Self {
        let (depth, max_sge) = (depth as usize, max_sge as usize);
        Self {
            slots: vec![Slot::default(); depth].into(),
            sges: vec![Sge::default(); depth * max_sge].into(),
            max_sge,
            head: 0,
            tail: 0,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        (self.tail - self.head) as u32
    }

    pub(crate) fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn push(&mut self, request: &ReceiveRequest<'_>) -> Result<()> {
        if self.len() >= self.depth() {
            return Err(VerbsError::QueueFull {
                queue: "receive queue",
                depth: self.depth(),
            });
        }
        let count = request.sges.len();
        if count > self.max_sge {
            return Err(too_many_sges(count, self.max_sge));
        }
        let slot = self.slot(self.tail);
        let start = slot * self.max_sge;
        if let Some(place) = self.sges.get_mut(start..start + count) {
            place.copy_from_slice(request.sges);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Slot {
                wr_id: request.wr_id,
                sges: count,
            };
            self.tail += 1;
        }
        Ok(())
    }

    /// The oldest request, which stays.
    pub(crate) fn front(&self) -> Option<ReceiveRequest<'_>> {
        if self.len() == 0 {
            return None;
        }
        let slot = self.slot(self.head);
        let Slot { wr_id, sges } = *self.slots.get(slot)?;
        let start = slot * self.max_sge;
        Some(ReceiveRequest {
            wr_id,
            sges: self.sges.get(start..start + sges)?,
        })
    }

    /// Takes the oldest request off and returns its `wr_id`.
    pub(crate) fn pop(&mut self) -> Option<u64> {
        let wr_id = self.front()?.wr_id;
        self.head += 1;
        Some(wr_id)
    }

    pub(crate) fn clear(&mut self) {
        self.head = self.tail;
    }

    fn slot(&self, position: u64) -> usize {
        (position % self.slots.len().max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_leave_in_the_order_of_posting() {
        let mut queue = ReceiveQueue::new(2, 1);
        let sges = [Sge {
            addr: 1,
            length: 2,
            lkey: 3,
        }];
        for wr_id in 0..5 {
            queue.push(&ReceiveRequest { wr_id, sges: &sges }).unwrap();
            let front = queue.front().unwrap();
            assert_eq!((front.wr_id, front.sges), (wr_id, sges.as_slice()));
            assert_eq!(queue.pop(), Some(wr_id));
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn depth_and_list_length_are_limits() {
        let mut queue = ReceiveQueue::new(1, 1);
        let sges = [Sge::default(); 2];
        assert!(
            queue
                .push(&ReceiveRequest {
                    wr_id: 0,
                    sges: &sges
                })
                .is_err()
        );
        queue
            .push(&ReceiveRequest {
                wr_id: 1,
                sges: &sges[..1],
            })
            .unwrap();
        let error = queue
            .push(&ReceiveRequest {
                wr_id: 2,
                sges: &[],
            })
            .unwrap_err();
        assert_eq!(error.errno(), libc::ENOMEM);
        assert!(
            ReceiveQueue::new(0, 1)
                .push(&ReceiveRequest {
                    wr_id: 0,
                    sges: &[]
                })
                .is_err()
        );
    }
}
