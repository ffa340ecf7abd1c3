//! Why a test failed: what stock perftest prints, whose fault it is, and what
//! to do next.

use std::io;
use std::time::Duration;

use verbs_sys::cm::CmError;
use verbs_sys::{GidEntry, VerbsError};

pub use crate::setup::PayloadError;
pub use crate::traffic::WrongData;

use crate::counters::CounterError;
use crate::exchange::{ExchangeError, Side};
use crate::options::{EXIT_FAILURE, Messages, Outcome, Resolved, Stream};
use crate::run::RunError;
use crate::screen::ScreenError;
use crate::words::{Tool, Verb};

/// Exit code after the user's interrupt, as a shell sees a process that died
/// of SIGINT.
pub const EXIT_INTERRUPTED: i32 = 130;

/// A failed test. `Display` explains; [`Failure::stock_text`] gives the lines
/// of stock perftest.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The device or port can't be used as the user wants.
    #[error("{advice}")]
    Refused {
        /// Stock's texts and exit code.
        resolved: Resolved,
        /// What to do.
        advice: String,
    },
    /// The dialogue with the peer failed.
    #[error("{source}")]
    Exchange {
        /// Which end we are.
        side: Side,
        /// What happened.
        source: ExchangeError,
    },
    /// An address of the connection manager's can't be found.
    #[error("{source}")]
    Meeting {
        /// What stock prints.
        stock: String,
        /// Why not.
        source: ExchangeError,
    },
    /// The connection manager goes over another device than the user wants.
    #[error(
        "the connection manager has chosen {chosen}, not {named}: give -d that device, \
         or an address that {named} has"
    )]
    OtherDevice {
        /// The device of the user.
        named: String,
        /// That of the manager.
        chosen: String,
    },
    /// The connection manager could not connect the ends (`-R`, `-z`).
    #[error("{doing}: {source}")]
    Manager {
        /// What stock prints.
        stock: String,
        /// What was tried.
        doing: &'static str,
        /// Why not.
        source: CmError,
    },
    /// The provider refused something before the run.
    #[error("{doing}: {source}")]
    Verbs {
        /// What stock prints.
        stock: String,
        /// What was tried.
        doing: &'static str,
        /// Why not.
        source: VerbsError,
    },
    /// The GID index of the user (`-x`) has no GID.
    #[error(
        "{source}; give one of these to -x, or leave it out: {}",
        indices(table)
    )]
    Gid {
        /// What the provider says.
        source: VerbsError,
        /// The GIDs there are.
        table: Vec<GidEntry>,
    },
    /// A datagram is one packet.
    #[error(
        "a message of {bytes} bytes doesn't fit into a datagram, which has {mtu} bytes on this \
         path; use -s {mtu} or less, or a connection (-c RC)"
    )]
    TooLarge {
        /// Bytes of the message.
        bytes: u32,
        /// The path MTU.
        mtu: u32,
        /// What stock prints.
        messages: Messages,
    },
    /// There is no memory for the messages.
    #[error(
        "cannot allocate {bytes} bytes for the messages ({source}); \
         use a smaller message (-s) or fewer queue pairs (-q)"
    )]
    Memory {
        /// How much.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// There are no huge pages for the messages.
    #[error(
        "cannot allocate {bytes} bytes of huge pages ({source}; {pages}); reserve more in \
         /proc/sys/vm/nr_hugepages, or leave --use_hugepages out"
    )]
    HugePages {
        /// How much.
        bytes: u64,
        /// What the system said.
        source: io::Error,
        /// The kernel's count.
        pages: String,
    },
    /// The file of `--mmap` can't be the messages' memory.
    #[error("cannot map {bytes} bytes of {path} from byte {offset} on: {source}")]
    MemoryFile {
        /// Its name.
        path: String,
        /// Where the mapping should start.
        offset: u64,
        /// How much.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The payload file can't be used.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// What came in isn't what should have come (`--check_payload`).
    #[error(transparent)]
    WrongData(#[from] WrongData),
    /// The CPUs of `--pin_cores` can't be had.
    #[error("cannot run on the CPUs of --pin_cores only ({0}); give CPUs that are online")]
    Affinity(io::Error),
    /// The user insists on a limit of the rate that the queue pair doesn't have.
    #[error(
        "this device cannot limit the rate by itself; \
         let the sender do it with --rate_limit_type=SW"
    )]
    RateLimit,
    /// The link needs something that isn't there yet.
    #[error("{0}")]
    Unsupported(&'static str),
    /// Something happened while messages were flowing.
    #[error("{error}")]
    Run {
        /// What.
        error: RunError,
        /// In which loop.
        run_loop: RunLoop,
    },
    /// The same, and the device has something to say to it.
    #[error("{failure}; {trouble}")]
    Troubled {
        /// What happened.
        failure: Box<Self>,
        /// What is wrong with the device.
        trouble: String,
    },
    /// The results are below what the user demanded (`-w`, `-y`).
    #[error("the test ran, but its result is below the limit you gave")]
    BelowLimit {
        /// What stock prints.
        stock: &'static str,
    },
    /// The ends would not measure equally often (`--repeat`).
    #[error(
        "this end measures {ours} times and the peer {theirs} times, which this test needs both \
         ends to agree on: give both the same --repeat, or none to a peer of stock perftest, \
         which measures once"
    )]
    Repeat {
        /// How often we do.
        ours: u32,
        /// How often the peer does.
        theirs: u32,
    },
    /// The ends would not fill and validate the same chunks (`--data_validation`).
    #[error(
        "this end validates chunks of {ours} messages and the peer of {theirs}: \
         give both ends the same -t"
    )]
    Chunks {
        /// Messages of a chunk of ours.
        ours: usize,
        /// Of the peer's.
        theirs: usize,
    },
    /// The peer's memory isn't laid out as ours.
    #[error(
        "the peer's ring of queue pair {qp} is not where validated data of this test go: \
         give both ends the same -t"
    )]
    Rings {
        /// Index of the queue pair.
        qp: usize,
    },
    /// A counter can't be read (`-W`).
    #[error(transparent)]
    Counters(#[from] CounterError),
    /// The times of the processors can't be read (`--cpu_util`).
    #[error(transparent)]
    CpuTimes(#[from] crate::stats::CpuTimesError),
    /// The user interrupted the test.
    #[error("interrupted")]
    Interrupted,
    /// The screen can't be written to.
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// The system refuses what every process gets.
    #[error("the system refused: {0}; are file descriptors or threads used up (ulimit -n, -u)?")]
    System(#[from] io::Error),
}

impl Failure {
    /// The lines stock perftest prints on stderr; empty where it has none.
    #[must_use]
    pub fn stock_text(&self, tool: Tool) -> String {
        match self {
            Self::Refused { resolved, .. } => resolved.messages.text(Stream::Stderr),
            Self::Exchange { side, source } => source.stock_text(tool, *side),
            Self::Meeting { stock, .. }
            | Self::Manager { stock, .. }
            | Self::Verbs { stock, .. } => stock.clone(),
            Self::OtherDevice { .. } => String::new(),
            Self::Gid { .. } => " Unable to set up socket connection\n".to_owned(),
            Self::TooLarge { messages, .. } => messages.text(Stream::Stderr),
            Self::Memory { .. } => " Cannot Allocate\n".to_owned(),
            Self::HugePages { .. } => "Failed to allocate hugepages. Please configure hugepages\n\
                                       Failed to allocate hugepage region.\n \
                                       Couldn't create IB resources\n"
                .to_owned(),
            Self::MemoryFile { .. } => {
                "Failed to create MR\n Couldn't create IB resources\n".to_owned()
            }
            Self::Payload(error) => error.stock_text(),
            Self::Counters(_) => " Unable to access performance counters\n \
                                  Unable to create RDMA_CM resources\n"
                .to_owned(),
            Self::RateLimit => "\x1b[31mThe QP failed to accept HW rate limit  \x1b[0m\n \
                                Unable to Connect the HCA's through the link\n"
                .to_owned(),
            Self::Affinity(_) => "Failed to set CPU affinity\n".to_owned(),
            Self::Run { error, run_loop } => {
                format!("{}{}", error.stock_text(), run_tail(tool, *run_loop))
            }
            Self::Troubled { failure, .. } => failure.stock_text(tool),
            Self::BelowLimit { stock } => (*stock).to_owned(),
            Self::WrongData(error) => error.stock_text(),
            Self::Unsupported(_)
            | Self::Chunks { .. }
            | Self::Rings { .. }
            | Self::Repeat { .. }
            | Self::CpuTimes(_)
            | Self::Interrupted
            | Self::Screen(_)
            | Self::System(_) => String::new(),
        }
    }

    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self, tool: Tool) -> i32 {
        match self {
            Self::Interrupted => EXIT_INTERRUPTED,
            Self::Run { .. } => run_exit_code(tool),
            Self::Troubled { failure, .. } => failure.exit_code(tool),
            Self::Refused { resolved, .. } => match resolved.outcome {
                Outcome::Exit { code, .. } => code,
                Outcome::Run(_) => EXIT_FAILURE,
            },
            _ => EXIT_FAILURE,
        }
    }

    /// Whether the peer ended the connection: then its own failure says more.
    #[must_use]
    pub fn is_loss_of_peer(&self) -> bool {
        matches!(
            self,
            Self::Run {
                error: RunError::PeerGone,
                ..
            } | Self::Exchange {
                source: ExchangeError::Closed { .. } | ExchangeError::Io { .. },
                ..
            }
        )
    }
}

/// The loop that a run is in; stock names its functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunLoop {
    /// Posts messages.
    Sender,
    /// Takes messages that consume receives.
    Receiver,
    /// Does both.
    Duplex,
    /// Goes on until the user stops it (`--run_infinitely`).
    Endless,
}

