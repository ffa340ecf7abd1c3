//! The control connection: whole messages with bounded time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

use super::error::ExchangeError;
use super::step::{Direction, Step};

/// How key records look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyDialect {
    /// A line of text, as over TCP.
    Text,
    /// A structure, as over the connection manager; its form follows the
    /// peer's version.
    Binary,
}

/// A byte stream to the peer on which every operation ends in bounded time.
pub trait Channel {
    /// How key records look on this kind of connection.
    fn key_dialect(&self) -> KeyDialect {
        KeyDialect::Text
    }

    /// Sends one message with a single write: stock reads with a single read.
    ///
    /// # Errors
    /// [`ExchangeError::NotTaken`], [`ExchangeError::Io`].
    fn send(&mut self, step: Step, message: &[u8]) -> Result<(), ExchangeError>;

    /// Fills `message`, in as many reads as it takes.
    ///
    /// # Errors
    /// [`ExchangeError::Silent`], [`ExchangeError::Closed`], [`ExchangeError::Io`].
    fn receive(&mut self, step: Step, message: &mut [u8]) -> Result<(), ExchangeError>;

    /// Waits until the peer has sent something, for at most `limit` (`None`:
    /// as long as the connection lives). Consumes nothing. Returns whether
    /// there is something to read.
    ///
    /// # Errors
    /// [`ExchangeError::Closed`] when the peer is gone, [`ExchangeError::Io`].
    fn wait(&mut self, step: Step, limit: Option<Duration>) -> Result<bool, ExchangeError>;

    /// How many bytes of the peer can be read now, counted up to `limit`.
    /// Consumes nothing.
    ///
    /// # Errors
    /// [`ExchangeError::Io`].
    fn pending(&mut self, step: Step, limit: usize) -> Result<usize, ExchangeError>;

    /// Ends the connection after the closing handshake, letting an old peer
    /// write its last bytes first.
    fn finish(&mut self);
}

impl<C: Channel + ?Sized> Channel for Box<C> {
    fn key_dialect(&self) -> KeyDialect {
        (**self).key_dialect()
    }
    fn send(&mut self, step: Step, message: &[u8]) -> Result<(), ExchangeError> {
        (**self).send(step, message)
    }
    fn receive(&mut self, step: Step, message: &mut [u8]) -> Result<(), ExchangeError> {
        (**self).receive(step, message)
    }
    fn wait(&mut self, step: Step, limit: Option<Duration>) -> Result<bool, ExchangeError> {
        (**self).wait(step, limit)
    }
    fn pending(&mut self, step: Step, limit: usize) -> Result<usize, ExchangeError> {
        (**self).pending(step, limit)
    }
    fn finish(&mut self) {
        (**self).finish();
    }
}

/// Time limits of the dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// How long the peer may take for one step, its set-up work included.
    pub step: Duration,
    /// How long the peer may take for a run before the step that follows it;
    /// `None` (as stock): as long as its connection lives.
    pub run: Option<Duration>,
    /// After how much idle time the system probes whether the peer's host
    /// still lives; `None`: never. Invisible to the peer.
    pub keep_alive: Option<Duration>,
}

impl Default for Timeouts {
    /// A minute per step, runs without limit, keep-alive after half a minute.
    fn default() -> Self {
        Self {
            step: Duration::from_secs(60),
            run: None,
            keep_alive: Some(Duration::from_secs(30)),
        }
    }
}

/// How long [`Channel::finish`] waits for the peer's end.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// What a peer up to 6.16 sends after the closing handshake: `done` and NUL.
const DRAIN_BYTES: usize = 5;

/// Probes between keep-alive's first and its verdict.
const KEEP_ALIVE_PROBES: u32 = 3;

/// [`Channel`] over TCP.
#[derive(Debug)]
pub struct TcpChannel {
    stream: TcpStream,
    step_time: Duration,
}

