//! `{a,b}` and `{1..3}`, as bash expands them: before anything else, on the raw word, in a few odd steps.
//!
//! The search for the closing brace is bash's own, step by step, because its answers on unbalanced
//! words (`{a}b,c}`, `{a,{b}`) follow from no rule. Four quirks are refused instead of copied:
//! sequences with quoted or nested text, sequences across cases, an escaped blank before `{}`, and a
//! lone `$`, which the expansion may bring before a name.

use super::MAX_BRACE_WORDS;
use super::units::{Mark, Units};

/// What all brace expansions of one line may use.
#[derive(Debug)]
pub(super) struct Budget {
    /// Words that may still be made.
    words: usize,
    /// Bytes that may still be looked at: nested searches are quadratic.
    steps: usize,
}

impl Budget {
    /// Enough for any line that a person would write.
    const STEPS: usize = 1 << 20;

    pub fn new() -> Self {
        Self { words: MAX_BRACE_WORDS, steps: Self::STEPS }
    }
}

/// Braces nested deeper than this are refused; it bounds the recursion.
const MAX_DEPTH: usize = 16;

/// The expansion is too large or not simple.
#[derive(Debug)]
pub(super) struct Refused;

/// Whether bash could expand anything in this word.
pub(super) fn is_possible(word: &Units) -> bool {
    word.has_bare(b"{")
        && (word.has_bare(b",")
            || (0..word.len()).any(|at| word.is_bare(at, b'.') && word.is_bare(at + 1, b'.')))
}

/// All words that this word expands to; one if there is nothing to expand.
pub(super) fn expand(word: Units, budget: &mut Budget) -> Result<Vec<Units>, Refused> {
    let words = expand_piece(&word, budget, 0)?;
    if words.len() > 1 && word.has_bare(b"$") {
        return Err(Refused);
    }
    if words.len() > 1 {
        budget.words = budget.words.checked_sub(words.len()).ok_or(Refused)?;
    }
    Ok(words)
}

fn expand_piece(word: &Units, budget: &mut Budget, depth: usize) -> Result<Vec<Units>, Refused> {
    if depth > MAX_DEPTH {
        return Err(Refused);
    }
    let mut done = vec![Units::default()];
    let mut from = 0;
    loop {
        let rest = word.piece(from, word.len());
        let Some((open, close)) = find_group(&rest, budget)? else {
            return product(&done, &[rest]);
        };
        let amble = rest.piece(open + 1, close);
        let group = match split(&amble, budget)? {
            pieces if pieces.len() > 1 => {
                let mut group = Vec::new();
                for piece in pieces {
                    group.extend(expand_piece(&piece, budget, depth + 1)?);
                    if group.len() > MAX_BRACE_WORDS {
                        return Err(Refused);
                    }
                }
                group
            }
            _ => match sequence(&amble)? {
                Some(items) => items,
                None => vec![rest.piece(open, close + 1)],
            },
        };
        done = product(&product(&done, &[rest.piece(0, open)])?, &group)?;
        from += close + 1;
    }
}

fn product(left: &[Units], right: &[Units]) -> Result<Vec<Units>, Refused> {
    if left.len() * right.len() > MAX_BRACE_WORDS {
        return Err(Refused);
    }
    let joined = left.iter().flat_map(|first| {
        right.iter().map(|second| {
            let mut word = first.clone();
            word.append(second, 0, second.len());
            word
        })
    });
    Ok(joined.collect())
}

/// The first `{` that has a `}` for it, and that `}`.
fn find_group(word: &Units, budget: &mut Budget) -> Result<Option<(usize, usize)>, Refused> {
    let mut from = 0;
    while let Some(open) = search(word, from, b'{', budget)? {
        if let Some(close) = search(word, open + 1, b'}', budget)? {
            return Ok(Some((open, close)));
        }
        from = open + 1;
    }
    Ok(None)
}

/// The pieces between the commas of a group.
fn split(amble: &Units, budget: &mut Budget) -> Result<Vec<Units>, Refused> {
    let mut pieces = Vec::new();
    let mut from = 0;
    while let Some(comma) = search(amble, from, b',', budget)? {
        pieces.push(amble.piece(from, comma));
        from = comma + 1;
    }
    pieces.push(amble.piece(from, amble.len()));
    Ok(pieces)
}

