//! One small packet back and forth, both ends spinning.

use std::time::{Duration, Instant};

use super::peer::{Measurement, Role, Way, with};
use super::port::{Arrival, Port};
use super::{Options, Result};

const WARM_UP: u64 = 5_000;
const ROUNDS: u64 = 50_000;
const END: u64 = u64::MAX;

/// Without an answer for so long a packet has got lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// Half of the time of a round trip, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// The median.
    pub(crate) typical_us: f64,
    /// What 99 of 100 don't exceed.
    pub(crate) percentile_99_us: f64,
}

struct Pingpong;

/// Plays with a peer.
pub(crate) fn measure(way: Way, options: Options) -> Result<Report> {
    with(way, Role::Pingpong, options, &Pingpong)
}

impl Measurement for Pingpong {
    type Report = Report;

    fn run<P: Port>(&self, mut port: P) -> Result<Report> {
        let mut times = Vec::with_capacity(ROUNDS as usize);
        for round in 0..WARM_UP + ROUNDS {
            let start = Instant::now();
            port.send_word(round)?;
            if wait(&mut port, Some(PATIENCE))? != round {
                return Err("the peer has answered something else".into());
            }
            if round >= WARM_UP {
                times.push(start.elapsed());
            }
        }
        port.send_word(END)?;
        times.sort_unstable();
        let half_us = |part: usize| {
            let time = times.get(times.len() * part / 100).copied();
            time.unwrap_or_default().as_secs_f64() * 1e6 / 2.0
        };
        Ok(Report {
            typical_us: half_us(50),
            percentile_99_us: half_us(99),
        })
    }
}

/// Sends each packet back.
pub(crate) fn serve<P: Port>(mut port: P) -> Result<()> {
    loop {
        match wait(&mut port, None)? {
            END => return Ok(()),
            word => port.send_word(word)?,
        }
    }
}

/// The next word that arrives.
fn wait<P: Port>(port: &mut P, patience: Option<Duration>) -> Result<u64> {
    const LOOKS_PER_CLOCK: u32 = 1 << 16;
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS_PER_CLOCK {
            let mut word = None;
            port.receive(|arrival| {
                if let Arrival::Word(arrived) = arrival {
                    word = Some(arrived);
                }
            })?;
            if let Some(word) = word {
                return Ok(word);
            }
        }
        if patience.is_some_and(|patience| start.elapsed() > patience) {
            return Err("no answer: a packet has got lost".into());
        }
    }
}
