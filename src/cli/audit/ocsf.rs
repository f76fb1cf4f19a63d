//! Records as events of the Open Cybersecurity Schema Framework, version 1.6.0.
//!
//! | record | class | activity |
//! | --- | --- | --- |
//! | start, refusal and end of a command | Process Activity (1007) | Launch, Terminate |
//! | start, refusal and end of a tool; approvals; gaps | API Activity (6003) | Other |
//! | a request of a tool | API Activity (6003) | Create, Read, Update, Delete, Other |
//!
//! Decisions are told by the profile `security_control`: action, disposition, policy and rule. What the schema
//! has no place for is below `unmapped`, under our own names.

use serde_json::{Map, Value, json};

use crate::audit::{Kind, Row};

/// The version of the schema.
const VERSION: &str = "1.6.0";
const PROCESS: u32 = 1007;
const API: u32 = 6003;
const REGULAR_FILE: u32 = 1;

/// Whether a policy let it through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Allowed,
    Denied,
}

/// One event. `first` is what the record's call began with.
pub(super) fn event(row: &Row, first: &Value) -> Value {
    let body = &row.body;
    let (class, activity, name) = class_of(row, first);
    let action = match row.kind {
        Kind::Refused => Action::Denied,
        Kind::Request if body["decision"] != "allow" => Action::Denied,
        Kind::Approval
            if ["asked", "denied", "never", "void"].iter().any(|it| body["answer"] == *it) =>
        {
            Action::Denied
        }
        _ => Action::Allowed,
    };
    let (action_id, action_word, disposition) = match action {
        Action::Allowed => (1, "Allowed", "Allowed"),
        Action::Denied => (2, "Denied", "Blocked"),
    };
    // 1 informational, 2 low, 4 high.
    let severity = match (row.kind, action) {
        (Kind::Gap, _) => 4,
        (_, Action::Denied) => 2,
        (_, Action::Allowed) => 1,
    };
    let failed = action == Action::Denied
        || row.kind == Kind::Request && body["code"].is_string()
        || row.kind == Kind::Aborted
        || row.kind == Kind::End && body["status"] != "completed";
    let mut event = json!({
        "class_uid": class,
        "category_uid": class / 1000,
        "activity_id": activity,
        "activity_name": name,
        "type_uid": class * 100 + activity,
        "severity_id": severity,
        "time": row.at,
        "status_id": if failed { 2 } else { 1 },
        "action_id": action_id,
        "action": action_word,
        "disposition_id": action_id,
        "disposition": disposition,
        "message": super::one_line::one_line(row),
        "metadata": {
            "version": VERSION,
            "profiles": ["security_control", "host"],
            "product": { "name": "runner", "version": env!("CARGO_PKG_VERSION") },
            "uid": row.seq.to_string(),
            "correlation_uid": row.call,
            "event_code": row.kind.word(),
        },
        "actor": {
            "user": { "uid": first["actor"]["uid"].to_string(), "name": first["actor"]["user"] },
            "process": { "pid": first["actor"]["pid"], "name": "runner" },
        },
        "device": { "hostname": "localhost", "type_id": 0 },
        "policy": { "name": first["policy"], "uid": rule(body, first), "version": first["digest"] },
        "unmapped": body,
    });
    let more = match class {
        PROCESS => process(row, first),
        _ => api(row, first),
    };
    if let Some(event) = event.as_object_mut() {
        event.extend(more);
        if let Some(code) = body["code"].as_str() {
            event.insert("status_code".to_owned(), code.into());
        }
        if let Some(duration) = body["duration_ms"].as_u64() {
            event.insert("duration".to_owned(), duration.into());
        }
    }
    event
}

/// Class, activity and its name.
fn class_of(row: &Row, first: &Value) -> (u32, u32, &'static str) {
    let command = first["kind"] == "exec";
    match row.kind {
        Kind::Start | Kind::Refused if command => (PROCESS, 1, "Launch"),
        Kind::End | Kind::Aborted if command => (PROCESS, 2, "Terminate"),
        Kind::Request => match row.body["method"].as_str().unwrap_or_default() {
            "file.mkdir" => (API, 1, "Create"),
            "file.read" | "file.list" | "file.stat" | "file.glob" => (API, 2, "Read"),
            "file.write" | "file.append" | "file.rename" => (API, 3, "Update"),
            "file.remove" => (API, 4, "Delete"),
            _ => (API, 99, "Request"),
        },
        Kind::Approval => (API, 99, "Approve"),
        Kind::Gap => (API, 99, "Verify"),
        Kind::Start | Kind::Refused => (API, 99, "Invoke"),
        Kind::End | Kind::Aborted => (API, 99, "Return"),
    }
}

fn rule(body: &Value, first: &Value) -> Value {
    [&body["rule"]["id"], &body["rule"], &first["rule"]["id"]]
        .into_iter()
        .find(|rule| rule.is_string())
        .cloned()
        .unwrap_or(Value::Null)
}

/// What Process Activity has beside the rest.
fn process(row: &Row, first: &Value) -> Map<String, Value> {
    let name = first["argv"][0]
        .as_str()
        .or_else(|| first["command"].as_str().and_then(|line| line.split_whitespace().next()));
    let mut process = json!({
        "name": name.unwrap_or_default(),
        "cmd_line": first["command"],
        "uid": row.call,
        "working_directory": first["cwd"],
    });
    // The file is known when the command has run. A line's other programs have no place but `unmapped`.
    let program = &row.body["detail"]["programs"][0];
    if name.is_some() && program["name"].as_str() == name {
        process["file"] = json!({ "name": name, "path": program["path"], "type_id": REGULAR_FILE });
    }
    let mut more = Map::new();
    more.insert("process".to_owned(), process);
    if row.kind == Kind::End {
        more.insert("exit_code".to_owned(), row.body["exit"].clone());
    }
    more
}

/// What API Activity has beside the rest.
fn api(row: &Row, first: &Value) -> Map<String, Value> {
    let operation = match row.kind {
        Kind::Request => row.body["method"].clone(),
        _ => first["command"].clone(),
    };
    let resource = match row.kind {
        Kind::Request => row.body["object"].clone(),
        _ => first["tool"]["name"].clone(),
    };
    let mut more = Map::new();
    more.insert(
        "api".to_owned(),
        json!({
            "operation": operation.as_str().unwrap_or(row.kind.word()),
            "service": { "name": "runner" },
            "request": { "uid": row.call },
        }),
    );
    more.insert("src_endpoint".to_owned(), json!({ "name": "localhost" }));
    if resource.is_string() {
        more.insert("resources".to_owned(), json!([{ "name": resource }]));
    }
    more
}
