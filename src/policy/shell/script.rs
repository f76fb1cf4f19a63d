//! The plan that a readable line means: data only, the same on both ends of the wire.
//!
//! Invariants that [`super::parse`] keeps: adjacent text parts of a word are one, no text part is empty (the
//! empty word has no parts), values of assignments and targets of redirections hold no globs, an
//! and-or list has at least one command, and a command has at least a word, an assignment or a
//! redirection.

use serde::{Deserialize, Serialize};

use super::{Span, Unreadable};

/// What a line was read as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// Every character is accounted for.
    Readable(Script),
    /// Only a shell knows what this does.
    Unreadable(Unreadable),
}

/// A whole line: lists that run one after the other, whatever the outcome of the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Empty for a line of blanks and comments.
    pub lists: Vec<AndOr>,
    /// What is readable and still worth telling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// What is readable and still worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// The first carriage return. It is part of the word that it stands in, as for any shell.
    CarriageReturn(Span),
    /// `NAME=VALUE` without a command. It changes the environment of later commands where NAME is
    /// exported already; otherwise it sets a shell variable, which nothing readable can use.
    AssignmentAlone(Span),
}

/// Pipelines joined by `&&` and `||`, from left to right with equal strength.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AndOr {
    /// Always runs.
    pub first: Pipeline,
    /// Each runs if the status before it agrees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<(Join, Pipeline)>,
}

/// When the next pipeline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Join {
    /// `&&`: after success.
    And,
    /// `||`: after failure.
    Or,
}

/// Commands whose output feeds the next one's input. The status is the last one's.
///
/// With more than one command each runs as in a process of its own: a `cd`, an `export` or an
/// assignment in it changes nothing outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// `!`: success becomes 1, failure 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub negated: bool,
    /// `time`: what it took is written to standard error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed: bool,
    /// At least one.
    pub commands: Vec<Command>,
}

/// One command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Words with assignments and redirections.
    Simple(SimpleCommand),
    /// Commands in a command.
    Compound(Box<Compound>),
}

/// A command made of commands, with redirections for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compound {
    /// Which.
    pub kind: CompoundKind,
    /// In the order in which they apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<Redirect>,
    /// From its first to its last character.
    pub at: Span,
}

/// The commands that hold others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompoundKind {
    /// `{ …; }`
    Group(Script),
    /// `( … )`: what it changes of the shell ends with it.
    Subshell(Script),
    /// `if …; then …; elif …; then …; else …; fi`
    If {
        /// Each condition with what it guards.
        branches: Vec<(Script, Script)>,
        /// `else`.
        otherwise: Option<Script>,
    },
    /// `while …; do …; done`, and `until`.
    While {
        /// `until`: as long as the condition fails.
        until: bool,
        /// What decides before each round.
        condition: Script,
        /// One round.
        body: Script,
    },
    /// `for NAME in …; do …; done`
    For {
        /// The variable.
        name: String,
        /// What it becomes.
        words: Vec<Word>,
        /// One round.
        body: Script,
    },
    /// `case WORD in PATTERN) …;; esac`
    Case {
        /// What is compared.
        word: Word,
        /// Patterns, and what runs for the first one that matches.
        arms: Vec<(Vec<Word>, Script)>,
    },
    /// `[[ … ]]`, in postfix order: operands before what joins them.
    Test(Vec<Condition>),
}

/// One step of `[[ … ]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// `-f WORD`, or a word alone as `-n WORD`.
    Unary(String, Word),
    /// `WORD -eq WORD`
    Binary(Word, String, Word),
    /// `WORD == PATTERN`
    Match(Word, Word),
    /// `!`
    Not,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// One command: assignments, words, redirections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimpleCommand {
    /// Variables of this command alone; without words see [`Note::AssignmentAlone`]. The last of a
    /// name counts. Values hold no globs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assignments: Vec<(String, Word)>,
    /// Program and arguments. The first one holds no globs.
    pub words: Vec<Word>,
    /// In the order in which they apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<Redirect>,
    /// From its first to its last character, without the text of here-documents.
    pub at: Span,
}

/// One redirection of a file descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// The descriptor that is changed, 0 to 9.
    pub fd: u8,
    /// What it becomes.
    pub to: RedirectTo,
    /// Where it stands.
    pub at: Span,
}

