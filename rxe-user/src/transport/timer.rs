//! The timers of all queue pairs.
//!
//! A deadline moves with every acknowledgement, so the heap isn't kept exact:
//! each queue pair has at most a few entries, never later than its deadline,
//! and an entry that comes up too early is put back at the right time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Time;

/// Deadlines by queue pair slot, earliest first.
#[derive(Debug, Default)]
pub(crate) struct TimerHeap {
    entries: BinaryHeap<Reverse<(Time, u32)>>,
}

impl TimerHeap {
    /// Makes room for one more queue pair's timers.
    pub(crate) fn reserve(&mut self) {
        self.entries.reserve(4);
    }

    pub(crate) fn add(&mut self, deadline: Time, slot: u32) {
        self.entries.push(Reverse((deadline, slot)));
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Option<Time> {
        self.entries.peek().map(|Reverse((deadline, _))| *deadline)
    }

    /// Takes an entry whose time has come.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<u32> {
        if self.next()? > now {
            return None;
        }
        self.entries.pop().map(|Reverse((_, slot))| slot)
    }
}
