//! The one place that writes to standard output and standard error.
//!
//! Data goes to stdout, talk to stderr. Colour follows `--color`, `NO_COLOR`, `CLICOLOR` and what
//! the stream is. A reader who closes the pipe ends the output, not the run: later writes go
//! nowhere, and the exit code stays what it would have been. Any other failure to write is an
//! error. Callers pass foreign text through [`visible`](super::visible) themselves, because only
//! they know which part of a line is foreign.

use std::fmt;
use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

use crate::call::Detail;
use crate::cli::Error;
use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::text::harmless_json;

use super::findings::Shown;
use super::style;
use super::visible::{visible, visible_block, visible_inside};

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object on stdout.
    Json,
}

/// runner's output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the output: {0}")]
pub struct OutputError(#[source] io::Error);

/// Writes everything that `runner` says.
#[derive(Debug)]
pub struct Printer {
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
    out_open: Pipe,
    format: Format,
    detail: Detail,
    color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pipe {
    Open,
    Closed,
}

impl Printer {
    /// A printer for this process.
    #[must_use]
    pub fn new(format: Format, detail: Detail, color: ColorChoice) -> Self {
        Self {
            out: AutoStream::new(io::stdout(), color),
            err: AutoStream::new(io::stderr(), color),
            out_open: Pipe::Open,
            format,
            detail,
            color,
        }
    }

    /// How results are written.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// How much JSON tells of a call.
    #[must_use]
    pub fn detail(&self) -> Detail {
        self.detail
    }

    /// The choice of colour, for what is written while something runs.
    #[must_use]
    pub fn color(&self) -> ColorChoice {
        self.color
    }

    /// How wide the terminal is that data goes to; `None` if it goes elsewhere, where nothing is cut.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_col > 0).then_some(usize::from(size.ws_col))
    }

    /// Whether the reader of standard output has closed it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.out_open == Pipe::Closed
    }

    /// Writes text to stdout. It may contain this program's own style sequences.
    ///
    /// # Errors
    /// A write failed for another reason than a closed reader.
    pub fn data(&mut self, text: impl fmt::Display) -> Result<(), OutputError> {
        if self.out_open == Pipe::Open {
            let written = write!(self.out, "{text}").and_then(|()| self.out.flush());
            self.out_open = settle(written)?;
        }
        Ok(())
    }

    /// Writes one JSON object and a line end to stdout.
    ///
    /// # Errors
    /// As for [`data`](Self::data).
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), OutputError> {
        let mut text = serde_json::to_string(value)?;
        text = harmless_json(text);
        text.push('\n');
        if self.out_open == Pipe::Open {
            // Around the style stripper: a JSON string must arrive byte for byte.
            let mut raw = io::stdout().lock();
            let written = raw.write_all(text.as_bytes()).and_then(|()| raw.flush());
            drop(raw);
            self.out_open = settle(written)?;
        }
        Ok(())
    }

    /// Writes a line to stderr. A closed stderr is not an error.
    pub fn talk(&mut self, text: impl fmt::Display) {
        let _ = writeln!(self.err, "{text}");
    }

    /// Reports an error: text on stderr, or the JSON object on stdout.
    ///
    /// # Errors
    /// As for [`data`](Self::data).
    pub fn error(&mut self, error: &Error) -> Result<(), OutputError> {
        match self.format {
            Format::Json => self.json(&error.told()),
            Format::Text => {
                let failure = error.failure();
                let bad = style::BAD;
                for finding in failure.findings() {
                    self.talk(Shown(finding));
                }
                let text = failure.to_string();
                let text = match error {
                    // The parser's own lines, and words of the caller's on one line each.
                    Error::Usage(_) => visible_block(&text).into_owned(),
                    _ => visible_inside(&text),
                };
                self.talk(format_args!("{bad}error:{bad:#} {text}"));
                if let Some(hint) = failure.hint() {
                    self.hint(&hint);
                }
                Ok(())
            }
        }
    }

    /// The next step, on a line of its own. Further lines of it, as commands to type, are indented below.
    pub fn hint(&mut self, hint: &str) {
        let note = style::NOTE;
        let mut lines = hint.lines();
        let first = lines.next().unwrap_or_default();
        self.talk(format_args!("  {note}hint:{note:#} {}", visible(first)));
        for line in lines {
            self.talk(format_args!("        {}", visible(line)));
        }
    }
}

impl From<serde_json::Error> for OutputError {
    fn from(error: serde_json::Error) -> Self {
        Self(error.into())
    }
}

/// Distinguishes a reader who closed the stream from a write error.
fn settle(written: io::Result<()>) -> Result<Pipe, OutputError> {
    match written {
        Ok(()) => Ok(Pipe::Open),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Pipe::Closed),
        Err(error) => Err(OutputError(error)),
    }
}

impl Failure for OutputError {
    fn code(&self) -> Code {
        Code::OutputFailed
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Usage
    }

    fn hint(&self) -> Option<String> {
        Some("check the disk or device that standard output goes to".to_owned())
    }
}
