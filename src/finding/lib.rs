//! Findings: what is wrong in a file, where, and what to write instead.
//!
//! Rendering for people and machines is the caller's duty; everything needed is here.

use std::fmt;

/// A place in a text: 1-based line and column (in characters), and the width to underline.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct At {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Characters to underline, at least 1.
    pub width: u32,
}

/// One thing wrong in one file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Stable name of the kind of error, such as `unknown_key`.
    pub code: &'static str,
    /// The file as the caller named it.
    pub file: String,
    /// Where in the file.
    #[serde(flatten)]
    pub at: At,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The line it stands on.
    pub excerpt: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let At { line, column, .. } = self.at;
        write!(f, "{}:{line}:{column}: {} [{}]", self.file, self.message, self.code)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// The closest of the known words, if one is close enough to be meant.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Hostile words may be long; nobody mistypes a key by more than a few characters.
    if word.len() > 64 {
        return None;
    }
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3).min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
