//! The steps of the dialogue, by name, so that an error can say where it
//! happened and print what stock prints there.

use std::fmt;

use crate::words::{Side, Tool};

/// One exchange of the dialogue: one message each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// The announced version, 16 bytes.
    Version,
    /// The page size, 4 bytes.
    PageSize,
    /// The cache line size, 4 bytes.
    CacheLine,
    /// The MTU digit, 2 bytes.
    Mtu,
    /// The parameter block, 320 bytes (from 6.28 on).
    Parameters,
    /// A key record; all synchronisation is done by exchanging one.
    Key(Stage),
    /// One number of the bandwidth report, 8 bytes.
    Report(ReportField),
}

/// Why a key record is exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Before the connection manager connects the QPs (`-R`).
    BeforeManager,
    /// After the connection manager has connected the QPs.
    AfterManager,
    /// The latency tools of one-sided verbs synchronise before the keys.
    BeforeKeys,
    /// First exchange of every QP's record, before connecting.
    Keys,
    /// The send tools synchronise right after connecting.
    Connected,
    /// Second exchange of every QP's record; the "remote address" lines show its result.
    KeysAgain,
    /// Both ends are ready to run.
    Ready,
    /// Before a size, when both ends take part in the run.
    SizeStart,
    /// After a size of `-a`.
    SizeEnd,
    /// After a run with data validation both ways.
    ValidationEnd,
    /// The active end of a one-sided run tells the passive one that it is over.
    RunEnd,
    /// The last one.
    Close,
}

impl Stage {
    /// What stock prints last when this exchange fails.
    pub(crate) fn stock_failure(self, tool: Tool) -> &'static str {
        const PLAIN: &str = "Failed to exchange data between server and clients\n";
        const INDENTED: &str = " Failed to exchange data between server and clients\n";
        const SIZES: &str =
            "Failed to sync between server and client between different msg sizes\n";
        let write_bw = tool.is_bandwidth() && tool.is_write();
        match self {
            Self::BeforeManager | Self::AfterManager | Self::BeforeKeys | Self::Connected => PLAIN,
            Self::Keys | Self::Ready if write_bw => INDENTED,
            Self::Keys | Self::Ready => PLAIN,
            Self::KeysAgain | Self::RunEnd => INDENTED,
            Self::SizeStart | Self::SizeEnd if tool.is_bandwidth() && !tool.is_send() => SIZES,
            Self::SizeStart | Self::SizeEnd => PLAIN,
            Self::ValidationEnd => "Failed to sync before stopping validation\n",
            Self::Close if tool.is_send() && tool.is_bandwidth() => {
                " Failed to close connection between server and client\n \
                 Trying to close this side resources\n"
            }
            Self::Close if tool.is_send() => {
                "Failed to close connection between server and client\n \
                 Trying to close this side resources\n"
            }
            Self::Close => "Failed to close connection between server and client\n",
        }
    }
}

/// The numbers of the bandwidth report, in the order of their exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportField {
    /// Message size in bytes.
    Size,
    /// Iterations over all QPs.
    Iterations,
    /// Peak bandwidth.
    Peak,
    /// Average bandwidth.
    Average,
    /// Message rate.
    MessageRate,
    /// Average bandwidth of port 1 (`--report-per-port`).
    AveragePort1,
    /// Message rate of port 1.
    MessageRatePort1,
    /// Average bandwidth of port 2.
    AveragePort2,
    /// Message rate of port 2.
    MessageRatePort2,
}

impl Step {
    /// Whether the other end may rightly be busy with a run before it answers,
    /// so that waiting for it is bounded by its life, not by the step's time.
    /// With traffic both ways the first number of the report is such a step:
    /// the faster end gets there first.
    pub fn follows_run(self) -> bool {
        matches!(
            self,
            Self::Key(Stage::SizeEnd | Stage::ValidationEnd | Stage::RunEnd | Stage::Close)
                | Self::Report(ReportField::Size)
        )
    }

    /// What stock prints last when this exchange fails.
    pub(crate) fn stock_failure(self, tool: Tool) -> &'static str {
        match self {
            Self::Version | Self::Mtu | Self::Report(_) => {
                " Failed to exchange data between server and clients\n"
            }
            Self::PageSize => " Failed to exchange Page Size data between server and client\n",
            Self::CacheLine => {
                " Failed to exchange Cache Line Size data between server and client\n"
            }
            Self::Parameters => {
                " Failed to exchange negotiation parameters between server and client\n \
                 Failed to negotiate parameters\n"
            }
            Self::Key(stage) => stage.stock_failure(tool),
        }
    }

    /// What stock prints first when this exchange fails while reading.
    pub(crate) fn stock_read_failure(self) -> &'static str {
        match self {
            Self::Key(_) => "ethernet_read_keys: Couldn't read remote address\n",
            _ => "ethernet_read_data: Couldn't read reports\n",
        }
    }

    /// What stock prints after the system's reason when this exchange fails while writing.
    pub(crate) fn stock_write_failure(self) -> &'static str {
        match self {
            Self::Key(_) => "Couldn't send local address\n",
            _ => "Couldn't send reports\n",
        }
    }
}

/// Whether a message was being read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Reading the peer's message.
    Reading,
    /// Writing our message.
    Writing,
}

impl Direction {
    /// Stock's line about the socket; the prepositions are its own.
    pub(crate) fn stock_socket_line(self, side: Side) -> &'static str {
        match (side, self) {
            (Side::Client, Self::Writing) => " Unable to write to socket/rdma_cm\n",
            (Side::Client, Self::Reading) => " Unable to read from socket/rdma_cm\n",
            (Side::Server, Self::Reading) => " Unable to read to socket/rdma_cm\n",
            (Side::Server, Self::Writing) => " Unable to write from socket/rdma_cm\n",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "version exchange",
            Self::PageSize => "page size exchange",
            Self::CacheLine => "cache line size exchange",
            Self::Mtu => "MTU exchange",
            Self::Parameters => "parameter negotiation",
            Self::Key(stage) => match stage {
                Stage::BeforeManager => "synchronisation before the connection manager's turn",
                Stage::AfterManager => "synchronisation after the connection manager's turn",
                Stage::BeforeKeys => "synchronisation before the key exchange",
                Stage::Keys => "key exchange before connecting",
                Stage::Connected => "synchronisation after connecting",
                Stage::KeysAgain => "key exchange after connecting",
                Stage::Ready => "synchronisation before the test",
                Stage::SizeStart => "synchronisation before a message size",
                Stage::SizeEnd => "synchronisation after a message size",
                Stage::ValidationEnd => "synchronisation after data validation",
                Stage::RunEnd => "synchronisation after the test",
                Stage::Close => "closing handshake",
            },
            Self::Report(field) => match field {
                ReportField::Size => "report exchange (message size)",
                ReportField::Iterations => "report exchange (iterations)",
                ReportField::Peak => "report exchange (peak bandwidth)",
                ReportField::Average => "report exchange (average bandwidth)",
                ReportField::MessageRate => "report exchange (message rate)",
                ReportField::AveragePort1 => "report exchange (average bandwidth of port 1)",
                ReportField::MessageRatePort1 => "report exchange (message rate of port 1)",
                ReportField::AveragePort2 => "report exchange (average bandwidth of port 2)",
                ReportField::MessageRatePort2 => "report exchange (message rate of port 2)",
            },
        })
    }
}
