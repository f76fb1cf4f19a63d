//! Shell patterns that spell a name out: `.env*`, `.en?` and `.[de]nv` are requests for `.env`.
//!
//! A pattern that merely could match (`*`, `*.yml`) is not: agents write those all day, and the
//! sandbox covers denied files. Only names are looked at here; nothing is expanded.

/// Concrete paths that stand for a pattern: its stars as nothing and as a letter, and each of the
/// known names where one component spells it out.
pub fn candidates<'n>(pattern: &str, names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
    let components: Vec<&str> = split(pattern);
    let filled = |star: &str| -> Vec<String> {
        components.iter().map(|component| skeleton(component, star)).collect()
    };
    let (bare, lettered) = (filled(""), filled("x"));
    let mut out = vec![bare.join("/"), lettered.join("/")];
    let mut all = lettered.clone();
    for (at, component) in components.iter().enumerate() {
        if !is_pattern(component) {
            continue;
        }
        for name in names.clone().filter(|name| spells(component, name)) {
            for base in [&bare, &lettered] {
                let mut path = base.clone();
                name.clone_into(&mut path[at]);
                out.push(path.join("/"));
            }
            name.clone_into(&mut all[at]);
        }
    }
    out.push(all.join("/"));
    out.sort();
    out.dedup();
    out
}

/// Components between slashes; a slash in brackets is none.
fn split(pattern: &str) -> Vec<&str> {
    pattern.split('/').collect()
}

/// Whether a component has a mark that is not escaped.
fn is_pattern(component: &str) -> bool {
    tokens(component).iter().any(|token| !matches!(token, Token::Char(_)))
}

/// Whether a component asks for this name, and not for just any.
fn spells(component: &str, name: &str) -> bool {
    let tokens = tokens(component);
    let chars = tokens.iter().filter(|token| matches!(token, Token::Char(_))).count();
    let begins = matches!(tokens.first(), Some(Token::Char(_)));
    // A shell's marks never match a leading dot.
    let asked = begins || (chars * 2 >= name.chars().count() && !name.starts_with('.'));
    asked && matches(&tokens, &name.chars().collect::<Vec<char>>())
}

/// The component with its marks filled in; the first member stands for a set.
fn skeleton(component: &str, star: &str) -> String {
    let mut out = String::with_capacity(component.len());
    for token in tokens(component) {
        match token {
            Token::Char(c) => out.push(c),
            Token::Star => out.push_str(star),
            Token::One => out.push('x'),
            Token::Set { negated: true, .. } => out.push('x'),
            Token::Set { ranges, .. } => out.push(ranges.first().map_or('x', |(first, _)| *first)),
        }
    }
    out
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Char(char),
    Star,
    One,
    Set { negated: bool, ranges: Vec<(char, char)> },
}

fn tokens(component: &str) -> Vec<Token> {
    let chars: Vec<char> = component.chars().collect();
    let mut out = Vec::with_capacity(chars.len());
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        at += 1;
        out.push(match c {
            '*' => Token::Star,
            '?' => Token::One,
            '\\' => {
                at += 1;
                Token::Char(*chars.get(at - 1).unwrap_or(&'\\'))
            }
            '[' => match set(&chars[at..]) {
                Some((token, length)) => {
                    at += length;
                    token
                }
                None => Token::Char('['),
            },
            c => Token::Char(*c),
        });
    }
    out
}

/// A set, and how many characters after its `[` it takes.
fn set(chars: &[char]) -> Option<(Token, usize)> {
    let negated = matches!(chars.first(), Some('!' | '^'));
    let mut at = usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        match (chars.get(at)?, chars.get(at + 1), chars.get(at + 2)) {
            (']', ..) if !ranges.is_empty() => {
                return Some((Token::Set { negated, ranges }, at + 1));
            }
            // `[:alpha:]`: too wide to spell anything.
            ('[', Some(':'), _) => {
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

fn matches(tokens: &[Token], name: &[char]) -> bool {
    let (mut t, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        let fits = match tokens.get(t) {
            Some(Token::Star) => {
                back = Some((t, n));
                t += 1;
                continue;
            }
            Some(Token::Char(c)) => *c == name[n],
            Some(Token::One) => true,
            Some(Token::Set { negated, ranges }) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&name[n])) != *negated
            }
            None => false,
        };
        if fits {
            t += 1;
            n += 1;
        } else if let Some((star, taken)) = back {
            back = Some((star, taken + 1));
            t = star + 1;
            n = taken + 1;
        } else {
            return false;
        }
    }
    tokens[t..].iter().all(|token| *token == Token::Star)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_out_is_asked_for() {
        for pattern in [".env*", ".en?", ".[de]nv", ".??v", ".e*", ".[!x]nv", ".[a-f]nv"] {
            assert!(spells(pattern, ".env"), "{pattern}");
        }
        for pattern in ["*", "?env", "*nv", "[.]env", ".x*", ".env.*", "a*"] {
            assert!(!spells(pattern, ".env"), "{pattern}");
        }
        assert!(spells("s*", "secrets.yml") && spells("?ecrets.yml", "secrets.yml"));
        assert!(!spells("*.yml", "secrets.yml") && !spells("*", "secrets.yml"));
    }

    #[test]
    fn candidates_hold_the_skeletons_and_the_names() {
        let known = [".env", "secret"];
        let paths = candidates("/w/s*/.en?", known.into_iter());
        for path in ["/w/s/.enx", "/w/sx/.env", "/w/secret/.env", "/w/secret/.enx"] {
            assert!(paths.iter().any(|known| known == path), "{path} in {paths:?}");
        }
        assert_eq!(candidates("*.pem", [].into_iter()), [".pem", "x.pem"]);
        assert_eq!(candidates("a\\*b", [].into_iter()), ["a*b"]);
    }
}
