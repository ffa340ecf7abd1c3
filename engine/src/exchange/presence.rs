//! Whether the peer is still there.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use super::cm_channel::CmConnection;

/// What has ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The peer.
    Peer,
    /// Our device, which is gone.
    Device,
}

/// Tells of the control connection's end without taking part in the dialogue.
pub enum Presence {
    /// Over TCP.
    Socket(OwnedFd),
    /// Over a queue pair.
    Manager(Arc<CmConnection>),
    /// There is no peer that could go (`--connectionless`).
    Unneeded,
}

impl Presence {
    /// Of a control connection over TCP.
    ///
    /// # Errors
    /// When the system has no file descriptor left.
    pub fn of_socket(socket: &impl AsFd) -> io::Result<Self> {
        Ok(Self::Socket(socket.as_fd().try_clone_to_owned()?))
    }

    /// How the connection has ended, if it has. Doesn't wait.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        match self {
            Self::Socket(socket) => {
                let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
                match recv(socket.as_raw_fd(), &mut [0], flags) {
                    // Its next message: it is further than we are.
                    Ok(1..) | Err(Errno::EAGAIN | Errno::EINTR) => None,
                    Ok(0) | Err(_) => Some(End::Peer),
                }
            }
            Self::Manager(connection) => connection.ended(),
            Self::Unneeded => None,
        }
    }
}
