//! Where everything lies under `--data_validation`. Each end works it out by
//! itself, so it has to be exactly as in stock:
//!
//! ```text
//! three patterns | markers | ring of each queue pair | old values of markers | counters
//! ```
//!
//! A ring has some chunks, and a chunk some messages. Each chunk has a marker,
//! which the sender increments by an atomic operation after it has filled the
//! chunk. The counters at the end are ours alone: stock doesn't look there.

use crate::options::Params;
use crate::words::Verb;

/// Messages of a chunk have about so many bytes together, in stock.
const SMALLEST_CHUNK: usize = 64 << 10;
const LARGEST_CHUNK: usize = 8 << 20;

/// The most chunks a ring has.
const MOST_CHUNKS: usize = 24;

/// The parts lie at multiples of so many bytes, on every host.
const LINE: usize = 64;

/// Bytes of a marker, or of a counter.
const WORD: usize = 8;

/// The parts of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingLayout {
    /// Bytes of a message.
    pub(crate) size: usize,
    /// Messages of a chunk.
    pub(crate) chunk: usize,
    /// Chunks of a queue pair's ring.
    pub(crate) chunks: usize,
    /// Queue pairs.
    pub(crate) qps: usize,
    /// RDMA READ: data and old values of markers come to the end that asks.
    pub(crate) reads: bool,
}

impl RingLayout {
    /// Chunks are filled with byte 1, 2 or 3: in the first round of the ring
    /// with 1, in the next one with 2, and so on.
    pub(crate) const PATTERNS: u64 = 3;

    /// Of a test, if it validates.
    pub(crate) fn of(params: &Params) -> Option<Self> {
        params.data_validation.then(|| {
            Self::new(
                params.sizes.largest() as usize,
                params.tx_depth as usize,
                params.qps as usize,
                params.verb() == Verb::Read,
            )
        })
    }

    /// For messages of `size` bytes, `tx_depth` of them in flight on each queue pair.
    pub(crate) fn new(size: usize, tx_depth: usize, qps: usize, reads: bool) -> Self {
        let chunk = chunk(size, tx_depth);
        Self {
            size,
            chunk,
            chunks: chunks(size.saturating_mul(chunk), qps, reads),
            qps,
            reads,
        }
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.size.saturating_mul(self.chunk)
    }

    /// Messages that go once around a ring.
    pub(crate) fn ring_messages(&self) -> usize {
        self.chunk * self.chunks
    }

    /// The byte that chunks are filled with in a round, counted from 0.
    pub(crate) fn pattern_byte(round: u64) -> u8 {
        // Less than the number of patterns.
        1 + (round % Self::PATTERNS) as u8
    }

    /// The message that consists of nothing but the byte of a round.
    pub(crate) fn pattern(&self, round: u64) -> usize {
        (round % Self::PATTERNS) as usize * self.size
    }

    /// The marker of a chunk that the peer increments.
    pub(crate) fn marker(&self, qp: usize, chunk: usize) -> usize {
        aligned(self.size.saturating_mul(Self::PATTERNS as usize))
            .saturating_add(self.index(qp, chunk) * WORD)
    }

    /// A message of a queue pair's ring.
    pub(crate) fn message(&self, qp: usize, index: usize) -> usize {
        let ring = self.ring_messages().saturating_mul(self.size);
        self.rings()
            .saturating_add(qp.saturating_mul(ring))
            .saturating_add(index.saturating_mul(self.size))
    }

    /// Where the old value of the peer's marker of a chunk comes. Who writes
    /// has no use for it, and throws those of a queue pair in one place.
    pub(crate) fn old_value(&self, qp: usize, chunk: usize) -> usize {
        let index = match self.reads {
            true => self.index(qp, chunk),
            false => qp,
        };
        self.old_values().saturating_add(index * WORD)
    }

    /// How many chunks of a queue pair this end has checked.
    pub(crate) fn checked(&self, qp: usize) -> usize {
        let words = match self.reads {
            true => self.all_chunks(),
            false => self.qps,
        };
        let old_values = self.old_values().saturating_add(words * WORD);
        old_values
            .saturating_add(LINE)
            .saturating_add(2 * qp * WORD)
    }

    /// How many the peer has, as far as this end knows.
    pub(crate) fn checked_by_peer(&self, qp: usize) -> usize {
        self.checked(qp).saturating_add(WORD)
    }

    /// Where the word lies that tells whether a chunk is complete.
    pub(crate) fn signal(&self, qp: usize, chunk: usize) -> usize {
        match self.reads {
            true => self.old_value(qp, chunk),
            false => self.marker(qp, chunk),
        }
    }

    /// The area of queue pair `qp` that the peer may touch.
    pub(crate) fn published(&self, qp: usize) -> usize {
        match self.reads {
            true => 0,
            false => self.message(qp, 0),
        }
    }

    /// Bytes of the whole.
    pub(crate) fn len(&self) -> usize {
        self.checked(self.qps)
    }

    /// Chunks of all queue pairs.
    fn all_chunks(&self) -> usize {
        self.qps * self.chunks
    }

    fn index(&self, qp: usize, chunk: usize) -> usize {
        qp * self.chunks + chunk
    }

    fn rings(&self) -> usize {
        aligned(self.marker(self.qps, 0))
    }

    fn old_values(&self) -> usize {
        aligned(self.message(self.qps, 0))
    }
}

/// Messages of a chunk: the depth of the send queue, more of small messages,
/// and fewer of large ones.
fn chunk(size: usize, tx_depth: usize) -> usize {
    let (size, tx_depth) = (size.max(1), tx_depth.max(1));
    let bytes = size.saturating_mul(tx_depth);
    if bytes < SMALLEST_CHUNK {
        SMALLEST_CHUNK.div_ceil(size).next_multiple_of(tx_depth)
    } else if bytes > LARGEST_CHUNK {
        (LARGEST_CHUNK / size).max(1)
    } else {
        tx_depth
    }
}

/// Chunks of a ring: the fewer, the larger they are and the more queue pairs
/// there are.
fn chunks(chunk_bytes: usize, qps: usize, reads: bool) -> usize {
    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    let basis = match chunk_bytes / KIB {
        0..128 => 12,
        128..512 => 10,
        512.. if chunk_bytes < 2 * MIB => 8,
        _ if chunk_bytes < LARGEST_CHUNK => 6,
        _ => 4,
    };
    let of_qps = match qps {
        0..=2 => basis * 2,
        3 | 4 => basis * 3 / 2,
        _ => basis,
    };
    let of_all = match reads {
        true => of_qps * 3 / 2,
        false => of_qps,
    };
    of_all.min(MOST_CHUNKS)
}

fn aligned(offset: usize) -> usize {
    offset
        .checked_next_multiple_of(LINE)
        .unwrap_or(usize::MAX - LINE)
}

#[cfg(test)]
mod tests;
