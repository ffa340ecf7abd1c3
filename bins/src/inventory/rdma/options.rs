//! The options before the object.

use std::collections::VecDeque;

use super::super::document::Form;
use super::super::getopt::{self, Item, Opt};

const OPTIONS: [Opt; 8] = [
    flag('V', "version"),
    flag('h', "help"),
    flag('j', "json"),
    flag('p', "pretty"),
    flag('d', "details"),
    flag('r', "raw"),
    flag('f', "force"),
    Opt {
        short: 'b',
        long: "batch",
        takes_value: true,
    },
];

const fn flag(short: char, long: &'static str) -> Opt {
    Opt {
        short,
        long,
        takes_value: false,
    }
}

/// How to run.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) form: Form,
    /// `-d`.
    pub(super) details: bool,
    /// `-d` twice.
    pub(super) driver_details: bool,
    /// `-r`.
    pub(super) raw: bool,
    /// `-f`.
    pub(super) force: bool,
    /// `-b`: file of commands, `-` for standard input.
    pub(super) batch: Option<String>,
    /// Object, command and the rest.
    pub(super) words: VecDeque<String>,
}

/// What the options ask for.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    Run(Options),
    Version,
    Help,
}

/// Why options can't be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) text: String,
    pub(super) shows_help: bool,
}

pub(super) fn parse(arguments: &[String]) -> Result<Asked, Refusal> {
    let mut options = Options::default();
    for item in getopt::items(&OPTIONS, arguments) {
        match item {
            Item::Option('V', _) => return Ok(Asked::Version),
            Item::Option('h', _) => return Ok(Asked::Help),
            Item::Option('j', _) => options.form.json = true,
            Item::Option('p', _) => options.form.pretty = true,
            Item::Option('d', _) => {
                options.driver_details = options.details;
                options.details = true;
            }
            Item::Option('r', _) => options.raw = true,
            Item::Option('f', _) => options.force = true,
            Item::Option(_, file) => options.batch = Some(file),
            Item::Word(word) => options.words.push_back(word),
            Item::NoValue(letter, _) => {
                return Err(Refusal {
                    text: format!("-{letter} option requires an argument"),
                    shows_help: false,
                });
            }
            Item::Unknown(_) => {
                return Err(Refusal {
                    text: "Unknown option.".to_owned(),
                    shows_help: true,
                });
            }
        }
    }
    Ok(Asked::Run(options))
}
