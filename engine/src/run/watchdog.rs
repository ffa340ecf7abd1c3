//! What keeps a loop from spinning for ever: it looks now and then whether the
//! peer is still there, whether anything moves, and whether the user wants an end.

use std::time::Duration;

use super::error::RunError;
use super::live::Live;
use crate::exchange::{End, Presence};
use crate::interrupt::Interrupt;
use crate::stats::Moment;

/// The clock is looked at every so many turns of a loop: a turn may take a
/// hundred nanoseconds, or a millisecond when messages are large.
const TURNS_PER_GLANCE: u32 = 64;

/// Time from one look to the next.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// When nothing has moved for so long, the device is asked, again and again: some
/// (the kernel's rxe) repeat a message for ever while their port is down.
const ASK_AFTER: Duration = Duration::from_secs(1);

/// Watches over a loop.
pub(crate) struct Watchdog {
    peer: Presence,
    interrupt: Interrupt,
    /// How long nothing may move.
    patience: Duration,
    /// How long the loop may go on after the peer has closed the connection:
    /// a peer that is done first closes while its last message is on its way.
    grace: Duration,
    turns: u32,
    looked: Moment,
    seen: u64,
    moved: Moment,
    closed: Option<(Moment, End)>,
    /// Says whether something is wrong with the device.
    troubled: Option<Box<dyn Fn() -> bool>>,
    /// When it was asked last.
    asked: Moment,
    /// Is told what the looks see.
    live: Option<Live>,
}

impl Watchdog {
    /// For a run with this peer.
    pub(crate) fn new(peer: Presence, interrupt: &Interrupt, patience: Duration) -> Self {
        Self {
            peer,
            interrupt: interrupt.clone(),
            patience,
            grace: Duration::ZERO,
            turns: 0,
            looked: Moment::now(),
            seen: 0,
            moved: Moment::now(),
            closed: None,
            troubled: None,
            asked: Moment::now(),
            live: None,
        }
    }

    /// Lets the loop go on for so long after the peer has closed the connection.
    pub(crate) fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Asks whether something is wrong with the device when nothing moves.
    pub(crate) fn with_device(mut self, troubled: impl Fn() -> bool + 'static) -> Self {
        self.troubled = Some(Box::new(troubled));
        self
    }

    /// Tells somebody what the looks see.
    pub(crate) fn with_live(mut self, live: Option<Live>) -> Self {
        self.live = live;
        self
    }

    /// The next run has messages of so many bytes.
    pub(crate) fn announce(&mut self, size: u32) {
        if let Some(live) = &mut self.live {
            live.announce(size);
        }
    }

    /// A run begins.
    pub(crate) fn start(&mut self) {
        self.moved = Moment::now();
        self.seen = 0;
        if let Some(live) = &mut self.live {
            live.start(self.moved);
        }
    }

    /// The loop has slept: its next turn is worth a look at the clock.
    pub(crate) fn slept(&mut self) {
        self.turns = TURNS_PER_GLANCE;
    }

    /// The loop itself waits, for a limit of the rate: no wonder that nothing
    /// moves.
    #[inline]
    pub(crate) fn excuse(&mut self) {
        self.moved = self.looked;
    }

    /// One turn of a loop, which has got so far.
    #[inline]
    pub(crate) fn turn(&mut self, progress: u64) -> Result<(), RunError> {
        self.turns += 1;
        if self.turns < TURNS_PER_GLANCE {
            return Ok(());
        }
        self.turns = 0;
        let now = Moment::now();
        if now - self.looked < LOOK_EVERY {
            return Ok(());
        }
        self.looked = now;
        self.look(now, progress)
    }

