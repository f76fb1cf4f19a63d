//! What a command does, spelled in one way: by whoever it is run, and whatever stands around it.
//!
//! A never is looked up by this. So a line is taken apart into its commands, and `timeout 5 CMD` has two: itself and CMD.

use runner_policy::shell::{self, Line, Part};
use runner_policy::word::quoted;

use crate::approvals::{Deed, Weight};
use crate::call::request::{Command, Decided};

/// The deeds of a command that was decided.
pub(in crate::call) fn deeds(decided: &Decided) -> Vec<Deed> {
    let whole = decided.request.shown();
    let simple = match &decided.request.command {
        Command::Line(line) => commands(line),
        Command::Argv(_) => vec![whole.clone()],
    };
    // Each nesting level that does something has its own lines.
    let effects = decided.decision.effects.iter().map(|line| line.command.clone());
    let mut acting: Vec<String> = Vec::new();
    for command in effects {
        if !acting.contains(&command) {
            acting.push(command);
        }
    }
    let itself = if acting.is_empty() { &simple } else { &acting };
    let weigh = |command: &String| Deed {
        what: format!("run {command}"),
        weight: if itself.contains(command) { Weight::Itself } else { Weight::Around },
    };
    let mut all = acting.clone();
    all.extend(simple.iter().chain([&whole]).filter(|it| !acting.contains(it)).cloned());
    all.dedup();
    all.iter().map(weigh).collect()
}

/// A removal, by the path below the workspace.
pub(in crate::call) fn removal(path: &str) -> Deed {
    Deed { what: format!("remove {path}"), weight: Weight::Itself }
}

/// A request, by method and URL.
pub(in crate::call) fn request(request: &str) -> Deed {
    Deed { what: format!("reach {request}"), weight: Weight::Itself }
}

/// The commands of a line, each as its words; the line itself where only a shell knows them.
fn commands(line: &str) -> Vec<String> {
    let Line::Readable(script) = shell::parse(line) else { return vec![line.to_owned()] };
    let pipelines = script
        .lists
        .iter()
        .flat_map(|list| std::iter::once(&list.first).chain(list.rest.iter().map(|(_, it)| it)));
    let shown = |word: &shell::Word| {
        let text = word.parts.iter().map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        text.collect::<Option<String>>().map(|text| quoted(&text))
    };
    let all: Option<Vec<String>> = pipelines
        .flat_map(|pipeline| &pipeline.commands)
        .filter(|command| !command.words.is_empty())
        .map(|command| {
            let words = command.words.iter().map(shown);
            words.collect::<Option<Vec<String>>>().map(|words| words.join(" "))
        })
        .collect();
    all.filter(|all| !all.is_empty()).unwrap_or_else(|| vec![line.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn a_line_is_taken_apart_into_its_commands() {
        assert_eq!(commands("git commit -m done"), ["git commit -m done"]);
        assert_eq!(
            commands("cd src && git commit -m 'two words' | cat; true"),
            ["cd src", "git commit -m 'two words'", "cat", "true"]
        );
        for whole in ["echo $(id)", "echo *", ""] {
            assert_eq!(commands(whole), [whole]);
        }
    }
}
