//! Where each agent has its configuration, and what is written into it.
//!
//! | agent | user | project | managed |
//! | --- | --- | --- | --- |
//! | Claude Code | `~/.claude/settings.json` | `.claude/settings.json` | `/etc/claude-code/managed-settings.json` |
//! | Codex | `~/.codex/config.toml` | `.codex/config.toml` | `/etc/codex/config.toml` |
//! | Gemini | `~/.gemini/settings.json` | `.gemini/settings.json` | `/etc/gemini-cli/settings.json` |
//! | Copilot | `~/.copilot/hooks/runner.json` | `.github/hooks/runner.json` | - |
//! | OpenCode | `~/.config/opencode/plugins/runner.js` | `.opencode/plugins/runner.js` | - |
//! | Qwen Code | `~/.qwen/settings.json` | `.qwen/settings.json` | `/etc/qwen-code/settings.json` |
//! | Cursor | `~/.cursor/hooks.json` | `.cursor/hooks.json` | `/etc/cursor/hooks.json` |

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::codex;
use super::files::{Change, real, text_of};
use super::jsonc::{self, Wrong};
use super::plan::Request;
use crate::agent::error::AgentError;
use crate::agent::kind::{Agent, Layer};
use crate::agent::pin::{Edited, Pin};
use crate::agent::quote::quoted;
use crate::environment::Environment;

/// Seconds that an agent gives its hook: more than the hook gives itself.
pub(super) const SECONDS: u64 = 10;

/// The folders that an agent's configurations lie in.
pub(super) struct Paths<'a> {
    pub home: &'a Path,
    pub environment: &'a Environment,
    pub workspace: Option<&'a Path>,
}

impl Paths<'_> {
    /// The file of an agent in a layer; `None` if it has none there.
    pub fn file(&self, agent: Agent, layer: Layer) -> Option<PathBuf> {
        let own = |variable: &str, below: &str| {
            let named = self.environment.get(variable).map(PathBuf::from);
            named.filter(|it| it.is_absolute()).unwrap_or_else(|| self.home.join(below))
        };
        Some(match layer {
            Layer::User => match agent {
                Agent::Claude => own("CLAUDE_CONFIG_DIR", ".claude").join("settings.json"),
                Agent::Codex => own("CODEX_HOME", ".codex").join("config.toml"),
                Agent::Gemini => self.home.join(".gemini/settings.json"),
                Agent::Copilot => own("COPILOT_HOME", ".copilot").join("hooks/runner.json"),
                Agent::OpenCode => {
                    own("XDG_CONFIG_HOME", ".config").join("opencode/plugins/runner.js")
                }
                Agent::Qwen => self.home.join(".qwen/settings.json"),
                Agent::Cursor => self.home.join(".cursor/hooks.json"),
            },
            Layer::Project => self.workspace?.join(match agent {
                Agent::Claude => ".claude/settings.json",
                Agent::Codex => ".codex/config.toml",
                Agent::Gemini => ".gemini/settings.json",
                Agent::Copilot => ".github/hooks/runner.json",
                Agent::OpenCode => ".opencode/plugins/runner.js",
                Agent::Qwen => ".qwen/settings.json",
                Agent::Cursor => ".cursor/hooks.json",
            }),
            Layer::Managed => PathBuf::from(match agent {
                Agent::Claude => "/etc/claude-code/managed-settings.json",
                Agent::Codex => "/etc/codex/config.toml",
                Agent::Gemini => "/etc/gemini-cli/settings.json",
                Agent::Qwen => "/etc/qwen-code/settings.json",
                Agent::Cursor => "/etc/cursor/hooks.json",
                Agent::Copilot | Agent::OpenCode => return None,
            }),
        })
    }
}

/// The command line of the hook.
pub(super) fn hook_command(program: &Path, agent: Agent) -> String {
    format!("{} hook {}", quoted(&program.to_string_lossy()), agent.word())
}

