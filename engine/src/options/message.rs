//! What the option layer has to say, and how it ends.
//!
//! Nothing in this layer prints. Texts are collected in the order stock
//! perftest prints them, so that tests see them and the commands write them.

use std::io::{self, Write};

use super::params::Params;

/// The line of 87 dashes that stock perftest prints before most refusals,
/// newline included.
pub const LINE: &str =
    "---------------------------------------------------------------------------------------\n";

/// Every way out of the option layer exits with this code, `-h` and `-V`
/// included: stock perftest does so, and scripts may look.
pub const EXIT_FAILURE: i32 = 1;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A text to print, newlines included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it goes.
    pub stream: Stream,
    /// The exact bytes.
    pub text: String,
}

/// Messages in the order they are to be printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages(Vec<Message>);

impl Messages {
    /// No messages yet.
    pub fn new() -> Messages {
        Messages::default()
    }

    /// Adds a text for standard output.
    pub fn out(&mut self, text: impl Into<String>) {
        self.push(Stream::Stdout, text.into());
    }

    /// Adds a text for standard error.
    pub fn err(&mut self, text: impl Into<String>) {
        self.push(Stream::Stderr, text.into());
    }

    fn push(&mut self, stream: Stream, text: String) {
        self.0.push(Message { stream, text });
    }

    /// True when there is nothing to print.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Everything that goes to `stream`, joined.
    pub fn text(&self, stream: Stream) -> String {
        self.0
            .iter()
            .filter(|message| message.stream == stream)
            .map(|message| message.text.as_str())
            .collect()
    }

    /// Writes the messages to the two streams in order, flushing at every
    /// change of stream so that a terminal shows them in that order.
    ///
    /// # Errors
    /// Whatever the streams report, for example a closed pipe.
    pub fn print(&self, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
        for message in &self.0 {
            let stream: &mut dyn Write = match message.stream {
                Stream::Stdout => out,
                Stream::Stderr => err,
            };
            stream.write_all(message.text.as_bytes())?;
            stream.flush()?;
        }
        Ok(())
    }
}

/// Why a command line does not lead to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// `-h`, and the help text was printed.
    Help,
    /// `-V`, and the version was printed.
    Version,
    /// Stock perftest refuses this too, with the same text.
    Refused,
    /// Stock perftest takes the value for something else (a byte count cut at
    /// the first letter, a number wrapped to eight bits); we refuse it.
    Stricter,
    /// Stock perftest can do this and we cannot.
    NotSupported,
}

/// What to do after printing the messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Run with these parameters.
    Run(Box<Params>),
    /// End the process.
    Exit {
        /// Process exit code.
        code: i32,
        /// Why.
        reason: ExitReason,
    },
}

/// A command line, read to the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// To print, in order, before acting on `outcome`.
    pub messages: Messages,
    /// What to do.
    pub outcome: Outcome,
}

impl Resolved {
    /// The parameters, when there is something to run.
    pub fn params(&self) -> Option<&Params> {
        match &self.outcome {
            Outcome::Run(params) => Some(params),
            Outcome::Exit { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn messages_keep_their_order_and_streams() {
        let mut messages = Messages::new();
        assert!(messages.is_empty());
        messages.out("a\n");
        messages.err("b\n");
        messages.out("c\n");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        messages.print(&mut out, &mut err).unwrap();
        assert_eq!(
            (out.as_slice(), err.as_slice()),
            (&b"a\nc\n"[..], &b"b\n"[..])
        );
        assert_eq!(messages.text(Stream::Stdout), "a\nc\n");
        assert_eq!(messages.text(Stream::Stderr), "b\n");
    }

    #[test]
    fn the_line_has_87_dashes() {
        assert_eq!(LINE, "-".repeat(87) + "\n");
    }
}
