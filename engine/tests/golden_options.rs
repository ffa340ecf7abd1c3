//! The option layer against recorded runs of stock perftest.
//!
//! Every record is put through the option layer. What it decides alone (help,
//! version, refusals) is compared byte for byte. Of the others, which need a
//! device and a peer, the beginning of the output and the values in the header
//! are compared.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "records/folder.rs"]
mod folder;
#[path = "golden_options/header.rs"]
mod header;
#[path = "golden_options/records.rs"]
mod records;

use std::collections::BTreeSet;
use std::fs;

use engine::options::device::{self, DeviceProblem};
use engine::options::{self, ExitReason, Messages, Outcome, Resolved, Stream, Tool, table};
use engine::report::Style;
use folder::golden_folder;
use records::Record;

/// What stock perftest prints last after most parse errors.
const PARSER_LINE: &str = " Parser function exited with Error\n";

/// Printed once a device was found, so not by the option layer.
const BANNER: &str = "\n************************************\n\
                      * Waiting for client to connect... *\n\
                      ************************************\n";

fn run(record: &Record) -> Resolved {
    run_in(Style::V6_29, record)
}

/// In the style of the version that was recorded.
fn run_in(style: Style, record: &Record) -> Resolved {
    let mut args = record.args.clone();
    if style != Style::V6_29 {
        let name = Style::NAMES[style as usize];
        args.insert(0, format!("--output_style={name}"));
    }
    options::from_command_line(record.tool, &record.program, &args, cpus(record))
}

/// The number of CPUs of the machine of the record, where it matters.
fn cpus(record: &Record) -> u32 {
    record
        .stderr
        .split_once("System has ")
        .and_then(|(_, rest)| rest.split_once(' '))
        .map_or(64, |(cpus, _)| cpus.parse().unwrap())
}

fn stdout(messages: &Messages) -> String {
    messages.text(Stream::Stdout)
}

fn stderr(messages: &Messages) -> String {
    messages.text(Stream::Stderr)
}

/// Where we differ on purpose: refused with a text of our own.
fn is_deviation(resolved: &Resolved) -> bool {
    matches!(
        resolved.outcome,
        Outcome::Exit {
            reason: ExitReason::NotSupported | ExitReason::Stricter,
            ..
        }
    )
}

/// `--report-histogram` is what the help text of stock perftest says and its
/// parser does not know.
fn uses_second_spelling(record: &Record) -> bool {
    record.args.iter().any(|arg| {
        table::rows().any(|row| {
            row.alias
                .is_some_and(|alias| arg.strip_prefix("--") == Some(alias))
        })
    })
}

/// Compares a command line that ends in the option layer.
fn check_exit(record: &Record, messages: &Messages, code: i32, reason: ExitReason) {
    let name = &record.name;
    assert_eq!(code, record.exit_code, "{name}: exit code");
    assert_eq!(stderr(messages), record.stderr, "{name}: stderr");
    if record.stdout.starts_with("Usage:") {
        assert!(stdout(messages).starts_with("Usage:\n"), "{name}: help");
        return;
    }
    assert_ne!(reason, ExitReason::Help, "{name}");
    let expected = record.stdout.replace(BANNER, "");
    assert_eq!(stdout(messages), expected, "{name}: stdout");
}

/// Compares a command line that needs a device to go on.
fn check_run(record: &Record, resolved: &Resolved) {
    let name = &record.name;
    assert!(
        !record.stderr.contains(PARSER_LINE),
        "{name}: stock perftest refuses it, we do not: {}",
        record.stderr
    );
    // A process that was stopped may have lost what it had not written yet.
    let lost = record.exit_code == 143 && record.stdout.is_empty();
    let said = stdout(&resolved.messages);
    assert!(
        record.stdout.starts_with(&said) || lost,
        "{name}: begins with {:?}, not with {said:?}",
        record.stdout.get(..200)
    );
    let complained = stderr(&resolved.messages);
    assert!(
        record.stderr.starts_with(&complained),
        "{name}: stderr is {:?}, not {complained:?}",
        record.stderr
    );
    let rest = record.stdout.strip_prefix(&said).unwrap_or_default();
    for text in [
        "WARNING: BW peak",
        "Disabling dynamic polling",
        "Increasing CQE",
        "Post List requested",
        "Warning: Large message",
    ] {
        assert!(!rest.contains(text), "{name}: we do not say {text:?}");
    }
    if let Some(problem) = device_problem(&record.stderr) {
        check_device(record, resolved, &problem);
    }
    header::check(record, resolved.params().unwrap());
}

