//! Braces: `{a,b}` stands for either.

/// Deepest nesting; it bounds the recursion.
const MAX_DEPTH: usize = 64;

/// What may stand in braces, and what takes their meaning away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// In a path pattern: they nest, an alternative may be empty or the only one, and braces in
    /// brackets or behind a backslash are characters.
    Path,
    /// In a command pattern: two alternatives or more, none empty, no braces in braces. Brackets and
    /// backslashes are characters like any other.
    Command,
}

/// Why the braces of a text cannot be read or written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BraceError {
    /// A `{` without its `}`.
    Unclosed,
    /// A `}` without its `{`.
    Unopened,
    /// Not of the form `{a,b}`.
    NotAlternatives,
    /// They stand for too many texts, or nest too deep.
    TooMany,
}

/// A text whose braces are read.
#[derive(Debug, PartialEq, Eq)]
pub struct Braces<'t>(Vec<Piece<'t>>);

#[derive(Debug, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    /// The alternatives of one pair of braces.
    Choice(Vec<Vec<Piece<'t>>>),
}

impl<'t> Braces<'t> {
    /// Reads the braces of a text.
    ///
    /// # Errors
    /// They are not balanced, or not what the grammar says.
    pub fn parse(text: &'t str, grammar: Grammar) -> Result<Self, BraceError> {
        // The alternatives of each open brace so far; the first entry is the text around all of them.
        let mut open: Vec<Vec<Vec<Piece<'t>>>> = vec![vec![Vec::new()]];
        let mut from = 0;
        let mut bracket = false;
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if grammar == Grammar::Path => {
                    chars.next();
                }
                '[' if grammar == Grammar::Path => bracket = true,
                ']' if grammar == Grammar::Path => bracket = false,
                _ if bracket => {}
                '{' => {
                    if grammar == Grammar::Command && open.len() > 1 {
                        let closed = text[at..].contains('}');
                        return Err(if closed {
                            BraceError::NotAlternatives
                        } else {
                            BraceError::Unclosed
                        });
                    }
                    if open.len() > MAX_DEPTH {
                        return Err(BraceError::TooMany);
                    }
                    end_text(&mut open, &text[from..at]);
                    open.push(vec![Vec::new()]);
                    from = at + 1;
                }
                ',' if open.len() > 1 => {
                    end_text(&mut open, &text[from..at]);
                    if let Some(choices) = open.last_mut() {
                        choices.push(Vec::new());
                    }
                    from = at + 1;
                }
                '}' => {
                    end_text(&mut open, &text[from..at]);
                    let choices = open.pop().filter(|_| !open.is_empty());
                    let choices = choices.ok_or(BraceError::Unopened)?;
                    let plain = choices.len() > 1 && choices.iter().all(|one| !one.is_empty());
                    if grammar == Grammar::Command && !plain {
                        return Err(BraceError::NotAlternatives);
                    }
                    push(&mut open, Piece::Choice(choices));
                    from = at + 1;
                }
                _ => {}
            }
        }
        end_text(&mut open, &text[from..]);
        match open.pop().and_then(|mut around| around.pop()) {
            Some(pieces) if open.is_empty() => Ok(Self(pieces)),
            _ => Err(BraceError::Unclosed),
        }
    }

    /// Whether no braces stand in others.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        let is_text = |piece: &Piece<'_>| matches!(piece, Piece::Text(_));
        self.0.iter().all(|piece| match piece {
            Piece::Text(_) => true,
            Piece::Choice(choices) => choices.iter().flatten().all(is_text),
        })
    }

    /// Every text that it stands for, the first alternatives first.
    ///
    /// # Errors
    /// There are more than `most`.
    pub fn expand(&self, most: usize) -> Result<Vec<String>, BraceError> {
        written_out(&self.0, most)
    }

    /// The text with the first alternative of each braces.
    #[must_use]
    pub fn first(&self) -> String {
        let mut text = String::new();
        write_first(&self.0, &mut text);
        text
    }
}

fn end_text<'t>(open: &mut [Vec<Vec<Piece<'t>>>], text: &'t str) {
    if !text.is_empty() {
        push(open, Piece::Text(text));
    }
}

/// Adds a piece to the alternative that is being read.
fn push<'t>(open: &mut [Vec<Vec<Piece<'t>>>], piece: Piece<'t>) {
    if let Some(current) = open.last_mut().and_then(|choices| choices.last_mut()) {
        current.push(piece);
    }
}