/// What a file descriptor becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RedirectTo {
    /// `<`: an existing file, for reading.
    Read(Word),
    /// `>` and `>|`: a file, made or emptied, for writing.
    Write(Word),
    /// `>>`: a file, made if missing, for writing at its end.
    Append(Word),
    /// `n>&m` and `n<&m`: what descriptor m is at this moment.
    Duplicate(u8),
    /// `n>&-`: closed.
    Close,
    /// A here-document or here-string: a file with exactly this text, for reading. It holds no globs.
    Text(Word),
}

/// One word after quotes are gone. Its parts follow each other without a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// None for the empty word.
    pub parts: Vec<Part>,
    /// Where it stands; words of one brace expansion share it.
    pub at: Span,
}

/// One part of a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Exactly this text.
    Text(String),
    /// `~`: the value of HOME.
    Home,
    /// `*`: any text without `/`.
    Any,
    /// `?`: one character but `/`.
    One,
    /// `[…]`: one character of a set.
    Class(Class),
    /// What is known only when the command runs, at most.
    Expansion {
        /// What it stands for.
        of: Expansion,
        /// In double quotes: one piece of one word. Else the value is split at blanks, and its patterns count.
        quoted: bool,
    },
}

/// What a part of a word stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expansion {
    /// `$NAME`, `${NAME}`.
    Variable(String),
    /// `${NAME-TEXT}`, `${NAME:-TEXT}`: a text instead of a variable that has no value.
    Default {
        /// The variable.
        name: String,
        /// What stands for it: letters, digits and marks that no shell reads in another way.
        text: String,
        /// `:-`: also instead of an empty value.
        empty: bool,
    },
    /// `$?`
    Status,
    /// `$(…)`: what the commands write, without newlines at its end.
    Output(Script),
}

/// A set of characters, as in `[a-z_]` or `[!0-9]`. It never holds `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// `[!…]`: every character that is not listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub negated: bool,
    /// What is listed.
    pub items: Vec<ClassItem>,
}

/// One entry of a set of characters. Named sets are those of the C locale, in which sandboxes start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassItem {
    /// From the first to the last, by code point; a single character is a range of one.
    Range(char, char),
    /// `[:digit:]`
    Digit,
    /// `[:alpha:]`
    Alpha,
    /// `[:alnum:]`
    Alnum,
    /// `[:upper:]`
    Upper,
    /// `[:lower:]`
    Lower,
    /// `[:space:]`
    Space,
}

impl Expansion {
    /// The variable whose value it needs.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Variable(name) | Self::Default { name, .. } => Some(name),
            Self::Status | Self::Output(_) => None,
        }
    }

    /// What it becomes where the variable has this value. `None`: it needs more than a variable.
    #[must_use]
    pub fn with<'v>(&'v self, value: &'v str) -> Option<&'v str> {
        match self {
            Self::Variable(_) => Some(value),
            Self::Default { text, empty: true, .. } if value.is_empty() => Some(text),
            Self::Default { .. } => Some(value),
            Self::Status | Self::Output(_) => None,
        }
    }
}

impl Script {
    /// Every simple command in order, those of compound commands and of `$(…)` included. A command stands before those
    /// in its words.
    pub fn commands(&self) -> impl Iterator<Item = &SimpleCommand> {
        let mut all = Vec::new();
        self.collect(&mut all);
        all.into_iter()
    }

