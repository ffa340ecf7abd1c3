//! The habits of GNU `getopt_long`, on which scripts depend: arguments in any
//! order, abbreviated long options, `--size=4`, `--size 4`, `-s4`, `-ab`, `--`.

use super::table::{self, OptionRow};

/// One thing found on the command line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    /// An option, with its argument when it takes one.
    Option(&'static OptionRow, &'a str),
    /// A word that is no option.
    Word(&'a str),
}

/// A word that is no valid option; the text is getopt's, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsageError(pub(super) String);

/// Walks over the arguments.
#[derive(Debug)]
pub(super) struct Getopt<'a> {
    program: &'a str,
    args: &'a [String],
    next: usize,
    /// Rest of a cluster such as `-ab`.
    cluster: &'a str,
    only_words: bool,
}

impl<'a> Getopt<'a> {
    /// `program` is the name messages begin with, `args` what follows it.
    pub(super) fn new(program: &'a str, args: &'a [String]) -> Getopt<'a> {
        Getopt {
            program,
            args,
            next: 0,
            cluster: "",
            only_words: false,
        }
    }

    fn take(&mut self) -> Option<&'a str> {
        let word = self.args.get(self.next)?;
        self.next += 1;
        Some(word)
    }

    fn error<T>(&self, text: &str) -> Option<Result<T, UsageError>> {
        Some(Err(UsageError(format!("{}: {text}\n", self.program))))
    }

    fn short(&mut self) -> Option<Result<Item<'a>, UsageError>> {
        let letter = self.cluster.chars().next()?;
        self.cluster = &self.cluster[letter.len_utf8()..];
        let Some(row) = table::by_letter(letter) else {
            return self.error(&format!("invalid option -- '{letter}'"));
        };
        if !row.takes_value() {
            return Some(Ok(Item::Option(row, "")));
        }
        let attached = std::mem::take(&mut self.cluster);
        if !attached.is_empty() {
            return Some(Ok(Item::Option(row, attached)));
        }
        match self.take() {
            Some(value) => Some(Ok(Item::Option(row, value))),
            None => self.error(&format!("option requires an argument -- '{letter}'")),
        }
    }

    fn long(&mut self, word: &'a str) -> Option<Result<Item<'a>, UsageError>> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let row = match table::by_long_name(name) {
            table::Found::One(row) => row,
            table::Found::None => return self.error(&format!("unrecognized option '--{word}'")),
            table::Found::Many(names) => {
                let names: String = names.iter().map(|name| format!(" '--{name}'")).collect();
                return self.error(&format!(
                    "option '--{word}' is ambiguous; possibilities:{names}"
                ));
            }
        };
        let long = row.long;
        match (row.takes_value(), value) {
            (false, None) => Some(Ok(Item::Option(row, ""))),
            (false, Some(_)) => self.error(&format!("option '--{long}' doesn't allow an argument")),
            (true, Some(value)) => Some(Ok(Item::Option(row, value))),
            (true, None) => match self.take() {
                Some(value) => Some(Ok(Item::Option(row, value))),
                None => self.error(&format!("option '--{long}' requires an argument")),
            },
        }
    }
}

impl<'a> Iterator for Getopt<'a> {
    type Item = Result<Item<'a>, UsageError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.cluster.is_empty() {
            return self.short();
        }
        let word = self.take()?;
        if self.only_words {
            return Some(Ok(Item::Word(word)));
        }
        if word == "--" {
            self.only_words = true;
            return self.next();
        }
        if let Some(long) = word.strip_prefix("--") {
            return self.long(long);
        }
        match word.strip_prefix('-') {
            Some(cluster) if !cluster.is_empty() => {
                self.cluster = cluster;
                self.short()
            }
            _ => Some(Ok(Item::Word(word))),
        }
    }
}
