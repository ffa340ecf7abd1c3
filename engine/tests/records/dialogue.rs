//! Recorded dialogues and the command lines that made them.
//!
//! Two layouts exist: `handshake*/NAME.txt` (one TCP segment a line) and
//! `stock/SERVER-CLIENT/TOOL/CASE/wire.txt` (one write a line).

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use engine::exchange::{Connection, Ending, Measurement, Method, PlanInput, Side, Tool, Verb};

use crate::records::{entries, golden_folder, stock_cases};

/// One recorded dialogue.
pub(crate) struct Dialogue {
    pub(crate) name: String,
    pub(crate) client_command: Command,
    pub(crate) server_command: Command,
    pub(crate) messages: Vec<Message>,
    /// What the ends said on stderr, where it was recorded.
    pub(crate) errors: Option<[String; 2]>,
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

fn handshake(path: &Path) -> Dialogue {
    let text = fs::read_to_string(path).unwrap();
    let mut commands = Vec::new();
    let mut succeeded = true;
    let mut messages = Vec::new();
    for line in text.lines() {
        let command = line
            .strip_prefix("# server: ")
            .or_else(|| line.strip_prefix("# client: "));
        if let Some(command) = command {
            let (command, exit) = command.rsplit_once(" (exit ").unwrap();
            succeeded &= exit == "0)";
            commands.push(Command::parse(command));
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        if let [_, _, direction, _, _, hex] = fields[..] {
            messages.push(message(direction, hex));
        }
    }
    let client_command = commands.pop().unwrap();
    let server_command = commands.pop().unwrap();
    Dialogue {
        name: path.display().to_string(),
        client_command,
        server_command,
        messages,
        errors: None,
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
    let error = |name: &str| fs::read_to_string(case.join(name)).unwrap_or_default();
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
        errors: Some([error("client.err"), error("server.err")]),
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
        self.arguments
            .iter()
            .any(|argument| names.contains(&argument.split('=').next().unwrap()))
    }

    fn value(&self, names: &[&str]) -> Option<&str> {
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, value) = argument
                .split_once('=')
                .map_or((argument.as_str(), None), |(name, value)| {
                    (name, Some(value))
                });
            if names.contains(&name) {
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
        match self.value(&["-c", "--connection"]) {
            None | Some("RC") => Connection::Rc,
            Some("UC") => Connection::Uc,
            Some("UD") => Connection::Ud,
            Some(other) => panic!("unknown connection {other}"),
        }
    }

    pub(crate) fn qps(&self) -> usize {
        let qps: usize = self
            .value(&["-q", "--qp"])
            .map_or(1, |qps| qps.parse().unwrap());
        qps * if self.has(&["-O", "--dualport"]) {
            2
        } else {
            1
        }
    }

    pub(crate) fn reports_per_port(&self) -> bool {
        self.has(&["--report-per-port"])
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
            duplex: self.has(&["-b", "--bidirectional"]),
            data_validation: self.has(&["--data_validation"]),
            cm_connected: self.has(&["-R", "--rdma_cm"]),
        }
    }
}
