//! What the runtime is asked to do: the `Start` frame and the code that follows it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

/// What the runtime does with the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Calls `execute`.
    Run,
    /// Tells what the module says about itself.
    Describe,
    /// The same, and asks its health check.
    Check,
}

/// How the tool is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// `NAME.yml` with inline code that exports `execute`.
    Yaml,
    /// `NAME.tool.ts`, which exports a `tool`.
    Module,
    /// A function of this program.
    BuiltIn,
}

/// The conversation that a call belongs to, as far as the caller tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// Where the caller stands.
    pub working_directory: String,
}

/// One job for the runtime.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// What to do.
    pub mode: Mode,
    /// How the tool is written.
    pub form: Form,
    /// The tool's name.
    pub name: String,
    /// The author's file, as stacks show it.
    pub file: String,
    /// Validated arguments.
    pub args: Value,
    /// The policy's variables, which the runtime sets before the tool's code is loaded.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Configuration that the tool may see: nothing sensitive.
    pub config: Map<String, Value>,
    /// The conversation, if there is one.
    pub conversation: Option<Conversation>,
    /// The workspace, absolute.
    pub workspace: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The compiled module. It travels as chunks, not in the job.
    #[serde(skip)]
    pub code: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_travels_as_the_talk_says() {
        let job = Job {
            mode: Mode::Run,
            form: Form::Yaml,
            name: "n".to_owned(),
            file: "n.yml".to_owned(),
            args: serde_json::json!({"a": 1}),
            env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
            config: Map::new(),
            conversation: Some(Conversation {
                id: "c".to_owned(),
                working_directory: "/w/x".to_owned(),
            }),
            workspace: "/w".to_owned(),
            attempt: 1,
            code: b"x".to_vec(),
        };
        assert_eq!(
            serde_json::to_string(&job).unwrap(),
            r#"{"mode":"run","form":"yaml","name":"n","file":"n.yml","args":{"a":1},"env":{"A":"b"},"config":{},"conversation":{"id":"c","workingDirectory":"/w/x"},"workspace":"/w","attempt":1}"#
        );
    }
}
