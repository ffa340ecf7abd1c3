//! A queue that siw shares with this process: an array of entries without
//! indices. The flag VALID in an entry says whose it is; who has filled or
//! taken one goes on to the next.

use std::sync::atomic::{Ordering, fence};

use crate::drivers::{get, put};
use crate::memory::Buffer;
use crate::uapi::siw::{FLAGS_OFFSET, NO_KEY, flags};
use crate::uverbs::{Uverbs, failed, odd};
use crate::{Result, VerbsError};

/// A mapped queue of entries of `ENTRY` bytes.
#[derive(Debug)]
pub(crate) struct Ring<const ENTRY: usize> {
    memory: Buffer,
    entries: u32,
    /// The next entry to fill or to take.
    at: u32,
}

impl<const ENTRY: usize> Ring<ENTRY> {
    /// Maps the queue of a command's answer, and `behind` bytes after it.
    ///
    /// # Errors
    /// When the kernel refuses, or the queue isn't one.
    pub(crate) fn map(uverbs: &Uverbs, key: u64, entries: u32, behind: usize) -> Result<Self> {
        if key == NO_KEY || !entries.is_power_of_two() {
            let seen = format!("{entries} entries at {key:#x}");
            let error = odd("a queue of", seen, "a power of two of entries");
            return Err(failed("map a queue of siw", error));
        }
        Ok(Self {
            memory: uverbs.map(key, entries as usize * ENTRY + behind)?,
            entries,
            at: 0,
        })
    }

    fn offset(&self, index: u32) -> usize {
        (index & (self.entries - 1)) as usize * ENTRY
    }

    /// The word of an entry that its flags begin: the rest are 16 bits that
    /// change with them.
    fn word(&self, index: u32) -> [u8; 4] {
        let word = self.memory.load_u32(self.offset(index) + FLAGS_OFFSET);
        word.unwrap_or(0).to_ne_bytes()
    }

    /// Whether the entry is the other side's (send and receive queues: the
    /// kernel's; completion queues: ours).
    fn is_valid(&self, index: u32) -> bool {
        // The flag is in the first byte of 16 bits, and in the only of 8.
        let [first, second, ..] = self.word(index);
        u16::from_ne_bytes([first, second]) & flags::VALID != 0
    }

    /// Whether the next entry can be filled.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_valid(self.at)
    }

    /// Fills the next entry. Its flags, with VALID, become visible last.
    pub(crate) fn push(&mut self, entry: &[u8; ENTRY]) {
        let offset = self.offset(self.at);
        let (head, rest) = entry.split_at(FLAGS_OFFSET);
        put(&self.memory, offset, head);
        put(&self.memory, offset + FLAGS_OFFSET + 4, &rest[4..]);
        let word = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]);
        let stored = self.memory.store_u32(offset + FLAGS_OFFSET, word);
        debug_assert!(stored, "entries are inside and aligned");
        self.at = self.at.wrapping_add(1);
    }

    /// Whether the kernel has done all entries before the last `count`, and
    /// so may not look at them unless it is told.
    pub(crate) fn was_idle_before(&self, count: u32) -> bool {
        // What was filled has to be visible before the older entry is looked
        // at: the kernel clears that, then looks for the next.
        fence(Ordering::SeqCst);
        count >= self.entries || !self.is_valid(self.at.wrapping_sub(count + 1))
    }

    /// Takes the next entry that the kernel has filled.
    pub(crate) fn pop<T>(&mut self) -> Option<T>
    where
        T: zerocopy::FromBytes + zerocopy::IntoBytes + Default,
    {
        if !self.is_valid(self.at) {
            return None;
        }
        let offset = self.offset(self.at);
        let entry = get(&self.memory, offset);
        let stored = self.memory.store_u32(offset + FLAGS_OFFSET, 0);
        debug_assert!(stored, "entries are inside and aligned");
        self.at = self.at.wrapping_add(1);
        Some(entry)
    }

    /// Stores a word behind the entries, visible to the kernel before what
    /// this side reads next.
    pub(crate) fn store_behind(&self, value: u32) {
        let stored = self.memory.store_u32(self.entries as usize * ENTRY, value);
        debug_assert!(stored, "mapped with room behind");
        fence(Ordering::SeqCst);
    }

    /// The queue has no room for another request.
    pub(crate) fn full(&self, queue: &'static str) -> VerbsError {
        let depth = self.entries;
        VerbsError::QueueFull { queue, depth }
    }
}
