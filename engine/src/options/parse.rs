//! Reads the arguments into [`Settings`].

use super::getopt::{Getopt, Item, UsageError};
use super::help;
use super::message::{ExitReason, Messages};
use super::refusal::{PARSER_LINE, Refusal};
use super::settings::Settings;
use super::table::{self, OptionRow, Store};
use crate::words::Tool;

/// The perftest version announced on the wire and printed by `-V`.
pub const PERFTEST_VERSION: &str = "6.29";

/// Parsing ended the process.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) messages: Messages,
    pub(super) reason: ExitReason,
}

impl Stop {
    fn refused(refusal: Refusal) -> Stop {
        let mut messages = Messages::new();
        let reason = refusal.show(&mut messages);
        Stop { messages, reason }
    }

    fn showing(text: String, reason: ExitReason) -> Stop {
        let mut messages = Messages::new();
        messages.out(text);
        Stop { messages, reason }
    }
}

/// Reads `args`. Options act in the order given; the first that is refused
/// ends the process, as in stock perftest.
pub(super) fn parse(
    tool: Tool,
    program: &str,
    args: &[String],
    cpus: u32,
) -> Result<Settings, Stop> {
    let mut settings = Settings::new(tool, cpus);
    let mut words = Vec::new();
    for item in Getopt::new(program, args) {
        match item {
            Ok(Item::Word(word)) => words.push(word),
            Ok(Item::Option(row, value)) => {
                if let Err(refusal) = note_once(&mut settings, row) {
                    return Err(Stop::refused(refusal));
                }
                match row.store {
                    Store::Help => {
                        return Err(Stop::showing(help::text(tool, program), ExitReason::Help));
                    }
                    Store::Version => {
                        return Err(Stop::showing(
                            format!("Version: {PERFTEST_VERSION}\n"),
                            ExitReason::Version,
                        ));
                    }
                    _ => apply(&mut settings, row, value).map_err(Stop::refused)?,
                }
            }
            Err(UsageError(text)) => return Err(usage(tool, program, text)),
        }
    }
    after_options(&settings).map_err(Stop::refused)?;
    match words.as_slice() {
        [] => {}
        [host] => settings.host = Some((*host).to_owned()),
        _ => {
            return Err(Stop::refused(Refusal::option(
                " Invalid Command line. Please check command rerun \n",
            )));
        }
    }
    table::check_names(&settings).map_err(Stop::refused)?;
    Ok(settings)
}

/// getopt's own message, then stock perftest's, then the help text.
fn usage(tool: Tool, program: &str, text: String) -> Stop {
    let mut messages = Messages::new();
    messages.err(text);
    messages.err(" Invalid Command or flag.\n Please check command line and run again.\n\n");
    messages.out(help::text(tool, program));
    messages.err(PARSER_LINE);
    Stop {
        messages,
        reason: ExitReason::Refused,
    }
}

/// Short and long form count together.
fn note_once(settings: &mut Settings, row: &'static OptionRow) -> Result<(), Refusal> {
    if settings.was_given(row.long) {
        let text = match row.short {
            Some(letter) => format!(" Duplicated argument: -{letter} \n"),
            None => format!(" Duplicated argument: {} \n", row.long),
        };
        return Err(Refusal::option(text));
    }
    settings.given.push(row.long);
    Ok(())
}

fn apply(settings: &mut Settings, row: &OptionRow, value: &str) -> Result<(), Refusal> {
    let for_this_tool = match row.only {
        Some(text) if !row.tools.contains(settings.tool) => Err(Refusal::option(text)),
        _ => Ok(()),
    };
    match row.store {
        Store::Number(number, set) => {
            // Stock perftest reads the number first.
            let value = number.read(value)?;
            for_this_tool?;
            set(settings, value);
        }
        Store::Flag(set) => {
            for_this_tool?;
            set(settings);
        }
        Store::Text(set) => {
            for_this_tool?;
            set(settings, value)?;
        }
        Store::Refuse(refusal) => return Err(refusal()),
        Store::Help | Store::Version => {}
    }
    row.then.map_or(Ok(()), |check| check(settings))
}

/// Checks that wait for the end of the options.
fn after_options(settings: &Settings) -> Result<(), Refusal> {
    table::check_addresses(settings)?;
    if let Some(text) = settings.pcie_mapping {
        return Err(Refusal::option(text));
    }
    if settings.loopback && settings.reversed {
        return Err(Refusal::option(
            " --reversed has no meaning with --loopback, which runs both ends: leave one out\n",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
