//! Reads the recorded runs of stock perftest.

use std::fs;
use std::path::{Path, PathBuf};

use engine::options::Tool;

/// One recorded process.
pub(crate) struct Record {
    /// Where it was found, for messages.
    pub(crate) name: String,
    pub(crate) tool: Tool,
    /// The name it was started by.
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit_code: i32,
}

fn command(line: &str) -> Option<(Tool, String, Vec<String>)> {
    let mut words = line.split_whitespace().map(str::to_owned);
    let program = words.next()?;
    let tool = Tool::from_program(&program)?;
    Some((tool, program, words.collect()))
}

/// The records of `output` and `output-6.29`: `index.tsv` lists file, command
/// and exit code; a file is the command, stdout, and `[stderr]` with stderr.
pub(crate) fn of_output(folder: &Path) -> Vec<Record> {
    let index = fs::read_to_string(folder.join("index.tsv")).unwrap();
    index
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut columns = line.split('\t');
            let file = columns.next()?;
            let (tool, program, args) = command(columns.next()?)?;
            let exit_code = columns.next()?.trim().parse().ok()?;
            // Some recorded texts hold stray bytes.
            let bytes = fs::read(folder.join(file)).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            let body = text.split_once('\n').map_or("", |(_, body)| body);
            let (stdout, stderr) = match body.strip_prefix("[stderr]\n") {
                Some(stderr) => ("", stderr),
                None => match body.split_once("\n[stderr]\n") {
                    Some((stdout, stderr)) => (stdout, stderr),
                    None => (body, ""),
                },
            };
            Some(Record {
                name: format!("{}/{file}", folder.display()),
                tool,
                program,
                args,
                // The newline before "[stderr]" belongs to stdout.
                stdout: match stdout.is_empty() || stdout.ends_with('\n') {
                    true => stdout.to_owned(),
                    false => format!("{stdout}\n"),
                },
                stderr: stderr.to_owned(),
                exit_code,
            })
        })
        .collect()
}

/// The records of `stock/6.29-6.29`: a folder per tool and case, with
/// `cmd.txt`, `server.out`, `server.err` and so on, and `exit.txt`.
pub(crate) fn of_stock(folder: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    for tool in children(folder) {
        for case in children(&tool) {
            let Ok(commands) = fs::read_to_string(case.join("cmd.txt")) else {
                continue;
            };
            let exits = fs::read_to_string(case.join("exit.txt")).unwrap_or_default();
            let mut exits = exits.split_whitespace();
            for side in ["server", "client"] {
                let exit = exits.next().and_then(|exit| exit.parse().ok());
                let line = commands
                    .lines()
                    .find_map(|line| line.strip_prefix(side)?.strip_prefix(": "));
                let out = fs::read(case.join(format!("{side}.out")));
                let err = fs::read(case.join(format!("{side}.err")));
                if let (Some(line), Some(exit_code), Ok(out), Ok(err)) = (line, exit, out, err)
                    && let Some((tool, program, args)) = command(line)
                {
                    records.push(Record {
                        name: format!("{} {side}", case.display()),
                        tool,
                        program,
                        args,
                        stdout: String::from_utf8_lossy(&out).into_owned(),
                        stderr: String::from_utf8_lossy(&err).into_owned(),
                        exit_code,
                    });
                }
            }
        }
    }
    records
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let mut children: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    children.sort();
    children
}
