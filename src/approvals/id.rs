//! The id of a question.

use std::fmt;
use std::io;
use std::str::FromStr;

use serde::Serialize;

/// Letters and digits that are not taken for each other when read aloud or typed.
const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// How many of them.
const LENGTH: usize = 10;

/// The id of one question. It is random, so it cannot be guessed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApprovalId(String);

/// A question, as the result of a call that needs an answer names it. Moments are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuestionRef {
    /// Which.
    pub id: ApprovalId,
    /// When a person said never to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<i64>,
    /// Until when it waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<i64>,
}

impl ApprovalId {
    /// A new one.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn fresh() -> io::Result<Self> {
        let random = crate::sys::random::<LENGTH>()?;
        let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
        Ok(Self(random.iter().map(letter).collect()))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ApprovalId {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = |byte: u8| LETTERS.contains(&byte);
        if word.len() == LENGTH && word.bytes().all(known) {
            Ok(Self(word.to_owned()))
        } else {
            Err(format!(
                "an id of a question has {LENGTH} letters and digits, as `runner approvals` shows it"
            ))
        }
    }
}

impl serde::Serialize for ApprovalId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_nothing_else_does() {
        let id = ApprovalId::fresh().unwrap();
        assert_eq!(id.to_string().parse::<ApprovalId>().unwrap(), id);
        for word in ["", "abc", "abcdefghi1", "ABCDEFGHJK", "abcdefghj/"] {
            assert!(word.parse::<ApprovalId>().is_err(), "{word}");
        }
        assert_ne!(ApprovalId::fresh().unwrap(), id);
    }
}
