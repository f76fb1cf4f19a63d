//! What else is known of an error: `error.details` of a result.

use serde::Serialize;
use serde_json::{Value, json};

use crate::approvals::QuestionRef;
use crate::audit::Redactor;

/// What else is known of an error.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Details {
    /// What a tool threw by itself.
    Thrown(Thrown),
    /// What a tool added to a refusal that it passed on.
    PassedOn {
        /// Whose words they are, if they are not ours.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<Source>,
        /// Further values.
        data: Value,
    },
    /// The question that the call waits for, or the answer to it.
    Question {
        /// Which.
        approval: QuestionRef,
    },
    /// A file of the tool that is not what was compiled.
    File {
        /// Its path.
        file: String,
    },
    /// Credentials that are not set.
    #[serde(rename_all = "camelCase")]
    Credentials {
        /// What has to be set.
        config_key: String,
        /// Where they can be had.
        setup_url: Option<String>,
    },
    /// When it can be tried again.
    Later {
        /// In milliseconds since 1970.
        retry_at: i64,
        /// In so many milliseconds.
        retry_after_ms: i64,
    },
    /// How long to wait before it is tried again.
    Wait {
        /// In milliseconds.
        retry_after_ms: u64,
    },
    /// What an MCP server wrote before it ended.
    Server {
        /// Its output.
        data: LastWords,
    },
}

/// An error of a tool, in its own words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Thrown {
    /// Whose words they are, if they are not ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What the tool calls it: foreign text, not a code of ours.
    pub code: Option<String>,
    /// Further values.
    pub data: Option<Value>,
}

/// Who says something that we do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A tool.
    Tool,
}

/// The end of what a server wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastWords {
    /// To standard error.
    pub stderr: String,
}

impl Details {
    /// What a tool threw by itself.
    #[must_use]
    pub fn thrown(&self) -> Option<&Thrown> {
        match self {
            Self::Thrown(thrown) => Some(thrown),
            _ => None,
        }
    }

    /// The values that came with an error of a tool.
    #[must_use]
    pub fn data(&self) -> Option<&Value> {
        match self {
            Self::Thrown(thrown) => thrown.data.as_ref(),
            Self::PassedOn { data, .. } => Some(data),
            _ => None,
        }
    }

    /// The same without secrets in what others said.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        // Under its key, as the result has it: how deep a value lies counts.
        let hidden = |data: Value| redactor.json(&json!({ "data": data }))["data"].take();
        let text = |text: String| redactor.text(&text).into_owned();
        match self {
            Self::Thrown(Thrown { source, code, data }) => {
                Self::Thrown(Thrown { source, code: code.map(text), data: data.map(hidden) })
            }
            Self::PassedOn { source, data } => Self::PassedOn { source, data: hidden(data) },
            Self::Server { data: LastWords { stderr } } => {
                Self::Server { data: LastWords { stderr: text(stderr) } }
            }
            Self::Question { .. }
            | Self::File { .. }
            | Self::Credentials { .. }
            | Self::Wait { .. }
            | Self::Later { .. } => self,
        }
    }
}
