//! Recorded dialogues and the command lines that made them.
//!
//! Two layouts exist: `handshake*/NAME.txt` (one TCP segment a line) and
//! `stock/SERVER-CLIENT/TOOL/CASE/wire.txt` (one write a line).

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use engine::exchange::{
    Connection, Ending, Measurement, Method, PlanInput, Side, Tool, Units, Verb,
};

use crate::records::{entries, golden_folder, stock_cases};

/// One recorded dialogue.
pub(crate) struct Dialogue {
    pub(crate) name: String,
    pub(crate) client_command: Command,
    pub(crate) server_command: Command,
    pub(crate) messages: Vec<Message>,
    /// What client and server said on stderr, where it was recorded.
    pub(crate) errors: Option<[String; 2]>,
    /// What client and server said on stdout, where it was recorded.
    pub(crate) screens: Option<[String; 2]>,
    /// Both ends ended well.
    pub(crate) succeeded: bool,
}

#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) from: Side,
    pub(crate) bytes: Vec<u8>,
}

impl Message {
    /// What ends up to 6.16 send after the closing handshake.
    pub(crate) fn is_done(&self) -> bool {
        self.bytes == b"done\0"
    }
}

impl Dialogue {
    pub(crate) fn command(&self, side: Side) -> &Command {
        match side {
            Side::Client => &self.client_command,
            Side::Server => &self.server_command,
        }
    }

    pub(crate) fn of(&self, side: Side) -> impl Iterator<Item = &[u8]> {
        self.messages
            .iter()
            .filter(move |message| message.from == side && !message.is_done())
            .map(|message| message.bytes.as_slice())
    }
}

/// All dialogues over TCP.
pub(crate) fn dialogues() -> Vec<Dialogue> {
    let mut all = Vec::new();
    for folder in ["handshake", "handshake-6.29"] {
        let Some(folder) = golden_folder(folder) else {
            continue;
        };
        all.extend(entries(&folder, "txt").iter().map(|path| handshake(path)));
    }
    all.extend(stock_cases().iter().filter_map(|case| stock_dialogue(case)));
    // -R and -z have none; in others one end never came.
    all.retain(|dialogue| !dialogue.messages.is_empty());
    all
}

/// The commands of server and client in a text of `handshake*/`, and whether
/// both ended well.
pub(crate) fn commands(text: &str) -> (Command, Command, bool) {
    let mut succeeded = true;
    let mut command = |role: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(role));
        let (command, exit) = line.unwrap().rsplit_once(" (exit ").unwrap();
        succeeded &= exit == "0)";
        Command::parse(command)
    };
    let server = command("# server: ");
    let client = command("# client: ");
    (server, client, succeeded)
}

fn handshake(path: &Path) -> Dialogue {
    let text = fs::read_to_string(path).unwrap();
    let (server_command, client_command, succeeded) = commands(&text);
    let mut messages = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        if let [_, _, direction, _, _, hex] = fields[..] {
            messages.push(message(direction, hex));
        }
    }
    Dialogue {
        name: path.display().to_string(),
        client_command,
        server_command,
        messages,
        errors: None,
        screens: None,
        succeeded,
    }
}

fn stock_dialogue(case: &Path) -> Option<Dialogue> {
    let wire = fs::read_to_string(case.join("wire.txt")).ok()?;
    let commands = fs::read_to_string(case.join("cmd.txt")).unwrap();
    let command = |role: &str| {
        let line = commands.lines().find_map(|line| line.strip_prefix(role))?;
        Some(Command::parse(line))
    };
    let said = |name: &str| fs::read_to_string(case.join(name)).unwrap_or_default();
    let exits = fs::read_to_string(case.join("exit.txt")).unwrap();
    Some(Dialogue {
        name: case.display().to_string(),
        client_command: command("client: ")?,
        server_command: command("server: ")?,
        messages: wire
            .lines()
            .map(|line| {
                let mut fields = line.split_ascii_whitespace();
                let direction = fields.next().unwrap();
                message(direction, fields.nth(1).unwrap())
            })
            .collect(),
        errors: Some([said("client.err"), said("server.err")]),
        screens: Some([said("client.out"), said("server.out")]),
        succeeded: exits.split_ascii_whitespace().all(|exit| exit == "0"),
    })
}

