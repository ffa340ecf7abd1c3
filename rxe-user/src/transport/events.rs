//! Asynchronous events on their way to the consumer.

use std::collections::VecDeque;

use verbs_sys::{AsyncEvent, EventKind, EventSource};

/// Events that wait; when the consumer doesn't fetch them the newest are lost.
#[derive(Debug)]
pub(crate) struct EventQueue {
    events: VecDeque<AsyncEvent>,
}

impl EventQueue {
    const CAPACITY: usize = 1024;

    pub(crate) fn new() -> Self {
        Self {
            events: VecDeque::with_capacity(Self::CAPACITY),
        }
    }

    pub(crate) fn raise(&mut self, kind: EventKind, source: EventSource) {
        if self.events.len() < Self::CAPACITY {
            self.events.push_back(AsyncEvent { kind, source });
        }
    }

    pub(crate) fn next(&mut self) -> Option<AsyncEvent> {
        self.events.pop_front()
    }
}
