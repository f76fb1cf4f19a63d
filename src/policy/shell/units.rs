//! A raw word: its bytes after quotes are gone, each with a mark that says whether it was quoted.
//!
//! Braces, tildes and patterns only count where they were not quoted, and bash looks for them one
//! after the other, so the marks live until [`super::part`] has made parts of them.

use super::Dialect;
use super::builtin;
use super::cursor::{Cursor, is_meta};
use super::line::Parser;
use super::script::Expansion;
use super::stop::{Construct, Stop};

/// Whether a byte of a word was quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It may have a meaning to the shell.
    Bare,
    /// It stands for itself.
    Quoted,
    /// No byte at all: a pair of quotes with nothing in it. An empty word stays because of it.
    Nothing,
    /// No byte at all: an expansion, unquoted.
    Expansion,
    /// No byte at all: an expansion in double quotes.
    QuotedExpansion,
}

/// A raw word.
#[derive(Debug, Clone, Default)]
pub(super) struct Units {
    /// One byte a unit; a placeholder where the mark is `Nothing`.
    pub bytes: Vec<u8>,
    /// As long as `bytes`.
    pub marks: Vec<Mark>,
    /// The expansions, in order.
    pub expansions: Vec<Expansion>,
}

impl Units {
    pub fn push(&mut self, byte: u8, mark: Mark) {
        self.bytes.push(byte);
        self.marks.push(mark);
    }

