//! Roles: what one argument is, written as one word in the catalog; and effects written out.

use serde::{Deserialize, Serialize};

use crate::effect::Class;

/// What an argument is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A word without effect, of a kind that `args:` conditions can name.
    Inert(Kind),
    /// A path.
    Path(Access, Shape),
    /// A text, or `@FILE` which is read.
    AtFile,
    /// A form field `NAME=VALUE`, `NAME=@FILE` or `NAME=<FILE`.
    Form,
    /// A text, or `WORD-file=FILE` which is read.
    FileEquals,
    /// Files or folders with colons between them, all of them read.
    ReadList,
    /// A file that is read, or `KEY=FILE`.
    ReadEquals,
    /// A file that is read, in the folder where operands are looked for (tar).
    ReadMember,
    /// A filter rule of rsync; one that merges reads a file.
    FilterRule,
    /// A path, or `HOST:PATH` which is reached over the net.
    HostPath(Access, Shape),
    /// A path or a URL.
    UrlOrRead,
    /// A revision, or `REV:PATH` whose path is read.
    Rev,
    /// As [`Role::Rev`] where `--` is given; without it git also takes a path here, which is read.
    RevOrPath,
    /// As [`Role::RevOrPath`], and all that the revision holds is read, unless paths follow `--`.
    RevTree,
    /// Where git fetches from or pushes to: the name of a remote, a URL, `HOST:PATH` or a folder.
    Remote(Access),
    /// A URL to reach, with the method in force.
    Url,
    /// A host to reach.
    Host,
    /// The HTTP method for URLs.
    Method,
    /// The folder from here on.
    Chdir,
    /// The folder from here on for operands; files that options name stay where they are (tar).
    ChdirOperands,
    /// `NAME=VALUE` for the environment of what is executed.
    Env,
    /// A name that is taken out of the environment of what is executed.
    UnsetEnv,
    /// From here to the end: a command.
    Exec,
    /// From here to the end: a command, to which words from standard input are added.
    ExecStdin,
    /// From here to `;` or `+`: a command in which `{}` is a found path.
    ExecUntil,
    /// The text that is replaced in the command of [`Role::ExecStdin`].
    Replace,
    /// A line for a shell.
    ShellLine,
    /// From here to the end: arguments of the code that runs.
    Pass,
    /// Code, or the name of something that is run.
    Code(Kind),
    /// A sed script.
    SedScript,
    /// Letters added to the name of a backup; with `/` or `*` the name is not known.
    Suffix,
    /// `+FORMAT` that is printed; without the plus it sets the clock.
    PlusFormat,
    /// A filter of jq; one that imports reads files.
    JqFilter,
    /// A program of awk; what runs others or opens files is `code`.
    AwkScript,
    /// A file mode; setuid and setgid bits are `system`.
    Mode,
    /// Something that changes the machine.
    System,
    /// Nothing is known about it.
    Unknown,
}

/// What is done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Read.
    Read,
    /// Written, deleted, renamed, or its metadata changed.
    Write,
    /// Both.
    ReadWrite,
}

/// How much a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// Exactly this file or folder; `-` is standard input for a read.
    Exact,
    /// Exactly this, and `-` is standard output.
    OrStdout,
    /// This and everything below.
    Tree,
    /// Things below this, which itself stays what it is: what git does in its folder.
    Below,
    /// A pattern of the program's own (git pathspec).
    Glob,
    /// Names that begin with this.
    Prefix,
    /// A name in which the program's own marks (`#1`, `{a,b}`, `%s`) stand for others: with one it is any file.
    /// `-` is a standard stream.
    Template,
    /// The file itself is read, and files beside it are written: `gunzip`.
    Beside,
    /// Not the argument but the folder in force, with everything below: members of an archive.
    Here,
}

macro_rules! kinds {
    ($($variant:ident $word:literal)*) => {
        /// What an inert argument is, for `args:` conditions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "each is the word it is written as")]
        pub enum Kind { $($variant),* }

        impl Kind {
            /// Every kind with its word.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];

            /// The word it is written as.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }
    };
}

kinds! {
    Text "none"
    Pattern "pattern"
    Number "number"
    Format "format"
    Name "name"
    Ref "ref"
    Remote "remote"
    Script "script"
    Package "package"
    Module "module"
    Target "target"
    Host "host"
    Url "url"
    Resource "resource"
    User "user"
    Signal "signal"
    Config "config"
    Option "option"
    Path "path"
    Env "env"
}

impl Kind {
    /// The kind written as this word.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }
}

/// An effect written out in the catalog: `code`, `read PATH`, `write-tree .git`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Does {
    /// A path relative to the folder in force; `?` stands for a path that is not known.
    Path(Access, Shape, String),
    /// An effect without object.
    Class(Class),
    /// Sets the HTTP method for URLs.
    Method(String),
    /// Stands for any value of a kind: `git push --all` is any `ref`.
    Any(Kind),
}

