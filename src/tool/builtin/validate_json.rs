//! `validate_json`: whether a text is JSON, and fits a schema.
//!
//! Text and schema may both be hostile. They are read and checked by the parts that do so for the arguments of tools: sizes,
//! depths, patterns and the work of a check are bounded there.

use runner_policy::finding::{At, Report};
use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::{Problem, text};
use crate::broker::client::{Call, Client, Thrown};
use crate::codes::Code;
use crate::json::{self, JsonError, MAX_BYTES};
use crate::tool::schema::{BOUNDS, Formats, Role, Schema, Spans};

/// The arguments. That one of each pair is given is the schema's matter.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    data: Option<String>,
    path: Option<String>,
    schema: Option<Value>,
    schema_path: Option<String>,
    #[serde(default)]
    assert_format: bool,
}

/// Checks.
pub(super) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    let data = match (args.data, &args.path) {
        (Some(data), _) => data,
        (None, Some(path)) => file(&call.client, path).await?,
        (None, None) => return Err(Problem::Arguments.says("give data or path")),
    };
    let schema = match (args.schema, &args.schema_path) {
        (Some(schema), _) => Some(schema),
        (None, Some(path)) => {
            let text = file(&call.client, path).await?;
            let read = json::read(&text).map_err(|error| {
                Problem::Arguments.says(format!("the schema in {path} is not JSON: {error}"))
            })?;
            Some(read)
        }
        (None, None) => None,
    };
    let formats = if args.assert_format { Formats::Asserted } else { Formats::Noted };
    let checked = tokio::task::spawn_blocking(move || check(&data, schema, formats)).await;
    checked.map_err(|error| Thrown::new(Code::ToolFailed, error.to_string()))?
}

async fn file(client: &Client, path: &str) -> Result<String, Thrown> {
    let contents = client.read(path, MAX_BYTES).await?;
    if contents.more {
        let message = format!("{path} is larger than {MAX_BYTES} bytes and is not read");
        return Err(Problem::TooLarge.says(message).with("path", path));
    }
    text(path, contents.bytes)
}

fn check(data: &str, schema: Option<Value>, formats: Formats) -> Result<Value, Thrown> {
    let schema = schema.map(|schema| compiled(schema, formats)).transpose()?;
    let value = match json::read(data) {
        Ok(value) => value,
        Err(JsonError::Unreadable { why, line, column }) => {
            let error = json!({ "path": "", "message": why, "line": line, "column": column });
            return Ok(json!({ "valid": false, "errors": [error] }));
        }
        Err(error @ JsonError::TooLarge { .. }) => {
            return Err(Problem::TooLarge.says(error.to_string()));
        }
    };
    let violations = match schema.map(|schema| schema.validate(&value)) {
        None | Some(Ok(())) => Vec::new(),
        Some(Err(violations)) => violations,
    };
    // A bound of ours says nothing of the value.
    if let Some(bound) = violations.iter().find(|it| it.keyword == BOUNDS) {
        return Err(Problem::TooLarge.says(bound.to_string()));
    }
    let errors: Vec<Value> = violations
        .iter()
        .map(|it| {
            let (line, column) = place(data, &it.pointer);
            json!({
                "path": it.pointer, "message": it.message, "keyword": it.keyword,
                "line": line, "column": column,
            })
        })
        .collect();
    Ok(json!({ "valid": errors.is_empty(), "errors": errors }))
}

fn compiled(schema: Value, formats: Formats) -> Result<Schema, Thrown> {
    let mut report = Report::new("schema", "");
    let spans = Spans::all_at(At::default());
    match Schema::compile_with(schema, Role::Result, formats, &spans, &mut report) {
        Some(schema) if report.is_clean() => Ok(schema),
        _ => {
            let findings = report.finish();
            let said: Vec<&str> = findings.iter().map(|it| it.message.as_str()).collect();
            Err(Problem::Arguments.says(format!("the schema cannot be used: {}", said.join("; "))))
        }
    }
}

