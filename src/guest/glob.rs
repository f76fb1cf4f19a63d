//! Patterns expanded to the names that exist, as a shell does it.

use runner_wire::{Bytes, Class, Part, Word};
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

/// One piece of a path component.
#[derive(Debug, Clone)]
enum Piece {
    Byte(u8),
    Star,
    Any,
    Class(Class),
}

/// Splits a pattern at slashes. Empty components keep doubled and leading slashes as they are.
fn components(parts: &[Part]) -> Vec<Vec<Piece>> {
    let mut all = vec![Vec::new()];
    for part in parts {
        let pieces: Vec<Piece> = match part {
            Part::Text(text) => text.0.iter().copied().map(Piece::Byte).collect(),
            Part::Star => vec![Piece::Star],
            Part::Any => vec![Piece::Any],
            Part::Class(class) => vec![Piece::Class(class.clone())],
        };
        for piece in pieces {
            if matches!(piece, Piece::Byte(b'/')) {
                all.push(Vec::new());
            } else if let Some(last) = all.last_mut() {
                last.push(piece);
            }
        }
    }
    all
}

/// The paths that `base` and one more component stand for.
fn step(base: &[u8], component: &[Piece], first: bool) -> Vec<Vec<u8>> {
    let join = |name: &[u8]| {
        if first { name.to_vec() } else { [base, b"/", name].concat() }
    };
    let literal: Option<Vec<u8>> = component
        .iter()
        .map(|piece| match piece {
            Piece::Byte(byte) => Some(*byte),
            Piece::Star | Piece::Any | Piece::Class(_) => None,
        })
        .collect();
    if let Some(name) = literal {
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
        .filter(|name| name.first() != Some(&b'.') || matches!(component[0], Piece::Byte(b'.')))
        .filter(|name| matches(component, name))
        .take(NAMES_MAX)
        .map(|name| join(&name))
        .collect()
}

/// Whether a name matches. Linear in both: on a mismatch only the last star is tried again.
fn matches(pattern: &[Piece], name: &[u8]) -> bool {
    let (mut at, mut here) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let width = match pattern.get(at) {
            Some(Piece::Star) => {
                star = Some((at, here));
                at += 1;
                continue;
            }
            Some(piece) => one(piece, &name[here..]),
            None if here == name.len() => return true,
            None => None,
        };
        if let Some(width) = width {
            at += 1;
            here += width;
        } else if let Some((back, from)) = star
            && from < name.len()
        {
            star = Some((back, from + 1));
            at = back + 1;
            here = from + 1;
        } else {
            return false;
        }
    }
}

/// How many bytes of `rest` one piece takes.
fn one(piece: &Piece, rest: &[u8]) -> Option<usize> {
    match piece {
        Piece::Byte(byte) => (rest.first() == Some(byte)).then_some(1),
        Piece::Any => character(rest).map(|(_, width)| width),
        Piece::Class(class) => {
            let (found, width) = character(rest)?;
            let within = found.is_some_and(|found| {
                class.ranges.iter().any(|(low, high)| (*low..=*high).contains(&found))
            });
            (within != class.negated).then_some(width)
        }
        Piece::Star => None,
    }
}

/// The first character, or `None` and one byte where the name is not UTF-8.
fn character(rest: &[u8]) -> Option<(Option<char>, usize)> {
    let head = &rest[..rest.len().min(4)];
    if head.is_empty() {
        return None;
    }
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    Some(valid.chars().next().map_or((None, 1), |found| (Some(found), found.len_utf8())))
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

    fn pattern(text: &str) -> Vec<Piece> {
        text.bytes()
            .map(|byte| match byte {
                b'*' => Piece::Star,
                b'?' => Piece::Any,
                b'#' => Piece::Class(Class { negated: false, ranges: vec![('0', '9')] }),
                other => Piece::Byte(other),
            })
            .collect()
    }

    #[test]
    fn names_match_as_in_a_shell() {
        for (text, name, expected) in [
            ("*", "", true),
            ("*.rs", "main.rs", true),
            ("*.rs", ".rs", true),
            ("*.rs", "main.r", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("a**c", "ac", true),
            ("?", "ü", true),
            ("??", "ü", false),
            ("f#", "f7", true),
            ("f#", "fx", false),
            ("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(matches(&pattern(text), name.as_bytes()), expected, "{text} {name}");
        }
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
