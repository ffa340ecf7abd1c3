//! Why a command line is refused, and how that is shown.

use super::message::{ExitReason, LINE, Messages, Stream};

/// Last line of stock perftest after most parse errors.
pub(super) const PARSER_LINE: &str = " Parser function exited with Error\n";

/// A refusal and the way stock perftest shows such a one.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    line_first: bool,
    stream: Stream,
    text: String,
    parser_line: bool,
    reason: ExitReason,
}

impl Refusal {
    /// An option or its value is refused while parsing.
    pub(super) fn option(text: impl Into<String>) -> Refusal {
        Refusal {
            line_first: false,
            stream: Stream::Stderr,
            text: text.into(),
            parser_line: true,
            reason: ExitReason::Refused,
        }
    }

    /// Options do not go together, or the process ends at once.
    pub(super) fn rule(text: impl Into<String>) -> Refusal {
        Refusal {
            parser_line: false,
            ..Refusal::option(text)
        }
    }

    /// We refuse what stock perftest takes for something else.
    pub(super) fn stricter(text: impl Into<String>) -> Refusal {
        Refusal {
            reason: ExitReason::Stricter,
            ..Refusal::option(text)
        }
    }

    /// Stock perftest has it, we do not.
    pub(super) fn not_supported(text: impl Into<String>) -> Refusal {
        Refusal {
            reason: ExitReason::NotSupported,
            ..Refusal::rule(text)
        }
    }

    /// With the line of dashes on standard output before it.
    pub(super) fn after_line(self) -> Refusal {
        Refusal {
            line_first: true,
            ..self
        }
    }

    /// On standard output.
    pub(super) fn on_stdout(self) -> Refusal {
        Refusal {
            stream: Stream::Stdout,
            ..self
        }
    }

    /// Adds the texts to `messages` and says what kind of refusal it is.
    pub(super) fn show(self, messages: &mut Messages) -> ExitReason {
        if self.line_first {
            messages.out(LINE);
        }
        match self.stream {
            Stream::Stdout => messages.out(self.text),
            Stream::Stderr => messages.err(self.text),
        }
        if self.parser_line {
            messages.err(PARSER_LINE);
        }
        self.reason
    }
}
