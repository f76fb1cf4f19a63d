//! How the table of cases writes a plan: words as JSON strings, patterns and `~` outside of them.

use runner_policy::shell::{
    AndOr, Join, Line, Note, Part, Pipeline, RedirectTo, Script, SimpleCommand, Word,
};

/// The outcome of a line, as the right side of a case.
pub fn outcome(text: &str, line: &Line) -> String {
    match line {
        Line::Readable(script) => format!("{}{}", plan(script), notes(text, script)),
        Line::Unreadable(why) => format!("! {why}"),
    }
}

fn plan(script: &Script) -> String {
    let lists: Vec<_> = script.lists.iter().map(list).collect();
    if lists.is_empty() {
        return "nothing".to_owned();
    }
    lists.join(" ; ")
}

fn notes(text: &str, script: &Script) -> String {
    let note = |note: &Note| match note {
        Note::CarriageReturn(at) => format!(" # carriage return at {}", at.position(text)),
        Note::AssignmentAlone(at) => format!(" # assignment alone at {}", at.position(text)),
    };
    script.notes.iter().map(note).collect()
}

fn list(list: &AndOr) -> String {
    let mut out = pipeline(&list.first);
    for (join, next) in &list.rest {
        out += match join {
            Join::And => " && ",
            Join::Or => " || ",
        };
        out += &pipeline(next);
    }
    out
}

fn pipeline(pipeline: &Pipeline) -> String {
    let commands: Vec<_> = pipeline.commands.iter().map(command).collect();
    let bang = if pipeline.negated { "not " } else { "" };
    format!("{bang}{}", commands.join(" | "))
}

fn command(command: &SimpleCommand) -> String {
    let mut out = Vec::new();
    for (name, value) in &command.assignments {
        out.push(format!("{name}={}", word(value)));
    }
    let words: Vec<_> = command.words.iter().map(word).collect();
    out.push(format!("[{}]", words.join(", ")));
    for redirect in &command.redirects {
        let fd = redirect.fd;
        out.push(match &redirect.to {
            RedirectTo::Read(from) => format!("{fd}<{}", word(from)),
            RedirectTo::Write(to) => format!("{fd}>{}", word(to)),
            RedirectTo::Append(to) => format!("{fd}>>{}", word(to)),
            RedirectTo::Duplicate(of) => format!("{fd}>&{of}"),
            RedirectTo::Close => format!("{fd}>&-"),
            RedirectTo::Text(text) => format!("{fd}<<{}", json(text)),
        });
    }
    out.join(" ")
}

fn word(word: &Word) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => json(text),
        Part::Home => "~".to_owned(),
        Part::Any => "*".to_owned(),
        Part::One => "?".to_owned(),
        Part::Class(_) => {
            let alone = Word { parts: vec![part.clone()], at: word.at };
            alone.text("")
        }
    };
    match word.literal() {
        Some(text) => json(text),
        None => word.parts.iter().map(part).collect(),
    }
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