    #[cold]
    fn look(&mut self, now: Moment, progress: u64) -> Result<(), RunError> {
        if self.interrupt.requested() {
            return Err(RunError::Interrupted);
        }
        if self.closed.is_none() {
            self.closed = self.peer.ended().map(|end| (now, end));
        }
        match self.closed {
            Some((_, End::Device)) => return Err(RunError::DeviceGone),
            Some((closed, End::Peer)) if now - closed >= self.grace => {
                return Err(RunError::PeerGone);
            }
            _ => {}
        }
        if progress != self.seen {
            self.seen = progress;
            self.moved = now;
        }
        if let Some(live) = &mut self.live {
            live.look(now, progress)?;
        }
        let waited = now - self.moved;
        if waited >= ASK_AFTER && now - self.asked >= ASK_AFTER {
            self.asked = now;
            if self.troubled.as_ref().is_some_and(|troubled| troubled()) {
                return Err(RunError::DeviceDown { waited });
            }
        }
        if waited > self.patience {
            return Err(RunError::Stalled { waited });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    const PATIENCE: Duration = Duration::from_millis(50);

    fn over(socket: &UnixStream) -> Presence {
        Presence::of_socket(socket).unwrap()
    }

    fn spin(dog: &mut Watchdog, progress: impl Fn(u64) -> u64) -> RunError {
        let start = Instant::now();
        for turn in 0.. {
            if let Err(error) = dog.turn(progress(turn)) {
                return error;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "never bites");
        }
        unreachable!("an endless loop")
    }

    #[test]
    fn bites_when_nothing_moves() {
        let (near, _far) = UnixStream::pair().unwrap();
        let mut dog = Watchdog::new(over(&near), &Interrupt::new(), PATIENCE);
        assert!(matches!(spin(&mut dog, |_| 7), RunError::Stalled { .. }));
    }

    #[test]
    fn asks_the_device_when_nothing_moves() {
        let (near, _far) = UnixStream::pair().unwrap();
        let guard = |troubled| {
            Watchdog::new(over(&near), &Interrupt::new(), ASK_AFTER * 2)
                .with_device(move || troubled)
        };
        let bitten = spin(&mut guard(true), |_| 7);
        assert!(matches!(bitten, RunError::DeviceDown { waited } if waited < ASK_AFTER * 2));
        let bitten = spin(&mut guard(false), |_| 7);
        assert!(matches!(bitten, RunError::Stalled { .. }));
        let start = Instant::now();
        let mut moving = guard(true);
        for turn in 0.. {
            moving.turn(turn).unwrap();
            if start.elapsed() > ASK_AFTER + LOOK_EVERY * 2 {
                break;
            }
        }
    }

    #[test]
    fn a_loop_that_waits_by_itself_is_excused() {
        let (near, _far) = UnixStream::pair().unwrap();
        let mut dog = Watchdog::new(over(&near), &Interrupt::new(), PATIENCE);
        let start = Instant::now();
        while start.elapsed() < PATIENCE * 3 {
            dog.excuse();
            dog.turn(7).unwrap();
        }
        assert!(matches!(spin(&mut dog, |_| 7), RunError::Stalled { .. }));
    }

    #[test]
    fn bites_when_the_peer_is_gone_but_not_when_it_is_ahead() {
        let (near, far) = UnixStream::pair().unwrap();
        let interrupt = Interrupt::new();
        let mut dog = Watchdog::new(over(&near), &interrupt, PATIENCE);
        std::io::Write::write_all(&mut &far, b"next").unwrap();
        let start = Instant::now();
        let mut turn = 0;
        while start.elapsed() < LOOK_EVERY * 3 {
            turn += 1;
            dog.turn(turn).unwrap();
        }
        std::io::Read::read_exact(&mut &near, &mut [0; 4]).unwrap();
        drop(far);
        assert!(matches!(spin(&mut dog, |turn| turn), RunError::PeerGone));
        let mut patient = Watchdog::new(over(&near), &interrupt, PATIENCE).with_grace(PATIENCE);
        let start = Instant::now();
        assert!(matches!(
            spin(&mut patient, |turn| turn),
            RunError::PeerGone
        ));
        assert!(start.elapsed() >= PATIENCE);
    }

    #[test]
    fn passes_the_interrupt_on() {
        let (near, _far) = UnixStream::pair().unwrap();
        let interrupt = Interrupt::new();
        let mut dog = Watchdog::new(over(&near), &interrupt, PATIENCE);
        interrupt.request();
        assert!(matches!(spin(&mut dog, |turn| turn), RunError::Interrupted));
    }
}
