//! What commands are read as doing: tables of `command => effects`, one file a program.
//!
//! The folder is `/w`; effects are sorted, joined by `; `, and name paths below `/w` without it.
//! All levels of a command count: `find -exec` shows what the inner command does. `-` is no effect.
#![allow(clippy::expect_used, reason = "tests")]

mod arguments;

use runner_policy::reading::{Scope, Standing, read_line};

/// The effects of a line, as written in the tables.
fn effects(line: &str) -> String {
    let scope = Scope { cwd: "/w", layers: &[] };
    let reading = match read_line(line, scope) {
        Ok(reading) => reading,
        Err(refusal) => return format!("{refusal:?}"),
    };
    let mut shown: Vec<String> = reading
        .levels
        .iter()
        .filter(|level| level.standing == Standing::Certain)
        .flat_map(|level| level.effects.iter().chain(&level.redirects))
        .map(|caused| caused.effect.show())
        .map(|text| {
            text.replace(" /w/", " ")
                .replace("files that are not known before it runs", "?")
                .replace(", to a peer that is not known before it runs", " ?")
        })
        .collect();
    shown.sort();
    shown.dedup();
    if shown.is_empty() { "-".to_owned() } else { shown.join("; ") }
}

fn check(table: &str) {
    let mut wrong = Vec::new();
    let rows = table.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    for row in rows {
        let (command, expected) = row.split_once(" => ").expect("a row has ` => `");
        let seen = effects(command.trim());
        if seen != expected.trim() {
            wrong.push(format!(
                "{}\n    expected {}\n    seen     {seen}",
                command.trim(),
                expected.trim()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

macro_rules! tables {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(include_str!(concat!(stringify!($name), ".txt")));
        })*
    };
}

tables! {
    archives
    awk
    change
    conditions
    files
    git
    kubectl
    system
    look
    processes
    transfer
    toolchains
    wrappers
}
