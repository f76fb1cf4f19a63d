//! Words: what they become, and whether that is what was assumed of them.

use super::variables::join;
use super::{Leave, Shell, broken};
use crate::glob;
use runner_glob::Token;
use runner_wire::{Assume, Block, Bytes, Class, Expand, Part, PathKind, Piece, Why, Word};

/// One byte or mark of a word.
#[derive(Clone)]
enum Unit<'a> {
    Byte(u8),
    Star,
    Any,
    Class(&'a Class),
}

type Field<'a> = Vec<Unit<'a>>;

/// Whether a value is split at blanks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Splits {
    Yes,
    No,
}

impl Shell {
    /// The words that a word becomes, as they were judged.
    pub(super) fn words(&mut self, word: &Expand) -> Result<Vec<Bytes>, Leave> {
        let fields = self.fields(&word.pieces, Splits::Yes)?;
        if let Assume::Exactly(allowed) = &word.assume {
            check_exactly(&fields, allowed)?;
        }
        let words: Vec<Bytes> = fields.iter().flat_map(|field| files(field)).collect();
        self.check(&word.assume, &words)?;
        Ok(words)
    }

    /// All words of a command.
    pub(super) fn all_words(&mut self, words: &[Expand]) -> Result<Vec<Bytes>, Leave> {
        let mut all = Vec::new();
        for word in words {
            all.extend(self.words(word)?);
        }
        Ok(all)
    }

    /// A word that is neither split nor looked for among files.
    pub(super) fn text(&mut self, word: &Expand) -> Result<Vec<u8>, Leave> {
        let field = self.fields(&word.pieces, Splits::No)?.pop().unwrap_or_default();
        if let Assume::Exactly(allowed) = &word.assume {
            check_exactly(std::slice::from_ref(&field), allowed)?;
        }
        let text = written(&field);
        self.check(&word.assume, &[Bytes(text.clone())])?;
        Ok(text)
    }

    /// A word as a pattern for texts, not for names of files.
    pub(super) fn pattern(&mut self, word: &Expand) -> Result<Vec<Token>, Leave> {
        let field = self.fields(&word.pieces, Splits::No)?.pop().unwrap_or_default();
        let mut tokens = Vec::new();
        let mut text = Vec::new();
        let flush = |text: &mut Vec<u8>, tokens: &mut Vec<Token>| {
            for chunk in text.utf8_chunks() {
                tokens.extend(chunk.valid().chars().map(Token::Char));
                tokens.extend(chunk.invalid().iter().copied().map(Token::Byte));
            }
            text.clear();
        };
        for unit in field {
            let token = match unit {
                Unit::Byte(byte) => {
                    text.push(byte);
                    continue;
                }
                Unit::Star => Token::Star,
                Unit::Any => Token::One,
                Unit::Class(class) => {
                    Token::Set { negated: class.negated, ranges: class.ranges.clone() }
                }
            };
            flush(&mut text, &mut tokens);
            tokens.push(token);
        }
        flush(&mut text, &mut tokens);
        Ok(tokens)
    }

    fn fields<'a>(&mut self, pieces: &'a [Piece], splits: Splits) -> Result<Vec<Field<'a>>, Leave> {
        let mut done: Vec<Field<'a>> = Vec::new();
        let mut field: Option<Field<'a>> =
            (splits == Splits::No || pieces.is_empty()).then(Vec::new);
        for piece in pieces {
            let (value, quoted) = match piece {
                Piece::Text(text) => {
                    let bytes = text.0.iter().copied().map(Unit::Byte);
                    field.get_or_insert_default().extend(bytes);
                    continue;
                }
                Piece::Star => {
                    field.get_or_insert_default().push(Unit::Star);
                    continue;
                }
                Piece::Any => {
                    field.get_or_insert_default().push(Unit::Any);
                    continue;
                }
                Piece::Class(class) => {
                    field.get_or_insert_default().push(Unit::Class(class));
                    continue;
                }
                Piece::Variable(name) => (self.variable(name)?, false),
                Piece::Quoted(name) => (self.variable(name)?, true),
                Piece::Default { name, text, empty, quoted } => {
                    (self.or_default(name, text, *empty), *quoted)
                }
                Piece::Status => (self.status.to_string().into_bytes(), false),
                Piece::Output(block) => (self.output(*block)?, false),
                Piece::QuotedOutput(block) => (self.output(*block)?, true),
            };
            if quoted {
                field.get_or_insert_default().extend(value.into_iter().map(Unit::Byte));
                continue;
            }
            check_pattern(&value)?;
            for byte in value {
                let unit = match byte {
                    b' ' | b'\t' | b'\n' if splits == Splits::Yes => {
                        done.extend(field.take());
                        continue;
                    }
                    b'*' => Unit::Star,
                    b'?' => Unit::Any,
                    byte => Unit::Byte(byte),
                };
                field.get_or_insert_default().push(unit);
            }
        }
        done.extend(field);
        Ok(done)
    }

    fn variable(&mut self, name: &Bytes) -> Result<Vec<u8>, Leave> {
        match self.value(&name.0) {
            Some(value) => Ok(value),
            None if self.nounset => {
                self.say(&[&name.0[..], b": unbound variable"].concat());
                // As `bash -c` has it.
                self.status = 127;
                Err(Leave::Exit)
            }
            None => Ok(Vec::new()),
        }
    }

    /// The value of a variable, or what stands for it.
    fn or_default(&self, name: &Bytes, text: &Bytes, empty: bool) -> Vec<u8> {
        match self.value(&name.0) {
            Some(value) if !(empty && value.is_empty()) => value,
            Some(_) | None => text.0.clone(),
        }
    }

    fn output(&mut self, block: Block) -> Result<Vec<u8>, Leave> {
        let mut text = self.capture(block)?;
        text.retain(|byte| *byte != 0);
        let end = text.iter().rposition(|byte| *byte != b'\n').map_or(0, |at| at + 1);
        text.truncate(end);
        Ok(text)
    }

    /// Holds words to what was assumed of all of them.
    fn check(&self, assume: &Assume, words: &[Bytes]) -> Result<(), Leave> {
        if let Some(odd) = words.iter().find(|word| word.0.contains(&0)) {
            return Err(broken(&odd.0, Why::Nul));
        }
        let Assume::NoOption { many, path } = assume else { return Ok(()) };
        if words.is_empty() || (words.len() > 1 && !many) {
            let shown: Vec<&[u8]> = words.iter().map(|word| &word.0[..]).collect();
            return Err(broken(&shown.join(&b' '), Why::Count));
        }
        for Bytes(word) in words {
            if word.starts_with(b"-") {
                return Err(broken(word, Why::Option));
            }
            if path.is_some() && !self.is_inside(word) {
                return Err(broken(word, Why::Outside));
            }
            if *path == Some(PathKind::Plain) && word.contains(&b':') {
                return Err(broken(word, Why::Colon));
            }
        }
        Ok(())
    }

    fn is_inside(&self, path: &[u8]) -> bool {
        let full = join(&self.folder, path);
        self.script.roots.iter().any(|Bytes(root)| {
            full.strip_prefix(&root[..])
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || root == b"/")
        })
    }
}

