//! How the table of cases writes a plan: words as JSON strings, patterns and `~` outside of them.

use runner_policy::shell::{
    AndOr, Command, CompoundKind, Condition, Expansion, Join, Line, Note, Part, Pipeline, Redirect,
    RedirectTo, Script, SimpleCommand, Word,
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
    let time = if pipeline.timed { "time " } else { "" };
    format!("{time}{bang}{}", commands.join(" | "))
}

fn command(command: &Command) -> String {
    let compound = match command {
        Command::Simple(command) => return simple(command),
        Command::Compound(compound) => compound,
    };
    let kind = match &compound.kind {
        CompoundKind::Group(script) => format!("{{ {} }}", plan(script)),
        CompoundKind::Subshell(script) => format!("( {} )", plan(script)),
        CompoundKind::If { branches, otherwise } => {
            let mut out = String::new();
            for (at, (condition, body)) in branches.iter().enumerate() {
                out += if at == 0 { "if " } else { "elif " };
                out += &format!("{} then {} ", plan(condition), plan(body));
            }
            if let Some(body) = otherwise {
                out += &format!("else {} ", plan(body));
            }
            out + "fi"
        }
        CompoundKind::While { until, condition, body } => {
            let word = if *until { "until" } else { "while" };
            format!("{word} {} do {} done", plan(condition), plan(body))
        }
        CompoundKind::For { name, words, body } => {
            let words: Vec<_> = words.iter().map(word).collect();
            format!("for {name} in {} do {} done", words.join(" "), plan(body))
        }
        CompoundKind::Case { word: given, arms } => {
            let arms = arms.iter().map(|(patterns, body)| {
                let patterns: Vec<_> = patterns.iter().map(word).collect();
                format!("({}) {} ;; ", patterns.join(" | "), plan(body))
            });
            format!("case {} in {}esac", word(given), arms.collect::<String>())
        }
        CompoundKind::Test(steps) => {
            let steps = steps.iter().map(|step| match step {
                Condition::Unary(operator, given) => format!("{operator} {}", word(given)),
                Condition::Binary(left, operator, right) => {
                    format!("{} {operator} {}", word(left), word(right))
                }
                Condition::Match(left, pattern) => format!("{} == {}", word(left), word(pattern)),
                Condition::Not => "not".to_owned(),
                Condition::And => "and".to_owned(),
                Condition::Or => "or".to_owned(),
            });
            format!("[[ {} ]]", steps.collect::<Vec<_>>().join(", "))
        }
    };
    let redirects = compound.redirects.iter().map(redirect);
    std::iter::once(kind).chain(redirects).collect::<Vec<_>>().join(" ")
}

fn simple(command: &SimpleCommand) -> String {
    let mut out = Vec::new();
    for (name, value) in &command.assignments {
        out.push(format!("{name}={}", word(value)));
    }
    let words: Vec<_> = command.words.iter().map(word).collect();
    out.push(format!("[{}]", words.join(", ")));
    out.extend(command.redirects.iter().map(redirect));
    out.join(" ")
}

fn redirect(redirect: &Redirect) -> String {
    let fd = redirect.fd;
    match &redirect.to {
        RedirectTo::Read(from) => format!("{fd}<{}", word(from)),
        RedirectTo::Write(to) => format!("{fd}>{}", word(to)),
        RedirectTo::Append(to) => format!("{fd}>>{}", word(to)),
        RedirectTo::Duplicate(of) => format!("{fd}>&{of}"),
        RedirectTo::Close => format!("{fd}>&-"),
        RedirectTo::Text(text) => format!("{fd}<<{}", word(text)),
    }
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
        Part::Expansion { of, quoted } => {
            let shown = match of {
                Expansion::Variable(name) => format!("${name}"),
                Expansion::Default { name, text, empty } => {
                    format!("${name}{}{text}", if *empty { " or, if empty, " } else { " or " })
                }
                Expansion::Status => "$?".to_owned(),
                Expansion::Output(script) => format!("$({})", plan(script)),
            };
            if *quoted { shown } else { format!("split({shown})") }
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
