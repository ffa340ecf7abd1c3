//! Tests without a kernel: a stand-in executes the commands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod answers;
mod forms;
mod golden;
pub(crate) mod trace;

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex};

use nix::sys::eventfd::EventFd;

use super::Uverbs;
use super::command::{Ioctl, Value, Write};
use super::kernel::Kernel;
use crate::memory::Buffer;
use crate::uapi::ioctl::{CORE_SUPPORT_OPTIONAL_MR_ACCESS, Method};

type ExecuteIoctl = dyn Fn(&mut Ioctl<'_, '_>) -> io::Result<()> + Send + Sync;
type ExecuteWrite = dyn Fn(&mut Write<'_>) -> io::Result<()> + Send + Sync;
type Ring = dyn Fn(u32) -> io::Result<()> + Send + Sync;

/// What a stand-in does with the commands of a context that is open.
pub(crate) struct FakeKernel {
    pub(crate) ioctl: Box<ExecuteIoctl>,
    pub(crate) write: Box<ExecuteWrite>,
    /// Takes the handle of the queue pair.
    pub(crate) doorbell: Box<Ring>,
    /// What can be mapped, by offset.
    pub(crate) maps: Arc<Mutex<Vec<(u64, Buffer)>>>,
    /// Where asynchronous events come from; one that has none when absent.
    pub(crate) events: Mutex<Option<OwnedFd>>,
}

impl Default for FakeKernel {
    /// One that has no commands but those that open it.
    fn default() -> Self {
        Self {
            ioctl: Box::new(|_| Err(errno(libc::EOPNOTSUPP))),
            write: Box::new(|_| Err(errno(libc::EOPNOTSUPP))),
            doorbell: Box::new(|_| Err(errno(libc::EOPNOTSUPP))),
            maps: Arc::default(),
            events: Mutex::default(),
        }
    }
}

impl Kernel for FakeKernel {
    fn ioctl(&self, command: &mut Ioctl<'_, '_>) -> io::Result<()> {
        match command.method {
            Method::GET_CONTEXT => {
                answer(command, 1, &CORE_SUPPORT_OPTIONAL_MR_ACCESS.to_ne_bytes());
                Ok(())
            }
            Method::ASYNC_EVENT_ALLOC => {
                let events = self.events.lock().unwrap().take();
                let fd = events.map_or_else(new_fd, |fd| fd.into_raw_fd() as u32);
                command.attributes[0].value = Value::New(fd);
                Ok(())
            }
            _ => (self.ioctl)(command),
        }
    }

    fn write(&self, command: &mut Write<'_>) -> io::Result<()> {
        (self.write)(command)
    }

    fn doorbell(&self, qp_handle: u32) -> io::Result<()> {
        (self.doorbell)(qp_handle)
    }

    fn map(&self, offset: u64, len: usize) -> io::Result<Buffer> {
        let maps = self.maps.lock().unwrap();
        let found = maps.iter().find(|(at, _)| *at == offset);
        let (_, buffer) = found.ok_or_else(|| errno(libc::EINVAL))?;
        assert!(len <= buffer.len(), "{len} of {} bytes", buffer.len());
        Ok(buffer.clone())
    }
}

/// A context of rxe on a stand-in.
pub(crate) fn open(kernel: FakeKernel) -> Uverbs {
    Uverbs::open(Box::new(kernel), 14, &mut []).unwrap()
}

/// A descriptor that its receiver owns.
pub(crate) fn new_fd() -> u32 {
    let fd: OwnedFd = EventFd::new().unwrap().into();
    fd.into_raw_fd() as u32
}

pub(crate) fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

/// The number and structure of a command of the write interface that comes in
/// the attribute form.
pub(crate) fn invoked(command: &Ioctl<'_, '_>) -> Option<(u32, Vec<u8>)> {
    if command.method != Method::INVOKE_WRITE {
        return None;
    }
    let mut found = (0, Vec::new());
    for attribute in &*command.attributes {
        match (attribute.id, &attribute.value) {
            (2, Value::Constant(number)) => found.0 = *number as u32,
            (0, Value::In(bytes)) => found.1 = bytes.to_vec(),
            _ => {}
        }
    }
    Some(found)
}

/// Answers an attribute: room, or the number of what is made.
pub(crate) fn answer(command: &mut Ioctl<'_, '_>, id: u16, bytes: &[u8]) {
    for attribute in command.attributes.iter_mut().filter(|a| a.id == id) {
        match &mut attribute.value {
            Value::Out(room) => {
                let len = room.len().min(bytes.len());
                room[..len].copy_from_slice(&bytes[..len]);
            }
            Value::New(number) => *number = u32::from_ne_bytes(bytes[..4].try_into().unwrap()),
            other => panic!("attribute {id:#x} takes no answer: {other:?}"),
        }
    }
}
