//! The command channel of `/dev/infiniband/uverbsN`, common to all drivers.
//!
//! Kernels have two forms of commands. As rdma-core does, the attribute form
//! (`RDMA_VERBS_IOCTL`) is taken first; a command that has none there goes as
//! `INVOKE_WRITE`, and on a kernel without it by `write(2)`. The doorbell of
//! the software drivers is always a `write(2)`, the cheapest, unless the
//! process has changed its credentials, which `write(2)` refuses.
//!
//! - [`kernel`]: the system calls
//! - [`command`]: commands as values and as bytes
//! - [`query`]: device, port, GID table
//! - [`objects`], [`queues`], [`qp`]: what a context makes and releases
//! - [`events`]: asynchronous events and completion channels

pub(crate) mod command;
pub(crate) mod events;
pub(crate) mod kernel;
pub(crate) mod objects;
pub(crate) mod qp;
pub(crate) mod query;
pub(crate) mod queues;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt::Display;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use zerocopy::IntoBytes;

use self::command::{Attribute, Ioctl, Value, Write};
use self::kernel::{Kernel, own};
use crate::uapi::ioctl::{Method, UHW_IN, UHW_OUT};
use crate::uapi::user_verbs::{
    AnswerOnly, GetContextResp, HandleOnly, PostSend, PostSendResp, command as number,
};
use crate::{Result, VerbsError};

/// An open context of a device (`struct ib_uverbs_file` of the kernel).
pub(crate) struct Uverbs {
    kernel: Box<dyn Kernel>,
    driver: u32,
    /// Whether the kernel has the attribute form at all.
    attributes: AtomicBool,
    /// The doorbell has to be a command like others.
    no_write: AtomicBool,
    core_support: u64,
    /// Completion vectors (interrupts) of the context.
    comp_vectors: u32,
    async_fd: OwnedFd,
}

impl Uverbs {
    /// Makes a context on an open device of the driver with this number
    /// (`enum rdma_driver_id`), which answers `driver_out`.
    ///
    /// # Errors
    /// When the kernel refuses, or answers oddly.
    pub(crate) fn open(
        kernel: Box<dyn Kernel>,
        driver: u32,
        driver_out: &mut [u8],
    ) -> io::Result<Self> {
        match Self::open_by_attributes(&*kernel, driver, driver_out) {
            Ok((async_fd, core_support, comp_vectors)) => Ok(Self {
                kernel,
                driver,
                attributes: AtomicBool::new(true),
                no_write: AtomicBool::new(false),
                core_support,
                comp_vectors,
                async_fd,
            }),
            Err(error) if is_missing(&error) => {
                log::info!("no commands in the attribute form ({error}): they are written");
                let (async_fd, comp_vectors) = open_by_write(&*kernel, driver_out)?;
                Ok(Self {
                    kernel,
                    driver,
                    attributes: AtomicBool::new(false),
                    no_write: AtomicBool::new(false),
                    core_support: 0,
                    comp_vectors,
                    async_fd,
                })
            }
            Err(error) => Err(error),
        }
    }

    fn open_by_attributes(
        kernel: &dyn Kernel,
        driver: u32,
        driver_out: &mut [u8],
    ) -> io::Result<(OwnedFd, u64, u32)> {
        let (mut vectors, mut core_support) = (0_u32, 0_u64);
        kernel.ioctl(&mut Ioctl {
            method: Method::GET_CONTEXT,
            driver,
            attributes: &mut [
                Attribute::output(0, vectors.as_mut_bytes()),
                Attribute::output(1, core_support.as_mut_bytes()),
                Attribute::output(UHW_OUT, driver_out),
            ],
        })?;
        let mut attributes = [Attribute::new(0, Value::New(0))];
        kernel.ioctl(&mut Ioctl {
            method: Method::ASYNC_EVENT_ALLOC,
            driver,
            attributes: &mut attributes,
        })?;
        // SAFETY: the command has just made it.
        let async_fd = unsafe { own(attributes[0].made() as RawFd) }?;
        events::set_nonblocking(&async_fd)?;
        Ok((async_fd, core_support, vectors))
    }