/// What was wrong with the device, by the complaint about it.
fn device_problem(stderr: &str) -> Option<DeviceProblem> {
    let number = |text: &str| text.trim().parse().ok();
    stderr.lines().find_map(|line| {
        if let Some(rest) = line.strip_prefix("IB device ") {
            let name = rest.strip_suffix(" not found")?;
            return Some(DeviceProblem::UnknownDevice(name.to_owned()));
        }
        if let Some(rest) = line.strip_prefix(" Unable to query port ") {
            let port = number(rest.strip_suffix(" attributes")?)?;
            return Some(DeviceProblem::UnreadablePort(port));
        }
        let (port, state) = line
            .strip_prefix(" Port number ")?
            .split_once(" state is ")?;
        let states = ["Nop", "Down", "Init", "Armed", "", "Active Defer"];
        let state = states.iter().position(|name| *name == state)?;
        Some(DeviceProblem::PortNotActive(number(port)?, state as u8))
    })
}

/// The process ended at the device: compares all of stderr, and the code.
fn check_device(record: &Record, resolved: &Resolved, problem: &DeviceProblem) {
    let name = &record.name;
    let refused = device::refuse(record.tool, problem);
    let said = stderr(&resolved.messages) + &stderr(&refused.messages);
    assert_eq!(said, record.stderr, "{name}: stderr");
    let Outcome::Exit { code, .. } = refused.outcome else {
        panic!("{name}: runs without a device");
    };
    assert_eq!(code, record.exit_code, "{name}: exit code");
}

/// Puts all records through and says what was done with them.
fn check_all(records: &[Record]) {
    let (mut exits, mut runs, mut deviations) = (0, 0, 0);
    for record in records {
        let resolved = run(record);
        if is_deviation(&resolved) || uses_second_spelling(record) {
            assert!(
                !record.stderr.contains(PARSER_LINE) || uses_second_spelling(record),
                "{}: stock perftest refuses it with a text of its own",
                record.name
            );
            deviations += 1;
            continue;
        }
        match resolved.outcome {
            Outcome::Exit { code, reason } => {
                check_exit(record, &resolved.messages, code, reason);
                exits += 1;
            }
            Outcome::Run(_) => {
                check_run(record, &resolved);
                runs += 1;
            }
        }
    }
    eprintln!("{exits} exits and {runs} runs compared, {deviations} deviations skipped");
    assert!(exits > 0 || records.is_empty(), "nothing was compared");
}

#[test]
fn golden_output_of_6_29() {
    let Some(folder) = golden_folder("output-6.29") else {
        return;
    };
    let mut records = records::of_output(&folder);
    // A command with its path is the old version, run against the new one.
    records.retain(|record| !record.program.starts_with('/'));
    check_all(&records);
}

#[test]
fn golden_stock_6_29() {
    let Some(folder) = golden_folder("stock/6.29-6.29") else {
        return;
    };
    check_all(&records::of_stock(&folder));
}

/// Texts of 6.06 and what became of them, oldest first.
const CHANGED_SINCE_6_06: &[(&str, &str)] = &[
    ("Version: 6.06", "Version: 6.29"),
    ("Version: 6.20", "Version: 6.29"),
    ("and 912\n", "and 1024\n"),
    ("and 100000000\n", "and 4294967296\n"),
    ("and 884\n", "and 1024\n"),
    (
        " Rate limit must be non-negative\n",
        " Rate limit must be non-negative floating point number\n",
    ),
    ("must be non-negative\n", "must be non-negative int\n"),
    (
        " run_infinitely mode is not supported in SEND Bidirectional BW test\n",
        " run_infinitely mode is not supported in SEND, SEND_IMM or WRITE_IMM Bidirectional BW \
         test\n",
    ),
    ("in SEND tests.", "in SEND / SEND_IMM tests."),
    (
        "possible in SEND/READ verbs",
        "possible in SEND/READ/WRITE/WRITE_IMM verbs",
    ),
    // A rule since, where it was refused while parsing.
    (
        " Events feature not available on WRITE verb\n Parser function exited with Error\n",
        " Events feature not available on WRITE verb\n",
    ),
];

