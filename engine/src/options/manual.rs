//! Manual pages (roff, man(7) macros), made from the option table.

use std::fmt::Write;

use super::help;
use super::parse::PERFTEST_VERSION;
use super::table::{self, OptionRow, Section};
use crate::words::Tool;

/// The manual page of `tool`, section 1.
pub fn page(tool: Tool) -> String {
    let name = tool.name();
    let mut page = format!(
        ".TH {} 1 \"\" \"ironverbs {}\" \"User Commands\"\n\
         .SH NAME\n\
         {} \\- measure {}\n\
         .SH SYNOPSIS\n\
         .B {name}\n[\\fIoption\\fR ...]\n.br\n\
         .B {name}\n[\\fIoption\\fR ...] \\fIhost\\fR\n\
         .SH DESCRIPTION\n",
        name.to_uppercase(),
        escape(env!("CARGO_PKG_VERSION")),
        escape(name),
        help::subject(tool),
    );
    // Writing to a String does not fail.
    let _ = write!(
        page,
        "Measures {}. Without a host it is the server: it waits for one client and ends with\n\
         it. With a host it connects to the server there.\n.PP\n\
         The command is interchangeable with the one of the same name in perftest {PERFTEST_VERSION}:\n\
         options, screens, report files and the dialogue between the ends are the same.\n.PP\n\
         Options marked (both) must be the same at both ends. Long names may be abbreviated\n\
         as long as they are unique.\n\
         .SH OPTIONS\n",
        help::subject(tool),
    );
    for (section, title) in Section::EXPLAINED {
        let rows: String = table::section(tool, *section)
            .map(|row| option(row, tool))
            .collect();
        if !rows.is_empty() {
            let _ = write!(page, ".SS {title}\n{rows}");
        }
    }
    for (section, title, text) in [
        (
            Section::RawEthernet,
            "Without effect",
            "Options of the raw Ethernet tools, which are taken for the sake of scripts:",
        ),
        (
            Section::Hardware,
            "Refused",
            "Options for hardware or libraries that are not supported:",
        ),
    ] {
        let _ = write!(page, ".SS {title}\n{text}\n{}", names(section));
    }
    page.push_str(".SH EXIT STATUS\n");
    for (code, meaning) in help::exit_codes(tool) {
        let _ = write!(page, ".TP\n.B {code}\n{}\n", escape(meaning));
    }
    let _ = write!(
        page,
        ".SH EXAMPLES\n\
         Both ends in one process:\n.PP\n.RS\n.nf\n{name} \\-\\-loopback\n.fi\n.RE\n.PP\n\
         A server, and a client on another host:\n.PP\n.RS\n.nf\n{name}\n{name} server.example\n\
         .fi\n.RE\n.SH SEE ALSO\n{}\n",
        others(tool)
    );
    page
}

fn option(row: &OptionRow, tool: Tool) -> String {
    let mut names = String::new();
    if let Some(letter) = row.short {
        names.push_str(&format!("\\fB\\-{letter}\\fR, "));
    }
    names.push_str(&format!("\\fB\\-\\-{}\\fR", escape(row.long)));
    if let Some(value) = row.value {
        let value = value.trim_matches(['<', '>']);
        names.push_str(&format!("=\\fI{}\\fR", escape(value)));
    }
    let text = escape(&help::explanation(row, tool));
    let alias = row.alias.map_or_else(String::new, |alias| {
        format!("\nAlso spelt \\fB\\-\\-{}\\fR.", escape(alias))
    });
    format!(".TP\n{names}\n{text}{alias}\n")
}

/// All names of a section in a sentence.
fn names(section: Section) -> String {
    let names: Vec<String> = table::rows()
        .filter(|row| row.section == section)
        .map(|row| {
            let long = escape(row.long);
            match row.short {
                Some(letter) => format!("\\fB\\-{letter}\\fR (\\fB\\-\\-{long}\\fR)"),
                None => format!("\\fB\\-\\-{long}\\fR"),
            }
        })
        .collect();
    names.join(",\n") + ".\n"
}

fn others(tool: Tool) -> String {
    let others: Vec<String> = Tool::ALL
        .into_iter()
        .filter(|other| *other != tool)
        .map(|other| format!(".BR {other} (1)"))
        .collect();
    others.join(",\n")
}

/// Text as roff takes it literally: backslashes and hyphens, and a point or
/// an apostrophe at the beginning, which would be a request.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    if text.starts_with(['.', '\'']) {
        escaped.push_str("\\&");
    }
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
