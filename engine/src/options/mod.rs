//! The command line: one table of options, the rules between them, and what
//! comes out.
//!
//! ```text
//! arguments -> getopt -> table (one row per option) -> Settings
//!           -> rules, in stock perftest's order     -> Params, or an exit
//!           -> device (what the port can do)        -> the values of the run
//! ```
//!
//! Nothing here prints or touches a device: texts come back as [`Messages`],
//! facts about a device go in as arguments. Texts are those of stock perftest
//! 6.29, byte for byte, where it has one.

pub mod completion;
pub mod device;
mod device_class;
mod getopt;
pub mod gid;
pub mod help;
pub mod manual;
mod message;
mod needs;
mod number;
mod params;
mod parse;
mod refusal;
mod rules;
mod settings;
pub mod table;
mod tool;
mod unsupported;

pub use crate::words::{Atomic, Connection, Measurement, Tool, Verb};
pub use device_class::DeviceClass;
pub use message::{EXIT_FAILURE, ExitReason, LINE, Message, Messages, Outcome, Resolved, Stream};
pub use needs::{Remarks, remarks};
pub use params::{
    ControlParams, DeviceParams, Length, Machine, MemoryParams, MemorySource, MtuRequest, Output,
    Params, PathParams, Polling, RateLimit, RateLimiter, RateUnits, ReportParams, Sizes, Verbosity,
};
pub use parse::PERFTEST_VERSION;
pub use tool::{ATOMIC_BW, ATOMIC_LAT, READ_BW, READ_LAT, SEND_BW, SEND_LAT, WRITE_BW, WRITE_LAT};

/// Reads a command line to the end.
///
/// `program` is the name the process was started by, as messages and the help
/// text show it; `args` are the arguments after it; `cpus` is the number of
/// configured CPUs, for the check of `--pin_cores`.
pub fn from_command_line(tool: Tool, program: &str, args: &[String], cpus: u32) -> Resolved {
    match parse::parse(tool, program, args, cpus) {
        Ok(settings) => rules::resolve(settings),
        Err(stop) => Resolved {
            messages: stop.messages,
            outcome: Outcome::Exit {
                code: EXIT_FAILURE,
                reason: stop.reason,
            },
        },
    }
}

/// Number of CPUs the kernel is configured for, running or not, as the check
/// of `--pin_cores` wants it.
pub fn configured_cpus() -> u32 {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible");
    possible
        .ok()
        .and_then(|ranges| last_cpu(&ranges))
        .map_or_else(
            || std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
            |last| last + 1,
        )
}

/// The last number of a list such as `0-3,8`.
fn last_cpu(ranges: &str) -> Option<u32> {
    ranges.trim().rsplit([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_up_to_the_last() {
        assert_eq!(last_cpu("0-3\n"), Some(3));
        assert_eq!(last_cpu("0"), Some(0));
        assert_eq!(last_cpu("0-3,8-15\n"), Some(15));
        assert_eq!(last_cpu(""), None);
        assert!(configured_cpus() >= 1);
    }
}