    /// Tries a command that only exists in the attribute form.
    fn by_attributes(&self, method: Method, attributes: &mut [Attribute<'_>]) -> io::Result<()> {
        if !self.attributes.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        self.kernel.ioctl(&mut Ioctl {
            method,
            driver: self.driver,
            attributes,
        })
    }

    /// Executes a command of the write interface, in the form that the kernel has.
    fn by_write(&self, mut write: Write<'_>) -> io::Result<()> {
        if self.attributes.load(Ordering::Relaxed) {
            let invoked = self.invoke_write(&mut write);
            match invoked {
                Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => {}
                invoked => return invoked,
            }
        }
        self.kernel.write(&mut write)
    }

    fn invoke_write(&self, write: &mut Write<'_>) -> io::Result<()> {
        self.kernel.ioctl(&mut Ioctl {
            method: Method::INVOKE_WRITE,
            driver: self.driver,
            attributes: &mut [
                Attribute::new(2, Value::Constant(write.number.into())),
                Attribute::input(0, write.core_in),
                Attribute::output(1, write.core_out),
                Attribute::input(UHW_IN, write.driver_in),
                Attribute::output(UHW_OUT, write.driver_out),
            ],
        })
    }

    /// Releases an object that answers nothing.
    fn release(&self, method: Method, legacy: u32, handle: u32) -> io::Result<()> {
        let released = self.by_attributes(method, &mut [Attribute::new(0, Value::Object(handle))]);
        match released {
            Err(error) if is_missing(&error) => {
                let request = HandleOnly { handle };
                self.by_write(Write::new(legacy, request.as_bytes(), &mut []))
            }
            released => released,
        }
    }

    /// Tells the kernel that a send queue has new entries: one system call for
    /// as many as there are.
    ///
    /// # Errors
    /// What the kernel says: the queue pair is in no state to send, say.
    #[inline]
    pub(crate) fn doorbell(&self, qp_handle: u32) -> io::Result<()> {
        if self.no_write.load(Ordering::Relaxed) {
            return self.doorbell_by_attributes(qp_handle);
        }
        match self.kernel.doorbell(qp_handle) {
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                log::info!("the process has changed its credentials: doorbells by ioctl");
                self.no_write.store(true, Ordering::Relaxed);
                self.doorbell_by_attributes(qp_handle)
            }
            rung => rung,
        }
    }

    #[cold]
    fn doorbell_by_attributes(&self, qp_handle: u32) -> io::Result<()> {
        let request = PostSend::doorbell(qp_handle);
        let mut answer = PostSendResp::default();
        self.invoke_write(&mut Write::new(
            number::POST_SEND,
            request.as_bytes(),
            answer.as_mut_bytes(),
        ))
    }

    /// Maps a queue that a command has answered.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn map(&self, offset: u64, len: usize) -> Result<crate::memory::Buffer> {
        self.kernel
            .map(offset, len)
            .map_err(|source| failed(format!("map a queue of {len} bytes"), source))
    }
}

fn open_by_write(kernel: &dyn Kernel, driver_out: &mut [u8]) -> io::Result<(OwnedFd, u32)> {
    let request = AnswerOnly::default();
    let mut answer = GetContextResp::default();
    let write = Write::new(
        number::GET_CONTEXT,
        request.as_bytes(),
        answer.as_mut_bytes(),
    );
    kernel.write(&mut write.with_driver(&[], driver_out))?;
    // SAFETY: the command has just made it.
    let async_fd = unsafe { own(answer.async_fd as RawFd) }?;
    events::set_nonblocking(&async_fd)?;
    Ok((async_fd, answer.num_comp_vectors))
}

/// Whether an error says that the kernel lacks the command in this form.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOTTY | libc::ENOSYS | libc::EPROTONOSUPPORT | libc::EOPNOTSUPP)
    )
}

/// A refusal of the kernel, with what the user can do where that is known.
pub(crate) fn failed(action: impl Into<String>, source: io::Error) -> VerbsError {
    let action = action.into();
    let advice = match source.raw_os_error() {
        Some(libc::EIO | libc::ENODEV) => {
            "the device has been removed; `rdma link` shows which there are"
        }
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ETIMEDOUT | libc::ENODATA) => {
            "the kernel finds no way to the peer's address: try `ip route get` and ping, \
             or choose another GID at both ends (-x)"
        }
        _ => return VerbsError::Io { action, source },
    };
    VerbsError::Refused {
        action,
        source,
        advice: advice.to_owned(),
    }
}

/// An answer of the kernel that makes no sense.
pub(crate) fn odd(what: &str, seen: impl Display, expected: impl Display) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the kernel answered {what} {seen}, expected {expected}"),
    )
}