/// Patterns in values that are read: `*` and `?`. Sets, and backslashes before marks, are read in several ways.
fn check_pattern(value: &[u8]) -> Result<(), Leave> {
    let open = value.iter().position(|byte| *byte == b'[');
    let set = open.is_some_and(|open| value[open..].contains(&b']'));
    let marks = || value.iter().any(|byte| b"*?[".contains(byte));
    if set || (value.contains(&b'\\') && marks()) {
        return Err(broken(value, Why::Pattern));
    }
    Ok(())
}

fn check_exactly(fields: &[Field<'_>], allowed: &[Vec<Bytes>]) -> Result<(), Leave> {
    let spelled: Vec<Bytes> = fields.iter().map(|field| Bytes(spelled(field))).collect();
    if allowed.contains(&spelled) {
        return Ok(());
    }
    let shown: Vec<Vec<u8>> = fields.iter().map(|field| written(field)).collect();
    Err(broken(&shown.join(&b' '), Why::Other))
}

/// The one spelling of a word, in which text and marks differ.
fn spelled(field: &[Unit<'_>]) -> Vec<u8> {
    let mut text = Vec::new();
    for unit in field {
        match unit {
            Unit::Byte(byte) => {
                if b"*?[]\\".contains(byte) {
                    text.push(b'\\');
                }
                text.push(*byte);
            }
            mark => mark_text(mark, &mut text),
        }
    }
    text
}

/// A word as text.
fn written(field: &[Unit<'_>]) -> Vec<u8> {
    let mut text = Vec::new();
    for unit in field {
        match unit {
            Unit::Byte(byte) => text.push(*byte),
            mark => mark_text(mark, &mut text),
        }
    }
    text
}

fn mark_text(mark: &Unit<'_>, text: &mut Vec<u8>) {
    match mark {
        Unit::Byte(byte) => text.push(*byte),
        Unit::Star => text.push(b'*'),
        Unit::Any => text.push(b'?'),
        Unit::Class(class) => {
            text.extend_from_slice(if class.negated { b"[!" } else { b"[" });
            for (low, high) in &class.ranges {
                let range = format!("{low}-{high}");
                text.extend_from_slice(range.as_bytes());
            }
            text.push(b']');
        }
    }
}

/// The files that a field names, or its text.
fn files(field: &[Unit<'_>]) -> Vec<Bytes> {
    if field.iter().all(|unit| matches!(unit, Unit::Byte(_))) {
        return vec![Bytes(written(field))];
    }
    let mut parts: Vec<Part> = Vec::new();
    for unit in field {
        match (unit, parts.last_mut()) {
            (Unit::Byte(byte), Some(Part::Text(text))) => text.0.push(*byte),
            (Unit::Byte(byte), _) => parts.push(Part::Text(Bytes(vec![*byte]))),
            (Unit::Star, _) => parts.push(Part::Star),
            (Unit::Any, _) => parts.push(Part::Any),
            (Unit::Class(class), _) => parts.push(Part::Class((*class).clone())),
        }
    }
    glob::expand(&Word::Glob(parts))
}
