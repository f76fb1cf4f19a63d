//! What the agents' clients say to a model, and what a model says back: four dialects, streamed where the client asks.
//!
//! | dialect | path | agents |
//! | --- | --- | --- |
//! | Anthropic messages | `…/messages` | Claude Code |
//! | OpenAI responses | `…/responses` | Codex |
//! | OpenAI chat | `…/chat/completions` | Copilot, OpenCode, Qwen Code |
//! | Gemini | `…:generateContent`, `…:streamGenerateContent` | Gemini CLI |

use serde_json::{Value, json};

use super::stub::Reply;

/// The tools that run a shell line, by their names in requests.
const SHELLS: [&str; 7] =
    ["Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell", "local_shell"];

/// A request that was read.
pub(super) struct Talk {
    dialect: Dialect,
    /// The shell tool, if the request offers one.
    shell: Option<String>,
    /// What is told of the commands so far.
    pub results: Vec<String>,
    streamed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Messages,
    Responses,
    Chat,
    Gemini,
    /// A count of tokens.
    Count,
    /// Anything else: lists of models, reports.
    Other,
}

/// Reads a request.
pub(super) fn read(path: &str, asked: Value) -> Talk {
    let path = path.split('?').next().unwrap_or_default();
    let dialect = match path {
        _ if path.ends_with("count_tokens") || path.ends_with(":countTokens") => Dialect::Count,
        _ if path.ends_with("/messages") => Dialect::Messages,
        _ if path.ends_with("/responses") => Dialect::Responses,
        _ if path.ends_with("/chat/completions") => Dialect::Chat,
        _ if path.contains("enerateContent") => Dialect::Gemini,
        _ => Dialect::Other,
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mut names, mut results) = (Vec::new(), Vec::new());
    for tool in list(&asked["tools"]) {
        let declared = list(&tool["functionDeclarations"]);
        let all = [&tool["name"], &tool["function"]["name"], &tool["type"]];
        names.extend(all.into_iter().chain(declared.iter().map(|it| &it["name"])).filter_map(text));
    }
    match dialect {
        Dialect::Messages => {
            for part in list(&asked["messages"]).iter().flat_map(|it| list(&it["content"])) {
                if part["type"] == "tool_result" {
                    results.push(texts(&part["content"]));
                }
            }
        }
        Dialect::Responses => {
            for item in list(&asked["input"]) {
                if text(&item["type"]).is_some_and(|kind| kind.ends_with("call_output")) {
                    results.push(texts(&item["output"]));
                }
            }
        }
        Dialect::Chat => {
            for message in list(&asked["messages"]).iter().filter(|it| it["role"] == "tool") {
                results.push(texts(&message["content"]));
            }
        }
        Dialect::Gemini => {
            for part in list(&asked["contents"]).iter().flat_map(|it| list(&it["parts"])) {
                if part["functionResponse"].is_object() {
                    results.push(texts(&part["functionResponse"]["response"]));
                }
            }
        }
        Dialect::Count | Dialect::Other => {}
    }
    let shell = SHELLS.into_iter().find(|shell| names.iter().any(|name| name == shell));
    let streamed = asked["stream"] == true || path.contains("stream");
    Talk { dialect, shell: shell.map(str::to_owned), results, streamed }
}

impl Talk {
    /// The next of these commands, or the end.
    pub fn reply(&self, commands: &[String]) -> Reply {
        let at = self.results.len();
        let next =
            self.shell.as_deref().and_then(|shell| Some((shell, commands.get(at)?.as_str())));
        match self.dialect {
            Dialect::Messages => self.messages(next, at),
            Dialect::Responses => responses(next, at),
            Dialect::Chat => self.chat(next, at),
            Dialect::Gemini => self.gemini(next, at),
            Dialect::Count => plain(&json!({ "input_tokens": 10, "totalTokens": 10 })),
            Dialect::Other => plain(&json!({ "object": "list", "models": [], "data": [
                { "id": "stub-model", "object": "model", "created": 0, "owned_by": "runner" },
            ] })),
        }
    }

