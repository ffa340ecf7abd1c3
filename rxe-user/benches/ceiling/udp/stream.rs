//! Packets in one direction, with just enough of an acknowledgement that the
//! receive buffer holds what is under way.

use std::time::{Duration, Instant};

use super::peer::{Measurement, Role, Way, with};
use super::port::{Arrival, Port};
use super::{Options, Result};

/// Bytes of payload under way at most.
const WINDOW_BYTES: usize = 1 << 20;
/// Packets under way at most.
const WINDOW_PACKETS: usize = 16384;
/// Bytes of payload, and packets, that are sent in one go.
const BATCH_BYTES: usize = 120 << 10;
const BATCH_PACKETS: usize = 512;

/// Without an acknowledgement for so long packets have got lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the sender asks at the end for what isn't acknowledged yet.
const ASK_EVERY: Duration = Duration::from_millis(1);

/// The word that ends a stream.
const END: u64 = u64::MAX;

/// What went through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    payload: usize,
    packets: u64,
    elapsed: Duration,
}

impl Report {
    /// Payload, in 10^9 bytes per second.
    pub(crate) fn gigabytes_per_second(&self) -> f64 {
        self.million_packets_per_second() * self.payload as f64 / 1e3
    }

    /// 10^6 packets per second.
    pub(crate) fn million_packets_per_second(&self) -> f64 {
        self.packets as f64 / self.elapsed.as_secs_f64() / 1e6
    }
}

/// Packets under way at most.
fn window(payload: usize) -> usize {
    WINDOW_PACKETS.min(WINDOW_BYTES / payload)
}

struct Stream {
    payload: usize,
    duration: Duration,
}

/// Streams packets of `payload` bytes to a peer.
pub(crate) fn measure(way: Way, payload: usize, options: Options) -> Result<Report> {
    let stream = Stream {
        payload,
        duration: options.duration,
    };
    with(way, Role::Stream(payload), options, &stream)
}

impl Measurement for Stream {
    type Report = Report;

    fn run<P: Port>(&self, mut port: P) -> Result<Report> {
        let window = window(self.payload) as u64;
        let batch = BATCH_PACKETS.min(BATCH_BYTES / self.payload);
        let (mut sent, mut acknowledged) = (0, 0);
        let start = Instant::now();
        let mut last_news = start;
        let mut last_asked = start;
        loop {
            let running = start.elapsed() < self.duration;
            if !running && sent == acknowledged {
                break;
            }
            if running && sent - acknowledged + batch as u64 <= window {
                port.send_data(batch)?;
                sent += batch as u64;
                continue;
            }
            if !running && last_asked.elapsed() > ASK_EVERY {
                port.send_word(sent)?;
                last_asked = Instant::now();
            }
            let before = acknowledged;
            port.receive(|arrival| {
                if let Arrival::Word(count) = arrival {
                    acknowledged = count.max(acknowledged);
                }
            })?;
            if acknowledged > before {
                last_news = Instant::now();
            } else if last_news.elapsed() > PATIENCE {
                return Err(format!("of {sent} packets {acknowledged} arrived intact").into());
            }
        }
        let elapsed = start.elapsed();
        port.send_word(END)?;
        Ok(Report {
            payload: self.payload,
            packets: acknowledged,
            elapsed,
        })
    }
}

/// Takes a stream.
pub(crate) fn serve<P: Port>(mut port: P, payload: usize) -> Result<()> {
    let acknowledge_every = window(payload) as u64 / 8;
    let (mut received, mut acknowledged) = (0, 0);
    loop {
        let mut asked = None;
        port.receive(|arrival| match arrival {
            Arrival::Data => received += 1,
            Arrival::Word(word) => asked = Some(word),
            Arrival::Garbage => {}
        })?;
        match asked {
            Some(END) => return Ok(()),
            None if received - acknowledged < acknowledge_every => {}
            _ => {
                acknowledged = received;
                port.send_word(received)?;
            }
        }
    }
}
