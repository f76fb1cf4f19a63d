//! Patterns of `file.glob`: `*`, `?` and `[…]` stay inside a name, `**` crosses, `{a,b}` are alternatives.
//!
//! Matched name by name while a tree is walked, so that it is known of every folder whether anything
//! below it can match. Bounded: alternatives, length, and no name is compared with more than its pattern.

/// Most alternatives that braces may make.
const MAX_ALTERNATIVES: usize = 128;
/// Longest pattern.
const MAX_LENGTH: usize = 4096;

/// A pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    alternatives: Vec<Vec<Part>>,
    dot: bool,
}

/// What a path means to a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fit {
    /// It is covered.
    pub matches: bool,
    /// Something below it can be.
    pub below: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Deep,
    Name(Vec<Mark>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    Char(char),
    Star,
    One,
    Set { negated: bool, ranges: Vec<(char, char)> },
}

/// Why a text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadPattern {
    Empty,
    TooLong,
    Absolute,
    Upwards,
    Unclosed,
    TooMany,
}

impl BadPattern {
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Empty => "an empty pattern matches nothing",
            Self::TooLong => "the pattern is longer than 4096 bytes",
            Self::Absolute => "a pattern is relative to `cwd`",
            Self::Upwards => "`..` in a pattern would lead out of its folder",
            Self::Unclosed => "a bracket or brace is not closed",
            Self::TooMany => "the braces make more than 128 alternatives",
        }
    }
}

impl Pattern {
    /// Reads a pattern; with `dot`, marks cover names that start with a dot.
    pub(super) fn new(text: &str, dot: bool) -> Result<Self, BadPattern> {
        if text.len() > MAX_LENGTH {
            return Err(BadPattern::TooLong);
        }
        let mut alternatives = Vec::new();
        for text in expand(text)? {
            if text.starts_with('/') {
                return Err(BadPattern::Absolute);
            }
            let parts = text
                .split('/')
                .filter(|part| !part.is_empty() && *part != ".")
                .map(Part::new)
                .collect::<Result<Vec<_>, _>>()?;
            if parts.is_empty() {
                return Err(BadPattern::Empty);
            }
            alternatives.push(parts);
        }
        Ok(Self { alternatives, dot })
    }

    /// What a path, given by its names, means to it.
    pub(super) fn fit<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> Fit {
        let mut fit = Fit { matches: false, below: false };
        for parts in &self.alternatives {
            let one = self.fit_one(parts, names.clone());
            fit.matches |= one.matches;
            fit.below |= one.below;
        }
        fit
    }

    fn fit_one<'n>(&self, parts: &[Part], names: impl Iterator<Item = &'n str>) -> Fit {
        // The positions in the pattern at which the rest of the path can begin.
        let mut at = vec![false; parts.len() + 1];
        at[0] = true;
        skip_deep(parts, &mut at);
        for name in names {
            let mut next = vec![false; parts.len() + 1];
            for (position, part) in parts.iter().enumerate().filter(|(position, _)| at[*position]) {
                match part {
                    Part::Deep if self.dot || !name.starts_with('.') => {
                        next[position] = true;
                        // At the end it stands for at least one name.
                        next[position + 1] |= position + 1 == parts.len();
                    }
                    Part::Name(marks) if self.covers(marks, name) => next[position + 1] = true,
                    Part::Deep | Part::Name(_) => {}
                }
            }
            skip_deep(parts, &mut next);
            at = next;
        }
        Fit { matches: at[parts.len()], below: at[..parts.len()].contains(&true) }
    }

    fn covers(&self, marks: &[Mark], name: &str) -> bool {
        let spelled = matches!(marks.first(), Some(Mark::Char('.')));
        (self.dot || spelled || !name.starts_with('.')) && fits(marks, name)
    }
}

