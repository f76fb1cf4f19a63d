//! Shell lines: each command of a readable line is a level of its own, in the folder and with the
//! variables that the line gives it. A line that is not readable is one level: `sh`, running code.

use super::level::{Level, Reading, read_level};
use super::shells::Starter;
use super::{Place, Refusal, Scope, roles};
use crate::effect::{self, Caused, Effect};
use crate::paths;
use crate::plan::{Inner, Plan, PlannedLine};
use crate::shell::{
    self, AndOr, Dialect, Join, Line, Pipeline, RedirectTo, SimpleCommand, Unreadable,
};
use crate::word::Word;

/// The home folder inside a sandbox: scratch, empty at first.
pub const HOME: &str = "/home/runner";
/// Most folders that a line can be in at one point; `cd` may fail or not run.
const MAX_FOLDERS: usize = 16;

/// Reads a line.
///
/// # Errors
/// The line is empty, too large, too deep, or has a NUL byte.
pub fn read_line(text: &str, scope: Scope<'_>) -> Result<Reading, Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::Empty);
    }
    let mut reading = Reading::default();
    let place = Place { cwd: scope.cwd, env: &[], depth: 0, starter: Starter::TOP };
    let line = read_into(text, Dialect::Bash, place, &scope, &mut reading)?;
    if reading.levels.is_empty() {
        return Err(Refusal::Empty);
    }
    reading.plan = Some(Plan::line_or_shell(line, text));
    Ok(reading)
}

/// Reads a line into levels. Gives the line as the guest would execute it; none if only a shell can.
pub(super) fn read_into(
    text: &str,
    dialect: Dialect,
    place: Place<'_>,
    scope: &Scope<'_>,
    reading: &mut Reading,
) -> Result<Option<PlannedLine>, Refusal> {
    if text.len() > shell::MAX_BYTES {
        return Err(Refusal::TooLarge);
    }
    if text.contains('\0') {
        return Err(Refusal::Nul);
    }
    match shell::parse_as(dialect, text) {
        Line::Readable(script) => {
            let mut state = State {
                folders: vec![place.cwd.to_owned()],
                exported: place.env.to_vec(),
                place,
                inner: Vec::new(),
                scope,
            };
            for list in &script.lists {
                state.list(list, reading)?;
            }
            let inner = state.inner;
            Ok(Some(PlannedLine::new(script, inner)))
        }
        Line::Unreadable(unreadable) => {
            reading.levels.push(shell_level(text, place, unreadable));
            Ok(None)
        }
    }
}

/// A line that only a shell can execute.
fn shell_level(text: &str, place: Place<'_>, unreadable: Unreadable) -> Level {
    let words = ["sh", "-c", text].map(Word::lit).to_vec();
    let mut level = Level::bare(words, place.cwd, place.depth);
    level.program = "sh".to_owned();
    level.known = Some(crate::grammar::Depth::Opaque);
    for name in place.env {
        roles::set_variable(&mut level, name);
    }
    level.effects.push(Caused {
        effect: Effect::Code,
        by: format!("the line is not readable at {unreadable}"),
    });
    level.complete = false;
    level.unreadable = Some(unreadable);
    level
}

struct State<'a> {
    folders: Vec<String>,
    exported: Vec<String>,
    /// Where the line stands.
    place: Place<'a>,
    /// For each command so far: the line that its last words are.
    inner: Vec<Option<Inner>>,
    scope: &'a Scope<'a>,
}

/// Whether what follows a `cd` runs only if the `cd` did.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moves {
    Surely,
    Maybe,
}

