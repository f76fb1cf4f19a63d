//! Servers of the Model Context Protocol: programs that offer tools.
//!
//! Duty: what a file may say of a server, read strictly, and which of several files counts. Non-goals: starting one; a
//! server is a command that a policy decides about. Trust boundary: who can define a server can name a program to
//! start, so a workspace's file cannot; all it can say is that a server is not to be used there.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use runner_policy::finding::{At, Report};
use runner_policy::limits::Unit;
use runner_policy::variables;
use runner_policy::yaml::{Entry, Node};

use super::effective::Sourced;
use super::layer::Layer;
use crate::policy_files::Choice;

/// The section of servers.
pub(super) const MCP: &str = "mcp";
/// Its only key.
pub(super) const SERVERS: &str = "servers";
/// What stands between the name of a server and that of its tool.
pub const BETWEEN: &str = "__";

/// Longest name of a server: with a tool's it must fit into one name.
const MAX_NAME: usize = 32;
/// Most servers in one file.
const MAX_SERVERS: usize = 64;
/// Most words of a command, and most entries of another list.
const MAX_ITEMS: usize = 256;
/// Longest word of a command, value of a variable, or name of a tool.
const MAX_WORD: usize = 4096;

/// What may be said of a server.
pub(super) const KEYS: [&str; 6] = ["enabled", "command", "env", "policy", "tools", "timeout"];

/// A name of letters, digits, `_` and `-`, 1 to 32 characters, that begins with a letter or digit and has no `__`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// A word that cannot name a server.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error(
    "{0:?} is no name of a server: 1 to {MAX_NAME} letters, digits, `_` and `-`, beginning with a \
     letter or digit, without `{BETWEEN}` and not ending in `_`"
)]
pub struct ServerNameError(String);

/// What a server is started with, and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables that it is given; the policy must accept them.
    pub env: BTreeMap<String, String>,
    /// The policy that decides about it, instead of the call's.
    pub policy: Option<String>,
    /// The tools that are taken, by the server's own names; all if `None`.
    pub tools: Option<Vec<String>>,
    /// How long it may run for one call, in milliseconds.
    pub timeout: Option<u64>,
}

/// What all files together say of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// What it is, by the strongest layer that defines it. A definition is taken whole: no layer changes a part of
    /// another layer's.
    pub server: Option<Sourced<Server>>,
    /// Whether it may be used, by the strongest layer that says so.
    pub enabled: Option<Sourced<bool>>,
}

/// What one file says of one name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OfServer {
    pub server: Option<(Server, At)>,
    pub enabled: Option<(bool, At)>,
}

impl ServerName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerName {
    type Err = ServerNameError;

    fn from_str(word: &str) -> Result<Self, ServerNameError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let begins = word.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let apart = !word.contains(BETWEEN) && !word.ends_with('_');
        if begins && apart && word.len() <= MAX_NAME && word.bytes().all(plain) {
            Ok(Self(word.to_owned()))
        } else {
            Err(ServerNameError(word.chars().take(MAX_NAME).collect()))
        }
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for ServerName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl ServerSettings {
    /// Whether it may be used: defined, and not switched off.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.server.is_some() && self.enabled.as_ref().is_none_or(|enabled| enabled.value)
    }
}

/// Reads the section.
pub(super) fn read(
    layer: Layer,
    node: &Node,
    report: &mut Report<'_>,
) -> Vec<(ServerName, OfServer)> {
    let mut servers = Vec::new();
    for section in report.keys(node, &[SERVERS]).unwrap_or_default() {
        if section.key != SERVERS {
            continue;
        }
        let entries = report.map(&section.value).unwrap_or_default();
        if entries.len() > MAX_SERVERS {
            report.add("too_large", section.at, format!("more than {MAX_SERVERS} servers"), None);
            continue;
        }
        for entry in entries {
            match entry.key.parse::<ServerName>() {
                Ok(name) => servers.push((name, server(layer, entry, report))),
                Err(error) => report.add("bad_name", entry.at, error.to_string(), None),
            }
        }
    }
    servers
}

fn server(layer: Layer, entry: &Entry, report: &mut Report<'_>) -> OfServer {
    let entries = report.keys(&entry.value, &KEYS).unwrap_or_default();
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let enabled = find("enabled").and_then(|it| Some((switch(layer, it, report)?, it.at)));
    let defines = entries.iter().find(|it| it.key != "enabled" && KEYS.contains(&it.key.as_str()));
    let Some(defines) = defines else {
        if enabled.is_none() && find("enabled").is_none() {
            let help = format!("write `{}: {{ command: [program, argument] }}`", entry.key);
            report.add("missing_key", entry.at, "`command` is missing", help);
        }
        return OfServer { server: None, enabled };
    };
    if layer < Layer::User {
        let message = format!(
            "`{MCP}.{SERVERS}.{}.{}` cannot be set in the {} configuration: a repository could start programs by being there",
            entry.key,
            defines.key,
            layer.word()
        );
        let help = "define the server in your own configuration; a project can only write `enabled: false`";
        report.add("wrong_layer", defines.at, message, help.to_owned());
        return OfServer { server: None, enabled };
    }
    let command = match find("command") {
        Some(it) => command(&it.value, report),
        None => {
            let help = "write `command: [program, argument]`".to_owned();
            report.add("missing_key", entry.at, "`command` is missing", help);
            None
        }
    };
    let env = find("env").map_or_else(|| Some(BTreeMap::new()), |it| env(&it.value, report));
    let policy = find("policy").and_then(|it| policy(&it.value, report));
    let tools = find("tools").and_then(|it| tools(&it.value, report));
    let timeout = find("timeout").and_then(|it| time(&it.value, report));
    let server = command.zip(env).map(|(command, env)| {
        let server = Server { command, env, policy, tools, timeout };
        (server, find("command").map_or(entry.at, |it| it.at))
    });
    OfServer { server, enabled }
}

