//! Grammars: how a program reads its arguments, and what each of them makes it do.
//!
//! Duty: the types, and reading them from YAML ([`parse`]). A grammar is positive: what it does not
//! list is unknown. The build script compiles `catalog/*.yml` through this same module; a policy's
//! `programs:` go through it at run time. `catalog/README.md` is the author's guide to the format.

mod parse;
mod role;

pub use parse::grammar;
#[allow(
    unused_imports,
    reason = "the build script compiles this module too, and reads whole files only"
)]
pub use parse::inline;
pub use role::{Access, Does, Kind, Role, Shape};
use serde::{Deserialize, Serialize};

/// One program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The name it is called by.
    pub name: String,
    /// Further names of the same program with the same grammar.
    pub also: Vec<String>,
    /// What it is, in one line.
    pub about: String,
    /// Whose program was read.
    pub implementation: String,
    /// Which versions were read.
    pub versions: String,
    /// How much of it is known.
    pub depth: Depth,
    /// What configuration files and variables can make it do.
    pub ambient: Vec<String>,
    /// Files that it runs or is led by without being told, in the folder in force or one above it.
    pub recipes: Vec<String>,
    /// The arguments.
    pub command: Command,
}

/// How much of a program is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// Every option was read.
    Full,
    /// It is known which subcommands read, write, run code and reach the net.
    Subcommands,
    /// It runs what it is given: `code`, whatever the options say.
    Opaque,
}

/// The arguments of a program or subcommand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Command {
    /// How options are written.
    pub style: Style,
    /// The options.
    pub options: Vec<Opt>,
    /// A first (or any) word without dash is a bundle of these: `tar xzf`, `ps aux`.
    pub bundle: Option<Bundle>,
    /// Operands of the form `key=value`: `dd if=x`.
    pub keys: Vec<(String, Role)>,
    /// What operands are, in order.
    pub operands: Slots,
    /// What operands after `--` are, where that differs.
    pub after: Option<Slots>,
    /// Effects that it always has.
    pub does: Vec<Does>,
    /// What depends on the options given or the number of operands.
    pub when: Vec<When>,
    /// Subcommands.
    pub subcommands: Vec<Subcommand>,
    /// The subcommand that is meant where none is named: `git stash` is `git stash push`.
    pub default: Option<String>,
}

/// How options are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Style {
    /// The shape of an option.
    pub options: OptionStyle,
    /// Where options end.
    pub ends: OptionsEnd,
    /// Words that begin with a dash and are operands all the same: `chmod -x f`. Characters that may follow the dash.
    pub dash_operands: Option<String>,
}

/// The shape of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OptionStyle {
    /// `-abc`, `-ovalue`, `--long`, `--long=value`.
    #[default]
    Gnu,
    /// Whole words, values in the next word: `find -name x`, `test a = b`.
    Words,
    /// `-flag`, `-flag=value`, `--flag value`: one dash or two, no clusters (Go's flag package).
    Go,
    /// As `Gnu`, but `-x=value` is `value` and flags take `=true`, `=false` (Go's pflag: kubectl, docker, gh).
    Pflag,
    /// As `Gnu`, and a word `@FILE` anywhere stands for the words in that file, which are not known (binutils).
    GnuAt,
    /// No options: `echo`, `printf`.
    None,
}

/// Where options end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OptionsEnd {
    /// Options may follow operands, until `--`.
    #[default]
    Anywhere,
    /// At the first operand.
    FirstOperand,
}

/// One option: all its names, its values, what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opt {
    /// Every spelling, dashes included; the last one is the canonical name.
    pub names: Vec<String>,
    /// What its values are.
    pub value: OptValue,
    /// Effects of giving it at all.
    pub does: Vec<Does>,
    /// Values with which it says no more than what holds without it: then it has no effect.
    pub but: Vec<String>,
}

/// What follows an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OptValue {
    /// Nothing.
    Flag,
    /// A value only if attached: `-iSUFFIX`, `--color=WHEN`.
    Optional(Role),
    /// A value that must be attached with `=`.
    Attached(Role),
    /// One or more values.
    Required(Vec<Role>),
    /// One value, which may be missing where the option is the last word.
    Last(Role),
}

/// A bundle of letters without a dash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Which words can be one.
    pub which: BundleWord,
    /// The letters, where they differ from the short options.
    pub letters: Vec<Opt>,
}

/// Which words can be a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BundleWord {
    /// The first word only.
    First,
    /// Any operand.
    Any,
}

/// What operands are: a fixed head, a repeated middle, a fixed tail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Slots {
    /// `NAME=VALUE` words may come first: `env A=1 CMD`.
    pub assigns: bool,
    /// Operands in order, each at most once.
    pub head: Vec<Role>,
    /// Any number of these after the head.
    pub rest: Option<Role>,
    /// The last operands: `cp A B DEST`.
    pub tail: Vec<Role>,
}

/// What changes under a condition. All that hold apply, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct When {
    /// Holds if one of these options is given (empty: no condition). `NAME=`: given with a value.
    pub given: Vec<String>,
    /// … and one of these (empty: no condition).
    pub and: Vec<String>,
    /// Holds if none of these is given.
    pub without: Vec<String>,
    /// Holds for this many operands.
    pub count: Option<(u32, u32)>,
    /// Holds for this many operands after `--`.
    pub count_after: Option<(u32, u32)>,
    /// Holds if the first operand is one of these words (empty: no condition).
    pub first: Vec<String>,
    /// Holds unless the first operand is one of these words.
    pub not_first: Vec<String>,
    /// Operands are then these.
    pub operands: Option<Slots>,
    /// Values of these options are then these.
    pub options: Vec<(String, Role)>,
    /// Further effects.
    pub does: Vec<Does>,
    /// Effects that it then does not have.
    pub drops: Vec<crate::effect::Class>,
}

/// A subcommand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subcommand {
    /// Its names; the first is canonical.
    pub names: Vec<String>,
    /// Its arguments.
    pub command: Command,
}

impl Opt {
    /// The name used in canonical readings.
    #[must_use]
    pub fn canonical(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }
}
