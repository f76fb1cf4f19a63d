//! What an agent says of a tool call, in its own form.
//!
//! Duty: strict JSON, bounded, into one type. Fields that are not needed are kept as they are, because a rewriting answer
//! must hold all of the tool's input. Trust boundary: all of it may be the adversary's.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::error::AgentError;
use super::kind::Agent;
use crate::json;

/// The longest id of a session that is taken.
const SESSION_MAX: usize = 200;

/// A tool call of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The agent's session; empty if it tells none.
    pub session: String,
    /// The folder that the agent works in.
    pub cwd: PathBuf,
    /// The folder of this one call, if its input names one.
    pub workdir: Option<PathBuf>,
    /// The tool.
    pub tool: String,
    /// The tool's whole input.
    pub input: Map<String, Value>,
    /// How the agent treats permissions, where it says so.
    pub mode: Option<String>,
}

impl ToolCall {
    /// Whether it runs a shell line.
    #[must_use]
    pub fn is_shell(&self, agent: Agent) -> bool {
        agent.shell_tools().contains(&self.tool.as_str())
    }

    /// The line.
    ///
    /// # Errors
    /// There is none that is text.
    pub fn line(&self) -> Result<&str, AgentError> {
        let missing = || AgentError::NoCommand(self.tool.clone());
        let line = self.input.get("command").and_then(Value::as_str).ok_or_else(missing)?;
        // A NUL cannot be part of an argument, and an agent's shell would end the line there.
        if line.contains('\0') { Err(missing()) } else { Ok(line) }
    }

    /// Where the call starts.
    #[must_use]
    pub fn start(&self) -> PathBuf {
        match &self.workdir {
            Some(folder) => without_dots(&self.cwd.join(folder)),
            None => self.cwd.clone(),
        }
    }
}

/// Reads what an agent sent.
///
/// # Errors
/// It is not a tool call that is understood.
pub fn read(agent: Agent, bytes: &[u8]) -> Result<ToolCall, AgentError> {
    let wrong = |why: &str| AgentError::Input(why.to_owned());
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
    let value = json::read(text).map_err(|error| AgentError::Input(error.to_string()))?;
    let Value::Object(object) = value else { return Err(wrong("it is no object")) };
    let text_of = |names: &[&str]| {
        names.iter().find_map(|name| object.get(*name)).and_then(Value::as_str).map(str::to_owned)
    };
    if let Some(event) = text_of(&["hook_event_name", "hookEventName"])
        && !["PreToolUse", "preToolUse", "BeforeTool"].contains(&event.as_str())
    {
        return Err(AgentError::Input(format!(
            "the event {event:?} is not one before a tool call"
        )));
    }
    let tool = text_of(&["tool_name", "toolName"]).ok_or_else(|| wrong("it names no tool"))?;
    let input = match object.get("tool_input").or_else(|| object.get("toolArgs")) {
        Some(Value::Object(input)) => input.clone(),
        // Copilot sends the arguments as JSON within JSON.
        Some(Value::String(text)) if agent == Agent::Copilot => match json::read(text) {
            Ok(Value::Object(input)) => input,
            _ => return Err(wrong("the tool's arguments are no object")),
        },
        None | Some(Value::Null) => Map::new(),
        Some(_) => return Err(wrong("the tool's input is no object")),
    };
    let cwd = text_of(&["cwd"]).filter(|cwd| cwd.starts_with('/'));
    let cwd = cwd.ok_or_else(|| wrong("it names no working folder"))?;
    let session = text_of(&["session_id", "sessionId", "conversation_id"]).unwrap_or_default();
    let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    if session.len() > SESSION_MAX || !session.chars().all(known) {
        return Err(wrong("the session's id has other letters than A-Z a-z 0-9 - _ . :"));
    }
    let workdir = ["workdir", "working_directory", "dir_path", "directory"]
        .iter()
        .find_map(|name| input.get(*name))
        .and_then(Value::as_str)
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from);
    let mode = text_of(&["permission_mode"]);
    Ok(ToolCall { session, cwd: without_dots(Path::new(&cwd)), workdir, tool, input, mode })
}

/// An absolute path with `.` and `..` taken by their names. The folder is opened without following links.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_every_agent_are_read() {
        let claude = r#"{"session_id":"a-1","cwd":"/w","hook_event_name":"PreToolUse","permission_mode":"default",
            "tool_name":"Bash","tool_input":{"command":"ls","timeout":5}}"#;
        let call = read(Agent::Claude, claude.as_bytes()).unwrap();
        assert!(call.is_shell(Agent::Claude) && !call.is_shell(Agent::Gemini));
        assert_eq!((call.line().unwrap(), call.session.as_str()), ("ls", "a-1"));
        assert_eq!(call.input["timeout"], 5);
        let copilot =
            r#"{"sessionId":"s","cwd":"/w","toolName":"bash","toolArgs":"{\"command\":\"ls\"}"}"#;
        assert_eq!(read(Agent::Copilot, copilot.as_bytes()).unwrap().line().unwrap(), "ls");
        let codex = r#"{"cwd":"/w/a/..","tool_name":"Bash","tool_input":{"command":"ls","workdir":"../w/./b"}}"#;
        let call = read(Agent::Codex, codex.as_bytes()).unwrap();
        assert_eq!((call.start(), call.session.as_str()), ("/w/b".into(), ""));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let tool = |rest: &str| format!(r#"{{"cwd":"/w","tool_name":"Bash"{rest}}}"#);
        for text in [
            String::new(),
            "[]".to_owned(),
            "{}".to_owned(),
            r#"{"cwd":"w","tool_name":"Bash"}"#.to_owned(),
            r#"{"cwd":"/w","cwd":"/x","tool_name":"Bash"}"#.to_owned(),
            tool(r#","tool_input":"ls""#),
            tool(r#","tool_input":["ls"]"#),
            tool(r#","session_id":"a b""#),
            tool(r#","hook_event_name":"PostToolUse""#),
        ] {
            assert!(read(Agent::Claude, text.as_bytes()).is_err(), "{text}");
        }
        for input in [r#"{"command":["ls"]}"#, r#"{"command":"a\u0000b"}"#, "{}"] {
            let text = tool(&format!(r#","tool_input":{input}"#));
            assert!(read(Agent::Claude, text.as_bytes()).unwrap().line().is_err(), "{text}");
        }
    }
}
