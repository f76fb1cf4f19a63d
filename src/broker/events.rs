//! What a tool tells while it runs, live.

use serde_json::{Map, Value};

use super::Brokered;

/// How important a log line is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, serde::Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For whoever writes the tool.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
}

/// A log line of the tool. Its text is the tool's: show it through `visible`, redact it.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// How important.
    pub level: Level,
    /// The text.
    pub message: String,
    /// Further values by name.
    pub fields: Map<String, Value>,
}

/// How far the tool has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// From 0 to 1.
    pub fraction: f64,
    /// What it is doing. The tool's text, like that of a log line.
    pub text: Option<String>,
}

/// Who listens. Called from the task that serves: it must not block for long.
pub trait Events: Send + Sync {
    /// A log line.
    fn log(&self, log: Log);
    /// Progress.
    fn progress(&self, progress: Progress);
    /// A request was answered.
    fn request(&self, request: &Brokered);
}

/// Nobody listens.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Events for Silent {
    fn log(&self, _: Log) {}
    fn progress(&self, _: Progress) {}
    fn request(&self, _: &Brokered) {}
}