/// Where the value of a pointer begins, line and column from 1. The text is JSON.
fn place(text: &str, pointer: &str) -> (usize, usize) {
    let mut walk = Walk { bytes: text.as_bytes(), at: 0 };
    walk.space();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        if !walk.enter(&step) {
            break;
        }
    }
    let before = &text[..walk.at.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// A walk through JSON that is known to be JSON, from value to value.
struct Walk<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Walk<'_> {
    fn here(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or_default()
    }

    fn space(&mut self) {
        while self.here().is_ascii_whitespace() {
            self.at += 1;
        }
    }

    /// Past a text in quotes; what it holds.
    fn quoted(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() && self.here() != b'"' {
            self.at += if self.here() == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(self.bytes.len());
        let text = &self.bytes[start..self.at];
        json::read_as(text, json::Limits::USUAL).unwrap_or_default()
    }

    /// Past a whole value, without recursion: it may be deep.
    fn value(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.here() {
                b'"' => drop(self.quoted()),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b'}' | b']' if depth == 0 => return,
                _ => self.at += 1,
            }
            if self.at >= self.bytes.len() {
                return;
            }
            let over = depth == 0 && matches!(self.bytes[self.at - 1], b'"' | b'}' | b']');
            if over {
                return;
            }
        }
    }

    /// Goes to a member or an item; `false` if there is none.
    fn enter(&mut self, step: &str) -> bool {
        let start = self.at;
        let object = self.here() == b'{';
        if !object && self.here() != b'[' {
            return false;
        }
        self.at += 1;
        for index in 0_usize.. {
            self.space();
            if matches!(self.here(), b'}' | b']') || self.at >= self.bytes.len() {
                break;
            }
            let found = if object {
                let key = self.quoted();
                self.space();
                self.at += 1;
                self.space();
                key == step
            } else {
                step.parse() == Ok(index)
            };
            if found {
                return true;
            }
            self.value();
            self.space();
            if self.here() == b',' {
                self.at += 1;
            }
        }
        self.at = start;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::schema::suite::groups;

    fn check(data: &str, schema: Option<Value>) -> Result<Value, Thrown> {
        super::check(data, schema, Formats::Noted)
    }

    #[test]
    fn the_required_cases_of_the_standard_hold() {
        let mut held = 0;
        for group in groups() {
            let (name, refused) = (&group.name, group.refused());
            if group.has_documents() {
                // Nobody gave the documents, and nothing is fetched.
                let alone = check("1", Some(group.alone.clone())).unwrap_err();
                assert!(alone.message.contains("nothing is fetched"), "{name:?} {alone:?}");
            }
            for (test, data, valid) in &group.tests {
                let told = check(&data.to_string(), Some(group.schema.clone()));
                match (told, refused) {
                    (Ok(told), None) => assert_eq!(told["valid"], *valid, "{name:?} {test}"),
                    (Err(thrown), Some(why)) => {
                        assert!(thrown.message.contains(why), "{name:?} {thrown:?}");
                    }
                    (told, refused) => panic!("{name:?} {test}: {told:?} {refused:?}"),
                }
                held += usize::from(refused.is_none());
            }
        }
        assert!(held > 1_250, "{held}");
    }

    #[test]
    fn values_are_checked_as_they_are() {
        let schema = json!({ "properties": { "a": { "default": 1 } }, "required": ["a"] });
        assert_eq!(check("{}", Some(schema)).unwrap()["valid"], false);
        for (schema, valid) in [(json!(true), true), (json!(false), false)] {
            assert_eq!(check("1", Some(schema)).unwrap()["valid"], valid);
        }
        let mail = json!({ "format": "email" });
        assert_eq!(check("\"x\"", Some(mail.clone())).unwrap()["valid"], true);
        let asserted = super::check("\"x\"", Some(mail), Formats::Asserted).unwrap();
        assert_eq!(asserted["valid"], false);
        // What is too much for us is not wrong.
        let twice = json!({ "$ref": "#/$defs/n" });
        let doubling = json!({ "$ref": "#/$defs/n", "$defs": { "n": { "properties": { "a": { "anyOf": [twice, twice, twice] } } } } });
        let value = (0..40).fold("1".to_owned(), |value, _| format!("{{\"a\":{value}}}"));
        assert_eq!(check(&value, Some(doubling)).unwrap_err().code, "too_large");
    }

    #[test]
    fn a_pointer_is_found_in_the_text() {
        let text = "{\n  \"a\": [1, {\"b/c\": \"x\\\"}\", \"d\": true}],\n  \"é\": 2, \"e\": {}\n}";
        for (pointer, place) in [
            ("", (1, 1)),
            ("/a", (2, 8)),
            ("/a/0", (2, 9)),
            ("/a/1", (2, 12)),
            ("/a/1/b~1c", (2, 20)),
            ("/a/1/d", (2, 33)),
            ("/é", (3, 8)),
            ("/e", (3, 16)),
            ("/none", (1, 1)),
            ("/a/9", (2, 8)),
        ] {
            assert_eq!(super::place(text, pointer), place, "{pointer}");
        }
    }

    #[test]
    fn errors_have_their_places() {
        let broken = check("{\n \"a\": }", None).unwrap();
        assert_eq!((&broken["valid"], &broken["errors"][0]["line"]), (&json!(false), &json!(2)));
        let twice = check("{\"a\": 1, \"a\": 2}", None).unwrap();
        assert_eq!(twice["valid"], false);
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let wrong = check("{\n \"a\": 1}", Some(schema.clone())).unwrap();
        let error = &wrong["errors"][0];
        assert_eq!(
            (&error["path"], &error["line"], &error["column"]),
            (&json!("/a"), &json!(2), &json!(7))
        );
        assert_eq!(
            check("{\"a\": \"x\"}", Some(schema)).unwrap(),
            json!({ "valid": true, "errors": [] })
        );
        let bad = check("1", Some(json!({ "type": "objekt" }))).unwrap_err();
        assert!(bad.code == "invalid_arguments" && bad.message.contains("schema"), "{bad:?}");
    }
}
