//! One command: its canonical form, its arguments by kind, its effects, and what it executes.

use super::args::{self, Item};
use super::roles::{self, Emit};
use super::shells::{self, Starter};
use super::{MAX_DEPTH, MAX_LEVELS, Place, Refusal, Scope, nested, worst};
use crate::effect::{Caused, Class, Effect};
use crate::grammar::{Command, Depth, Does, Kind, Program, Role, Slots, When};
use crate::plan::{Demand, Inner, Plan};
use crate::word::Word;

/// What a whole command does: every level of it, outermost first.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The levels.
    pub levels: Vec<Level>,
    /// What runs if all of them are granted.
    pub(crate) plan: Option<Plan>,
}

/// One command.
#[derive(Debug, Clone)]
pub struct Level {
    /// How deep it is nested; 0 is what was typed.
    pub depth: usize,
    /// The words as they were given.
    pub words: Vec<Word>,
    /// How much the catalog knows of it; `None` for a program that nobody described.
    pub known: Option<Depth>,
    /// The program's own name: an alias is read as what it stands for.
    pub program: String,
    /// The name that it was called by, for people.
    pub called: String,
    /// Program and subcommands, canonical: `git push`, `npm run`.
    pub path: Vec<String>,
    /// Options in the order given.
    pub options: Vec<Given>,
    /// Operands in the order given; `None` for one that is not known.
    pub operands: Vec<Option<String>>,
    /// Arguments by kind, for `args:` conditions.
    pub args: Vec<Arg>,
    /// What it does by itself.
    pub effects: Vec<Caused>,
    /// It executes another command and does nothing else.
    pub wrapper: bool,
    /// Whether every word was understood. A deny needs only doubt.
    pub complete: bool,
    /// The folder it runs in.
    pub cwd: String,
    /// The folder that its own options lead to: `sub` for `make -C sub`.
    pub folder: String,
    /// Files that redirections of a shell line open.
    pub redirects: Vec<Caused>,
    /// The layer whose `programs:` describe it; `None` for the catalog.
    pub described_by: Option<usize>,
    /// Why a shell line was not readable.
    pub unreadable: Option<crate::shell::Unreadable>,
    /// Whether this is what the command does, or only what it could do.
    pub standing: Standing,
    /// What must hold for words that are not known before the line runs, by where they stand.
    pub(crate) demanded: Vec<(u32, Demand)>,
}

/// Whether a level is a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is what runs.
    Certain,
    /// A program called by a path could be the one of that name: only a deny takes it so.
    Doubted,
}

/// One option as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Every name it has.
    pub names: Vec<String>,
    /// Its values; `None` for one that is not known.
    pub values: Vec<Option<String>>,
    /// As it was written.
    pub written: String,
}

/// One argument of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// Its kind.
    pub kind: Kind,
    /// Its value, a path made absolute; `None` if it can be anything.
    pub value: Option<String>,
}

impl Level {
    /// A command of which only the words are known.
    pub(super) fn bare(words: Vec<Word>, cwd: &str, depth: usize) -> Self {
        let program = words.first().and_then(Word::text).unwrap_or_default().to_owned();
        Self {
            depth,
            words,
            known: None,
            path: vec![program.clone()],
            called: program.clone(),
            program,
            options: Vec::new(),
            operands: Vec::new(),
            args: Vec::new(),
            effects: Vec::new(),
            wrapper: false,
            complete: true,
            cwd: cwd.to_owned(),
            folder: cwd.to_owned(),
            redirects: Vec::new(),
            described_by: None,
            unreadable: None,
            standing: Standing::Certain,
            demanded: Vec::new(),
        }
    }

    /// The same command as someone reads it who has no grammar for it.
    #[must_use]
    pub fn as_unknown(&self) -> Self {
        let mut level = Self::bare(self.words.clone(), &self.cwd, self.depth);
        level.unread();
        level
    }

