//! What a tool says while it runs, on standard error as it comes.
//!
//! All of it is foreign text: control characters are shown as escapes, and what looks like a secret is not
//! shown. A reader that does not read loses lines, which are counted; the call goes on.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anstream::{AutoStream, ColorChoice};

use super::shared_stderr::SharedStderr;
use crate::audit::Redactor;
use crate::broker::{Brokered, Events, Level, Log, Progress};
use crate::cli::style;
use crate::cli::visible::visible;

/// Shows log lines and progress.
pub(super) struct Live {
    desk: Arc<SharedStderr>,
    color: ColorChoice,
    tool: String,
    redactor: Redactor,
    lost: AtomicU64,
}

impl Live {
    /// For one call of a tool.
    pub fn new(
        tool: &str,
        color: ColorChoice,
        redactor: Redactor,
        desk: Arc<SharedStderr>,
    ) -> Self {
        let color = match color {
            ColorChoice::Auto if !std::io::stderr().is_terminal() => ColorChoice::Never,
            ColorChoice::Auto => AutoStream::choice(&std::io::stderr()),
            other => other,
        };
        Self { desk, color, tool: tool.to_owned(), redactor, lost: AtomicU64::new(0) }
    }

    fn line(&self, word: &str, style: anstyle::Style, text: &str) {
        let text = self.redactor.text(text);
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let mut piece = AutoStream::new(Vec::new(), self.color);
        let tool = visible(&self.tool);
        // Writing to memory cannot fail.
        if lost > 0 {
            let _ = writeln!(piece, "{tool} {lost} lines were lost: standard error was not read");
        }
        let _ = writeln!(piece, "{tool} {style}{word}{style:#} {}", visible(&text));
        if !self.desk.write(piece.into_inner()) {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
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
