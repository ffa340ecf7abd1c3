//! Shell completions, made from the option table: options by their names, and
//! the arguments of those that have a choice, take a file, or name a device.
//!
//! Only options that do something are offered.

pub mod bash;
pub mod fish;
pub mod zsh;

use super::table::{self, OptionRow, Section};
use super::unsupported;
use crate::words::Tool;

/// Where the shells find the names of RDMA devices, and of the interfaces that
/// each have a userspace NIC.
const DEVICES: &str = "/sys/class/infiniband";
const INTERFACES: &str = "/sys/class/net";

/// What an option's argument may be completed to.
enum Argument {
    /// There is none.
    None,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A file.
    File,
    /// A device.
    Device,
    /// Numbers, addresses, lists: nothing is offered.
    Free,
}

fn argument(row: &OptionRow) -> Argument {
    match row.value {
        None => Argument::None,
        Some(_) if !row.choices.is_empty() => Argument::Choice(row.choices),
        Some("<file>") => Argument::File,
        Some("<dev>") => Argument::Device,
        Some(_) => Argument::Free,
    }
}

/// The options that `tool` offers.
fn offered(tool: Tool) -> impl Iterator<Item = &'static OptionRow> {
    Section::EXPLAINED
        .iter()
        .flat_map(move |(section, _)| table::section(tool, *section))
        .filter(|row| !unsupported::is_listed(row.long))
}

#[cfg(test)]
mod tests;
