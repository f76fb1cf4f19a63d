//! Patterns of `file.glob`: `*`, `?` and `[…]` stay inside a name, `**` crosses, `{a,b}` are alternatives.
//!
//! Matched name by name while a tree is walked, so that it is known of every folder whether anything
//! below it can match. Bounded: alternatives, length, and no name is compared with more than its pattern.
//! What marks and braces mean is `runner_glob`'s; here is which patterns a tool may ask for.

use runner_glob::{BraceError, Braces, Dots, Fit, Glob, GlobError, Grammar};

/// Most alternatives that braces may make.
const MAX_ALTERNATIVES: usize = 128;
/// Longest pattern.
const MAX_LENGTH: usize = 4096;

/// A pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    glob: Glob,
    dots: Dots,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadPattern {
    Empty,
    TooLong,
    Absolute,
    Upwards,
    Unclosed,
    TooMany,
}

impl BadPattern {
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Empty => "an empty pattern matches nothing",
            Self::TooLong => "the pattern is longer than 4096 bytes",
            Self::Absolute => "a pattern is relative to `cwd`",
            Self::Upwards => "`..` in a pattern would lead out of its folder",
            Self::Unclosed => "a bracket or brace is not closed",
            Self::TooMany => "the braces make more than 128 alternatives",
        }
    }
}

impl Pattern {
    /// Reads a pattern; with `dot`, marks cover names that start with a dot.
    pub(super) fn new(text: &str, dot: bool) -> Result<Self, BadPattern> {
        if text.len() > MAX_LENGTH {
            return Err(BadPattern::TooLong);
        }
        let alternatives = Braces::parse(text, Grammar::Path)?.expand(MAX_ALTERNATIVES)?;
        let mut all = Vec::with_capacity(alternatives.len());
        for text in &alternatives {
            if text.starts_with('/') {
                return Err(BadPattern::Absolute);
            }
            let names = text.split('/').filter(|name| !name.is_empty() && *name != ".");
            let names: Vec<&str> = names.collect();
            if names.contains(&"..") {
                return Err(BadPattern::Upwards);
            }
            if names.is_empty() {
                return Err(BadPattern::Empty);
            }
            all.push(names);
        }
        let dots = if dot { Dots::Covered } else { Dots::Written };
        Ok(Self { glob: Glob::of(all)?, dots })
    }

    /// What a path, given by its names, means to it.
    pub(super) fn fit(&self, names: &[&str]) -> Fit {
        self.glob.fit(names, self.dots)
    }
}

impl From<BraceError> for BadPattern {
    fn from(error: BraceError) -> Self {
        GlobError::from(error).into()
    }
}

impl From<GlobError> for BadPattern {
    fn from(error: GlobError) -> Self {
        match error {
            GlobError::Unclosed => Self::Unclosed,
            GlobError::TooMany => Self::TooMany,
        }
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
