//! Options stock perftest does not have.

use std::time::Duration;

use super::row::{Check, OptionRow, Section, Tools};
use crate::options::params::Verbosity;
use crate::options::refusal::Refusal;
use crate::options::settings::Settings;
use crate::report::Style;

/// All long, so that no letter of stock perftest is taken.
pub(super) const ROWS: &[OptionRow] = &[
    OptionRow::flag(Section::Own, "loopback", |s| s.loopback = true)
        .help("Both ends in this process; no host and no peer needed"),
    OptionRow::flag(Section::Own, "userspace", |s| s.userspace = true)
        .help("Take the userspace NIC even where there is a kernel device"),
    OptionRow::text(Section::Own, "capture", "<file>", |s, v| {
        s.capture = Some(v.to_owned());
        Ok(())
    })
    .help("Save the packets of the userspace NIC, both directions, as pcap"),
    OptionRow::text(Section::Own, "peer-timeout", "<seconds>", |s, v| {
        s.peer_timeout = more_than_0("--peer-timeout", v)?;
        Ok(())
    })
    .default(|_| "30".into())
    .help("Longest wait for each step of the dialogue with the peer"),
    OptionRow::text(Section::Own, "connect_retry", "<seconds>", |s, v| {
        s.connect_retry = seconds("--connect_retry", v)?;
        Ok(())
    })
    .alias("connect-retry")
    .default(|_| "0".into())
    .help("A client tries so long again while nobody listens"),
    OptionRow::flag(Section::Own, "check_payload", |s| {
        s.memory.check_payload = true
    })
    .help("Compare what came in with the payload file; fail when it differs"),
    OptionRow::text(Section::Own, "output_style", "<version>", |s, v| {
        s.style = Style::from_name(v).ok_or_else(|| {
            Refusal::option(format!(
                " There is no output style {v}: choose from {{{}}}\n",
                Style::NAMES.join(",")
            ))
        })?;
        Ok(())
    })
    .choices(Style::NAMES)
    .default(|_| "6.29".into())
    .help("Screens and report files as this version of perftest has them"),
    OptionRow::text(Section::Own, "percentiles", "<list>", percentiles)
        .only(
            Tools::LAT,
            " --percentiles is available only on latency tests\n",
        )
        .help("Show these percentiles on stderr, for example 50,99,99.99; with -D, too"),
    OptionRow::text(Section::Own, "hdr_file", "<file>", |s, v| {
        s.hdr_file = Some(v.to_owned());
        Ok(())
    })
    .only(
        Tools::LAT,
        " --hdr_file is available only on latency tests\n",
    )
    .help("Save the distribution as HdrHistogram's tools plot it (.hgrm); with -a FILE.<size>"),
    OptionRow::number(
        Section::Own,
        "repeat",
        "<runs>",
        ("Repeat", "int", Check::Range(1, 1000)),
        |s, v| s.repeat = v as u32,
    )
    .default(|_| "1".into())
    .help(
        "Measure so often over the same connection, and show median, spread and confidence on \
         stderr; where both ends take part in the loop, both need it",
    ),
    OptionRow::text(Section::Own, "interval", "<seconds>", |s, v| {
        s.interval = Some(more_than_0("--interval", v)?);
        Ok(())
    })
    .help("Show on stderr every so many seconds how the messages get on, at the end that has them"),
    OptionRow::number(
        Section::Own,
        "seed",
        "<number>",
        ("Seed", "uint64_t", Check::Range(0, i64::MAX)),
        |s, v| s.seed = Some(v as u64),
    )
    .help("Reproducible packet sequence numbers"),
    OptionRow::flag(Section::Own, "verbose", |s| {
        s.verbosity = s.verbosity.max(Verbosity::Verbose);
    })
    .help("Say on stderr which fallback was taken and why"),
    OptionRow::flag(Section::Own, "debug", |s| s.verbosity = Verbosity::Debug)
        .help("Say on stderr every step"),
];

/// `50,99,99.99`.
fn percentiles(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.percentiles = text
        .split(',')
        .map(|percent| match percent.parse::<f64>() {
            Ok(value) if value > 0.0 && value <= 100.0 => Ok(value),
            _ => Err(Refusal::option(format!(
                " '{percent}' in --percentiles is not a number above 0, up to 100: give a list \
                 such as 50,99,99.99\n"
            ))),
        })
        .collect::<Result<_, _>>()?;
    Ok(())
}

/// A century: more would overflow the clocks this is compared with.
const LONGEST: f64 = 3.2e9;

fn seconds(option: &str, text: &str) -> Result<Duration, Refusal> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=LONGEST).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(Refusal::option(format!(
            " {option} {text} is not a time: give seconds, for example {option} 2.5\n"
        ))),
    }
}

fn more_than_0(option: &str, text: &str) -> Result<Duration, Refusal> {
    match seconds(option, text)? {
        Duration::ZERO => Err(Refusal::option(format!(
            " {option} must be more than 0 seconds\n"
        ))),
        time => Ok(time),
    }
}
