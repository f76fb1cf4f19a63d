//! What a tool gets instead of an answer, and what it ends with instead of a value.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::codes::Code;

/// Longest message that is kept: the same as in the runtime.
const MAX_TEXT: usize = 32 * 1024;

/// A request that was refused, as it came over the talk.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Refused {
    /// Why, as a stable word.
    pub code: Code,
    /// Why, in a sentence.
    pub message: String,
    /// The path that it is about.
    #[serde(default)]
    pub path: Option<Box<str>>,
    /// The rule that decided.
    #[serde(default)]
    pub rule: Option<Box<str>>,
    /// The next step.
    #[serde(default)]
    pub suggestion: Option<Box<str>>,
    /// Whether the same request can succeed later.
    #[serde(default)]
    pub recoverable: bool,
}

impl Refused {
    /// The talk is over, or an answer is none.
    pub(super) fn of_talk(code: Code, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
            path: None,
            rule: None,
            suggestion: None,
            recoverable: false,
        }
    }
}

/// An error that ends a built-in tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Thrown {
    /// Why, as a stable word.
    pub code: Code,
    /// What happened, where.
    pub message: String,
    /// The next step.
    pub suggestion: Option<String>,
    /// Further values by name.
    pub data: Box<Map<String, Value>>,
    /// Whether trying again can help; `None` if the code says.
    pub recoverable: Option<bool>,
}

impl Thrown {
    /// With this code and sentence.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            suggestion: None,
            data: Box::default(),
            recoverable: None,
        }
    }

    /// With the next step.
    #[must_use]
    pub fn hint(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// With a further value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// As a result frame carries it.
    pub(super) fn json(self) -> Value {
        let mut data = self.data;
        if let Some(suggestion) = self.suggestion {
            data.insert("suggestion".to_owned(), suggestion.into());
        }
        let mut error = json!({ "name": "", "message": cut(self.message), "code": self.code });
        if let Some(error) = error.as_object_mut() {
            if !data.is_empty() {
                error.insert("data".to_owned(), Value::Object(*data));
            }
            if let Some(recoverable) = self.recoverable {
                error.insert("recoverable".to_owned(), recoverable.into());
            }
        }
        json!({ "error": error })
    }
}

impl From<Refused> for Thrown {
    fn from(refused: Refused) -> Self {
        let mut thrown = Self::new(refused.code, refused.message);
        thrown.suggestion = refused.suggestion.map(String::from);
        thrown.recoverable = Some(refused.recoverable);
        for (name, value) in [("path", refused.path), ("rule", refused.rule)] {
            if let Some(value) = value {
                thrown.data.insert(name.to_owned(), String::from(value).into());
            }
        }
        thrown
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
