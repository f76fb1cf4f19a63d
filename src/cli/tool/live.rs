//! What a tool says while it runs, on standard error as it comes.
//!
//! All of it is foreign text: control characters are shown as escapes, and what looks like a secret is not
//! shown.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use anstream::{AutoStream, ColorChoice};

use crate::audit::Redactor;
use crate::broker::{Brokered, Events, Level, Log, Progress};
use crate::cli::style;
use crate::cli::visible::visible;

/// Shows log lines and progress.
pub(super) struct Live {
    err: Mutex<AutoStream<io::Stderr>>,
    tool: String,
    redactor: Redactor,
}

impl Live {
    /// For one call of a tool.
    pub fn new(tool: &str, color: ColorChoice, redactor: Redactor) -> Self {
        Self {
            err: Mutex::new(AutoStream::new(io::stderr(), color)),
            tool: tool.to_owned(),
            redactor,
        }
    }

    fn line(&self, word: &str, style: anstyle::Style, text: &str) {
        let text = self.redactor.text(text);
        let mut err = self.err.lock().unwrap_or_else(PoisonError::into_inner);
        // That nobody listens is no error.
        let _ = writeln!(err, "{} {style}{word}{style:#} {}", visible(&self.tool), visible(&text));
    }
}

impl Events for Live {
    fn log(&self, log: Log) {
        let (word, style) = match log.level {
            Level::Debug => ("debug", style::NOTE),
            Level::Info => ("info", style::NOTE),
            Level::Warn => ("warn", style::WARN),
            Level::Error => ("error", style::BAD),
        };
        let fields = self.redactor.json(&serde_json::Value::Object(log.fields));
        let mut text = log.message;
        for (name, value) in fields.as_object().into_iter().flatten() {
            text.push_str(&format!(" {name}={value}"));
        }
        self.line(word, style, &text);
    }

    fn progress(&self, progress: Progress) {
        let percent = (progress.fraction.clamp(0.0, 1.0) * 100.0).round();
        let text = progress.text.unwrap_or_default();
        self.line(&format!("{percent:>3}%"), style::NOTE, &text);
    }

    fn request(&self, _: &Brokered) {}
}