/// What stock prints last when the measured loop fails.
fn run_tail(tool: Tool, run_loop: RunLoop) -> &'static str {
    match (tool.is_bandwidth(), tool.verb, run_loop) {
        (true, _, RunLoop::Endless) => " Error occurred while running infinitely! aborting ...\n",
        (true, Verb::Write | Verb::Read, RunLoop::Sender) => {
            " Failed to complete run_iter_bw function successfully\n"
        }
        (true, Verb::Write, RunLoop::Receiver) => {
            " Failed to complete run_iter_bw_server function successfully\n"
        }
        (true, Verb::Write, RunLoop::Duplex) => {
            " Failed to complete run_iter_bi function successfully\n"
        }
        (true, Verb::Atomic, _) => " Error occurred in run_iter function\n",
        (false, Verb::Write, _) => "Test exited with Error\n",
        (_, _, _) => "",
    }
}

/// Stock's exit codes when the measured loop fails.
fn run_exit_code(tool: Tool) -> i32 {
    const LOOP_FAILED: i32 = 17;
    match (tool.is_bandwidth(), tool.verb) {
        (true, Verb::Send) | (false, Verb::Send | Verb::Read | Verb::Atomic) => LOOP_FAILED,
        _ => EXIT_FAILURE,
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Interrupted => Self::Interrupted,
            RunError::Screen(error) => Self::Screen(error),
            error => Self::Run {
                error,
                run_loop: RunLoop::Sender,
            },
        }
    }
}