    fn unread(&mut self) {
        let by = if self.program.is_empty() {
            "a program whose name is not known".to_owned()
        } else {
            format!("`{}` is not in the catalog", self.program)
        };
        self.add(Effect::Unknown, by);
        self.complete = false;
        // `flock FILE -c LINE`: what looks like an option is one, and may hand text to a shell.
        let option = self.program.len() > 1 && self.program.starts_with('-');
        shells::doubt(self, option || self.program.is_empty());
        self.operands =
            self.words.iter().skip(1).map(|word| word.text().map(str::to_owned)).collect();
    }

    /// The classes of all its effects.
    #[must_use]
    pub fn classes(&self) -> crate::effect::Classes {
        self.effects.iter().filter_map(|caused| caused.effect.class()).collect()
    }

    /// Program and subcommands, by the name that was called.
    pub(super) fn spoken(&self) -> String {
        let words = std::iter::once(self.called.as_str());
        words.chain(self.path.iter().skip(1).map(String::as_str)).collect::<Vec<_>>().join(" ")
    }

    /// The command as one line.
    #[must_use]
    pub fn show(&self) -> String {
        self.words.iter().map(Word::show).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn add(&mut self, effect: Effect, by: impl Into<String>) {
        /// How far back the same effect is looked for: a command has thousands of words at worst, and
        /// an effect that stands twice is harmless.
        const NEAR: usize = 64;
        let caused = Caused { effect, by: by.into() };
        if !self.effects.iter().rev().take(NEAR).any(|known| *known == caused) {
            self.effects.push(caused);
        }
    }
}

/// Reads the words of one command and, below it, all that it executes. Gives the line that its last words are, if the
/// guest executes one.
pub(super) fn read_level(
    words: &[Word],
    place: Place<'_>,
    scope: &Scope<'_>,
    reading: &mut Reading,
) -> Result<Option<Inner>, Refusal> {
    if place.depth > MAX_DEPTH {
        return Err(Refusal::TooDeep);
    }
    if reading.levels.len() >= MAX_LEVELS {
        return Err(Refusal::TooLarge);
    }
    let name = words.first().and_then(Word::text).unwrap_or_default();
    let (program, described_by) =
        scope.lookup(name).map_or((None, None), |(program, by)| (Some(program), by));
    let mut level = Level::bare(words.to_vec(), place.cwd, place.depth);
    if let Some(program) = program {
        level.known = Some(program.depth);
        level.program.clone_from(&program.name);
        level.path = vec![program.name.clone()];
        level.described_by = described_by;
    }
    for variable in place.env {
        roles::set_variable(&mut level, variable);
    }
    match program {
        None => {
            level.unread();
            reading.levels.push(level);
            doubt_path(words, place, scope, reading)?;
            Ok(None)
        }
        Some(program) => read_known(program, level, place, scope, reading),
    }
}

/// `/usr/bin/env sort a` is unknown, and could be `env sort a`: read so, for those who deny it.
fn doubt_path(
    words: &[Word],
    place: Place<'_>,
    scope: &Scope<'_>,
    reading: &mut Reading,
) -> Result<(), Refusal> {
    let called = words.first().and_then(Word::text).unwrap_or_default();
    let Some((_, name)) = called.rsplit_once('/') else { return Ok(()) };
    if crate::catalog::lookup(name).is_none() {
        return Ok(());
    }
    let mut bare = words.to_vec();
    bare[0] = Word::lit(name);
    let first = reading.levels.len();
    read_level(&bare, Place { starter: Starter::Program, ..place }, scope, reading)?;
    for level in &mut reading.levels[first..] {
        level.standing = Standing::Doubted;
    }
    Ok(())
}

fn read_known(
    program: &Program,
    mut level: Level,
    place: Place<'_>,
    scope: &Scope<'_>,
    reading: &mut Reading,
) -> Result<Option<Inner>, Refusal> {
    let words = std::mem::take(&mut level.words);
    let own = level.effects.len();
    let mut emit = Emit::new(level.cwd.clone(), place.env.to_vec());
    if program.depth == Depth::Opaque {
        level.add(Effect::Code, format!("`{}` runs what it is given", level.called));
    }
    read_command(&program.command, &words[1..], &mut level, &mut emit);
    level.words = words;
    shells::doubt(&mut level, false);
    let runs = nested::runs(program, &mut level, &emit.nested, place.starter);
    level.folder.clone_from(emit.folder());
    level.wrapper = !emit.nested.is_empty()
        && level.complete
        && level.effects[own..].is_empty()
        && program.depth == Depth::Full
        // A grammar that a policy brings lets nothing pass by itself: a rule must grant it.
        && level.described_by.is_none();
    if level.wrapper {
        // What a wrapper passes on is judged where it arrives.
        level.effects.clear();
    }
    let at = reading.levels.len();
    reading.levels.push(level);
    nested::read(at, emit.nested, runs, place, scope, reading)
}

/// Reads the arguments of a program or subcommand, then of the subcommand it names.
fn read_command(command: &Command, words: &[Word], level: &mut Level, emit: &mut Emit) {
    let split = args::split(command, words);
    if let Some(default) = meant(command, words, &split) {
        return read_command(default, words, level, emit);
    }
    let first = level.effects.len();
    let mut facts = Facts::of(&split.items);
    if let Some(at) = split.subcommand {
        facts.count(words.len() - at);
    }
    let holding: Vec<&When> = command.when.iter().filter(|when| facts.hold(when)).collect();

    for item in &split.items {
        match item {
            Item::Option { option, values, .. } => emit.prepare(option, values),
            Item::Operand { .. } | Item::Unknown(_) | Item::Anything | Item::Missing(_) => {}
        }
    }
    let does = command.does.iter().chain(holding.iter().flat_map(|when| &when.does));
    for does in does.clone() {
        if let Does::Method(method) = does {
            emit.method.clone_from(method);
        }
    }
    // Milder operands must be certain as well.
    let certain = holding.iter().rev().filter(|when| facts.is_certain(when));
    let slots =
        certain.into_iter().find_map(|when| when.operands.as_ref()).unwrap_or(&command.operands);
    let assigned = if split.subcommand.is_some() {
        Vec::new()
    } else {
        assign(slots, command.after.as_ref(), &split, level)
    };
    let mut operands = assigned.into_iter();
    let mut rest: Vec<Word> = Vec::new();
    let mut rest_role: Option<Role> = None;
    let mut by_options: Vec<usize> = Vec::new();
    let mut anything = Anything::Not;
    for item in &split.items {
        match item {
            Item::Option { option, values, written } => {
                let before = level.effects.len();
                let values = overridden(values, option, &holding);
                note_option(level, option, &values, written);
                if let [(_, value)] = &values[..]
                    && value.text().is_some_and(|value| option.but.iter().any(|it| it == value))
                {
                    continue;
                }
                for does in &option.does {
                    emit.does(level, does, written);
                }
                if values.first().is_some_and(|(role, _)| *role == Role::ExecUntil) {
                    emit.exec_until(level, values.into_iter().map(|(_, word)| word).collect());
                } else {
                    for (role, word) in &values {
                        emit.role(level, role, word, written);
                    }
                }
                by_options.extend(before..level.effects.len());
            }
            Item::Operand { word, .. } => {
                level.operands.push(word.text().map(str::to_owned));
                let roles = operands.next().unwrap_or_default();
                if !command.keys.is_empty() {
                    read_key(command, word, level, emit);
                    continue;
                }
                if roles.is_empty() {
                    level.complete = false;
                    level
                        .add(Effect::Unknown, format!("`{}` is one operand too many", word.show()));
                }
                for role in roles {
                    if role.takes_rest() {
                        rest_role.get_or_insert(role);
                        rest.push(word.clone());
                    } else {
                        emit.among_operands(|emit| emit.role(level, &role, word, &word.show()));
                    }
                }
            }
            Item::Unknown(text) => {
                level.complete = false;
                level.add(
                    Effect::Unknown,
                    format!("option `{text}` is not in the catalog's `{}`", level.spoken()),
                );
            }
            Item::Missing(text) => {
                level.complete = false;
                level.add(Effect::Unknown, format!("`{text}` lacks its value"));
            }
            Item::Anything if anything == Anything::Not => {
                anything = Anything::Added;
                worst::add(command, level);
            }
            Item::Anything => {}
        }
    }
    for does in does {
        let by = level.spoken();
        emit.among_operands(|emit| emit.does(level, does, &by));
    }
    if let Some(role) = rest_role {
        emit.rest(level, &role, rest);
    }
    drop_classes(level, first, &by_options, &holding);
    match split.subcommand {
        None => {}
        Some(at) if split.in_doubt(command) => doubt_subcommand(&words[at..], level),
        Some(at) => read_subcommand(command, &words[at..], level, emit),
    }
}

/// Which word is the subcommand depends on an option that was not understood: it can be any.
fn doubt_subcommand(words: &[Word], level: &mut Level) {
    let by = format!("which subcommand of `{}` is meant is not known", level.spoken());
    level.complete = false;
    level.add(Effect::Unknown, by);
    level.operands.extend(words.iter().map(|_| None));
}

/// The subcommand that is meant where the first operand names none. A word that is not known may name any.
fn meant<'g>(command: &'g Command, words: &[Word], split: &args::Split<'_>) -> Option<&'g Command> {
    let by_name = |name: &str| {
        command.subcommands.iter().find(|inner| inner.names.iter().any(|known| known == name))
    };
    let default = by_name(command.default.as_ref()?)?;
    match split.subcommand {
        None => Some(&default.command),
        Some(at) => match words[at].text() {
            Some(name) if by_name(name).is_none() => Some(&default.command),
            _ => None,
        },
    }
}

fn read_subcommand(command: &Command, words: &[Word], level: &mut Level, emit: &mut Emit) {
    let name = words[0].text().unwrap_or_default();
    let found = command.subcommands.iter().find(|sub| sub.names.iter().any(|known| known == name));
    match found {
        Some(sub) => {
            level.path.push(sub.names[0].clone());
            read_command(&sub.command, &words[1..], level, emit);
        }
        None => {
            level.complete = false;
            level.add(
                Effect::Unknown,
                format!(
                    "subcommand `{}` is not in the catalog's `{}`",
                    words[0].show(),
                    level.spoken()
                ),
            );
            level.operands.extend(words.iter().map(|word| word.text().map(str::to_owned)));
        }
    }
}

/// What conditions ask about.
struct Facts {
    /// Names of the options given; with `=` after it, given with a value.
    given: Vec<String>,
    /// Fewest and most operands; one word can stand for several.
    operands: (usize, usize),
    /// The same for operands after `--`.
    after: (usize, usize),
    /// The first operand; none if it is not known, or if there is none.
    first: Option<String>,
}

impl Facts {
    /// Words from a subcommand on are no operands, but not nothing either.
    fn count(&mut self, words: usize) {
        self.operands =
            (self.operands.0.saturating_add(words), self.operands.1.saturating_add(words));
    }