    fn messages(&self, next: Option<(&str, &str)>, at: usize) -> Reply {
        let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
        let mut message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "stub-model", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        let (empty, whole, delta, why) = match next {
            Some((shell, command)) => {
                let input = json!({ "command": command, "description": "check" });
                let block = |input: &Value| json!({ "type": "tool_use", "id": format!("toolu_{at}"), "name": shell, "input": input });
                let delta =
                    json!({ "type": "input_json_delta", "partial_json": input.to_string() });
                (block(&json!({})), block(&input), delta, "tool_use")
            }
            None => (
                json!({ "type": "text", "text": "" }),
                json!({ "type": "text", "text": "done" }),
                json!({ "type": "text_delta", "text": "done" }),
                "end_turn",
            ),
        };
        if !self.streamed {
            (message["content"], message["stop_reason"]) = (json!([whole]), json!(why));
            return plain(&message);
        }
        events(&[
            json!({ "type": "message_start", "message": message }),
            json!({ "type": "content_block_start", "index": 0, "content_block": empty }),
            json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": why, "stop_sequence": null }, "usage": usage }),
            json!({ "type": "message_stop" }),
        ])
    }

    fn chat(&self, next: Option<(&str, &str)>, at: usize) -> Reply {
        let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
        let (delta, why) = match next {
            Some((shell, command)) => {
                let mut input = json!({ "command": command, "description": "check" });
                if shell == "run_shell_command" {
                    input["is_background"] = json!(false);
                }
                let call = json!({
                    "index": 0, "id": format!("call_{at}"), "type": "function",
                    "function": { "name": shell, "arguments": input.to_string() },
                });
                (
                    json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
                    "tool_calls",
                )
            }
            None => (json!({ "role": "assistant", "content": "done" }), "stop"),
        };
        let whole = |object: &str, choice: Value| {
            json!({ "id": "c1", "object": object, "created": 0, "model": "stub-model",
                    "choices": [choice], "usage": usage })
        };
        if !self.streamed {
            let choice = json!({ "index": 0, "message": delta, "finish_reason": why });
            return plain(&whole("chat.completion", choice));
        }
        let chunk = "chat.completion.chunk";
        let mut reply = events(&[
            whole(chunk, json!({ "index": 0, "delta": delta, "finish_reason": null })),
            whole(chunk, json!({ "index": 0, "delta": {}, "finish_reason": why })),
        ]);
        reply.body.push_str("data: [DONE]\n\n");
        reply
    }

    fn gemini(&self, next: Option<(&str, &str)>, at: usize) -> Reply {
        let part = match next {
            Some((shell, command)) => json!({ "functionCall": {
                "id": format!("f{at}"), "name": shell, "args": { "command": command, "description": "check" },
            } }),
            None => json!({ "text": "done" }),
        };
        let answer = json!({
            "candidates": [{
                "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0,
            }],
            "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 },
        });
        if self.streamed { events(&[answer]) } else { plain(&answer) }
    }
}

fn responses(next: Option<(&str, &str)>, at: usize) -> Reply {
    let item = match next {
        Some((shell, command)) => {
            let input = match shell {
                "exec_command" => json!({ "cmd": command }),
                "shell_command" => json!({ "command": command }),
                _ => json!({ "command": ["bash", "-lc", command] }),
            };
            json!({ "type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}"),
                    "name": shell, "arguments": input.to_string() })
        }
        None => json!({ "type": "message", "role": "assistant", "id": "m1",
                        "content": [{ "type": "output_text", "text": "done", "annotations": [] }] }),
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
    events(&[
        json!({ "type": "response.created", "response": { "id": "r1" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": "r1", "usage": usage, "output": [item] } }),
    ])
}

fn plain(value: &Value) -> Reply {
    Reply { kind: "application/json", body: value.to_string() }
}

/// Events of a stream; each is named by its type, if it has one.
fn events(events: &[Value]) -> Reply {
    let event = |event: &Value| {
        let name = text(&event["type"]).map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {event}\n\n")
    };
    Reply { kind: "text/event-stream", body: events.iter().map(event).collect() }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// All texts in a value.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => members.values().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_one_after_the_other_and_then_the_end() {
        let commands = ["one".to_owned(), "two".to_owned()];
        let tools = json!([{ "name": "Bash" }]);
        let result = |text: &str| json!({ "type": "tool_result", "content": [{ "text": text }] });
        let ask = |parts: Vec<Value>| {
            let asked =
                json!({ "tools": tools, "stream": true, "messages": [{ "content": parts }] });
            read("/v1/messages?beta=true", asked)
        };
        assert!(ask(vec![]).reply(&commands).body.contains("one"));
        let second = ask(vec![result("1")]);
        assert!(second.reply(&commands).body.contains("two"));
        let last = ask(vec![result("1"), result("2")]);
        assert_eq!(last.results, ["1", "2"]);
        assert!(last.reply(&commands).body.contains("end_turn"));
        // A request without the tool is beside the talk.
        let title = read("/v1/messages", json!({ "messages": [] })).reply(&commands);
        assert!(title.body.contains("done") && title.kind == "application/json");
    }
}