/// The entries of a GID table in a sentence.
fn indices(table: &[GidEntry]) -> String {
    let entries: Vec<String> = table
        .iter()
        .map(|entry| format!("{} ({})", entry.index, entry.gid.to_ip()))
        .collect();
    entries.join(", ")
}

/// A span of time as a sentence has it, to a tenth of a second.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{READ_LAT, SEND_BW, WRITE_BW, WRITE_LAT};

    #[test]
    fn a_failed_loop_ends_as_stock_does() {
        let mut failure = Failure::Run {
            error: RunError::PeerGone,
            run_loop: RunLoop::Sender,
        };
        assert_eq!(failure.exit_code(WRITE_BW), 1);
        assert_eq!(failure.exit_code(WRITE_LAT), 1);
        assert_eq!(failure.exit_code(SEND_BW), 17);
        assert_eq!(failure.exit_code(READ_LAT), 17);
        assert_eq!(
            failure.stock_text(WRITE_BW),
            " Failed to complete run_iter_bw function successfully\n"
        );
        assert_eq!(failure.stock_text(WRITE_LAT), "Test exited with Error\n");
        assert!(failure.is_loss_of_peer());
        for (kind, name) in [
            (RunLoop::Receiver, "run_iter_bw_server"),
            (RunLoop::Duplex, "run_iter_bi"),
        ] {
            if let Failure::Run { run_loop, .. } = &mut failure {
                *run_loop = kind;
            }
            assert_eq!(
                failure.stock_text(WRITE_BW),
                format!(" Failed to complete {name} function successfully\n")
            );
        }
    }

    #[test]
    fn a_trouble_is_added_to_what_happened() {
        let failure = Failure::Run {
            error: RunError::PeerGone,
            run_loop: RunLoop::Sender,
        };
        let text = failure.to_string();
        let stock = failure.stock_text(SEND_BW);
        let troubled = Failure::Troubled {
            failure: Box::new(failure),
            trouble: "port 1 is down".to_owned(),
        };
        assert_eq!(troubled.to_string(), format!("{text}; port 1 is down"));
        assert_eq!(troubled.stock_text(SEND_BW), stock);
        assert_eq!(troubled.exit_code(SEND_BW), 17);
    }

    #[test]
    fn times_are_told_as_people_tell_them() {
        assert_eq!(seconds(Duration::from_micros(30_011_274)), "30 s");
        assert_eq!(seconds(Duration::from_millis(1250)), "1.3 s");
    }

    #[test]
    fn an_interrupt_looks_like_death_by_the_signal() {
        assert_eq!(Failure::Interrupted.exit_code(WRITE_BW), 130);
        assert_eq!(Failure::Interrupted.stock_text(WRITE_BW), "");
        assert!(!Failure::Interrupted.is_loss_of_peer());
    }
}
