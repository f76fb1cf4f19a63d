//! Redirections: `<`, `>`, `>>`, `>|`, `n>&m`, `&>`, here-documents and here-strings.

use super::brace;
use super::cursor::{Span, is_meta};
use super::heredoc;
use super::line::Parser;
use super::part::{self, Place};
use super::script::{Part, Redirect, RedirectTo, Word};
use super::stop::{Construct, Stop};
use super::word::Raw;

/// Standard error, which `&>` and `|&` send after standard output.
const STDERR: u8 = 2;
const STDOUT: u8 = 1;
const STDIN: u8 = 0;

/// `2>&1`.
pub(super) fn stderr_to_stdout(at: Span) -> Redirect {
    Redirect { fd: STDERR, to: RedirectTo::Duplicate(STDOUT), at }
}

/// The descriptor that digits before an operator name.
pub(super) fn descriptor(digits: &str, at: usize) -> Result<u8, Stop> {
    match digits.as_bytes() {
        [digit @ b'0'..=b'9'] => Ok(digit - b'0'),
        _ => Err(Stop::new(at, Construct::Redirection, digits)),
    }
}

impl<'a> Parser<'a> {
    /// Reads the redirections behind a compound command.
    pub(super) fn redirects(&mut self) -> Result<Vec<Redirect>, Stop> {
        let mut redirects = Vec::new();
        loop {
            self.cursor.skip_blanks();
            let at = self.cursor.at;
            match self.cursor.peek() {
                Some(b'<' | b'>') => self.redirect(None, at, &mut redirects)?,
                Some(b'&') if self.cursor.raw(1) == Some(b'>') => {
                    self.redirect(None, at, &mut redirects)?;
                }
                Some(digit) if digit.is_ascii_digit() => {
                    let raw = self.raw_word()?;
                    match (raw.bare_text(), self.cursor.peek()) {
                        (Some(text), Some(b'<' | b'>'))
                            if text.bytes().all(|b| b.is_ascii_digit()) =>
                        {
                            let fd = descriptor(text, at)?;
                            self.redirect(Some(fd), at, &mut redirects)?;
                        }
                        _ => return Err(Stop::new(at, Construct::Syntax, char::from(digit))),
                    }
                }
                _ => return Ok(redirects),
            }
        }
    }

    /// Reads one redirection; the cursor stands on `<`, `>` or `&>`, `start` is where it begins.
    pub(super) fn redirect(
        &mut self,
        fd: Option<u8>,
        start: usize,
        redirects: &mut Vec<Redirect>,
    ) -> Result<(), Stop> {
        let both = self.cursor.eat(b'&');
        let to = if self.cursor.eat(b'<') {
            self.input(start)?
        } else {
            self.cursor.eat(b'>');
            if both {
                self.only_bash(start, "&>")?;
                return self.both(start, redirects);
            }
            match self.cursor.peek() {
                Some(b'>') => {
                    self.cursor.at += 1;
                    (STDOUT, RedirectTo::Append(self.target(start)?))
                }
                Some(b'|') => {
                    self.cursor.at += 1;
                    (STDOUT, RedirectTo::Write(self.target(start)?))
                }
                Some(b'&') => {
                    self.cursor.at += 1;
                    match self.duplicate(start)? {
                        Some(to) => (STDOUT, to),
                        // `>&file` is `&>file`, and so has no descriptor of its own.
                        None if fd.is_none() => {
                            self.only_bash(start, ">&")?;
                            return self.both(start, redirects);
                        }
                        None => return Err(self.refused(start)),
                    }
                }
                _ => (STDOUT, RedirectTo::Write(self.target(start)?)),
            }
        };
        redirects.push(Redirect {
            fd: fd.unwrap_or(to.0),
            to: to.1,
            at: Span::new(start, self.cursor.at),
        });
        Ok(())
    }

    /// What follows `<`.
    fn input(&mut self, start: usize) -> Result<(u8, RedirectTo), Stop> {
        let to = match self.cursor.peek() {
            Some(b'<') => {
                self.cursor.at += 1;
                if self.cursor.eat(b'<') {
                    self.only_bash(start, "<<<")?;
                    RedirectTo::Text(self.here_string(start)?)
                } else {
                    let waited = heredoc::begin(&mut self.cursor, start)?;
                    self.waited.push(waited);
                    RedirectTo::Text(Word::plain(String::new(), Span::new(start, start)))
                }
            }
            Some(b'&') => {
                self.cursor.at += 1;
                self.duplicate(start)?.ok_or_else(|| self.refused(start))?
            }
            Some(b'>') => return Err(self.refused(start)),
            _ => RedirectTo::Read(self.target(start)?),
        };
        Ok((STDIN, to))
    }

