//! A queue that rxe shares with this process (`struct rxe_queue_buf`): a head
//! with an index for each side, then slots of equal size, a power of two of
//! them. One slot stays empty. Both indices are always stored masked.
//!
//! The size of a slot differs between kernels, so it is read, not computed.

use crate::drivers::{get, put};
use crate::memory::Buffer;
use crate::uapi::rxe::{MmInfo, queue};
use crate::uverbs::{Uverbs, failed, odd};
use crate::{Result, VerbsError};

/// No slot is larger: a send request with 512 bytes of inline data takes 1024.
const MAX_LOG2_SLOT: u32 = 16;

/// A mapped queue, checked: all its slots are inside the mapping.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Buffer,
    mask: u32,
    log2_slot: u32,
}

impl Ring {
    /// Maps the queue that a command has answered. Its slots have to hold
    /// `least` bytes.
    ///
    /// # Errors
    /// When the kernel refuses, or the queue isn't one.
    pub(crate) fn map(uverbs: &Uverbs, info: &MmInfo, least: usize) -> Result<Self> {
        let memory = uverbs.map(info.offset, info.size as usize)?;
        Self::new(memory, least).map_err(|error| failed("map a queue of rxe", error))
    }

    pub(super) fn new(memory: Buffer, least: usize) -> std::io::Result<Self> {
        let head = |offset| {
            memory.load_u32(offset).ok_or_else(|| {
                odd(
                    "a queue of",
                    memory.len(),
                    format!("at least {}", queue::DATA),
                )
            })
        };
        let log2_slot = head(queue::LOG2_ELEM_SIZE)?;
        let mask = head(queue::INDEX_MASK)?;
        if log2_slot > MAX_LOG2_SLOT || 1 << log2_slot < least {
            let expected = format!("slots for {least} bytes, at most {MAX_LOG2_SLOT}");
            return Err(odd("log2_elem_size", log2_slot, expected));
        }
        let slots = u64::from(mask) + 1;
        let end = queue::DATA as u64 + (slots << log2_slot);
        if !slots.is_power_of_two() || slots < 2 || end > memory.len() as u64 {
            let expected = format!("slots that fit into {} bytes", memory.len());
            return Err(odd("index_mask", format!("{mask:#x}"), expected));
        }
        Ok(Self {
            memory,
            mask,
            log2_slot,
        })
    }

    /// Bytes of a slot.
    pub(crate) fn slot_len(&self) -> usize {
        1 << self.log2_slot
    }

    /// Entries that the queue holds.
    pub(crate) fn capacity(&self) -> u32 {
        self.mask
    }

    #[inline]
    fn next(&self, index: u32) -> u32 {
        (index + 1) & self.mask
    }

    #[inline]
    fn slot(&self, index: u32) -> usize {
        queue::DATA + (((index & self.mask) as usize) << self.log2_slot)
    }

    /// An index of the head. What the kernel stores is masked; should it not
    /// be, the slot is inside all the same.
    #[inline]
    fn index(&self, offset: usize) -> u32 {
        self.memory.load_u32(offset).unwrap_or(0) & self.mask
    }
}

/// A queue that this side fills: sends or receives.
#[derive(Debug)]
pub(crate) struct Producer {
    ring: Ring,
    /// Ours; the kernel sees it when it is published.
    produced: u32,
    /// The kernel's, when we last looked.
    consumed: u32,
}

impl Producer {
    pub(crate) fn new(ring: Ring) -> Self {
        Self {
            produced: ring.index(queue::PRODUCER_INDEX),
            consumed: ring.index(queue::CONSUMER_INDEX),
            ring,
        }
    }

    /// Bytes of a slot.
    pub(crate) fn slot_len(&self) -> usize {
        self.ring.slot_len()
    }

    /// Entries that the queue holds.
    pub(crate) fn capacity(&self) -> u32 {
        self.ring.capacity()
    }

    /// Whether an entry can be filled.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        let next = self.ring.next(self.produced);
        if next == self.consumed {
            self.consumed = self.ring.index(queue::CONSUMER_INDEX);
        }
        next != self.consumed
    }

    /// Writes a part of the entry that is being filled, inside its slot.
    #[inline]
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let slot = self.ring.slot(self.produced);
        put(&self.ring.memory, slot + offset, bytes);
    }

    /// The entry is complete.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.produced = self.ring.next(self.produced);
    }

    /// Shows the kernel all complete entries.
    #[inline]
    pub(crate) fn publish(&self) {
        let stored = self
            .ring
            .memory
            .store_u32(queue::PRODUCER_INDEX, self.produced);
        debug_assert!(stored, "the head is inside");
    }
}

/// A queue that the kernel fills: completions.
#[derive(Debug)]
pub(crate) struct Consumer {
    ring: Ring,
    consumed: u32,
}

impl Consumer {
    pub(crate) fn new(ring: Ring) -> Self {
        Self {
            consumed: ring.index(queue::CONSUMER_INDEX),
            ring,
        }
    }

    /// Takes up to `limit` entries and hands each to `take`; returns how many.
    #[inline]
    pub(crate) fn drain<T>(&mut self, limit: usize, mut take: impl FnMut(usize, T)) -> usize
    where
        T: zerocopy::FromBytes + zerocopy::IntoBytes + Default,
    {
        let produced = self.ring.index(queue::PRODUCER_INDEX);
        let mut taken = 0;
        while taken < limit && self.consumed != produced {
            let slot = self.ring.slot(self.consumed);
            take(taken, get(&self.ring.memory, slot));
            self.consumed = self.ring.next(self.consumed);
            taken += 1;
        }
        if taken > 0 {
            let stored = self
                .ring
                .memory
                .store_u32(queue::CONSUMER_INDEX, self.consumed);
            debug_assert!(stored, "the head is inside");
        }
        taken
    }
}

/// The queue has no room for another request.
pub(crate) fn full(queue: &'static str, depth: u32) -> VerbsError {
    VerbsError::QueueFull { queue, depth }
}