    pub fn extend(&mut self, text: &[u8], mark: Mark) {
        self.bytes.extend_from_slice(text);
        self.marks.resize(self.bytes.len(), mark);
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether unit `at` is this byte, unquoted.
    pub fn is_bare(&self, at: usize, byte: u8) -> bool {
        self.bytes.get(at) == Some(&byte) && self.marks.get(at) == Some(&Mark::Bare)
    }

    /// Whether any of these bytes stands unquoted in it.
    pub fn has_bare(&self, bytes: &[u8]) -> bool {
        (0..self.len()).any(|at| self.marks[at] == Mark::Bare && bytes.contains(&self.bytes[at]))
    }

    pub fn append(&mut self, other: &Self, from: usize, to: usize) {
        self.bytes.extend_from_slice(&other.bytes[from..to]);
        self.marks.extend_from_slice(&other.marks[from..to]);
        let before = count(&other.marks[..from]);
        let within = count(&other.marks[from..to]);
        self.expansions.extend_from_slice(&other.expansions[before..before + within]);
    }

    pub fn piece(&self, from: usize, to: usize) -> Self {
        let mut piece = Self::default();
        piece.append(self, from, to);
        piece
    }

    /// Whether anything in it is expanded.
    pub fn is_expanded(&self) -> bool {
        !self.expansions.is_empty()
    }

    pub fn expansion(&mut self, expansion: Expansion, quoted: bool) {
        self.push(0, if quoted { Mark::QuotedExpansion } else { Mark::Expansion });
        self.expansions.push(expansion);
    }
}

fn count(marks: &[Mark]) -> usize {
    marks.iter().filter(|mark| matches!(mark, Mark::Expansion | Mark::QuotedExpansion)).count()
}

/// Reads one raw word. The cursor stands on its first byte, which is no metacharacter.
pub(super) fn read(parser: &mut Parser<'_>) -> Result<Units, Stop> {
    let mut units = Units::default();
    while let Some(byte) = parser.cursor.peek() {
        if is_meta(byte) {
            break;
        }
        let cursor = &mut parser.cursor;
        let at = cursor.at;
        cursor.at += 1;
        match byte {
            b'\'' => single(cursor, &mut units)?,
            b'"' => double(parser, &mut units)?,
            b'\\' => escaped(cursor, &mut units)?,
            b'`' => return Err(Stop::new(at, Construct::Backticks, "")),
            b'$' => match cursor.raw(0) {
                Some(b'\'') if parser.dialect == Dialect::Posix => {
                    return Err(Stop::new(at, Construct::OnlyBash, "$'"));
                }
                Some(b'\'') => ansi(cursor, &mut units)?,
                Some(b'"') => {
                    return Err(Stop::new(at, Construct::Translation, "$\""));
                }
                _ => match dollar(parser)? {
                    Dollar::Sign => units.push(b'$', Mark::Bare),
                    Dollar::Text(text) => bare_text(at, &text, &mut units)?,
                    Dollar::Expansion(expansion) => units.expansion(expansion, false),
                },
            },
            _ => units.push(byte, Mark::Bare),
        }
    }
    Ok(units)
}

fn single(cursor: &mut Cursor<'_>, units: &mut Units) -> Result<(), Stop> {
    let Some(length) = cursor.rest().iter().position(|b| *b == b'\'') else {
        return Err(Stop::new(cursor.at - 1, Construct::OpenQuote, "'"));
    };
    quoted(units, &cursor.rest()[..length]);
    cursor.at += length + 1;
    Ok(())
}

fn quoted(units: &mut Units, text: &[u8]) {
    if text.is_empty() {
        units.push(0, Mark::Nothing);
    } else {
        units.extend(text, Mark::Quoted);
    }
}

fn escaped(cursor: &mut Cursor<'_>, units: &mut Units) -> Result<(), Stop> {
    // The byte is never a newline: that would be a continuation. The rest of a longer character
    // has no meaning to a shell, so it may follow as bare bytes; it must not, for the printer.
    let rest = &cursor.text[cursor.at..];
    let Some(c) = rest.chars().next() else {
        return Err(Stop::new(cursor.at - 1, Construct::TrailingBackslash, ""));
    };
    units.extend(&rest.as_bytes()[..c.len_utf8()], Mark::Quoted);
    cursor.at += c.len_utf8();
    Ok(())
}

/// Reads what follows an opening `"`.
fn double(parser: &mut Parser<'_>, units: &mut Units) -> Result<(), Stop> {
    let open = parser.cursor.at - 1;
    let before = units.len();
    while let Some(byte) = parser.cursor.peek() {
        let at = parser.cursor.at;
        parser.cursor.at += 1;
        match byte {
            b'"' => {
                if units.len() == before {
                    units.push(0, Mark::Nothing);
                }
                return Ok(());
            }
            b'\\' => match parser.cursor.raw(0) {
                Some(next @ (b'$' | b'`' | b'"' | b'\\')) => {
                    parser.cursor.at += 1;
                    units.push(next, Mark::Quoted);
                }
                _ => units.push(b'\\', Mark::Quoted),
            },
            b'`' => return Err(Stop::new(at, Construct::Backticks, "")),
            b'$' => match dollar(parser)? {
                Dollar::Sign => units.push(b'$', Mark::Quoted),
                Dollar::Text(text) => units.extend(text.as_bytes(), Mark::Quoted),
                Dollar::Expansion(expansion) => units.expansion(expansion, true),
            },
            _ => units.push(byte, Mark::Quoted),
        }
    }
    Err(Stop::new(open, Construct::OpenQuote, "\""))
}

/// What a `$` turned out to be.
pub(super) enum Dollar {
    /// A dollar sign.
    Sign,
    /// `$(cat <<'E' … E)`.
    Text(String),
    /// Something that is known when the line runs.
    Expansion(Expansion),
}

/// Reads `-TEXT}` or `:-TEXT}`: whether TEXT stands for an empty value too, and how long it is. A text with blanks, quotes,
/// tildes or patterns is read in several ways, by where it stands.
fn default_text(rest: &[u8]) -> Option<(bool, usize)> {
    let (empty, rest) = match rest {
        [b':', b'-', rest @ ..] => (true, rest),
        [b'-', rest @ ..] => (false, rest),
        _ => return None,
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./,:@%+-".contains(byte);
    let length = rest.iter().take_while(|byte| plain(byte)).count();
    (rest.get(length) == Some(&b'}')).then_some((empty, length))
}

/// Judges a `$` that was just taken; quotes behind it are the caller's.
pub(super) fn dollar(parser: &mut Parser<'_>) -> Result<Dollar, Stop> {
    let cursor = &mut parser.cursor;
    let at = cursor.at - 1;
    match cursor.raw(0) {
        Some(b'(') if cursor.raw(1) == Some(b'(') => {
            Err(Stop::new(at, Construct::Arithmetic, "$(("))
        }
        Some(b'(') => parser.substitution(),
        Some(b'[') => Err(Stop::new(at, Construct::Arithmetic, "$[")),
        Some(b'{') => {
            let rest = &cursor.rest()[1..];
            let length = rest.iter().take_while(|b| is_name_byte(**b)).count();
            let name = cursor.slice(cursor.at + 1, cursor.at + 1 + length);
            if rest.get(length) == Some(&b'}') && builtin::is_plain_variable(name) {
                cursor.at += length + 2;
                return Ok(Dollar::Expansion(Expansion::Variable(name.to_owned())));
            }
            if let Some((empty, text)) = default_text(&rest[length..])
                && builtin::is_plain_variable(name)
            {
                let name = name.to_owned();
                let before = cursor.at + 1 + length + if empty { 2 } else { 1 };
                cursor.at = before + text + 1;
                let text = cursor.slice(before, before + text).to_owned();
                return Ok(Dollar::Expansion(Expansion::Default { name, text, empty }));
            }
            if rest.starts_with(b"?}") && !parser.replaced {
                cursor.at += 3;
                return Ok(Dollar::Expansion(Expansion::Status));
            }
            let end = cursor.rest().iter().position(|b| *b == b'}' || *b == b'\n');
            let shown = cursor.slice(at, end.map_or(cursor.text.len(), |end| cursor.at + end + 1));
            Err(Stop::new(at, Construct::Parameter, shown))
        }
        Some(b'?') if parser.replaced => {
            Err(Stop::new(at, Construct::Parameter, cursor.slice(at, at + 2)))
        }
        Some(b'?') => {
            cursor.at += 1;
            Ok(Dollar::Expansion(Expansion::Status))
        }
        Some(b'0'..=b'9' | b'$' | b'#' | b'-' | b'!' | b'*' | b'@') => {
            Err(Stop::new(at, Construct::Parameter, cursor.slice(at, at + 2)))
        }
        Some(first) if first == b'_' || first.is_ascii_alphabetic() || first >= 0x80 => {
            let rest = cursor.rest();
            let length = rest.iter().take_while(|b| is_name_byte(**b)).count();
            let name = cursor.slice(cursor.at, cursor.at + length);
            let after = &rest[length..];
            // A continuation could lengthen the name; which bytes above ASCII belong to it depends on the locale.
            let odd = after.starts_with(b"\\\n") || after.first().is_some_and(|byte| *byte >= 0x80);
            if !odd && builtin::is_plain_variable(name) {
                cursor.at += length;
                return Ok(Dollar::Expansion(Expansion::Variable(name.to_owned())));
            }
            let long = rest.iter().position(|b| !(is_name_byte(*b) || *b >= 0x80));
            let shown = cursor.slice(at, long.map_or(cursor.text.len(), |end| cursor.at + end));
            Err(Stop::new(at, Construct::Parameter, shown))
        }
        // A continuation could hide any of the above.
        Some(b'\\') if cursor.raw(1) == Some(b'\n') => {
            Err(Stop::new(at, Construct::Parameter, "$"))
        }
        _ => Ok(Dollar::Sign),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The text of an unquoted `$(cat <<…)`: the shell would split it at blanks and expand patterns.
fn bare_text(at: usize, text: &str, units: &mut Units) -> Result<(), Stop> {
    let changes = |b: u8| matches!(b, b' ' | b'\t' | b'\n' | b'*' | b'?' | b'[' | b'\\');
    if text.is_empty() || text.bytes().any(changes) {
        return Err(Stop::new(at, Construct::BareText, ""));
    }
    units.extend(text.as_bytes(), Mark::Quoted);
    Ok(())
}

/// Reads `$'…'`; the cursor stands on the quote. Only escapes that give one ASCII character count.
fn ansi(cursor: &mut Cursor<'_>, units: &mut Units) -> Result<(), Stop> {
    let open = cursor.at - 1;
    cursor.at += 1;
    let before = units.len();
    loop {
        let at = cursor.at;
        let Some(byte) = cursor.raw(0) else {
            return Err(Stop::new(open, Construct::OpenQuote, "$'"));
        };
        cursor.at += 1;
        match byte {
            b'\'' => break,
            b'\\' => {
                let Some(byte) = ansi_escape(cursor) else {
                    let next = cursor.text[at + 1..].chars().next().map_or(0, char::len_utf8);
                    let shown = cursor.slice(at, at + 1 + next);
                    return Err(Stop::new(at, Construct::Escape, shown));
                };
                units.push(byte, Mark::Quoted);
            }
            _ => units.push(byte, Mark::Quoted),
        }
    }
    if units.len() == before {
        units.push(0, Mark::Nothing);
    }
    Ok(())
}

fn ansi_escape(cursor: &mut Cursor<'_>) -> Option<u8> {
    let kind = cursor.raw(0)?;
    let (digits_at, most, radix) = match kind {
        b'0'..=b'7' => (0, 3, 8),
        b'x' => (1, 2, 16),
        b'u' => (1, 4, 16),
        b'U' => (1, 8, 16),
        _ => {
            cursor.at += 1;
            return Some(match kind {
                b'\\' | b'\'' | b'"' | b'?' => kind,
                b'a' => 0x07,
                b'b' => 0x08,
                b'e' | b'E' => 0x1B,
                b'f' => 0x0C,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 0x0B,
                _ => return None,
            });
        }
    };
    let digits = &cursor.rest()[digits_at..];
    let count = digits.iter().take(most).take_while(|b| char::from(**b).is_digit(radix)).count();
    let value = std::str::from_utf8(&digits[..count])
        .ok()
        .and_then(|digits| u32::from_str_radix(digits, radix).ok())?;
    cursor.at += digits_at + count;
    // NUL would end the string; bytes above ASCII depend on the locale.
    u8::try_from(value).ok().filter(|byte| (1..0x80).contains(byte))
}
