//! The timers of all queue pairs.
//!
//! A deadline moves with every acknowledgement, so the heap isn't kept exact:
//! each queue pair has at most one entry, never later than its deadline, and
//! an entry that comes up too early is put back at the right time.

use crate::time::Time;

/// Deadlines by queue pair slot in a binary heap, earliest first. It knows
/// where each slot's entry is, so that it never holds more than one.
#[derive(Debug, Default)]
pub(crate) struct TimerHeap {
    entries: Vec<(Time, u32)>,
    /// Where in `entries` each slot is.
    places: Vec<Option<u32>>,
}

impl TimerHeap {
    /// Makes room for the timer of `slot`.
    pub(crate) fn reserve(&mut self, slot: u32) {
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, None);
        }
        self.entries.reserve(self.places.len());
    }

    /// Wakes for `slot` no later than at `deadline`.
    pub(crate) fn wake_by(&mut self, deadline: Time, slot: u32) {
        match self.place(slot) {
            Some(place) => {
                if let Some(entry) = self.entries.get_mut(place)
                    && deadline < entry.0
                {
                    entry.0 = deadline;
                    self.sift_up(place);
                }
            }
            None => {
                self.entries.push((deadline, slot));
                self.settle(self.entries.len() - 1);
                self.sift_up(self.entries.len() - 1);
            }
        }
    }

    /// Forgets the timer of `slot`.
    pub(crate) fn cancel(&mut self, slot: u32) {
        let Some(place) = self.place(slot) else {
            return;
        };
        self.entries.swap_remove(place);
        self.set_place(slot, None);
        if place < self.entries.len() {
            self.settle(place);
            self.sift_up(place);
            self.sift_down(place);
        }
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Option<Time> {
        self.entries.first().map(|(deadline, _)| *deadline)
    }

    /// Takes an entry whose time has come.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<u32> {
        let (_, slot) = *self
            .entries
            .first()
            .filter(|(deadline, _)| *deadline <= now)?;
        self.cancel(slot);
        Some(slot)
    }

    fn place(&self, slot: u32) -> Option<usize> {
        let place = *self.places.get(slot as usize)?;
        place.map(|place| place as usize)
    }

    fn set_place(&mut self, slot: u32, place: Option<u32>) {
        if let Some(target) = self.places.get_mut(slot as usize) {
            *target = place;
        }
    }

    /// Notes where the entry at `place` is.
    fn settle(&mut self, place: usize) {
        if let Some((_, slot)) = self.entries.get(place).copied() {
            self.set_place(slot, Some(place as u32));
        }
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.is_earlier(place, parent) {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let child = if self.is_earlier(left + 1, left) {
                left + 1
            } else {
                left
            };
            if !self.is_earlier(child, place) {
                break;
            }
            self.swap(child, place);
            place = child;
        }
    }

    /// Whether there is an entry at `place`, earlier than the one at `other`.
    fn is_earlier(&self, place: usize, other: usize) -> bool {
        match (self.entries.get(place), self.entries.get(other)) {
            (Some(entry), Some(other)) => entry < other,
            _ => false,
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.entries.swap(one, other);
        self.settle(one);
        self.settle(other);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn only_earlier_deadlines_move_an_entry() {
        let mut timers = TimerHeap::default();
        timers.reserve(1);
        timers.wake_by(at(5), 1);
        timers.wake_by(at(9), 1);
        assert_eq!(timers.next(), Some(at(5)));
        timers.wake_by(at(3), 1);
        assert_eq!(timers.pop_due(at(2)), None);
        assert_eq!(timers.pop_due(at(3)), Some(1));
        assert_eq!(timers.next(), None, "one entry per slot");
    }

    proptest! {
        /// Against a list of the earliest deadline per slot.
        #[test]
        fn entries_come_up_in_order(
            steps in prop::collection::vec((0_u32..8, 0_u64..100, 0_u8..4), 1..200)
        ) {
            let mut timers = TimerHeap::default();
            timers.reserve(7);
            let mut model: [Option<u64>; 8] = [None; 8];
            for (slot, nanos, action) in steps {
                let entry = &mut model[slot as usize];
                match action {
                    0 | 1 => {
                        timers.wake_by(at(nanos), slot);
                        *entry = Some(entry.map_or(nanos, |earlier| earlier.min(nanos)));
                    }
                    2 => {
                        timers.cancel(slot);
                        *entry = None;
                    }
                    _ => {
                        let due = timers.pop_due(at(nanos));
                        let first = model.iter().copied().flatten().min();
                        prop_assert_eq!(due.is_some(), first.is_some_and(|first| first <= nanos));
                        if let Some(due) = due {
                            prop_assert_eq!(model[due as usize].take(), first);
                        }
                    }
                }
                let first = model.iter().copied().flatten().min();
                prop_assert_eq!(timers.next(), first.map(at));
            }
        }
    }
}
