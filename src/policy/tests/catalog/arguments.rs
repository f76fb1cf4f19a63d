//! What conditions on arguments see: tables of `command => program and subcommands: kind=value …`.
//!
//! Levels are joined by ` | `; a mere wrapper stands in parentheses. `?` is a value that is not known, a
//! trailing `!` a level of which not every word was understood.

use runner_policy::grammar::Kind;
use runner_policy::reading::{Level, Scope, read_line};

fn show(level: &Level) -> String {
    let mut text = level.path.join(" ");
    let args = level.args.iter().filter(|arg| !matches!(arg.kind, Kind::Option | Kind::Path));
    let shown: Vec<String> = args
        .map(|arg| format!("{}={}", arg.kind.word(), arg.value.as_deref().unwrap_or("?")))
        .collect();
    if !shown.is_empty() {
        text = format!("{text}: {}", shown.join(" "));
    }
    if level.wrapper {
        text = format!("({text})");
    }
    if level.complete { text } else { format!("{text} !") }
}

#[test]
fn arguments() {
    let mut wrong = Vec::new();
    let rows = include_str!("arguments.txt")
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    for row in rows {
        let (command, expected) = row.split_once(" => ").expect("a row has ` => `");
        let reading = read_line(command, Scope { cwd: "/w", layers: &[] }).expect("it is read");
        let seen = reading.levels.iter().map(show).collect::<Vec<_>>().join(" | ");
        if seen != expected {
            wrong.push(format!("{command}\n    expected {expected}\n    seen     {seen}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
