//! Here-documents: delimiter, text, and the one command substitution that is only text.

use super::cursor::{Cursor, Span, is_meta};
use super::line::Parser;
use super::part::{self, Place};
use super::script::Word;
use super::stop::{Construct, Stop};
use super::units::{self, Dollar, Mark, Units};

/// Whether a here-document's text is taken as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// `<<'EOF'`: as it is.
    Quoted,
    /// `<<EOF`: the shell would look for expansions in it.
    Bare,
}

/// Where a here-document stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// On the line itself.
    Line,
    /// Inside `$(…)`. There bash also ends it at a line that begins with the delimiter and holds a
    /// `)`, so lines that begin with the delimiter are refused.
    Substitution,
}

/// A here-document whose text has not been reached yet.
#[derive(Debug)]
pub(super) struct Waited {
    /// Where `<<` stands: the redirection that gets the text.
    pub at: usize,
    delimiter: String,
    quoting: Quoting,
    /// `<<-`: tabs at the start of lines are dropped.
    strip_tabs: bool,
}

/// Reads what follows `<<`; `at` is where the redirection begins.
pub(super) fn begin(cursor: &mut Cursor<'_>, at: usize) -> Result<Waited, Stop> {
    let strip_tabs = cursor.eat(b'-');
    cursor.skip_blanks();
    let (delimiter, quoting) = delimiter(cursor)?;
    Ok(Waited { at, delimiter, quoting, strip_tabs })
}

fn delimiter(cursor: &mut Cursor<'_>) -> Result<(String, Quoting), Stop> {
    let start = cursor.at;
    let refused = |cursor: &Cursor<'_>| {
        let end = cursor.rest().iter().position(|b| *b == b'\n');
        let end = end.map_or(cursor.text.len(), |end| cursor.at + end);
        Stop::new(start, Construct::Delimiter, cursor.slice(start, end))
    };
    let mut text = String::new();
    let mut quoting = Quoting::Bare;
    if cursor.peek() == Some(b'#') {
        return Err(refused(cursor));
    }
    while let Some(byte) = cursor.peek().filter(|byte| !is_meta(*byte)) {
        match byte {
            b'\'' | b'"' => {
                let inner = &cursor.rest()[1..];
                let Some(length) = inner.iter().position(|b| *b == byte) else {
                    return Err(Stop::new(cursor.at, Construct::OpenQuote, char::from(byte)));
                };
                if inner[..length].iter().any(|b| b"\n\\$`".contains(b)) {
                    return Err(refused(cursor));
                }
                text += cursor.slice(cursor.at + 1, cursor.at + 1 + length);
                cursor.at += length + 2;
                quoting = Quoting::Quoted;
            }
            b'$' | b'`' => return Err(refused(cursor)),
            _ => {
                if byte == b'\\' {
                    cursor.at += 1;
                    quoting = Quoting::Quoted;
                }
                let Some(c) = cursor.text[cursor.at..].chars().next() else {
                    return Err(refused(cursor));
                };
                text.push(c);
                cursor.at += c.len_utf8();
            }
        }
    }
    // Bash takes digits before an operator for a descriptor even here, which is an error.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    if text.is_empty() || (digits && matches!(cursor.peek(), Some(b'<' | b'>'))) {
        return Err(refused(cursor));
    }
    Ok((text, quoting))
}

