//! One name: the marks of a pattern, and whether they cover it.

/// One mark or character of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// This character.
    Char(char),
    /// This byte, which is not part of a character.
    Byte(u8),
    /// Any run of characters.
    Star,
    /// One character, or one byte that is not part of one.
    One,
    /// One character of these, or one that is none of them.
    Set {
        /// Whether the set begins with `!` or `^`.
        negated: bool,
        /// Ranges, both ends included.
        ranges: Vec<(char, char)>,
    },
}

/// A bracket is not closed, or a backslash has nothing behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclosed;

/// Reads a component of a path pattern: `*`, `?`, `[…]`, and `\` before a character that is meant as it is.
///
/// # Errors
/// A bracket is not closed, or the last character is a backslash.
pub fn path_tokens(component: &str) -> Result<Vec<Token>, Unclosed> {
    read(component, |chars| set(chars, Named::Characters).map(Some).ok_or(Unclosed), Err(Unclosed))
}

/// Reads a word of a shell: as a path pattern, but what is not closed is meant as it is.
#[must_use]
pub fn shell_tokens(word: &str) -> Vec<Token> {
    let read: Result<_, Unclosed> =
        read(word, |chars| Ok(set(chars, Named::Anything)), Ok(Token::Char('\\')));
    read.unwrap_or_default()
}

/// Reads a pattern in which `*` is the only mark.
#[must_use]
pub fn star_tokens(pattern: &str) -> Vec<Token> {
    let token = |c| if c == '*' { Token::Star } else { Token::Char(c) };
    pattern.chars().map(token).collect()
}

/// A set, and how many characters behind its `[` it takes.
type Set = (Token, usize);

/// `bracket` reads what stands behind a `[`, or says that it is only a bracket; `dangling` is what a
/// backslash at the end is.
fn read(
    text: &str,
    bracket: impl Fn(&[char]) -> Result<Option<Set>, Unclosed>,
    dangling: Result<Token, Unclosed>,
) -> Result<Vec<Token>, Unclosed> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::with_capacity(chars.len());
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        at += 1;
        out.push(match c {
            '*' => Token::Star,
            '?' => Token::One,
            '\\' => match chars.get(at) {
                Some(escaped) => {
                    at += 1;
                    Token::Char(*escaped)
                }
                None => dangling.clone()?,
            },
            '[' => match bracket(&chars[at..])? {
                Some((token, length)) => {
                    at += length;
                    token
                }
                None => Token::Char('['),
            },
            c => Token::Char(*c),
        });
    }
    Ok(out)
}

/// What `[:alpha:]` in a set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// The characters that are written.
    Characters,
    /// Any character: a reader that judges must not know fewer than a shell does.
    Anything,
}

fn set(chars: &[char], named: Named) -> Option<Set> {
    let negated = matches!(chars.first(), Some('!' | '^'));
    let mut at = usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        match (chars.get(at)?, chars.get(at + 1), chars.get(at + 2)) {
            (']', ..) if !ranges.is_empty() => {
                return Some((Token::Set { negated, ranges }, at + 1));
            }
            ('[', Some(':'), _) if named == Named::Anything => {
                let end = chars[at..].windows(2).position(|pair| pair == [':', ']'])?;
                ranges.push(('\0', char::MAX));
                at += end + 2;
            }
            (first, Some('-'), Some(last)) if *last != ']' => {
                ranges.push((*first, *last));
                at += 3;
            }
            (c, ..) => {
                ranges.push((*c, *c));
                at += 1;
            }
        }
    }
}

/// Whether a pattern covers a name, all of it.
#[must_use]
pub fn fits(tokens: &[Token], name: &[u8]) -> bool {
    fits_within(tokens, name, |_| true)
}

/// The same, but `*` stands only for characters that `star` accepts; it is asked about `None` for a
/// byte that is not part of a character. At worst this takes the product of both lengths.
#[must_use]
pub fn fits_within(tokens: &[Token], name: &[u8], star: impl Fn(Option<char>) -> bool) -> bool {
    let (mut t, mut n) = (0, 0);
    // The last star, and where what it stands for ends. Only this one is tried anew: if an earlier one
    // stood for more, this one could stand for no more than it does.
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        let width = match tokens.get(t) {
            Some(Token::Star) => {
                back = Some((t, n));
                t += 1;
                continue;
            }
            Some(token) => token.width(&name[n..]),
            None => None,
        };
        if let Some(width) = width {
            t += 1;
            n += width;
        } else if let Some((star_at, end)) = back {
            let (found, width) = first(&name[end..]);
            if !star(found) {
                return false;
            }
            back = Some((star_at, end + width));
            t = star_at + 1;
            n = end + width;
        } else {
            return false;
        }
    }
    tokens[t..].iter().all(|token| *token == Token::Star)
}

