//! The commands against the ceiling: what they reach of what a program can
//! reach that does nothing but send and receive UDP datagrams over `lo`; and
//! against each other.
//!
//! `cargo bench -p ironverbs --bench tools -- [--json] [--pin] [--rounds N]`
//!
//! The ceiling and the commands are measured in turn, so that both see the
//! same machine; the best of the rounds and the medians are shown. The median
//! of the ratios is that of each round's own, which what else runs on the
//! machine changes least. A missed target is shown, and is no failure.
//!
//! | file | |
//! |---|---|
//! | `command` | a server and a client, and what their screens say |
//! | `table` | the figures, side by side |
//! | `verbs` | commands that are compared with each other |
//! | `udp` | the ceiling, which belongs to `rxe-user` |

use std::process::ExitCode;
use std::time::Duration;

mod command;
mod table;
#[path = "../../../rxe-user/benches/ceiling/udp/mod.rs"]
mod udp;
mod verbs;

use command::Run;
use table::{Figure, Goal, Table, Target};
use udp::peer::Way;
use udp::{Options, Result, peer};

/// How long each stream of the ceiling runs.
const STREAM: Duration = Duration::from_millis(500);

/// Packets of 4096 bytes; about half a second.
const BANDWIDTH: Run = Run {
    program: env!("CARGO_BIN_EXE_ib_write_bw"),
    arguments: &["-s", "65536", "-m", "4096", "-n", "20000"],
    message: 65536,
};

/// Packets of 40 bytes, as in the ceiling; about a second.
const MESSAGE_RATE: Run = Run {
    program: env!("CARGO_BIN_EXE_ib_write_bw"),
    arguments: &["-s", "8", "-l", "64", "-n", "1000000"],
    message: 8,
};

/// As many round trips as the ceiling has.
const LATENCY: Run = Run {
    program: env!("CARGO_BIN_EXE_ib_write_lat"),
    arguments: &["-s", "8", "-n", "50000"],
    message: 8,
};

/// What a round measures: a figure of the ceiling, of the link, and of a command.
struct Round {
    bandwidth: [f64; 3],
    message_rate: [f64; 3],
    latency: [f64; 3],
    tail: [f64; 3],
    verbs: verbs::Round,
    /// Peak memory of the largest process, without its messages, in 10^6 bytes.
    memory: f64,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tools: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (mut json, mut pin) = (false, false);
    let mut rounds: u32 = 5;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            peer::FLAG => return peer::run(&mut arguments),
            command::FLAG => return command::become_command(&mut arguments),
            "--pin" => pin = true,
            "--json" => json = true,
            "--rounds" => rounds = arguments.next().ok_or("--rounds needs a number")?.parse()?,
            // What cargo adds.
            "--bench" => {}
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let rounds = (0..rounds)
        .map(|_| measure(pin))
        .collect::<Result<Vec<Round>>>()?;
    if rounds.is_empty() {
        return Err("no rounds".into());
    }
    let ceiling = figures(&rounds);
    let count = rounds.len();
    let verbs: Vec<verbs::Round> = rounds.into_iter().map(|round| round.verbs).collect();
    let tables = [
        Table {
            titles: ["plain UDP", "UdpLink"],
            figures: ceiling,
        },
        Table {
            titles: ["base", ""],
            figures: verbs::figures(&verbs),
        },
    ];
    if json {
        println!("{}", table::json(&tables));
    } else {
        table::print(&tables, count);
        println!(
            "base: ib_write_bw -s 65536 for bandwidth, for latency both ways of plain UDP's ping-pong"
        );
    }
    Ok(())
}

/// Measures everything once.
fn measure(pin: bool) -> Result<Round> {
    let options = Options {
        duration: STREAM,
        pin,
    };
    let ways = [Way::Plain, Way::Link];
    // What is compared is measured close together: the host's own speed changes.
    let [plain, link] = ways.map(|way| udp::bandwidth(way, options));
    let run = BANDWIDTH.pair(pin)?;
    // MiB/s.
    let gigabytes = run.field("BW average[MiB/sec]", 3)? * f64::from(1 << 20) / 1e9;
    let bandwidth = [plain?, link?, gigabytes];
    let mut memory = run.memory;

    let [plain, link] = ways.map(|way| udp::packet_rate(way, options));
    let run = MESSAGE_RATE.pair(pin)?;
    let message_rate = [plain?, link?, run.field("MsgRate[Mpps]", 4)?];
    memory = memory.max(run.memory);

    let [plain, link] = ways.map(|way| udp::latency(way, options));
    let (plain, link) = (plain?, link?);
    let run = LATENCY.pair(pin)?;
    let typical = run.field("t_typical[usec]", 4)?;
    let tail = run.field("99% percentile[usec]", 7)?;
    memory = memory.max(run.memory);
    Ok(Round {
        bandwidth,
        message_rate,
        latency: [plain.typical_us, link.typical_us, typical],
        tail: [plain.percentile_99_us, link.percentile_99_us, tail],
        verbs: verbs::measure(options)?,
        memory: memory as f64 / 1e6,
    })
}

fn figures(rounds: &[Round]) -> Vec<Figure> {
    let compared = |what, unit, goal, target, get: fn(&Round) -> [f64; 3]| {
        let column = |index: usize| rounds.iter().map(|round| get(round)[index]).collect();
        Figure {
            what,
            unit,
            goal,
            target,
            ceiling: column(0),
            link: column(1),
            command: column(2),
        }
    };
    vec![
        compared(
            "ib_write_bw -s 65536",
            "GB/s",
            Goal::High,
            Some(Target::Ratio(0.6)),
            |round| round.bandwidth,
        ),
        compared(
            "ib_write_bw -s 8 -l 64",
            "M/s",
            Goal::High,
            Some(Target::ValueOrRatio(1.5, 0.3)),
            |round| round.message_rate,
        ),
        compared(
            "ib_write_lat -s 8, typical",
            "us",
            Goal::Low,
            Some(Target::Ratio(1.4)),
            |round| round.latency,
        ),
        compared("ib_write_lat -s 8, 99 %", "us", Goal::Low, None, |round| {
            round.tail
        }),
        Figure {
            what: "memory without messages",
            unit: "MB",
            goal: Goal::Low,
            target: Some(Target::Value(20.0)),
            ceiling: Vec::new(),
            link: Vec::new(),
            command: rounds.iter().map(|round| round.memory).collect(),
        },
    ]
}
