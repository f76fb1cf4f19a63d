//! Here-documents: delimiter, text, and the one command substitution that is only text.

use super::cursor::{Cursor, is_meta};
use super::stop::{Construct, Stop};
use super::units::Waiting;

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
pub(super) fn text(
    cursor: &mut Cursor<'_>,
    waited: &Waited,
    within: Within,
) -> Result<String, Stop> {
    let open = || Stop::new(waited.at, Construct::OpenHereDocument, &waited.delimiter);
    let mut text = String::new();
    loop {
        if cursor.rest().is_empty() {
            return Err(open());
        }
        let (mut line, ended) = cursor.take_line();
        if waited.strip_tabs {
            line = line.trim_start_matches('\t');
        }
        if line == waited.delimiter {
            return Ok(text);
        }
        if !ended || (within == Within::Substitution && line.starts_with(&waited.delimiter)) {
            return Err(open());
        }
        match waited.quoting {
            Quoting::Quoted => text += line,
            Quoting::Bare => {
                let line_end = cursor.at - 1;
                unescape(line, &mut text).map_err(|at| {
                    let at = line_end - line.len() + at;
                    Stop::new(at, Construct::HereDocument, cursor.slice(at, line_end))
                })?;
            }
        }
        text.push('\n');
    }
}

/// The text of a line in which expansions would count; the byte of the first one if there is any.
fn unescape(line: &str, text: &mut String) -> Result<(), usize> {
    let bytes = line.as_bytes();
    let mut from = 0;
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'\\', Some(b'$' | b'`' | b'\\')) => {
                text.push_str(&line[from..at]);
                from = at + 1;
                at += 2;
            }
            // A continuation joins two lines, maybe to the delimiter.
            (b'\\', None) | (b'`', _) => return Err(at),
            (b'$', next) if next.is_some_and(|next| !b" \t/.,:;=%|&)]}\r".contains(next)) => {
                return Err(at);
            }
            _ => at += 1,
        }
    }
    text.push_str(&line[from..]);
    Ok(())
}

/// Reads `$(cat <<'E' … E)`; the cursor stands on `(`. Any other command substitution is refused.
pub(super) fn substituted(cursor: &mut Cursor<'_>, waiting: Waiting) -> Result<String, Stop> {
    let at = cursor.at - 1;
    let refused = |cursor: &Cursor<'_>| {
        let rest = &cursor.text.as_bytes()[at..];
        let end = rest.iter().position(|b| *b == b'\n' || *b == b')');
        let end = end.map_or(cursor.text.len(), |end| at + end + 1);
        let shown = cursor.slice(at, end).trim_end();
        Stop::new(at, Construct::CommandSubstitution, shown)
    };
    cursor.at += 1;
    cursor.skip_blanks();
    if waiting == Waiting::Yes || !cursor.rest().starts_with(b"cat") {
        return Err(refused(cursor));
    }
    cursor.at += "cat".len();
    cursor.skip_blanks();
    let start = cursor.at;
    if !cursor.rest().starts_with(b"<<") || cursor.raw(2) == Some(b'<') {
        return Err(refused(cursor));
    }
    cursor.at += 2;
    let waited = begin(cursor, start)?;
    cursor.skip_blanks();
    if !cursor.eat(b'\n') {
        return Err(refused(cursor));
    }
    let mut text = text(cursor, &waited, Within::Substitution)?;
    while matches!(cursor.raw(0), Some(b' ' | b'\t' | b'\n')) {
        cursor.at += 1;
    }
    if !cursor.eat(b')') {
        return Err(refused(cursor));
    }
    text.truncate(text.trim_end_matches('\n').len());
    Ok(text)
}