    /// Every pipeline of the outermost lists, in order.
    pub fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        self.lists
            .iter()
            .flat_map(|list| std::iter::once(&list.first).chain(list.rest.iter().map(|(_, p)| p)))
    }

    fn collect<'s>(&'s self, all: &mut Vec<&'s SimpleCommand>) {
        for command in self.pipelines().flat_map(|pipeline| &pipeline.commands) {
            if let Command::Simple(simple) = command {
                all.push(simple);
            }
            for word in command.words() {
                word.outputs().for_each(|script| script.collect(all));
            }
            if let Command::Compound(compound) = command {
                compound.scripts().into_iter().for_each(|script| script.collect(all));
            }
        }
    }

    /// The same plan without positions and notes, to compare plans by what they do.
    #[must_use]
    pub fn unplaced(mut self) -> Self {
        self.notes.clear();
        self.visit(&mut Unplace);
        self
    }

    /// Shows every command, redirection and word to someone who changes it.
    pub(super) fn visit(&mut self, visitor: &mut impl Visitor) {
        let pipelines = self.lists.iter_mut().flat_map(|list| {
            std::iter::once(&mut list.first).chain(list.rest.iter_mut().map(|(_, p)| p))
        });
        for command in pipelines.flat_map(|pipeline| &mut pipeline.commands) {
            match command {
                Command::Simple(simple) => {
                    visitor.span(&mut simple.at);
                    let values = simple.assignments.iter_mut().map(|(_, value)| value);
                    values.chain(&mut simple.words).for_each(|word| word.visit(visitor));
                    visit_redirects(&mut simple.redirects, visitor);
                }
                Command::Compound(compound) => {
                    visitor.span(&mut compound.at);
                    compound.kind.visit(visitor);
                    visit_redirects(&mut compound.redirects, visitor);
                }
            }
        }
    }
}

/// Someone who changes a script in place.
pub(super) trait Visitor {
    fn span(&mut self, at: &mut Span);
    /// Before the words of the redirection.
    fn redirect(&mut self, redirect: &mut Redirect);
}

struct Unplace;

impl Visitor for Unplace {
    fn span(&mut self, at: &mut Span) {
        *at = Span::default();
    }

    fn redirect(&mut self, _: &mut Redirect) {}
}

fn visit_redirects(redirects: &mut [Redirect], visitor: &mut impl Visitor) {
    for redirect in redirects {
        visitor.redirect(redirect);
        visitor.span(&mut redirect.at);
        match &mut redirect.to {
            RedirectTo::Read(word)
            | RedirectTo::Write(word)
            | RedirectTo::Append(word)
            | RedirectTo::Text(word) => word.visit(visitor),
            RedirectTo::Duplicate(_) | RedirectTo::Close => {}
        }
    }
}

impl Command {
    /// The words of this command alone: not those of the commands in it.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        let mut words: Vec<&Word> = Vec::new();
        let redirects = match self {
            Self::Simple(simple) => {
                words.extend(simple.assignments.iter().map(|(_, value)| value));
                words.extend(&simple.words);
                &simple.redirects
            }
            Self::Compound(compound) => {
                match &compound.kind {
                    CompoundKind::For { words: given, .. } => words.extend(given),
                    CompoundKind::Case { word, arms } => {
                        words.push(word);
                        words.extend(arms.iter().flat_map(|(patterns, _)| patterns));
                    }
                    CompoundKind::Test(conditions) => {
                        words.extend(conditions.iter().flat_map(Condition::words));
                    }
                    _ => {}
                }
                &compound.redirects
            }
        };
        words.extend(redirects.iter().filter_map(|redirect| redirect.to.word()));
        words.into_iter()
    }

    /// The simple command, if it is one.
    #[must_use]
    pub fn simple(&self) -> Option<&SimpleCommand> {
        match self {
            Self::Simple(simple) => Some(simple),
            Self::Compound(_) => None,
        }
    }
}

impl Compound {
    /// The scripts in it, in order.
    #[must_use]
    pub fn scripts(&self) -> Vec<&Script> {
        match &self.kind {
            CompoundKind::Group(script) | CompoundKind::Subshell(script) => vec![script],
            CompoundKind::If { branches, otherwise } => branches
                .iter()
                .flat_map(|(condition, body)| [condition, body])
                .chain(otherwise)
                .collect(),
            CompoundKind::While { condition, body, .. } => vec![condition, body],
            CompoundKind::For { body, .. } => vec![body],
            CompoundKind::Case { arms, .. } => arms.iter().map(|(_, body)| body).collect(),
            CompoundKind::Test(_) => Vec::new(),
        }
    }
}

