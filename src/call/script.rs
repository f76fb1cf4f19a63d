//! From a judged line with variables, conditions and loops to what the guest executes.
//!
//! Each part of a plan has one form on the wire. A word that was judged with an assumption carries it; one that should
//! have been and was not can become nothing at all.

use runner_policy::plan::{Assumed, Demand, PlannedLine};
use runner_policy::shell::{
    self, Command, Compound, CompoundKind, Condition, Expansion, Join, Part, RedirectTo,
};
use runner_wire::{
    Assume, Block, Bytes, Chain, Does, Expand, Joiner, Node, Opening, OpeningTo, PathKind, Piece,
    Pipe, Script, Setting, Step, Switch,
};

use super::line::is_closed;

/// A line as a script; behind words that start it, if there are any.
pub(super) fn of_plan(
    words: Vec<Bytes>,
    line: &PlannedLine,
    home: &str,
    roots: &[Bytes],
) -> Script {
    let script = script(line, home, roots);
    if words.is_empty() {
        return script;
    }
    let words = words.into_iter().map(text).collect();
    let does = Does::Nested { set: Vec::new(), words, script: Box::new(script) };
    let first =
        Pipe { negated: false, timed: false, commands: vec![Node { does, redirects: Vec::new() }] };
    let blocks = vec![vec![Chain { first, rest: Vec::new() }]];
    Script { blocks, roots: roots.to_vec(), ..Script::default() }
}

fn script(line: &PlannedLine, home: &str, roots: &[Bytes]) -> Script {
    let mut builder = Builder { line, home, roots, blocks: Vec::new() };
    builder.block(line.script());
    let options = line.options();
    Script {
        blocks: builder.blocks,
        errexit: options.errexit,
        pipefail: options.pipefail,
        nounset: options.nounset,
        roots: roots.to_vec(),
    }
}

fn text(text: Bytes) -> Expand {
    Expand { pieces: vec![Piece::Text(text)], assume: Assume::Nothing }
}

struct Builder<'a> {
    line: &'a PlannedLine,
    home: &'a str,
    roots: &'a [Bytes],
    blocks: Vec<Vec<Chain>>,
}

/// What must hold for words in a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// What was assumed when they were judged.
    Judged,
    /// Nothing: no program gets them.
    Free,
}

