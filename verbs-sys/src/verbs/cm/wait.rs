//! How long to wait, and what ends it before.

use std::fmt;
use std::time::{Duration, Instant};

/// A bounded wait.
#[derive(Clone, Copy, Default)]
pub struct Wait<'a> {
    deadline: Option<Instant>,
    limit: Option<Duration>,
    interrupt: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Wait<'a> {
    /// How often the interrupt is looked at.
    const SLICE: Duration = Duration::from_millis(50);

    /// At most `limit`, from now on; without end if `None`.
    #[must_use]
    pub fn new(limit: Option<Duration>) -> Self {
        Self {
            // A limit beyond the clock's range is no limit.
            deadline: limit.and_then(|limit| Instant::now().checked_add(limit)),
            limit,
            interrupt: None,
        }
    }

    /// At most `limit`, from now on.
    #[must_use]
    pub fn at_most(limit: Duration) -> Self {
        Self::new(Some(limit))
    }

    /// Ends when `interrupt` says yes. It is asked several times a second.
    #[must_use]
    pub fn or(self, interrupt: &'a dyn Fn() -> bool) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// The limit it was made with.
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Whether the interrupt says yes.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.interrupt.is_some_and(|interrupt| interrupt())
    }

    /// How long to sleep at most before looking again; `None` when the time
    /// is over.
    #[must_use]
    pub fn slice(&self) -> Option<Duration> {
        let Some(deadline) = self.deadline else {
            return Some(Self::SLICE);
        };
        let left = deadline.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left.min(Self::SLICE))
    }
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_out() {
        assert_eq!(Wait::at_most(Duration::ZERO).slice(), None);
        assert_eq!(Wait::new(None).slice(), Some(Wait::SLICE));
        assert_eq!(Wait::at_most(Duration::MAX).slice(), Some(Wait::SLICE));
        let short = Wait::at_most(Duration::from_millis(10)).slice();
        assert!(short.is_some_and(|slice| slice <= Duration::from_millis(10)));
    }

    #[test]
    fn the_interrupt_is_asked() {
        assert!(!Wait::new(None).interrupted());
        let yes = || true;
        assert!(Wait::new(None).or(&yes).interrupted());
    }
}
