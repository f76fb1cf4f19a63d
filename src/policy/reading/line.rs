//! Shell lines: each command of a readable line is a level of its own, in the folder and with the
//! variables that the line gives it. A line that is not readable is one level: `sh`, running code.

use std::collections::{BTreeMap, BTreeSet};

use super::level::{Level, Reading, Standing, read_level};
use super::shells::Starter;
use super::values::{Fields, Flow, Value, fields, judged};
use super::{MAX_BYTES, MAX_WORDS, Place, Refusal, Scope, roles};
use crate::effect::{self, Caused, Effect};
use crate::grammar::Depth;
use crate::paths;
use crate::plan::{Assumed, Demand, Inner, Notes, Plan, PlannedLine};
use crate::shell::{
    self, AndOr, Command, Compound, CompoundKind, Condition, Construct, Dialect, Join, Line,
    Pipeline, Position, Redirect, RedirectTo, Script, SimpleCommand, Unreadable,
};
use crate::variables;
use crate::word::{Later, Word};

/// The home folder inside a sandbox: scratch, empty at first.
pub const HOME: &str = "/home/runner";
/// Most folders that a line can be in at one point; `cd` may fail or not run.
const MAX_FOLDERS: usize = 16;
/// Most commands that are looked at. The rounds of a loop are looked at until nothing new can be known, and those of
/// loops in loops multiply.
const MAX_STEPS: usize = 20_000;
/// Rounds of a loop after which what is still different is not known.
const MAX_ROUNDS: usize = 3;
/// Most parts of an unreadable line that are looked at for commands that a rule denies.
const MAX_PARTS: usize = 256;
/// Variables that sandboxes have from the beginning, so that an assignment alone changes the environment.
const PRESENT: [&str; 10] = [
    "CI",
    "FORCE_COLOR",
    "LANG",
    "LOGNAME",
    "NO_COLOR",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
];

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
    let unreadable = reading.levels[0].unreadable.clone();
    if let Some(unreadable) = unreadable.filter(|_| line.is_none()) {
        // It runs in `bash` where the sandbox has one: what a rule denies of `bash` is denied.
        let mut level = shell_level("bash", text, place, unreadable);
        level.standing = Standing::Doubted;
        reading.levels.push(level);
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
    let unreadable = match shell::parse_as(dialect, text) {
        Line::Readable(script) => {
            let first = reading.levels.len();
            let mut state = State::new(place, scope);
            match state.script(&script, reading) {
                Ok(()) => {
                    let notes = state.notes;
                    let idle = reading.levels[first..].iter().all(|level| level.wrapper);
                    if idle && script.commands().next().is_some() {
                        // `exit 3` and `cd src` by themselves are what `true` is.
                        read_level(&[Word::lit("true")], place, scope, reading)?;
                    }
                    return Ok(Some(PlannedLine::new(script, notes)));
                }
                Err(Halt::Refused(refusal)) => return Err(refusal),
                Err(Halt::Unreadable(at, construct)) => {
                    reading.levels.truncate(first);
                    construct.at(Position::of(text, at as usize))
                }
            }
        }
        Line::Unreadable(unreadable) => unreadable,
    };
    reading.levels.push(shell_level("sh", text, place, unreadable));
    doubt_parts(text, dialect, place, scope, reading)?;
    Ok(None)
}