/// The number of iterations was an `int`.
fn wider_iterations(stderr: &str) -> String {
    stderr
        .split_inclusive('\n')
        .map(|line| match line.starts_with(" Iteration num argument") {
            true => line.replace("should be int\n", "should be uint64_t\n"),
            false => line.to_owned(),
        })
        .collect()
}

#[test]
fn golden_output_of_6_06_where_nothing_changed() {
    let Some(folder) = golden_folder("output") else {
        return;
    };
    check_older(Style::V6_06, &records::of_output(&folder));
}

#[test]
fn golden_stock_6_06_where_nothing_changed() {
    if let Some(folder) = golden_folder("stock/6.06-6.06") {
        check_older(Style::V6_06, &records::of_stock(&folder));
    }
}

#[test]
fn golden_stock_6_20_where_nothing_changed() {
    if let Some(folder) = golden_folder("stock/6.20-6.20") {
        check_older(Style::V6_20, &records::of_stock(&folder));
    }
}

/// Puts records of an older version through, in its style.
fn check_older(style: Style, records: &[Record]) {
    let mut compared = 0;
    for record in records {
        let resolved = run_in(style, record);
        let name = &record.name;
        let unknown = |text: &str| text.contains("unrecognized option");
        if unknown(&record.stderr) && !unknown(&stderr(&resolved.messages)) {
            eprintln!("{name}: an option that came later");
            continue;
        }
        let mut expected = wider_iterations(&record.stderr);
        let mut printed = record.stdout.replace(BANNER, "");
        for (old, new) in CHANGED_SINCE_6_06 {
            expected = expected.replace(old, new);
            printed = printed.replace(old, new);
        }
        match &resolved.outcome {
            Outcome::Exit {
                code,
                reason: ExitReason::Help | ExitReason::Version | ExitReason::Refused,
            } => {
                // What 6.06 took and 6.29 refuses: a transport it lists as
                // SEND and READ only, and so on, is decided by 6.29.
                if record.exit_code != *code && record.exit_code != 1 {
                    eprintln!("{name}: refused since 6.06");
                    continue;
                }
                assert_eq!(*code, record.exit_code, "{name}: exit code");
                assert_eq!(stderr(&resolved.messages), expected, "{name}: stderr");
                let said = stdout(&resolved.messages);
                if !printed.starts_with("Usage:") && !expected.contains("Events feature") {
                    assert_eq!(said, printed, "{name}: stdout");
                }
                compared += 1;
            }
            Outcome::Run(_) => {
                assert!(
                    !expected.contains(PARSER_LINE),
                    "{name}: stock perftest refuses it, we do not: {expected}"
                );
                if let Some(problem) = device_problem(&record.stderr) {
                    check_device(record, &resolved, &problem);
                }
                let said = stdout(&resolved.messages);
                let shown = &record.stdout;
                assert!(
                    shown.is_empty() || shown.starts_with(&said),
                    "{name}: begins with {:?}, not with {said:?}",
                    shown.get(..200)
                );
                compared += 1;
            }
            Outcome::Exit { .. } => {}
        }
    }
    assert!(compared > 0 || records.is_empty(), "nothing was compared");
}

/// Long names in a help text: words that begin with two dashes.
fn long_names(help: &str) -> BTreeSet<String> {
    help.split("--")
        .skip(1)
        .map(|rest| {
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        .collect()
}

#[test]
fn golden_every_option_of_the_help_text_is_known() {
    let Some(folder) = golden_folder("output-6.29") else {
        return;
    };
    let known: BTreeSet<_> = table::rows().flat_map(|row| row.names()).collect();
    let mut seen = 0;
    for tool in Tool::ALL {
        let file = folder.join(format!("{tool}.help.txt"));
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let ours = options::help::text(tool, tool.name());
        for name in long_names(&text) {
            assert!(known.contains(name.as_str()), "{tool}: --{name} is unknown");
            assert!(
                ours.contains(&format!("--{name}")) || is_second_spelling(&name),
                "{tool}: our help does not list --{name}"
            );
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} options found");
}

fn is_second_spelling(name: &str) -> bool {
    table::rows().any(|row| row.alias == Some(name))
}
