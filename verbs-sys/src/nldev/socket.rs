//! The socket: where requests go and answers come from.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SetSockOpt, SockFlag, SockProtocol, SockType, bind, recv,
    send, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};

use super::NldevError;

/// Longest datagram: the kernel sends at most 32 KiB of a dump at a time.
const LONGEST: usize = 64 << 10;
/// How long the kernel may take with an answer, in seconds; it usually has
/// it ready when the request is sent.
const PATIENCE: i64 = 30;

/// A switch of netlink sockets, by its number at `SOL_NETLINK`.
#[derive(Debug, Clone, Copy)]
struct Switch(libc::c_int);

/// Acknowledgements without the request in them.
const CAP_ACK: Switch = Switch(libc::NETLINK_CAP_ACK);
/// Acknowledgements with a text.
const EXT_ACK: Switch = Switch(libc::NETLINK_EXT_ACK);

impl SetSockOpt for Switch {
    type Val = bool;

    fn set<F: AsFd>(&self, fd: &F, value: &bool) -> nix::Result<()> {
        let value = libc::c_int::from(*value);
        // SAFETY: the descriptor is open for the call, and the kernel reads
        // from `value` as many bytes as it has.
        let result = unsafe {
            libc::setsockopt(
                fd.as_fd().as_raw_fd(),
                libc::SOL_NETLINK,
                self.0,
                (&raw const value).cast(),
                size_of_val(&value) as libc::socklen_t,
            )
        };
        Errno::result(result).map(drop)
    }
}

/// How messages travel: the kernel's socket, or in tests a list of answers.
pub trait Transport {
    /// Sends one message.
    ///
    /// # Errors
    /// When the kernel doesn't take it.
    fn send(&mut self, message: &[u8]) -> io::Result<()>;

    /// Receives one datagram, which holds one message or several.
    ///
    /// # Errors
    /// When there is none, or it is longer than the buffer.
    fn receive(&mut self) -> io::Result<Vec<u8>>;
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        (**self).send(message)
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        (**self).receive()
    }
}

/// A socket of the family `NETLINK_RDMA`.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Opens and binds it.
    ///
    /// # Errors
    /// `NoSocket` when this kernel hasn't got the family.
    pub fn open() -> Result<Self, NldevError> {
        let open = || -> nix::Result<OwnedFd> {
            let fd = socket(
                AddressFamily::Netlink,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                SockProtocol::NetlinkRDMA,
            )?;
            // Kernels before 4.12 lack the text, which is only a help.
            let _ = setsockopt(&fd, CAP_ACK, &true);
            let _ = setsockopt(&fd, EXT_ACK, &true);
            setsockopt(&fd, ReceiveTimeout, &TimeVal::seconds(PATIENCE))?;
            bind(fd.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
            Ok(fd)
        };
        open()
            .map(Self)
            .map_err(|errno| NldevError::NoSocket(errno.into()))
    }
}

impl Transport for Socket {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let sent = send(self.0.as_raw_fd(), message, MsgFlags::empty())?;
        if sent == message.len() {
            return Ok(());
        }
        Err(io::ErrorKind::WriteZero.into())
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; LONGEST];
        let length = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC)?;
        if length > buffer.len() {
            return Err(io::Error::other(format!(
                "a datagram of {length} bytes, expected at most {LONGEST}"
            )));
        }
        buffer.truncate(length);
        Ok(buffer)
    }
}
