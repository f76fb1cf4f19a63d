//! Arguments of the server's own tools, read strictly.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Of `run_command`, as it was sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// A shell line.
    pub command: Option<String>,
    /// A program and its arguments.
    pub argv: Option<Vec<String>>,
    /// Where it starts.
    pub cwd: Option<String>,
    /// After how many seconds it is ended.
    pub timeout: Option<f64>,
    /// Its standard input.
    pub stdin: Option<String>,
}

/// Of `read_output`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// Which call.
    pub id: String,
    /// From which byte on.
    #[serde(default)]
    pub offset: u64,
}

/// Of `cancel`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Which call.
    pub id: String,
}

/// Of `explain`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// A shell line.
    pub command: String,
}

/// Reads arguments.
///
/// # Errors
/// What is wrong with them, for the model.
pub fn read<T: DeserializeOwned>(tool: &str, arguments: Option<JsonObject>) -> Result<T, String> {
    let value = Value::Object(arguments.unwrap_or_default());
    serde_json::from_value(value).map_err(|error| format!("invalid_arguments: {tool}: {error}"))
}
