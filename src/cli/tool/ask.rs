//! The question in a terminal: what would run, with what, and yes or no.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use crate::call::Approval;
use crate::call::tool::{Always, Approver, Question};
use crate::cli::visible::visible;

/// The longest arguments that a question shows in full.
const ARGS_SHOWN: usize = 2_000;

/// Who answers: `--yes` for everything, else a person at a terminal, else nobody.
pub(super) fn approver(yes: bool) -> Arc<dyn Approver> {
    match (yes, io::stdin().is_terminal() && io::stderr().is_terminal()) {
        (true, _) => Arc::new(Always(Approval::Given)),
        (false, true) => Arc::new(Person),
        (false, false) => Arc::new(Always(Approval::None)),
    }
}

struct Person;

impl Approver for Person {
    fn approve(&self, question: &Question) -> Approval {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            text.push_str(&format!("  {name:<10} {}\n", visible(value)));
        };
        match question {
            Question::Tool { tool, description, args, risk, commands } => {
                line("tool", tool);
                line("does", description);
                let mut shown = args.to_string();
                if shown.len() > ARGS_SHOWN {
                    let end = shown.floor_char_boundary(ARGS_SHOWN);
                    shown.truncate(end);
                    shown.push_str(" ...");
                }
                line("arguments", &shown);
                line("risk", risk);
                for command in commands {
                    line("may run", command);
                }
            }
            Question::Command { tool, command, reason, rule } => {
                line("tool", tool);
                line("command", command);
                if let Some(rule) = rule {
                    line("rule", rule);
                }
                if let Some(reason) = reason {
                    line("reason", reason);
                }
            }
        }
        let mut err = io::stderr().lock();
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
