//! Patterns expanded to the names that exist, as a shell does it.

use runner_glob::{Token, fits};
use runner_wire::{Bytes, Part, Word};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// More names than this are not expanded: no program takes them.
const NAMES_MAX: usize = 100_000;

/// All words, patterns expanded.
pub fn expand_all(words: &[Word]) -> Vec<Bytes> {
    words.iter().flat_map(expand).collect()
}

/// One word: itself, or every existing path that matches, sorted; the pattern's text if none does.
pub fn expand(word: &Word) -> Vec<Bytes> {
    let parts = match word {
        Word::Text(text) => return vec![text.clone()],
        Word::Glob(parts) => parts,
    };
    let mut found = vec![Vec::new()];
    for (at, component) in components(parts).iter().enumerate() {
        found = found
            .into_iter()
            .flat_map(|base: Vec<u8>| step(&base, component, at == 0))
            .take(NAMES_MAX)
            .collect();
    }
    if found.is_empty() {
        return vec![Bytes(text_of(parts))];
    }
    found.sort();
    found.into_iter().map(Bytes).collect()
}

/// Splits a pattern at slashes. Empty components keep doubled and leading slashes as they are.
fn components(parts: &[Part]) -> Vec<Vec<Token>> {
    let mut all = vec![Vec::new()];
    for token in parts.iter().flat_map(tokens) {
        if token == Token::Char('/') {
            all.push(Vec::new());
        } else if let Some(last) = all.last_mut() {
            last.push(token);
        }
    }
    all
}

fn tokens(part: &Part) -> Vec<Token> {
    match part {
        Part::Text(text) => {
            let chunk = |chunk: std::str::Utf8Chunk<'_>| -> Vec<Token> {
                let text = chunk.valid().chars().map(Token::Char);
                text.chain(chunk.invalid().iter().copied().map(Token::Byte)).collect()
            };
            text.0.utf8_chunks().flat_map(chunk).collect()
        }
        Part::Star => vec![Token::Star],
        Part::Any => vec![Token::One],
        Part::Class(class) => {
            vec![Token::Set { negated: class.negated, ranges: class.ranges.clone() }]
        }
    }
}

/// The bytes of a component without marks.
fn literal(component: &[Token]) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    for token in component {
        match token {
            Token::Char(c) => name.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Token::Byte(byte) => name.push(*byte),
            Token::Star | Token::One | Token::Set { .. } => return None,
        }
    }
    Some(name)
}

/// The paths that `base` and one more component stand for.
fn step(base: &[u8], component: &[Token], first: bool) -> Vec<Vec<u8>> {
    let join = |name: &[u8]| {
        if first { name.to_vec() } else { [base, b"/", name].concat() }
    };
    if let Some(name) = literal(component) {
        let path = join(&name);
        let exists =
            path.is_empty() || Path::new(OsStr::from_bytes(&path)).symlink_metadata().is_ok();
        return if exists { vec![path] } else { vec![] };
    }
    let folder: &[u8] = match (first, base.is_empty()) {
        (true, _) => b".",
        (false, true) => b"/",
        (false, false) => base,
    };
    let Ok(entries) = std::fs::read_dir(OsStr::from_bytes(folder)) else {
        return vec![];
    };
    entries
        .flatten()
        .map(|entry| entry.file_name().as_bytes().to_vec())
        // A leading dot is only matched by a dot.
        .filter(|name| name.first() != Some(&b'.') || component[0] == Token::Char('.'))
        .filter(|name| fits(component, name))
        .take(NAMES_MAX)
        .map(|name| join(&name))
        .collect()
}

/// The text of a pattern as it was written, near enough for a command to show.
fn text_of(parts: &[Part]) -> Vec<u8> {
    let mut text = Vec::new();
    for part in parts {
        match part {
            Part::Text(bytes) => text.extend_from_slice(&bytes.0),
            Part::Star => text.push(b'*'),
            Part::Any => text.push(b'?'),
            Part::Class(class) => {
                let mut shown = String::from(if class.negated { "[!" } else { "[" });
                for (low, high) in &class.ranges {
                    shown.push(*low);
                    if low != high {
                        shown.push('-');
                        shown.push(*high);
                    }
                }
                shown.push(']');
                text.extend_from_slice(shown.as_bytes());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_split_at_slashes_and_keeps_bytes_that_are_not_text() {
        let parts = [Part::Text(Bytes(b"/\xc3\xa9\xff/".to_vec())), Part::Star];
        let middle = vec![Token::Char('é'), Token::Byte(0xff)];
        assert_eq!(components(&parts), [vec![], middle.clone(), vec![Token::Star]]);
        assert_eq!(literal(&middle).unwrap(), b"\xc3\xa9\xff");
        assert_eq!(literal(&[Token::Star]), None);
    }

    #[test]
    fn paths_are_found_and_sorted() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
        let text = |text: &str| Part::Text(Bytes::from(text));
        let word = Word::Glob(vec![text(root), Part::Star, text("ob.rs")]);
        let path = |name: &str| Bytes::from(format!("{root}{name}").as_str());
        assert_eq!(expand(&word), vec![path("glob.rs"), path("job.rs")]);
        let none = Word::Glob(vec![Part::Text(Bytes::from("nosuch/")), Part::Star]);
        assert_eq!(expand(&none), vec![Bytes::from("nosuch/*")]);
        let system = Word::Glob(vec![Part::Text(Bytes::from("/pro")), Part::Any]);
        assert_eq!(expand(&system), vec![Bytes::from("/proc")]);
    }
}
