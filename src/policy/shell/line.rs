//! From a line to a script: lists, pipelines and commands.

use std::collections::HashMap;

use super::brace::Budget;
use super::builtin;
use super::cursor::{Cursor, Span, is_meta};
use super::heredoc::{self, Waited, Within};
use super::redirect;
use super::script::{
    AndOr, Command, Expansion, Join, Line, Note, Pipeline, Redirect, RedirectTo, Script,
    SimpleCommand, Visitor, Word,
};
use super::stop::{Construct, Stop};
use super::units::Dollar;
use super::{Dialect, MAX_BYTES, MAX_COMMANDS, MAX_NESTING};

/// Reads a shell line as bash does.
#[must_use]
pub fn parse(line: &str) -> Line {
    parse_as(Dialect::Bash, line)
}

/// Reads a shell line as shells of this kind do.
#[must_use]
pub fn parse_as(dialect: Dialect, line: &str) -> Line {
    let mut parser = Parser {
        cursor: Cursor::new(line),
        dialect,
        waited: Vec::new(),
        texts: HashMap::new(),
        within: Within::Line,
        braces: Budget::new(),
        replaced: false,
        commands: 0,
        depth: 0,
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
    pub dialect: Dialect,
    /// Here-documents whose text begins behind the next newline.
    pub waited: Vec<Waited>,
    /// Texts that were read, by the byte where their redirection begins.
    texts: HashMap<usize, Word>,
    /// Where here-documents stand.
    within: Within,
    pub braces: Budget,
    pub commands: usize,
    /// Whether a `$(…)` of this command was replaced by its text. It would have set `$?` for what follows.
    pub replaced: bool,
    /// Compound commands and `$(…)` around.
    depth: usize,
    notes: Vec<Note>,
}

/// What a list of commands ends with, besides the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing.
    Text,
    /// `)`
    Parenthesis,
    /// One of these words where a command would begin.
    Words(&'static [&'static str]),
    /// `;;` or `esac`
    Arm,
}

/// Puts the texts of here-documents, which stand behind their commands, into the redirections.
struct Fill(HashMap<usize, Word>);

impl Visitor for Fill {
    fn span(&mut self, _: &mut Span) {}