impl CompoundKind {
    fn visit(&mut self, visitor: &mut impl Visitor) {
        match self {
            Self::Group(script) | Self::Subshell(script) => script.visit(visitor),
            Self::If { branches, otherwise } => {
                for (condition, body) in branches {
                    condition.visit(visitor);
                    body.visit(visitor);
                }
                otherwise.iter_mut().for_each(|script| script.visit(visitor));
            }
            Self::While { condition, body, .. } => {
                condition.visit(visitor);
                body.visit(visitor);
            }
            Self::For { words, body, .. } => {
                words.iter_mut().for_each(|word| word.visit(visitor));
                body.visit(visitor);
            }
            Self::Case { word, arms } => {
                word.visit(visitor);
                for (patterns, body) in arms {
                    patterns.iter_mut().for_each(|word| word.visit(visitor));
                    body.visit(visitor);
                }
            }
            Self::Test(conditions) => {
                for condition in conditions {
                    match condition {
                        Condition::Unary(_, word) => word.visit(visitor),
                        Condition::Binary(left, _, right) | Condition::Match(left, right) => {
                            left.visit(visitor);
                            right.visit(visitor);
                        }
                        Condition::Not | Condition::And | Condition::Or => {}
                    }
                }
            }
        }
    }
}

impl Condition {
    /// Its words.
    #[must_use]
    pub fn words(&self) -> Vec<&Word> {
        match self {
            Self::Unary(_, word) => vec![word],
            Self::Binary(left, _, right) | Self::Match(left, right) => vec![left, right],
            Self::Not | Self::And | Self::Or => Vec::new(),
        }
    }
}

impl RedirectTo {
    /// Its word, if it has one.
    #[must_use]
    pub fn word(&self) -> Option<&Word> {
        match self {
            Self::Read(word) | Self::Write(word) | Self::Append(word) | Self::Text(word) => {
                Some(word)
            }
            Self::Duplicate(_) | Self::Close => None,
        }
    }
}

impl Word {
    /// The word, if it is plain text.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Plain text as a word.
    #[must_use]
    pub fn plain(text: String, at: Span) -> Self {
        Self { parts: if text.is_empty() { Vec::new() } else { vec![Part::Text(text)] }, at }
    }

    /// The commands of each `$(…)` in it.
    pub fn outputs(&self) -> impl Iterator<Item = &Script> {
        self.parts.iter().filter_map(|part| match part {
            Part::Expansion { of: Expansion::Output(script), .. } => Some(script),
            _ => None,
        })
    }

    /// Whether the word is not known before the line runs.
    #[must_use]
    pub fn is_expanded(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Expansion { .. }))
    }

    fn visit(&mut self, visitor: &mut impl Visitor) {
        visitor.span(&mut self.at);
        for part in &mut self.parts {
            if let Part::Expansion { of: Expansion::Output(script), .. } = part {
                script.visit(visitor);
            }
        }
    }

    /// Whether files decide what this word becomes.
    #[must_use]
    pub fn is_glob(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Any | Part::One | Part::Class(_)))
    }

    /// Whether what this word becomes can begin with `-`, and so be taken for an option.
    #[must_use]
    pub fn may_start_with_dash(&self) -> bool {
        match self.parts.first() {
            None | Some(Part::Home) => false,
            Some(Part::Text(text)) => text.starts_with('-'),
            Some(Part::Any | Part::One | Part::Expansion { .. }) => true,
            Some(Part::Class(class)) => class.holds('-'),
        }
    }

    /// Whether this word can become exactly this text.
    #[must_use]
    pub fn may_be(&self, text: &str) -> bool {
        if self.is_expanded() {
            return true;
        }
        if !self.is_glob() {
            return self.literal() == Some(text);
        }
        // The places of the text up to which the parts so far can reach.
        let mut reached = vec![0];
        for part in &self.parts {
            let one = |holds: &dyn Fn(char) -> bool| -> Vec<usize> {
                let next = |at: &usize| {
                    text[*at..].chars().next().filter(|c| holds(*c)).map(|c| at + c.len_utf8())
                };
                reached.iter().filter_map(next).collect()
            };
            reached = match part {
                Part::Text(exact) => {
                    let fits = |at: &&usize| text[**at..].starts_with(exact.as_str());
                    reached.iter().filter(fits).map(|at| at + exact.len()).collect()
                }
                // HOME is an absolute path.
                Part::Home => Vec::new(),
                Part::Any => match reached.iter().min() {
                    Some(least) => {
                        (*least..=text.len()).filter(|at| text.is_char_boundary(*at)).collect()
                    }
                    None => Vec::new(),
                },
                Part::One => one(&|c| c != '/'),
                Part::Class(class) => one(&|c| class.holds(c)),
                Part::Expansion { .. } => return true,
            };
        }
        reached.contains(&text.len())
    }

    /// The word as text, with patterns as they are written: what a glob becomes if no file matches.
    #[must_use]
    pub fn text(&self, home: &str) -> String {
        self.render(home, str::to_owned)
    }

    /// The pattern of a glob, in the notation of fnmatch(3): what is not a pattern is escaped by `\`.
    #[must_use]
    pub fn pattern(&self, home: &str) -> Option<String> {
        self.is_glob().then(|| self.render(home, escaped))
    }

    /// One spelling for each word without expansions, in which text and marks differ: `\\` stands before a mark that is
    /// text, and a set is written in ranges.
    #[must_use]
    pub fn spelling(&self, home: &str) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out += &escaped(text),
                Part::Home => out += &escaped(home),
                Part::Any => out.push('*'),
                Part::One => out.push('?'),
                Part::Class(class) => {
                    out += if class.negated { "[!" } else { "[" };
                    for (low, high) in class.items.iter().flat_map(|item| item.ranges()) {
                        out.extend([low, '-', high]);
                    }
                    out.push(']');
                }
                Part::Expansion { .. } => {}
            }
        }
        out
    }

    fn render(&self, home: &str, text_as: impl Fn(&str) -> String) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out += &text_as(text),
                Part::Home => out += &text_as(home),
                Part::Any => out.push('*'),
                Part::One => out.push('?'),
                Part::Class(class) => class.write(&mut out),
                Part::Expansion { of, .. } => match of {
                    Expansion::Variable(name) => out.extend(["${", name, "}"]),
                    Expansion::Default { name, text, empty } => {
                        out.extend(["${", name, if *empty { ":-" } else { "-" }, text, "}"]);
                    }
                    Expansion::Status => out += "$?",
                    Expansion::Output(_) => out += "$(…)",
                },
            }
        }
        out
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

