//! Recorded commands: `system/index.tsv` and the screens it names.

use std::fs;
use std::path::{Path, PathBuf};

/// A recorded command.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// File of the screen.
    pub(crate) file: String,
    /// Program and arguments.
    pub(crate) words: Vec<String>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: u8,
}

/// The recorded commands of a program; those of a pipe or with more than one
/// program are left out.
pub(crate) fn records(program: &str) -> Vec<Record> {
    let Some(folder) = golden_folder("system") else {
        return Vec::new();
    };
    let index = fs::read_to_string(folder.join("index.tsv")).unwrap();
    let records: Vec<Record> = index
        .lines()
        .filter_map(|line| {
            let mut columns = line.split('\t');
            let (file, command, code) = (columns.next()?, columns.next()?, columns.next()?);
            let is_ours = command.split(' ').next() == Some(program);
            if !is_ours || command.contains(['|', ';']) {
                return None;
            }
            let screen = fs::read_to_string(folder.join(file)).unwrap();
            let (first, rest) = screen.split_once('\n').unwrap();
            assert_eq!(first, format!("$ {command}"), "{file}");
            let (stdout, stderr) = match rest.strip_prefix("[stderr]\n") {
                Some(stderr) => ("", stderr),
                None => rest.split_once("\n[stderr]\n").unwrap_or((rest, "")),
            };
            let mut stdout = stdout.to_owned();
            if !stdout.is_empty() && !stdout.ends_with('\n') {
                stdout.push('\n');
            }
            Some(Record {
                file: file.to_owned(),
                words: words(command),
                stdout,
                stderr: stderr.to_owned(),
                code: code.parse().unwrap(),
            })
        })
        .collect();
    assert!(!records.is_empty(), "no record of {program} in the index");
    records
}

fn golden_folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("GOLDEN_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden"),
        PathBuf::from,
    );
    let folder = root.join(name);
    if folder.join("index.tsv").is_file() {
        return Some(folder);
    }
    eprintln!("skipped: no golden data in {}", folder.display());
    None
}

/// Words between blanks; `''` is an empty one.
fn words(command: &str) -> Vec<String> {
    let words = command.split_whitespace();
    words
        .map(|word| word.trim_matches('\'').to_owned())
        .collect()
}

impl Record {
    pub(crate) fn program(&self) -> &str {
        &self.words[0]
    }

    pub(crate) fn arguments(&self) -> &[String] {
        &self.words[1..]
    }

    /// The arguments that aren't options.
    pub(crate) fn command(&self) -> Vec<&str> {
        let words = self.arguments().iter().map(String::as_str);
        words.filter(|word| !word.starts_with('-')).collect()
    }
}