    fn redirect(&mut self, redirect: &mut Redirect) {
        if let RedirectTo::Text(text) = &mut redirect.to
            && let Some(found) = self.0.remove(&(redirect.at.start as usize))
        {
            *text = found;
        }
    }
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
        let mut script = self.lists(End::Text)?;
        if let Some(waited) = self.waited.first() {
            return Err(Stop::new(waited.at, Construct::OpenHereDocument, ""));
        }
        script.notes = std::mem::take(&mut self.notes);
        let texts = std::mem::take(&mut self.texts);
        if !texts.is_empty() {
            script.visit(&mut Fill(texts));
        }
        Ok(script)
    }

    /// Reads lists up to this end, which stays where it is.
    pub(super) fn lists(&mut self, end: End) -> Result<Script, Stop> {
        let mut lists = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.cursor.peek().is_none() || self.is_at(end) {
                break;
            }
            lists.push(self.and_or()?);
            self.skip_comment();
            let at = self.cursor.at;
            match self.cursor.peek() {
                None | Some(b'\n') => {}
                Some(b';') => {
                    if end == End::Arm && self.is_at(end) {
                        break;
                    }
                    self.cursor.at += 1;
                    if matches!(self.cursor.peek(), Some(b';' | b'&')) {
                        return Err(Stop::new(at, Construct::Syntax, ";;"));
                    }
                }
                Some(b'&') => return Err(Stop::new(at, Construct::Background, "&")),
                Some(b')') if end == End::Parenthesis => {}
                Some(_) => return Err(self.unexpected()),
            }
        }
        Ok(Script { lists, notes: Vec::new() })
    }

    fn is_at(&mut self, end: End) -> bool {
        match end {
            End::Text => false,
            End::Parenthesis => self.cursor.peek() == Some(b')'),
            End::Words(words) => self.word_ahead().is_some_and(|word| words.contains(&word)),
            End::Arm => self.cursor.rest().starts_with(b";;") || self.word_ahead() == Some("esac"),
        }
    }

    /// The unquoted word that begins here, if nothing in it is expanded. Nothing is taken.
    pub(super) fn word_ahead(&self) -> Option<&'a str> {
        let rest = self.cursor.rest();
        let length = rest.iter().position(|b| is_meta(*b)).unwrap_or(rest.len());
        let odd = |b: &u8| b"'\"\\$`".contains(b);
        (length > 0 && !rest[..length].iter().any(odd))
            .then(|| self.cursor.slice(self.cursor.at, self.cursor.at + length))
    }

    /// Reads lists within a command, at least one, and takes the word that ends them: its index.
    pub(super) fn block(&mut self, ends: &'static [&'static str]) -> Result<(Script, usize), Stop> {
        let script = self.lists(End::Words(ends))?;
        let ended = self.word_ahead().and_then(|word| ends.iter().position(|end| *end == word));
        match ended {
            Some(at) if !script.lists.is_empty() => {
                self.cursor.at += ends[at].len();
                Ok((script, at))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Takes this word, behind blanks and newlines.
    pub(super) fn keyword(&mut self, word: &str) -> Result<(), Stop> {
        self.skip_newlines()?;
        if self.word_ahead() != Some(word) {
            return Err(self.unexpected());
        }
        self.cursor.at += word.len();
        Ok(())
    }

    /// Goes one level deeper, at this byte.
    pub(super) fn nested<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        if self.depth == MAX_NESTING {
            return Err(Stop::new(at, Construct::TooDeep, ""));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads `$(…)`; the cursor stands on `(`.
    pub(super) fn substitution(&mut self) -> Result<Dollar, Stop> {
        let at = self.cursor.at - 1;
        self.nested(at, |parser| {
            if let Some(text) = heredoc::substituted(parser) {
                parser.replaced = true;
                return Ok(Dollar::Text(text));
            }
            let start = parser.cursor.at;
            parser.cursor.at += 1;
            let waited = std::mem::take(&mut parser.waited);
            let within = std::mem::replace(&mut parser.within, Within::Substitution);
            let script = parser.lists(End::Parenthesis)?;
            parser.within = within;
            // Texts of here-documents would have to stand before the parenthesis, those of the line outside behind it.
            let crossed = !parser.waited.is_empty()
                || (!waited.is_empty()
                    && parser.cursor.slice(start, parser.cursor.at).contains('\n'));
            if crossed {
                return Err(Stop::new(at, Construct::CommandSubstitution, "$("));
            }
            parser.waited = waited;
            if !parser.cursor.eat(b')') {
                return Err(parser.unexpected());
            }
            // `$(< FILE)` is what bash alone reads so.
            let reads_file = |command: &Command| {
                command
                    .simple()
                    .is_some_and(|simple| simple.words.is_empty() && simple.assignments.is_empty())
            };
            let odd = script.lists.is_empty()
                || script.pipelines().any(|pipeline| pipeline.commands.iter().any(reads_file));
            if odd {
                let shown = parser.cursor.slice(at, parser.cursor.at);
                return Err(Stop::new(at, Construct::CommandSubstitution, shown));
            }
            Ok(Dollar::Expansion(Expansion::Output(script)))
        })
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
        let timed = self.word_ahead() == Some("time");
        if timed {
            self.only_bash(self.cursor.at, "time")?;
            self.cursor.at += "time".len();
            self.cursor.skip_blanks();
            let at = self.cursor.at;
            if matches!(self.cursor.peek(), Some(b'-') | None | Some(b'\n' | b';')) {
                return Err(Stop::new(at, Construct::Time, "time"));
            }
        }
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
                    self.only_bash(before, "|&")?;
                    self.cursor.at += 1;
                    let at = Span::new(before, self.cursor.at);
                    let redirects = match commands.last_mut() {
                        Some(Command::Simple(last)) => Some(&mut last.redirects),
                        Some(Command::Compound(last)) => Some(&mut last.redirects),
                        None => None,
                    };
                    if let Some(redirects) = redirects {
                        redirects.push(redirect::stderr_to_stdout(at));
                    }
                }
                _ => {}
            }
            self.skip_newlines()?;
            commands.push(self.command()?);
        }
        Ok(Pipeline { negated, timed, commands })
    }

    fn command(&mut self) -> Result<Command, Stop> {
        self.commands += 1;
        self.cursor.skip_blanks();
        let start = self.cursor.at;
        if self.commands > MAX_COMMANDS {
            return Err(Stop::new(start, Construct::TooManyCommands, ""));
        }
        if let Some(compound) = self.compound(start)? {
            return Ok(Command::Compound(Box::new(compound)));
        }
        self.simple(start).map(Command::Simple)
    }

    fn simple(&mut self, start: usize) -> Result<SimpleCommand, Stop> {
        let around = std::mem::take(&mut self.replaced);
        let command = self.simple_within(start);
        self.replaced = around;
        command
    }

    fn simple_within(&mut self, start: usize) -> Result<SimpleCommand, Stop> {
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
    pub(super) fn skip_newlines(&mut self) -> Result<(), Stop> {
        loop {
            self.skip_comment();
            if !self.cursor.eat(b'\n') {
                return Ok(());
            }
            for waited in std::mem::take(&mut self.waited) {
                let text = heredoc::text(self, &waited, self.within)?;
                self.texts.insert(waited.at, text);
            }
        }
    }

    fn parenthesis(&self, command: &SimpleCommand) -> Stop {
        let at = self.cursor.at;
        let begins = command.assignments.is_empty() && command.redirects.is_empty();
        match command.words.as_slice() {
            [name] if begins => {
                Stop::new(name.at.start as usize, Construct::Function, name.at.of(self.cursor.text))
            }
            _ => Stop::new(at, Construct::Syntax, "("),
        }
    }

    /// Refuses a form that only bash has; other shells read the same text as something else.
    pub(super) fn only_bash(&self, at: usize, shown: &str) -> Result<(), Stop> {
        match self.dialect {
            Dialect::Bash => Ok(()),
            Dialect::Posix => Err(Stop::new(at, Construct::OnlyBash, shown)),
        }
    }

    /// Something stands, or nothing, where a command or its end should.
    pub(super) fn unexpected(&self) -> Stop {
        let at = self.cursor.at;
        match self.cursor.text[at..].chars().next() {
            None => Stop::new(at, Construct::Unfinished, ""),
            Some(c) => Stop::new(at, Construct::Syntax, c),
        }
    }
}
