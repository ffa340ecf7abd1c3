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
use udp::{Figures, Options, Result, peer};

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
        plain.push(udp::measure(Way::Plain, options)?);
        link.push(udp::measure(Way::Link, options)?);
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

/// The better of the figures.
fn better(one: Figures, other: Figures) -> Figures {
    let mut best = one;
    best.gigabytes_per_second = one.gigabytes_per_second.max(other.gigabytes_per_second);
    best.million_packets_per_second = one
        .million_packets_per_second
        .max(other.million_packets_per_second);
    let (latency, other) = (&mut best.latency, &other.latency);
    latency.typical_us = latency.typical_us.min(other.typical_us);
    latency.percentile_99_us = latency.percentile_99_us.min(other.percentile_99_us);
    best
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
    row("packets of 40 B", "M/s", rate(plain), rate(link));
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