impl TcpChannel {
    /// Over a connected stream.
    ///
    /// # Errors
    /// What the system says about the keep-alive options.
    pub fn new(stream: TcpStream, timeouts: &Timeouts) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        if let Some(idle) = timeouts.keep_alive {
            let seconds = u32::try_from(idle.as_secs().max(1)).unwrap_or(u32::MAX);
            setsockopt(&stream, sockopt::KeepAlive, &true)?;
            setsockopt(&stream, sockopt::TcpKeepIdle, &seconds)?;
            setsockopt(&stream, sockopt::TcpKeepInterval, &seconds.div_ceil(3))?;
            setsockopt(&stream, sockopt::TcpKeepCount, &KEEP_ALIVE_PROBES)?;
        }
        Ok(Self {
            stream,
            step_time: timeouts.step,
        })
    }

    /// Limits the next read; says whether there is time left at all.
    fn read_until(&self, deadline: Instant) -> io::Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        self.stream.set_read_timeout(Some(left))?;
        Ok(true)
    }

    fn drain(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        let deadline = Instant::now() + DRAIN_TIME;
        let mut stray = [0; DRAIN_BYTES];
        let mut seen = 0;
        while seen < stray.len() && self.read_until(deadline)? {
            match self.stream.read(&mut stray[seen..])? {
                0 => break,
                count => seen += count,
            }
        }
        Ok(())
    }
}

fn reading(step: Step) -> impl Fn(io::Error) -> ExchangeError {
    move |source| ExchangeError::Io {
        step,
        direction: Direction::Reading,
        source,
    }
}

/// Whether a read or write ended because its time was over. The system uses either code.
fn timed_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

impl Channel for TcpChannel {
    fn send(&mut self, step: Step, message: &[u8]) -> Result<(), ExchangeError> {
        let deadline = Instant::now() + self.step_time;
        let failed = |source| ExchangeError::Io {
            step,
            direction: Direction::Writing,
            source,
        };
        let not_taken = || ExchangeError::NotTaken {
            step,
            waited: self.step_time,
        };
        let mut rest = message;
        // One write takes a message whole unless the peer has stopped reading.
        while !rest.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(not_taken());
            }
            self.stream.set_write_timeout(Some(left)).map_err(failed)?;
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if timed_out(&error) => return Err(not_taken()),
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    fn receive(&mut self, step: Step, message: &mut [u8]) -> Result<(), ExchangeError> {
        let deadline = Instant::now() + self.step_time;
        let expected = message.len();
        let mut seen = 0;
        while seen < expected {
            if !self.read_until(deadline).map_err(reading(step))? {
                return Err(ExchangeError::Silent {
                    step,
                    seen,
                    expected,
                    waited: self.step_time,
                });
            }
            match self.stream.read(&mut message[seen..]) {
                Ok(0) => {
                    return Err(ExchangeError::Closed {
                        step,
                        seen,
                        expected,
                    });
                }
                Ok(count) => seen += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted || timed_out(&error) => {}
                Err(error) => return Err(reading(step)(error)),
            }
        }
        Ok(())
    }

    fn wait(&mut self, step: Step, limit: Option<Duration>) -> Result<bool, ExchangeError> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            match deadline {
                Some(deadline) => {
                    if !self.read_until(deadline).map_err(reading(step))? {
                        return Ok(false);
                    }
                }
                None => self.stream.set_read_timeout(None).map_err(reading(step))?,
            }
            match self.stream.peek(&mut [0]) {
                Ok(0) => {
                    return Err(ExchangeError::Closed {
                        step,
                        seen: 0,
                        expected: 1,
                    });
                }
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted || timed_out(&error) => {}
                Err(error) => return Err(reading(step)(error)),
            }
        }
    }

    fn pending(&mut self, step: Step, limit: usize) -> Result<usize, ExchangeError> {
        let mut buffer = vec![0; limit];
        self.stream.set_nonblocking(true).map_err(reading(step))?;
        let seen = self.stream.peek(&mut buffer);
        self.stream.set_nonblocking(false).map_err(reading(step))?;
        match seen {
            Ok(count) => Ok(count),
            Err(error) if timed_out(&error) => Ok(0),
            Err(error) => Err(reading(step)(error)),
        }
    }

    fn finish(&mut self) {
        // The closing handshake is complete: nothing that happens to the
        // connection now, a reset included, can matter to either end.
        if let Err(error) = self.drain() {
            log::debug!("control connection after the closing handshake: {error}");
        }
    }
}