/// A line that only a shell can execute.
fn shell_level(shell: &str, text: &str, place: Place<'_>, unreadable: Unreadable) -> Level {
    let words = [shell, "-c", text].map(Word::lit).to_vec();
    let mut level = Level::bare(words, place.cwd, place.depth);
    level.program = shell.to_owned();
    level.known = Some(Depth::Opaque);
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

/// Commands that stand literally in a line that only a shell can read: for rules that deny or ask about them. What stands
/// between operators is read as a line of its own, whether or not the shell would run it.
fn doubt_parts(
    text: &str,
    dialect: Dialect,
    place: Place<'_>,
    scope: &Scope<'_>,
    reading: &mut Reading,
) -> Result<(), Refusal> {
    const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "do", "while", "until", "!", "time"];
    let first = reading.levels.len();
    let place = Place { depth: place.depth + 1, starter: Starter::Program, ..place };
    for part in text.split([';', '&', '|', '\n', '(', ')', '`', '{', '}']).take(MAX_PARTS) {
        let mut part = part.trim_matches(|c: char| c.is_whitespace() || c == '"');
        while let Some((word, rest)) = part.split_once(char::is_whitespace)
            && KEYWORDS.contains(&word)
        {
            part = rest.trim_start();
        }
        let Line::Readable(script) = shell::parse_as(dialect, part) else { continue };
        for command in script.commands() {
            let words: Option<Vec<Word>> = command
                .words
                .iter()
                .map(|word| (!word.is_expanded()).then(|| judged(word)))
                .collect();
            match words {
                Some(words) if !words.is_empty() => {
                    match read_level(&words, place, scope, reading) {
                        Ok(_) => {}
                        // The line itself was read, and is not denied for what stands in it.
                        Err(Refusal::TooDeep | Refusal::Empty | Refusal::Nul) => {}
                        Err(refusal) => return Err(refusal),
                    }
                }
                _ => {}
            }
        }
    }
    for level in &mut reading.levels[first..] {
        level.standing = Standing::Doubted;
    }
    Ok(())
}

/// Why a line is not read further.
enum Halt {
    /// It is not read at all.
    Refused(Refusal),
    /// Only a shell knows what stands at this byte.
    Unreadable(u32, Construct),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The flow of a line, and what was found out about its words.
struct State<'a> {
    flow: Flow,
    /// What is known where loops were left.
    left: Option<Flow>,
    /// What is known where several loops were left at once. It counts from then on.
    left_further: Option<Flow>,
    notes: Notes,
    steps: usize,
    /// Where the line stands.
    place: Place<'a>,
    scope: &'a Scope<'a>,
}

/// Whether what follows a `cd` runs only if the `cd` did.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moves {
    Surely,
    Maybe,
}