impl Builder<'_> {
    /// A block, which takes its number before those in it.
    fn block(&mut self, script: &shell::Script) -> Block {
        let at = self.blocks.len();
        self.blocks.push(Vec::new());
        let chains = script.lists.iter().map(|list| self.chain(list)).collect();
        self.blocks[at] = chains;
        Block::try_from(at).unwrap_or(Block::MAX)
    }

    fn chain(&mut self, list: &shell::AndOr) -> Chain {
        let first = self.pipe(&list.first);
        let rest = list.rest.iter().map(|(join, pipeline)| {
            let joiner = match join {
                Join::And => Joiner::And,
                Join::Or => Joiner::Or,
            };
            (joiner, self.pipe(pipeline))
        });
        Chain { first, rest: rest.collect() }
    }

    fn pipe(&mut self, pipeline: &shell::Pipeline) -> Pipe {
        let commands = pipeline.commands.iter().map(|command| match command {
            Command::Simple(simple) => {
                Node { does: self.simple(simple), redirects: self.openings(&simple.redirects) }
            }
            Command::Compound(compound) => Node {
                does: self.compound(compound),
                redirects: self.openings(&compound.redirects),
            },
        });
        let commands = commands.collect();
        Pipe { negated: pipeline.negated, timed: pipeline.timed, commands }
    }

    fn simple(&mut self, simple: &shell::SimpleCommand) -> Does {
        let line = self.line;
        let exported = |name: &str| line.is_exported(simple.at, name);
        let set: Vec<Setting> = simple
            .assignments
            .iter()
            .map(|(name, value)| Setting {
                name: Bytes::from(name.as_str()),
                value: self.word(value, Held::Free),
                exported: exported(name),
            })
            .collect();
        let literal = |word: &shell::Word| word.literal().unwrap_or_default().to_owned();
        let rest = || simple.words.iter().skip(1);
        let name = simple.words.first().and_then(shell::Word::literal);
        if let Some(inner) = line.inner(simple) {
            return Does::Nested {
                set,
                words: simple.words[..inner.words().min(simple.words.len())]
                    .iter()
                    .map(|word| self.word(word, Held::Judged))
                    .collect(),
                script: Box::new(script(inner.line(), self.home, self.roots)),
            };
        }
        let names = || rest().map(|word| Bytes::from(literal(word).as_str()));
        match name {
            None if simple.words.is_empty() => Does::Set(set),
            Some("cd") => Does::Cd(match simple.words.get(1) {
                Some(word) => Some(self.word(word, Held::Judged)),
                // The folder is the one that was judged, whatever HOME is.
                None => Some(text(Bytes::from(self.home))),
            }),
            Some("export") => Does::Export(rest().map(|word| self.export(word)).collect()),
            Some("unset") => Does::Unset(names().collect()),
            Some("read") => {
                let raw = rest().next().and_then(shell::Word::literal) == Some("-r");
                let names = rest().skip(usize::from(raw)).map(literal);
                let names = names.map(|name| (Bytes::from(name.as_str()), exported(&name)));
                Does::Read { raw, whole: !set.is_empty(), names: names.collect() }
            }
            Some("set") => Does::Options(switches(&rest().map(literal).collect::<Vec<_>>())),
            Some("exit") => Does::Exit(rest().next().map(|word| self.word(word, Held::Free))),
            Some("break") => Does::Break(count(rest().next())),
            Some("continue") => Does::Continue(count(rest().next())),
            Some("command") if simple.words.len() > 2 => Does::Which(names().skip(1).collect()),
            Some("true" | ":") => {
                Does::True(rest().map(|it| self.word(it, Held::Judged)).collect())
            }
            Some("false") => Does::False(rest().map(|it| self.word(it, Held::Judged)).collect()),
            Some("test") => Does::Test(rest().map(|it| self.word(it, Held::Judged)).collect()),
            Some("[") if simple.words.len() > 1 && is_closed(simple) => {
                let inner = &simple.words[1..simple.words.len() - 1];
                Does::Test(inner.iter().map(|word| self.word(word, Held::Judged)).collect())
            }
            _ => {
                let words = simple.words.iter().map(|word| self.word(word, Held::Judged));
                Does::Run { words: words.collect(), set }
            }
        }
    }

    fn export(&mut self, word: &shell::Word) -> (Bytes, Option<Expand>) {
        let mut value = word.clone();
        let Some(Part::Text(text)) = value.parts.first_mut() else {
            return (Bytes::default(), None);
        };
        match text.split_once('=') {
            Some((name, rest)) => {
                let name = Bytes::from(name);
                *text = rest.to_owned();
                (name, Some(self.word(&value, Held::Free)))
            }
            None => (Bytes::from(text.as_str()), None),
        }
    }

    fn compound(&mut self, compound: &Compound) -> Does {
        match &compound.kind {
            CompoundKind::Group(script) => Does::Group(self.block(script)),
            CompoundKind::Subshell(script) => Does::Subshell(self.block(script)),
            CompoundKind::If { branches, otherwise } => {
                let pairs = branches
                    .iter()
                    .map(|(condition, body)| (self.block(condition), self.block(body)));
                let branches = pairs.collect();
                let otherwise = otherwise.as_ref().map(|body| self.block(body));
                Does::If { branches, otherwise }
            }
            CompoundKind::While { until, condition, body } => Does::While {
                until: *until,
                condition: self.block(condition),
                body: self.block(body),
            },
            CompoundKind::For { name, words, body } => Does::For {
                name: (Bytes::from(name.as_str()), self.line.is_exported(compound.at, name)),
                words: words.iter().map(|word| self.word(word, Held::Free)).collect(),
                body: self.block(body),
            },
            CompoundKind::Case { word, arms } => {
                let word = self.word(word, Held::Free);
                let arms = arms.iter().map(|(patterns, body)| {
                    let patterns =
                        patterns.iter().map(|pattern| self.word(pattern, Held::Free)).collect();
                    (patterns, self.block(body))
                });
                Does::Case { word, arms: arms.collect() }
            }
            CompoundKind::Test(conditions) => {
                Does::Condition(conditions.iter().map(|it| self.step(it)).collect())
            }
        }
    }

    fn step(&mut self, condition: &Condition) -> Step {
        let operator = |operator: &String| Bytes::from(operator.as_str());
        match condition {
            Condition::Unary(name, word) => {
                Step::Unary(operator(name), self.word(word, Held::Judged))
            }
            Condition::Binary(left, name, right) => Step::Binary(
                self.word(left, Held::Judged),
                operator(name),
                self.word(right, Held::Judged),
            ),
            Condition::Match(left, pattern) => {
                Step::Match(self.word(left, Held::Free), self.word(pattern, Held::Free))
            }
            Condition::Not => Step::Not,
            Condition::And => Step::And,
            Condition::Or => Step::Or,
        }
    }

    fn openings(&mut self, redirects: &[shell::Redirect]) -> Vec<Opening> {
        let openings = redirects.iter().map(|redirect| {
            let to = match &redirect.to {
                RedirectTo::Read(word) => OpeningTo::Read(self.word(word, Held::Judged)),
                RedirectTo::Write(word) => OpeningTo::Write(self.word(word, Held::Judged)),
                RedirectTo::Append(word) => OpeningTo::Append(self.word(word, Held::Judged)),
                RedirectTo::Duplicate(fd) => OpeningTo::Dup(*fd),
                RedirectTo::Close => OpeningTo::Close,
                RedirectTo::Text(text) => OpeningTo::Here(self.word(text, Held::Free)),
            };
            Opening { fd: redirect.fd, to }
        });
        openings.collect()
    }

    fn word(&mut self, word: &shell::Word, held: Held) -> Expand {
        let bytes = |text: &str| Bytes::from(text);
        let pieces = word.parts.iter().map(|part| match part {
            Part::Text(text) => Piece::Text(bytes(text)),
            Part::Home => Piece::Text(bytes(self.home)),
            Part::Any => Piece::Star,
            Part::One => Piece::Any,
            Part::Class(class) => Piece::Class(runner_wire::Class {
                negated: class.negated,
                ranges: class.items.iter().flat_map(|item| item.ranges()).collect(),
            }),
            Part::Expansion { of, quoted } => match (of, quoted) {
                (Expansion::Variable(name), true) => Piece::Quoted(bytes(name)),
                (Expansion::Variable(name), false) => Piece::Variable(bytes(name)),
                (Expansion::Default { name, text, empty }, quoted) => Piece::Default {
                    name: bytes(name),
                    text: bytes(text),
                    empty: *empty,
                    quoted: *quoted,
                },
                (Expansion::Status, _) => Piece::Status,
                (Expansion::Output(script), true) => Piece::QuotedOutput(self.block(script)),
                (Expansion::Output(script), false) => Piece::Output(self.block(script)),
            },
        });
        let pieces = pieces.collect();
        let assume = match self.line.assumed(word) {
            _ if held == Held::Free || !word.is_expanded() => Assume::Nothing,
            // Nothing fulfils it.
            None => Assume::Exactly(Vec::new()),
            Some(assumed) => assume(assumed),
        };
        Expand { pieces, assume }
    }
}

