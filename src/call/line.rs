//! From what was judged to what the guest executes: each part of a plan has exactly one form on the wire.

use super::script;
use runner_policy::plan::{Inner, Plan, PlannedLine};
use runner_policy::shell::{self, Join, Part, RedirectTo};
use runner_wire::{self as wire, Bytes, Line, Work};

/// The order for the guest. `roots` are the folders in which a path must lie that was not known.
#[must_use]
pub fn for_guest(plan: &Plan, home: &str, roots: &[Bytes]) -> Work {
    let argv = plan.words().iter().cloned().map(Bytes);
    if let Some(text) = plan.shell() {
        return Work::Shell { text: Bytes::from(text) };
    }
    match plan.line() {
        None => Work::Argv { argv: argv.collect(), program: None },
        Some(line) if !line.is_plain() => {
            Work::Script(Box::new(script::of_plan(argv.collect(), line, home, roots)))
        }
        Some(line) if plan.words().is_empty() => Work::Line(Context { home }.line(line)),
        Some(line) => {
            let words = argv.map(wire::Word::Text).collect();
            let command = wire::Command::Line { words, line: Context { home }.line(line) };
            let simple = wire::Simple { assignments: vec![], command, redirects: vec![] };
            let first = wire::Pipeline { negated: false, commands: vec![simple] };
            let lists = vec![wire::AndOr { first, rest: vec![] }];
            Work::Line(Line { lists, ..Line::default() })
        }
    }
}

#[derive(Clone, Copy)]
struct Context<'a> {
    home: &'a str,
}

impl Context<'_> {
    fn line(self, line: &PlannedLine) -> Line {
        let lists = line.script().lists.iter().map(|list| self.list(list, line)).collect();
        let options = line.options();
        Line { lists, errexit: options.errexit, pipefail: options.pipefail }
    }

    fn list(self, list: &shell::AndOr, line: &PlannedLine) -> wire::AndOr {
        let first = self.pipeline(&list.first, line);
        let rest = list.rest.iter().map(|(join, pipeline)| {
            let joiner = match join {
                Join::And => wire::Joiner::And,
                Join::Or => wire::Joiner::Or,
            };
            (joiner, self.pipeline(pipeline, line))
        });
        wire::AndOr { first, rest: rest.collect() }
    }

    fn pipeline(self, pipeline: &shell::Pipeline, line: &PlannedLine) -> wire::Pipeline {
        // A plain line has no others.
        let simple = pipeline.commands.iter().filter_map(shell::Command::simple);
        let commands = simple.map(|command| self.simple(command, line.inner(command)));
        wire::Pipeline { negated: pipeline.negated, commands: commands.collect() }
    }

    fn simple(self, simple: &shell::SimpleCommand, inner: Option<&Inner>) -> wire::Simple {
        let mut assignments: Vec<wire::Assignment> = simple
            .assignments
            .iter()
            .map(|(name, value)| assignment(name, &value.text(self.home)))
            .collect();
        let words: Vec<wire::Word> = simple.words.iter().map(|word| self.word(word)).collect();
        let name = simple.words.first().and_then(shell::Word::literal);
        let command = match (inner, name) {
            (Some(inner), _) => wire::Command::Line {
                words: words.into_iter().take(inner.words()).collect(),
                line: self.line(inner.line()),
            },
            (None, None) if words.is_empty() => {
                wire::Command::Builtin(wire::Builtin::Assign(std::mem::take(&mut assignments)))
            }
            (None, Some("export")) => {
                let pairs = simple.words[1..].iter().map(|word| {
                    let text = word.text(self.home);
                    let (name, value) = text.split_once('=').unwrap_or((&text, ""));
                    assignment(name, value)
                });
                wire::Command::Builtin(wire::Builtin::Export(pairs.collect()))
            }
            (None, Some("true" | ":")) => wire::Command::Builtin(wire::Builtin::True),
            (None, Some("false")) => wire::Command::Builtin(wire::Builtin::False),
            (None, Some("test")) => {
                wire::Command::Builtin(wire::Builtin::Test(words.into_iter().skip(1).collect()))
            }
            // Without its closing bracket the program of that name complains as a shell would.
            (None, Some("[")) if words.len() > 1 && is_closed(simple) => {
                let inner = words[1..words.len() - 1].to_vec();
                wire::Command::Builtin(wire::Builtin::Test(inner))
            }
            (None, _) => wire::Command::Run { words, program: None },
        };
        let redirects = simple.redirects.iter().map(|redirect| self.redirect(redirect)).collect();
        wire::Simple { assignments, command, redirects }
    }

    fn redirect(self, redirect: &shell::Redirect) -> wire::Redirect {
        let path = |word: &shell::Word| Bytes::from(word.text(self.home).as_str());
        let to = match &redirect.to {
            RedirectTo::Read(word) => wire::RedirectTo::Read(path(word)),
            RedirectTo::Write(word) => wire::RedirectTo::Write(path(word)),
            RedirectTo::Append(word) => wire::RedirectTo::Append(path(word)),
            RedirectTo::Duplicate(fd) => wire::RedirectTo::Dup(*fd),
            RedirectTo::Close => wire::RedirectTo::Close,
            RedirectTo::Text(text) => wire::RedirectTo::Here(path(text)),
        };
        wire::Redirect { fd: redirect.fd, to }
    }

    fn word(self, word: &shell::Word) -> wire::Word {
        if !word.is_glob() {
            return wire::Word::Text(Bytes::from(word.text(self.home).as_str()));
        }
        let parts = word.parts.iter().map(|part| match part {
            Part::Text(text) => wire::Part::Text(Bytes::from(text.as_str())),
            Part::Home => wire::Part::Text(Bytes::from(self.home)),
            Part::Any => wire::Part::Star,
            Part::One => wire::Part::Any,
            Part::Class(class) => wire::Part::Class(wire::Class {
                negated: class.negated,
                ranges: class.items.iter().flat_map(|item| item.ranges()).collect(),
            }),
            // A plain line has none. An empty pattern names no file.
            Part::Expansion { .. } => wire::Part::Text(Bytes::default()),
        });
        wire::Word::Glob(parts.collect())
    }
}

pub(super) fn is_closed(simple: &shell::SimpleCommand) -> bool {
    simple.words.last().and_then(shell::Word::literal) == Some("]")
}

fn assignment(name: &str, value: &str) -> wire::Assignment {
    wire::Assignment { name: Bytes::from(name), value: Bytes::from(value) }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
