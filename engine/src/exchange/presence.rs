//! Whether the peer is still there.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use super::cm_channel::CmConnection;

/// Tells of the control connection's end without taking part in the dialogue.
pub enum Presence {
    /// Over TCP.
    Socket(OwnedFd),
    /// Over a queue pair.
    Manager(Arc<CmConnection>),
}

impl Presence {
    /// Of a control connection over TCP.
    ///
    /// # Errors
    /// When the system has no file descriptor left.
    pub fn of_socket(socket: &impl AsFd) -> io::Result<Self> {
        Ok(Self::Socket(socket.as_fd().try_clone_to_owned()?))
    }

    /// Whether the peer has closed the connection. Doesn't wait.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Socket(socket) => {
                let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
                match recv(socket.as_raw_fd(), &mut [0], flags) {
                    // Its next message: it is further than we are.
                    Ok(1..) | Err(Errno::EAGAIN | Errno::EINTR) => false,
                    Ok(0) | Err(_) => true,
                }
            }
            Self::Manager(connection) => connection.has_ended(),
        }
    }
}
