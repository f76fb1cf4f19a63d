//! Notes and results: what a tool says without asking for anything.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::request::why;
use super::{Issue, Level, Log, Progress, ProtocolError, ToolEnd, ToolError};
use crate::json::{self, Limits, Object};

/// A log line or progress.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Note {
    Log(Log),
    Progress(Progress),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawNote {
    Log(Object<RawLog>),
    Progress(Object<RawProgress>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLog {
    level: Level,
    message: String,
    #[serde(default)]
    fields: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProgress {
    fraction: f64,
    #[serde(default)]
    text: Option<String>,
}

/// Reads a note.
///
/// # Errors
/// It is none.
pub(super) fn note(payload: &[u8]) -> Result<Note, ProtocolError> {
    let bad = |why: String| ProtocolError::BadJson { kind: "note", why };
    match json::read_as(payload, Limits::USUAL).map_err(|error| bad(why(&error)))? {
        RawNote::Log(Object(RawLog { level, message, fields })) => {
            let fields = match fields {
                None => Map::new(),
                Some(Value::Object(fields)) => fields,
                Some(_) => return Err(bad("`fields` is not an object".to_owned())),
            };
            Ok(Note::Log(Log { level, message, fields }))
        }
        RawNote::Progress(Object(RawProgress { fraction, text })) => {
            // JSON has no NaN; what is beyond the ends is at the ends.
            Ok(Note::Progress(Progress { fraction: fraction.clamp(0.0, 1.0), text }))
        }
    }
}

/// One of the first three, and perhaps what it cost.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawResult {
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Object<ToolError>>,
    #[serde(default, deserialize_with = "present")]
    invalid: Option<Vec<Object<Issue>>>,
    #[serde(default, deserialize_with = "present")]
    cost: Option<Value>,
}

/// A member that is there, also if it is `null`.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Reads a result, and what the tool says that it cost.
///
/// # Errors
/// It is none.
pub(super) fn result(payload: &[u8]) -> Result<(ToolEnd, Option<Value>), ProtocolError> {
    let bad = |why: String| ProtocolError::BadJson { kind: "result", why };
    let Object(raw) = json::read_as::<Object<RawResult>>(payload, Limits::USUAL)
        .map_err(|error| bad(why(&error)))?;
    let end = match (raw.value, raw.error, raw.invalid) {
        (Some(value), None, None) => ToolEnd::Value(value),
        (None, Some(Object(error)), None) => ToolEnd::Error(error),
        (None, None, Some(issues)) => {
            ToolEnd::Invalid(issues.into_iter().map(|Object(issue)| issue).collect())
        }
        _ => return Err(bad("it is not one of value, error and invalid".to_owned())),
    };
    Ok((end, raw.cost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_results_are_read_strictly() {
        for good in [
            r#"{"log":{"level":"info","message":"m"}}"#,
            r#"{"log":{"level":"error","message":"m","fields":{"a":1}}}"#,
            r#"{"progress":{"fraction":2,"text":"t"}}"#,
        ] {
            assert!(note(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in [
            "{}",
            "null",
            r#"{"log":{"level":"loud","message":"m"}}"#,
            r#"{"log":{"level":"info","message":1}}"#,
            r#"{"log":{"level":"info","message":"m","fields":[]}}"#,
            r#"{"log":{"level":"info","message":"m","fields":{"a":1,"a":2}}}"#,
            r#"{"log":{"level":"info","message":"m","x":1}}"#,
            r#"{"log":{"level":"info","message":"m"},"progress":{"fraction":1}}"#,
            r#"{"progress":{"fraction":"1"}}"#,
            r#"{"progress":[1,"t"]}"#,
            r#"{"log":["info","m"]}"#,
            r#"{"progress":{"fraction":1e999}}"#,
        ] {
            assert!(note(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(
            result(br#"{"value":{"a":[1]}}"#),
            Ok((ToolEnd::Value(serde_json::json!({"a": [1]})), None))
        );
        assert_eq!(result(br#"{"value":null}"#), Ok((ToolEnd::Value(Value::Null), None)));
        let (_, cost) = result(br#"{"value":1,"cost":-0.5}"#).unwrap();
        assert_eq!(cost, Some(serde_json::json!(-0.5)), "whoever books it looks at it");
        let invalid = result(br#"{"invalid":[{"pointer":"/a","message":"m"}],"cost":"NaN"}"#);
        assert!(matches!(invalid, Ok((ToolEnd::Invalid(_), Some(Value::String(_))))));
        assert!(
            result(
                br#"{"error":{"name":"E","message":"m","code":"c","data":[1],"recoverable":true,"refused":7}}"#
            )
            .is_ok()
        );
        for bad in [
            "{}",
            r#"{"cost":1}"#,
            r#"{"value":1,"cost":1,"cost":2}"#,
            r#"{"value":1,"invalid":[]}"#,
            r#"{"invalid":[["/a","m"]]}"#,
            r#"{"invalid":null}"#,
            r#"{"error":{"name":"E","message":"m","refused":-1}}"#,
            r#"{"value":1,"error":{"name":"E","message":"m"}}"#,
            r#"{"value":1,"value":2}"#,
            r#"{"value":{"a":1,"a":2}}"#,
            r#"{"error":{"name":"E"}}"#,
            r#"{"error":{"name":"E","message":"m","x":1}}"#,
            r#"{"ok":1}"#,
            r#"{"error":["E","m"]}"#,
        ] {
            assert!(result(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
