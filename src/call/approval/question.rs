//! What is asked, whole.

use serde_json::{Map, Value, json};

use crate::call::request::Decided;

/// The longest value that a question shows whole; of a longer one the middle is left out, and said so.
const VALUE_SHOWN: usize = 400;

/// What is asked.
#[derive(Debug, Clone)]
pub enum Question {
    /// May this tool run?
    Tool {
        /// Its name.
        tool: String,
        /// What it says it does.
        description: String,
        /// Its arguments.
        args: Value,
        /// How far it reaches.
        tier: &'static str,
        /// How risky its author says it is.
        risk: &'static str,
        /// How long it takes and what it costs, as its author says.
        estimates: Vec<(&'static str, String)>,
        /// Its file.
        file: String,
        /// The policy that decides what it does.
        policy: String,
        /// What it asks for, as its permissions have it: `run`, `write`, `reach`, `set`, and of what.
        asks: Vec<(&'static str, String)>,
    },
    /// May this command run, or this request of a tool be made? The policy asks.
    Command {
        /// The tool that wants it, if one does.
        tool: Option<String>,
        /// The command, or method and URL.
        command: String,
        /// Where it runs; nothing for a request.
        folder: String,
        /// What it does, as the policy has read it.
        effects: Vec<String>,
        /// Whether the tool gives it something that is not shown: standard input, or a body.
        fed: bool,
        /// The rule's reason.
        reason: Option<String>,
        /// The rule.
        rule: Option<String>,
    },
    /// May this tool remove something? Its tier lets it write, not destroy.
    Removal {
        /// The tool.
        tool: String,
        /// What it wants to remove.
        path: String,
        /// Whether everything below it goes too.
        recursive: bool,
    },
}

impl Question {
    /// About a command that a policy asks about, and what its answer is bound to. `fed` says that it is given input
    /// which is not shown.
    pub(in crate::call) fn of_command(
        tool: Option<&str>,
        decided: &Decided,
        fed: bool,
    ) -> (Self, Map<String, Value>) {
        let (command, folder) =
            (decided.request.shown(), decided.workspace.cwd().display().to_string());
        let effects = decided.decision.effects.iter();
        let question = Self::Command {
            tool: tool.map(str::to_owned),
            command: command.clone(),
            folder: folder.clone(),
            effects: effects
                .map(|line| format!("{} {}", line.effect, line.object).trim_end().to_owned())
                .collect(),
            fed,
            reason: decided.decision.reason.clone(),
            rule: decided.decision.rule.as_ref().map(|rule| rule.id.clone()),
        };
        // The words themselves: what is shown may join them in another way.
        let words = json!(decided.request.argv_text());
        let bound = [("command", json!(command)), ("words", words), ("folder", json!(folder))];
        (question, bound.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
    }

    /// Everything that the answer is about, line by line.
    #[must_use]
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        match self {
            Self::Tool { tool, description, args, tier, risk, estimates, file, policy, asks } => {
                lines.push(("tool", tool.clone()));
                lines.push(("from", file.clone()));
                lines.push(("does", cut(description)));
                match args {
                    Value::Object(map) => {
                        let values =
                            map.iter().map(|(name, value)| format!("{name} = {}", shown(value)));
                        lines.extend(values.map(|value| ("argument", value)));
                    }
                    other => lines.push(("argument", shown(other))),
                }
                lines.push(("risk", format!("{risk} ({tier})")));
                lines.extend(estimates.iter().cloned());
                lines.push(("policy", policy.clone()));
                for (word, entry) in asks {
                    let name = match *word {
                        "run" => "may run",
                        "write" => "may write",
                        "reach" => "may reach",
                        _ => "may set",
                    };
                    lines.push((name, cut(entry)));
                }
            }
            Self::Command { tool, command, folder, effects, fed, reason, rule } => {
                lines.extend(tool.iter().map(|tool| ("tool", tool.clone())));
                lines.push(("command", command.clone()));
                if !folder.is_empty() {
                    lines.push(("in", folder.clone()));
                }
                lines.extend(effects.iter().map(|effect| ("does", effect.clone())));
                if *fed {
                    let text = "the tool gives it input that is not shown here";
                    lines.push(("input", text.to_owned()));
                }
                lines.extend(rule.iter().map(|rule| ("rule", rule.clone())));
                lines.extend(reason.iter().map(|reason| ("reason", reason.clone())));
            }
            Self::Removal { tool, path, recursive } => {
                lines.push(("tool", tool.clone()));
                lines.push(("removes", path.clone()));
                if *recursive {
                    lines.push(("", "and everything below it".to_owned()));
                }
            }
        }
        lines
    }

    /// The same for the book, without secrets.
    pub(super) fn record(&self, redactor: &crate::audit::Redactor) -> Value {
        let line = |(name, value): (&str, String)| json!([name, redactor.text(&value)]);
        self.lines().into_iter().map(line).collect()
    }
}

/// A value as JSON; of every long text in it the middle is left out, so that nothing behind it is.
fn shown(value: &Value) -> String {
    fn shorten(value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(cut(text)),
            Value::Array(items) => items.iter().map(shorten).collect(),
            Value::Object(map) => {
                map.iter().map(|(name, value)| (name.clone(), shorten(value))).collect()
            }
            other => other.clone(),
        }
    }
    shorten(value).to_string()
}

/// A text without its middle, if it is long.
fn cut(text: &str) -> String {
    if text.len() <= VALUE_SHOWN {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(VALUE_SHOWN / 2);
    let tail = text.ceil_char_boundary(text.len() - VALUE_SHOWN / 2);
    format!("{} [... {} bytes ...] {}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_hidden_behind_a_long_argument() {
        let question = Question::Tool {
            tool: "t".to_owned(),
            description: "d".to_owned(),
            args: json!({"a": "x".repeat(9_000), "z": "delete everything"}),
            tier: "execute",
            risk: "high",
            estimates: vec![("takes", "45s".to_owned()), ("costs", "$0.30".to_owned())],
            file: "/w/t.yml".to_owned(),
            policy: "develop".to_owned(),
            asks: vec![("run", "npm test*".to_owned()), ("write", "out/**".to_owned())],
        };
        let text = format!("{:?}", question.lines());
        for part in
            ["delete everything", "npm test*", "out/**", "/w/t.yml", "develop", "bytes", "$0.30"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.len() < 2_000);
    }
}
