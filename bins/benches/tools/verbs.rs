//! The verbs and ways of running against each other: what should cost about the
//! same, measured in one round.

use std::time::Duration;

use crate::command::Run;
use crate::table::{Figure, Goal, Target};
use crate::udp::peer::Way;
use crate::udp::{self, Options, Result};

/// RDMA Writes are what the others are compared with.
const WRITE: Run = bandwidth(
    env!("CARGO_BIN_EXE_ib_write_bw"),
    &["-s", "65536", "-m", "4096", "-n", "20000"],
);

const READ: Run = bandwidth(env!("CARGO_BIN_EXE_ib_read_bw"), WRITE.arguments);

const SEND: Run = bandwidth(env!("CARGO_BIN_EXE_ib_send_bw"), WRITE.arguments);

/// About as many messages.
const MANY_QUEUE_PAIRS: Run = bandwidth(
    WRITE.program,
    &["-s", "65536", "-m", "4096", "-n", "312", "-q", "64"],
);

const ATOMIC_RATE: Run = small(
    env!("CARGO_BIN_EXE_ib_atomic_bw"),
    &["-o", "16", "-n", "200000"],
);

const READ_LATENCY: Run = small(
    env!("CARGO_BIN_EXE_ib_read_lat"),
    &["-s", "8", "-n", "20000"],
);

const ATOMIC_LATENCY: Run = small(env!("CARGO_BIN_EXE_ib_atomic_lat"), &["-n", "20000"]);

/// A receiver that sleeps between messages: two a second.
const IDLE: Run = small(
    env!("CARGO_BIN_EXE_ib_send_bw"),
    &[
        "-e",
        "-s",
        "8",
        "-n",
        "9",
        "--rate_limit=2",
        "--rate_units=p",
        "--rate_limit_type=SW",
        "--burst_size=1",
    ],
);

/// When the receiver is watched: after its start, and before its end.
const SETTLE: Duration = Duration::from_millis(1500);
const WATCH: Duration = Duration::from_secs(2);

const fn bandwidth(program: &'static str, arguments: &'static [&'static str]) -> Run {
    Run {
        program,
        arguments,
        message: 65536,
    }
}

const fn small(program: &'static str, arguments: &'static [&'static str]) -> Run {
    Run {
        program,
        arguments,
        message: 8,
    }
}

/// What a round measures.
pub(crate) struct Round {
    /// 10^9 bytes per second.
    write: f64,
    read: f64,
    send: f64,
    many_queue_pairs: f64,
    /// 10^6 per second.
    atomic_rate: f64,
    /// Both ways by plain UDP, in microseconds.
    round_trip: f64,
    read_latency: f64,
    atomic_latency: f64,
    /// Milliseconds of CPU per second.
    idle: f64,
}

/// Measures everything once.
pub(crate) fn measure(options: Options) -> Result<Round> {
    let pin = options.pin;
    let gigabytes = |run: &Run| -> Result<f64> {
        let mebibytes = run.pair(pin)?.field("BW average[MiB/sec]", 3)?;
        Ok(mebibytes * f64::from(1 << 20) / 1e9)
    };
    let typical = |run: &Run| run.pair(pin)?.field("t_typical[usec]", 4);
    Ok(Round {
        write: gigabytes(&WRITE)?,
        read: gigabytes(&READ)?,
        send: gigabytes(&SEND)?,
        many_queue_pairs: gigabytes(&MANY_QUEUE_PAIRS)?,
        atomic_rate: ATOMIC_RATE.pair(pin)?.field("MsgRate[Mpps]", 4)?,
        round_trip: 2.0 * udp::latency(Way::Plain, options)?.typical_us,
        read_latency: typical(&READ_LATENCY)?,
        atomic_latency: typical(&ATOMIC_LATENCY)?,
        idle: IDLE.server_cpu(SETTLE, WATCH)?.as_secs_f64() * 1e3 / WATCH.as_secs_f64(),
    })
}

/// The figures, each beside what it is compared with.
pub(crate) fn figures(rounds: &[Round]) -> Vec<Figure> {
    let column = |get: fn(&Round) -> f64| -> Vec<f64> { rounds.iter().map(get).collect() };
    let figure = |what, unit, goal, target, ceiling, command| Figure {
        what,
        unit,
        goal,
        target: Some(target),
        ceiling,
        link: Vec::new(),
        command,
    };
    let over_write = |what, target, get| {
        let write = column(|round| round.write);
        let target = Target::Ratio(target);
        figure(what, "GB/s", Goal::High, target, write, column(get))
    };
    let over_round_trip = |what, get| {
        let round_trip = column(|round| round.round_trip);
        let target = Target::Ratio(1.3);
        figure(what, "us", Goal::Low, target, round_trip, column(get))
    };
    let alone = |what, unit, goal, target, get| {
        let target = Target::Value(target);
        figure(what, unit, goal, target, Vec::new(), column(get))
    };
    vec![
        over_write("ib_read_bw -s 65536", 0.85, |round| round.read),
        over_write("ib_send_bw -s 65536", 0.85, |round| round.send),
        over_write("ib_write_bw -s 65536 -q 64", 0.8, |round| {
            round.many_queue_pairs
        }),
        over_round_trip("ib_read_lat -s 8, typical", |round| round.read_latency),
        over_round_trip("ib_atomic_lat, typical", |round| round.atomic_latency),
        alone("ib_atomic_bw -o 16", "M/s", Goal::High, 0.5, |round| {
            round.atomic_rate
        }),
        alone("ib_send_bw -e, idle", "ms/s", Goal::Low, 10.0, |round| {
            round.idle
        }),
    ]
}
