//! The findings of one file while it is read.
//!
//! Loading never stops at the first error: it collects findings, and one finding refuses the
//! whole set.

pub use runner_finding::{At, Finding, did_you_mean};

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