impl Class {
    /// Whether a character is in the set.
    #[must_use]
    pub fn holds(&self, c: char) -> bool {
        c != '/' && self.items.iter().any(|item| item.holds(c)) != self.negated
    }

    pub(super) fn write(&self, out: &mut String) {
        out.push('[');
        if self.negated {
            out.push('!');
        }
        for item in &self.items {
            match item {
                ClassItem::Range(first, last) if first == last => out.push(*first),
                ClassItem::Range(first, last) => out.extend([*first, '-', *last]),
                named => {
                    let name = ClassItem::NAMED.iter().find(|(_, item)| item == named);
                    out.extend(["[:", name.map_or("", |(name, _)| name), ":]"]);
                }
            }
        }
        out.push(']');
    }
}

impl ClassItem {
    pub(super) const NAMED: [(&'static str, Self); 6] = [
        ("digit", Self::Digit),
        ("alpha", Self::Alpha),
        ("alnum", Self::Alnum),
        ("upper", Self::Upper),
        ("lower", Self::Lower),
        ("space", Self::Space),
    ];

    /// As ranges. Named sets are as a shell has them in the C locale, which sandboxes start in.
    #[must_use]
    pub fn ranges(self) -> Vec<(char, char)> {
        match self {
            Self::Range(first, last) => vec![(first, last)],
            Self::Digit => vec![('0', '9')],
            Self::Alpha => vec![('A', 'Z'), ('a', 'z')],
            Self::Alnum => vec![('0', '9'), ('A', 'Z'), ('a', 'z')],
            Self::Upper => vec![('A', 'Z')],
            Self::Lower => vec![('a', 'z')],
            Self::Space => vec![('\t', '\r'), (' ', ' ')],
        }
    }

    fn holds(self, c: char) -> bool {
        match self {
            Self::Range(first, last) => (first..=last).contains(&c),
            Self::Digit => c.is_ascii_digit(),
            Self::Alpha => c.is_ascii_alphabetic(),
            Self::Alnum => c.is_ascii_alphanumeric(),
            Self::Upper => c.is_ascii_uppercase(),
            Self::Lower => c.is_ascii_lowercase(),
            Self::Space => matches!(c, ' ' | '\t'..='\r'),
        }
    }
}
