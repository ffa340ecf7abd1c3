//! Notification by file descriptor: of completions, and of asynchronous events.

use std::any::Any;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use verbs_sys::{CompletionChannel, Result, VerbsError};

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

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    fn messages(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where completion queues announce completions: their handles.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) mailbox: Arc<Mailbox<u32>>,
}

impl Channel {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            mailbox: Arc::new(Mailbox::new()?),
        })
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
        let timeout = match timeout {
            None => PollTimeout::NONE,
            Some(timeout) => PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX),
        };
        let mut fds = [PollFd::new(self.fd(), PollFlags::POLLIN)];
        poll(&mut fds, timeout).map_err(|errno| io_error("wait for a completion", errno))?;
        Ok(self.next_event())
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

    #[test]
    fn the_descriptor_is_readable_while_there_are_messages() {
        let channel = Channel::new().unwrap();
        let short = Some(Duration::from_millis(1));
        assert_eq!(channel.wait(short).unwrap(), None);
        channel.mailbox.post(7);
        channel.mailbox.post(8);
        assert_eq!(channel.wait(None).unwrap(), Some(7));
        assert_eq!(channel.wait(None).unwrap(), Some(8));
        assert_eq!(channel.wait(short).unwrap(), None);
        channel.mailbox.post(9);
        assert_eq!(channel.wait(None).unwrap(), Some(9));
    }
}