/// The next `wanted` outside inner braces. A `}` counts only after a `,` or `..`.
fn search(
    word: &Units,
    from: usize,
    wanted: u8,
    budget: &mut Budget,
) -> Result<Option<usize>, Refused> {
    let mut level = 0_usize;
    let mut separated = wanted != b'}';
    for at in from..word.len() {
        budget.steps = budget.steps.checked_sub(1).ok_or(Refused)?;
        if word.marks[at] != Mark::Bare {
            continue;
        }
        let byte = word.bytes[at];
        if byte == wanted && level == 0 && separated {
            if byte == b'{' && is_ignored(word, at)? {
                continue;
            }
            return Ok(Some(at));
        }
        match byte {
            b'{' => level += 1,
            b'}' => level = level.saturating_sub(1),
            b',' if level == 0 => separated = true,
            b'.' if level == 0 && word.is_bare(at + 1, b'.') && !word.is_bare(at + 2, b'}') => {
                separated = true;
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Bash passes over `{}` at the start of a word.
fn is_ignored(word: &Units, at: usize) -> Result<bool, Refused> {
    if at > 0 && matches!(word.bytes[at - 1], b' ' | b'\t' | b'\n') && word.is_bare(at + 1, b'}') {
        return Err(Refused);
    }
    Ok(at == 0 && (word.len() == 1 || word.is_bare(1, b'}')))
}

/// The items of `x..y` or `x..y..step`; none if bash leaves the braces as they are.
fn sequence(amble: &Units) -> Result<Option<Vec<Units>>, Refused> {
    let all_bare = amble.marks.iter().all(|mark| *mark == Mark::Bare);
    // Bash passes over white space before a number, even a carriage return.
    let blank = |b: &u8| matches!(b, 0x0B..=0x0D);
    if !all_bare || amble.has_bare(b"{},") || amble.bytes.iter().any(blank) {
        return Err(Refused);
    }
    let Ok(text) = std::str::from_utf8(&amble.bytes) else {
        return Ok(None);
    };
    let Some((first, rest)) = text.split_once("..") else {
        return Ok(None);
    };
    let (last, step) = match rest.split_once("..") {
        Some((last, step)) => (last, Some(step)),
        None => (rest, None),
    };
    let numeric = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-'))
    };
    let step = match step {
        None => 1,
        Some(step) if numeric(step) => number(step)?,
        Some(_) => return Ok(None),
    };
    let items: Vec<String> = match (first.as_bytes(), last.as_bytes()) {
        ([a], [b]) if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() => {
            if a.is_ascii_uppercase() != b.is_ascii_uppercase() {
                return Err(Refused);
            }
            let letters = steps(i64::from(*a), i64::from(*b), step)?;
            letters
                .into_iter()
                .filter_map(|n| u8::try_from(n).ok())
                .map(|b| char::from(b).to_string())
                .collect()
        }
        _ if numeric(first) && numeric(last) => {
            let padded = |text: &str| {
                let digits = text.strip_prefix('-').unwrap_or(text);
                digits.len() > 1 && digits.starts_with('0')
            };
            let width = if padded(first) || padded(last) { first.len().max(last.len()) } else { 0 };
            let numbers = steps(number(first)?, number(last)?, step)?;
            numbers.into_iter().map(|n| format!("{n:0width$}")).collect()
        }
        _ => return Ok(None),
    };
    let as_units = |item: String| {
        let mut units = Units::default();
        units.extend(item.as_bytes(), Mark::Bare);
        units
    };
    Ok(Some(items.into_iter().map(as_units).collect()))
}

/// A number of at most nine digits, without `+`.
fn number(text: &str) -> Result<i64, Refused> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Refused);
    }
    text.parse().map_err(|_| Refused)
}

/// From first to last; the sign of the step never matters, and 0 is 1.
fn steps(first: i64, last: i64, step: i64) -> Result<Vec<i64>, Refused> {
    let step = step.abs().max(1);
    let count = (last - first).abs() / step + 1;
    if count > MAX_BRACE_WORDS as i64 {
        return Err(Refused);
    }
    let signed = if last < first { -step } else { step };
    Ok((0..count).map(|n| first + n * signed).collect())
}