impl Does {
    /// As it is written in the catalog.
    #[must_use]
    pub fn show(&self) -> String {
        match self {
            Self::Path(access, shape, path) => {
                format!("{} {path}", Role::Path(*access, *shape).word())
            }
            Self::Class(class) => class.word().to_owned(),
            Self::Method(method) => format!("method {method}"),
            Self::Any(kind) => format!("any {}", kind.word()),
        }
    }
}

/// Every word for a role, for messages and the guide.
pub(super) const WORDS: &[(&str, Role)] = &[
    ("read", Role::Path(Access::Read, Shape::Exact)),
    ("read-tree", Role::Path(Access::Read, Shape::Tree)),
    ("read-glob", Role::Path(Access::Read, Shape::Glob)),
    ("write", Role::Path(Access::Write, Shape::Exact)),
    ("write-or-stdout", Role::Path(Access::Write, Shape::OrStdout)),
    ("write-tree", Role::Path(Access::Write, Shape::Tree)),
    ("write-glob", Role::Path(Access::Write, Shape::Glob)),
    ("write-prefix", Role::Path(Access::Write, Shape::Prefix)),
    ("read-write-beside", Role::Path(Access::ReadWrite, Shape::Beside)),
    ("read-template", Role::Path(Access::Read, Shape::Template)),
    ("write-template", Role::Path(Access::Write, Shape::Template)),
    ("read-here", Role::Path(Access::Read, Shape::Here)),
    ("write-here", Role::Path(Access::Write, Shape::Here)),
    ("read-write", Role::Path(Access::ReadWrite, Shape::Exact)),
    ("read-write-tree", Role::Path(Access::ReadWrite, Shape::Tree)),
    ("read-write-prefix", Role::Path(Access::ReadWrite, Shape::Prefix)),
    ("at-file", Role::AtFile),
    ("form", Role::Form),
    ("file-equals", Role::FileEquals),
    ("read-list", Role::ReadList),
    ("read-equals", Role::ReadEquals),
    ("read-member", Role::ReadMember),
    ("filter-rule", Role::FilterRule),
    ("host-read", Role::HostPath(Access::Read, Shape::OrStdout)),
    ("host-write", Role::HostPath(Access::Write, Shape::OrStdout)),
    ("host-read-tree", Role::HostPath(Access::Read, Shape::Tree)),
    ("host-write-tree", Role::HostPath(Access::Write, Shape::Tree)),
    ("host-read-write-tree", Role::HostPath(Access::ReadWrite, Shape::Tree)),
    ("url-or-read", Role::UrlOrRead),
    ("rev", Role::Rev),
    ("rev-or-path", Role::RevOrPath),
    ("rev-tree", Role::RevTree),
    ("remote-read", Role::Remote(Access::Read)),
    ("remote-write", Role::Remote(Access::ReadWrite)),
    ("net-url", Role::Url),
    ("net-host", Role::Host),
    ("method", Role::Method),
    ("chdir", Role::Chdir),
    ("chdir-operands", Role::ChdirOperands),
    ("set-env", Role::Env),
    ("unset-env", Role::UnsetEnv),
    ("exec", Role::Exec),
    ("exec-stdin", Role::ExecStdin),
    ("exec-until", Role::ExecUntil),
    ("replace", Role::Replace),
    ("shell-line", Role::ShellLine),
    ("pass", Role::Pass),
    ("code", Role::Code(Kind::Text)),
    ("code-script", Role::Code(Kind::Script)),
    ("code-module", Role::Code(Kind::Module)),
    ("code-package", Role::Code(Kind::Package)),
    ("code-target", Role::Code(Kind::Target)),
    ("sed-script", Role::SedScript),
    ("suffix", Role::Suffix),
    ("plus-format", Role::PlusFormat),
    ("jq-filter", Role::JqFilter),
    ("awk-script", Role::AwkScript),
    ("mode", Role::Mode),
    ("system", Role::System),
    ("unknown", Role::Unknown),
];

impl Role {
    /// The role written as this word: a role's own, or the kind of an inert argument.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, role)| role.clone())
            .or_else(|| Kind::by_word(word).map(Self::Inert))
    }

    /// The word it is written as, for people.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Inert(kind) => kind.word(),
            _ => WORDS.iter().find(|(_, role)| role == self).map_or("code", |(word, _)| word),
        }
    }

    /// Whether it takes all words to the end.
    #[must_use]
    pub fn takes_rest(&self) -> bool {
        matches!(self, Self::Exec | Self::ExecStdin | Self::Pass)
    }

    /// The kind that `args:` conditions see.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Inert(kind) | Self::Code(kind) => *kind,
            Self::Path(..)
            | Self::HostPath(..)
            | Self::UrlOrRead
            | Self::ReadList
            | Self::ReadEquals
            | Self::ReadMember => Kind::Path,
            Self::Rev | Self::RevOrPath | Self::RevTree => Kind::Ref,
            Self::Remote(_) => Kind::Remote,
            Self::Url => Kind::Url,
            Self::Host => Kind::Host,
            Self::Env | Self::UnsetEnv => Kind::Env,
            _ => Kind::Text,
        }
    }
}