/// The changes of an agent's files.
pub(super) fn changes(request: &Request, paths: &Paths<'_>) -> Result<Vec<Change>, AgentError> {
    let (agent, layer) = (request.agent, request.layer);
    let path = paths.file(agent, layer).ok_or(AgentError::NoLayer(agent, layer))?;
    let path = real(&path, layer)?;
    let before = text_of(&path)?;
    let command = hook_command(&request.program, agent);
    let text = before.clone().unwrap_or_default();
    let after = match agent {
        Agent::Codex => codex::with_hook(&text, &path, &command, layer)?,
        Agent::OpenCode => own_file(&before, &path, plugin(&request.program))?,
        Agent::Copilot => {
            let hooks =
                json!({ "version": 1, "hooks": { "preToolUse": [entry(agent, &command)] } });
            own_file(&before, &path, format!("{hooks:#}\n"))?
        }
        Agent::Claude | Agent::Gemini | Agent::Qwen | Agent::Cursor => {
            let text = if text.trim().is_empty() { "{}\n".to_owned() } else { text };
            let wrong = |text: &str, wrong: Wrong| wrong_at(&path, text, wrong);
            refuse_ours(&path, &text, agent, &command)?;
            let mut after = jsonc::append(&text, list(agent), &entry(agent, &command))
                .map_err(|error| wrong(&text, error))?;
            if agent == Agent::Cursor && !after.contains("\"version\"") {
                let versioned = jsonc::set(&after, &[], "version", &json!(1));
                after = versioned.map_err(|error| wrong(&after, error))?;
            }
            for rule in &request.rules.deny {
                let root = jsonc::parse(&after).map_err(|error| wrong(&after, error))?;
                let there = DENY.iter().try_fold(&root, |node, key| node.member(key));
                let known = there.is_some_and(|list| {
                    list.items().iter().any(|item| item.kind == jsonc::Kind::Text(rule.clone()))
                });
                if !known {
                    after = jsonc::append(&after, DENY, &json!(rule))
                        .map_err(|error| wrong(&after, error))?;
                }
            }
            after
        }
    };
    Ok(vec![Change { path, before, after, rules: request.rules.deny.clone() }])
}

/// The list of Claude Code's denials.
const DENY: &[&str] = &["permissions", "deny"];

/// The list that an agent's hooks are in.
pub(super) fn list(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Gemini => &["hooks", "BeforeTool"],
        Agent::Copilot | Agent::Cursor => &["hooks", "preToolUse"],
        Agent::Claude | Agent::Codex | Agent::OpenCode | Agent::Qwen => &["hooks", "PreToolUse"],
    }
}

/// The entry of the hook, in its fail-closed form where the agent has one.
fn entry(agent: Agent, command: &str) -> Value {
    match agent {
        Agent::Claude => json!({ "matcher": "Bash", "hooks": [{
            "type": "command", "command": command, "timeout": SECONDS, "onFailure": "block",
        }] }),
        // Milliseconds.
        Agent::Gemini | Agent::Qwen => json!({ "matcher": "run_shell_command", "hooks": [{
            "type": "command", "name": "runner", "command": command, "timeout": SECONDS * 1000,
        }] }),
        Agent::Copilot => json!({ "type": "command", "bash": command, "timeoutSec": SECONDS }),
        Agent::Cursor => json!({
            "matcher": "Shell", "command": command, "failClosed": true, "timeout": SECONDS,
        }),
        // These are written in other ways.
        Agent::Codex | Agent::OpenCode => Value::Null,
    }
}

/// A file that is ours alone.
fn own_file(before: &Option<String>, path: &Path, text: String) -> Result<String, AgentError> {
    match before {
        None => Ok(text),
        Some(_) => Err(AgentError::Config {
            path: path.to_owned(),
            line: 1,
            column: 1,
            why: "it is there already; remove it first".to_owned(),
        }),
    }
}

/// A hook of ours that no pin knows would answer in two ways.
fn refuse_ours(path: &Path, text: &str, agent: Agent, command: &str) -> Result<(), AgentError> {
    let root = jsonc::parse(text).map_err(|error| wrong_at(path, text, error))?;
    let items = list(agent).iter().try_fold(&root, |node, key| node.member(key));
    let ours = items.map(jsonc::Node::items).unwrap_or_default().iter();
    match ours.into_iter().find(|item| item.mentions(command)) {
        None => Ok(()),
        Some(item) => Err(wrong_at(
            path,
            text,
            Wrong {
                at: item.start,
                why: "a hook of runner stands here already; remove it first".to_owned(),
            },
        )),
    }
}

