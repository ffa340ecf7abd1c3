//! The help text, made from the option table.

use std::fmt::Write;

use super::table::{self, OptionRow, Section};
use super::unsupported;
use crate::words::{Measurement, Tool, Verb};

/// Width of the column with the option's names.
const NAMES_WIDTH: usize = 34;

/// Exit codes, after the options.
const EXIT_CODES: &str = "\
Exit codes:
  0   the run ended well
  1   anything else, help and version included (as stock perftest does)
  130 interrupted (Ctrl-C); an endless one-way test ends well by that
";

const SECTIONS: &[(Section, &str)] = &[
    (Section::Traffic, "Traffic"),
    (Section::Connection, "Connection"),
    (Section::Device, "Device, addresses, packets"),
    (Section::Queues, "Queues and memory"),
    (Section::Report, "Report"),
    (Section::Rate, "Rate limiter"),
    (Section::Own, "Not in stock perftest"),
];

/// The help text of `tool`, for standard output. `program` is the name it
/// was started by.
pub fn text(tool: Tool, program: &str) -> String {
    let mut help = format!(
        "Usage:\n\
         \x20 {program}            start a server and wait for connection\n\
         \x20 {program} <host>     connect to server at <host>\n\n\
         Measures {}. Options marked (both) must be the same at both ends.\n",
        subject(tool)
    );
    for (section, title) in SECTIONS {
        let rows: Vec<_> = table::rows()
            .filter(|row| row.section == *section && row.tools.contains(tool))
            .collect();
        if rows.is_empty() {
            continue;
        }
        // Writing to a String does not fail.
        let _ = writeln!(help, "\n{title}:");
        for row in rows {
            help.push_str(&option(row, tool));
        }
    }
    help.push_str("\nTaken for the sake of scripts, without effect on this tool:\n");
    help.push_str(&names(Section::RawEthernet));
    help.push_str("\nRefused, for want of the hardware or of an implementation:\n");
    help.push_str(&names(Section::Hardware));
    help.push('\n');
    help.push_str(EXIT_CODES);
    if tool.exit_code_without_device() != 1 {
        let _ = writeln!(
            help,
            "  {}   no such device, or none",
            tool.exit_code_without_device()
        );
    }
    help
}

fn subject(tool: Tool) -> String {
    let verb = match tool.verb {
        Verb::Send | Verb::SendImm => "SEND",
        Verb::Write | Verb::WriteImm => "RDMA WRITE",
        Verb::Read => "RDMA READ",
        Verb::Atomic => "atomic operations",
    };
    match tool.measurement {
        Measurement::Bandwidth => format!("the bandwidth of {verb}"),
        Measurement::Latency => format!("the latency of {verb}"),
    }
}

fn option(row: &OptionRow, tool: Tool) -> String {
    let mut names = match row.short {
        Some(letter) => format!("  -{letter}, --{}", row.long),
        None => format!("      --{}", row.long),
    };
    if let Some(value) = row.value {
        names.push('=');
        names.push_str(value);
    }
    let mut line = if names.len() < NAMES_WIDTH {
        format!("{names:NAMES_WIDTH$}{}", row.help)
    } else {
        format!("{names}\n{:NAMES_WIDTH$}{}", "", row.help)
    };
    if let Some(default) = row.default {
        line.push_str(&format!(" [{}]", default(tool)));
    }
    if row.symmetric {
        line.push_str(" (both)");
    }
    if unsupported::is_listed(row.long) {
        line.push_str(" (not supported yet)");
    }
    line.push('\n');
    line
}

/// All names of a section, wrapped.
fn names(section: Section) -> String {
    let mut text = String::new();
    let mut column = 0;
    for row in table::rows().filter(|row| row.section == section) {
        let name = match row.short {
            Some(letter) => format!("-{letter}/--{}", row.long),
            None => format!("--{}", row.long),
        };
        if column + name.len() > 88 {
            text.push('\n');
            column = 0;
        }
        text.push_str(if column == 0 { "  " } else { " " });
        text.push_str(&name);
        column += name.len() + 2;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
