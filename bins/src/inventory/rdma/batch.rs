//! `rdma -b FILE`: commands from a file.

use std::io::Read;

use super::session::{Session, strerror};
use super::{OBJECTS, Step, help};

/// Runs the commands of a file, `-` for standard input, one a line; with
/// `force` also those after one that fails.
pub(super) fn run(session: &mut Session<'_>, file: &str, force: bool) -> Step {
    let text = match read(file) {
        Ok(text) => text,
        Err(error) => {
            let reason = strerror(error.raw_os_error().unwrap_or(libc::EIO));
            let text = format!("Cannot open file \"{file}\" for reading: {reason}");
            return session.refuse(&text);
        }
    };
    let mut all = Ok(());
    for (number, command) in commands(&text) {
        session.words = command.into();
        if session.dispatch(help::general, OBJECTS, "object").is_err() {
            all = session.refuse(&format!("Command failed {file}:{number}"));
            if !force {
                break;
            }
        }
    }
    all
}

fn read(file: &str) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    match file {
        "-" => std::io::stdin().read_to_end(&mut bytes)?,
        _ => std::fs::File::open(file)?.read_to_end(&mut bytes)?,
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Lines with their numbers, split into words: `#` begins a comment, quotes hold
/// words together, a backslash at the end of a line continues it.
fn commands(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut commands = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((mut number, line)) = lines.next() {
        let mut line = line.split('#').next().unwrap_or_default().to_owned();
        while let Some(begun) = line.strip_suffix('\\') {
            line = begun.to_owned();
            let Some((next, more)) = lines.next() else {
                break;
            };
            number = next;
            line.push_str(more.split('#').next().unwrap_or_default());
        }
        let words = words(&line);
        if !words.is_empty() {
            commands.push((number, words));
        }
    }
    commands
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '"' | '\'' => {
                let quoted = rest.get(1..).unwrap_or_default();
                quoted.split_once(first).unwrap_or((quoted, ""))
            }
            _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_the_shell_would() {
        let text =
            "# a comment\n\nlink add \"two words\" type rxe # more\ndev \\\nshow 'x y'\nlink\\";
        let read: Vec<(usize, String)> = commands(text)
            .into_iter()
            .map(|(number, words)| (number, words.join("|")))
            .collect();
        let expected = [
            (3, "link|add|two words|type|rxe"),
            (5, "dev|show|x y"),
            (6, "link"),
        ];
        assert_eq!(
            read,
            expected.map(|(number, words)| (number, words.to_owned()))
        );
    }
}
