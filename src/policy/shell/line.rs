//! From a line to a script: lists, pipelines and commands.

use super::brace::Budget;
use super::builtin;
use super::cursor::{Cursor, Span, is_meta};
use super::heredoc::{self, Waited, Within};
use super::redirect;
use super::script::{AndOr, Join, Line, Note, Pipeline, RedirectTo, Script, SimpleCommand};
use super::stop::{Construct, Stop};
use super::{Dialect, MAX_BYTES, MAX_COMMANDS};

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
    pub dialect: Dialect,
    /// Here-documents whose text begins behind the next newline.
    pub waited: Vec<Waited>,
    /// Texts that were read, by the byte where their redirection begins, in order.
    texts: Vec<(usize, String)>,
    pub braces: Budget,
    commands: usize,
    notes: Vec<Note>,
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
                    self.only_bash(before, "|&")?;
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

    /// Refuses a form that only bash has; other shells read the same text as something else.
    pub(super) fn only_bash(&self, at: usize, shown: &str) -> Result<(), Stop> {
        match self.dialect {
            Dialect::Bash => Ok(()),
            Dialect::Posix => Err(Stop::new(at, Construct::OnlyBash, shown)),
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
