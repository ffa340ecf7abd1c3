//! The words of a test, as its users give them and as both ends agree on them:
//! the enumerators of the parameter block, with the numbers stock puts on the
//! wire and the names it prints.

/// An enumeration of the parameter block: a number on the wire, a name on the screen.
macro_rules! wire_words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$vmeta:meta])* $variant:ident = $number:literal, $text:literal; )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
        }

        impl $name {
            /// The names in the order of their numbers.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// The number on the wire.
            pub fn number(self) -> u32 {
                match self { $( Self::$variant => $number, )+ }
            }

            /// The word with this number, if there is one.
            pub fn from_number(number: u32) -> Option<Self> {
                match number { $( $number => Some(Self::$variant), )+ _ => None }
            }

            /// The name as stock prints it.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }
        }
    };
}

wire_words! {
    /// How many sizes a test runs over (`test_method`).
    pub enum Method {
        /// One size.
        Regular = 0, "RUN_REGULAR";
        /// All sizes (`-a`).
        All = 1, "RUN_ALL";
        /// One size until interrupted (`--run_infinitely`).
        Infinite = 2, "RUN_INFINITELY";
    }
}

wire_words! {
    /// The transport service of the test's QPs (`-c`).
    pub enum Connection {
        /// Reliable connection.
        Rc = 0, "RC";
        /// Unreliable connection.
        Uc = 1, "UC";
        /// Unreliable datagram.
        Ud = 2, "UD";
        /// Raw Ethernet.
        RawEth = 3, "RawEth";
        /// Extended reliable connection.
        Xrc = 4, "XRC";
        /// Dynamically connected.
        Dc = 5, "DC";
        /// Scalable reliable datagram.
        Srd = 6, "SRD";
    }
}

wire_words! {
    /// The operation under test.
    pub enum Verb {
        /// SEND.
        Send = 0, "SEND";
        /// SEND with immediate (`--send_with_imm`).
        SendImm = 1, "SEND_IMM";
        /// RDMA WRITE.
        Write = 2, "WRITE";
        /// RDMA WRITE with immediate (`--write_with_imm`).
        WriteImm = 3, "WRITE_IMM";
        /// RDMA READ.
        Read = 4, "READ";
        /// Atomic, see [`Atomic`].
        Atomic = 5, "ATOMIC";
    }
}

impl Verb {
    /// Whether the passive side of this verb gets a receive completion.
    pub fn has_receive_completion(self) -> bool {
        matches!(self, Self::Send | Self::SendImm | Self::WriteImm)
    }

    /// Whether the answer carries data, so that one message is a round trip
    /// and the depth of outstanding reads matters.
    pub fn is_round_trip(self) -> bool {
        matches!(self, Self::Read | Self::Atomic)
    }
}

wire_words! {
    /// What is measured (`tst`).
    pub enum Measurement {
        /// Latency (`ib_*_lat`).
        Latency = 0, "LAT";
        /// Bandwidth (`ib_*_bw`).
        Bandwidth = 1, "BW";
    }
}

wire_words! {
    /// The atomic operation (`-A`); 0 for the other verbs.
    pub enum Atomic {
        /// Compare and swap.
        CompareSwap = 0, "CMP_AND_SWAP";
        /// Fetch and add.
        FetchAdd = 1, "FETCH_AND_ADD";
    }
}

wire_words! {
    /// What ends a test (`test_type`).
    pub enum Ending {
        /// A number of iterations (`-n`).
        Iterations = 0, "ITERATIONS";
        /// A duration (`-D`).
        Duration = 1, "DURATION";
    }
}

wire_words! {
    /// The unit of bandwidth (`--report_gbits`).
    pub enum Units {
        /// 10^9 bits per second.
        Gbits = 0, "GBS";
        /// 2^20 bytes per second.
        Mib = 1, "MBS";
    }
}

/// Which of the eight tools: what it sends and what it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tool {
    /// The operation under test.
    pub verb: Verb,
    /// Bandwidth or latency.
    pub measurement: Measurement,
}

impl Tool {
    /// The tool for a verb and a measurement.
    pub const fn new(verb: Verb, measurement: Measurement) -> Self {
        Self { verb, measurement }
    }

    /// Whether this is a bandwidth tool.
    pub const fn is_bandwidth(self) -> bool {
        matches!(self.measurement, Measurement::Bandwidth)
    }

    /// Whether this is `ib_send_bw` or `ib_send_lat`.
    pub fn is_send(self) -> bool {
        matches!(self.verb, Verb::Send | Verb::SendImm)
    }

    /// Whether this is `ib_write_bw` or `ib_write_lat`.
    pub fn is_write(self) -> bool {
        matches!(self.verb, Verb::Write | Verb::WriteImm)
    }
}

/// Which end of the control connection this is. It follows the host argument
/// and decides who writes first in every exchange; `--reversed` does not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that was given a host: it connects, writes first, then reads.
    Client,
    /// The end that listens: it reads first, then writes.
    Server,
}