/// `**` before something else also stands for nothing.
fn skip_deep(parts: &[Part], at: &mut [bool]) {
    for position in 0..parts.len().saturating_sub(1) {
        if at[position] && parts[position] == Part::Deep {
            at[position + 1] = true;
        }
    }
}

impl Part {
    fn new(text: &str) -> Result<Self, BadPattern> {
        match text {
            "**" => Ok(Self::Deep),
            ".." => Err(BadPattern::Upwards),
            text => marks(text).map(Self::Name),
        }
    }
}

fn marks(text: &str) -> Result<Vec<Mark>, BadPattern> {
    let mut chars = text.chars().peekable();
    let mut marks = Vec::new();
    while let Some(c) = chars.next() {
        marks.push(match c {
            '*' => Mark::Star,
            '?' => Mark::One,
            '\\' => Mark::Char(chars.next().ok_or(BadPattern::Unclosed)?),
            '[' => {
                let negated = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
                let mut ranges = Vec::new();
                loop {
                    let first = match chars.next().ok_or(BadPattern::Unclosed)? {
                        ']' if !ranges.is_empty() => break,
                        '\\' => chars.next().ok_or(BadPattern::Unclosed)?,
                        c => c,
                    };
                    let mut ahead = chars.clone();
                    match (ahead.next(), ahead.next()) {
                        (Some('-'), Some(last)) if last != ']' => {
                            chars = ahead;
                            ranges.push((first, last));
                        }
                        _ => ranges.push((first, first)),
                    }
                }
                Mark::Set { negated, ranges }
            }
            c => Mark::Char(c),
        });
    }
    Ok(marks)
}

fn fits(marks: &[Mark], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut m, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        let fits = match marks.get(m) {
            Some(Mark::Star) => {
                back = Some((m, n));
                m += 1;
                continue;
            }
            Some(Mark::Char(c)) => *c == name[n],
            Some(Mark::One) => true,
            Some(Mark::Set { negated, ranges }) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&name[n])) != *negated
            }
            None => false,
        };
        if fits {
            m += 1;
            n += 1;
        } else if let Some((star, taken)) = back {
            back = Some((star, taken + 1));
            m = star + 1;
            n = taken + 1;
        } else {
            return false;
        }
    }
    marks[m..].iter().all(|mark| *mark == Mark::Star)
}

/// Writes the alternatives of braces out. They may nest.
fn expand(text: &str) -> Result<Vec<String>, BadPattern> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        match first_braces(&text)? {
            None => done.push(text),
            Some((before, choices, after)) => {
                // In reverse, so that the first choice is taken first.
                open.extend(choices.iter().rev().map(|choice| format!("{before}{choice}{after}")));
            }
        }
        if done.len() + open.len() > MAX_ALTERNATIVES {
            return Err(BadPattern::TooMany);
        }
    }
    Ok(done)
}

/// The text before the first brace, what stands between its commas, and the text after it.
type Braces<'t> = (&'t str, Vec<&'t str>, &'t str);

fn first_braces(text: &str) -> Result<Option<Braces<'_>>, BadPattern> {
    let mut start = None;
    let mut depth = 0_usize;
    let mut cuts: Vec<usize> = Vec::new();
    let mut bracket = false;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => bracket = true,
            ']' => bracket = false,
            _ if bracket => {}
            '{' => {
                start.get_or_insert(at);
                depth += 1;
            }
            ',' if depth == 1 => cuts.push(at),
            '}' => {
                depth = depth.checked_sub(1).ok_or(BadPattern::Unclosed)?;
                if let (0, Some(start)) = (depth, start) {
                    let mut choices = Vec::new();
                    let mut from = start + 1;
                    for cut in cuts.into_iter().chain([at]) {
                        choices.push(&text[from..cut]);
                        from = cut + 1;
                    }
                    return Ok(Some((&text[..start], choices, &text[at + 1..])));
                }
            }
            _ => {}
        }
    }
    if depth == 0 { Ok(None) } else { Err(BadPattern::Unclosed) }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
