//! What UDP sockets can carry over `lo`, measured between two processes: by a
//! program that does no more than it must, which is the ceiling for all else,
//! and by this crate's `UdpLink`.
//!
//! `cargo bench -p rxe-user --bench ceiling -- [--json] [--pin] [--seconds N] [--rounds N]`
//!
//! Both are measured in turn, several times, and the best of each counts:
//! what else runs on the machine only ever makes them slower.

use std::time::Duration;

mod udp;

use udp::peer::Way;
use udp::{Options, Result, peer};

/// The figures of one way to send packets.
#[derive(Clone, Copy)]
struct Figures {
    /// Payload of 4096-byte packets, in 10^9 bytes per second.
    bandwidth: f64,
    /// Small packets, in 10^6 per second.
    packet_rate: f64,
    /// Half round trip of small packets, in microseconds: the median, and what
    /// 99 of 100 don't exceed.
    typical: f64,
    tail: f64,
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
    let (mut plain, mut link) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(measure(Way::Plain, options)?);
        link.push(measure(Way::Link, options)?);
    }
    let best = |all: Vec<Figures>| all.into_iter().reduce(better).ok_or("no rounds");
    let (plain, link) = (best(plain)?, best(link)?);
    if json {
        print_json(&plain, &link);
    } else {
        print_table(&plain, &link);
    }
    Ok(())
}

/// Measures once.
fn measure(way: Way, options: Options) -> Result<Figures> {
    let bandwidth = udp::bandwidth(way, options)?;
    let packet_rate = udp::packet_rate(way, options)?;
    let latency = udp::latency(way, options)?;
    Ok(Figures {
        bandwidth,
        packet_rate,
        typical: latency.typical_us,
        tail: latency.percentile_99_us,
    })
}

/// The better of the figures.
fn better(one: Figures, other: Figures) -> Figures {
    Figures {
        bandwidth: one.bandwidth.max(other.bandwidth),
        packet_rate: one.packet_rate.max(other.packet_rate),
        typical: one.typical.min(other.typical),
        tail: one.tail.min(other.tail),
    }
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
    row(
        "payload in 4096 B packets",
        "GB/s",
        plain.bandwidth,
        link.bandwidth,
    );
    row(
        "packets of 40 B",
        "M/s",
        plain.packet_rate,
        link.packet_rate,
    );
    row(
        "half round trip, typical",
        "us",
        plain.typical,
        link.typical,
    );
    row("half round trip, 99 %", "us", plain.tail, link.tail);
}

fn print_json(plain: &Figures, link: &Figures) {
    let object = |figures: &Figures| {
        format!(
            r#"{{"bandwidth_gb_s":{:.3},"message_rate_m_s":{:.3},"latency_us":{:.3},"latency_99_us":{:.3}}}"#,
            figures.bandwidth, figures.packet_rate, figures.typical, figures.tail,
        )
    };
    println!(r#"{{"plain":{},"link":{}}}"#, object(plain), object(link));
}
