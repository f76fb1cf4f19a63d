//! What a line of a server says: an answer, a question, or a remark.

use serde_json::{Map, Value, json};

use super::error::McpError;

/// Longest text of a server's own error that is kept.
const MAX_WORDS: usize = 8 << 10;

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// An answer to the question with this number.
    Answer {
        /// Which question.
        id: u64,
        /// The result, or the server's error.
        result: Result<Value, (i64, String)>,
    },
    /// A question of the server's own.
    Question {
        /// As the server writes it, to be answered with.
        id: Value,
        /// What it wants.
        method: String,
    },
    /// Something that wants no answer.
    Remark,
}

impl Message {
    /// Reads a line.
    pub fn read(value: Value) -> Result<Self, McpError> {
        let wrong = |why: &str| Err(McpError::NotMessage(why.to_owned()));
        let Value::Object(mut map) = value else { return wrong("it is no object") };
        if map.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return wrong("`jsonrpc` is not \"2.0\"");
        }
        match (map.remove("method"), map.remove("id")) {
            (Some(Value::String(_)), None) => Ok(Self::Remark),
            (Some(Value::String(method)), Some(id)) if id.is_string() || id.is_number() => {
                Ok(Self::Question { id, method })
            }
            (Some(_), _) => wrong("`method` is no text, or `id` neither text nor number"),
            (None, Some(id)) => match id.as_u64() {
                Some(id) => Ok(Self::Answer { id, result: result(&mut map)? }),
                // Our questions have numbers.
                None => Err(McpError::NotAsked),
            },
            (None, None) => wrong("it has neither `method` nor `id`"),
        }
    }
}

fn result(map: &mut Map<String, Value>) -> Result<Result<Value, (i64, String)>, McpError> {
    let wrong = |why: &str| Err(McpError::NotMessage(why.to_owned()));
    match (map.remove("result"), map.remove("error")) {
        (Some(result), None) => Ok(Ok(result)),
        (None, Some(Value::Object(error))) => {
            let number = error.get("code").and_then(Value::as_i64);
            let words = error.get("message").and_then(Value::as_str);
            match (number, words) {
                (Some(number), Some(words)) => Ok(Err((number, cut(words)))),
                _ => wrong("an error has a `code` and a `message`"),
            }
        }
        _ => wrong("an answer has either a `result` or an `error`"),
    }
}

/// The beginning of a text; that something is left out is said.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_WORDS).last() {
        Some(end) if text.len() > MAX_WORDS => {
            format!("{}\n[... {} bytes left out ...]", &text[..end], text.len() - end)
        }
        _ => text.to_owned(),
    }
}

/// A question of ours.
pub(super) fn question(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A remark of ours.
pub(super) fn remark(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

/// Our answer to a server's question: that we are there, or that we do nothing of the kind.
pub(super) fn reply(id: &Value, method: &str) -> Value {
    match method {
        "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        _ => json!({
            "jsonrpc": "2.0", "id": id,
            "error": { "code": -32601, "message": "this client answers nothing but ping" },
        }),
    }
}
