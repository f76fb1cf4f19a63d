//! What built-in tools end with when they cannot do what they were asked to.

use crate::broker::client::Thrown;
use crate::codes::Code;

/// Why a built-in tool gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// The arguments do not go together.
    Arguments,
    /// What should be changed is not there.
    NoMatch,
    /// What should be changed is there more than once.
    Ambiguous,
    /// A pattern cannot be used.
    Pattern,
    /// A file is not text.
    NotText,
    /// It is larger than is worked on.
    TooLarge,
    /// A command that has to go well did not.
    Command,
    /// A manifest is none.
    Manifest,
    /// Something that it needs is not there.
    Missing,
}

impl Problem {
    /// Its code in the one list.
    fn code(&self) -> Code {
        match self {
            Self::Arguments => Code::InvalidArguments,
            Self::NoMatch => Code::NoMatch,
            Self::Ambiguous => Code::AmbiguousMatch,
            Self::Pattern => Code::BadPattern,
            Self::NotText => Code::NotText,
            Self::TooLarge => Code::TooLarge,
            Self::Command => Code::CommandFailed,
            Self::Manifest => Code::BadManifest,
            Self::Missing => Code::PreconditionFailed,
        }
    }

    /// With the sentence for the case at hand.
    pub(super) fn says(self, message: impl Into<String>) -> Thrown {
        Thrown::new(self.code(), message)
    }
}

/// Text of these bytes, or why there is none.
pub(super) fn text(path: &str, bytes: Vec<u8>) -> Result<String, Thrown> {
    String::from_utf8(bytes)
        .map_err(|_| Problem::NotText.says(format!("{path} is not UTF-8")).with("path", path))
}

/// A regular expression that takes linear time and bounded memory for any pattern.
pub(super) fn pattern(text: &str, ignore_case: bool) -> Result<regex::Regex, Thrown> {
    /// Memory of a compiled pattern, and of its cache.
    const SIZE: usize = 1 << 20;
    regex::RegexBuilder::new(text)
        .case_insensitive(ignore_case)
        .multi_line(true)
        .size_limit(SIZE)
        .dfa_size_limit(SIZE)
        .build()
        .map_err(|error| {
            let hint =
                "the syntax is that of the Rust crate regex: no look-around, no back-references";
            Problem::Pattern.says(format!("the pattern cannot be used: {error}")).hint(hint)
        })
}
