//! Why a line is not readable: the construct, where it begins, and what to write instead.

use serde::{Deserialize, Serialize};

use super::Position;

/// A line that only a shell could execute.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[error("{at}: {what}")]
pub struct Unreadable {
    /// Where the construct begins; for tildes, patterns and braces, where their word begins.
    pub at: Position,
    /// Which kind it is.
    pub construct: Construct,
    /// The construct in words, with the text that shows it.
    pub what: String,
    /// What to write instead, where there is such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Construct {
    /// The construct at a place that was found to be unreadable after the line was parsed.
    pub(crate) fn at(self, at: Position) -> Unreadable {
        Unreadable {
            at,
            construct: self,
            what: self.what().to_owned(),
            hint: self.hint().map(str::to_owned),
        }
    }
}

/// What stopped the reading: a byte of the line, a kind, and the text that shows it.
#[derive(Debug)]
pub(super) struct Stop {
    pub at: usize,
    pub construct: Construct,
    pub shown: String,
}

impl Stop {
    pub fn new(at: usize, construct: Construct, shown: impl Into<String>) -> Self {
        Self { at, construct, shown: shown.into() }
    }

    pub fn into_unreadable(self, text: &str) -> Unreadable {
        Unreadable {
            at: Position::of(text, self.at),
            construct: self.construct,
            what: if self.shown.is_empty() {
                self.construct.what().to_owned()
            } else {
                format!("{} `{}`", self.construct.what(), excerpt(&self.shown))
            },
            hint: self.construct.hint().map(str::to_owned),
        }
    }
}

/// At most this many characters of the line are shown in a message.
const EXCERPT: usize = 32;

/// A short piece of hostile text: cut, and without control characters.
fn excerpt(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == EXCERPT {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

macro_rules! constructs {
    ($($(#[doc = $doc:literal])+ $name:ident = $what:literal $(, hint $hint:literal)?;)+) => {
        /// Every kind of construct that is not readable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Construct {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Construct {
            /// The construct in words.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self { $(Self::$name => $what,)+ }
            }

            /// What to write instead.
            #[must_use]
            pub fn hint(self) -> Option<&'static str> {
                match self { $(Self::$name => constructs!(@hint $($hint)?),)+ }
            }
        }
    };
    (@hint $hint:literal) => { Some($hint) };
    (@hint) => { None };
}

constructs! {
    /// More than [`super::MAX_BYTES`].
    TooLong = "a line of more than 128 KiB", hint "put the text into a file";
    /// More than [`super::MAX_COMMANDS`].
    TooManyCommands = "more than 1000 commands in one line", hint "split the line into several calls";
    /// A NUL byte.
    Nul = "a NUL character";
    /// More than [`super::MAX_NESTING`].
    TooDeep = "commands within more than 8 others", hint "split the line into several calls";
    /// `${X:-…}`, `$1`, `$@`, or a variable that bash computes.
    Parameter = "parameter expansion", hint "readable are `$NAME` and `${NAME}`; write the value itself";
    /// A `$(…)` that is not read.
    CommandSubstitution = "command substitution", hint "run the inner command as a call of its own and write its result, or use single quotes for literal text";
    /// `` `…` ``.
    Backticks = "command substitution in backticks", hint "write `$(…)`, or use single quotes for literal text";
    /// `<(…)`, `>(…)`.
    ProcessSubstitution = "process substitution", hint "write to a file first, or use a pipe";
    /// `$((…))`, `$[…]`, `((…))`.
    Arithmetic = "arithmetic", hint "write the number itself";
    /// `$"…"`.
    Translation = "translated string", hint "leave out the `$`";
    /// An escape in `$'…'` that is not decoded.
    Escape = "escape in `$'…'` that is not simple", hint "write the character itself";
    /// `f() …`, `function f …`.
    Function = "function definition", hint "write the commands where they are used";
    /// `select`, `for` without `in`, `case` that falls through, and the parts of compound commands elsewhere.
    Compound = "compound command", hint "join commands with `&&` and `||`, or make several calls";
    /// A form of `[[ … ]]` that is not read.
    DoubleBracket = "conditional expression", hint "use `[ … ]` or `test`, or `grep` for `=~`";
    /// `time -p`.
    Time = "keyword", hint "leave it out: every call reports how long it took";
    /// `coproc`.
    Coprocess = "coprocess";
    /// `cmd &`.
    Background = "command in the background", hint "run it in the foreground, as a call of its own";
    /// `a=(…)`, `a[1]=…`.
    Array = "array";
    /// `a+=…`.
    AppendAssignment = "assignment that adds to a variable", hint "assign the whole value";
    /// A variable that changes how the shell itself reads or runs commands.
    ShellVariable = "assignment to a variable of the shell itself";
    /// What bash reads in its own way, in a line for `sh`.
    OnlyBash = "form that only bash has", hint "use `bash -c`, or give the line to `--shell`";
    /// A builtin that changes or asks the shell.
    Builtin = "shell builtin", hint "make a call of its own instead of changing the shell";
    /// `command -v`, `type`, `hash`: questions to the shell about programs.
    WhichBuiltin = "shell builtin", hint "use `which`";
    /// `set`, whose usual use has a replacement.
    SetBuiltin = "shell builtin", hint "readable are `set` with `-e`, `-u` and `-o pipefail`";
    /// `read` in a form other than `read [-r] NAME…`.
    Read = "form of `read`", hint "write `read -r NAME`";
    /// `export` in a form other than `export NAME=VALUE…`.
    Export = "form of `export`", hint "write `export NAME=VALUE`";
    /// `cd` in a form other than `cd [FOLDER]`.
    ChangeFolder = "form of `cd`", hint "write `cd FOLDER`";
    /// A glob as the name of a program.
    CommandPattern = "pattern as a command name", hint "write the program's name";
    /// A bracket pattern on whose meaning shells differ.
    BracketPattern = "bracket pattern that is not simple", hint "quote the brackets";
    /// `~user`, `~+`, a half-quoted `~`, `~` after `:`.
    Tilde = "tilde that is not `~` or `~/…`", hint "quote the `~`, or write the path itself";
    /// Braces that expand to too much, or that shells read differently.
    Brace = "brace expansion that is too large or not simple", hint "quote the braces, or write the words out";
    /// An unquoted `$(cat <<…)` with blanks or pattern characters.
    BareText = "here-document text that the shell would split", hint "put double quotes around `$(…)`";
    /// A redirection form that is not read.
    Redirection = "redirection", hint "readable are `<`, `>`, `>>`, `2>&1`, `&>`, `n>&-`, `<<'EOF'` and `<<<`";
    /// A here-document with a continuation, backticks, or commands over several lines.
    HereDocument = "here-document that is not literal", hint "quote the delimiter: `<<'EOF'`";
    /// A here-document whose delimiter is missing, empty or not plain text.
    Delimiter = "delimiter of a here-document that is not plain text", hint "write `<<'EOF'`";
    /// A here-document without its last line.
    OpenHereDocument = "here-document without its closing line", hint "the delimiter must stand alone on a line";
    /// A quote that is never closed.
    OpenQuote = "quote that is never closed";
    /// A backslash as the last character.
    TrailingBackslash = "backslash at the end of the line";
    /// A line that ends where a command must follow.
    Unfinished = "the line ends where a command must follow";
    /// What bash does not accept either.
    Syntax = "syntax error near";
}
