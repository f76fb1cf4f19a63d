//! What a hook answers, in each agent's own form.
//!
//! | | allow | ask | refuse |
//! | --- | --- | --- | --- |
//! | Claude Code, Copilot, Cursor | the new input, and allow | the new input, and ask | deny, exit 2 |
//! | Codex | the new input, and allow: without it no new input is taken | the same | deny, exit 2 |
//! | Gemini | the new input, and allow | the new input, without a decision | deny, exit 2 |
//! | OpenCode | the new command | the new command | the reason, which its plugin throws |
//! | Qwen Code | nothing: it runs as it was | deny, exit 2 | deny, exit 2 |
//!
//! Where the person keeps the agent's prompts, no decision is given with the new input, but for Codex. The new command is
//! `runner agent exec` in each case, which decides again: an ask becomes `needs_approval` there unless it was approved.

use serde_json::{Map, Value, json};

use super::kind::Agent;
use super::pin::Prompts;

/// The most bytes of a reason. An agent shows it to its model.
const REASON_MAX: usize = 4 << 10;

/// What a hook says.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The call is not one of a shell: nothing is said about it.
    Pass,
    /// The policy allows it, in the sandbox.
    Allow(Rewritten),
    /// The policy wants a person to be asked.
    Ask(Rewritten, String),
    /// It does not run.
    Refuse(String),
}

/// A tool's input with the command replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewritten {
    /// The tool's whole input.
    pub input: Map<String, Value>,
    /// What becomes of the agent's own prompt.
    pub prompts: Prompts,
    /// How the agent treats permissions, where it says so.
    pub mode: Option<String>,
}

/// An answer as a process gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// For standard output; one JSON object.
    pub out: String,
    /// For standard error.
    pub err: Option<String>,
    /// The exit code.
    pub code: u8,
}

impl Answer {
    /// In the form of an agent.
    #[must_use]
    pub fn said(self, agent: Agent) -> Said {
        match self {
            Self::Pass => well(&json!({})),
            Self::Refuse(reason) => refusal(agent, &reason),
            Self::Allow(rewritten) => {
                let word = match rewritten.prompts {
                    Prompts::Replace => Some("allow"),
                    Prompts::Keep => None,
                };
                rewriting(agent, word, "runner's policy allows it in its sandbox", rewritten.input)
            }
            Self::Ask(rewritten, reason) => {
                if !agent.rewrites() {
                    return refusal(agent, &reason);
                }
                // Where Claude Code asks nobody, an ask of ours would end the call before its question has an id.
                let mode = rewritten.mode.as_deref();
                let asks = !matches!(mode, Some("bypassPermissions" | "dontAsk"))
                    && rewritten.prompts == Prompts::Replace;
                rewriting(agent, asks.then_some("ask"), &bounded(&reason), rewritten.input)
            }
        }
    }
}

/// A refusal, which every agent understands by its exit code and shows to its model.
#[must_use]
pub fn refusal(agent: Agent, reason: &str) -> Said {
    let reason = bounded(reason);
    let out = match agent {
        Agent::Claude | Agent::Codex | Agent::Qwen => json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        } }),
        Agent::Gemini => json!({ "decision": "deny", "reason": reason }),
        Agent::Copilot => {
            json!({ "permissionDecision": "deny", "permissionDecisionReason": reason })
        }
        Agent::OpenCode => json!({ "refuse": reason }),
        Agent::Cursor => {
            json!({ "permission": "deny", "user_message": reason, "agent_message": reason })
        }
    };
    Said { out: out.to_string(), err: Some(reason), code: 2 }
}

fn well(value: &Value) -> Said {
    Said { out: value.to_string(), err: None, code: 0 }
}

