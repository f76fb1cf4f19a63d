//! Patterns as they are written: what a reader of the file sees is what is compared.
//!
//! Duty: refuse a pattern that holds something which cannot be seen, such as the line end of a block scalar, a
//! blank at its end or a character without width. It would match nothing, and a deny would deny nothing.
//! Non-goals: what a pattern means; its own reader says that.

use crate::finding::{At, Report};
use crate::yaml::{Node, Style, Value};

/// Whether a terminal would obey this character, or a reader not see what it does.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    c.is_control() // C0, DEL, C1
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}'
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // fillers: letters without a shape
            | '\u{200b}'..='\u{200f}'   // zero width, direction marks
            | '\u{2028}'..='\u{202e}'   // separators, direction embedding and override
            | '\u{2060}'..='\u{206f}'   // invisible operators, direction isolates
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' // invisible musical controls
            | '\u{e0000}'..='\u{e0fff}') // tags, variation selectors: text inside text
}

/// Whether a character looks like a blank, or like nothing at all, and is not a blank.
fn is_unseen(c: char) -> bool {
    is_deceptive(c) || (c.is_whitespace() && c != ' ') || ('\u{fe00}'..='\u{fe0f}').contains(&c)
}

impl Report<'_> {
    /// A pattern, or the name of a variable: a text in which everything can be seen.
    pub fn pattern<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        let text = self.text(node)?;
        let block = matches!(node.value, Value::Scalar { style: Style::Block, .. });
        let why = if block {
            Some("a pattern is not written as a block, which keeps line ends".to_owned())
        } else {
            unseen(text)
        };
        self.seen(text, why, node.at).then_some(text)
    }

    /// A list of patterns with their places.
    pub fn patterns<'n>(&mut self, node: &'n Node) -> Option<Vec<(&'n str, At)>> {
        let items = self.list(node)?;
        Some(items.iter().filter_map(|item| Some((self.pattern(item)?, item.at))).collect())
    }

    /// A pattern or a list of patterns.
    pub fn one_or_more_patterns<'n>(&mut self, node: &'n Node) -> Option<Vec<(&'n str, At)>> {
        match &node.value {
            Value::Scalar { .. } => self.pattern(node).map(|text| vec![(text, node.at)]),
            Value::List(_) | Value::Map(_) => self.patterns(node),
        }
    }

    /// Whether everything in a key that names a file or program can be seen.
    pub fn is_seen(&mut self, key: &str, at: At) -> bool {
        self.seen(key, unseen(key), at)
    }

    fn seen(&mut self, text: &str, why: Option<String>, at: At) -> bool {
        let Some(why) = why else { return true };
        self.add("bad_pattern", at, format!("`{}`: {why}", text.escape_debug()), right_form(text));
        false
    }
}

/// What in a text cannot be seen.
fn unseen(text: &str) -> Option<String> {
    let odd = |c: char| match c {
        '\n' | '\r' => "a line end".to_owned(),
        '\t' => "a tab".to_owned(),
        c => format!("the invisible character U+{:04X}", u32::from(c)),
    };
    if let Some(c) = text.chars().find(|c| is_unseen(*c)) {
        return Some(format!("it holds {}", odd(c)));
    }
    (text.trim() != text).then(|| "it begins or ends with a blank".to_owned())
}

/// The same without what cannot be seen: one pattern, or one for each line.
fn right_form(text: &str) -> Option<String> {
    let clean = |line: &str| -> String {
        let spaced = line.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
        let kept: String = spaced.filter(|c| !is_unseen(*c)).collect();
        kept.trim().to_owned()
    };
    let lines: Vec<String> = text
        .lines()
        .map(clean)
        .filter(|line| !line.is_empty())
        .map(|line| format!("{line:?}"))
        .collect();
    match lines.as_slice() {
        [] => None,
        [one] => Some(format!("write {one}")),
        several => Some(format!("write [{}]", several.join(", "))),
    }
}
