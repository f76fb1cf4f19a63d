//! The name of a tool: safe in file names, labels, records, commands and in every agent's tool list.

use std::fmt;
use std::str::FromStr;

/// Longest name. Agents' tool lists take no more than this.
pub const MAX_NAME: usize = 64;

/// A name of letters, digits, `_` and `-`, 1 to 64 characters, that begins with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(String);

/// A word that cannot name a tool.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("{0:?} is not a valid tool name: {FORM}")]
pub struct NameError(String);

/// What the name of a tool's permissions, as a policy, begins with.
pub const PERMISSIONS: &str = "tool:";

/// The right form of a name, for messages.
pub const FORM: &str = "1 to 64 letters, digits, `_` and `-`, beginning with a letter or digit";

impl ToolName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ToolName {
    type Err = NameError;

    fn from_str(word: &str) -> Result<Self, NameError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        // A dash at the beginning would be an option wherever the name is passed on.
        let begins = word.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins && word.len() <= MAX_NAME && word.bytes().all(plain) {
            Ok(Self(word.to_owned()))
        } else {
            Err(NameError(word.chars().take(MAX_NAME).collect()))
        }
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for ToolName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_everywhere() {
        for word in ["run_tests", "A", "7zip", "a-b_c", &"x".repeat(64)] {
            assert_eq!(word.parse::<ToolName>().map(|name| name.to_string()), Ok(word.to_owned()));
        }
        for word in ["", "-a", "_a", "a b", "a/b", "..", "a.b", "ä", "a\0", "a\n", &"x".repeat(65)]
        {
            assert!(word.parse::<ToolName>().is_err(), "{word:?}");
        }
    }
}
