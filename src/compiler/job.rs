//! What the two processes say to each other: one job, one answer, both JSON.
//!
//! The answer comes from a process that has read foreign bytes: unknown fields are errors, sizes are capped before it is
//! read, and what it says about files is checked.

use std::path::Path;

use runner_finding::{At, Finding};
use serde::{Deserialize, Serialize};

use crate::folder::{Follow, Seen};

/// What to compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The name of the tool's file in its folder.
    pub file: String,
    /// How that file is called in messages and stacks.
    pub shown: String,
    /// The code.
    pub text: String,
    /// What it is written in.
    pub language: Language,
    /// Where it stands in the file, if it is not all of it.
    pub place: Option<Place>,
}

/// Where code stands in a YAML file: each line of code is a line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The line of the first line of code, from 1.
    pub line: u32,
    /// How many characters of the file stand before each line of code.
    pub indent: u32,
}

impl Place {
    /// Line and column, both from 0, in the file.
    #[must_use]
    pub fn in_file(self, line: u32, column: u32) -> (u32, u32) {
        let first = self.line.saturating_sub(1);
        (line.saturating_add(first), column.saturating_add(self.indent))
    }
}

/// What source is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// TypeScript.
    TypeScript,
    /// JavaScript.
    JavaScript,
}

impl Language {
    /// What a file of this name is written in.
    #[must_use]
    pub fn of_file(name: &str) -> Option<Self> {
        match Path::new(name).extension()?.to_str()? {
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            "js" | "mjs" | "cjs" => Some(Self::JavaScript),
            _ => None,
        }
    }
}

/// What became of a job.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// It is one module now.
    Done(Done),
    /// The source has errors.
    Findings(Vec<Told>),
    /// The process could not be confined, and read nothing.
    Unconfined(String),
    /// The folder is not the one that was meant.
    Folder(String),
    /// Something else went wrong.
    Broken(String),
}

/// A compiled module, as the child tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// The module with its source map.
    pub code: String,
    /// What it exports.
    pub exports: Vec<String>,
    /// Every path that was looked at, and what was there.
    pub observed: Vec<Observation>,
    /// Whether looking again shows all that mattered.
    pub repeatable: bool,
    /// Microseconds from the job to the module.
    pub micros: u64,
    /// What confined the compiler.
    pub confinement: Confinement,
}

/// One look at a path below the tool's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The path, relative to the folder.
    pub path: String,
    /// How it was looked at.
    pub follow: Follow,
    /// What was there.
    pub seen: Seen,
}

/// What the kernel enforced on the compiler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// The version of Landlock in force.
    pub landlock: u32,
    /// What this kernel cannot deny to it, in words; empty on a recent one.
    pub missing: Vec<String>,
}

/// A finding on its way to the other process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// Index of its code in [`CODES`].
    pub code: usize,
    /// The file, as it is shown.
    pub file: String,
    /// Where.
    pub at: At,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// The line.
    pub excerpt: String,
}

/// The codes of findings.
pub const CODES: [&str; 7] = [
    "compile_error",
    "syntax_error",
    "import_not_found",
    "import_not_allowed",
    "export_not_found",
    "json_error",
    "file_unusable",
];

impl From<Told> for Finding {
    fn from(told: Told) -> Self {
        Self {
            code: CODES.get(told.code).copied().unwrap_or(CODES[0]),
            file: told.file,
            at: told.at,
            message: told.message,
            help: told.help,
            excerpt: told.excerpt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_its_place_in_the_file() {
        assert_eq!(Place { line: 10, indent: 2 }.in_file(0, 0), (9, 2));
    }
}
