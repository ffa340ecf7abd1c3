//! The eight `ib_*` tools: their names and their defaults.

use std::fmt;

use crate::words::{Measurement, Tool, Verb};

/// `ib_write_bw`.
pub const WRITE_BW: Tool = Tool::new(Verb::Write, Measurement::Bandwidth);
/// `ib_write_lat`.
pub const WRITE_LAT: Tool = Tool::new(Verb::Write, Measurement::Latency);
/// `ib_send_bw`.
pub const SEND_BW: Tool = Tool::new(Verb::Send, Measurement::Bandwidth);
/// `ib_send_lat`.
pub const SEND_LAT: Tool = Tool::new(Verb::Send, Measurement::Latency);
/// `ib_read_bw`.
pub const READ_BW: Tool = Tool::new(Verb::Read, Measurement::Bandwidth);
/// `ib_read_lat`.
pub const READ_LAT: Tool = Tool::new(Verb::Read, Measurement::Latency);
/// `ib_atomic_bw`.
pub const ATOMIC_BW: Tool = Tool::new(Verb::Atomic, Measurement::Bandwidth);
/// `ib_atomic_lat`.
pub const ATOMIC_LAT: Tool = Tool::new(Verb::Atomic, Measurement::Latency);

impl Tool {
    /// The eight tools.
    pub const ALL: [Tool; 8] = [
        WRITE_BW, WRITE_LAT, SEND_BW, SEND_LAT, READ_BW, READ_LAT, ATOMIC_BW, ATOMIC_LAT,
    ];

    /// The command's name, as stock perftest installs it.
    pub const fn name(self) -> &'static str {
        match (self.verb, self.measurement) {
            (Verb::Write | Verb::WriteImm, Measurement::Bandwidth) => "ib_write_bw",
            (Verb::Write | Verb::WriteImm, Measurement::Latency) => "ib_write_lat",
            (Verb::Send | Verb::SendImm, Measurement::Bandwidth) => "ib_send_bw",
            (Verb::Send | Verb::SendImm, Measurement::Latency) => "ib_send_lat",
            (Verb::Read, Measurement::Bandwidth) => "ib_read_bw",
            (Verb::Read, Measurement::Latency) => "ib_read_lat",
            (Verb::Atomic, Measurement::Bandwidth) => "ib_atomic_bw",
            (Verb::Atomic, Measurement::Latency) => "ib_atomic_lat",
        }
    }

    /// The tool a path such as `/usr/bin/ib_write_bw` names.
    pub fn from_program(program: &str) -> Option<Tool> {
        let base = program.rsplit('/').next().unwrap_or(program);
        Tool::ALL.into_iter().find(|tool| tool.name() == base)
    }

    /// Default of `-s`: 65536 for bandwidth, 2 for latency, 8 for atomics.
    pub const fn default_size(self) -> u32 {
        match (self.verb, self.measurement) {
            (Verb::Atomic, _) => 8,
            (_, Measurement::Bandwidth) => 65536,
            (_, Measurement::Latency) => 2,
        }
    }

    /// Default of `-n`.
    pub const fn default_iterations(self) -> u64 {
        match (self.verb, self.measurement) {
            (Verb::Write, Measurement::Bandwidth) => 5000,
            _ => 1000,
        }
    }

    /// Default of `-t`.
    pub const fn default_tx_depth(self) -> u32 {
        match self.measurement {
            Measurement::Bandwidth => 128,
            Measurement::Latency => 1,
        }
    }

    /// Default of `-r`, before the rules cut it.
    pub const fn default_rx_depth(self) -> u32 {
        match self.verb {
            Verb::Send | Verb::SendImm | Verb::Write | Verb::WriteImm => 512,
            Verb::Read | Verb::Atomic => 1,
        }
    }

    /// Exit code when the device is missing or unknown: 7 from `ib_read_bw`
    /// and `ib_atomic_bw`, 1 from the others, as stock perftest does.
    pub const fn exit_code_without_device(self) -> i32 {
        match (self.verb, self.measurement) {
            (Verb::Read | Verb::Atomic, Measurement::Bandwidth) => 7,
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
