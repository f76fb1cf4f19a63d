//! From raw words to the parts of a [`Word`]: tildes and patterns.

use super::cursor::Span;
use super::script::{Class, ClassItem, Part, Word};
use super::stop::{Construct, Stop};
use super::units::{Mark, Units};

/// Where a word stands, which decides what is expanded in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A word of a command: everything is expanded.
    Argument,
    /// A word that came out of a brace expansion; `=~` in it is read differently by shells.
    BracedArgument,
    /// The value of an assignment: tildes only.
    Value,
    /// The target of a redirection: tildes; what files would decide is refused.
    Target,
    /// The text of a here-string: patterns stand for themselves; a tilde is refused.
    Text,
}

/// Makes a word of a raw word.
pub(super) fn word(units: &Units, place: Place, at: Span) -> Result<Word, Stop> {
    let stop = |construct| Stop::new(at.start as usize, construct, "");
    let mut parts = Parts::default();
    let home = home_at(units, place).map_err(|()| stop(Construct::Tilde))?;
    let globs = match place {
        Place::Argument | Place::BracedArgument => true,
        Place::Target if units.has_bare(b"*?[") => return Err(stop(Construct::Redirection)),
        Place::Value | Place::Target | Place::Text => false,
    };
    let last_close =
        if globs { (0..units.len()).rev().find(|i| units.is_bare(*i, b']')) } else { None };
    let mut expansions = units.expansions.iter();
    let mut i = 0;
    while i < units.len() {
        match (units.marks[i], units.bytes[i]) {
            (Mark::Nothing, _) => parts.hold(),
            (mark @ (Mark::Expansion | Mark::QuotedExpansion), _) => {
                if let Some(of) = expansions.next() {
                    let quoted = mark == Mark::QuotedExpansion;
                    parts.push(Part::Expansion { of: of.clone(), quoted });
                }
            }
            (Mark::Bare, b'~') if home == Some(i) => parts.push(Part::Home),
            (Mark::Bare, b'*') if globs => parts.push(Part::Any),
            (Mark::Bare, b'?') if globs => parts.push(Part::One),
            (Mark::Bare, b'[') if last_close.is_some_and(|close| close > i) => {
                match class(units, i, last_close.unwrap_or(i)) {
                    Bracket::Class(class, end) => {
                        parts.push(Part::Class(class));
                        i = end;
                    }
                    Bracket::Literal => parts.byte(b'['),
                    Bracket::Refused => return Err(stop(Construct::BracketPattern)),
                }
            }
            (_, byte) => parts.byte(byte),
        }
        i += 1;
    }
    Ok(Word { parts: parts.finish(), at })
}

/// Collects parts; bytes that follow each other become one text.
#[derive(Default)]
struct Parts {
    done: Vec<Part>,
    text: Vec<u8>,
    /// Whether quotes with nothing in them hold the place of the word.
    held: bool,
}

impl Parts {
    fn byte(&mut self, byte: u8) {
        self.text.push(byte);
    }

    fn hold(&mut self) {
        self.held = true;
    }

    fn push(&mut self, part: Part) {
        self.flush();
        self.done.push(part);
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            let bytes = std::mem::take(&mut self.text);
            // Always UTF-8: words are cut at ASCII characters only.
            let text = String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            self.done.push(Part::Text(text));
        }
    }

    fn finish(mut self) -> Vec<Part> {
        self.flush();
        // `""$x` is a word even where `$x` is empty.
        let bare = |part: &Part| matches!(part, Part::Expansion { quoted: false, .. });
        if self.held && !self.done.is_empty() && self.done.iter().all(bare) {
            self.done.push(Part::Text(String::new()));
        }
        self.done
    }
}

