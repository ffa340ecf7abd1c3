//! Which of the eight `ib_*` tools runs: a verb and a measurement.

use std::fmt;

/// The operation a tool measures (IBTA volume 1, 9.4: transport functions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Two-sided SEND, with or without immediate data.
    Send,
    /// RDMA WRITE, with or without immediate data.
    Write,
    /// RDMA READ.
    Read,
    /// FETCH_AND_ADD or CMP_AND_SWAP of eight bytes.
    Atomic,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// Bytes and messages per second, many messages in flight (`*_bw`).
    Bandwidth,
    /// Time of one message, one in flight (`*_lat`).
    Latency,
}

/// One of the eight commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tool {
    /// The operation measured; immediate data is chosen by an option.
    pub verb: Verb,
    /// Bandwidth or latency.
    pub test: Test,
}

/// `ib_write_bw`.
pub const WRITE_BW: Tool = Tool::new(Verb::Write, Test::Bandwidth);
/// `ib_write_lat`.
pub const WRITE_LAT: Tool = Tool::new(Verb::Write, Test::Latency);
/// `ib_send_bw`.
pub const SEND_BW: Tool = Tool::new(Verb::Send, Test::Bandwidth);
/// `ib_send_lat`.
pub const SEND_LAT: Tool = Tool::new(Verb::Send, Test::Latency);
/// `ib_read_bw`.
pub const READ_BW: Tool = Tool::new(Verb::Read, Test::Bandwidth);
/// `ib_read_lat`.
pub const READ_LAT: Tool = Tool::new(Verb::Read, Test::Latency);
/// `ib_atomic_bw`.
pub const ATOMIC_BW: Tool = Tool::new(Verb::Atomic, Test::Bandwidth);
/// `ib_atomic_lat`.
pub const ATOMIC_LAT: Tool = Tool::new(Verb::Atomic, Test::Latency);

impl Tool {
    /// The eight tools.
    pub const ALL: [Tool; 8] = [
        WRITE_BW, WRITE_LAT, SEND_BW, SEND_LAT, READ_BW, READ_LAT, ATOMIC_BW, ATOMIC_LAT,
    ];

    /// The tool for a verb and a measurement.
    pub const fn new(verb: Verb, test: Test) -> Tool {
        Tool { verb, test }
    }

    /// The command's name, as stock perftest installs it.
    pub const fn name(self) -> &'static str {
        match (self.verb, self.test) {
            (Verb::Write, Test::Bandwidth) => "ib_write_bw",
            (Verb::Write, Test::Latency) => "ib_write_lat",
            (Verb::Send, Test::Bandwidth) => "ib_send_bw",
            (Verb::Send, Test::Latency) => "ib_send_lat",
            (Verb::Read, Test::Bandwidth) => "ib_read_bw",
            (Verb::Read, Test::Latency) => "ib_read_lat",
            (Verb::Atomic, Test::Bandwidth) => "ib_atomic_bw",
            (Verb::Atomic, Test::Latency) => "ib_atomic_lat",
        }
    }

    /// The tool a path such as `/usr/bin/ib_write_bw` names.
    pub fn from_program(program: &str) -> Option<Tool> {
        let base = program.rsplit('/').next().unwrap_or(program);
        Tool::ALL.into_iter().find(|tool| tool.name() == base)
    }

    /// True for the `*_bw` tools.
    pub const fn is_bandwidth(self) -> bool {
        matches!(self.test, Test::Bandwidth)
    }

    /// Default of `-s`: 65536 for bandwidth, 2 for latency, 8 for atomics.
    pub const fn default_size(self) -> u32 {
        match (self.verb, self.test) {
            (Verb::Atomic, _) => 8,
            (_, Test::Bandwidth) => 65536,
            (_, Test::Latency) => 2,
        }
    }

    /// Default of `-n`.
    pub const fn default_iterations(self) -> u64 {
        match (self.verb, self.test) {
            (Verb::Write, Test::Bandwidth) => 5000,
            _ => 1000,
        }
    }

    /// Default of `-t`.
    pub const fn default_tx_depth(self) -> u32 {
        match self.test {
            Test::Bandwidth => 128,
            Test::Latency => 1,
        }
    }

    /// Default of `-r`, before the rules cut it.
    pub const fn default_rx_depth(self) -> u32 {
        match self.verb {
            Verb::Send | Verb::Write => 512,
            Verb::Read | Verb::Atomic => 1,
        }
    }

    /// Exit code when the device is missing or unknown: 7 from `ib_read_bw`
    /// and `ib_atomic_bw`, 1 from the others, as stock perftest does.
    pub const fn exit_code_without_device(self) -> i32 {
        match (self.verb, self.test) {
            (Verb::Read | Verb::Atomic, Test::Bandwidth) => 7,
            _ => 1,
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_the_name_of_their_program() {
        for tool in Tool::ALL {
            let path = format!("/usr/bin/{tool}");
            assert_eq!(Tool::from_program(tool.name()), Some(tool));
            assert_eq!(Tool::from_program(&path), Some(tool));
        }
        assert_eq!(Tool::from_program("raw_ethernet_bw"), None);
    }
}