    fn of(items: &[Item<'_>]) -> Self {
        let mut facts = Self { given: Vec::new(), operands: (0, 0), after: (0, 0), first: None };
        for item in items {
            match item {
                Item::Option { option, values, .. } => {
                    facts.given.extend(option.names.iter().cloned());
                    if !values.is_empty() {
                        facts.given.extend(option.names.iter().map(|name| format!("{name}=")));
                    }
                }
                Item::Operand { word, after } => {
                    let (least, most) = word.how_many();
                    if facts.operands == (0, 0) && (least, most) == (1, 1) {
                        facts.first = word.text().map(str::to_owned);
                    }
                    let add = |count: &mut (usize, usize)| {
                        *count = (count.0.saturating_add(least), count.1.saturating_add(most));
                    };
                    add(&mut facts.operands);
                    if *after {
                        add(&mut facts.after);
                    }
                }
                Item::Unknown(_) | Item::Anything | Item::Missing(_) => {}
            }
        }
        facts
    }

    /// Whether the number of operands that a condition asks for is the one in any case.
    fn is_certain(&self, when: &When) -> bool {
        let counted = |asked: Option<(u32, u32)>, seen: (usize, usize)| {
            asked.is_none_or(|(least, most)| least as usize <= seen.0 && seen.1 <= most as usize)
        };
        let asks_first = !(when.first.is_empty() && when.not_first.is_empty());
        counted(when.count, self.operands)
            && counted(when.count_after, self.after)
            && (!asks_first || self.first.is_some())
    }

    /// Whether what a condition asks of the first operand may hold; for what takes effects away, whether it does.
    fn first_holds(&self, when: &When) -> bool {
        let Some(first) = &self.first else {
            return when.drops.is_empty() || (when.first.is_empty() && when.not_first.is_empty());
        };
        (when.first.is_empty() || when.first.contains(first)) && !when.not_first.contains(first)
    }

    fn hold(&self, when: &When) -> bool {
        let any = |names: &[String]| names.iter().any(|name| self.given.contains(name));
        // What takes effects away must be certain; anything else need only be possible.
        let counted = |asked: Option<(u32, u32)>, seen: (usize, usize)| {
            asked.is_none_or(|(least, most)| {
                let (least, most) = (least as usize, most as usize);
                if when.drops.is_empty() {
                    least <= seen.1 && seen.0 <= most
                } else {
                    least <= seen.0 && seen.1 <= most
                }
            })
        };
        (when.given.is_empty() || any(&when.given))
            && (when.and.is_empty() || any(&when.and))
            && !any(&when.without)
            && counted(when.count, self.operands)
            && counted(when.count_after, self.after)
            && self.first_holds(when)
    }
}

fn overridden(
    values: &[(Role, Word)],
    option: &crate::grammar::Opt,
    holding: &[&When],
) -> Vec<(Role, Word)> {
    let role = holding
        .iter()
        .rev()
        .flat_map(|when| &when.options)
        .find(|(name, _)| option.names.contains(name))
        .map(|(_, role)| role);
    values.iter().map(|(own, word)| (role.unwrap_or(own).clone(), word.clone())).collect()
}

fn note_option(
    level: &mut Level,
    option: &crate::grammar::Opt,
    values: &[(Role, Word)],
    written: &str,
) {
    level.args.extend(
        option.names.iter().map(|name| Arg { kind: Kind::Option, value: Some(name.clone()) }),
    );
    level.options.push(Given {
        names: option.names.clone(),
        values: values.iter().map(|(_, word)| word.text().map(str::to_owned)).collect(),
        written: written.to_owned(),
    });
}

/// The roles of each operand, in order; none for one too many. Kinds that got no operand can be anything.
fn assign(
    slots: &Slots,
    after: Option<&Slots>,
    parts: &args::Split<'_>,
    level: &mut Level,
) -> Vec<Vec<Role>> {
    let words: Vec<(&Word, bool)> = parts
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Operand { word, after } => Some((word, *after)),
            _ => None,
        })
        .collect();
    let split = if after.is_some() {
        words.iter().position(|(_, after)| *after).unwrap_or(words.len())
    } else {
        words.len()
    };
    let plain: Vec<&Word> = words[..split].iter().map(|(word, _)| *word).collect();
    let mut roles = fill(slots, &plain, level);
    if let Some(after) = after {
        let later: Vec<&Word> = words[split..].iter().map(|(word, _)| *word).collect();
        if !later.is_empty() {
            roles.extend(fill(after, &later, level));
        }
    }
    let paths = after.is_some() && split < words.len();
    for role in roles.iter_mut().flatten() {
        match role {
            // With `--` git takes what stands before it for revisions only.
            Role::RevOrPath if parts.dashes => *role = Role::Rev,
            Role::RevTree if paths => *role = Role::Rev,
            _ => {}
        }
    }
    roles
}

