//! Which object an event concerns.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::EventSource;

/// Gives each object a number that the kernel repeats in events.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    last: AtomicU32,
    sources: Mutex<HashMap<u64, EventSource>>,
}

impl Registry {
    /// A number that no other object has.
    pub(crate) fn reserve(&self) -> u32 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Says what has the number.
    pub(crate) fn enter(&self, number: u32, source: EventSource) {
        self.sources().insert(number.into(), source);
    }

    /// The object is gone.
    pub(crate) fn remove(&self, number: u32) {
        self.sources().remove(&number.into());
    }

    /// What has the number; `None` when it is gone.
    pub(crate) fn source(&self, number: u64) -> Option<EventSource> {
        self.sources().get(&number).copied()
    }

    fn sources(&self) -> MutexGuard<'_, HashMap<u64, EventSource>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
