//! The control connection over a queue pair that the connection manager
//! connects (`-R`, `-z`): each message of the dialogue is one SEND.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use verbs_sys::cm::{CmError, CmEventKind, CmId, Wait};
use verbs_sys::memory::Buffer;
use verbs_sys::{
    AccessFlags, Completion, CompletionChannel, CompletionQueue, Context, CqInit, MemoryRegion,
    Notify, ProtectionDomain, QpAttributes, QpCapabilities, QpInit, QpState, QpType, QueuePair,
    ReceiveRequest, RemoteAddress, SendOp, SendRequest, Sge, VerbsError, WcStatus,
};

use super::channel::{Channel, KeyDialect, Timeouts};
use super::error::ExchangeError;
use super::presence::End;
use super::step::{Direction, Step};
use crate::interrupt::Interrupt;

/// Bytes of a message at most: the parameter block has 320.
const SLOT: usize = 512;

/// Receives that are posted at a time. The dialogue needs one; a peer that
/// doesn't wait for us finds room for more.
const RECEIVES: usize = 4;

/// The place in the buffer that messages are sent from; those before are
/// received into.
const SEND_SLOT: usize = RECEIVES;

/// Requests of ours in flight: a message, and a probe of the peer.
const SENDS: u32 = 2;

/// Longest sleep: the connection manager and the interrupt want to be looked
/// at now and then.
const NAP: Duration = Duration::from_millis(50);

/// How long [`Channel::finish`] waits for the peer's end.
const FAREWELL_TIME: Duration = Duration::from_millis(500);

/// Work request numbers of our requests; receives have their slot's number.
const MESSAGE: u64 = 1 << 32;
const PROBE: u64 = 2 << 32;

/// The connection as its manager sees it. Shared with whoever has to notice
/// that the peer has ended it.
pub struct CmConnection {
    id: Mutex<Box<dyn CmId>>,
    end: Mutex<Option<End>>,
}

impl CmConnection {
    /// Of an identifier that is connected.
    #[must_use]
    pub fn new(id: Box<dyn CmId>) -> Self {
        Self {
            id: Mutex::new(id),
            end: Mutex::new(None),
        }
    }

    /// How the connection has ended, if it has. Doesn't wait.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.look(&Wait::at_most(Duration::ZERO))
    }

    /// Says farewell, and waits for the peer's. An end that listened goes
    /// first, as stock's does from 6.21 on.
    pub fn end(&self, listened: bool) {
        if !listened {
            self.look(&Wait::at_most(FAREWELL_TIME));
        }
        let said = self.with_id(|id| id.disconnect());
        if said.is_ok() && listened {
            self.look(&Wait::at_most(FAREWELL_TIME));
        }
    }

    fn look(&self, wait: &Wait<'_>) -> Option<End> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if end.is_none() {
            *end = self.with_id(|id| next_end(id, wait));
        }
        *end
    }

    fn with_id<T>(&self, run: impl FnOnce(&mut dyn CmId) -> T) -> T {
        let mut id = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        run(&mut **id)
    }
}

/// Takes events until one ends the connection or the wait is over.
fn next_end(id: &mut dyn CmId, wait: &Wait<'_>) -> Option<End> {
    loop {
        match id.next_event(wait) {
            Ok(event) => match event.kind {
                CmEventKind::Disconnected => return Some(End::Peer),
                CmEventKind::DeviceRemoval => return Some(End::Device),
                // The peer is ready, or its address has moved: nothing ends.
                _ => {}
            },
            Err(CmError::TimedOut { .. } | CmError::Interrupted) => return None,
            Err(_) => return Some(End::Peer),
        }
    }
}

/// The control connection's queue pair before it is connected. Parts are
/// released in this order.
pub struct ControlQueuePair {
    qp: Box<dyn QueuePair>,
    cq: Box<dyn CompletionQueue>,
    channel: Arc<dyn CompletionChannel>,
    region: Box<dyn MemoryRegion>,
    _domain: Box<dyn ProtectionDomain>,
    buffer: Buffer,
}

impl ControlQueuePair {
    /// Makes the queue pair; it is in RESET.
    ///
    /// # Errors
    /// When the device refuses a resource.
    pub fn new(context: &dyn Context) -> Result<Self, VerbsError> {
        let buffer = Buffer::allocate((RECEIVES + 1) * SLOT).map_err(|source| VerbsError::Io {
            action: "allocate memory for the control connection".to_owned(),
            source,
        })?;
        let domain = context.alloc_pd()?;
        let region = context.reg_mr(&*domain, buffer.whole(), AccessFlags::LOCAL_WRITE)?;
        let channel = context.create_comp_channel()?;
        let cq = context.create_cq(&CqInit {
            depth: RECEIVES as u32 + SENDS,
            channel: Some(&channel),
        })?;
        let qp = context.create_qp(
            &*domain,
            &QpInit {
                qp_type: QpType::Rc,
                send_cq: &*cq,
                recv_cq: &*cq,
                srq: None,
                xrcd: None,
                cap: QpCapabilities {
                    max_send_wr: SENDS,
                    max_recv_wr: RECEIVES as u32,
                    max_send_sge: 1,
                    max_recv_sge: 1,
                    max_inline_data: 0,
                },
                sq_sig_all: false,
            },
        )?;
        Ok(Self {
            qp,
            cq,
            channel,
            region,
            _domain: domain,
            buffer,
        })
    }