impl Token {
    /// How many bytes at the beginning of `rest`, which is not empty, it covers.
    fn width(&self, rest: &[u8]) -> Option<usize> {
        if let Self::Byte(byte) = self {
            return (rest[0] == *byte).then_some(1);
        }
        let (found, width) = first(rest);
        let covers = match self {
            Self::Char(c) => found == Some(*c),
            Self::One => true,
            Self::Set { negated, ranges } => {
                let within = |c| ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
                found.is_some_and(within) != *negated
            }
            Self::Star | Self::Byte(_) => false,
        };
        covers.then_some(width)
    }
}

/// The first character and its width, or `None` and one byte where the name is not UTF-8.
fn first(rest: &[u8]) -> (Option<char>, usize) {
    match rest.first() {
        Some(byte) if byte.is_ascii() => return (Some(char::from(*byte)), 1),
        Some(_) => {}
        None => return (None, 0),
    }
    let head = &rest[..rest.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next().map_or((None, 1), |found| (Some(found), found.len_utf8()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What matching means, without any care for its cost.
    fn plainly(tokens: &[Token], name: &[u8], star: &impl Fn(Option<char>) -> bool) -> bool {
        let Some((token, rest)) = tokens.split_first() else { return name.is_empty() };
        if *token == Token::Star {
            let (found, width) = first(name);
            return plainly(rest, name, star)
                || (width > 0 && star(found) && plainly(tokens, &name[width..], star));
        }
        !name.is_empty()
            && token.width(name).is_some_and(|width| plainly(rest, &name[width..], star))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn a_pattern_covers_what_it_says(
            pattern in prop::collection::vec(prop::sample::select(vec!["*", "?", "a", "b", "/", "é", "€", "[ab]", "[!a]"]), 0..8),
            name in prop::collection::vec(prop::sample::select(vec!["a", "b", "/", "é", "€"]), 0..8),
        ) {
            let (pattern, name) = (pattern.concat(), name.concat());
            let tokens = shell_tokens(&pattern);
            let any = |_: Option<char>| true;
            prop_assert_eq!(fits(&tokens, name.as_bytes()), plainly(&tokens, name.as_bytes(), &any));
            // Where something stops a star, nothing but itself covers it.
            let tokens = star_tokens(&pattern);
            let inside = |c: Option<char>| c != Some('/');
            prop_assert_eq!(
                fits_within(&tokens, name.as_bytes(), inside),
                plainly(&tokens, name.as_bytes(), &inside),
                "{} {}", pattern, name
            );
        }
    }

    #[test]
    fn names_are_covered_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*.rs", "main.rs", true),
            ("*.rs", ".rs", true),
            ("*.rs", "main.r", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("a**c", "ac", true),
            ("?", "ü", true),
            ("??", "ü", false),
            ("*??", "€", false),
            ("f[0-9]", "f7", true),
            ("f[0-9]", "fx", false),
            ("[]]", "]", true),
            ("[!]]", "]", false),
            ("[a-]", "-", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            let tokens = path_tokens(pattern).unwrap();
            assert_eq!(tokens, shell_tokens(pattern), "{pattern}");
            assert_eq!(fits(&tokens, name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_covered_one_by_one() {
        let name = b"a\xff\xe2";
        for (pattern, expected) in [("a??", true), ("a?", false), ("a*", true), ("a[!x]?", true)] {
            assert_eq!(fits(&shell_tokens(pattern), name), expected, "{pattern}");
        }
        let tokens = [Token::Char('a'), Token::Byte(0xff), Token::Star];
        assert!(fits(&tokens, name) && !fits(&tokens, b"a\xfe"));
    }

    #[test]
    fn what_is_not_closed_is_an_error_in_a_path_and_a_character_in_a_shell() {
        for text in ["[a", "*[a", "[!", "a\\", "[[:alpha:"] {
            assert_eq!(path_tokens(text), Err(Unclosed), "{text}");
        }
        assert_eq!(shell_tokens("[a"), [Token::Char('['), Token::Char('a')]);
        assert_eq!(shell_tokens("a\\"), [Token::Char('a'), Token::Char('\\')]);
        assert!(fits(&shell_tokens("[[:alpha:]]"), b"z"));
    }
}
