//! One grammar of the catalog, for people.

use std::fmt;

use runner_policy::grammar::{Command, Depth, Does, Opt, OptValue, Program, Role, Slots};
use serde_json::{Value, json};

use super::catalog::depth;
use crate::cli::style;

/// A program or one of its subcommands.
pub(super) struct Shown<'a> {
    pub path: &'a str,
    pub program: &'a Program,
    pub command: &'a Command,
}

impl Shown<'_> {
    /// The form for machines.
    pub(super) fn json(&self) -> Value {
        let option = |option: &Opt| {
            json!({
                "names": option.names,
                "value": value(&option.value),
                "does": effects(&option.does),
            })
        };
        let command = self.command;
        json!({
            "program": self.path,
            "about": self.program.about,
            "implementation": self.program.implementation,
            "versions": self.program.versions,
            "depth": self.program.depth,
            "ambient": self.program.ambient,
            "recipes": self.program.recipes,
            "does": effects(&command.does),
            "operands": operands(&command.operands),
            "options": command.options.iter().map(option).collect::<Vec<_>>(),
            "subcommands": command.subcommands.iter().map(|sub| &sub.names).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, program, command } = self;
        let (strong, faint) = (style::STRONG, style::FAINT);
        let field = |f: &mut fmt::Formatter<'_>, name: &str, text: &str| {
            writeln!(f, "  {faint}{name:<12}{faint:#}{text}")
        };
        writeln!(f, "{strong}{path}{strong:#}  {}", program.about)?;
        let read = format!("{} {}", program.implementation, program.versions);
        field(f, "read from", read.trim())?;
        let meaning = match program.depth {
            Depth::Full => "every option was read",
            Depth::Subcommands => "known which subcommands read, write, run code, reach the net",
            Depth::Opaque => "runs what it is given: always code",
        };
        field(f, "depth", &format!("{}: {meaning}", depth(program.depth)))?;
        for ambient in &program.ambient {
            field(f, "ambient", ambient)?;
        }
        if !program.recipes.is_empty() {
            field(f, "recipes", &program.recipes.join(", "))?;
        }
        if !command.does.is_empty() {
            field(f, "does", &effects(&command.does).join(", "))?;
        }
        let operands = operands(&command.operands);
        if !operands.is_empty() {
            field(f, "operands", &operands)?;
        }
        for (at, option) in command.options.iter().enumerate() {
            let mut text = option.names.join(", ");
            let means = [value(&option.value), effects(&option.does)].concat();
            if !means.is_empty() {
                text = format!("{text:<32} {faint}{}{faint:#}", means.join(", "));
            }
            field(f, if at == 0 { "options" } else { "" }, &text)?;
        }
        let mut names: Vec<_> = command.subcommands.iter().map(|sub| sub.names.join("|")).collect();
        names.sort();
        for (at, line) in names.chunks(6).enumerate() {
            field(f, if at == 0 { "subcommands" } else { "" }, &line.join("  "))?;
        }
        Ok(())
    }
}

fn effects(does: &[Does]) -> Vec<String> {
    does.iter().map(Does::show).collect()
}

/// What the values of an option are.
fn value(value: &OptValue) -> Vec<String> {
    let word = |role: &Role| role.word().to_owned();
    match value {
        OptValue::Flag => Vec::new(),
        OptValue::Optional(role) => vec![format!("[={}]", role.word())],
        OptValue::Attached(role) => vec![format!("={}", role.word())],
        OptValue::Required(roles) => roles.iter().map(word).collect(),
        OptValue::Last(role) => vec![format!("[{}]", role.word())],
    }
}

fn operands(slots: &Slots) -> String {
    let mut words = Vec::new();
    if slots.assigns {
        words.push("NAME=VALUE...".to_owned());
    }
    words.extend(slots.head.iter().map(|role| role.word().to_owned()));
    words.extend(slots.rest.iter().map(|role| format!("{}...", role.word())));
    words.extend(slots.tail.iter().map(|role| role.word().to_owned()));
    words.join(" ")
}
