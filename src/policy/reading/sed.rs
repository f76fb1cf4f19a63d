//! sed scripts: which commands of a script write, read or execute.
//!
//! A small reading of GNU sed's script language. What it does not understand is code: sed's `e`
//! command and the `e` flag of `s` run programs.

use crate::effect::{Effect, Place};

/// The effects of a script; `place` turns a file name into a path.
pub(super) fn effects(script: &str, place: impl Fn(&str) -> Place) -> Vec<Effect> {
    let mut out = Vec::new();
    let mut reader = Script { rest: script };
    if reader.commands(&mut out, &place).is_none() {
        out.push(Effect::Code);
    }
    out
}

struct Script<'s> {
    rest: &'s str,
}

impl Script<'_> {
    /// Reads all commands; `None` if anything is not understood.
    fn commands(&mut self, out: &mut Vec<Effect>, place: &impl Fn(&str) -> Place) -> Option<()> {
        let mut open = 0usize;
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';');
            if self.rest.is_empty() {
                return (open == 0).then_some(());
            }
            self.addresses()?;
            let command = self.next()?;
            match command {
                '{' => open += 1,
                '}' => {
                    open = open.checked_sub(1)?;
                    self.end()?;
                }
                '#' => self.skip_line(),
                '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z'
                | 'F' => self.end()?,
                'q' | 'Q' | 'l' | 'L' => {
                    self.blanks();
                    self.digits();
                    self.end()?;
                }
                ':' | 'b' | 't' | 'T' => {
                    self.blanks();
                    self.rest = self.rest.trim_start_matches(is_label);
                    self.end()?;
                }
                'a' | 'i' | 'c' => self.text()?,
                's' => self.substitute(out, place)?,
                'y' => {
                    let delimiter = self.delimiter()?;
                    self.delimited(delimiter, false)?;
                    self.delimited(delimiter, false)?;
                    self.end()?;
                }
                'r' | 'R' => {
                    let name = self.file()?;
                    out.push(Effect::Read(place(&name)));
                }
                'w' | 'W' => {
                    let name = self.file()?;
                    write(&name, out, place);
                }
                // `e` runs a command, `v` asks for a version, anything else is not sed.
                _ => return None,
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn digits(&mut self) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
    }

    fn skip_line(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }

    /// After a command: blanks, then `;`, a newline, `}` or the end. Not `#`: after a label it is a part
    /// of the label to some versions.
    fn end(&mut self) -> Option<()> {
        self.blanks();
        match self.peek() {
            None | Some(';' | '\n' | '}') => Some(()),
            Some(_) => None,
        }
    }

    /// `3`, `$`, `/re/I`, `\cREc`, `1~2`, `addr,addr`, `addr,+3`, `!`.
    fn addresses(&mut self) -> Option<()> {
        self.address()?;
        self.blanks();
        if self.peek() == Some(',') {
            self.next();
            self.blanks();
            if matches!(self.peek(), Some('+' | '~')) {
                self.next();
            }
            self.address()?;
            self.blanks();
        }
        while self.peek() == Some('!') {
            self.next();
            self.blanks();
        }
        Some(())
    }

    fn address(&mut self) -> Option<()> {
        match self.peek() {
            Some('$') => {
                self.next();
            }
            Some(c) if c.is_ascii_digit() => {
                self.digits();
                if self.peek() == Some('~') {
                    self.next();
                    self.digits();
                }
            }
            Some('/') => {
                self.next();
                self.delimited('/', true)?;
                self.flags();
            }
            Some('\\') => {
                self.next();
                let delimiter = self.delimiter()?;
                self.delimited(delimiter, true)?;
                self.flags();
            }
            _ => {}
        }
        Some(())
    }

    fn flags(&mut self) {
        self.rest = self.rest.trim_start_matches(['I', 'M']);
    }

    /// One byte in any locale.
    fn delimiter(&mut self) -> Option<char> {
        self.next().filter(|c| c.is_ascii() && *c != '\n' && *c != '\\')
    }

    /// Skips to the delimiter. In a regular expression the delimiter is plain inside brackets for
    /// some versions and not for others, so brackets that hold it are not understood.
    fn delimited(&mut self, delimiter: char, regex: bool) -> Option<()> {
        let mut bracket = false;
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                c if c == delimiter => {
                    return (!bracket).then_some(());
                }
                // sed ends here: what follows would be commands to it.
                '\n' => return None,
                '[' if regex => bracket = true,
                ']' if regex => bracket = false,
                _ => {}
            }
        }
    }

    fn substitute(&mut self, out: &mut Vec<Effect>, place: &impl Fn(&str) -> Place) -> Option<()> {
        let delimiter = self.delimiter()?;
        self.delimited(delimiter, true)?;
        self.delimited(delimiter, false)?;
        loop {
            match self.peek() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M') => {
                    self.next();
                }
                Some(c) if c.is_ascii_digit() => self.digits(),
                Some('w') => {
                    self.next();
                    let name = self.file()?;
                    write(&name, out, place);
                    return Some(());
                }
                // `e` executes the pattern space.
                Some('e') => return None,
                _ => return self.end(),
            }
        }
    }

    /// A file name goes to the end of the line.
    fn file(&mut self) -> Option<String> {
        self.blanks();
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let name = self.rest[..end].to_owned();
        self.rest = &self.rest[end..];
        (!name.is_empty()).then_some(name)
    }

    /// Text of `a`, `i`, `c` goes to the end of the line; a backslash takes the next line along.
    fn text(&mut self) -> Option<()> {
        loop {
            match self.next() {
                None | Some('\n') => return Some(()),
                // With nothing behind it, the next `-e` goes on with the text.
                Some('\\') => {
                    self.next()?;
                }
                Some(_) => {}
            }
        }
    }
}

