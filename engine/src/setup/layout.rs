//! Where in the buffer which message lies. Stock's peers rely on it: they
//! write and read the addresses we publish, and cycle through them.

use super::ring::RingLayout;

/// The layout of the buffers of all queue pairs.
///
/// One block serves all queue pairs, first the areas we send from, then those
/// the peer may touch; with `--mr_per_qp` every queue pair has a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The page size both ends agreed on: small messages cycle through so much.
    pub(crate) page: usize,
    /// The cache line both ends agreed on: messages begin on one.
    pub(crate) line: usize,
    /// Largest message in bytes.
    pub(crate) size: usize,
    /// Queue pairs.
    pub(crate) qps: usize,
    /// A block of its own for each queue pair.
    pub(crate) block_per_qp: bool,
    /// What comes before each received message: the GRH of a datagram.
    pub(crate) header: usize,
    /// The block has rings instead of areas (`--data_validation`).
    pub(crate) ring: Option<RingLayout>,
}

/// A place in one of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which block.
    pub(crate) block: usize,
    /// Bytes from its start.
    pub(crate) offset: usize,
}

impl Layout {
    /// Bytes of a queue pair's area.
    pub(crate) fn area(&self) -> usize {
        self.size.max(self.page)
    }

    /// Bytes from one message of this size to the next.
    pub(crate) fn stride(&self, size: usize) -> usize {
        size.max(1).next_multiple_of(self.line)
    }

    /// How many places messages of this size cycle through: those that fit
    /// twice into a page go through it, larger ones stay put.
    pub(crate) fn slots(&self, size: usize) -> usize {
        if size <= self.page / 2 {
            (self.page / self.stride(size)).max(1)
        } else {
            1
        }
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        if self.block_per_qp { self.qps } else { 1 }
    }

    /// Bytes that a receive for messages of this size needs.
    pub(crate) fn received(&self, size: usize) -> usize {
        size.saturating_add(self.header)
    }

    /// Bytes of a queue pair's area for received messages.
    fn receive_area(&self) -> usize {
        self.stride(self.received(self.size).max(self.page))
    }

    /// Bytes of a block; `None` when no address space is that large.
    pub(crate) fn block_len(&self) -> Option<usize> {
        if let Some(ring) = &self.ring {
            return Some(ring.len());
        }
        let qps = if self.block_per_qp { 1 } else { self.qps };
        let both = self.stride(self.area()).checked_add(self.receive_area())?;
        both.checked_mul(qps)?.checked_add(self.lead())
    }

    /// Bytes before the first received message: what follows its header lies
    /// at the start of a cache line.
    fn lead(&self) -> usize {
        self.header.next_multiple_of(self.line) - self.header
    }

    /// Where queue pair `qp` sends from.
    pub(crate) fn sends_from(&self, qp: usize) -> Place {
        if self.block_per_qp {
            Place {
                block: qp,
                offset: 0,
            }
        } else {
            Place {
                block: 0,
                offset: qp * self.area(),
            }
        }
    }

    /// The area of queue pair `qp` that the peer may touch.
    pub(crate) fn published(&self, qp: usize) -> Place {
        if let Some(ring) = &self.ring {
            Place {
                block: 0,
                offset: ring.published(qp),
            }
        } else if self.block_per_qp {
            Place {
                block: qp,
                offset: self.area(),
            }
        } else {
            Place {
                block: 0,
                offset: (self.qps + qp) * self.area(),
            }
        }
    }

    /// Where messages go that consume receives of queue pair `qp`. Only this
    /// end knows, so the headers of datagrams find a place of their own.
    pub(crate) fn receives_into(&self, qp: usize) -> Place {
        let after_sends = |qps| qps * self.stride(self.area()) + self.lead();
        if self.block_per_qp {
            Place {
                block: qp,
                offset: after_sends(1),
            }
        } else {
            Place {
                block: 0,
                offset: after_sends(self.qps) + qp * self.receive_area(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use proptest::prelude::*;

    fn layout(size: usize, qps: usize) -> Layout {
        Layout {
            page: 4096,
            line: 64,
            size,
            qps,
            block_per_qp: false,
            header: 0,
            ring: None,
        }
    }

    #[test]
    fn small_messages_cycle_through_a_page() {
        let layout = layout(65536, 1);
        for (size, stride, slots) in [
            (1, 64, 64),
            (2, 64, 64),
            (64, 64, 64),
            (65, 128, 32),
            (1500, 1536, 2),
            (2048, 2048, 2),
            (2049, 2112, 1),
            (65536, 65536, 1),
        ] {
            assert_eq!(layout.stride(size), stride, "{size}");
            assert_eq!(layout.slots(size), slots, "{size}");
        }
    }

    #[test]
    fn areas_follow_each_other() {
        let shared = layout(100, 3);
        assert_eq!(shared.block_len(), Some(4096 * 6));
        assert_eq!(shared.sends_from(2).offset, 2 * 4096);
        assert_eq!(shared.published(0).offset, 3 * 4096);
        let own = Layout {
            block_per_qp: true,
            ..shared
        };
        assert_eq!((own.blocks(), own.block_len()), (3, Some(8192)));
        let (block, offset) = (2, 4096);
        assert_eq!(own.published(2), Place { block, offset });
        assert_eq!(layout(usize::MAX / 2, 16384).block_len(), None);
    }

    proptest! {
        /// Whatever an end sends or the peer touches lies inside the block,
        /// and the areas of two queue pairs don't meet.
        #[test]
        fn everything_fits(
            size in 1_usize..100_000,
            message in 1_usize..100_000,
            qps in 1_usize..9,
            block_per_qp: bool,
            page in prop::sample::select(vec![4096_usize, 65536]),
            header in prop::sample::select(vec![0_usize, 40]),
        ) {
            let layout = Layout { page, line: 64, size, qps, block_per_qp, header, ring: None };
            let message = message.min(size);
            let reach = |length| (layout.slots(length) - 1) * layout.stride(length) + length;
            prop_assert!(reach(message) <= layout.area());
            prop_assert!(reach(layout.received(message)) <= layout.receive_area());
            let mut areas: Vec<Place> = (0..qps)
                .flat_map(|qp| [layout.sends_from(qp), layout.published(qp)])
                .collect();
            areas.sort_by_key(|place| (place.block, place.offset));
            for pair in areas.windows(2) {
                prop_assert!(
                    pair[0].block != pair[1].block
                        || pair[0].offset + layout.area() <= pair[1].offset
                );
            }
            for place in areas {
                prop_assert!(place.block < layout.blocks());
                prop_assert!(place.offset + layout.area() <= layout.block_len().unwrap());
            }
            for qp in 0..qps {
                let receives = layout.receives_into(qp);
                prop_assert!(receives.block < layout.blocks());
                let end = receives.offset + layout.receive_area();
                prop_assert!(end <= layout.block_len().unwrap());
                prop_assert_eq!((receives.offset + header) % layout.line, 0);
                let sends = layout.sends_from(qps - 1);
                if sends.block == receives.block {
                    prop_assert!(sends.offset + layout.area() <= receives.offset);
                }
            }
        }
    }
}
