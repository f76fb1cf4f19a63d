//! Answers to a model: bounded text, with the beginning and the end of what is too long.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject};
use serde_json::json;

use super::calls::{Ended, Entry};
use crate::tool::count_tokens;

/// Tokens of output in an answer. Clients cut or refuse longer ones.
const TOKENS: usize = 8_000;
/// Bytes that are looked at for that: a token of ordinary text has three to four.
const BYTES: usize = 32 << 10;
/// Bytes that one piece of output is taken from.
pub const PIECE: usize = BYTES;
/// What is said beside the output: marks and the last lines.
const BESIDE: usize = 300;

/// Text from bytes, without a character that is cut at the end.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes without the beginning of a character whose rest comes later.
pub fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// The longest beginning of a text that fits an answer. No token is shorter than a byte, so short texts are not counted.
pub fn fitting(text: &str) -> &str {
    let most = TOKENS - BESIDE;
    let mut text = &text[..text.floor_char_boundary(BYTES)];
    while text.len() > most {
        let tokens = count_tokens(text);
        if tokens <= most {
            break;
        }
        // What is left is at most this share of the text; a little less, so that few rounds are needed.
        let keep = text.len() * most / tokens * 19 / 20;
        text = &text[..text.floor_char_boundary(keep.max(most))];
    }
    text
}

/// An answer of text alone.
pub fn plain(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// An error of text alone.
pub fn error(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// With what programs want to know.
pub fn with_meta(mut result: CallToolResult, meta: JsonObject) -> CallToolResult {
    if !meta.is_empty() {
        result.meta = Some(MetaObject(meta));
    }
    result
}

/// Whether everything was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Nothing is left to read.
    Everything,
    /// More can be read by the handle.
    Part,
}

/// The answer of a call that is over.
pub fn of_ended(entry: &Entry, ended: &Ended) -> (CallToolResult, Said) {
    let (output, said) = head_and_tail(entry);
    if let Some(value) = ended.structured.clone() {
        if said == Said::Everything {
            // The whole value in both forms: clients show the model one of them.
            let mut result = plain(output);
            result.structured_content = Some(value);
            return (with_meta(result, ended.meta.clone()), said);
        }
        let text = format!("{output}\n\nThe result is too long for one answer.");
        return (with_meta(error(text), ended.meta.clone()), said);
    }
    let text = match (output.is_empty(), ended.words.is_empty()) {
        (_, true) => output,
        (true, false) => ended.words.clone(),
        (false, false) if output.ends_with('\n') => format!("{output}\n{}", ended.words),
        (false, false) => format!("{output}\n\n{}", ended.words),
    };
    let result = if ended.is_error { error(text) } else { plain(text) };
    (with_meta(result, ended.meta.clone()), said)
}

/// The output, or its two ends with a mark between them.
fn head_and_tail(entry: &Entry) -> (String, Said) {
    let first = entry.output.read(0, BYTES);
    if first.next == first.total {
        let all = text(&first.bytes);
        if fitting(&all).len() == all.len() {
            return (all, Said::Everything);
        }
    }
    let half = |most: usize| fitting_half(&text(whole_characters(&first.bytes)), most);
    let head = half(BYTES / 2);
    let tail = fitting_tail(&text(&entry.output.end(BYTES / 2).bytes));
    let left = first.total.saturating_sub((head.len() + tail.len()) as u64);
    let mark = format!(
        "\n[... {left} bytes left out; read_output {{\"id\": \"{}\", \"offset\": {}}} continues here ...]\n",
        entry.handle,
        head.len()
    );
    (format!("{head}{mark}{tail}"), Said::Part)
}

/// The beginning of a text, within half of an answer.
fn fitting_half(text: &str, most: usize) -> String {
    let text = &text[..text.floor_char_boundary(most)];
    let share = TOKENS / 2 - BESIDE;
    let mut text = text;
    while text.len() > share {
        let tokens = count_tokens(text);
        if tokens <= share {
            break;
        }
        let keep = text.len() * share / tokens * 19 / 20;
        text = &text[..text.floor_char_boundary(keep.max(share))];
    }
    // A line is not cut where it need not be.
    match text.rfind('\n') {
        Some(at) if at > text.len() / 2 => text[..=at].to_owned(),
        _ => text.to_owned(),
    }
}

/// The end of a text, within half of an answer.
fn fitting_tail(text: &str) -> String {
    let share = TOKENS / 2 - BESIDE;
    let mut text = text;
    while text.len() > share {
        let tokens = count_tokens(text);
        if tokens <= share {
            break;
        }
        let keep = (text.len() * share / tokens * 19 / 20).max(share);
        text = &text[text.ceil_char_boundary(text.len() - keep)..];
    }
    match text.find('\n') {
        Some(at) if at < text.len() / 2 => text[at + 1..].to_owned(),
        _ => text.to_owned(),
    }
}

/// The answer of a call that still runs.
pub fn of_running(entry: &Entry) -> CallToolResult {
    let (output, _) = head_and_tail(entry);
    let seconds = entry.begun.elapsed().as_secs();
    let handle = &entry.handle;
    let text = format!(
        "{output}\n\n[still running after {seconds} s; id {handle}]\nCall read_output {{\"id\": \"{handle}\", \"offset\": {}}} for more, or cancel {{\"id\": \"{handle}\"}} to end it.",
        entry.output.total()
    );
    let mut meta = JsonObject::new();
    meta.insert("runner/id".to_owned(), json!(handle));
    meta.insert("runner/status".to_owned(), json!("running"));
    with_meta(plain(text.trim_start()), meta)
}

/// What is said of a call whose task died.
pub fn broken() -> Ended {
    Ended::error("bug: the server failed while it ran this call; report it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_fits_whatever_the_text_is_of() {
        for text in [
            "word ".repeat(20_000),
            "\u{1f980}".repeat(20_000),
            "qXz9_".repeat(20_000),
            " ".repeat(100_000),
        ] {
            let part = fitting(&text);
            assert!(!part.is_empty() && count_tokens(part) <= TOKENS, "{}", part.len());
        }
        assert_eq!(fitting("short"), "short");
    }

    #[test]
    fn a_cut_character_waits_for_its_rest() {
        let text = "añ".as_bytes();
        assert_eq!(whole_characters(&text[..2]), b"a");
        assert_eq!(whole_characters(text), text);
        assert_eq!(whole_characters(b"a\xff"), b"a\xff");
    }
}
