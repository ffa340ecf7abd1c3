//! What UDP sockets can carry over `lo`, measured between two processes: by a
//! program that does no more than it must, which is the ceiling for all else,
//! and by this crate's `UdpLink`.
//!
//! `cargo bench -p rxe-user --bench ceiling -- [--json] [--pin] [--seconds N] [--rounds N]`
//!
//! Both are measured in turn, several times, and the best of each counts:
//! what else runs on the machine only ever makes them slower.
//!
//! | file | |
//! |---|---|
//! | `stream` | packets in one direction, as fast as the receiver takes them |
//! | `pingpong` | one packet back and forth, both ends spinning |
//! | `port` | what both need of a way to send packets |
//! | `plain`, `link` | the two ways |
//! | `peer` | the other process |

use std::error::Error;
use std::time::Duration;

mod link;
mod peer;
mod pingpong;
mod plain;
mod port;
mod stream;

use peer::Way;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// What is measured.
#[derive(Clone, Copy)]
struct Options {
    /// How long each stream runs.
    duration: Duration,
    /// Whether the two processes stay on CPUs 0 and 1.
    pin: bool,
}

/// The best figures of one way to send packets.
#[derive(Clone, Copy)]
struct Figures {
    /// Payload of 4096-byte packets, in 10^9 bytes per second.
    gigabytes_per_second: f64,
    /// Packets with a payload of 8 bytes, in 10^6 per second.
    million_packets_per_second: f64,
    latency: pingpong::Report,
}

impl Figures {
    const NONE: Self = Self {
        gigabytes_per_second: 0.0,
        million_packets_per_second: 0.0,
        latency: pingpong::Report {
            typical_us: f64::INFINITY,
            percentile_99_us: f64::INFINITY,
        },
    };
}

fn main() -> Result<()> {
    let mut options = Options {
        duration: Duration::from_millis(500),
        pin: false,
    };
    let mut json = false;
    let mut rounds: u32 = 5;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            peer::FLAG => return peer::run(&mut arguments),
            "--pin" => options.pin = true,
            "--json" => json = true,
            "--seconds" => {
                let seconds = arguments.next().ok_or("--seconds needs a number")?;
                options.duration = Duration::try_from_secs_f64(seconds.parse()?)?;
            }
            "--rounds" => rounds = arguments.next().ok_or("--rounds needs a number")?.parse()?,
            // What cargo adds.
            "--bench" => {}
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let (mut plain, mut link) = (Figures::NONE, Figures::NONE);
    for _ in 0..rounds {
        plain = measure(Way::Plain, options, plain)?;
        link = measure(Way::Link, options, link)?;
    }
    if json {
        print_json(&plain, &link);
    } else {
        print_table(&plain, &link);
    }
    Ok(())
}

/// Measures once more; the better of the figures.
fn measure(way: Way, options: Options, best: Figures) -> Result<Figures> {
    let bandwidth = stream::measure(way, 4096, options)?.gigabytes_per_second();
    let rate = stream::measure(way, 8, options)?.million_packets_per_second();
    let latency = pingpong::measure(way, options)?;
    Ok(Figures {
        gigabytes_per_second: best.gigabytes_per_second.max(bandwidth),
        million_packets_per_second: best.million_packets_per_second.max(rate),
        latency: pingpong::Report {
            typical_us: best.latency.typical_us.min(latency.typical_us),
            percentile_99_us: best.latency.percentile_99_us.min(latency.percentile_99_us),
        },
    })
}

fn print_table(plain: &Figures, link: &Figures) {
    let row = |what: &str, unit: &str, plain: f64, link: f64| {
        println!(
            "{what:<28}{unit:<10}{plain:>12.3}{link:>12.3}{:>10.2}",
            link / plain
        );
    };
    println!(
        "{:<28}{:<10}{:>12}{:>12}{:>10}",
        "", "", "plain UDP", "UdpLink", "ratio"
    );
    let gigabytes = |figures: &Figures| figures.gigabytes_per_second;
    row(
        "payload in 4096 B packets",
        "GB/s",
        gigabytes(plain),
        gigabytes(link),
    );
    let rate = |figures: &Figures| figures.million_packets_per_second;
    row("packets of 8 B", "M/s", rate(plain), rate(link));
    let latency = |figures: &Figures| figures.latency.typical_us;
    row(
        "half round trip, typical",
        "us",
        latency(plain),
        latency(link),
    );
    let tail = |figures: &Figures| figures.latency.percentile_99_us;
    row("half round trip, 99 %", "us", tail(plain), tail(link));
}

fn print_json(plain: &Figures, link: &Figures) {
    let object = |figures: &Figures| {
        format!(
            r#"{{"bandwidth_gb_s":{:.3},"message_rate_m_s":{:.3},"latency_us":{:.3},"latency_99_us":{:.3}}}"#,
            figures.gigabytes_per_second,
            figures.million_packets_per_second,
            figures.latency.typical_us,
            figures.latency.percentile_99_us,
        )
    };
    println!(r#"{{"plain":{},"link":{}}}"#, object(plain), object(link));
}
