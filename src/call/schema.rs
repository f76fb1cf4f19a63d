//! The JSON Schema of a result, for `runner schema result` and for the tests, which hold every result against it.
//!
//! It is closed: a key that is not described is an error. What others made is open: the value of a tool, what an MCP
//! server sent, values in an error of a tool.

use runner_policy::Verdict;
use runner_policy::limits::TABLE;
use serde_json::{Map, Value, json};

use super::shortfall::Kind;
use crate::exit::Status;

/// Every status.
const STATUSES: [Status; 9] = [
    Status::Completed,
    Status::Failed,
    Status::Denied,
    Status::NeedsApproval,
    Status::Timeout,
    Status::Oom,
    Status::Limit,
    Status::Cancelled,
    Status::Error,
];

/// The JSON Schema.
#[must_use]
pub fn schema() -> Value {
    let always = [
        ("call", about(nullable("string"), "the id of the call; null if there was none")),
        ("status", json!({ "enum": STATUSES.map(Status::word) })),
        ("exit", json!({ "type": "integer", "minimum": 0, "maximum": 255 })),
        (
            "decision",
            about(
                json!({ "enum": ["allow", "ask", "deny", null] }),
                "of a command; null where none was decided, as for a tool, whose requests are",
            ),
        ),
        ("policy", about(nullable("string"), "the policy that was asked")),
        ("rule", about(nullable("string"), "the rule that decided, as policy/id")),
        ("stdout", about(nullable("string"), "what is kept of it; null if nothing is")),
        ("stderr", about(nullable("string"), "the same of standard error")),
        ("error", json!({ "anyOf": [{ "$ref": "#/$defs/error" }, { "type": "null" }] })),
        (
            "sandbox",
            json!({
                "type": "array",
                "items": { "$ref": "#/$defs/shortfall" },
                "description": "what the sandbox kept from the command",
            }),
        ),
    ];
    let optional = [
        ("tool", object(&[("name", text())], &[("digest", about(text(), "in the full form"))])),
        ("value", about(json!({}), "what a tool returned")),
        ("attachments", about(json!({ "type": "array" }), "what an MCP server sent beside it")),
        ("stdout_encoding", json!({ "const": "base64" })),
        ("stdout_bytes", about(count(), "how many there were, if some are left out")),
        ("stdout_dropped", about(count(), "how many are left out")),
        ("stderr_encoding", json!({ "const": "base64" })),
        ("stderr_bytes", count()),
        ("stderr_dropped", count()),
        ("changes", json!({ "$ref": "#/$defs/changes" })),
        (
            "explanation",
            about(json!({ "$ref": "#/$defs/explanation" }), "in the full form: the whole decision"),
        ),
        (
            "metadata",
            about(json!({ "$ref": "#/$defs/metadata" }), "in the full form: how the call ran"),
        ),
    ];
    let mut schema = object(&always, &optional);
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "runner result",
        "description": "what runner prints with --json for a command, a tool, a denial, an error or wrong usage",
        "$defs": {
            "error": error(),
            "rule": rule(),
            "shortfall": shortfall(),
            "changes": changes(),
            "explanation": explanation(),
            "metadata": metadata(),
        },
    });
    if let (Some(schema), Value::Object(head)) = (schema.as_object_mut(), head) {
        schema.extend(head);
    }
    schema
}

fn error() -> Value {
    object(
        &[("code", word()), ("message", text()), ("recoverable", flag())],
        &[
            ("suggestion", about(text(), "the next step")),
            ("rule", json!({ "$ref": "#/$defs/rule" })),
            ("stack", about(text(), "where a tool threw it")),
            ("details", about(json!({ "type": "object" }), "what else is known")),
            (
                "fault",
                json!({ "enum": ["usage", "policy", "configuration", "command", "engine", "runner"] }),
            ),
            ("findings", about(json!({ "type": "array" }), "what is wrong in files")),
        ],
    )
}

fn rule() -> Value {
    object(&[("id", text()), ("file", text()), ("line", count()), ("text", text())], &[])
}

fn shortfall() -> Value {
    let codes: Vec<&str> = Kind::TABLE.iter().map(|(_, word, _)| *word).collect();
    let mut entry = object(
        &[("code", json!({ "enum": codes })), ("why", text()), ("next", text())],
        &[("path", text()), ("name", text()), ("port", count()), ("rule", text())],
    );
    // It is about one of the two.
    entry["oneOf"] = json!([{ "required": ["path"] }, { "required": ["name"] }]);
    entry
}