fn fill(slots: &Slots, words: &[&Word], level: &mut Level) -> Vec<Vec<Role>> {
    let mut roles: Vec<Vec<Role>> = Vec::with_capacity(words.len());
    let mut words = words.iter();
    if slots.assigns {
        let assigns = words
            .clone()
            .take_while(|word| matches!(word, Word::Lit(text) if text.contains('=')))
            .count();
        roles.extend(std::iter::repeat_n(vec![Role::Env], assigns));
        words.by_ref().take(assigns).for_each(drop);
    }
    let count = words.len();
    let several = words.clone().position(|word| word.how_many() != (1, 1));
    // The tail is served before the rest: `cp A DEST`.
    let head = slots.head.len().min(count);
    let tail = slots.tail.len().min(count - head);
    let first = roles.len();
    let one = |role: &Role| vec![role.clone()];
    roles.extend(slots.head[..head].iter().map(one));
    roles.extend(std::iter::repeat_n(slots.rest.iter().cloned().collect(), count - head - tail));
    roles.extend(slots.tail[slots.tail.len() - tail..].iter().map(one));
    if let Some(several) = several {
        // A word that stands for several shifts all that follow: each of them can be any of the later roles.
        let later: Vec<Role> = slots
            .head
            .iter()
            .skip(several)
            .chain(&slots.rest)
            .chain(&slots.tail)
            .cloned()
            .collect();
        for roles in &mut roles[first + several..] {
            roles.clone_from(&later);
        }
    }
    let unfilled = slots.head[head..].iter().chain(if count == head + tail {
        slots.rest.as_ref()
    } else {
        None
    });
    for role in unfilled {
        if !matches!(role.kind(), Kind::Text | Kind::Path) {
            level.args.push(Arg { kind: role.kind(), value: None });
        }
    }
    roles
}