impl State<'_> {
    fn list(&mut self, list: &AndOr, reading: &mut Reading) -> Result<(), Refusal> {
        let mut seen = self.folders.clone();
        let mut join = None;
        // Behind an `||` nobody knows which of the commands before it ran.
        let mut sure = true;
        for at in 0..=list.rest.len() {
            let pipeline = match at.checked_sub(1) {
                None => &list.first,
                Some(at) => &list.rest[at].1,
            };
            if join == Some(Join::Or) {
                sure = false;
                self.folders.clone_from(&seen);
            }
            join = list.rest.get(at).map(|(join, _)| *join);
            let moves = if sure && !pipeline.negated && join == Some(Join::And) {
                Moves::Surely
            } else {
                Moves::Maybe
            };
            self.pipeline(pipeline, moves, reading)?;
            seen.extend(self.folders.iter().cloned());
            seen.sort();
            seen.dedup();
            if seen.len() > MAX_FOLDERS {
                return Err(Refusal::TooDeep);
            }
        }
        // Any prefix of the list may have run.
        self.folders = seen;
        Ok(())
    }

    fn pipeline(
        &mut self,
        pipeline: &Pipeline,
        moves: Moves,
        reading: &mut Reading,
    ) -> Result<(), Refusal> {
        if let [command] = pipeline.commands.as_slice() {
            match command.words.first().and_then(shell::Word::literal) {
                Some("cd") => {
                    self.change_folder(command, moves, reading);
                    self.inner.push(None);
                    return Ok(());
                }
                Some("export") => {
                    self.export(command, reading);
                    self.inner.push(None);
                    return Ok(());
                }
                // An assignment alone changes the environment where the name is exported already.
                None if command.words.is_empty() => {
                    self.exported.extend(command.assignments.iter().map(|(name, _)| name.clone()));
                }
                _ => {}
            }
        }
        for command in &pipeline.commands {
            let inner = self.command(command, reading)?;
            self.inner.push(inner);
        }
        Ok(())
    }

    /// One command, in every folder that the line can be in by then. What it executes is the same in each.
    fn command(
        &self,
        command: &SimpleCommand,
        reading: &mut Reading,
    ) -> Result<Option<Inner>, Refusal> {
        let words: Vec<Word> = command.words.iter().map(word).collect();
        let mut env = self.exported.clone();
        env.extend(command.assignments.iter().map(|(name, _)| name.clone()));
        let mut inner = None;
        for cwd in &self.folders {
            let first = reading.levels.len();
            if words.is_empty() {
                reading.levels.push(Level::bare(Vec::new(), cwd, self.place.depth));
                reading.levels[first].wrapper = command.redirects.is_empty();
                reading.levels[first].known = Some(crate::grammar::Depth::Full);
            } else {
                let place = Place { cwd, env: &env, ..self.place };
                inner = read_level(&words, place, self.scope, reading)?;
            }
            // What a wrapper's redirections open is opened for the command that it wraps.
            let innermost =
                reading.levels[first..].iter().position(|level| !level.wrapper).unwrap_or(0);
            redirects(command, cwd, &mut reading.levels[first + innermost]);
        }
        Ok(inner)
    }

    fn change_folder(&mut self, command: &SimpleCommand, moves: Moves, reading: &mut Reading) {
        let words: Vec<Word> = command.words.iter().map(word).collect();
        let mut level = self.builtin(command);
        let target = match words.as_slice() {
            // HOME and CDPATH of its own lead elsewhere.
            _ if !command.assignments.is_empty() => None,
            [_] => Some(HOME),
            [_, Word::Lit(text)] if !text.starts_with('-') && !text.is_empty() => {
                Some(text.as_str())
            }
            _ => None,
        };
        match target {
            Some(target) => {
                let moved: Vec<String> =
                    self.folders.iter().map(|folder| paths::join(folder, target)).collect();
                match moves {
                    Moves::Surely => self.folders = moved,
                    Moves::Maybe => self.folders.extend(moved),
                }
                self.folders.sort();
                self.folders.dedup();
            }
            None => {
                level.wrapper = false;
                level.complete = false;
                level.effects.push(Caused {
                    effect: Effect::Unknown,
                    by: format!("where `{}` leads is not known", level.show()),
                });
            }
        }
        reading.levels.push(level);
    }

    /// A command that the line itself carries out; its redirections open files wherever it can be.
    fn builtin(&self, command: &SimpleCommand) -> Level {
        let words = command.words.iter().map(word).collect();
        let mut level = Level::bare(words, &self.folders[0], self.place.depth);
        level.known = Some(crate::grammar::Depth::Full);
        level.wrapper = true;
        for folder in &self.folders {
            redirects(command, folder, &mut level);
        }
        level
    }

    fn export(&mut self, command: &SimpleCommand, reading: &mut Reading) {
        let level = self.builtin(command);
        for word in &command.words[1..] {
            let text = word.text(HOME);
            let name = text.split('=').next().unwrap_or_default();
            self.exported.push(name.to_owned());
        }
        reading.levels.push(level);
    }
}

fn word(word: &shell::Word) -> Word {
    match word.pattern(HOME) {
        Some(pattern) => Word::Glob(pattern),
        None => Word::Lit(word.text(HOME)),
    }
}

/// Files that redirections open. A wrapper that opens files is no mere wrapper.
fn redirects(command: &SimpleCommand, cwd: &str, level: &mut Level) {
    for redirect in &command.redirects {
        let (word, write) = match &redirect.to {
            RedirectTo::Read(word) => (word, false),
            RedirectTo::Write(word) | RedirectTo::Append(word) => (word, true),
            RedirectTo::Duplicate(_) | RedirectTo::Close | RedirectTo::Text(_) => continue,
        };
        let place = effect::Place::Exact(paths::join(cwd, &word.text(HOME)));
        let effect = if write { Effect::Write(place) } else { Effect::Read(place) };
        let sign = if write { '>' } else { '<' };
        level.redirects.push(Caused { effect, by: format!("{sign} {}", word.text("~")) });
    }
}