pub(super) fn wrong_at(path: &Path, text: &str, wrong: Wrong) -> AgentError {
    let (line, column) = jsonc::place(text, wrong.at);
    AgentError::Config { path: path.to_owned(), line, column, why: wrong.why }
}

/// OpenCode's plugin: it asks the hook, and throws where there is no answer that is understood.
fn plugin(program: &Path) -> String {
    let program = Value::from(program.to_string_lossy().into_owned());
    format!(
        r#"// Written by `runner agent install opencode`; `runner agent uninstall opencode` removes it.
import {{ spawnSync }} from "node:child_process"

const program = {program}

export const Runner = async ({{ directory }}) => ({{
  "tool.execute.before": async (input, output) => {{
    if (input.tool !== "bash") return
    const call = {{
      session_id: input.sessionID ?? "",
      cwd: directory,
      tool_name: input.tool,
      tool_input: output.args,
    }}
    const hook = spawnSync(program, ["hook", "opencode"], {{
      input: JSON.stringify(call),
      timeout: {milliseconds},
      maxBuffer: 16 * 1024 * 1024,
      encoding: "utf8",
    }})
    let answer
    try {{
      answer = JSON.parse(hook.stdout)
    }} catch {{
      throw new Error("runner's hook did not answer; the command was not run")
    }}
    if (hook.status !== 0 || typeof answer?.args?.command !== "string") {{
      throw new Error(answer?.refuse ?? "runner's hook refused; the command was not run")
    }}
    Object.assign(output.args, answer.args)
  }},
}})
"#,
        milliseconds = SECONDS * 1000,
    )
}

/// What is left of a text that changed after our entries were put into it; `None` if nothing of ours is in it.
pub(super) fn without_ours(
    agent: Agent,
    pin: &Pin,
    edited: &Edited,
    text: &str,
) -> Result<Option<String>, AgentError> {
    let command = hook_command(&pin.program, agent);
    match agent {
        Agent::Codex => codex::without_hook(text, &edited.path, &command, pin.layer).map(Some),
        // Files of ours alone: what a person wrote into them is not thrown away.
        Agent::OpenCode | Agent::Copilot => Err(AgentError::Changed(edited.path.clone())),
        Agent::Claude | Agent::Gemini | Agent::Qwen | Agent::Cursor => {
            let wrong = |error: Wrong| wrong_at(&edited.path, text, error);
            let (mut left, mut count) =
                jsonc::remove(text, list(agent), |item| item.mentions(&command)).map_err(wrong)?;
            for rule in added_rules(edited, &pin_rules(&left)) {
                let is = |item: &jsonc::Node| item.kind == jsonc::Kind::Text(rule.clone());
                let (without, gone) = jsonc::remove(&left, DENY, is).map_err(wrong)?;
                (left, count) = (without, count + gone);
            }
            Ok((count > 0).then_some(left))
        }
    }
}

/// Denials of file tools that are in a text.
fn pin_rules(text: &str) -> Vec<String> {
    let Ok(root) = jsonc::parse(text) else { return Vec::new() };
    let list = DENY.iter().try_fold(&root, |node, key| node.member(key));
    let texts = list.map(jsonc::Node::items).unwrap_or_default().iter().filter_map(|item| {
        match &item.kind {
            jsonc::Kind::Text(text) => Some(text.clone()),
            _ => None,
        }
    });
    texts.filter(|rule| rule.starts_with("Read(") || rule.starts_with("Edit(")).collect()
}

/// Those that were not there before, and so are ours as far as their path is one of the pinned ones.
fn added_rules(edited: &Edited, now: &[String]) -> Vec<String> {
    let before = edited.before.as_deref().map(pin_rules).unwrap_or_default();
    now.iter()
        .filter(|rule| edited.rules.contains(rule) && !before.contains(rule))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_given_the_path_as_a_literal() {
        let text = plugin(Path::new("/a \"b\"/runner"));
        assert!(text.contains(r#"const program = "/a \"b\"/runner""#), "{text}");
    }

    #[test]
    fn hooks_have_their_fail_closed_form() {
        assert_eq!(entry(Agent::Claude, "x")["hooks"][0]["onFailure"], "block");
        assert_eq!(entry(Agent::Cursor, "x")["failClosed"], true);
    }
}
