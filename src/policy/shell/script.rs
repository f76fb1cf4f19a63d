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
    /// At least one.
    pub commands: Vec<SimpleCommand>,
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
    /// A here-document or here-string: a file with exactly this text, for reading.
    Text(String),
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

impl Script {
    /// Every command, in order.
    pub fn commands(&self) -> impl Iterator<Item = &SimpleCommand> {
        self.lists
            .iter()
            .flat_map(|list| std::iter::once(&list.first).chain(list.rest.iter().map(|(_, p)| p)))
            .flat_map(|pipeline| &pipeline.commands)
    }

    /// The same plan without positions and notes, to compare plans by what they do.
    #[must_use]
    pub fn unplaced(mut self) -> Self {
        self.notes.clear();
        for list in &mut self.lists {
            let rest = list.rest.iter_mut().map(|(_, pipeline)| pipeline);
            for command in std::iter::once(&mut list.first)
                .chain(rest)
                .flat_map(|pipeline| &mut pipeline.commands)
            {
                command.unplace();
            }
        }
        self
    }
}

impl SimpleCommand {
    fn unplace(&mut self) {
        self.at = Span::default();
        let values = self.assignments.iter_mut().map(|(_, value)| value);
        for word in self.words.iter_mut().chain(values) {
            word.at = Span::default();
        }
        for redirect in &mut self.redirects {
            redirect.at = Span::default();
            if let RedirectTo::Read(word) | RedirectTo::Write(word) | RedirectTo::Append(word) =
                &mut redirect.to
            {
                word.at = Span::default();
            }
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
            Some(Part::Any | Part::One) => true,
            Some(Part::Class(class)) => class.holds('-'),
        }
    }

    /// Whether this word can become exactly this text.
    #[must_use]
    pub fn may_be(&self, text: &str) -> bool {
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

    fn render(&self, home: &str, text_as: impl Fn(&str) -> String) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out += &text_as(text),
                Part::Home => out += &text_as(home),
                Part::Any => out.push('*'),
                Part::One => out.push('?'),
                Part::Class(class) => class.write(&mut out),
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