    /// What follows `&>`, or `>&` before a name: one file for both streams.
    fn both(&mut self, start: usize, redirects: &mut Vec<Redirect>) -> Result<(), Stop> {
        let append = self.cursor.eat(b'>');
        let word = self.target(start)?;
        let at = Span::new(start, self.cursor.at);
        let to = if append { RedirectTo::Append(word) } else { RedirectTo::Write(word) };
        redirects.push(Redirect { fd: STDOUT, to, at });
        redirects.push(stderr_to_stdout(at));
        Ok(())
    }

    /// The descriptor or `-` behind `>&` or `<&`; nothing taken and none if it is a name.
    fn duplicate(&mut self, start: usize) -> Result<Option<RedirectTo>, Stop> {
        self.cursor.skip_blanks();
        let before = self.cursor.clone();
        let Some((raw, _)) = self.raw_target()? else {
            return Err(self.refused(start));
        };
        if raw.is_expanded() {
            // It could be a number.
            return Err(self.refused(start));
        }
        let to = match raw.bare_text() {
            Some("-") => RedirectTo::Close,
            Some(text) if text.len() == 1 && text.as_bytes()[0].is_ascii_digit() => {
                RedirectTo::Duplicate(text.as_bytes()[0] - b'0')
            }
            // `>&12`, `>&2-` and `>&'2'` are about descriptors too.
            text => {
                let plain =
                    text.map_or_else(|| raw.bytes().to_vec(), |text| text.as_bytes().to_vec());
                if plain.iter().all(|b| b.is_ascii_digit() || *b == b'-') {
                    return Err(self.refused(start));
                }
                self.cursor = before;
                return Ok(None);
            }
        };
        Ok(Some(to))
    }

    /// The raw word that an operator needs, and where it begins; none if there is no word.
    fn raw_target(&mut self) -> Result<Option<(Raw<'a>, usize)>, Stop> {
        self.cursor.skip_blanks();
        let at = self.cursor.at;
        match self.cursor.peek() {
            None | Some(b'#') => Ok(None),
            Some(b'<' | b'>') if self.cursor.raw(1) == Some(b'(') => {
                Err(Stop::new(at, Construct::ProcessSubstitution, ""))
            }
            Some(b'(')
                if matches!(
                    self.cursor.text.as_bytes().get(at.wrapping_sub(1)),
                    Some(b'<' | b'>')
                ) =>
            {
                Err(Stop::new(at - 1, Construct::ProcessSubstitution, ""))
            }
            Some(byte) if is_meta(byte) => Ok(None),
            Some(_) => Ok(Some((self.raw_word()?, at))),
        }
    }

    fn target(&mut self, start: usize) -> Result<Word, Stop> {
        self.target_as(Place::Target, start)
    }

    fn here_string(&mut self, start: usize) -> Result<Word, Stop> {
        let mut word = self.target_as(Place::Text, start)?;
        match word.parts.last_mut() {
            Some(Part::Text(text)) => text.push('\n'),
            _ => word.parts.push(Part::Text("\n".to_owned())),
        }
        Ok(word)
    }

    fn target_as(&mut self, place: Place, start: usize) -> Result<Word, Stop> {
        let Some((raw, at)) = self.raw_target()? else {
            return Err(self.refused(start));
        };
        // Bash takes digits before an operator for a descriptor even here, which is an error.
        let digits = raw.bytes().iter().all(u8::is_ascii_digit);
        if digits && matches!(self.cursor.peek(), Some(b'<' | b'>')) {
            return Err(self.refused(start));
        }
        let units = raw.into_units();
        let span = Span::new(at, self.cursor.at);
        if place == Place::Target && brace::is_possible(&units) {
            return Err(Stop::new(at, Construct::Brace, span.of(self.cursor.text)));
        }
        self.placed(part::word(&units, place, span), span)
    }

    fn refused(&self, start: usize) -> Stop {
        let shown = self.cursor.slice(start, self.cursor.at).trim_end();
        Stop::new(start, Construct::Redirection, shown)
    }
}
