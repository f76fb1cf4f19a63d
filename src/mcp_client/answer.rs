//! What a tool of a server answered, in our own form of a value.
//!
//! | what the server sends | the value |
//! | --- | --- |
//! | `structuredContent` | that |
//! | texts alone | one text, the parts one a line |
//! | anything else | `{ "content": [...] }`, each part with its type |
//!
//! Beside a structured value, parts that are no text are kept as attachments. `isError` makes the texts a message.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::error::McpError;
use super::message::cut;

/// Most parts of one answer.
const MAX_PARTS: usize = 1_000;
/// Longest type, address or title of a part.
const MAX_WORD: usize = 4 << 10;

/// A part that is no text, as results carry it.
pub type Attachment = Value;

/// What a call came to.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// It went well.
    Value {
        /// What the tool gave.
        value: Value,
        /// What it gave beside that.
        attachments: Vec<Attachment>,
    },
    /// The tool, or the server, says that it failed.
    Failed {
        /// In its own words.
        message: String,
        /// What it gave beside that: a structured value, or the number of the server's error.
        data: Option<Value>,
    },
}

/// One part.
enum Part {
    Text(String),
    Other(Attachment),
}

impl Answer {
    /// A server that answers a call with an error.
    pub(super) fn refused(number: i64, message: String) -> Self {
        Self::Failed { message, data: Some(json!({ "number": number })) }
    }

    /// Reads the result of a call.
    pub(super) fn read(mut said: Map<String, Value>) -> Result<Self, McpError> {
        let parts = match said.remove("content") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(parts)) if parts.len() <= MAX_PARTS => parts,
            Some(Value::Array(_)) => return Err(McpError::TooMuch),
            Some(_) => return Err(bad("`content` is no list")),
        };
        let parts = parts.into_iter().map(part).collect::<Result<Vec<_>, _>>()?;
        let failed = match said.remove("isError") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(failed)) => failed,
            Some(_) => return Err(bad("`isError` is neither true nor false")),
        };
        let structured = said.remove("structuredContent").filter(|value| !value.is_null());
        if failed {
            let texts = texts(&parts);
            let message =
                if texts.is_empty() { "it does not say why".to_owned() } else { cut(&texts) };
            return Ok(Self::Failed { message, data: structured });
        }
        let text_only = parts.iter().all(|part| matches!(part, Part::Text(_)));
        let (value, attachments) = match structured {
            Some(value) => (value, parts.into_iter().filter_map(other).collect()),
            None if text_only => (Value::String(texts(&parts)), Vec::new()),
            None => {
                let each = parts.into_iter().map(|part| match part {
                    Part::Text(text) => json!({ "type": "text", "text": text }),
                    Part::Other(other) => other,
                });
                (json!({ "content": each.collect::<Vec<_>>() }), Vec::new())
            }
        };
        Ok(Self::Value { value, attachments })
    }
}

fn other(part: Part) -> Option<Attachment> {
    match part {
        Part::Text(_) => None,
        Part::Other(other) => Some(other),
    }
}

fn texts(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Other(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn part(value: Value) -> Result<Part, McpError> {
    let Value::Object(map) = value else { return Err(bad("a part of `content` is no object")) };
    let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "text" => match map.get("text") {
            Some(Value::String(text)) => Ok(Part::Text(text.clone())),
            _ => Err(bad("a text has no `text`")),
        },
        "image" | "audio" => {
            let data = map.get("data").and_then(Value::as_str).unwrap_or_default();
            let bytes = bytes(data)?;
            let media = word(&map, "mimeType")?;
            Ok(Part::Other(
                json!({ "type": kind, "mimeType": media, "bytes": bytes, "data": data }),
            ))
        }
        "resource" => match map.get("resource") {
            Some(Value::Object(resource)) => Ok(Part::Other(embedded(resource)?)),
            _ => Err(bad("a resource has no `resource`")),
        },
        "resource_link" => {
            let mut link = described(&map)?;
            link.insert("type".to_owned(), kind.into());
            Ok(Part::Other(Value::Object(link)))
        }
        _ => Err(bad("a part of `content` is of no known type")),
    }
}

fn embedded(resource: &Map<String, Value>) -> Result<Value, McpError> {
    let mut kept = described(resource)?;
    match (resource.get("text"), resource.get("blob")) {
        (Some(Value::String(text)), None) => {
            kept.insert("text".to_owned(), text.clone().into());
        }
        (None, Some(Value::String(data))) => {
            kept.insert("bytes".to_owned(), bytes(data)?.into());
            kept.insert("data".to_owned(), data.clone().into());
        }
        _ => return Err(bad("a resource has either a `text` or a `blob`")),
    }
    kept.insert("type".to_owned(), "resource".into());
    Ok(Value::Object(kept))
}

/// What is said of a resource.
fn described(map: &Map<String, Value>) -> Result<Map<String, Value>, McpError> {
    let mut kept = Map::new();
    for key in ["uri", "name", "title", "description", "mimeType"] {
        if let Some(word) = word(map, key)? {
            kept.insert(key.to_owned(), word.into());
        }
    }
    Ok(kept)
}

fn word(map: &Map<String, Value>, key: &str) -> Result<Option<String>, McpError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) if word.len() <= MAX_WORD => Ok(Some(word.clone())),
        Some(_) => Err(McpError::BadAnswer {
            method: "tools/call",
            why: format!("`{key}` is no text of at most {MAX_WORD} bytes"),
        }),
    }
}

/// How many bytes a base64 text stands for.
fn bytes(data: &str) -> Result<usize, McpError> {
    BASE64_STANDARD.decode(data).map(|bytes| bytes.len()).map_err(|_| bad("data that is no base64"))
}

fn bad(why: &str) -> McpError {
    McpError::BadAnswer { method: "tools/call", why: why.to_owned() }
}
