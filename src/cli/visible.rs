//! Foreign text made safe to show on a terminal.
//!
//! Names, reasons, command lines and output come from the adversary. A terminal obeys control
//! characters, and a reader is fooled by characters that reorder, hide or join text. Both are shown
//! as escapes instead. JSON has its own escapes for them (`text::harmless_json`).

use std::borrow::Cow;

pub(super) use crate::text::{is_deceptive, push_escaped};

/// `text` on one line: line ends and tabs are escaped too.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// `text` that may have several lines: line feeds and tabs stay.
#[must_use]
pub fn visible_block(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// Indentation of further lines of foreign text. runner's own lines start further left: `error:`, `  hint:`.
const INSIDE: &str = "    ";

/// The same, after words of ours on one line: no further line starts where one of ours could.
#[must_use]
pub fn visible_inside(text: &str) -> String {
    let shown = visible_block(text);
    let mut lines = shown.split('\n');
    let mut inside = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        inside.push('\n');
        inside.push_str(&moved_in(line));
    }
    inside
}

/// A line of foreign text that cannot be taken for one of ours.
fn moved_in(line: &str) -> Cow<'_, str> {
    if line.is_empty() || line.starts_with(INSIDE) {
        return Cow::Borrowed(line);
    }
    Cow::Owned(format!("{INSIDE}{}", line.trim_start_matches(' ')))
}

fn escape(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let hidden = |c: char| is_deceptive(c) && !kept(c);
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hidden(c) { push_escaped(&mut shown, c) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed_and_unchanged() {
        for text in ["", "git log --oneline", "größe 大きさ 🦀 a\\b", "..test te..st %2e%2e"]
        {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(visible("a\x1b[2Jb"), "a\\x1b[2Jb");
        assert_eq!(visible("ok\rdenied\n\t\x07\x7f\u{9b}"), "ok\\rdenied\\n\\t\\x07\\x7f\\x9b");
    }

    #[test]
    fn what_a_reader_cannot_see_is_escaped() {
        assert_eq!(visible("a\u{202e}txt.exe"), "a\\u{202e}txt.exe");
        assert_eq!(
            visible("\u{e0041}\u{200b}\u{feff}\u{2066}"),
            "\\u{e0041}\\u{200b}\\u{feff}\\u{2066}"
        );
    }

    #[test]
    fn a_block_keeps_lines_and_nothing_else() {
        assert_eq!(visible_block("a\n\tb\r\n\x1b"), "a\n\tb\\r\n\\x1b");
    }

    #[test]
    fn no_further_line_starts_where_one_of_ours_could() {
        assert_eq!(visible_inside("bad\r\nfake: line"), "bad\\r\n    fake: line");
        assert_eq!(visible_inside("a\n  hint: b\n\thint: c"), "a\n    hint: b\n    \thint: c");
        assert_eq!(visible_inside("a\n    at b\n      at c"), "a\n    at b\n      at c");
    }

    #[test]
    fn nothing_deceptive_survives() {
        let all: String = (0..=0x10_ffff).filter_map(char::from_u32).collect();
        assert!(!visible(&all).contains(is_deceptive));
    }
}
