//! The question in a terminal: what would run, with what, and yes or no.
//!
//! Whoever answers must see what the answer is about: one question at a time, nothing of the tool's between it and
//! the answer, nothing that was typed before it, and nothing of it left out. What cannot be shown whole is not
//! asked, and so not approved.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use rustix::termios::{QueueSelector, tcflush};
use serde_json::Value;

use super::desk::Desk;
use crate::call::Approval;
use crate::call::tool::{Always, Approver, Question};
use crate::cli::visible::visible;

/// The longest value that a question shows whole; of a longer one the middle is left out, and said so.
const VALUE_SHOWN: usize = 400;

/// The most lines of a question. A person does not read more.
const LINES_SHOWN: usize = 60;

/// Who answers: `--yes` for everything, else a person at a terminal, else nobody.
pub(super) fn approver(yes: bool, desk: Arc<Desk>) -> Arc<dyn Approver> {
    match (yes, io::stdin().is_terminal() && io::stderr().is_terminal()) {
        (true, _) => Arc::new(Always(Approval::Given)),
        (false, true) => Arc::new(Person(desk)),
        (false, false) => Arc::new(Always(Approval::None)),
    }
}

struct Person(Arc<Desk>);

impl Approver for Person {
    fn approve(&self, question: &Question) -> Approval {
        let lines = lines(question);
        let _held = self.0.hold();
        let mut err = io::stderr().lock();
        if lines.len() > LINES_SHOWN {
            let _ = writeln!(
                err,
                "  {} lines are too many to ask about at a terminal: look at it, then call it with --yes",
                lines.len()
            );
            return Approval::None;
        }
        let text: String = lines
            .iter()
            .map(|(name, value)| format!("  {name:<10} {}\n", visible(value)))
            .collect();
        // What was typed before the question is no answer to it.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        let asked = write!(err, "{text}Run it? [y/N] ").and_then(|()| err.flush());
        drop(err);
        let mut answer = String::new();
        let read = asked.and_then(|()| io::stdin().lock().read_line(&mut answer));
        match (read, answer.trim()) {
            (Ok(_), "y" | "Y" | "yes") => Approval::Given,
            _ => Approval::None,
        }
    }
}

/// Everything that the answer is about, line by line.
fn lines(question: &Question) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    match question {
        Question::Tool { tool, description, args, risk, file, policy, asks } => {
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
            lines.push(("risk", (*risk).to_owned()));
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
        Question::Command { tool, command, folder, effects, fed, reason, rule } => {
            lines.push(("tool", tool.clone()));
            lines.push(("command", command.clone()));
            if !folder.is_empty() {
                lines.push(("in", folder.clone()));
            }
            lines.extend(effects.iter().map(|effect| ("does", effect.clone())));
            if *fed {
                lines.push(("input", "the tool gives it input that is not shown here".to_owned()));
            }
            lines.extend(rule.iter().map(|rule| ("rule", rule.clone())));
            lines.extend(reason.iter().map(|reason| ("reason", reason.clone())));
        }
    }
    lines
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
    use serde_json::json;

    #[test]
    fn nothing_is_hidden_behind_a_long_argument() {
        let question = Question::Tool {
            tool: "t".to_owned(),
            description: "d".to_owned(),
            args: json!({"a": "x".repeat(9_000), "z": "delete everything"}),
            risk: "high",
            file: "/w/t.yml".to_owned(),
            policy: "develop".to_owned(),
            asks: vec![("run", "npm test*".to_owned()), ("write", "out/**".to_owned())],
        };
        let text = format!("{:?}", lines(&question));
        for part in ["delete everything", "npm test*", "out/**", "/w/t.yml", "develop", "bytes"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.len() < 2_000);
    }
}
