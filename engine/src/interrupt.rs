//! How a user's interrupt (SIGINT) ends a run: loops look at a flag, waits on
//! the control connection are woken.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::socket::{Shutdown, shutdown};

/// Shared by whoever learns of the interrupt and whoever has to end. Clones
/// refer to the same interrupt.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    requested: AtomicBool,
    attention: Mutex<Attention>,
}

/// Who notices an interrupt.
#[derive(Debug, Default)]
struct Attention {
    /// Sockets that somebody may wait on.
    sockets: Vec<OwnedFd>,
    /// A loop looks at the flag and ends in good order with the peer's help.
    loop_ends_by_itself: bool,
    /// Whoever waits looks at the flag now and then.
    waits_look: bool,
}

impl Interrupt {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the user wants an end.
    #[inline]
    #[must_use]
    pub fn requested(&self) -> bool {
        self.inner.requested.load(Ordering::Relaxed)
    }

    /// The user wants an end: sets the flag and wakes whoever waits on a
    /// socket. Returns whether somebody will notice; nobody does before there
    /// is a connection, and then there is nothing to clean up either.
    pub fn request(&self) -> bool {
        let attention = self.attention();
        self.inner.requested.store(true, Ordering::Relaxed);
        if attention.loop_ends_by_itself {
            return true;
        }
        for socket in &attention.sockets {
            // A socket that is no longer connected wakes its reader anyway.
            let _ = shutdown(socket.as_raw_fd(), Shutdown::Both);
        }
        attention.waits_look || !attention.sockets.is_empty()
    }

    /// From now on an interrupt shuts this socket down, which ends any wait on it.
    ///
    /// # Errors
    /// When the system has no file descriptor left.
    pub(crate) fn attend(&self, socket: &impl AsFd) -> std::io::Result<()> {
        let socket = socket.as_fd().try_clone_to_owned()?;
        self.attention().sockets.push(socket);
        Ok(())
    }

    /// From now on whoever waits looks at [`Self::requested`] several times a
    /// second.
    pub(crate) fn leave_to_waits(&self) {
        self.attention().waits_look = true;
    }

    /// A loop begins (or ends) that looks at [`Self::requested`] by itself and
    /// still needs the connection after an interrupt.
    pub(crate) fn leave_to_loop(&self, looks: bool) {
        self.attention().loop_ends_by_itself = looks;
    }

    fn attention(&self) -> MutexGuard<'_, Attention> {
        self.inner
            .attention
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use std::io::Read as _;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn nobody_notices_before_there_is_a_connection() {
        let interrupt = Interrupt::new();
        assert!(!interrupt.requested());
        assert!(!interrupt.request());
        assert!(interrupt.requested());
    }

    #[test]
    fn a_wait_on_the_connection_is_woken() {
        let interrupt = Interrupt::new();
        let (mut near, _far) = pair();
        interrupt.attend(&near).unwrap();
        let reader = std::thread::spawn(move || near.read(&mut [0]).unwrap());
        assert!(interrupt.request());
        assert_eq!(reader.join().unwrap(), 0);
    }

    #[test]
    fn waits_that_look_notice() {
        let interrupt = Interrupt::new();
        interrupt.leave_to_waits();
        assert!(interrupt.request());
        assert!(interrupt.requested());
    }

    #[test]
    fn a_loop_keeps_the_connection() {
        let interrupt = Interrupt::new();
        let (near, mut far) = pair();
        interrupt.attend(&near).unwrap();
        interrupt.leave_to_loop(true);
        assert!(interrupt.request());
        std::io::Write::write_all(&mut &near, b"x").unwrap();
        assert_eq!(far.read(&mut [0]).unwrap(), 1);
        interrupt.leave_to_loop(false);
        assert!(interrupt.request());
        assert_eq!(far.read(&mut [0]).unwrap(), 0);
    }
}