/// A word to judge.
enum Given<'a> {
    /// It stands in no line.
    Text(&'a str),
    /// It is split, and files are looked for.
    Word(&'a shell::Word),
    /// It is neither.
    Whole(&'a shell::Word),
}

/// A command with one combination of values.
struct Variant {
    words: Vec<Word>,
    redirects: Vec<(Effects, Word, String)>,
}

/// What a redirection does with its file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effects {
    Read,
    Write,
}

impl<'a> State<'a> {
    fn new(place: Place<'a>, scope: &'a Scope<'a>) -> Self {
        let flow = Flow {
            folders: vec![place.cwd.to_owned()],
            lost: false,
            exported: place.env.iter().cloned().collect(),
            values: BTreeMap::new(),
        };
        Self {
            flow,
            left: None,
            left_further: None,
            notes: Notes::default(),
            steps: 0,
            place,
            scope,
        }
    }

    fn script(&mut self, script: &Script, reading: &mut Reading) -> Result<(), Halt> {
        script.lists.iter().try_for_each(|list| self.list(list, reading))
    }

    /// A script whose changes end with it.
    fn aside(&mut self, script: &Script, reading: &mut Reading) -> Result<(), Halt> {
        let (flow, left) = (self.flow.clone(), self.left.take());
        let result = self.script(script, reading);
        (self.flow, self.left) = (flow, left);
        result
    }

    fn list(&mut self, list: &AndOr, reading: &mut Reading) -> Result<(), Halt> {
        let folders = self.flow.folders.clone();
        let mut seen: Option<Flow> = None;
        let mut join = None;
        // Behind an `||` nobody knows which of the commands before it ran.
        let mut sure = true;
        for at in 0..=list.rest.len() {
            let pipeline = match at.checked_sub(1) {
                None => &list.first,
                Some(at) => &list.rest[at].1,
            };
            sure &= join != Some(Join::Or);
            if let Some(seen) = seen.as_ref().filter(|_| !sure) {
                self.flow.clone_from(seen);
            }
            join = list.rest.get(at).map(|(join, _)| *join);
            let moves = if sure && !pipeline.negated && join == Some(Join::And) {
                Moves::Surely
            } else {
                Moves::Maybe
            };
            self.pipeline(pipeline, moves, reading)?;
            match &mut seen {
                None => {
                    let mut first = self.flow.clone();
                    first.folders.extend(folders.iter().cloned());
                    first.folders.sort();
                    first.folders.dedup();
                    seen = Some(first);
                }
                Some(seen) => seen.join(&self.flow),
            }
            if seen.as_ref().is_some_and(|seen| seen.folders.len() > MAX_FOLDERS) {
                return Err(Refusal::TooDeep.into());
            }
        }
        // Any prefix of the list may have run.
        if let Some(seen) = seen {
            self.flow = seen;
        }
        Ok(())
    }

    fn pipeline(
        &mut self,
        pipeline: &Pipeline,
        moves: Moves,
        reading: &mut Reading,
    ) -> Result<(), Halt> {
        let alone = pipeline.commands.len() == 1;
        for command in &pipeline.commands {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(Refusal::TooLarge.into());
            }
            let before = (!alone).then(|| (self.flow.clone(), self.left.clone()));
            match command {
                Command::Simple(simple) => self.simple(simple, moves, reading)?,
                Command::Compound(compound) => self.compound(compound, reading)?,
            }
            // Each runs as in a process of its own.
            if let Some((flow, left)) = before {
                (self.flow, self.left) = (flow, left);
            }
        }
        Ok(())
    }

    fn simple(
        &mut self,
        command: &SimpleCommand,
        moves: Moves,
        reading: &mut Reading,
    ) -> Result<(), Halt> {
        let values = command.assignments.iter().map(|(_, value)| value);
        self.outputs(values.chain(&command.words), reading)?;
        let targets = command.redirects.iter().filter_map(|redirect| redirect.to.word());
        self.outputs(targets, reading)?;
        match command.words.first().map(shell::Word::literal) {
            Some(Some("cd")) => self.change_folder(command, moves, reading),
            Some(Some("export")) => self.export(command, reading),
            Some(Some("unset")) => {
                for name in command.words[1..].iter().filter_map(shell::Word::literal) {
                    // It stays among the exported ones: a redirection that fails keeps `unset` from running.
                    self.flow.set(name.to_owned(), Value::one(""));
                }
                self.builtin(command, reading)
            }
            Some(Some("read")) => {
                let names = command.words[1..].iter().filter_map(shell::Word::literal);
                for name in names.filter(|name| *name != "-r") {
                    self.flow.set(name.to_owned(), Value::Unknown);
                    self.note_exported(command.at.start, name);
                }
                self.builtin(command, reading)
            }
            Some(Some("break" | "continue")) => {
                merge(&mut self.left, &self.flow);
                if command.words.len() > 1 {
                    merge(&mut self.left_further, &self.flow);
                }
                self.builtin(command, reading)
            }
            Some(Some("set" | "exit")) => self.builtin(command, reading),
            Some(Some("command")) if command.words.len() > 1 => self.builtin(command, reading),
            None if !command.assignments.is_empty() => {
                for (name, value) in &command.assignments {
                    let value = self.flow.text(value);
                    self.flow.set(name.clone(), value);
                    self.note_exported(command.at.start, name);
                }
                self.command(command, reading)
            }
            _ => self.command(command, reading),
        }
    }

    /// Notes whether a variable that is set is one of the environment, as it was judged.
    fn note_exported(&mut self, at: u32, name: &str) {
        let present = PRESENT.contains(&name) || name.starts_with("LC_");
        if present || variables::loads_code(name) {
            self.flow.exported.insert(name.to_owned());
        }
        if self.flow.exported.contains(name) {
            self.notes.exported.insert((at, name.to_owned()));
        }
    }

    /// What stands in each `$(…)`.
    fn outputs<'w>(
        &mut self,
        words: impl Iterator<Item = &'w shell::Word>,
        reading: &mut Reading,
    ) -> Result<(), Halt> {
        for script in words.flat_map(shell::Word::outputs) {
            self.aside(script, reading)?;
        }
        Ok(())
    }

    fn compound(&mut self, compound: &Compound, reading: &mut Reading) -> Result<(), Halt> {
        let targets = compound.redirects.iter().filter_map(|redirect| redirect.to.word());
        self.outputs(targets, reading)?;
        if !compound.redirects.is_empty() {
            self.judge(&[], &compound.redirects, &[], compound.at.start, reading)?;
        }
        match &compound.kind {
            CompoundKind::Group(script) => self.script(script, reading),
            CompoundKind::Subshell(script) => self.aside(script, reading),
            CompoundKind::If { branches, otherwise } => {
                let mut after: Option<Flow> = None;
                for (condition, body) in branches {
                    self.script(condition, reading)?;
                    let failed = self.flow.clone();
                    self.script(body, reading)?;
                    merge(&mut after, &self.flow);
                    self.flow = failed;
                }
                if let Some(body) = otherwise {
                    self.script(body, reading)?;
                }
                merge(&mut after, &self.flow);
                self.take(after)
            }
            CompoundKind::While { condition, body, .. } => {
                self.rounds(reading, |state, reading| {
                    state.script(condition, reading)?;
                    // Here the loop ends.
                    merge(&mut state.left, &state.flow);
                    state.script(body, reading)
                })
            }
            CompoundKind::For { name, words, body } => {
                self.outputs(words.iter(), reading)?;
                let value = self.items(words);
                self.rounds(reading, |state, reading| {
                    state.flow.values.insert(name.clone(), value.clone());
                    state.note_exported(compound.at.start, name);
                    state.script(body, reading)
                })
            }
            CompoundKind::Case { word, arms } => {
                let patterns = arms.iter().flat_map(|(patterns, _)| patterns);
                self.outputs(std::iter::once(word).chain(patterns), reading)?;
                let before = self.flow.clone();
                let mut after = Some(before.clone());
                for (_, body) in arms {
                    self.flow.clone_from(&before);
                    self.script(body, reading)?;
                    merge(&mut after, &self.flow);
                }
                self.take(after)
            }
            CompoundKind::Test(conditions) => {
                let words: Vec<&shell::Word> =
                    conditions.iter().flat_map(Condition::words).collect();
                self.outputs(words.into_iter(), reading)?;
                conditions.iter().try_for_each(|it| self.condition(it, compound, reading))
            }
        }
    }

    fn take(&mut self, flow: Option<Flow>) -> Result<(), Halt> {
        if let Some(flow) = flow {
            self.flow = flow;
        }
        if self.flow.folders.len() > MAX_FOLDERS {
            return Err(Refusal::TooDeep.into());
        }
        Ok(())
    }

    /// What the variable of a `for` can be.
    fn items(&self, words: &[shell::Word]) -> Value {
        let mut all = BTreeSet::new();
        for word in words {
            for known in self.flow.combinations(std::iter::once(word)) {
                let Fields::Known(fields) = fields(word, &known) else { return Value::Unknown };
                if fields.iter().any(shell::Word::is_glob) {
                    return Value::Unknown;
                }
                all.extend(fields.iter().map(|field| field.text(HOME)));
            }
        }
        Value::of(all)
    }

    /// Rounds of a loop, until another one would tell nothing new. The levels are those of the last one, in which
    /// everything is known that any round can bring.
    fn rounds(
        &mut self,
        reading: &mut Reading,
        mut round: impl FnMut(&mut Self, &mut Reading) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let outer = self.left.take();
        let levels = reading.levels.len();
        for count in 0.. {
            reading.levels.truncate(levels);
            let before = self.flow.clone();
            round(self, reading)?;
            let mut after = before.clone();
            after.join(&self.flow);
            if let Some(left) = self.left.take() {
                after.join(&left);
            }
            if after == before {
                self.flow = after;
                break;
            }
            if count > 2 * MAX_ROUNDS || after.folders.len() > MAX_FOLDERS {
                return Err(Halt::Unreadable(0, Construct::ChangeFolder));
            }
            if count >= MAX_ROUNDS {
                after.widen(&before);
            }
            self.flow = after;
        }
        // A `break 2` leaves the loops around as well.
        self.left = outer.map(|mut outer| {
            outer.join(&self.flow);
            outer
        });
        if let Some(further) = &self.left_further {
            merge(&mut self.left, further);
            self.flow.join(further);
        }
        Ok(())
    }

    /// `[[ -f x ]]` does what `test -f x` does.
    fn condition(
        &mut self,
        condition: &Condition,
        compound: &Compound,
        reading: &mut Reading,
    ) -> Result<(), Halt> {
        let given = match condition {
            Condition::Unary(operator, word) => {
                vec![Given::Text("test"), Given::Text(operator), Given::Whole(word)]
            }
            Condition::Binary(left, operator, right) => vec![
                Given::Text("test"),
                Given::Whole(left),
                Given::Text(operator),
                Given::Whole(right),
            ],
            Condition::Match(..) | Condition::Not | Condition::And | Condition::Or => return Ok(()),
        };
        self.judge(&given, &[], &[], compound.at.start, reading).map(drop)
    }

    /// One command.
    fn command(&mut self, command: &SimpleCommand, reading: &mut Reading) -> Result<(), Halt> {
        let given: Vec<Given<'_>> = command.words.iter().map(Given::Word).collect();
        let env: Vec<String> = command.assignments.iter().map(|(name, _)| name.clone()).collect();
        // What is assigned alone is no variable of a command.
        let env = if command.words.is_empty() { &[][..] } else { &env };
        let inner = self.judge(&given, &command.redirects, env, command.at.start, reading)?;
        match inner {
            Some(inner) => drop(self.notes.inner.insert(command.at.start, inner)),
            // An earlier round of a loop may have had one.
            None => drop(self.notes.inner.remove(&command.at.start)),
        }
        Ok(())
    }

    /// Judges words with all values that they can have, in every folder that the line can be in by then. What the
    /// command executes is the same in each.
    fn judge(
        &mut self,
        given: &[Given<'_>],
        redirects: &[Redirect],
        env: &[String],
        at: u32,
        reading: &mut Reading,
    ) -> Result<Option<Inner>, Halt> {
        let (variants, mut assumed) = self.variants(given, redirects, at)?;
        let mut env: Vec<String> = self.flow.exported.iter().cloned().chain(env.to_vec()).collect();
        env.sort();
        env.dedup();
        let first = reading.levels.len();
        let later = |variant: &Variant| variant.words.iter().any(|it| matches!(it, Word::Later(_)));
        let inner = if variants.iter().any(later) && self.is_harmless(&variants, &env)? {
            for assumed in assumed.values_mut() {
                if matches!(assumed, Assumed::NoOption { .. }) {
                    *assumed = Assumed::Nothing;
                }
            }
            let anything = variants.iter().map(anything).collect::<Vec<_>>();
            self.levels(&anything, &env, at, reading)?
        } else {
            self.levels(&variants, &env, at, reading)?
        };
        if let Some(inner) = &inner {
            self.fixed(given, &variants, inner)?;
        }
        if variants.iter().all(Variant::compares_text) {
            for assumed in assumed.values_mut() {
                if matches!(assumed, Assumed::NoOption { many: false, .. }) {
                    *assumed = Assumed::Nothing;
                }
            }
        }
        for (site, demand) in reading.levels[first..].iter().flat_map(|level| &level.demanded) {
            if let Some(Assumed::NoOption { demand: known, .. }) = assumed.get_mut(site) {
                *known = (*known).max(Some(*demand));
            }
        }
        for redirect in redirects {
            // A file to open is looked for inside, whatever the command does with its words.
            if let Some(word) = redirect.to.word().filter(|word| word.is_expanded())
                && let Some(assumed) = assumed.get_mut(&word.at.start)
                && !matches!(assumed, Assumed::Exactly(_))
            {
                let demand = Some(Demand::Inside);
                *assumed = match redirect.to {
                    RedirectTo::Text(_) => Assumed::Nothing,
                    _ => Assumed::NoOption { many: false, demand },
                };
            }
        }
        self.notes.assumed.extend(assumed);
        Ok(inner)
    }

    /// A line in a command replaces words of it: those must be what was read, and only one line.
    fn fixed(&self, given: &[Given<'_>], variants: &[Variant], inner: &Inner) -> Result<(), Halt> {
        let split = |variant: &Variant| variant.words.len() != given.len();
        let several = variants.len() > 1 || variants.iter().any(split);
        for (index, given) in given.iter().enumerate() {
            if let Given::Word(word) = given
                && word.is_expanded()
                && (several || index >= inner.words())
            {
                return Err(Halt::Unreadable(word.at.start, Construct::Parameter));
            }
        }
        Ok(())
    }

    /// The levels of a command; the line that its last words are. Words that are a line with some values are one
    /// with all: else the plan would say of the others that a program runs.
    fn levels(
        &self,
        variants: &[Variant],
        env: &[String],
        at: u32,
        reading: &mut Reading,
    ) -> Result<Option<Inner>, Halt> {
        let mut inner = None;
        let mut is_line = None;
        for cwd in &self.flow.folders {
            for variant in variants {
                let first = reading.levels.len();
                if variant.words.is_empty() {
                    let mut level = Level::bare(Vec::new(), cwd, self.place.depth);
                    level.wrapper = variant.redirects.is_empty();
                    level.known = Some(Depth::Full);
                    reading.levels.push(level);
                } else {
                    let place = Place { cwd, env, ..self.place };
                    inner = read_level(&variant.words, place, self.scope, reading)?;
                }
                let found = inner.as_ref().filter(|_| !variant.words.is_empty()).is_some();
                if *is_line.get_or_insert(found) != found {
                    return Err(Halt::Unreadable(at, Construct::Parameter));
                }
                // What a wrapper's redirections open is opened for the command that it wraps.
                let innermost =
                    reading.levels[first..].iter().position(|level| !level.wrapper).unwrap_or(0);
                variant.open(cwd, &mut reading.levels[first + innermost]);
            }
        }
        Ok(inner)
    }

    /// Whether a command does nothing, whatever the words are that are not known: options and operands alike.
    fn is_harmless(&self, variants: &[Variant], env: &[String]) -> Result<bool, Halt> {
        let Some(cwd) = self.flow.folders.first() else { return Ok(false) };
        for variant in variants {
            let words = anything(variant).words;
            let mut scratch = Reading::default();
            let place = Place { cwd, env, ..self.place };
            if words.first().and_then(Word::text).is_none() {
                return Ok(false);
            }
            read_level(&words, place, self.scope, &mut scratch)?;
            let does_nothing = |level: &Level| {
                level.known == Some(Depth::Full)
                    && level.described_by.is_none()
                    && !level.wrapper
                    && level.effects.iter().all(|caused| matches!(caused.effect, Effect::Env(_)))
            };
            if scratch.levels.len() != 1 || !scratch.levels.iter().all(does_nothing) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A command with every combination of values, and what is assumed of its words.
    fn variants(
        &self,
        given: &[Given<'_>],
        redirects: &[Redirect],
        at: u32,
    ) -> Result<(Vec<Variant>, BTreeMap<u32, Assumed>), Halt> {
        let words = given.iter().filter_map(|given| match given {
            Given::Text(_) => None,
            Given::Word(word) | Given::Whole(word) => Some(*word),
        });
        let targets = redirects.iter().filter_map(|redirect| redirect.to.word());
        let combinations = self.flow.combinations(words.chain(targets));
        let mut assumed: BTreeMap<u32, Assumed> = BTreeMap::new();
        let mut variants = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        for known in combinations {
            let mut variant = Variant { words: Vec::new(), redirects: Vec::new() };
            let mut counted = 0;
            for given in given {
                let word = match given {
                    Given::Text(text) => {
                        variant.words.push(Word::lit(*text));
                        continue;
                    }
                    Given::Word(word) => expanded(word, fields(word, &known), &mut assumed),
                    Given::Whole(word) => {
                        let fields = fields(&whole(word), &known);
                        expanded(word, fields, &mut assumed)
                    }
                };
                variant.words.extend(word);
                // Each word is counted once: what was counted before is not looked at again.
                let new = &variant.words[counted.min(variant.words.len())..];
                count += new.len();
                bytes += new.iter().filter_map(Word::text).map(str::len).sum::<usize>();
                counted = variant.words.len();
                if count > MAX_WORDS || bytes > MAX_BYTES {
                    return Err(Refusal::TooLarge.into());
                }
            }
            for redirect in redirects {
                let (effects, word) = match &redirect.to {
                    RedirectTo::Read(word) => (Effects::Read, word),
                    RedirectTo::Write(word) | RedirectTo::Append(word) => (Effects::Write, word),
                    RedirectTo::Text(word) => {
                        if word.is_expanded() {
                            assumed.insert(word.at.start, Assumed::Nothing);
                        }
                        continue;
                    }
                    RedirectTo::Duplicate(_) | RedirectTo::Close => continue,
                };
                let mut words = expanded(word, fields(word, &known), &mut assumed);
                let (Some(target), None) = (words.pop(), words.pop()) else {
                    return Err(Halt::Unreadable(word.at.start, Construct::Redirection));
                };
                variant.redirects.push((effects, target, word.text("~")));
            }
            // A name of which a shell makes more than a program is not looked for as one.
            let name = variant.words.first().and_then(Word::text);
            if let (Some(Given::Word(word)), Some(name)) = (given.first(), name)
                && word.is_expanded()
                && shell::is_builtin(name)
            {
                return Err(Halt::Unreadable(at, Construct::Builtin));
            }
            variants.push(variant);
        }
        Ok((variants, assumed))
    }

    fn change_folder(
        &mut self,
        command: &SimpleCommand,
        moves: Moves,
        reading: &mut Reading,
    ) -> Result<(), Halt> {
        let mut targets = Some(Vec::new());
        // HOME and CDPATH of its own lead elsewhere.
        let plain = command.assignments.is_empty();
        let folder = command.words.get(1);
        let (variants, mut assumed) = match folder {
            Some(word) => self.variants(&[Given::Word(word)], &[], command.at.start)?,
            None => (Vec::new(), BTreeMap::new()),
        };
        if folder.is_none() {
            targets = Some(vec![HOME.to_owned()]);
        }
        for variant in &variants {
            match variant.words.as_slice() {
                [Word::Lit(text)] if plain && !text.starts_with('-') && !text.is_empty() => {
                    if let Some(targets) = &mut targets {
                        targets.push(text.clone());
                    }
                }
                _ => targets = None,
            }
        }
        let targets = targets.filter(|_| plain);
        self.builtin(command, reading)?;
        let Some(targets) = targets else {
            for assumed in assumed.values_mut() {
                *assumed = Assumed::NoOption { many: false, demand: Some(Demand::Inside) };
            }
            self.notes.assumed.extend(assumed);
            self.flow.lost = true;
            if let Some(level) = reading.levels.last_mut() {
                let by = format!("where `{}` leads is not known", level.show());
                level.wrapper = false;
                level.complete = false;
                level.effects.push(Caused { effect: Effect::Unknown, by });
            }
            return Ok(());
        };
        self.notes.assumed.extend(assumed);
        let folders = &self.flow.folders;
        let moved: Vec<String> = folders
            .iter()
            .flat_map(|folder| targets.iter().map(|target| paths::join(folder, target)))
            .collect();
        match moves {
            Moves::Surely => self.flow.folders = moved,
            Moves::Maybe => self.flow.folders.extend(moved),
        }
        self.flow.folders.sort();
        self.flow.folders.dedup();
        Ok(())
    }

    /// A command that the line itself carries out; its redirections open files wherever it can be.
    fn builtin(&mut self, command: &SimpleCommand, reading: &mut Reading) -> Result<(), Halt> {
        let (variants, assumed) = self.variants(&[], &command.redirects, command.at.start)?;
        self.notes.assumed.extend(assumed);
        let words = command.words.iter().map(|word| match word.is_expanded() {
            true => Word::Starts(String::new()),
            false => judged(word),
        });
        let cwd = self.flow.folders.first().map_or("/", String::as_str);
        let mut level = Level::bare(words.collect(), cwd, self.place.depth);
        level.known = Some(Depth::Full);
        level.wrapper = true;
        for folder in &self.flow.folders {
            variants.iter().for_each(|variant| variant.open(folder, &mut level));
        }
        reading.levels.push(level);
        Ok(())
    }

    fn export(&mut self, command: &SimpleCommand, reading: &mut Reading) -> Result<(), Halt> {
        for word in &command.words[1..] {
            let mut value = word.clone();
            let Some(shell::Part::Text(text)) = value.parts.first_mut() else { continue };
            let (name, given) = match text.split_once('=') {
                Some((name, rest)) => (name.to_owned(), Some(rest.to_owned())),
                None => (text.clone(), None),
            };
            if let Some(rest) = given {
                *text = rest;
                let value = self.flow.text(&value);
                self.flow.set(name.clone(), value);
            }
            self.flow.exported.insert(name);
        }
        self.builtin(command, reading)
    }
}

impl Variant {
    /// Whether this is a `test` of at most two words that are not known, whose operator stands literally between or before
    /// them, and looks at no file. How many words there are says which one is the operator, whatever the others are.
    fn compares_text(&self) -> bool {
        const BINARY: [&str; 9] = ["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        let words = match self.words.split_first() {
            Some((Word::Lit(name), words)) if name == "test" => words,
            Some((Word::Lit(name), [words @ .., Word::Lit(end)])) if name == "[" && end == "]" => {
                words
            }
            _ => return false,
        };
        let words = match words {
            [Word::Lit(not), words @ ..] if not == "!" && words.len() > 1 => words,
            words => words,
        };
        let one = |word: &Word| match word {
            Word::Lit(_) => true,
            Word::Later(later) => !later.many,
            _ => false,
        };
        match words {
            [left, Word::Lit(operator), right] => {
                BINARY.contains(&operator.as_str()) && one(left) && one(right)
            }
            [Word::Lit(operator), word] => matches!(operator.as_str(), "-n" | "-z") && one(word),
            _ => false,
        }
    }

    /// Notes the files that redirections open. A wrapper that opens files is no mere wrapper.
    fn open(&self, cwd: &str, level: &mut Level) {
        for (effects, word, shown) in &self.redirects {
            let place = match word.text() {
                Some(text) => effect::Place::Exact(paths::join(cwd, text)),
                None => effect::Place::Any,
            };
            let (effect, sign) = match effects {
                Effects::Read => (Effect::Read(place), '<'),
                Effects::Write => (Effect::Write(place), '>'),
            };
            level.redirects.push(Caused { effect, by: format!("{sign} {shown}") });
        }
    }
}

/// The same command, whose words that are not known can be anything.
fn anything(variant: &Variant) -> Variant {
    let open = |word: &Word| match word {
        Word::Later(Later { before, many: false, .. }) => Word::Starts(before.clone()),
        Word::Later(_) => Word::Any,
        other => other.clone(),
    };
    Variant {
        words: variant.words.iter().map(open).collect(),
        redirects: variant.redirects.clone(),
    }
}

fn merge(into: &mut Option<Flow>, flow: &Flow) {
    match into {
        Some(into) => into.join(flow),
        None => *into = Some(flow.clone()),
    }
}

/// A word in which nothing is split.
fn whole(word: &shell::Word) -> shell::Word {
    let mut word = word.clone();
    for part in &mut word.parts {
        if let shell::Part::Expansion { quoted, .. } = part {
            *quoted = true;
        }
    }
    // An empty value is a word as well.
    if word.is_expanded() {
        word.parts.push(shell::Part::Text(String::new()));
    }
    word
}

/// The words that a word becomes, as they are judged, and what is assumed of it.
fn expanded(word: &shell::Word, fields: Fields, assumed: &mut BTreeMap<u32, Assumed>) -> Vec<Word> {
    let site = word.at.start;
    match fields {
        Fields::Known(fields) => {
            if word.is_expanded() {
                let spelled = fields.iter().map(|field| field.spelling(HOME)).collect();
                match assumed.entry(site).or_insert_with(|| Assumed::Exactly(BTreeSet::new())) {
                    Assumed::Exactly(known) => {
                        known.insert(spelled);
                    }
                    // Another combination is not known: then this one is among what that can be.
                    Assumed::Nothing | Assumed::NoOption { .. } => {
                        let later = Later { site, before: String::new(), many: true };
                        return vec![Word::Later(later)];
                    }
                }
            }
            fields.iter().map(judged).collect()
        }
        Fields::Later(later) if later.before.starts_with('-') => {
            // Judged as any option.
            assumed.insert(site, Assumed::Nothing);
            vec![if later.many { Word::Any } else { Word::Starts(later.before) }]
        }
        Fields::Later(later) => {
            assumed.insert(site, Assumed::NoOption { many: later.many, demand: None });
            vec![Word::Later(later)]
        }
    }
}