fn message(direction: &str, hex: &str) -> Message {
    Message {
        from: match direction {
            "C>S" => Side::Client,
            "S>C" => Side::Server,
            other => panic!("unknown direction {other}"),
        },
        bytes: (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect(),
    }
}

/// A recorded command line, as far as it decides the dialogue.
#[derive(Clone)]
pub(crate) struct Command {
    arguments: Vec<String>,
}

impl Command {
    pub(crate) fn parse(line: &str) -> Self {
        let arguments = line.split_ascii_whitespace().map(str::to_owned).collect();
        Self { arguments }
    }

    fn has(&self, names: &[&str]) -> bool {
        self.arguments.iter().any(|argument| {
            let name = argument.split('=').next().unwrap();
            names.iter().any(|full| is_option(name, full))
        })
    }

    fn value(&self, names: &[&str]) -> Option<&str> {
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument.as_str(), None),
            };
            if names.iter().any(|full| is_option(name, full)) {
                return value.or_else(|| arguments.next().map(String::as_str));
            }
        }
        None
    }

    pub(crate) fn tool(&self) -> Tool {
        let path = &self.arguments[0];
        let name = path.rsplit('/').next().unwrap();
        let (verb, measurement) = name
            .strip_prefix("ib_")
            .and_then(|name| name.split_once('_'))
            .unwrap();
        Tool {
            verb: match verb {
                "write" if self.has(&["--write_with_imm"]) => Verb::WriteImm,
                "write" => Verb::Write,
                "send" if self.has(&["--send_with_imm"]) => Verb::SendImm,
                "send" => Verb::Send,
                "read" => Verb::Read,
                "atomic" => Verb::Atomic,
                other => panic!("unknown tool {other}"),
            },
            measurement: match measurement {
                "bw" => Measurement::Bandwidth,
                "lat" => Measurement::Latency,
                other => panic!("unknown tool {other}"),
            },
        }
    }

    pub(crate) fn connection(&self) -> Connection {
        let name = self.value(&["-c", "--connection"]).unwrap_or("RC");
        let number = Connection::NAMES.iter().position(|known| *known == name);
        number
            .and_then(|number| Connection::from_number(number as u32))
            .unwrap_or_else(|| panic!("unknown connection {name}"))
    }

    fn is_duplex(&self) -> bool {
        self.has(&["-b", "--bidirectional"])
    }

    pub(crate) fn qps(&self) -> usize {
        let qps: usize = self
            .value(&["-q", "--qp"])
            .map_or(1, |qps| qps.parse().unwrap());
        let one_way = matches!(self.connection(), Connection::Xrc | Connection::Dc);
        let ports = if self.has(&["-O", "--dualport"]) {
            2
        } else {
            1
        };
        let ways = if one_way && self.is_duplex() { 2 } else { 1 };
        qps * ports * ways
    }

    pub(crate) fn reports_per_port(&self) -> bool {
        self.has(&["--report-per-port"])
    }

    pub(crate) fn is_reversed(&self) -> bool {
        self.has(&["--reversed"])
    }

    pub(crate) fn units(&self) -> Units {
        if self.has(&["--report_gbits"]) {
            Units::Gbits
        } else {
            Units::Mib
        }
    }

    pub(crate) fn output(&self) -> Option<&str> {
        self.value(&["--output"])
    }

    /// The control dialogue runs over the connection manager.
    pub(crate) fn over_cm(&self) -> bool {
        self.has(&["-R", "-z", "--rdma_cm", "--comm_rdma_cm"])
    }

    pub(crate) fn plan_input(&self) -> PlanInput {
        let method = if self.has(&["-a", "--all"]) {
            Method::All
        } else if self.has(&["--run_infinitely"]) {
            Method::Infinite
        } else {
            Method::Regular
        };
        PlanInput {
            tool: self.tool(),
            method,
            // UD stops at the MTU, which is 4096 in all records.
            sizes: if self.connection() == Connection::Ud {
                12
            } else {
                23
            },
            ending: if self.has(&["-D", "--duration"]) {
                Ending::Duration
            } else {
                Ending::Iterations
            },
            duplex: self.is_duplex(),
            data_validation: self.has(&["--data_validation"]),
            cm_connected: self.has(&["-R", "--rdma_cm"]),
        }
    }
}

/// Long options may be cut short.
fn is_option(given: &str, full: &str) -> bool {
    given == full || (given.len() >= 6 && given.starts_with("--") && full.starts_with(given))
}
