//! What the doctor found, for people and for scripts.

use serde::Serialize;

use crate::codes::Code;
use crate::engine::{EngineError, EngineName, Part};
use crate::error::Failure as _;

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether all that is promised was seen to hold, and nothing on the machine needs a change first.
    pub passed: bool,
    /// The version of this program.
    pub runner: &'static str,
    /// The running kernel.
    pub kernel: String,
    /// Each engine, in the order in which `auto` tries them.
    pub engines: Vec<Examined>,
    /// What is about this machine and user.
    pub machine: Vec<Row>,
}

/// One engine.
#[derive(Debug, Serialize)]
pub struct Examined {
    /// Its name.
    pub engine: EngineName,
    /// Its version, if it answers.
    pub version: Option<String>,
    /// Programs that it is made of.
    pub parts: Vec<Part>,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
    /// What was tried on it.
    pub rows: Vec<Row>,
}

/// Why an engine cannot be used.
#[derive(Debug, Serialize)]
pub struct Unusable {
    /// The stable code.
    pub code: Code,
    /// In a sentence.
    pub message: String,
    /// The next step.
    pub change: Option<String>,
}

impl From<&EngineError> for Unusable {
    fn from(error: &EngineError) -> Self {
        Self { code: error.code(), message: error.to_string(), change: error.hint() }
    }
}

/// One protection, or one fact about the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name; that of the table of protections, for a protection.
    pub name: String,
    /// What enforces it, or what was looked at.
    pub mechanism: String,
    /// What was tried.
    pub tried: Vec<String>,
    /// What came of it.
    pub result: Outcome,
    /// More about the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// What came of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every attempt failed, and the control beside it succeeded.
    Holds,
    /// The same, of a protection that is promised in part.
    Partly,
    /// It is not promised here.
    Absent,
    /// It was not tried, for the reason that is told.
    NotTried,
    /// Worth knowing; nothing has to be changed.
    Note,
    /// A trial did not come to its end, or its control failed.
    Unproved,
    /// An attempt succeeded, or something has to be changed.
    Fails,
}

impl Outcome {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Partly => "partly",
            Self::Absent => "absent",
            Self::NotTried => "not tried",
            Self::Note => "note",
            Self::Unproved => "unproved",
            Self::Fails => "FAILS",
        }
    }

    /// Whether it is as it should be.
    #[must_use]
    pub const fn is_good(self) -> bool {
        !matches!(self, Self::Unproved | Self::Fails)
    }
}

impl Examined {
    /// Whether the engine can be used, and all that it promises holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.unusable.is_none() && self.rows.iter().all(|row| row.result.is_good())
    }
}

impl Report {
    /// Whether a usable engine holds what it promises, every other one too, and the machine is as it should be.
    #[must_use]
    pub fn judge(engines: &[Examined], machine: &[Row]) -> bool {
        let mut usable = engines.iter().filter(|it| it.unusable.is_none()).peekable();
        usable.peek().is_some()
            && usable.all(Examined::passed)
            && machine.iter().all(|row| row.result.is_good())
    }

    /// How many rows are not as they should be.
    #[must_use]
    pub fn wrong(&self) -> usize {
        let rows = self.engines.iter().flat_map(|it| &it.rows).chain(&self.machine);
        rows.filter(|row| !row.result.is_good()).count()
    }
}
