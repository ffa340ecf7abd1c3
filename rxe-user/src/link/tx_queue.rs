//! Packets on their way from the transport to the link.

use super::Route;

/// One packet of a [`TxQueue`].
#[derive(Debug, Clone, Copy)]
pub struct TxPacket {
    /// Where it goes.
    pub route: Route,
    /// First byte in the queue's arena.
    start: usize,
    /// Bytes from BTH to ICRC.
    len: usize,
}

impl TxPacket {
    /// Bytes from BTH to ICRC.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a packet has at least a BTH.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Packets in the order of sending, back to back in one arena, so that a run
/// of packets of one size is one piece of memory. Allocates only when made.
#[derive(Debug)]
pub struct TxQueue {
    arena: Box<[u8]>,
    packets: Vec<TxPacket>,
    /// Packets at the front that have been sent.
    sent: usize,
}

impl TxQueue {
    /// A queue for up to `max_packets` packets of `arena` bytes together.
    #[must_use]
    pub fn new(arena: usize, max_packets: usize) -> Self {
        Self {
            arena: vec![0; arena].into_boxed_slice(),
            packets: Vec::with_capacity(max_packets),
            sent: 0,
        }
    }

    /// Whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent == self.packets.len()
    }

    /// Whether a packet of `len` bytes can be added.
    #[must_use]
    pub fn has_room(&self, len: usize) -> bool {
        self.packets.len() < self.packets.capacity() && self.arena.len() - self.used() >= len
    }

    /// Adds the packet that `write` builds at the start of the room it is
    /// given (at least `room` bytes) and whose length it returns: BTH to ICRC,
    /// the ICRC not yet computed. Adds nothing when `write` fails, and returns
    /// `None` without a call when there is no room.
    pub fn push<E>(
        &mut self,
        route: Route,
        room: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Option<Result<(), E>> {
        if !self.has_room(room) {
            return None;
        }
        let start = self.used();
        let written = self.arena.get_mut(start..).map(write)?;
        Some(written.map(|len| self.packets.push(TxPacket { route, start, len })))
    }

    /// The packets that wait, oldest first.
    #[must_use]
    pub fn packets(&self) -> &[TxPacket] {
        self.packets.get(self.sent..).unwrap_or_default()
    }

    /// The bytes of `count` waiting packets from the `first` on, back to back.
    #[must_use]
    pub fn bytes(&self, first: usize, count: usize) -> &[u8] {
        self.extent(first, count)
            .and_then(|(start, end)| self.arena.get(start..end))
            .unwrap_or_default()
    }

    /// As [`Self::bytes`], to complete the packets in place.
    pub fn bytes_mut(&mut self, first: usize, count: usize) -> &mut [u8] {
        match self.extent(first, count) {
            Some((start, end)) => self.arena.get_mut(start..end).unwrap_or_default(),
            None => &mut [],
        }
    }

    /// Takes the `count` oldest packets off; they have been sent, or lost.
    pub fn consume(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.packets.len());
        if self.is_empty() {
            self.packets.clear();
            self.sent = 0;
        }
    }

    fn used(&self) -> usize {
        self.packets
            .last()
            .map_or(0, |packet| packet.start + packet.len)
    }

    fn extent(&self, first: usize, count: usize) -> Option<(usize, usize)> {
        let packets = self.packets().get(first..first.checked_add(count)?)?;
        let (head, tail) = (packets.first()?, packets.last()?);
        Some((head.start, tail.start + tail.len))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn route(last: u8) -> Route {
        Route {
            src: [127, 0, 0, 1].into(),
            dst: [127, 0, 0, last].into(),
            traffic_class: 0,
            hop_limit: 64,
        }
    }

    fn push(queue: &mut TxQueue, fill: u8, len: usize) -> bool {
        queue
            .push(route(fill), len, |room| {
                room[..len].fill(fill);
                Ok::<_, Infallible>(len)
            })
            .is_some()
    }

    #[test]
    fn packets_lie_back_to_back_and_leave_in_order() {
        let mut queue = TxQueue::new(100, 3);
        assert!(push(&mut queue, 1, 40));
        assert!(push(&mut queue, 2, 40));
        assert!(!push(&mut queue, 3, 40), "the arena is full");
        assert!(push(&mut queue, 3, 20));
        assert!(!push(&mut queue, 4, 0), "the packet list is full");
        assert_eq!(queue.bytes(0, 2).len(), 80);
        queue.consume(1);
        assert_eq!(queue.packets()[0].route, route(2));
        queue.bytes_mut(0, 1).fill(9);
        assert_eq!(
            queue.bytes(0, 2),
            [[9; 20].as_slice(), &[9; 20], &[3; 20]].concat()
        );
        assert_eq!(queue.bytes(1, 2), [], "beyond the last packet");
        queue.consume(2);
        assert!(queue.is_empty());
        assert!(push(&mut queue, 5, 100), "an empty queue starts over");
    }

    #[test]
    fn a_packet_that_fails_to_build_adds_nothing() {
        let mut queue = TxQueue::new(100, 3);
        assert_eq!(queue.push(route(1), 10, |_| Err("no")), Some(Err("no")));
        assert!(queue.is_empty());
        assert!(push(&mut queue, 1, 100));
    }
}