fn changes() -> Value {
    let counts = ["created", "changed", "removed", "folders", "bytes"].map(|key| (key, count()));
    let held = object(
        &[
            ("path", text()),
            ("why", word()),
            ("reason", text()),
            ("rule", text()),
            ("next", text()),
        ],
        &[],
    );
    object(
        &[
            ("applied", object(&counts, &[])),
            ("held", list(held)),
            ("held_count", count()),
            ("undo", flag()),
        ],
        &[("stage", text())],
    )
}

fn explanation() -> Value {
    let effect = object(
        &[
            ("command", text()),
            ("effect", word()),
            ("object", text()),
            ("by", text()),
            ("refused", flag()),
        ],
        &[],
    );
    let verdicts = [Verdict::Allow, Verdict::Ask, Verdict::Deny];
    let rule = json!({ "anyOf": [{ "$ref": "#/$defs/rule" }, { "type": "null" }] });
    // The policy is always named; the rest is of a command.
    object(
        &[("policy", text()), ("digest", text())],
        &[
            ("decision", json!({ "enum": verdicts })),
            ("code", word()),
            ("message", text()),
            ("effects", list(effect)),
            ("rule", rule),
            ("reason", nullable("string")),
            ("owner", nullable("string")),
            ("approvable", flag()),
            ("would", nullable("array")),
            ("terms", json!({ "type": "object" })),
            ("nearest", list(text())),
            ("allowed_by", list(text())),
            ("notes", list(note())),
        ],
    )
}

fn metadata() -> Value {
    let phases = [
        "plan", "prepare", "claim", "attach", "create", "start", "check", "run", "end", "apply",
        "total", "queued",
    ]
    .map(|phase| (phase, json!({ "type": "number", "minimum": 0 })));
    let limits: Vec<(&str, Value)> = TABLE.iter().map(|row| (row.key, text())).collect();
    let usage = object(
        &[
            ("peak_memory_bytes", nullable("integer")),
            ("cpu_us", nullable("integer")),
            ("peak_pids", nullable("integer")),
            ("wall_us", count()),
            ("stdout_bytes", count()),
            ("stderr_bytes", count()),
        ],
        &[],
    );
    let protection = object(
        &[
            ("name", text()),
            ("enforced_by", nullable("string")),
            ("status", json!({ "enum": ["enforced", "best_effort", "absent"] })),
            ("why", nullable("string")),
        ],
        &[],
    );
    let program = object(&[("name", text()), ("path", text())], &[]);
    let user = object(&[("uid", count()), ("gid", count()), ("why", text())], &[]);
    let open = || json!({ "type": "object" });
    object(
        &[],
        &[
            ("duration_ms", object(&[], &phases)),
            ("warm", flag()),
            ("waited_ms", nullable("integer")),
            ("discarded", count()),
            ("engine", nullable("string")),
            ("runtime", nullable("string")),
            ("image_digest", nullable("string")),
            ("isolation", nullable("string")),
            ("user", user),
            ("programs", json!({ "anyOf": [list(program), { "type": "null" }] })),
            ("programs_left_out", nullable("integer")),
            ("limits", object(&[], &limits)),
            ("limits_met", list(text())),
            ("usage", json!({ "anyOf": [usage, { "type": "null" }] })),
            ("protections", list(protection)),
            ("notes", list(note())),
            ("mcp", open()),
            ("broker", open()),
            ("attempts", list(open())),
            ("fallback_of", open()),
            ("fallback", open()),
        ],
    )
}

fn note() -> Value {
    object(&[("code", word()), ("text", text())], &[])
}

/// An object with keys that are always there and others that may be, and no more.
fn object(always: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let all = always.iter().chain(optional);
    let properties: Map<String, Value> =
        all.map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let required: Vec<&str> = always.iter().map(|(key, _)| *key).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// A stable word.
fn word() -> Value {
    json!({ "type": "string", "pattern": "^[a-z][a-z0-9_]*$" })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn nullable(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

fn about(mut schema: Value, words: &str) -> Value {
    schema["description"] = words.into();
    schema
}