/// `if=FILE`: an operand that is a key and a value.
fn read_key(command: &Command, word: &Word, level: &mut Level, emit: &mut Emit) {
    let pair = word.text().and_then(|text| text.split_once('='));
    let found = pair.and_then(|(key, value)| {
        command.keys.iter().find(|(known, _)| known == key).map(|(_, role)| (role, value))
    });
    match found {
        Some((role, value)) => emit.role(level, role, &Word::lit(value), &word.show()),
        None => {
            level.complete = false;
            level.add(
                Effect::Unknown,
                format!("`{}` is not in the catalog's `{}`", word.show(), level.called),
            );
        }
    }
}

/// Whether the worst of any words is among the effects already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Anything {
    Not,
    Added,
}

/// Options that take effects away: `tar -O` extracts to standard output, `sed --sandbox` runs nothing.
/// Who runs nothing runs nothing that another option names; but a file that another option writes by
/// itself (`--index-file=x`) stays written.
fn drop_classes(level: &mut Level, first: usize, by_options: &[usize], holding: &[&When]) {
    let dropped: Vec<Class> = holding.iter().flat_map(|when| when.drops.iter().copied()).collect();
    if dropped.is_empty() {
        return;
    }
    let mut at = 0;
    level.effects.retain(|caused| {
        let own = at < first;
        let by_option = by_options.binary_search(&at).is_ok();
        at += 1;
        own || caused
            .effect
            .class()
            .is_none_or(|class| !dropped.contains(&class) || (by_option && class != Class::Code))
    });
}
