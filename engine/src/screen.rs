//! Where the texts of a run go.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::options::Messages;

/// A stream can't be written to.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the results ({0}); is the reader of our output gone?")]
pub struct ScreenError(#[from] io::Error);

/// The two output streams of one end.
pub struct Screen {
    out: Box<dyn Write + Send>,
    err: ErrorStream,
}

/// The standard error of one end, for those who write while a test runs.
#[derive(Clone)]
pub struct ErrorStream(Arc<Mutex<Box<dyn Write + Send>>>);

impl ErrorStream {
    fn new(stream: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Shows nothing.
    #[must_use]
    pub fn sink() -> Self {
        Self::new(Box::new(io::sink()))
    }

    /// Shows a text at once, line end included in `text`.
    ///
    /// # Errors
    /// What the stream says.
    pub fn write(&self, text: &str) -> Result<(), ScreenError> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(text.as_bytes())?;
        Ok(stream.flush()?)
    }
}

impl std::fmt::Debug for ErrorStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ErrorStream")
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Screen")
    }
}

impl Screen {
    /// Over any two writers.
    pub fn new(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Self {
        Self {
            out,
            err: ErrorStream::new(err),
        }
    }

    /// The standard output and error of the process.
    #[must_use]
    pub fn of_process() -> Self {
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()))
    }

    /// Shows nothing: the serving end of `--loopback`.
    #[must_use]
    pub fn dark() -> Self {
        Self::new(Box::new(io::sink()), Box::new(io::sink()))
    }

    /// Shows a text on standard output at once, line end included in `text`.
    ///
    /// # Errors
    /// What the stream says, for example that its reader is gone.
    pub fn out(&mut self, text: &str) -> Result<(), ScreenError> {
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Shows a text on standard error at once, line end included in `text`.
    ///
    /// # Errors
    /// What the stream says.
    pub fn err(&mut self, text: &str) -> Result<(), ScreenError> {
        self.err.write(text)
    }

    /// Standard error, for those who write while a test runs.
    #[must_use]
    pub fn error_stream(&self) -> ErrorStream {
        self.err.clone()
    }

    /// Shows messages in their order.
    ///
    /// # Errors
    /// What the streams say.
    pub fn messages(&mut self, messages: &Messages) -> Result<(), ScreenError> {
        let mut err = self.err.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(messages.print(&mut *self.out, &mut **err)?)
    }
}
