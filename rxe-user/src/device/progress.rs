//! Who drives the protocol.
//!
//! The thread that polls does it itself: handing every packet from one thread
//! to another costs more than the packet. A thread per port serves when nobody
//! polls, such as behind the passive side of one-sided operations, and keeps
//! out of the way while somebody does.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use verbs_sys::{Result, VerbsError};

use super::channel::io_error;
use super::port::Engine;
use crate::transport::Acks;

/// How long the thread leaves a port alone that somebody polls. Each nap that
/// finds them still at it doubles the next, because to wake up is to take the
/// CPU from whoever spins; the longest is short of common ACK timeouts.
const SHORTEST_NAP: Duration = Duration::from_millis(2);
const LONGEST_NAP: Duration = Duration::from_millis(32);

/// How long the thread looks for packets before it sleeps until one comes:
/// waking up costs about as much.
const SPIN: Duration = Duration::from_micros(50);

/// Looks that find nothing between two readings of the clock.
const LOOKS_PER_CLOCK: u32 = 16;

/// Looks that find nothing before the thread yields, some 10 µs: a peer that
/// reads one thing after the other asks again within them.
const LOOKS_WITHOUT_YIELD: u32 = 40;

/// No deadline.
const NEVER: u64 = u64::MAX;

/// A port's engine, and how its users and its thread agree on who drives it.
pub(crate) struct Progress {
    engine: Mutex<Engine>,
    /// What the thread waits for, and whether there are others by now.
    sockets: Mutex<Arc<Vec<OwnedFd>>>,
    sockets_changed: AtomicBool,
    /// Counts up whenever a user drives the engine.
    polls: AtomicU64,
    /// Until when the thread sleeps (ns of the engine's clock); 0 when it is awake or
    /// napping.
    sleeps_until: AtomicU64,
    /// The thread naps because somebody polls.
    napping: AtomicBool,
    /// Whoever polled has said that they stop.
    released: AtomicBool,
    stop: AtomicBool,
    wake: EventFd,
}

