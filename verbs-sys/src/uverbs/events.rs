//! What arrives on descriptors: asynchronous events and completion events
//! (`ib_uverbs_async_event_desc`, `ib_uverbs_comp_event_desc`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use zerocopy::{FromBytes, IntoBytes};

use super::Uverbs;
use crate::uapi::user_verbs::{AsyncEventDesc, CompEventDesc};

/// Makes reads return when there is nothing.
pub(super) fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

impl Uverbs {
    /// Readable when there are asynchronous events.
    pub(crate) fn async_fd(&self) -> BorrowedFd<'_> {
        self.async_fd.as_fd()
    }

    /// The next asynchronous event, if there is one: what it concerns, as the
    /// object's user handle or the port's number, and its kind.
    pub(crate) fn next_async_event(&self) -> Option<AsyncEventDesc> {
        read_one(&self.async_fd)
    }
}

/// The descriptor of a completion channel.
#[derive(Debug)]
pub(crate) struct CompletionEvents(OwnedFd);

impl CompletionEvents {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&fd)?;
        Ok(Self(fd))
    }

    /// Readable when there are events.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The user handle of the next queue that has been notified.
    pub(crate) fn next(&self) -> Option<u64> {
        read_one(&self.0).map(|event: CompEventDesc| event.cq_handle)
    }

    /// Waits for an event, at most `timeout`.
    ///
    /// # Errors
    /// When the kernel refuses to wait, for example because of a signal.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = match timeout {
            None => PollTimeout::NONE,
            Some(timeout) => PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX),
        };
        poll(&mut [PollFd::new(self.fd(), PollFlags::POLLIN)], timeout)?;
        Ok(())
    }
}

/// Reads one event. The kernel delivers whole events, one per call.
fn read_one<T: FromBytes + IntoBytes + Default>(fd: &OwnedFd) -> Option<T> {
    let mut event = T::default();
    loop {
        return match nix::unistd::read(fd, event.as_mut_bytes()) {
            Ok(length) if length == size_of::<T>() => Some(event),
            Ok(0) | Err(Errno::EAGAIN) => None,
            Err(Errno::EINTR) => continue,
            Ok(length) => {
                let expected = size_of::<T>();
                log::warn!("an event of {length} bytes from the kernel, expected {expected}");
                None
            }
            Err(error) => {
                log::warn!("cannot read events of the device: {error}");
                None
            }
        };
    }
}
