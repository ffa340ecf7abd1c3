//! What one row of the option table holds.

use crate::options::number;
use crate::options::refusal::Refusal;
use crate::options::settings::Settings;
use crate::words::{Measurement, Tool, Verb};

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tools(u8);

impl Tools {
    /// The eight tools.
    pub const ALL: Tools = Tools(0b1111_1111);
    /// The `*_bw` tools.
    pub const BW: Tools = Tools(0b0101_0101);
    /// The `*_lat` tools.
    pub const LAT: Tools = Tools(0b1010_1010);
    /// `ib_send_*`.
    pub const SEND: Tools = Tools(0b0000_0011);
    /// `ib_write_*`.
    pub const WRITE: Tools = Tools(0b0000_1100);
    /// `ib_read_*`.
    pub const READ: Tools = Tools(0b0011_0000);
    /// `ib_atomic_*`.
    pub const ATOMIC: Tools = Tools(0b1100_0000);

    const fn bit(tool: Tool) -> u8 {
        let verb = match tool.verb {
            Verb::Send | Verb::SendImm => 0,
            Verb::Write | Verb::WriteImm => 2,
            Verb::Read => 4,
            Verb::Atomic => 6,
        };
        match tool.measurement {
            Measurement::Bandwidth => 1 << verb,
            Measurement::Latency => 2 << verb,
        }
    }

    /// True when `tool` is in the set.
    pub const fn contains(self, tool: Tool) -> bool {
        self.0 & Tools::bit(tool) != 0
    }

    /// Tools in either set.
    pub const fn or(self, other: Tools) -> Tools {
        Tools(self.0 | other.0)
    }

    /// Tools in both sets.
    pub const fn and(self, other: Tools) -> Tools {
        Tools(self.0 & other.0)
    }

    /// All other tools.
    pub const fn not(self) -> Tools {
        Tools(!self.0)
    }
}

/// Heading in the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// What is sent, how much, how long.
    Traffic,
    /// How the ends find each other.
    Connection,
    /// Device, port, addresses, packets.
    Device,
    /// Queues, completions, memory.
    Queues,
    /// What is printed and saved.
    Report,
    /// Rate limiter.
    Rate,
    /// Options stock perftest does not have.
    Own,
    /// Help and version.
    General,
    /// Accelerators, encryption, special adapters; refused.
    Hardware,
    /// Raw Ethernet tools; accepted and without effect.
    RawEthernet,
}

impl Section {
    /// The sections whose options are explained one by one, in the order of
    /// the help text, with their headings.
    pub const EXPLAINED: &'static [(Section, &'static str)] = &[
        (Section::Traffic, "Traffic"),
        (Section::Connection, "Connection"),
        (Section::Device, "Device, addresses, packets"),
        (Section::Queues, "Queues and memory"),
        (Section::Report, "Report"),
        (Section::Rate, "Rate limiter"),
        (Section::Own, "Not in stock perftest"),
        (Section::General, "Help"),
    ];
}

/// Limits of a number and the words stock perftest has for them.
#[derive(Clone, Copy, Debug)]
pub(in crate::options) enum Check {
    /// Any number. What does not fit is the setter's affair.
    Any,
    /// Both ends allowed.
    Range(i64, i64),
    /// Greater than 0, up to 2^31 - 1.
    Positive,
    /// 0 up to 2^31 - 1.
    NonNegative,
}

/// A numeric argument.
#[derive(Clone, Copy, Debug)]
pub(in crate::options) struct Number {
    /// Name in messages.
    pub(in crate::options) name: &'static str,
    /// C type in messages.
    pub(in crate::options) c_type: &'static str,
    /// Limits.
    pub(in crate::options) check: Check,
}

impl Number {
    /// Reads and checks an argument.
    pub(in crate::options) fn read(&self, text: &str) -> Result<i64, Refusal> {
        let Number {
            name,
            c_type,
            check,
        } = self;
        let value = number::whole(text).ok_or_else(|| {
            Refusal::option(format!(" {name} argument {text} should be {c_type}\n"))
        })?;
        let (low, high) = match *check {
            Check::Any => return Ok(value),
            Check::Positive if value <= 0 => {
                return Err(Refusal::option(format!(" {name} must be positive\n")));
            }
            Check::NonNegative if value < 0 => {
                let text = format!(" {name} must be non-negative {c_type}\n");
                return Err(Refusal::option(text));
            }
            Check::Positive => (1, i64::from(i32::MAX)),
            Check::NonNegative => (0, i64::from(i32::MAX)),
            Check::Range(low, high) => (low, high),
        };
        if (low..=high).contains(&value) {
            Ok(value)
        } else {
            let text = format!(" {name} should be between {low} and {high}\n");
            Err(Refusal::option(text))
        }
    }
}

/// A check of what an option has stored.
type After = fn(&Settings) -> Result<(), Refusal>;

