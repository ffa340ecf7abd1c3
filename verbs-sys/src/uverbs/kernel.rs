//! The system calls on an open uverbs device. All `unsafe` of the command
//! channel is here.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::command::{Ioctl, Write};
use crate::memory::Buffer;
use crate::uapi::ioctl::RDMA_VERBS_IOCTL;
use crate::uapi::user_verbs::{Doorbell, PostSendResp};

/// Longest answer of the write interface: that of the extended device query.
const MAX_ANSWER: usize = 320;

/// Who executes commands: the kernel, or a test in its place.
pub(crate) trait Kernel: Send + Sync {
    /// Executes a command in the attribute form.
    ///
    /// # Errors
    /// What the kernel says.
    fn ioctl(&self, command: &mut Ioctl<'_, '_>) -> io::Result<()>;

    /// Executes a command of the write interface.
    ///
    /// # Errors
    /// What the kernel says.
    fn write(&self, command: &mut Write<'_>) -> io::Result<()>;

    /// Writes the command `POST_SEND` without work requests: the doorbell of a
    /// queue pair. It is the only command of the data path, so it has a form
    /// of its own.
    ///
    /// # Errors
    /// What the kernel says.
    fn doorbell(&self, qp_handle: u32) -> io::Result<()>;

    /// Maps a queue that a command has answered.
    ///
    /// # Errors
    /// What the kernel says.
    fn map(&self, offset: u64, len: usize) -> io::Result<Buffer>;
}

/// `/dev/infiniband/uverbsN`, open.
#[derive(Debug)]
pub(crate) struct CharacterDevice(File);

impl CharacterDevice {
    /// Takes an open device.
    pub(crate) fn new(file: File) -> Self {
        Self(file)
    }
}

impl Kernel for CharacterDevice {
    fn ioctl(&self, command: &mut Ioctl<'_, '_>) -> io::Result<()> {
        let mut frame = command.encode()?;
        // SAFETY: the frame is what this ioctl takes, and its length field
        // covers only attributes inside it. The addresses in it are those of
        // slices that `command` borrows for longer than this call, for writing
        // where the kernel writes, with their lengths.
        let result =
            unsafe { libc::ioctl(self.0.as_raw_fd(), RDMA_VERBS_IOCTL as _, &raw mut frame) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        command.take_back(&frame);
        Ok(())
    }

    fn write(&self, command: &mut Write<'_>) -> io::Result<()> {
        let mut answer = [0_u64; MAX_ANSWER / 8];
        if command.answer_len() > MAX_ANSWER {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (frame, length) = command.encode(answer.as_mut_ptr() as u64)?;
        // SAFETY: `length` bytes of the frame are initialised. The kernel
        // writes at most as many bytes to `answer` as the frame says, which
        // are not more than it has (checked above).
        let written = unsafe { libc::write(self.0.as_raw_fd(), frame.as_ptr().cast(), length) };
        if written < 0 {
            return Err(io::Error::last_os_error());
        }
        command.take_back(zerocopy::IntoBytes::as_bytes(&answer));
        Ok(())
    }

    #[inline]
    fn doorbell(&self, qp_handle: u32) -> io::Result<()> {
        let mut answer = PostSendResp::default();
        let frame = Doorbell::new(qp_handle, (&raw mut answer) as u64);
        // SAFETY: the frame is initialised. The kernel writes as many bytes to
        // `answer` as the frame says, which are its size.
        let written = unsafe {
            libc::write(
                self.0.as_raw_fd(),
                (&raw const frame).cast(),
                size_of::<Doorbell>(),
            )
        };
        match written {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn map(&self, offset: u64, len: usize) -> io::Result<Buffer> {
        Buffer::map_device(self.0.as_fd(), offset, len)
    }
}

/// Takes over a descriptor that the kernel has made.
///
/// # Errors
/// When it isn't one.
///
/// # Safety
/// It is the answer to a command that makes descriptors, and nobody else has
/// taken it over.
pub(crate) unsafe fn own(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(super::odd("descriptor", fd, "0 or more"));
    }
    // SAFETY: the caller's promise; it isn't -1.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
