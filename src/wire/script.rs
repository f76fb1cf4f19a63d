//! A line with variables, conditions and loops, which the guest executes: the plan that was judged, as data.
//!
//! Duty: plain data, like [`crate::Line`], for what that cannot express. Blocks of commands stand in one list and name
//! each other by index, so that no message is nested deeper than one shell within another makes it. What is expanded when the
//! line runs carries what the host assumed of it, and the guest starts nothing with a word of which that is not true.

use crate::bytes::Bytes;
use crate::line::{Class, Joiner};
use serde::{Deserialize, Serialize};

/// The index of a block in [`Script::blocks`]. A block names only later ones.
pub type Block = u32;

/// A whole line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Lists that run one after the other. The first block is the line itself.
    pub blocks: Vec<Vec<Chain>>,
    /// `-e`
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errexit: bool,
    /// `-o pipefail`
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pipefail: bool,
    /// `-u`
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nounset: bool,
    /// The folders in which a path must lie that was not known: the workspace, and the sandbox's scratch.
    pub roots: Vec<Bytes>,
}

/// `a && b || c`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The first pipeline.
    pub first: Pipe,
    /// Each further one with what joins it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<(Joiner, Pipe)>,
}

/// `a | b`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipe {
    /// `!`
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub negated: bool,
    /// `time`
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed: bool,
    /// At least one.
    pub commands: Vec<Node>,
}

/// One command with its redirections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// What it does.
    pub does: Does,
    /// Carried out from left to right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<Opening>,
}

/// What a command of a script does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Does {
    /// A program. Words are expanded before assignments.
    Run {
        /// Variables for it alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        set: Vec<Setting>,
        /// The first word names it.
        words: Vec<Expand>,
    },
    /// A line in a process of its own, which a program may start.
    Nested {
        /// Variables for it alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        set: Vec<Setting>,
        /// A program that starts its last words, without those. Empty: the guest starts the line.
        words: Vec<Expand>,
        /// The line.
        script: Box<Script>,
    },
    /// `A=b` alone.
    Set(Vec<Setting>),
    /// `export A=b C`
    Export(Vec<(Bytes, Option<Expand>)>),
    /// `unset A`
    Unset(Vec<Bytes>),
    /// `cd [DIR]`
    Cd(Option<Expand>),
    /// `read [-r] NAME…`
    Read {
        /// `-r`
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        raw: bool,
        /// `IFS=` before it: nothing is split or trimmed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        whole: bool,
        /// Each name, and whether it may be one of the environment.
        names: Vec<(Bytes, bool)>,
    },
    /// `set -e +u`
    Options(Vec<(Switch, bool)>),
    /// `exit [N]`
    Exit(Option<Expand>),
    /// `break [N]`
    Break(u32),
    /// `continue [N]`
    Continue(u32),
    /// `true` and `:`
    True(Vec<Expand>),
    /// `false`
    False(Vec<Expand>),
    /// `test …`
    Test(Vec<Expand>),
    /// `[[ … ]]`, in postfix order.
    Condition(Vec<Step>),
    /// `command -v NAME…`
    Which(Vec<Bytes>),
    /// `{ …; }`
    Group(Block),
    /// `( … )`
    Subshell(Block),
    /// `if`
    If {
        /// Conditions, and what they guard.
        branches: Vec<(Block, Block)>,
        /// `else`
        #[serde(default, skip_serializing_if = "Option::is_none")]
        otherwise: Option<Block>,
    },
    /// `while` and `until`
    While {
        /// `until`
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        until: bool,
        /// What decides.
        condition: Block,
        /// One round.
        body: Block,
    },
    /// `for`
    For {
        /// The variable, and whether it may be one of the environment.
        name: (Bytes, bool),
        /// What it becomes.
        words: Vec<Expand>,
        /// One round.
        body: Block,
    },
    /// `case`
    Case {
        /// What is compared.
        word: Expand,
        /// Patterns, and what runs for the first that matches.
        arms: Vec<(Vec<Expand>, Block)>,
    },
}

/// An option that `set` switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// `-e`
    Errexit,
    /// `-u`
    Nounset,
    /// `-o pipefail`
    Pipefail,
}

/// `NAME=VALUE`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The name.
    pub name: Bytes,
    /// The value, which is not split.
    pub value: Expand,
    /// Whether it was judged as one that changes the environment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exported: bool,
}

/// One step of `[[ … ]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Step {
    /// `-f WORD`
    Unary(Bytes, Expand),
    /// `WORD -eq WORD`
    Binary(Expand, Bytes, Expand),
    /// `WORD == PATTERN`
    Match(Expand, Expand),
    /// `!`
    Not,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// The descriptor that changes, 0 to 9.
    pub fd: u8,
    /// What it becomes.
    pub to: OpeningTo,
}

/// What a descriptor becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum OpeningTo {
    /// `<FILE`
    Read(Expand),
    /// `>FILE`
    Write(Expand),
    /// `>>FILE`
    Append(Expand),
    /// `>&N` and `<&N`
    Dup(u8),
    /// `>&-` and `<&-`
    Close,
    /// A text.
    Here(Expand),
}

/// A word, and what was assumed of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expand {
    /// Follow each other without a gap.
    pub pieces: Vec<Piece>,
    /// What must hold for what it becomes.
    #[serde(default, skip_serializing_if = "Assume::is_nothing")]
    pub assume: Assume,
}

/// One piece of a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Piece {
    /// Exactly this.
    Text(Bytes),
    /// `*`
    Star,
    /// `?`
    Any,
    /// `[…]`
    Class(Class),
    /// `$NAME`, split at blanks.
    Variable(Bytes),
    /// `"$NAME"`
    Quoted(Bytes),
    /// `${NAME-TEXT}`
    Default {
        /// The variable.
        name: Bytes,
        /// What stands for it if it has no value.
        text: Bytes,
        /// Also if its value is empty.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        empty: bool,
        /// It is not split.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        quoted: bool,
    },
    /// `$?`
    Status,
    /// `$(…)`, split at blanks.
    Output(Block),
    /// `"$(…)"`
    QuotedOutput(Block),
}

/// What must hold for what a word becomes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Assume {
    /// Nothing.
    #[default]
    Nothing,
    /// It is one of these lists of words, each spelled as a pattern: `\\` before a mark that is text.
    Exactly(Vec<Vec<Bytes>>),
    /// Words of which none begins with `-`; one, if they are not many; at least one.
    NoOption {
        /// Whether it can be several.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        many: bool,
        /// What else each must be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<PathKind>,
    },
}

impl Assume {
    /// Whether anything goes.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

/// What a word must be besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathKind {
    /// A path below one of [`Script::roots`].
    Inside,
    /// The same, without a colon.
    Plain,
}

/// Why a line ended: a word was not what had been assumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broken {
    /// What it became, cut.
    pub word: Bytes,
    /// What was wrong with it.
    pub why: Why,
}

/// What was wrong with a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It is not one of the values that were judged.
    Other,
    /// It begins with `-`.
    Option,
    /// It leads out of the workspace.
    Outside,
    /// It has a colon, behind which programs read something else.
    Colon,
    /// It is not one word.
    Count,
    /// It holds a pattern of a kind that is not read.
    Pattern,
    /// It names something that only a shell does.
    Builtin,
    /// A variable of the environment would change.
    Environment,
    /// It is not a number.
    Number,
    /// It holds what no argument can: a NUL.
    Nul,
}

/// Longest [`Broken::word`].
pub const BROKEN_MAX: usize = 256;
