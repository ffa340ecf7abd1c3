//! The device's file descriptor: commands go out, events come in, for all
//! identifiers that share it. All of the module's `unsafe` is here.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use zerocopy::FromZeros;

use super::answer::Delivered;
use super::command;
use crate::uapi::ucma::{ABI_VERSION, Request};
use crate::verbs::cm::{CmError, CmEventKind, CmResult, Wait};

/// Where udev and devtmpfs put the device.
const NODE: &str = "/dev/infiniband/rdma_cm";
/// What the kernel says of its interface.
const ABI_FILE: &str = "/sys/class/misc/rdma_cm/abi_version";

/// The open device.
#[derive(Debug)]
pub(super) struct Channel {
    file: File,
    next_uid: AtomicU64,
    /// Events that came while another identifier's were waited for.
    waiting: Mutex<VecDeque<Delivered>>,
}

impl Channel {
    pub(super) fn open() -> CmResult<Self> {
        check_abi(Path::new(ABI_FILE))?;
        Self::open_at(Path::new(NODE))
    }

    fn open_at(node: &Path) -> CmResult<Self> {
        let path = || node.display().to_string();
        // GET_EVENT shall not wait by itself: deadlines are kept here.
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(node);
        let file = opened.map_err(|source| match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => CmError::NoModule { path: path() },
            _ => CmError::NotAllowed {
                path: path(),
                source,
            },
        })?;
        Ok(Self {
            file,
            // 0 is what an identifier has that the user doesn't know yet.
            next_uid: AtomicU64::new(1),
            waiting: Mutex::new(VecDeque::new()),
        })
    }

    /// A number for the events of a new identifier.
    pub(super) fn new_uid(&self) -> u64 {
        self.next_uid.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs a command.
    pub(super) fn call<R: Request>(&self, request: R) -> io::Result<R::Response>
    where
        R::Response: FromZeros,
    {
        let mut response = R::Response::new_zeroed();
        let address = ptr::from_mut(&mut response).expose_provenance() as u64;
        let message = command::encode(request, address);
        loop {
            // SAFETY: the message is readable for its length. The kernel
            // writes at most as many bytes to `address` as the header says,
            // the size of `response`, which is alive and borrowed by nobody
            // else, and any bytes make a valid response (`FromBytes`). The
            // other address that a message can hold, an option's value, is
            // only read, and alive in the caller.
            let written = unsafe {
                libc::write(
                    self.file.as_raw_fd(),
                    message.as_ptr().cast(),
                    message.len(),
                )
            };
            if written >= 0 {
                return Ok(response);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Runs a command whose failure has no meaning of its own.
    pub(super) fn run<R: Request>(&self, request: R) -> CmResult<R::Response> {
        self.call(request)
            .map_err(|source| refused(R::COMMAND.name(), source))
    }

    /// Waits for the next event of the identifier with this uid: of `kind`
    /// only, or any.
    pub(super) fn next_event(
        &self,
        uid: u64,
        waited_for: &'static str,
        wait: &Wait<'_>,
    ) -> CmResult<Delivered> {
        loop {
            self.take_in()?;
            if let Some(event) = self.take(uid) {
                return Ok(event);
            }
            if wait.interrupted() {
                return Err(CmError::Interrupted);
            }
            // Another thread may take in our event, so that no sleep may be long.
            let Some(slice) = wait.slice() else {
                return Err(CmError::TimedOut {
                    waited_for,
                    waited: wait.limit().unwrap_or_default(),
                });
            };
            self.sleep(slice)?;
        }
    }

    /// Drops the events of an identifier that is no more. Requests among
    /// them are new identifiers that nobody will take.
    pub(super) fn forget(&self, uid: u64) {
        let mut waiting = self.waiting();
        let (gone, kept): (VecDeque<_>, VecDeque<_>) =
            waiting.drain(..).partition(|event| event.uid == uid);
        *waiting = kept;
        drop(waiting);
        for event in gone {
            if event.kind == Some(CmEventKind::ConnectRequest) {
                // There is nobody left who could be told of an error.
                let _ = self.call(command::destroy_id(event.id));
            }
        }
    }

    /// Reads all events that the kernel has.
    fn take_in(&self) -> CmResult<()> {
        loop {
            match self.call(command::get_event()) {
                Ok(raw) => self.waiting().push_back(Delivered::new(raw)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(source) => return Err(refused("GET_EVENT", source)),
            }
        }
    }

    fn take(&self, uid: u64) -> Option<Delivered> {
        let mut waiting = self.waiting();
        let place = waiting.iter().position(|event| event.uid == uid)?;
        waiting.remove(place)
    }

    fn sleep(&self, slice: Duration) -> CmResult<()> {
        // Rounded up, so that it does not return early and spin.
        let millis = u16::try_from(slice.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
        let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::from(millis)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(refused("poll", error.into())),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Delivered>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(command: &'static str, source: io::Error) -> CmError {
    CmError::Command { command, source }
}

/// A kernel without the file has no module; opening says so.
fn check_abi(file: &Path) -> CmResult<()> {
    let Ok(text) = std::fs::read_to_string(file) else {
        return Ok(());
    };
    match text.trim().parse() {
        Ok(ABI_VERSION) => Ok(()),
        _ => Err(CmError::Abi {
            seen: text.trim().to_owned(),
            expected: ABI_VERSION,
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn temporary(name: &str, content: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("ucma-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        path
    }

    #[test]
    fn an_unknown_abi_is_named() {
        for (content, fits) in [("4\n", true), ("5\n", false), ("", false), ("x\n", false)] {
            let path = temporary("abi", content);
            let checked = check_abi(&path);
            std::fs::remove_file(&path).unwrap();
            assert_eq!(checked.is_ok(), fits, "{content:?}");
        }
        let path = temporary("abi-5", "5\n");
        let text = check_abi(&path).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(text.contains("ABI 5, expected 4"), "{text}");
        assert!(check_abi(Path::new("/nonexistent/abi")).is_ok());
    }

    #[test]
    fn a_missing_node_names_the_module() {
        let error = Channel::open_at(Path::new("/nonexistent/rdma_cm")).unwrap_err();
        assert!(matches!(error, CmError::NoModule { .. }));
        assert!(error.to_string().contains("modprobe rdma_ucm"), "{error}");
    }

    /// A full socket takes no command and has no event, like a device on which
    /// nothing happens.
    #[test]
    fn waiting_ends() {
        let (mut near, _far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        while near.write(&[0; 4096]).is_ok() {}
        let channel = Channel {
            file: File::from(OwnedFd::from(near)),
            next_uid: AtomicU64::new(1),
            waiting: Mutex::new(VecDeque::new()),
        };
        let wait = Wait::at_most(Duration::from_millis(1));
        let error = channel.next_event(7, "the answer", &wait).unwrap_err();
        assert!(matches!(error, CmError::TimedOut { .. }), "{error}");
        let yes = || true;
        let wait = Wait::new(None).or(&yes);
        let error = channel.next_event(7, "the answer", &wait).unwrap_err();
        assert!(matches!(error, CmError::Interrupted), "{error}");
    }
}
