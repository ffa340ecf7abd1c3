//! Notification by file descriptor: of completions, and of asynchronous events.

use std::any::Any;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use verbs_sys::{CompletionChannel, Result, VerbsError};

use super::context::Inner;

/// A queue of messages and a descriptor that is readable while there are any.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    event: EventFd,
    messages: Mutex<VecDeque<T>>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Result<Self> {
        let event =
            EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
                .map_err(|errno| io_error("create an eventfd", errno))?;
        Ok(Self {
            event,
            messages: Mutex::new(VecDeque::new()),
        })
    }

    pub(crate) fn post(&self, message: T) {
        let mut messages = self.messages();
        messages.push_back(message);
        if messages.len() == 1 {
            // Fails only when the counter is full, and it is readable then.
            let _ = self.event.write(1);
        }
    }

    pub(crate) fn take(&self) -> Option<T> {
        let mut messages = self.messages();
        let message = messages.pop_front();
        if message.is_some() && messages.is_empty() {
            // Fails only when it isn't readable, which is what is wanted.
            let _ = self.event.read();
        }
        message
    }

    /// Forgets the messages that are about something that is gone.
    pub(crate) fn forget(&self, is_gone: impl Fn(&T) -> bool) {
        let mut messages = self.messages();
        let before = messages.len();
        messages.retain(|message| !is_gone(message));
        if before > 0 && messages.is_empty() {
            // As in `take`.
            let _ = self.event.read();
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    fn messages(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where completion queues announce completions: their handles.
pub(crate) struct Channel {
    context: Arc<Inner>,
    mailbox: Arc<Mailbox<u32>>,
}

impl Channel {
    pub(crate) fn new(context: &Arc<Inner>) -> Result<Self> {
        Ok(Self {
            context: Arc::clone(context),
            mailbox: Arc::new(Mailbox::new()?),
        })
    }

    pub(crate) fn mailbox(&self) -> &Arc<Mailbox<u32>> {
        &self.mailbox
    }

    pub(crate) fn belongs_to(&self, context: &Arc<Inner>) -> bool {
        Arc::ptr_eq(&self.context, context)
    }
}

impl CompletionChannel for Channel {
    fn fd(&self) -> BorrowedFd<'_> {
        self.mailbox.fd()
    }

    fn next_event(&self) -> Option<u32> {
        self.mailbox.take()
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<Option<u32>> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if let Some(handle) = self.next_event() {
                return Ok(Some(handle));
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            self.context.port.progress.take_over();
            let mut fds = [PollFd::new(self.fd(), PollFlags::POLLIN)];
            ppoll(&mut fds, left.map(TimeSpec::from), None)
                .map_err(|errno| io_error("wait for a completion", errno))?;
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(crate) fn io_error(action: &str, errno: Errno) -> VerbsError {
    VerbsError::Io {
        action: action.to_owned(),
        source: errno.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(mailbox: &Mailbox<u32>) -> bool {
        let mut fds = [PollFd::new(mailbox.fd(), PollFlags::POLLIN)];
        ppoll(&mut fds, Some(TimeSpec::from(Duration::ZERO)), None).unwrap() == 1
    }

    #[test]
    fn the_descriptor_is_readable_while_there_are_messages() {
        let mailbox = Mailbox::new().unwrap();
        assert!(!is_readable(&mailbox));
        mailbox.post(7);
        mailbox.post(8);
        for message in [7, 8] {
            assert!(is_readable(&mailbox));
            assert_eq!(mailbox.take(), Some(message));
        }
        assert!(!is_readable(&mailbox));
        assert_eq!(mailbox.take(), None);
        mailbox.post(9);
        assert!(is_readable(&mailbox));
    }

    #[test]
    fn what_is_about_something_gone_is_forgotten() {
        let mailbox = Mailbox::new().unwrap();
        for message in [7, 8, 7] {
            mailbox.post(message);
        }
        mailbox.forget(|message| *message == 7);
        assert!(is_readable(&mailbox));
        mailbox.forget(|message| *message == 8);
        assert!(!is_readable(&mailbox));
        mailbox.post(8);
        assert_eq!(mailbox.take(), Some(8));
    }
}
