//! Which policy the caller wants.

use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

use super::layer::Layer;

/// The policy that applies if nobody chooses one.
pub const DEFAULT: &str = "readonly";

/// What `--policy` says, or the configuration where nothing was typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// Nothing: the shipped `readonly`, whatever the folders hold.
    #[default]
    Default,
    /// The default that the configuration sets.
    Configured(Box<Configured>),
    /// A policy by its name, looked for in every layer.
    Named(String),
    /// A file.
    File(PathBuf),
}

/// The default of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Configured {
    /// The default policy, if the user's or the managed file names one; else it is `readonly`.
    #[serde(rename = "policy")]
    pub default: Option<Named>,
    /// The policy that the project's file names: the default never allows more than this one.
    pub within: Option<Named>,
}

/// The name of a policy in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The least trusted layer that the policy may come from.
    #[serde(skip)]
    pub deepest: Layer,
    /// The file that names it.
    pub file: String,
    /// The line.
    pub line: u32,
}

impl Named {
    /// Where it is named, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// The value of `--policy` is neither a name nor a path.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error(
    "{0:?} is neither the name of a policy (small letters, digits, - and _) nor the path of a \
     .yml file"
)]
pub struct ChoiceError(String);

/// Longest name of a policy. It is part of file names, labels and records.
const MAX_NAME: usize = 64;

/// Whether a word can name a policy: it begins with a letter, and is safe in every place it is shown.
pub(super) fn is_name(word: &str) -> bool {
    word.len() <= MAX_NAME
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
}

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(word: &str) -> Result<Self, ChoiceError> {
        if word.contains('/') || word.ends_with(".yml") || word.ends_with(".yaml") {
            Ok(Self::File(PathBuf::from(word)))
        } else if is_name(word) {
            Ok(Self::Named(word.to_owned()))
        } else {
            Err(ChoiceError(word.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_are_told_apart() {
        assert_eq!("readonly".parse(), Ok(Choice::Named("readonly".to_owned())));
        assert_eq!("./a.yml".parse(), Ok(Choice::File("./a.yml".into())));
        assert_eq!("a.yml".parse(), Ok(Choice::File("a.yml".into())));
        for word in ["", "Read", "-x", "a b", "a\u{0}", "1a", "..", &"a".repeat(65)] {
            assert!(word.parse::<Choice>().is_err(), "{word}");
        }
    }
}