fn switch(layer: Layer, entry: &Entry, report: &mut Report<'_>) -> Option<bool> {
    let value = report.flag(&entry.value)?;
    if value && layer == Layer::Project {
        let help =
            "switch it on in your own configuration; `runner config path` says where that is";
        let message = "a project can only switch servers off";
        report.add("project_loosens", entry.value.at, message, help.to_owned());
        return None;
    }
    Some(value)
}

fn command(node: &Node, report: &mut Report<'_>) -> Option<Vec<String>> {
    let words = bounded(node, "command", report)?;
    let Some(program) = words.first() else {
        let help = "write `command: [program, argument]`".to_owned();
        report.add("empty", node.at, "the command has no program", help);
        return None;
    };
    if program.is_empty() {
        report.add("empty", node.at, "the program has no name", None);
        return None;
    }
    Some(words)
}

/// A list of words that a process can be given.
fn bounded(node: &Node, what: &str, report: &mut Report<'_>) -> Option<Vec<String>> {
    let items = report.list(node)?;
    if items.len() > MAX_ITEMS {
        let message = format!("more than {MAX_ITEMS} entries in `{what}`");
        report.add("too_large", node.at, message, None);
        return None;
    }
    let mut words = Vec::new();
    for item in items {
        // A word of a command may look like a number to some reader of YAML: `--port, 8080`.
        let text = report.figure(item)?;
        if text.len() > MAX_WORD || text.contains('\0') {
            let message =
                format!("a word of `{what}` is longer than {MAX_WORD} bytes or has a NUL");
            report.add("bad_value", item.at, message, None);
            return None;
        }
        words.push(text.to_owned());
    }
    Some(words)
}

fn env(node: &Node, report: &mut Report<'_>) -> Option<BTreeMap<String, String>> {
    let entries = report.map(node)?;
    if entries.len() > MAX_ITEMS {
        report.add("too_large", node.at, format!("more than {MAX_ITEMS} variables"), None);
        return None;
    }
    let mut env = BTreeMap::new();
    for entry in entries {
        if !variables::is_name(&entry.key) {
            let help = "letters, digits and `_`, beginning with a letter or `_`".to_owned();
            report.add("bad_name", entry.at, format!("`{}` names no variable", entry.key), help);
            return None;
        }
        let value = report.figure(&entry.value)?;
        if value.len() > MAX_WORD || value.contains('\0') {
            // It may be a secret.
            let message = format!("the value is longer than {MAX_WORD} bytes or has a NUL");
            report.add_hidden("bad_value", entry.value.at, message, None);
            return None;
        }
        env.insert(entry.key.clone(), value.to_owned());
    }
    Some(env)
}

/// The name of a policy.
pub(super) fn policy(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let text = report.text(node)?;
    match text.parse::<Choice>() {
        Ok(Choice::Named(name)) => Some(name),
        // A path would mean another file wherever the caller stands.
        Ok(Choice::File(_) | Choice::Default | Choice::Configured(_)) | Err(_) => {
            let help = "the name of a policy, such as `develop`; `runner policy list` shows them";
            let message = format!("`{text}` names no policy");
            report.add("bad_name", node.at, message, help.to_owned());
            None
        }
    }
}

fn tools(node: &Node, report: &mut Report<'_>) -> Option<Vec<String>> {
    bounded(node, "tools", report)
}

fn time(node: &Node, report: &mut Report<'_>) -> Option<u64> {
    let text = report.figure(node)?;
    match Unit::Time.parse(text) {
        Ok(figure) => Some(figure),
        Err(form) => {
            let message = format!("`{text}` is not a value of `timeout`");
            report.add("bad_figure", node.at, message, format!("write {form}"));
            None
        }
    }
}

/// What the section is, for editors.
pub(super) fn schema() -> serde_json::Value {
    let words = |about: &str| serde_json::json!({ "type": "array", "items": { "type": ["string", "number", "boolean"] }, "maxItems": MAX_ITEMS, "description": about });
    let mut command = words("the program and its arguments; the policy decides about them");
    command["minItems"] = 1.into();
    serde_json::json!({
        "type": "object",
        "additionalProperties": false,
        "description": "servers of the Model Context Protocol",
        "properties": { SERVERS: {
            "type": "object",
            "description": "servers by name; a project's file can only say `enabled: false`",
            "propertyNames": { "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$" },
            "additionalProperties": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "enabled": { "type": "boolean", "description": "whether it can be used" },
                    "command": command,
                    "env": {
                        "type": "object",
                        "additionalProperties": { "type": ["string", "number", "boolean"] },
                        "description": "variables that it is given; the policy must accept them",
                    },
                    "policy": {
                        "type": "string",
                        "description": "the policy that decides about the server, by name (default: the call's)",
                    },
                    "tools": words("the tools that are taken, by the server's own names (default: all)"),
                    "timeout": {
                        "type": "string", "pattern": "^[1-9][0-9]*(ms|s|m|h)$",
                        "description": "how long it may run for one call; the policy's may be shorter",
                    },
                },
            },
        } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_and_its_tool_cannot_be_mistaken_for_another() {
        for word in ["files", "a", "A-1", "my_server", &"x".repeat(32)] {
            assert_eq!(word.parse::<ServerName>().map(|it| it.to_string()), Ok(word.to_owned()));
        }
        for word in ["", "-a", "_a", "a__b", "a_", "a b", "a/b", "ä", "a\n", &"x".repeat(33)] {
            assert!(word.parse::<ServerName>().is_err(), "{word:?}");
        }
    }
}