/// Which unit is a `~` that means HOME, if any; an error for tildes that mean something else.
fn home_at(units: &Units, place: Place) -> Result<Option<usize>, ()> {
    if !units.has_bare(b"~") {
        return Ok(None);
    }
    let after = |separator: u8| {
        (0..units.len()).any(|i| units.is_bare(i, separator) && units.is_bare(i + 1, b'~'))
    };
    let odd = after(b'=') || after(b':');
    if units.is_bare(0, b'~') {
        let ends = home_ends(units, 1, place == Place::Value);
        let fits = ends && place != Place::Text && !(place == Place::Value && after(b':'));
        return fits.then_some(Some(0)).ok_or(());
    }
    match (place, name_length(units)) {
        (Place::Value, _) if after(b':') => Err(()),
        (Place::Value, _) => Ok(None),
        (Place::Argument, Some(_)) if after(b':') => Err(()),
        (Place::Argument, Some(length)) if units.is_bare(length + 1, b'~') => {
            let ends = home_ends(units, length + 2, true);
            ends.then_some(Some(length + 1)).ok_or(())
        }
        (Place::Argument, Some(_)) => Ok(None),
        // `a+=~` and `a[1]=~` are assignments too, of kinds that are not read.
        (Place::Argument, None) if units.has_bare(b"+[") && odd => Err(()),
        (Place::Argument, None) => Ok(None),
        (Place::BracedArgument | Place::Target | Place::Text, _) if odd => Err(()),
        (Place::BracedArgument | Place::Target | Place::Text, _) => Ok(None),
    }
}

/// Whether a tilde before this unit stands alone: `~`, `~/`, and in assignments `~:`.
fn home_ends(units: &Units, at: usize, assignment: bool) -> bool {
    at == units.len() || units.is_bare(at, b'/') || (assignment && units.is_bare(at, b':'))
}

/// The length of NAME if the word is `NAME=…` with nothing of `NAME=` quoted.
pub(super) fn name_length(units: &Units) -> Option<usize> {
    let length = (0..units.len()).find(|i| {
        units.marks[*i] != Mark::Bare
            || !(units.bytes[*i].is_ascii_alphanumeric() || units.bytes[*i] == b'_')
    })?;
    let is_name = length > 0 && !units.bytes[0].is_ascii_digit();
    (is_name && units.is_bare(length, b'=')).then_some(length)
}

enum Bracket {
    /// A set, and the unit of its `]`.
    Class(Class, usize),
    /// The `[` stands for itself.
    Literal,
    /// Shells differ, or it is too clever.
    Refused,
}

/// Reads the set that begins at `open`; `last_close` is the last `]` of the word, behind `open`.
fn class(units: &Units, open: usize, last_close: usize) -> Bracket {
    let mut i = open + 1;
    let negated = units.is_bare(i, b'!');
    i += usize::from(negated);
    if units.is_bare(i, b'^') {
        // POSIX leaves `[^…]` open.
        return Bracket::Refused;
    }
    if units.is_bare(i, b']') {
        // `[]` is text, unless a later `]` makes this one a member.
        return if last_close > i { Bracket::Refused } else { Bracket::Literal };
    }
    let mut items = Vec::new();
    while !units.is_bare(i, b']') {
        if units.is_bare(i, b'[') {
            let Some((item, length)) = named(units, i) else {
                return Bracket::Refused;
            };
            items.push(item);
            i += length;
            continue;
        }
        let Some(first) = member(units, i) else {
            return Bracket::Refused;
        };
        if units.is_bare(i + 1, b'-') && !units.is_bare(i + 2, b']') {
            let Some(last) = member(units, i + 2).filter(|last| first <= *last) else {
                return Bracket::Refused;
            };
            items.push(ClassItem::Range(first, last));
            i += 3;
        } else {
            items.push(ClassItem::Range(first, first));
            i += 1;
        }
    }
    // A `-` between two members would be read as a range when printed.
    let dash = ClassItem::Range('-', '-');
    let inner = items.get(1..items.len().saturating_sub(1)).unwrap_or_default();
    if inner.contains(&dash) {
        return Bracket::Refused;
    }
    Bracket::Class(Class { negated, items }, i)
}

/// A character that may stand in a set as itself.
fn member(units: &Units, at: usize) -> Option<char> {
    let byte = *units.bytes.get(at).filter(|_| units.marks[at] == Mark::Bare)?;
    (byte.is_ascii_alphanumeric() || b"_.,:=%+@-".contains(&byte)).then(|| char::from(byte))
}

/// `[:name:]` at this unit, and its length.
fn named(units: &Units, at: usize) -> Option<(ClassItem, usize)> {
    const LONGEST: usize = "[:digit:]".len();
    let marks = units.marks[at..].iter().take(LONGEST);
    let bare = marks.take_while(|mark| **mark == Mark::Bare).count();
    let rest = units.bytes[at..at + bare].strip_prefix(b"[:")?;
    ClassItem::NAMED.iter().find_map(|(name, item)| {
        let tail = rest.strip_prefix(name.as_bytes())?;
        tail.starts_with(b":]").then_some((*item, name.len() + 4))
    })
}
