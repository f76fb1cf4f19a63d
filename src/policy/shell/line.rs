//! From a line to a script: lists, pipelines, commands, words.

use super::brace::{self, Budget};
use super::builtin;
use super::cursor::{Cursor, Span, is_meta};
use super::heredoc::{self, Waited, Within};
use super::part::{self, Place};
use super::redirect;
use super::script::{
    AndOr, Join, Line, Note, Part, Pipeline, RedirectTo, Script, SimpleCommand, Word,
};
use super::stop::{Construct, Stop};
use super::units::{self, Mark, Units, Waiting};
use super::{MAX_BYTES, MAX_COMMANDS};

/// Reads a shell line.
#[must_use]
pub fn parse(line: &str) -> Line {
    let mut parser = Parser {
        cursor: Cursor::new(line),
        waited: Vec::new(),
        texts: Vec::new(),
        braces: Budget::new(),
        commands: 0,
        notes: Vec::new(),
    };
    match parser.script() {
        Ok(script) => Line::Readable(script),
        Err(stop) => Line::Unreadable(stop.into_unreadable(line)),
    }
}

/// What is known while a line is read.
pub(super) struct Parser<'a> {
    pub cursor: Cursor<'a>,
    /// Here-documents whose text begins behind the next newline.
    pub waited: Vec<Waited>,
    /// Texts that were read, by the byte where their redirection begins, in order.
    texts: Vec<(usize, String)>,
    braces: Budget,
    commands: usize,
    notes: Vec<Note>,
}

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
    fn script(&mut self) -> Result<Script, Stop> {
        let text = self.cursor.text;
        if text.len() > MAX_BYTES {
            return Err(Stop::new(0, Construct::TooLong, ""));
        }
        if let Some(at) = text.bytes().position(|b| b == 0) {
            return Err(Stop::new(at, Construct::Nul, ""));
        }
        if let Some(at) = text.bytes().position(|b| b == b'\r') {
            self.notes.push(Note::CarriageReturn(Span::new(at, at + 1)));
        }
        let mut lists = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.cursor.peek().is_none() {
                break;
            }
            lists.push(self.and_or()?);
            self.skip_comment();
            let at = self.cursor.at;
            match self.cursor.peek() {
                None | Some(b'\n') => {}
                Some(b';') => {
                    self.cursor.at += 1;
                    if matches!(self.cursor.peek(), Some(b';' | b'&')) {
                        return Err(Stop::new(at, Construct::Syntax, ";;"));
                    }
                }
                Some(b'&') => return Err(Stop::new(at, Construct::Background, "&")),
                Some(_) => return Err(self.unexpected()),
            }
        }
        if let Some(waited) = self.waited.first() {
            return Err(Stop::new(waited.at, Construct::OpenHereDocument, ""));
        }
        let mut script = Script { lists, notes: std::mem::take(&mut self.notes) };
        self.fill_texts(&mut script);
        Ok(script)
    }

    /// Puts the texts of here-documents, which stand behind their commands, into the redirections.
    fn fill_texts(&mut self, script: &mut Script) {
        let mut texts = std::mem::take(&mut self.texts).into_iter().peekable();
        if texts.peek().is_none() {
            return;
        }
        for list in &mut script.lists {
            let rest = list.rest.iter_mut().map(|(_, pipeline)| pipeline);
            let pipelines = std::iter::once(&mut list.first).chain(rest);
            for redirect in pipelines
                .flat_map(|pipeline| &mut pipeline.commands)
                .flat_map(|command| &mut command.redirects)
            {
                let at = redirect.at.start as usize;
                if let Some((_, text)) = texts.next_if(|(start, _)| *start == at) {
                    redirect.to = RedirectTo::Text(text);
                }
            }
        }
    }

    fn and_or(&mut self) -> Result<AndOr, Stop> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.cursor.skip_blanks();
            let before = self.cursor.at;
            let join = match self.cursor.peek() {
                Some(b'&') => Join::And,
                Some(b'|') => Join::Or,
                _ => break,
            };
            let operator = if join == Join::And { b'&' } else { b'|' };
            self.cursor.at += 1;
            if !self.cursor.eat(operator) {
                self.cursor.at = before;
                break;
            }
            self.skip_newlines()?;
            rest.push((join, self.pipeline()?));
        }
        Ok(AndOr { first, rest })
    }

    fn pipeline(&mut self) -> Result<Pipeline, Stop> {
        self.cursor.skip_blanks();
        let negated = self.cursor.peek() == Some(b'!') && self.cursor.raw(1).is_none_or(is_meta);
        if negated {
            self.cursor.at += 1;
        }
        let mut commands = vec![self.command()?];
        loop {
            self.cursor.skip_blanks();
            let before = self.cursor.at;
            if !self.cursor.eat(b'|') {
                break;
            }
            match self.cursor.peek() {
                Some(b'|') => {
                    self.cursor.at = before;
                    break;
                }
                Some(b'&') => {
                    self.cursor.at += 1;
                    let at = Span::new(before, self.cursor.at);
                    if let Some(last) = commands.last_mut() {
                        last.redirects.push(redirect::stderr_to_stdout(at));
                    }
                }
                _ => {}
            }
            self.skip_newlines()?;
            commands.push(self.command()?);
        }
        Ok(Pipeline { negated, commands })
    }

    fn command(&mut self) -> Result<SimpleCommand, Stop> {
        self.commands += 1;
        self.cursor.skip_blanks();
        let start = self.cursor.at;
        if self.commands > MAX_COMMANDS {
            return Err(Stop::new(start, Construct::TooManyCommands, ""));
        }
        let mut end = start;
        let mut command = SimpleCommand {
            assignments: Vec::new(),
            words: Vec::new(),
            redirects: Vec::new(),
            at: Span::default(),
        };
        loop {
            self.cursor.skip_blanks();
            let at = self.cursor.at;
            match self.cursor.peek() {
                None | Some(b'\n' | b';' | b'|' | b')' | b'#') => break,
                Some(b'&') => {
                    self.cursor.at += 1;
                    let redirects = self.cursor.peek() == Some(b'>');
                    self.cursor.at = at;
                    if !redirects {
                        break;
                    }
                    self.redirect(None, at, &mut command.redirects)?;
                }
                Some(b'(') => return Err(self.parenthesis(&command)),
                Some(b'<' | b'>') => self.redirect(None, at, &mut command.redirects)?,
                Some(_) => self.word(at, &mut command)?,
            }
            end = self.cursor.at;
        }
        if command.words.is_empty()
            && command.assignments.is_empty()
            && command.redirects.is_empty()
        {
            return Err(self.unexpected());
        }
        command.at = Span::new(start, end);
        builtin::check(&mut command)?;
        if command.words.is_empty() && !command.assignments.is_empty() {
            self.notes.push(Note::AssignmentAlone(command.at));
        }
        Ok(command)
    }

    /// Reads one word into a command: a descriptor of a redirection, an assignment, or words.
    fn word(&mut self, at: usize, command: &mut SimpleCommand) -> Result<(), Stop> {
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

    fn expand(&mut self, units: Units, span: Span, words: &mut Vec<Word>) -> Result<(), Stop> {
        if !brace::is_possible(&units) {
            words.push(self.placed(part::word(&units, Place::Argument, span), span)?);
            return Ok(());
        }
        let shown = span.of(self.cursor.text);
        let expanded = brace::expand(units, &mut self.braces)
            .map_err(|brace::Refused| Stop::new(span.start as usize, Construct::Brace, shown))?;
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
        let waiting = if self.waited.is_empty() { Waiting::No } else { Waiting::Yes };
        units::read(&mut self.cursor, waiting).map(Raw::Units)
    }

    /// Passes over blanks and a comment, up to the newline.
    fn skip_comment(&mut self) {
        self.cursor.skip_blanks();
        if self.cursor.peek() == Some(b'#') {
            let rest = self.cursor.rest();
            let length = rest.iter().position(|b| *b == b'\n');
            self.cursor.at += length.unwrap_or(rest.len());
        }
    }

    /// Passes over blanks, comments and newlines; texts of here-documents follow a newline.
    fn skip_newlines(&mut self) -> Result<(), Stop> {
        loop {
            self.skip_comment();
            if !self.cursor.eat(b'\n') {
                return Ok(());
            }
            for waited in std::mem::take(&mut self.waited) {
                let text = heredoc::text(&mut self.cursor, &waited, Within::Line)?;
                self.texts.push((waited.at, text));
            }
        }
    }

    fn parenthesis(&self, command: &SimpleCommand) -> Stop {
        let at = self.cursor.at;
        let begins = command.assignments.is_empty() && command.redirects.is_empty();
        match command.words.as_slice() {
            [] if begins && self.cursor.raw(1) == Some(b'(') => {
                Stop::new(at, Construct::Arithmetic, "((")
            }
            [] if begins => Stop::new(at, Construct::Subshell, "("),
            [name] if begins => {
                Stop::new(name.at.start as usize, Construct::Function, name.at.of(self.cursor.text))
            }
            _ => Stop::new(at, Construct::Syntax, "("),
        }
    }

    /// Something stands, or nothing, where a command or its end should.
    fn unexpected(&self) -> Stop {
        let at = self.cursor.at;
        match self.cursor.text[at..].chars().next() {
            None => Stop::new(at, Construct::Unfinished, ""),
            Some(c) => Stop::new(at, Construct::Syntax, c),
        }
    }
}