/// The new input, with the word of a decision if there is one.
fn rewriting(agent: Agent, word: Option<&str>, reason: &str, input: Map<String, Value>) -> Said {
    let mut object = Map::new();
    let decide = |object: &mut Map<String, Value>, key: &str, why: &str| {
        if let Some(word) = word {
            object.insert(key.to_owned(), json!(word));
            object.insert(why.to_owned(), json!(reason));
        }
    };
    match agent {
        Agent::Claude => {
            object.insert("hookEventName".to_owned(), json!("PreToolUse"));
            decide(&mut object, "permissionDecision", "permissionDecisionReason");
            object.insert("updatedInput".to_owned(), Value::Object(input));
            well(&json!({ "hookSpecificOutput": object }))
        }
        Agent::Codex => well(&json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": input,
        } })),
        Agent::Gemini => {
            if word == Some("allow") {
                decide(&mut object, "decision", "reason");
            }
            let output = json!({ "hookEventName": "BeforeTool", "tool_input": input });
            object.insert("hookSpecificOutput".to_owned(), output);
            well(&Value::Object(object))
        }
        Agent::Copilot => {
            decide(&mut object, "permissionDecision", "permissionDecisionReason");
            object.insert("modifiedArgs".to_owned(), Value::Object(input));
            well(&Value::Object(object))
        }
        Agent::OpenCode => well(&json!({ "args": input })),
        Agent::Cursor => {
            if let Some(word) = word {
                object.insert("permission".to_owned(), json!(word));
            }
            object.insert("updated_input".to_owned(), Value::Object(input));
            well(&Value::Object(object))
        }
        // It takes no new input: the call runs as it was.
        Agent::Qwen => well(&json!({})),
    }
}

/// The beginning of a text, with control characters made visible.
fn bounded(reason: &str) -> String {
    let plain: String = reason
        .chars()
        .map(|letter| if letter.is_control() && letter != '\n' { '\u{fffd}' } else { letter })
        .collect();
    if plain.len() <= REASON_MAX {
        return plain;
    }
    let end = (0..=REASON_MAX).rev().find(|at| plain.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &plain[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(prompts: Prompts, mode: Option<&str>) -> Rewritten {
        let Value::Object(input) = json!({ "command": "x", "timeout": 5 }) else { unreachable!() };
        Rewritten { input, prompts, mode: mode.map(str::to_owned) }
    }

    #[test]
    fn allow_is_said_only_for_allow_and_not_where_prompts_are_kept() {
        for agent in Agent::ALL.into_iter().filter(|agent| agent.rewrites()) {
            let allow = Answer::Allow(rewritten(Prompts::Replace, None)).said(agent);
            assert!(allow.out.contains("\"timeout\":5"), "{agent:?} keeps all fields: {allow:?}");
            assert_eq!((allow.code, allow.err), (0, None));
            let says = |answer: Answer| answer.said(agent).out.contains("\"allow\"");
            let kept = says(Answer::Allow(rewritten(Prompts::Keep, None)));
            let asked = says(Answer::Ask(rewritten(Prompts::Replace, None), "why".to_owned()));
            // Codex takes a new input only together with allow.
            assert_eq!((kept, asked), (agent == Agent::Codex, agent == Agent::Codex), "{agent:?}");
        }
    }

    #[test]
    fn a_refusal_has_exit_code_2_and_one_json_object_with_its_reason() {
        for agent in Agent::ALL {
            let said = refusal(agent, "no\u{1b}[2J because");
            assert_eq!(said.code, 2);
            let value = crate::json::read(&said.out).unwrap();
            assert!(value.to_string().contains("because") && !said.out.contains("[2J\u{1b}"));
            assert!(said.err.unwrap().contains("because"));
        }
        let long = refusal(Agent::Claude, &"é".repeat(REASON_MAX));
        assert!(long.out.len() < REASON_MAX + 200);
    }

    #[test]
    fn claude_is_not_told_to_ask_where_it_asks_nobody() {
        let ask = |mode| Answer::Ask(rewritten(Prompts::Replace, mode), "why".to_owned());
        assert!(ask(Some("default")).said(Agent::Claude).out.contains("\"ask\""));
        for mode in ["bypassPermissions", "dontAsk"] {
            let said = ask(Some(mode)).said(Agent::Claude).out;
            assert!(!said.contains("permissionDecision"), "{said}");
        }
    }

    #[test]
    fn an_agent_that_takes_no_new_input_is_refused_what_is_asked_about() {
        let said =
            Answer::Ask(rewritten(Prompts::Replace, None), "why".to_owned()).said(Agent::Qwen);
        assert_eq!(said.code, 2);
        assert_eq!(Answer::Allow(rewritten(Prompts::Replace, None)).said(Agent::Qwen).out, "{}");
    }
}
