//! A shell line that was read by the host and is executed by the guest; no shell runs.
//!
//! Duty: plain data. The policy crate reads text into a line of its own; what was decided is what
//! these types carry, so nothing here can express a substitution, a function or a loop.

use crate::bytes::Bytes;
use crate::script::Script;
use serde::{Deserialize, Serialize};

/// `a && b; c | d`: and-or lists, run one after the other. The status is that of the last command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The lists.
    pub lists: Vec<AndOr>,
    /// `sh -e`: the line ends when the last pipeline of a list has run and failed, unless `!` is before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errexit: bool,
    /// `bash -o pipefail`: the status of a pipeline is that of the last command in it that failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pipefail: bool,
}

/// `a && b || c`: pipelines that depend on the status so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AndOr {
    /// The first pipeline.
    pub first: Pipeline,
    /// Each further one with what joins it, from left to right with equal binding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<(Joiner, Pipeline)>,
}

/// What stands between two pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Joiner {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// `a | b`: commands that run at once, each reading what the one before it writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Whether `!` turns the status round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub negated: bool,
    /// The commands; the status is that of the last, but see [`Line::pipefail`].
    pub commands: Vec<Simple>,
}

/// One command with its redirections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simple {
    /// Variables for this command alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assignments: Vec<Assignment>,
    /// What to run.
    pub command: Command,
    /// Redirections, carried out from left to right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<Redirect>,
}

/// A program or one of the few things the guest does itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Command {
    /// A program with arguments.
    Run {
        /// The words; the first names the program.
        words: Vec<Word>,
        /// The file to execute, if the host bound the name to one; else PATH is searched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<Bytes>,
    },
    /// Something without a process.
    Builtin(Builtin),
    /// `timeout 5 sh -c LINE`: a line in a process of its own, which another program may start.
    Line {
        /// A program that starts its last words, without those. Empty: the guest starts the line.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        words: Vec<Word>,
        /// The line, which the guest executes in place of a shell.
        line: Line,
    },
    /// A line with variables, conditions or loops, in a process of its own.
    Script(Box<Script>),
}

/// What the guest does itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Builtin {
    /// `export A=b …`, for the rest of the line.
    Export(Vec<Assignment>),
    /// `A=b` alone: the same, for variables that the environment has already. No program could see others.
    Assign(Vec<Assignment>),
    /// `true` and `:`.
    True,
    /// `false`.
    False,
    /// `test …` and `[ … ]`, without the name and the closing bracket.
    Test(Vec<Word>),
}

/// `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The name.
    pub name: Bytes,
    /// The value.
    pub value: Bytes,
}

/// A word: plain text, or a pattern that is expanded to the names that exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Word {
    /// Exactly this.
    Text(Bytes),
    /// Every existing path that matches, sorted; the pattern's own text if there is none.
    Glob(Vec<Part>),
}

/// One piece of a pattern. None but a literal matches `/`, or a dot that begins a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Part {
    /// Exactly this.
    Text(Bytes),
    /// `*`: any bytes.
    Star,
    /// `?`: one character.
    Any,
    /// `[…]`: one character of a class.
    Class(Class),
}

/// `[a-z_]` or `[!a-z_]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Whether it begins with `!`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub negated: bool,
    /// Ranges, both ends within; one character is a range of itself.
    pub ranges: Vec<(char, char)>,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// The descriptor that changes, 0 to 9.
    pub fd: u8,
    /// What it becomes.
    pub to: RedirectTo,
}

/// What a descriptor becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum RedirectTo {
    /// `<FILE`
    Read(Bytes),
    /// `>FILE`: made if missing, emptied if not.
    Write(Bytes),
    /// `>>FILE`
    Append(Bytes),
    /// `<>FILE`
    Both(Bytes),
    /// `>&N` and `<&N`
    Dup(u8),
    /// `>&-` and `<&-`
    Close,
    /// The text of a heredoc or here-string.
    Here(Bytes),
}