/// What happens when the option is met.
#[derive(Clone, Copy)]
pub(in crate::options) enum Store {
    /// Print the help text and end.
    Help,
    /// Print the version and end.
    Version,
    /// No argument.
    Flag(fn(&mut Settings)),
    /// A checked number.
    Number(Number, fn(&mut Settings, i64)),
    /// Any text.
    Text(fn(&mut Settings, &str) -> Result<(), Refusal>),
    /// Hardware or libraries that are not there: the refusal of a stock build
    /// without them.
    Refuse(fn() -> Refusal),
}

/// One option.
#[derive(Clone, Copy)]
pub struct OptionRow {
    /// Letter, for `-s`.
    pub short: Option<char>,
    /// Name, for `--size`.
    pub long: &'static str,
    /// Second spelling of the name.
    pub alias: Option<&'static str>,
    /// What the argument is called; absent when there is none.
    pub value: Option<&'static str>,
    /// The only arguments there are; empty when it is a number or free text.
    pub choices: &'static [&'static str],
    /// Tools whose help lists the option.
    pub tools: Tools,
    /// Both ends must be given the same.
    pub symmetric: bool,
    /// Default as text, by tool.
    pub default: Option<fn(Tool) -> String>,
    /// One line.
    pub help: &'static str,
    /// Heading in the help text.
    pub section: Section,
    /// Refusal for tools outside `tools`, when stock perftest has one while
    /// parsing.
    pub(in crate::options) only: Option<&'static str>,
    /// Checked after the value is stored.
    pub(in crate::options) then: Option<After>,
    /// What it does.
    pub(in crate::options) store: Store,
}

impl std::fmt::Debug for OptionRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "--{}", self.long)
    }
}

impl OptionRow {
    const fn new(section: Section, long: &'static str, store: Store) -> OptionRow {
        OptionRow {
            short: None,
            long,
            alias: None,
            value: None,
            choices: &[],
            tools: Tools::ALL,
            symmetric: false,
            default: None,
            help: "",
            section,
            only: None,
            then: None,
            store,
        }
    }

    /// An option without argument.
    pub(super) const fn flag(
        section: Section,
        long: &'static str,
        set: fn(&mut Settings),
    ) -> OptionRow {
        OptionRow::new(section, long, Store::Flag(set))
    }

    /// `-h`.
    pub(super) const fn help_screen() -> OptionRow {
        OptionRow::new(Section::General, "help", Store::Help)
    }

    /// `-V`.
    pub(super) const fn version() -> OptionRow {
        OptionRow::new(Section::General, "version", Store::Version)
    }

    /// An option with a numeric argument.
    pub(super) const fn number(
        section: Section,
        long: &'static str,
        value: &'static str,
        (name, c_type, check): (&'static str, &'static str, Check),
        set: fn(&mut Settings, i64),
    ) -> OptionRow {
        let number = Number {
            name,
            c_type,
            check,
        };
        OptionRow {
            value: Some(value),
            ..OptionRow::new(section, long, Store::Number(number, set))
        }
    }

    /// An option with an argument that is no plain number.
    pub(super) const fn text(
        section: Section,
        long: &'static str,
        value: &'static str,
        set: fn(&mut Settings, &str) -> Result<(), Refusal>,
    ) -> OptionRow {
        OptionRow {
            value: Some(value),
            ..OptionRow::new(section, long, Store::Text(set))
        }
    }

    /// An option that is refused when met.
    pub(super) const fn refuse(
        section: Section,
        long: &'static str,
        value: Option<&'static str>,
        refusal: fn() -> Refusal,
    ) -> OptionRow {
        OptionRow {
            value,
            ..OptionRow::new(section, long, Store::Refuse(refusal))
        }
    }

    pub(super) const fn letter(self, letter: char) -> OptionRow {
        OptionRow {
            short: Some(letter),
            ..self
        }
    }

    pub(super) const fn alias(self, alias: &'static str) -> OptionRow {
        OptionRow {
            alias: Some(alias),
            ..self
        }
    }

    pub(super) const fn choices(self, choices: &'static [&'static str]) -> OptionRow {
        OptionRow { choices, ..self }
    }

    /// Tools whose help lists the option; the others take it all the same.
    pub(super) const fn listed(self, tools: Tools) -> OptionRow {
        OptionRow { tools, ..self }
    }

    /// Tools that take the option, and the text for the others.
    pub(super) const fn only(self, tools: Tools, refusal: &'static str) -> OptionRow {
        OptionRow {
            tools,
            only: Some(refusal),
            ..self
        }
    }

    pub(super) const fn then(self, check: After) -> OptionRow {
        OptionRow {
            then: Some(check),
            ..self
        }
    }

    pub(super) const fn symmetric(self) -> OptionRow {
        OptionRow {
            symmetric: true,
            ..self
        }
    }

    pub(super) const fn default(self, default: fn(Tool) -> String) -> OptionRow {
        OptionRow {
            default: Some(default),
            ..self
        }
    }

    pub(super) const fn help(self, help: &'static str) -> OptionRow {
        OptionRow { help, ..self }
    }

    /// True when the option has an argument.
    pub const fn takes_value(&self) -> bool {
        self.value.is_some()
    }

    /// The long name and its second spelling.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.long), self.alias].into_iter().flatten()
    }
}
