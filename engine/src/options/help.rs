//! The help text, made from the option table.

use std::fmt::Write;

use super::table::{self, OptionRow, Section};
use super::unsupported;
use crate::words::{Measurement, Tool, Verb};

/// Width of the column with the option's names.
const NAMES_WIDTH: usize = 34;

/// No line is longer, but for a name that is.
const WIDTH: usize = 100;

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
    for (section, title) in Section::EXPLAINED {
        let rows: String = table::section(tool, *section)
            .map(|row| option(row, tool))
            .collect();
        if !rows.is_empty() {
            // Writing to a String does not fail.
            let _ = write!(help, "\n{title}:\n{rows}");
        }
    }
    help.push_str("\nTaken for the sake of scripts, without effect on this tool:\n");
    help.push_str(&names(Section::RawEthernet));
    help.push_str("\nRefused, for want of the hardware or of an implementation:\n");
    help.push_str(&names(Section::Hardware));
    help.push_str("\nExit codes:\n");
    for (code, meaning) in exit_codes(tool) {
        let _ = writeln!(help, "  {code:<4}{meaning}");
    }
    help
}

/// What the tool measures, as a sentence has it.
pub(super) fn subject(tool: Tool) -> String {
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

/// The exit codes of the tool, and what each means.
pub(super) fn exit_codes(tool: Tool) -> Vec<(i32, &'static str)> {
    let mut codes = vec![
        (0, "the run ended well"),
        (
            1,
            "anything else, help and version included (as stock perftest does)",
        ),
    ];
    let without_device = tool.exit_code_without_device();
    if without_device != 1 {
        codes.push((without_device, "no such device, or none"));
    }
    codes.push((
        130,
        "interrupted (Ctrl-C); an endless one-way test ends well by that",
    ));
    codes
}

/// What an option does, its default, and what else there is to know.
pub(super) fn explanation(row: &OptionRow, tool: Tool) -> String {
    let mut text = row.help.to_owned();
    if let Some(default) = row.default {
        text.push_str(&format!(" [{}]", default(tool)));
    }
    if row.symmetric {
        text.push_str(" (both)");
    }
    if unsupported::is_listed(row.long) {
        text.push_str(" (not supported here)");
    }
    text
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
    let mut text = if names.len() < NAMES_WIDTH {
        format!("{names:NAMES_WIDTH$}")
    } else {
        format!("{names}\n{:NAMES_WIDTH$}", "")
    };
    let mut column = NAMES_WIDTH;
    for (index, word) in explanation(row, tool).split(' ').enumerate() {
        if index > 0 && column + 1 + word.len() > WIDTH {
            let _ = write!(text, "\n{:NAMES_WIDTH$}{word}", "");
            column = NAMES_WIDTH + word.len();
        } else {
            let blank = if index > 0 { " " } else { "" };
            let _ = write!(text, "{blank}{word}");
            column += blank.len() + word.len();
        }
    }
    text.push('\n');
    text
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
