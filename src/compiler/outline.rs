//! What a text imports and exports, and what is wrong with it, as the compiler tells it.

use serde::{Deserialize, Serialize};

use crate::job::Confinement;

/// Longest text that is parsed.
pub const TEXT_BYTES: usize = 4 << 20;

/// What to parse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The text.
    pub text: String,
    /// The ending of its file's name, without the dot, which says in what it is written.
    pub ending: String,
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Said {
    /// What is in it.
    Outline(Box<Outline>),
    /// The process could not be confined, and read nothing.
    Unconfined(String),
    /// Something else went wrong.
    Broken(String),
}

/// What is in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Outline {
    /// What it imports.
    pub imports: Vec<Import>,
    /// What it exports.
    pub exports: Vec<Export>,
    /// What is wrong with it.
    pub errors: Vec<Fault>,
    /// Whether lists were cut.
    pub truncated: bool,
    /// What confined the parser.
    pub confinement: Confinement,
}

/// One import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Import {
    /// From where.
    pub module: String,
    /// What: a name, `default`, `*`; nothing for one that only runs.
    pub name: Option<String>,
    /// As what.
    pub local: Option<String>,
    /// Whether it is about types alone.
    pub type_only: bool,
    /// Whether it happens when it is reached: `import(…)`.
    pub dynamic: bool,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// One export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Export {
    /// Under which name; `*` for all of another module.
    pub name: String,
    /// From where, if it is another module's.
    pub from: Option<String>,
    /// Whether it is about types alone.
    pub type_only: bool,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Fault {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}
