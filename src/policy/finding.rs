//! Findings: what is wrong in a file, where, and what to write instead.
//!
//! Loading never stops at the first error: it collects findings, and one finding refuses the
//! whole set. Rendering for people and machines is the caller's duty; everything needed is here.

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

/// Longest excerpt kept, in characters: a finding must stay readable for a one-line file of a megabyte.
const EXCERPT: usize = 200;

/// Longest message kept, in characters: it may quote what is wrong.
const MESSAGE: usize = 400;
/// Most findings kept of one file. Nobody mends more at once, and each costs a walk through the text.
const MAX_FINDINGS: usize = 100;

/// The findings of one file while it is read.
#[derive(Debug)]
pub struct Report<'t> {
    file: &'t str,
    text: &'t str,
    findings: Vec<Finding>,
}

impl<'t> Report<'t> {
    /// An empty report on a file.
    #[must_use]
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, findings: Vec::new() }
    }

    /// Adds a finding.
    pub fn add(
        &mut self,
        code: &'static str,
        at: At,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        // A lone carriage return ends a line too, to YAML.
        let line = self
            .text
            .split('\n')
            .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
            .nth(at.line.saturating_sub(1) as usize)
            .unwrap_or("");
        self.findings.push(Finding {
            code,
            file: self.file.to_owned(),
            at,
            message: shortened(message.into()),
            help: help.into(),
            excerpt: line.chars().take(EXCERPT).collect(),
        });
    }

    /// Adds a finding whose line is not shown: what stands there may be a secret.
    pub fn add_hidden(
        &mut self,
        code: &'static str,
        at: At,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        let before = self.findings.len();
        self.add(code, at, message, help);
        for finding in &mut self.findings[before..] {
            finding.excerpt.clear();
        }
    }

    /// Whether nothing was found so far.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The findings, in the order of the file.
    #[must_use]
    pub fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|finding| finding.at);
        self.findings
    }
}

fn shortened(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
        message.truncate(end);
        message.push('…');
    }
    message
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