impl Progress {
    pub(crate) fn new(engine: Engine) -> Result<Self> {
        let sockets = engine.sockets()?;
        let wake = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(|errno| io_error("create an eventfd", errno))?;
        Ok(Self {
            engine: Mutex::new(engine),
            sockets: Mutex::new(Arc::new(sockets)),
            sockets_changed: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            sleeps_until: AtomicU64::new(0),
            napping: AtomicBool::new(false),
            released: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wake,
        })
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A user polls: drives the engine, and then takes what it came for.
    #[inline]
    pub(crate) fn poll<T>(
        &self,
        mut engine: MutexGuard<'_, Engine>,
        take: impl FnOnce(&mut Engine) -> T,
    ) -> T {
        self.note_poll();
        engine.progress(Acks::WithData);
        self.wake_for_deadline(&engine);
        if engine.nic.owes_acks() {
            // This may have been the last poll for long.
            self.wake_sleeper();
        }
        let taken = take(&mut engine);
        if engine.is_idle() {
            drop(engine);
            thread::yield_now();
        }
        taken
    }

    /// A user polls and finds what it wants without driving.
    #[inline]
    pub(crate) fn note_poll(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// A user has started something and may never poll: the thread has to be
    /// up when its timer runs out.
    #[inline]
    pub(crate) fn wake_for_deadline(&self, engine: &Engine) {
        let sleeps_until = self.sleeps_until.load(Ordering::Relaxed);
        if sleeps_until != 0
            && engine
                .nic
                .next_deadline()
                .is_some_and(|deadline| deadline.as_nanos() < sleeps_until)
        {
            self.sleeps_until.store(0, Ordering::Relaxed);
            self.wake();
        }
    }

    /// A user, who holds the engine, has left something to be sent: the thread
    /// does it if it sleeps (one that naps will look soon, if the user doesn't
    /// poll before).
    #[inline]
    pub(crate) fn wake_sleeper(&self) {
        if self.sleeps_until.load(Ordering::Relaxed) != 0 {
            self.sleeps_until.store(0, Ordering::Relaxed);
            self.wake();
        }
    }

    /// A user stops polling for a while: the thread has to take over now.
    pub(crate) fn take_over(&self) {
        self.released.store(true, Ordering::SeqCst);
        if self.napping.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// The engine's sockets have changed: the thread has to wait for others.
    pub(crate) fn renew_sockets(&self, engine: &Engine) {
        match engine.sockets() {
            Ok(sockets) => {
                *self.current_sockets() = Arc::new(sockets);
                self.sockets_changed.store(true, Ordering::SeqCst);
                self.wake();
            }
            Err(error) => log::error!("packets to a multicast group may come late: {error}"),
        }
    }

    fn current_sockets(&self) -> MutexGuard<'_, Arc<Vec<OwnedFd>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // Fails only when it is readable anyway.
        let _ = self.wake.write(1);
    }

    /// The thread: serves while nobody polls, naps while somebody does.
    fn serve(&self) {
        while !self.stop.load(Ordering::Acquire) {
            self.sockets_changed.store(false, Ordering::SeqCst);
            let sockets = Arc::clone(&self.current_sockets());
            self.serve_sockets(&sockets);
        }
    }

    /// Until others take their place.
    fn serve_sockets(&self, sockets: &[OwnedFd]) {
        let mut seen = self.polls.load(Ordering::Relaxed);
        let mut nap = SHORTEST_NAP;
        // The call that ends a wait comes first. A list that is made once, and no
        // epoll instance, which would slow down the arrival of every packet.
        let wake = std::iter::once(self.wake.as_fd());
        let mut fds: Vec<PollFd<'_>> = wake
            .chain(sockets.iter().map(AsFd::as_fd))
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        while !self.stop.load(Ordering::Acquire) && !self.sockets_changed.load(Ordering::SeqCst) {
            let polls = self.polls.load(Ordering::Relaxed);
            let released = self.released.swap(false, Ordering::SeqCst);
            if polls != seen && !released {
                seen = polls;
                self.nap(&mut fds, nap);
                nap = LONGEST_NAP.min(2 * nap);
            } else {
                seen = polls;
                nap = SHORTEST_NAP;
                if self.drive(polls) {
                    self.sleep(&mut fds);
                }
            }
        }
    }

    /// Drives the engine until nothing has come for a while (`true`), or a
    /// user polls.
    fn drive(&self, seen: u64) -> bool {
        let mut idle_since: Option<Instant> = None;
        let mut idle_looks = 0u32;
        while self.polls.load(Ordering::Relaxed) == seen && !self.stop.load(Ordering::Acquire) {
            if self.lock().progress(Acks::All) > 0 {
                (idle_since, idle_looks) = (None, 0);
                continue;
            }
            idle_looks += 1;
            match idle_since {
                Some(_) if !idle_looks.is_multiple_of(LOOKS_PER_CLOCK) => {
                    // The answer to what was just served may come at once.
                    if idle_looks > LOOKS_WITHOUT_YIELD {
                        thread::yield_now();
                    }
                }
                Some(since) if since.elapsed() >= SPIN => return true,
                Some(_) => {}
                None => idle_since = Some(Instant::now()),
            }
        }
        false
    }

    /// Leaves the port to whoever polls.
    fn nap(&self, fds: &mut [PollFd<'_>], time: Duration) {
        // Either this sees that it should take over, or `take_over` sees it nap.
        self.napping.store(true, Ordering::SeqCst);
        if !self.released.load(Ordering::SeqCst) {
            self.wait(fds.split_at_mut(1).0, Some(time));
        }
        self.napping.store(false, Ordering::SeqCst);
    }

    /// Sleeps until a packet comes, a timer runs out, or somebody calls.
    fn sleep(&self, fds: &mut [PollFd<'_>]) {
        let (timeout, blocked) = {
            let engine = self.lock();
            let unfinished = engine.nic.has_work() || engine.nic.owes_acks();
            if unfinished && !engine.is_blocked() {
                // Somebody has polled or posted since this thread looked.
                return;
            }
            let deadline = engine.nic.next_deadline();
            let until = deadline.map_or(NEVER, |deadline| deadline.as_nanos().max(1));
            // Under the lock: whoever starts a timer later sees it.
            self.sleeps_until.store(until, Ordering::Relaxed);
            (
                deadline.map(|deadline| deadline - engine.now()),
                engine.is_blocked(),
            )
        };
        let mut wanted = PollFlags::POLLIN;
        wanted.set(PollFlags::POLLOUT, blocked);
        for socket in fds.iter_mut().skip(1) {
            socket.set_events(wanted);
        }
        self.wait(fds, timeout);
        self.sleeps_until.store(0, Ordering::Relaxed);
    }

    fn wait(&self, fds: &mut [PollFd<'_>], timeout: Option<Duration>) {
        // A signal or an error ends the wait like a packet does; the next
        // round finds out what there is to do.
        let _ = ppoll(fds, timeout.map(TimeSpec::from), None);
        let _ = self.wake.read();
    }
}

/// The thread of a port; dropping stops it and waits for it.
pub(crate) struct Worker {
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn start(progress: Arc<Progress>, device: &str) -> Result<Self> {
        let serving = Arc::clone(&progress);
        let thread = thread::Builder::new()
            .name(device.to_owned())
            .spawn(move || serving.serve())
            .map_err(|source| VerbsError::Io {
                action: "start a thread".into(),
                source,
            })?;
        Ok(Self {
            progress,
            thread: Some(thread),
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.progress.stop.store(true, Ordering::Release);
        self.progress.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on stderr.
            let _ = thread.join();
        }
    }
}
