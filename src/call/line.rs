//! From the line that was judged to the line that the guest executes.
//!
//! What cannot be carried over exactly is not carried over at all: the caller then has a shell run
//! the text, which needs a rule that grants `code`.

use runner_policy::shell::{self, ClassItem, Join, Part, RedirectTo, Script};
use runner_wire::{self as wire, Bytes, Line};

/// The same plan for the guest, whose environment has these names; `None` if it holds a form that the guest does not have.
#[must_use]
pub fn for_guest(script: &Script, home: &str, environment: Vec<String>) -> Option<Line> {
    let mut context = Context { home, exported: environment };
    let lists = script.lists.iter().map(|list| context.list(list)).collect::<Option<_>>()?;
    Some(Line { lists })
}

struct Context<'a> {
    home: &'a str,
    /// Names in the environment, and those that `export` has set so far: an assignment alone
    /// changes those.
    exported: Vec<String>,
}

impl Context<'_> {
    fn list(&mut self, list: &shell::AndOr) -> Option<wire::AndOr> {
        let first = self.pipeline(&list.first)?;
        let mut rest = Vec::with_capacity(list.rest.len());
        for (join, pipeline) in &list.rest {
            let joiner = match join {
                Join::And => wire::Joiner::And,
                Join::Or => wire::Joiner::Or,
            };
            rest.push((joiner, self.pipeline(pipeline)?));
        }
        Some(wire::AndOr { first, rest })
    }

    fn pipeline(&mut self, pipeline: &shell::Pipeline) -> Option<wire::Pipeline> {
        let before = self.exported.len();
        let commands: Vec<_> =
            pipeline.commands.iter().map(|c| self.simple(c)).collect::<Option<_>>()?;
        // Each of several commands runs in a process of its own: what it exports ends with it.
        if commands.len() > 1 {
            self.exported.truncate(before);
        }
        Some(wire::Pipeline { negated: pipeline.negated, commands })
    }

    fn simple(&mut self, simple: &shell::SimpleCommand) -> Option<wire::Simple> {
        let mut assignments: Vec<wire::Assignment> = simple
            .assignments
            .iter()
            .map(|(name, value)| assignment(name, &value.text(self.home)))
            .collect();
        let words: Vec<wire::Word> = simple.words.iter().map(|word| self.word(word)).collect();
        let name = simple.words.first().and_then(shell::Word::literal);
        let command = match name {
            None if words.is_empty() => {
                // A variable that nothing exported is seen by no program.
                assignments.retain(|set| {
                    self.exported.iter().any(|known| known.as_bytes() == set.name.as_ref())
                });
                let set = std::mem::take(&mut assignments);
                wire::Command::Builtin(if set.is_empty() {
                    wire::Builtin::True
                } else {
                    wire::Builtin::Export(set)
                })
            }
            Some("cd") => match words.len() {
                1 => wire::Command::Builtin(wire::Builtin::Cd(None)),
                2 if !simple.words[1].may_start_with_dash() => {
                    wire::Command::Builtin(wire::Builtin::Cd(words.into_iter().nth(1)))
                }
                _ => return None,
            },
            Some("export") => {
                let mut set = Vec::new();
                for word in &simple.words[1..] {
                    let text = word.text(self.home);
                    let (name, value) = text.split_once('=')?;
                    self.exported.push(name.to_owned());
                    set.push(assignment(name, value));
                }
                wire::Command::Builtin(wire::Builtin::Export(set))
            }
            Some("true" | ":") => wire::Command::Builtin(wire::Builtin::True),
            Some("false") => wire::Command::Builtin(wire::Builtin::False),
            Some("test") => {
                wire::Command::Builtin(wire::Builtin::Test(words.into_iter().skip(1).collect()))
            }
            // Without its closing bracket the program of that name complains as a shell would.
            Some("[") if words.len() > 1 && is_closed(simple) => {
                let inner = words[1..words.len() - 1].to_vec();
                wire::Command::Builtin(wire::Builtin::Test(inner))
            }
            _ => wire::Command::Run { words, program: None },
        };
        let redirects = simple.redirects.iter().map(|redirect| self.redirect(redirect)).collect();
        Some(wire::Simple { assignments, command, redirects })
    }

    fn redirect(&self, redirect: &shell::Redirect) -> wire::Redirect {
        let path = |word: &shell::Word| Bytes::from(word.text(self.home).as_str());
        let to = match &redirect.to {
            RedirectTo::Read(word) => wire::RedirectTo::Read(path(word)),
            RedirectTo::Write(word) => wire::RedirectTo::Write(path(word)),
            RedirectTo::Append(word) => wire::RedirectTo::Append(path(word)),
            RedirectTo::Duplicate(fd) => wire::RedirectTo::Dup(*fd),
            RedirectTo::Close => wire::RedirectTo::Close,
            RedirectTo::Text(text) => wire::RedirectTo::Here(Bytes::from(text.as_str())),
        };
        wire::Redirect { fd: redirect.fd, to }
    }

    fn word(&self, word: &shell::Word) -> wire::Word {
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
                ranges: class.items.iter().flat_map(|item| ranges(*item)).collect(),
            }),
        });
        wire::Word::Glob(parts.collect())
    }
}

fn is_closed(simple: &shell::SimpleCommand) -> bool {
    simple.words.last().and_then(shell::Word::literal) == Some("]")
}

fn assignment(name: &str, value: &str) -> wire::Assignment {
    wire::Assignment { name: Bytes::from(name), value: Bytes::from(value) }
}

/// Named sets as a shell has them in the C locale, which sandboxes start in.
fn ranges(item: ClassItem) -> Vec<(char, char)> {
    match item {
        ClassItem::Range(first, last) => vec![(first, last)],
        ClassItem::Digit => vec![('0', '9')],
        ClassItem::Alpha => vec![('A', 'Z'), ('a', 'z')],
        ClassItem::Alnum => vec![('0', '9'), ('A', 'Z'), ('a', 'z')],
        ClassItem::Upper => vec![('A', 'Z')],
        ClassItem::Lower => vec![('a', 'z')],
        ClassItem::Space => vec![('\t', '\r'), (' ', ' ')],
    }
}