/// Reads the text up to the line of the delimiter; the cursor stands at the start of a line.
pub(super) fn text(parser: &mut Parser<'_>, waited: &Waited, within: Within) -> Result<Word, Stop> {
    let open = || Stop::new(waited.at, Construct::OpenHereDocument, &waited.delimiter);
    let mut units = Units::default();
    loop {
        let cursor = &mut parser.cursor;
        if cursor.rest().is_empty() {
            return Err(open());
        }
        let (mut line, ended) = cursor.take_line();
        if waited.strip_tabs {
            line = line.trim_start_matches('\t');
        }
        if line == waited.delimiter {
            return part::word(&units, Place::Text, Span::new(waited.at, waited.at));
        }
        if !ended || (within == Within::Substitution && line.starts_with(&waited.delimiter)) {
            return Err(open());
        }
        match waited.quoting {
            Quoting::Quoted => units.extend(line.as_bytes(), Mark::Quoted),
            Quoting::Bare => {
                let line_end = parser.cursor.at - 1;
                expand(parser, line_end - line.len(), line_end, &mut units)?;
            }
        }
        units.push(b'\n', Mark::Quoted);
    }
}

/// Reads a line of text in which expansions count. The cursor stands behind it, before and afterwards.
fn expand(
    parser: &mut Parser<'_>,
    start: usize,
    end: usize,
    units: &mut Units,
) -> Result<(), Stop> {
    let behind = parser.cursor.at;
    parser.cursor.at = start;
    while parser.cursor.at < end {
        let at = parser.cursor.at;
        let refused = |parser: &Parser<'_>| {
            Stop::new(at, Construct::HereDocument, parser.cursor.slice(at, end))
        };
        let byte = parser.cursor.raw(0).unwrap_or(b'\n');
        parser.cursor.at += 1;
        match (byte, parser.cursor.raw(0)) {
            (b'\\', Some(next @ (b'$' | b'`' | b'\\'))) => {
                parser.cursor.at += 1;
                units.push(next, Mark::Quoted);
            }
            // A continuation joins two lines, maybe to the delimiter.
            (b'\\', Some(b'\n') | None) | (b'`', _) => return Err(refused(parser)),
            (b'$', next) if next.is_some_and(|next| !b" \t/.,:;=%|&)]}\r\n".contains(&next)) => {
                // Bash takes quotes for text here: `$"` and `$'` are no quotes.
                let quote = matches!(next, Some(b'"' | b'\''));
                match units::dollar(parser) {
                    Ok(Dollar::Expansion(expansion)) if parser.cursor.at <= end => {
                        units.expansion(expansion, true);
                    }
                    Ok(Dollar::Sign) if !quote => units.push(b'$', Mark::Quoted),
                    Ok(_) => return Err(refused(parser)),
                    Err(stop) => return Err(stop),
                }
            }
            _ => units.push(byte, Mark::Quoted),
        }
    }
    parser.cursor.at = behind;
    Ok(())
}

/// Reads `$(cat <<'E' … E)`, the literal text; the cursor stands on `(`. None, and nothing taken, if it is another
/// command substitution.
pub(super) fn substituted(parser: &mut Parser<'_>) -> Option<String> {
    let before = parser.cursor.at;
    let text = literal(parser);
    if text.is_none() {
        parser.cursor.at = before;
    }
    text
}

fn literal(parser: &mut Parser<'_>) -> Option<String> {
    let cursor = &mut parser.cursor;
    cursor.at += 1;
    cursor.skip_blanks();
    if !parser.waited.is_empty() || !cursor.rest().starts_with(b"cat") {
        return None;
    }
    cursor.at += "cat".len();
    cursor.skip_blanks();
    let start = cursor.at;
    if !cursor.rest().starts_with(b"<<") || cursor.raw(2) == Some(b'<') {
        return None;
    }
    cursor.at += 2;
    let waited = begin(cursor, start).ok()?;
    cursor.skip_blanks();
    if !cursor.eat(b'\n') {
        return None;
    }
    let commands = parser.commands;
    let word = text(parser, &waited, Within::Substitution).ok();
    parser.commands = commands;
    let mut text = word?.literal()?.to_owned();
    let cursor = &mut parser.cursor;
    while matches!(cursor.raw(0), Some(b' ' | b'\t' | b'\n')) {
        cursor.at += 1;
    }
    if !cursor.eat(b')') {
        return None;
    }
    text.truncate(text.trim_end_matches('\n').len());
    Some(text)
}
