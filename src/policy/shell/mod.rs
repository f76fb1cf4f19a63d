//! Shell lines, as agents write them: read into a plan that can be judged word by word and that the
//! guest executes by itself. No shell runs a readable line.
//!
//! Duty: [`parse`] a line into a [`Script`], or say at which line and column it stops being readable,
//! and why; print a script as canonical shell text. Not its duty: judging (a readable line is not
//! an allowed one), expanding globs and `~` (the guest does both, inside the sandbox), and running.
//!
//! Trust boundary: the line is hostile. The parser never panics, recurses no deeper than [`MAX_NESTING`], needs
//! time proportional to the length of the line, and takes at most [`MAX_BYTES`].
//!
//! # What is readable
//!
//! Meanings are those of bash 5 started as `bash -c LINE`. Of a line for `sh` the forms are not readable that
//! dash reads as something else: `$'…'`, braces, `&>`, `>&file`, `|&`, `<<<`, `[[`, `time` and `NAME=~` behind a command.
//!
//! - Commands joined by `;`, newline, `&&`, `||`, `|` and `|&`; `!` and `time` before a pipeline.
//! - `{ … }`, `( … )`, `if`, `while`, `until`, `for NAME in …`, `case`, up to [`MAX_NESTING`] within each other, with
//!   redirections; `[[ … ]]` without `=~`, `<`, `>` and operators that ask the shell.
//! - `break`, `continue`, `exit`, `set` with `-e`, `-u` and `-o pipefail`, `read [-r] NAME…` (also behind `IFS=`), `unset
//!   NAME…`, `command -v NAME…`.
//! - Prefix assignments (`FOO=1 npm test`), `export NAME=VALUE`, `export NAME`, and `NAME=VALUE` alone (see
//!   [`Note::AssignmentAlone`]).
//! - `$NAME`, `${NAME}` of variables that bash does not compute, `$?`, and `$(…)` whose inside is readable; in words, values,
//!   targets of redirections and here-documents. None of them is expanded here.
//! - Quotes `'…'` and `"…"`, `\x`, `$'…'` with simple escapes, line continuations, comments.
//! - `*`, `?` and simple `[…]` patterns in arguments; a leading `~` or `~/`, also behind `NAME=`.
//! - `{a,b}` and `{1..9}`: expanded here, up to [`MAX_BRACE_WORDS`] words a line, in words without expansions.
//! - `<` `>` `>>` `>|` `n>` `n>&m` `n>&-` `n<&m` `&>` `&>>` `>&file`, here-strings, here-documents.
//! - `$(cat <<'E' … E)`, in double quotes or bare: the literal text of the here-document.
//! - `command NAME …` without options: the same as `NAME …`.
//!
//! # What is not
//!
//! Everything else, named by [`Construct`]: other forms of parameter expansion, positional parameters, arithmetic,
//! backticks, process substitution, functions, `select`, `&`, `(( ))`, arrays, builtins that change the shell (`eval`,
//! `source`, `trap`, …), and forms on which shells disagree. A line that is a syntax error for bash is not readable either.
//! Carriage returns are ordinary characters to a shell; they stay, and a [`Note`] tells of them.
//!
//! # Why a parser of our own
//!
//! Because the plan is executed by us, a difference between this parser and bash cannot smuggle a
//! command past a policy; it can only surprise the author of the line. So the parser accepts what it
//! knows exactly and refuses the rest, and it is compared with a real bash in the tests. Libraries
//! read the whole language, which is more than is wanted and less than is needed here:
//! brush-parser 0.4 overflows its stack on 30 KB of `$(` and on other nesting, keeps a global cache,
//! tokenizes and parses a typical line in 6 µs before any word is looked at, and brings some seventy crates;
//! tree-sitter-bash is C code that repairs errors instead of reporting them. Recursion over commands is bounded by
//! [`MAX_NESTING`].

mod brace;
mod builtin;
mod compound;
mod cursor;
mod heredoc;
mod line;
mod part;
mod print;
mod redirect;
mod script;
mod stop;
mod units;
mod word;

pub(crate) use builtin::is_builtin;
pub use cursor::{Position, Span};
pub use line::{parse, parse_as};
pub use script::{
    AndOr, Class, ClassItem, Command, Compound, CompoundKind, Condition, Expansion, Join, Line,
    Note, Part, Pipeline, Redirect, RedirectTo, Script, SimpleCommand, Word,
};
pub use stop::{Construct, Unreadable};

/// Which shell a line was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// bash 5.
    Bash,
    /// `sh`, which can be dash, ash or bash: a form on which these disagree is not readable.
    Posix,
}

/// The longest line that is read, in bytes: the longest argument that Linux passes to a program.
pub const MAX_BYTES: usize = 128 << 10;

/// The most simple commands of one line. What is longer is a program, not a line.
pub const MAX_COMMANDS: usize = 1_000;

/// The most compound commands and `$(…)` within each other. The parser and all who walk a script recurse as deep.
pub const MAX_NESTING: usize = 8;

/// The most words that all brace expansions of one line may make.
pub const MAX_BRACE_WORDS: usize = 64;
