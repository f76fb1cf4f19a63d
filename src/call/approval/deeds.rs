//! What a command does, in one spelling, whatever program runs it and whatever wrapper is around it.
//!
//! A never is looked up by this. So a line is taken apart into its commands, `timeout 5 CMD` has two (itself and CMD), and
//! each command into its program and items, in which paths are absolute and options have one name.

use runner_policy::acts::{Act, Acts, Item};
use runner_policy::shell::{self, Line, Part as Piece};
use runner_policy::word::quoted;

use crate::approvals::{Deed, Part, Weight};
use crate::call::request::{Command, Decided};

/// The deeds of a command that was decided, and was read as this.
pub(super) fn of_command(decided: &Decided, acts: &Acts) -> Vec<Deed> {
    let any = acts.commands.iter().any(|act| act.acts);
    let mut deeds: Vec<Deed> = Vec::new();
    for act in &acts.commands {
        let weight = if act.acts || !any { Weight::Itself } else { Weight::Around };
        deeds.extend(of_act(act, weight));
    }
    // As text too: what could not be read at all has nothing else, and earlier versions kept answers by it.
    let weight = if deeds.is_empty() { Weight::Itself } else { Weight::Around };
    let whole = decided.request.shown();
    let simple = match &decided.request.command {
        Command::Line(line) => commands(line),
        Command::Argv(_) => Vec::new(),
    };
    let levels = decided.decision.effects.iter().map(|line| line.command.clone());
    let mut texts: Vec<String> = levels.chain(simple).collect();
    texts.dedup();
    deeds.extend(texts.iter().map(|text| Deed::whole(format!("run {text}"), Weight::Around)));
    deeds.push(Deed::whole(format!("run {whole}"), weight));
    deeds
}

/// One command, item by item. Without any, the program alone is what it does; with some, that it is run is said too, for
/// who said never to the program alone.
fn of_act(act: &Act, weight: Weight) -> Vec<Deed> {
    let what = format!("run {}", act.program);
    let deed = |part: Part, weight: Weight| Deed { what: what.clone(), part, weight };
    let mut deeds = Vec::new();
    for item in &act.items {
        match item {
            Item::Known { text, also } => {
                deeds.push(deed(Part::Item(text.clone()), weight));
                let also = also.iter().filter(|other| *other != text);
                deeds.extend(also.map(|it| deed(Part::Item(it.clone()), Weight::Around)));
            }
            Item::Unknown => deeds.push(deed(Part::Unknown, weight)),
        }
    }
    let alone = if deeds.is_empty() { weight } else { Weight::Around };
    deeds.push(deed(Part::Whole, alone));
    deeds
}

/// A removal, by the path below the workspace.
pub(in crate::call) fn removal(path: &str) -> Deed {
    Deed::whole(format!("remove {path}"), Weight::Itself)
}

/// A request, by method and URL.
pub(in crate::call) fn request(request: &str) -> Deed {
    Deed::whole(format!("reach {request}"), Weight::Itself)
}

/// The commands of a line, each as its words; the line itself where only a shell knows them.
fn commands(line: &str) -> Vec<String> {
    let Line::Readable(script) = shell::parse(line) else { return vec![line.to_owned()] };
    let shown = |word: &shell::Word| {
        let text = word.parts.iter().map(|part| match part {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        });
        text.collect::<Option<String>>().map(|text| quoted(&text))
    };
    // What a compound command does depends on more than its commands.
    let commands = script.pipelines().flat_map(|pipeline| &pipeline.commands);
    let all: Option<Vec<Option<String>>> = commands
        .map(|command| {
            let words = command.simple()?.words.iter().map(shown);
            let words: Vec<String> = words.collect::<Option<_>>()?;
            Some((!words.is_empty()).then(|| words.join(" ")))
        })
        .collect();
    let all = all.map(|all| all.into_iter().flatten().collect::<Vec<String>>());
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
