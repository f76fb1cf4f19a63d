//! Patterns of paths: `*`, `?` and `[…]` stay inside a component, `**` crosses, `{a,b}` are alternatives.
//!
//! Matched component by component as written: nothing is compiled, because a process that decides one
//! command would pay more for that than for the decision. A test holds it equal to `globset`, which says what
//! a pattern is; but `?` is a character here and a byte there.

/// Most alternatives that the braces of one pattern may make.
const MAX_ALTERNATIVES: usize = 256;

/// One pattern.
#[derive(Debug)]
pub(crate) struct Glob {
    alternatives: Vec<Vec<Component>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Component {
    /// `**`: any number of components, at least one at the end.
    Deep,
    /// Exactly this name.
    Name(String),
    /// What these cover.
    Marks(Vec<Token>),
}

impl Glob {
    /// Reads a pattern; `None` if it makes too many alternatives or leaves a bracket or brace open.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        let alternatives = expand(pattern)?
            .iter()
            .map(|text| text.split('/').map(Component::new).collect())
            .collect::<Option<_>>()?;
        Some(Self { alternatives })
    }

    /// The same, and the folder whose content it names: `folder/**` is the folder too.
    pub(crate) fn with_folder(pattern: &str) -> Option<Self> {
        let mut glob = Self::new(pattern)?;
        if let Some(folder) = pattern.strip_suffix("/**").filter(|folder| !folder.ends_with("**")) {
            glob.alternatives.extend(Self::new(folder)?.alternatives);
        }
        Some(glob)
    }

    /// Whether it covers a path, given by its components.
    pub(crate) fn matches(&self, path: &[&str]) -> bool {
        self.alternatives.iter().any(|pattern| covers(pattern, path, Extent::Whole))
    }

    /// Whether it covers a path or a folder above it.
    pub(crate) fn matches_or_above(&self, path: &[&str]) -> bool {
        self.alternatives.iter().any(|pattern| covers(pattern, path, Extent::Beginning))
    }
}

/// How much of a path a pattern has to cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of it.
    Whole,
    /// Its first component, or more of them.
    Beginning,
}

impl Component {
    fn new(text: &str) -> Option<Self> {
        if text == "**" {
            return Some(Self::Deep);
        }
        let tokens = tokens(text);
        if tokens.iter().all(|token| matches!(token, Token::Char(_))) {
            let plain = tokens.iter().filter_map(|token| match token {
                Token::Char(c) => Some(*c),
                Token::Star | Token::One | Token::Set { .. } => None,
            });
            // A bracket that is neither closed nor escaped.
            let open = text.contains('[') && !text.contains("\\[");
            return (!open).then(|| Self::Name(plain.collect()));
        }
        Some(Self::Marks(tokens))
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Deep => true,
            Self::Name(known) => known == name,
            Self::Marks(tokens) => fits(tokens, name),
        }
    }
}

fn covers(pattern: &[Component], path: &[&str], extent: Extent) -> bool {
    // Most patterns are `**/name`: only the names next to each other matter.
    if let [Component::Deep, rest @ ..] = pattern
        && !rest.is_empty()
        && !rest.contains(&Component::Deep)
    {
        let fits = |names: &[&str]| rest.iter().zip(names).all(|(part, name)| part.fits(name));
        return match extent {
            Extent::Whole => {
                path.len().checked_sub(rest.len()).is_some_and(|from| fits(&path[from..]))
            }
            Extent::Beginning => path.windows(rest.len()).any(fits),
        };
    }
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < path.len() {
        match pattern.get(p) {
            Some(Component::Deep) if p + 1 == pattern.len() => return true,
            Some(Component::Deep) => {
                back = Some((p, n));
                p += 1;
                continue;
            }
            Some(component) if component.fits(path[n]) => {
                p += 1;
                n += 1;
                continue;
            }
            None if extent == Extent::Beginning => return true,
            Some(_) | None => {}
        }
        let Some((deep, taken)) = back else { return false };
        back = Some((deep, taken + 1));
        p = deep + 1;
        n = taken + 1;
    }
    p == pattern.len()
}