/// What every version takes for a part of a label: versions differ on where others end.
fn is_label(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn write(name: &str, out: &mut Vec<Effect>, place: &impl Fn(&str) -> Place) {
    if name != "/dev/stdout" && name != "/dev/stderr" {
        out.push(Effect::Write(place(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(script: &str) -> Vec<Effect> {
        effects(script, |path| Place::Exact(path.to_owned()))
    }

    #[test]
    fn printing_and_editing_scripts_have_no_effect() {
        for script in [
            "p",
            "1,5p",
            "$!d",
            "/x/,/y/p",
            "s/a/b/g",
            "s|a/b|c|",
            "2q",
            "y/abc/xyz/",
            "1!G;h;$!d",
            "/a/{p;d}",
            "a\\\nhello",
            "s/[0-9]*/x/2p",
            "\\,x,d",
            "0~3p",
            "5,+2d",
            "",
            "# comment",
            ":a;N;$!ba;s/\\n/ /g",
            "=",
            "s/a/\\//",
            "10q5",
        ] {
            assert_eq!(read(script), [], "{script}");
        }
    }

    #[test]
    fn files_of_a_script_are_effects() {
        assert_eq!(read("w out"), [Effect::Write(Place::Exact("out".into()))]);
        assert_eq!(read("s/a/b/w out"), [Effect::Write(Place::Exact("out".into()))]);
        assert_eq!(read("s/a/b/gpw out"), [Effect::Write(Place::Exact("out".into()))]);
        assert_eq!(read("r in\np"), [Effect::Read(Place::Exact("in".into()))]);
        assert_eq!(read("w /dev/stdout"), []);
    }

    #[test]
    fn what_executes_or_is_not_understood_is_code() {
        for script in [
            "e",
            "e id",
            "1e id",
            "s/a/b/e",
            "s/x/id/ge",
            "s/a/b",
            "{p",
            "k",
            "s/[/]/id/e/",
            "1,3 e id",
            "s/a/b/;e id",
            "p;e",
            "}",
        ] {
            assert!(read(script).contains(&Effect::Code), "{script}");
        }
    }
}
