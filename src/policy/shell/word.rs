//! Words of a command: descriptors, assignments, and arguments with their expansions.

use super::brace;
use super::builtin;
use super::cursor::{Span, is_meta};
use super::line::Parser;
use super::part::{self, Place};
use super::redirect;
use super::script::{Part, SimpleCommand, Word};
use super::stop::{Construct, Stop};
use super::units::{self, Mark, Units};

/// A word before expansion. Most words have nothing to expand.
pub(super) enum Raw<'a> {
    Plain(&'a str),
    Units(Units),
}

impl Raw<'_> {
    /// The text if nothing in it was quoted.
    pub fn bare_text(&self) -> Option<&str> {
        match self {
            Self::Plain(text) => Some(text),
            Self::Units(units) if units.marks.iter().all(|mark| *mark == Mark::Bare) => {
                std::str::from_utf8(&units.bytes).ok()
            }
            Self::Units(_) => None,
        }
    }

    pub fn is_expanded(&self) -> bool {
        matches!(self, Self::Units(units) if units.is_expanded())
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(text) => text.as_bytes(),
            Self::Units(units) => &units.bytes,
        }
    }

    pub fn into_units(self) -> Units {
        match self {
            Self::Units(units) => units,
            Self::Plain(text) => {
                let mut units = Units::default();
                units.extend(text.as_bytes(), Mark::Bare);
                units
            }
        }
    }
}

/// Whether this byte can change what an unquoted word is.
fn is_special(byte: u8) -> bool {
    is_meta(byte)
        || matches!(
            byte,
            b'\'' | b'"' | b'\\' | b'$' | b'`' | b'*' | b'?' | b'[' | b']' | b'{' | b'~'
        )
}

impl<'a> Parser<'a> {
    /// Reads one word into a command: a descriptor of a redirection, an assignment, or words.
    pub(super) fn word(&mut self, at: usize, command: &mut SimpleCommand) -> Result<(), Stop> {
        let raw = self.raw_word()?;
        if let (Some(b'<' | b'>'), Some(text)) = (self.cursor.peek(), raw.bare_text()) {
            if text.bytes().all(|b| b.is_ascii_digit()) {
                let fd = redirect::descriptor(text, at)?;
                return self.redirect(Some(fd), at, &mut command.redirects);
            }
            if text.starts_with('{') && text.ends_with('}') {
                return Err(Stop::new(at, Construct::Redirection, text));
            }
        }
        let span = Span::new(at, self.cursor.at);
        if command.words.is_empty() {
            if let Some(text) = raw.bare_text()
                && let Some(construct) = builtin::reserved(text)
            {
                return Err(Stop::new(at, construct, text));
            }
            if let Some(assignment) = self.assignment(&raw, at, span)? {
                command.assignments.push(assignment);
                return Ok(());
            }
        }
        match raw {
            Raw::Plain(text) => {
                command.words.push(Word { parts: vec![Part::Text(text.to_owned())], at: span })
            }
            Raw::Units(units) => self.expand(units, span, &mut command.words)?,
        }
        Ok(())
    }

    pub(super) fn expand(
        &mut self,
        units: Units,
        span: Span,
        words: &mut Vec<Word>,
    ) -> Result<(), Stop> {
        if !brace::is_possible(&units) {
            let word = self.placed(part::word(&units, Place::Argument, span), span)?;
            if word.parts.iter().skip(1).any(|part| *part == Part::Home) {
                self.only_bash(span.start as usize, "=~")?;
            }
            words.push(word);
            return Ok(());
        }
        let shown = span.of(self.cursor.text);
        // The expansion of braces can bring a `$` before a name, and makes several of one word.
        if units.is_expanded() {
            return Err(Stop::new(span.start as usize, Construct::Brace, shown));
        }
        let written = units.bytes.clone();
        let expanded = brace::expand(units, &mut self.braces)
            .map_err(|brace::Refused| Stop::new(span.start as usize, Construct::Brace, shown))?;
        if !matches!(&expanded[..], [only] if only.bytes == written) {
            self.only_bash(span.start as usize, shown)?;
        }
        // An empty word disappears unless quotes hold its place.
        for units in expanded.iter().filter(|units| !units.is_empty()) {
            words.push(self.placed(part::word(units, Place::BracedArgument, span), span)?);
        }
        Ok(())
    }

    /// Shows the whole word in what stopped inside it.
    pub(super) fn placed(&self, word: Result<Word, Stop>, span: Span) -> Result<Word, Stop> {
        word.map_err(|stop| Stop { shown: span.of(self.cursor.text).to_owned(), ..stop })
    }

    /// Reads `NAME=VALUE` where an assignment may stand; none if the word is something else.
    fn assignment(
        &mut self,
        raw: &Raw<'a>,
        at: usize,
        span: Span,
    ) -> Result<Option<(String, Word)>, Stop> {
        let bytes = raw.bytes();
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let length = bytes.iter().take_while(|b| is_name(b)).count();
        if length == 0 || length == bytes.len() || bytes[0].is_ascii_digit() {
            return Ok(None);
        }
        let plain;
        let units = match raw {
            Raw::Units(units) => units,
            Raw::Plain(text) if text.contains('=') => {
                plain = Raw::Plain(text).into_units();
                &plain
            }
            Raw::Plain(_) => return Ok(None),
        };
        if units.marks[..length].iter().any(|mark| *mark != Mark::Bare) {
            return Ok(None);
        }
        let shown = span.of(self.cursor.text);
        if units.is_bare(length, b'[') {
            return Err(Stop::new(at, Construct::Array, shown));
        }
        if units.is_bare(length, b'+') && units.is_bare(length + 1, b'=') {
            return Err(Stop::new(at, Construct::AppendAssignment, shown));
        }
        if !units.is_bare(length, b'=') {
            return Ok(None);
        }
        if units.len() == length + 1 && self.cursor.peek() == Some(b'(') {
            return Err(Stop::new(at, Construct::Array, shown));
        }
        let name = String::from_utf8_lossy(&bytes[..length]).into_owned();
        // Blanks in `x=$y` do not split; dash and bash agree.
        let value = units.piece(length + 1, units.len());
        let value = self.placed(part::word(&value, Place::Value, span), span)?;
        Ok(Some((name, value)))
    }

    /// Reads a word that has begun, without expanding anything.
    pub(super) fn raw_word(&mut self) -> Result<Raw<'a>, Stop> {
        let rest = self.cursor.rest();
        let length = rest.iter().position(|b| is_special(*b)).unwrap_or(rest.len());
        if length > 0 && rest.get(length).is_none_or(|b| is_meta(*b)) {
            let start = self.cursor.at;
            self.cursor.at += length;
            return Ok(Raw::Plain(self.cursor.slice(start, start + length)));
        }
        units::read(self).map(Raw::Units)
    }
}