fn assume(assumed: &Assumed) -> Assume {
    match assumed {
        Assumed::Nothing => Assume::Nothing,
        Assumed::Exactly(known) => {
            let words =
                |words: &Vec<String>| words.iter().map(|it| Bytes::from(it.as_str())).collect();
            Assume::Exactly(known.iter().map(words).collect())
        }
        Assumed::NoOption { many, demand } => Assume::NoOption {
            many: *many,
            path: demand.map(|demand| match demand {
                Demand::Inside => PathKind::Inside,
                Demand::InsideWithoutColon => PathKind::Plain,
            }),
        },
    }
}

/// How many loops: at least one.
fn count(word: Option<&shell::Word>) -> u32 {
    word.and_then(shell::Word::literal).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The options of `set`, which the parser has checked.
fn switches(words: &[String]) -> Vec<(Switch, bool)> {
    let mut switches = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let on = word.starts_with('-');
        for letter in word.chars().skip(1) {
            let switch = match letter {
                'e' => Some(Switch::Errexit),
                'u' => Some(Switch::Nounset),
                'o' => match words.next().map(String::as_str) {
                    Some("errexit") => Some(Switch::Errexit),
                    Some("nounset") => Some(Switch::Nounset),
                    Some("pipefail") => Some(Switch::Pipefail),
                    _ => None,
                },
                _ => None,
            };
            switches.extend(switch.map(|switch| (switch, on)));
        }
    }
    switches
}
