//! The tools of the server itself, as they are listed.

use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Runs a command.
pub const RUN: &str = "run_command";
/// Reads on in the output of a call.
pub const READ: &str = "read_output";
/// Ends a call.
pub const CANCEL: &str = "cancel";
/// Says what the policy decides about a command.
pub const EXPLAIN: &str = "explain";

/// Their names. A tool of the registry with one of them is not listed.
pub const NAMES: [&str; 4] = [RUN, READ, CANCEL, EXPLAIN];

/// What the policy of the server lets commands do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allows {
    /// Whether anything in the workspace may be written.
    pub writes: bool,
    /// Whether anything may be reached over the network.
    pub net: bool,
}

/// They are shown to the model at once, by clients that hide tools behind a search otherwise.
fn always_loaded() -> MetaObject {
    let mut meta = JsonObject::new();
    meta.insert("anthropic/alwaysLoad".to_owned(), json!(true));
    MetaObject(meta)
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(map) => Arc::new(map),
        _ => Arc::default(),
    }
}

fn tool(name: &'static str, title: &str, about: String, schema: Value) -> Tool {
    Tool::new(name, about, object(schema)).with_title(title)
}

fn looks(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title).read_only(true).destructive(false).open_world(false)
}

/// The tools, under a policy with this name.
pub fn tools(policy: &str, allows: Allows) -> Vec<Tool> {
    let within = match (allows.writes, allows.net) {
        (false, false) => "It can read, not write, and reaches no network.",
        (true, false) => "It writes only where the policy allows it, and reaches no network.",
        (false, true) => {
            "It can read, not write, and reaches only the peers that the policy names."
        }
        (true, true) => "It writes and reaches only what the policy allows.",
    };
    let mut run = tool(
        RUN,
        "Run a command",
        format!(
            "Runs a shell line or a command in a fresh sandbox of this workspace, under the policy `{policy}`. {within} A refusal says what is allowed instead. A command that takes long is answered with an id: call read_output with it. Each call starts in the same folder; use cwd or `cd DIR && ...`."
        ),
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "command": { "type": "string", "description": "A shell line: lists, pipes, redirections, variables." },
                "argv": { "type": "array", "items": { "type": "string" }, "minItems": 1, "description": "A program and its arguments, instead of command." },
                "cwd": { "type": "string", "description": "A folder of the workspace to start in." },
                "timeout": { "type": "number", "exclusiveMinimum": 0, "description": "Seconds after which the command is ended; can only shorten the policy's limit." },
                "stdin": { "type": "string", "description": "Standard input of the command." },
            },
        }),
    )
    .with_annotations(
        ToolAnnotations::with_title("Run a command")
            .read_only(!allows.writes && !allows.net)
            .destructive(allows.writes)
            .open_world(allows.net),
    );
    run.meta = Some(always_loaded());
    let id = json!({ "type": "string", "description": "The id of the call." });
    let mut read = tool(
        READ,
        "Read on in the output",
        "Reads more output of a call, from an offset, and waits for a call that still runs."
            .to_owned(),
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["id"],
            "properties": {
                "id": id,
                "offset": { "type": "integer", "minimum": 0, "description": "The byte to begin with; the last answer says where it continues." },
            },
        }),
    )
    .with_annotations(looks("Read on in the output"));
    read.meta = Some(always_loaded());
    let cancel = tool(
        CANCEL,
        "End a call",
        "Ends a call that runs, with everything in its sandbox.".to_owned(),
        json!({ "type": "object", "additionalProperties": false, "required": ["id"], "properties": { "id": id } }),
    )
    .with_annotations(
        ToolAnnotations::with_title("End a call")
            .read_only(false)
            .destructive(false)
            .idempotent(true)
            .open_world(false),
    );
    let explain = tool(
        EXPLAIN,
        "Ask the policy about a command",
        "Says what the policy decides about a shell line, by which rule, and what is allowed instead. Nothing runs."
            .to_owned(),
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["command"],
            "properties": { "command": { "type": "string", "description": "A shell line." } },
        }),
    )
    .with_annotations(looks("Ask the policy about a command"));
    vec![run, read, cancel, explain]
}
