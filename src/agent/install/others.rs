//! Other hooks for shell calls in an agent's configuration.
//!
//! Duty: find what could change a command beside our hook, so that `status` and `check` can name it. A file that is not
//! understood is named too. Non-goals: hooks that an agent's extensions and plugins bring in places of their own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde::Serialize;

use super::edits::{Paths, hook_command, list};
use super::files::text_of;
use super::jsonc::{self, Kind, Node};
use crate::agent::kind::{Agent, Layer};
use crate::agent::pin::Pin;
use crate::environment::Environment;

/// A hook that is not ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OtherHook {
    /// The file that it stands in.
    pub path: PathBuf,
    /// The command that it runs, or what it is.
    pub what: String,
}

/// The other hooks for shell calls that an agent has in its layers, with those of the workspace `here`.
#[must_use]
pub fn other_hooks(agent: Agent, pin: &Pin, home: &Path, here: Option<&Path>) -> Vec<OtherHook> {
    let environment: Environment = pin.variables.clone().into_iter().collect();
    let workspace = pin.workspace.as_deref().or(here);
    let paths = Paths { home, environment: &environment, workspace };
    let layers = [Layer::User, Layer::Project, Layer::Managed];
    let known = layers.into_iter().filter_map(|layer| paths.file(agent, layer));
    let own = pin.files.iter().map(|edited| edited.path.clone());
    let files: BTreeSet<PathBuf> = own.chain(known).flat_map(|path| beside(agent, &path)).collect();
    let ours = hook_command(&pin.program, agent);
    let mut found = BTreeSet::new();
    for path in files {
        let commands = match text_of(&path) {
            Ok(None) => continue,
            Ok(Some(text)) => commands(agent, &path, &text),
            Err(error) => vec![format!("it cannot be read: {error}")],
        };
        let others = commands.into_iter().filter(|command| *command != ours);
        found.extend(others.map(|what| OtherHook { path: path.clone(), what }));
    }
    found.into_iter().collect()
}

/// The files of a layer that can hold hooks: `path` is the one that `install` writes.
fn beside(agent: Agent, path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(path);
    match agent {
        Agent::Claude => vec![path.to_owned(), folder.join("settings.local.json")],
        Agent::Codex => vec![path.to_owned(), folder.join("hooks.json")],
        Agent::Copilot => ending_in(folder, &["json"]),
        Agent::OpenCode => {
            let above = folder.parent().unwrap_or(folder);
            let mut files = ending_in(folder, &["js", "ts", "mjs"]);
            files.extend(ending_in(&above.join("plugin"), &["js", "ts", "mjs"]));
            files.extend([above.join("opencode.json"), above.join("opencode.jsonc")]);
            files
        }
        Agent::Gemini | Agent::Qwen | Agent::Cursor => vec![path.to_owned()],
    }
}

/// The files of a folder with these endings.
fn ending_in(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|it| endings.iter().any(|end| it == *end)))
        .collect()
}

/// What a file's hooks run for shell calls.
fn commands(agent: Agent, path: &Path, text: &str) -> Vec<String> {
    let is_json = path.extension().is_some_and(|it| it == "json" || it == "jsonc");
    match agent {
        Agent::OpenCode if !is_json => {
            let ours = path.file_name().is_some_and(|name| name == "runner.js");
            if ours { Vec::new() } else { vec!["a plugin".to_owned()] }
        }
        Agent::Codex if !is_json => of_toml(agent, text),
        _ => of_json(agent, text),
    }
}

fn of_json(agent: Agent, text: &str) -> Vec<String> {
    let Ok(root) = jsonc::parse(text) else { return vec![not_understood()] };
    if agent == Agent::OpenCode {
        let plugins = root.member("plugin").map(Node::items).unwrap_or_default().iter();
        return plugins.map(|item| format!("the plugin {}", word(item))).collect();
    }
    let entries = list(agent).iter().try_fold(&root, |node, key| node.member(key));
    let entries = entries.map(Node::items).unwrap_or_default().iter();
    let for_shell = entries.filter(|entry| match entry.member("matcher") {
        Some(Node { kind: Kind::Text(matcher), .. }) => meets(agent, matcher),
        _ => true,
    });
    for_shell
        .flat_map(|entry| match entry.member("hooks") {
            Some(hooks) => hooks.items().iter().map(command_of).collect(),
            None => vec![command_of(entry)],
        })
        .collect()
}

fn of_toml(agent: Agent, text: &str) -> Vec<String> {
    let Ok(table) = text.parse::<toml::Table>() else { return vec![not_understood()] };
    let groups = table.get("hooks").and_then(|hooks| hooks.get("PreToolUse"));
    let groups = groups.and_then(toml::Value::as_array).into_iter().flatten();
    let for_shell = groups.filter(|group| {
        group.get("matcher").and_then(toml::Value::as_str).is_none_or(|it| meets(agent, it))
    });
    for_shell
        .flat_map(|group| group.get("hooks").and_then(toml::Value::as_array).into_iter().flatten())
        .map(|hook| {
            let command = hook.get("command").and_then(toml::Value::as_str);
            command.map_or_else(not_understood, str::to_owned)
        })
        .collect()
}

/// Whether a matcher means shell calls; one that is not understood does.
fn meets(agent: Agent, matcher: &str) -> bool {
    let all = matcher.is_empty() || matcher == "*";
    all || Regex::new(matcher)
        .map_or(true, |regex| agent.shell_tools().iter().any(|tool| regex.is_match(tool)))
}

/// The command of one hook; Copilot CLI has one for each shell.
fn command_of(hook: &Node) -> String {
    let keys = ["command", "bash", "url", "prompt"];
    let found = keys.iter().find_map(|key| hook.member(key));
    found.map_or_else(not_understood, word)
}

fn word(node: &Node) -> String {
    match &node.kind {
        Kind::Text(text) => text.clone(),
        _ => not_understood(),
    }
}

fn not_understood() -> String {
    "something that is not understood".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hooks_for_shell_calls_are_named() {
        let text = r#"{"hooks": {"PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "one"}]},
            {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "two"}]},
            {"hooks": [{"type": "command", "command": "three"}]},
            {"matcher": "(", "hooks": [{"type": "command"}]}
        ]}}"#;
        let found = of_json(Agent::Claude, text);
        assert_eq!(found, ["one", "three", "something that is not understood"]);
        assert_eq!(of_json(Agent::Claude, "{").len(), 1);
        assert!(of_json(Agent::Claude, "{}").is_empty());
        let text = "[[hooks.PreToolUse]]\nmatcher = \"^Bash$\"\n[[hooks.PreToolUse.hooks]]\ncommand = \"x\"\n\
                    [[hooks.PreToolUse]]\nmatcher = \"^apply_patch$\"\n[[hooks.PreToolUse.hooks]]\ncommand = \"y\"\n";
        assert_eq!(of_toml(Agent::Codex, text), ["x"]);
        let text = r#"{"hooks": {"preToolUse": [{"type": "command", "bash": "z"}]}}"#;
        assert_eq!(of_json(Agent::Copilot, text), ["z"]);
    }
}