fn written_out(pieces: &[Piece<'_>], most: usize) -> Result<Vec<String>, BraceError> {
    let mut texts = vec![String::new()];
    for piece in pieces {
        match piece {
            Piece::Text(text) => texts.iter_mut().for_each(|before| before.push_str(text)),
            Piece::Choice(choices) => {
                let mut all = Vec::new();
                for choice in choices {
                    all.extend(written_out(choice, most)?);
                    if texts.len() * all.len() > most {
                        return Err(BraceError::TooMany);
                    }
                }
                let joined = |before: &String| -> Vec<String> {
                    all.iter().map(|choice| format!("{before}{choice}")).collect()
                };
                texts = texts.iter().flat_map(joined).collect();
            }
        }
    }
    Ok(texts)
}

fn write_first(pieces: &[Piece<'_>], text: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Text(plain) => text.push_str(plain),
            Piece::Choice(choices) => {
                if let Some(choice) = choices.first() {
                    write_first(choice, text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, grammar: Grammar) -> Result<Vec<String>, BraceError> {
        Braces::parse(text, grammar)?.expand(256)
    }

    #[test]
    fn alternatives_are_written_out_in_order() {
        for grammar in [Grammar::Path, Grammar::Command] {
            assert_eq!(
                expand("a {b,c} {d,e}", grammar).unwrap(),
                ["a b d", "a b e", "a c d", "a c e"]
            );
            assert_eq!(expand("a,b", grammar).unwrap(), ["a,b"]);
            assert_eq!(expand("", grammar).unwrap(), [""]);
        }
        let path = |text| expand(text, Grammar::Path).unwrap();
        assert_eq!(path("{a,{b,c}d}e"), ["ae", "bde", "cde"]);
        assert_eq!(path("x{,a}{b}{}"), ["xb", "xab"]);
        assert_eq!(path("{a\\,b,c\\}}"), ["a\\,b", "c\\}"]);
        assert_eq!(path("[{]{a,[,]}"), ["[{]a", "[{][,]"]);
        assert_eq!(expand("[{a,b}]\\", Grammar::Command).unwrap(), ["[a]\\", "[b]\\"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        use BraceError::{NotAlternatives, TooMany, Unclosed, Unopened};
        for (text, path, command) in [
            ("a {b", Unclosed, Unclosed),
            ("a b}", Unopened, Unopened),
            ("a} {b,c}", Unopened, Unopened),
            ("{a,{b}", Unclosed, NotAlternatives),
            ("{a,{b", Unclosed, Unclosed),
        ] {
            assert_eq!(expand(text, Grammar::Path), Err(path), "{text}");
            assert_eq!(expand(text, Grammar::Command), Err(command), "{text}");
        }
        for text in ["a {b}", "a {b,}", "a {,b}", "a {}", "a {b,{c,d}}"] {
            assert_eq!(expand(text, Grammar::Command), Err(NotAlternatives), "{text}");
            assert!(expand(text, Grammar::Path).is_ok(), "{text}");
        }
        assert_eq!(expand(&"{a,b}".repeat(9), Grammar::Path), Err(TooMany));
        assert_eq!(expand(&"{a,b}".repeat(8), Grammar::Path).unwrap().len(), 256);
        let deep = |depth: usize| "{".repeat(depth) + "a" + &"}".repeat(depth);
        assert_eq!(expand(&deep(64), Grammar::Path).unwrap(), ["a"]);
        assert_eq!(expand(&deep(100_000), Grammar::Path), Err(TooMany));
        assert_eq!(expand(&"{a}".repeat(100_000), Grammar::Path).unwrap().len(), 1);
    }

    #[test]
    fn the_first_of_each_is_one_of_all() {
        for text in ["a", "x{a,b}/{c,d}", "{a,{b,c}}", "{{a,b},c}d"] {
            let braces = Braces::parse(text, Grammar::Path).unwrap();
            assert_eq!(braces.expand(16).unwrap()[0], braces.first(), "{text}");
        }
        let is_flat = |text| Braces::parse(text, Grammar::Path).unwrap().is_flat();
        assert!(is_flat("a{b,c}{d}") && !is_flat("{a,{b,c}}"));
    }
}
