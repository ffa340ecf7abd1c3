//! What a command prints, and its exit code.

use std::fmt::{Arguments, Write};

/// What a command has printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit code.
    pub code: u8,
}

impl Report {
    pub(super) fn out(&mut self, line: Arguments<'_>) {
        append(&mut self.stdout, line);
    }

    pub(super) fn err(&mut self, line: Arguments<'_>) {
        append(&mut self.stderr, line);
    }

    /// The report with another exit code.
    pub(super) fn exit(mut self, code: u8) -> Self {
        self.code = code;
        self
    }
}

/// Appends a line.
pub(super) fn append(text: &mut String, line: Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = writeln!(text, "{line}");
}