/// Writes the alternatives of braces out. They may nest.
pub(crate) fn expand(text: &str) -> Option<Vec<String>> {
    let Some((before, choices, after)) = first_braces(text)? else {
        return Some(vec![text.to_owned()]);
    };
    let mut out = Vec::new();
    for choice in choices {
        out.extend(expand(&format!("{before}{choice}{after}"))?);
        if out.len() > MAX_ALTERNATIVES {
            return None;
        }
    }
    Some(out)
}

/// The text before the first brace, what stands between its commas, and the text after it.
type Braces<'t> = (&'t str, Vec<&'t str>, &'t str);

fn first_braces(text: &str) -> Option<Option<Braces<'_>>> {
    let mut open: Vec<usize> = Vec::new();
    let mut commas: Vec<usize> = Vec::new();
    let mut chars = text.char_indices();
    let mut bracket = false;
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => bracket = true,
            ']' => bracket = false,
            _ if bracket => {}
            '{' => open.push(at),
            ',' if open.len() == 1 => commas.push(at),
            '}' => {
                let first = open.pop()?;
                if open.is_empty() {
                    let mut choices = Vec::new();
                    let mut from = first + 1;
                    for comma in commas.into_iter().chain([at]) {
                        choices.push(&text[from..comma]);
                        from = comma + 1;
                    }
                    return Some(Some((&text[..first], choices, &text[at + 1..])));
                }
            }
            _ => {}
        }
    }
    open.is_empty().then_some(None)
}

/// One mark or character of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Char(char),
    Star,
    One,
    Set { negated: bool, ranges: Vec<(char, char)> },
}

/// The marks and characters of one component.
pub(crate) fn tokens(component: &str) -> Vec<Token> {
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

/// Whether a component covers a name.
pub(crate) fn fits(tokens: &[Token], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
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
    use globset::GlobBuilder;
    use proptest::prelude::*;

    use super::*;

    fn path() -> impl Strategy<Value = String> {
        let part = prop_oneof![Just("a"), Just("b"), Just("ab"), Just(".env"), Just("x.rs")];
        prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"))
    }

    fn pattern() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "a",
            "b",
            "*",
            "**",
            "?",
            "a*",
            "*b",
            "*.rs",
            "{a,b}",
            "{a,b*}c",
            "[ab]",
            "[!a]",
            "[a-z]*",
            ".env",
            ".e?v",
            "é",
            "{a/b,x.rs}",
            "\\a",
            "{,a}b",
            "ab",
        ]);
        prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn patterns_mean_what_globset_says(pattern in pattern(), path in path()) {
            let reference =
                GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(true).empty_alternates(true).build().unwrap();
            let own = Glob::new(&pattern).unwrap();
            let components: Vec<&str> = path.split('/').collect();
            prop_assert_eq!(own.matches(&components), reference.compile_matcher().is_match(&path), "{} {}", pattern, path);
        }

        #[test]
        fn a_path_is_covered_from_above_if_one_of_its_beginnings_is_covered(pattern in pattern(), path in path()) {
            let glob = Glob::new(&pattern).unwrap();
            let components: Vec<&str> = path.split('/').collect();
            let beginnings = (1..=components.len()).any(|end| glob.matches(&components[..end]));
            prop_assert_eq!(glob.matches_or_above(&components), beginnings, "{} {}", pattern, path);
        }
    }

    #[test]
    fn what_is_left_open_is_no_pattern() {
        for text in ["{a", "a}", "[a", "{a,{b}", "a/[b/c]"] {
            assert!(Glob::new(text).is_none(), "{text}");
        }
        assert!(Glob::new(&"{a,b}".repeat(9)).is_none());
        assert!(Glob::new("{a,{b,c}}/[{]").is_some());
    }
}