    /// The queue pair, for the connection manager to move.
    pub fn qp(&mut self) -> &mut dyn QueuePair {
        &mut *self.qp
    }

    /// Posts all receives. The queue pair has to be in INIT.
    ///
    /// # Errors
    /// When the queue pair refuses.
    pub fn post_receives(&mut self) -> Result<(), VerbsError> {
        (0..RECEIVES).try_for_each(|slot| self.post_receive(slot))
    }

    /// The channel, once the queue pair is connected.
    #[must_use]
    pub fn connected(
        self,
        connection: Arc<CmConnection>,
        listened: bool,
        timeouts: &Timeouts,
        interrupt: &Interrupt,
    ) -> CmChannel {
        CmChannel {
            queues: self,
            connection,
            listened,
            arrived: VecDeque::new(),
            sent: None,
            probed: None,
            step_time: timeouts.step,
            keep_alive: timeouts.keep_alive,
            interrupt: interrupt.clone(),
        }
    }

    fn sge(&self, slot: usize, length: usize) -> Sge {
        Sge {
            addr: self.buffer.addr() + (slot * SLOT) as u64,
            // At most SLOT.
            length: length as u32,
            lkey: self.region.lkey(),
        }
    }

    fn post_receive(&mut self, slot: usize) -> Result<(), VerbsError> {
        let sges = [self.sge(slot, SLOT)];
        let request = ReceiveRequest {
            wr_id: slot as u64,
            sges: &sges,
        };
        self.qp
            .post_recv(&[request])
            .map_err(|refused| refused.source)
    }
}

/// A message that has arrived, and how much of it is read.
struct Arrived {
    slot: usize,
    read: usize,
    length: usize,
}

/// [`Channel`] over a queue pair.
pub struct CmChannel {
    queues: ControlQueuePair,
    connection: Arc<CmConnection>,
    listened: bool,
    arrived: VecDeque<Arrived>,
    /// How our message went, once it has.
    sent: Option<io::Result<()>>,
    /// How the probe went.
    probed: Option<io::Result<()>>,
    step_time: Duration,
    keep_alive: Option<Duration>,
    interrupt: Interrupt,
}

impl CmChannel {
    /// Takes what has completed. A receive that failed ends the connection.
    fn poll(&mut self) -> io::Result<()> {
        let mut completions = [Completion::default(); RECEIVES + SENDS as usize];
        let count = self.queues.cq.poll(&mut completions);
        let mut broken = None;
        for completion in &completions[..count] {
            let went = match completion.status {
                WcStatus::Success => Ok(()),
                // The queue pair has left its connection.
                WcStatus::WorkRequestFlushed => Err(io::ErrorKind::UnexpectedEof.into()),
                status => Err(io::Error::new(
                    io::ErrorKind::ConnectionAborted,
                    status.to_string(),
                )),
            };
            match completion.wr_id {
                MESSAGE => self.sent = Some(went),
                PROBE => self.probed = Some(went),
                slot => match went {
                    Ok(()) => self.arrived.push_back(Arrived {
                        // It is one of ours.
                        slot: slot as usize % RECEIVES,
                        read: 0,
                        length: (completion.byte_len as usize).min(SLOT),
                    }),
                    Err(error) => broken = Some(error),
                },
            }
        }
        match broken {
            Some(error) if self.arrived.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    /// Looks and sleeps until `done` or the deadline; says which.
    fn until(
        &mut self,
        deadline: Option<Instant>,
        done: impl Fn(&Self) -> bool,
    ) -> io::Result<bool> {
        let mut probe_at = self.next_probe();
        loop {
            self.poll()?;
            if done(self) {
                return Ok(true);
            }
            if self.interrupt.requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if let Some(end) = self.connection.ended() {
                // What came before the end counts.
                self.poll()?;
                return match (done(self), end) {
                    (true, _) => Ok(true),
                    (false, End::Peer) => Err(io::ErrorKind::UnexpectedEof.into()),
                    (false, End::Device) => Err(io::Error::other("the RDMA device was removed")),
                };
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(false);
            }
            if probe_at.is_some_and(|at| now >= at) {
                self.probe()?;
                probe_at = self.next_probe();
            }
            let left = deadline.map_or(NAP, |deadline| deadline.saturating_duration_since(now));
            self.sleep(left.min(NAP))?;
        }
    }

    /// Sleeps until something completes. What completed before doesn't
    /// notify, so that there is one more look after arming.
    fn sleep(&mut self, time: Duration) -> io::Result<()> {
        self.queues.cq.arm(Notify::Any);
        let (arrived, sent) = (self.arrived.len(), self.sent.is_some());
        self.poll()?;
        if (self.arrived.len(), self.sent.is_some()) != (arrived, sent) {
            return Ok(());
        }
        let waited = self.queues.channel.wait(Some(time));
        waited.map(|_| ()).map_err(io::Error::other)
    }

    fn next_probe(&self) -> Option<Instant> {
        self.keep_alive
            .and_then(|idle| Instant::now().checked_add(idle))
    }

    /// Asks the peer's queue pair for an acknowledgement by writing nothing
    /// to it (IBTA 9.7.5.1.4: no key is looked at): a peer's host that is
    /// gone doesn't say so.
    fn probe(&mut self) -> io::Result<()> {
        if let Some(Err(error)) = self.probed.take() {
            return Err(error);
        }
        let remote = RemoteAddress::default();
        self.post(PROBE, SendOp::Write { remote }, &[])
    }

    fn post(&mut self, number: u64, op: SendOp, sges: &[Sge]) -> io::Result<()> {
        let request = SendRequest::signaled(number, op, sges);
        let posted = self.queues.qp.post_send(&[request]);
        posted.map_err(io::Error::other)
    }

    /// Gives a slot back when its message is read.
    fn done_with_first(&mut self) -> io::Result<()> {
        match self.arrived.pop_front() {
            Some(message) => self
                .queues
                .post_receive(message.slot)
                .map_err(io::Error::other),
            None => Ok(()),
        }
    }

    /// Takes from the message that has arrived first; says how much.
    fn take(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(first) = self.arrived.front_mut() else {
            return Ok(0);
        };
        let count = into.len().min(first.length - first.read);
        let from = first.slot * SLOT + first.read;
        first.read += count;
        let read = self.queues.buffer.read(from, &mut into[..count]);
        read.map_err(io::Error::other)?;
        if first.read == first.length {
            self.done_with_first()?;
        }
        Ok(count)
    }

    fn reading(
        &self,
        step: Step,
        seen: usize,
        expected: usize,
        source: io::Error,
    ) -> ExchangeError {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => ExchangeError::Closed {
                step,
                seen,
                expected,
            },
            _ => ExchangeError::Io {
                step,
                direction: Direction::Reading,
                source,
            },
        }
    }
}

impl Channel for CmChannel {
    fn key_dialect(&self) -> KeyDialect {
        KeyDialect::Binary
    }

    fn send(&mut self, step: Step, message: &[u8]) -> Result<(), ExchangeError> {
        let failed = |source| ExchangeError::Io {
            step,
            direction: Direction::Writing,
            source,
        };
        let written = self.queues.buffer.write(SEND_SLOT * SLOT, message);
        written.map_err(|error| failed(io::Error::other(error)))?;
        self.sent = None;
        let sges = [self.queues.sge(SEND_SLOT, message.len())];
        self.post(MESSAGE, SendOp::Send, &sges).map_err(failed)?;
        let deadline = Instant::now().checked_add(self.step_time);
        match self.until(deadline, |channel| channel.sent.is_some()) {
            Ok(true) => match self.sent.take() {
                Some(Err(error)) => Err(failed(error)),
                _ => Ok(()),
            },
            Ok(false) => Err(ExchangeError::NotTaken {
                step,
                waited: self.step_time,
            }),
            Err(error) => Err(failed(error)),
        }
    }

    fn receive(&mut self, step: Step, message: &mut [u8]) -> Result<(), ExchangeError> {
        let deadline = Instant::now().checked_add(self.step_time);
        let expected = message.len();
        let mut seen = 0;
        while seen < expected {
            match self.until(deadline, |channel| !channel.arrived.is_empty()) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(ExchangeError::Silent {
                        step,
                        seen,
                        expected,
                        waited: self.step_time,
                    });
                }
                Err(error) => return Err(self.reading(step, seen, expected, error)),
            }
            match self.take(&mut message[seen..]) {
                Ok(count) => seen += count,
                Err(error) => return Err(self.reading(step, seen, expected, error)),
            }
        }
        Ok(())
    }

    fn wait(&mut self, step: Step, limit: Option<Duration>) -> Result<bool, ExchangeError> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        self.until(deadline, |channel| !channel.arrived.is_empty())
            .map_err(|error| self.reading(step, 0, 1, error))
    }

    fn pending(&mut self, step: Step, limit: usize) -> Result<usize, ExchangeError> {
        self.poll()
            .map_err(|error| self.reading(step, 0, 1, error))?;
        let first = self.arrived.front();
        Ok(first.map_or(0, |message| (message.length - message.read).min(limit)))
    }

    fn finish(&mut self) {
        self.connection.end(self.listened);
        // Nothing depends on it: the queue pair goes next.
        let error = QpAttributes::to_state(QpState::Error);
        if let Err(error) = self.queues.qp.modify(&error) {
            log::debug!("control connection after the closing handshake: {error}");
        }
    }
}

#[cfg(test)]
mod tests;
