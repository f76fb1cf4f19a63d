//! A strict reading of YAML: text to a tree in which every node knows its place.
//!
//! Duty: the subset that policies and catalog entries are written in. One document; mappings with
//! unique plain keys; no anchors, aliases, merge keys or tags, so that what a reviewer sees is what
//! is loaded and nothing can grow by reference. Trust boundary: the text may be hostile; size, depth
//! and count are bounded before memory is taken.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::finding::{At, Report, did_you_mean};

/// Largest file that is read. The shipped policies are below 20 KiB.
pub const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting; the formats need six levels.
const MAX_DEPTH: usize = 24;
/// Most keys of one mapping: each new one is compared with those before it.
const MAX_KEYS: usize = 4_096;
/// Most nodes in one file.
const MAX_NODES: usize = 100_000;

/// One node and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where it stands.
    pub at: At,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A scalar.
    Scalar {
        /// The text.
        text: String,
        /// How it is written.
        style: Style,
    },
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<Entry>),
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In quotes.
    Quoted,
    /// As a block after `|` or `>`.
    Block,
}

/// One key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub at: At,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// What kind of node it is, for messages.
    fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar { text, style: Style::Plain } if text.is_empty() => "nothing",
            Value::Scalar { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

/// A container that is still open while events arrive.
enum Open {
    List(At, Vec<Node>),
    Map(At, Vec<Entry>, Option<(String, At, Kept)>),
}

/// Whether a key is one that the tree can carry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// Reads one document. The report says what is wrong; there may be a tree all the same, to find the rest.
pub fn read(text: &str, report: &mut Report<'_>) -> Option<Node> {
    let start = At { line: 1, column: 1, width: 1 };
    if text.len() > MAX_BYTES {
        report.add(
            "too_large",
            start,
            format!("the file has {} bytes; at most {MAX_BYTES} are read", text.len()),
            "split it with `extends`".to_owned(),
        );
        return None;
    }
    let mut stack: Vec<Open> = Vec::new();
    let mut root: Option<Node> = None;
    let mut nodes = 0usize;
    let mut documents = 0usize;
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(pair) => pair,
            Err(error) => {
                let mark = error.marker();
                report.add(
                    "bad_yaml",
                    place(mark.line(), mark.col(), 1),
                    format!("not valid YAML: {}", error.info()),
                    None,
                );
                return None;
            }
        };
        let at = place(span.start.line(), span.start.col(), width(span));
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(anchor, tag)
            | Event::MappingStart(anchor, tag) => (*anchor, tag.is_some()),
            _ => (0, false),
        };
        if anchor != 0 {
            report.add(
                "anchor",
                at,
                "anchors are not part of this format",
                "write the value out where it is needed".to_owned(),
            );
            return None;
        }
        if tag {
            report.add(
                "tag",
                at,
                "tags are not part of this format",
                "remove the `!tag`".to_owned(),
            );
        }
        let done = match event {
            Event::Alias(_) => {
                report.add(
                    "alias",
                    at,
                    "aliases are not part of this format",
                    "write the value out where it is needed".to_owned(),
                );
                return None;
            }
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    report.add(
                        "second_document",
                        at,
                        "a second document begins here; a file holds one",
                        "remove the `---`, or use a file of its own".to_owned(),
                    );
                    return None;
                }
                continue;
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => continue,
            Event::Scalar(text, style, _, _) => Node {
                at,
                value: Value::Scalar {
                    text: text.into_owned(),
                    style: match style {
                        ScalarStyle::Plain => Style::Plain,
                        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                    },
                },
            },
            Event::SequenceStart(..) => {
                stack.push(Open::List(at, Vec::new()));
                if too_deep(&stack, at, report) {
                    return None;
                }
                continue;
            }
            Event::MappingStart(..) => {
                stack.push(Open::Map(at, Vec::new(), None));
                if too_deep(&stack, at, report) {
                    return None;
                }
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match stack.pop() {
                Some(Open::List(at, items)) => Node { at, value: Value::List(items) },
                Some(Open::Map(at, entries, _)) => Node { at, value: Value::Map(entries) },
                None => continue,
            },
        };
        nodes += 1;
        if nodes > MAX_NODES {
            report.add(
                "too_large",
                at,
                format!("more than {MAX_NODES} values"),
                "split it with `extends`".to_owned(),
            );
            return None;
        }
        match stack.last_mut() {
            None => root = Some(done),
            Some(Open::List(_, items)) => items.push(done),
            Some(Open::Map(_, entries, pending)) => match pending.take() {
                Some((key, at, Kept::Yes)) => entries.push(Entry { key, at, value: done }),
                Some((_, _, Kept::No)) => {}
                None if entries.len() >= MAX_KEYS => {
                    report.add(
                        "too_large",
                        at,
                        format!("more than {MAX_KEYS} keys in one mapping"),
                        None,
                    );
                    return None;
                }
                None => *pending = Some(key(done, entries, report)),
            },
        }
    }
    match root {
        Some(Node { value: Value::Scalar { text, style: Style::Plain }, .. })
            if text.is_empty() =>
        {
            report.add("empty", start, "the file is empty", None);
            None
        }
        Some(root) => Some(root),
        None => {
            report.add("empty", start, "the file is empty", None);
            None
        }
    }
}

fn too_deep(stack: &[Open], at: At, report: &mut Report<'_>) -> bool {
    let deep = stack.len() > MAX_DEPTH;
    if deep {
        report.add("too_deep", at, format!("nested deeper than {MAX_DEPTH} levels"), None);
    }
    deep
}

/// A key as text. What duplicate and merge keys hold is left out.
fn key(node: Node, entries: &[Entry], report: &mut Report<'_>) -> (String, At, Kept) {
    let at = node.at;
    let Value::Scalar { text, style } = node.value else {
        report.add("bad_key", at, "a key must be a word", None);
        return (String::new(), at, Kept::No);
    };
    if style == Style::Plain && text == "<<" {
        report.add(
            "merge_key",
            at,
            "merge keys are not part of this format",
            "write the keys out".to_owned(),
        );
        return (text, at, Kept::No);
    }
    if let Some(first) = entries.iter().find(|entry| entry.key == text) {
        report.add(
            "duplicate_key",
            at,
            format!("`{text}` stands twice in this mapping"),
            format!("the first is on line {}; keep one", first.at.line),
        );
        return (text, at, Kept::No);
    }
    (text, at, Kept::Yes)
}

fn place(line: usize, column: usize, width: usize) -> At {
    let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    At { line: small(line), column: small(column.saturating_add(1)), width: small(width.max(1)) }
}

fn width(span: Span) -> usize {
    if span.start.line() == span.end.line() {
        span.end.col().saturating_sub(span.start.col())
    } else {
        1
    }
}

/// Typed access with findings: each method reports what is wrong and returns `None`.
impl Report<'_> {
    fn wrong(&mut self, node: &Node, expected: &str) {
        self.add(
            "wrong_type",
            node.at,
            format!("expected {expected}, found {}", node.kind()),
            None,
        );
    }

    /// A text. A plain scalar that some YAML reader takes for something else must be quoted.
    pub fn text<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        match &node.value {
            Value::Scalar { text, style } => {
                if *style == Style::Plain && is_ambiguous(text) {
                    let shown =
                        if text.is_empty() { "nothing".to_owned() } else { format!("`{text}`") };
                    self.add(
                        "ambiguous_scalar",
                        node.at,
                        format!("{shown} is not a text to every YAML reader"),
                        format!("write \"{text}\""),
                    );
                    return None;
                }
                Some(text)
            }
            _ => {
                self.wrong(node, "a text");
                None
            }
        }
    }

    /// A figure with its unit, or a count: a scalar whose quotes do not matter.
    pub fn figure<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        match &node.value {
            Value::Scalar { text, .. } => Some(text),
            _ => {
                self.wrong(node, "a figure");
                None
            }
        }
    }

    /// `true` or `false`, and no other spelling.
    pub fn flag(&mut self, node: &Node) -> Option<bool> {
        match &node.value {
            Value::Scalar { text, style: Style::Plain } if text == "true" => Some(true),
            Value::Scalar { text, style: Style::Plain } if text == "false" => Some(false),
            _ => {
                self.add("wrong_type", node.at, "expected true or false", None);
                None
            }
        }
    }

    /// A list.
    pub fn list<'n>(&mut self, node: &'n Node) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(items) => Some(items),
            _ => {
                self.wrong(node, "a list");
                None
            }
        }
    }

    /// A list of texts with their places.
    pub fn texts<'n>(&mut self, node: &'n Node) -> Option<Vec<(&'n str, At)>> {
        let items = self.list(node)?;
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            if let Some(text) = self.text(item) {
                texts.push((text, item.at));
            }
        }
        Some(texts)
    }

    /// A text or a list of texts.
    pub fn one_or_more<'n>(&mut self, node: &'n Node) -> Option<Vec<(&'n str, At)>> {
        match &node.value {
            Value::Scalar { .. } => self.text(node).map(|text| vec![(text, node.at)]),
            _ => self.texts(node),
        }
    }

    /// A mapping with any keys.
    pub fn map<'n>(&mut self, node: &'n Node) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            _ => {
                self.wrong(node, "a mapping");
                None
            }
        }
    }

    /// A mapping with known keys only.
    pub fn keys<'n>(&mut self, node: &'n Node, known: &[&'static str]) -> Option<&'n [Entry]> {
        let entries = self.map(node)?;
        for entry in entries {
            if !known.contains(&entry.key.as_str()) {
                self.unknown_key(entry, known);
            }
        }
        Some(entries)
    }

    /// Reports a key that nobody knows.
    pub fn unknown_key(&mut self, entry: &Entry, known: &[&'static str]) {
        let help = match did_you_mean(&entry.key, known.iter().copied()) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.add("unknown_key", entry.at, format!("unknown key `{}`", entry.key), help);
    }

    /// Reports a value that is none of the known words.
    pub fn unknown_word(&mut self, what: &str, word: &str, at: At, known: &[&str]) {
        let help = match did_you_mean(word, known.iter().copied()) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("one of: {}", known.join(", ")),
        };
        self.add("unknown_value", at, format!("unknown {what} `{word}`"), help);
    }
}

/// Whether a plain scalar means something other than text in YAML 1.1 or 1.2.
fn is_ambiguous(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    matches!(
        lower.as_str(),
        "" | "~"
            | "null"
            | "y"
            | "n"
            | "yes"
            | "no"
            | "on"
            | "off"
            | "true"
            | "false"
            | ".nan"
            | ".inf"
            | "-.inf"
            | "+.inf"
    ) || text.parse::<f64>().is_ok()
        || lower.starts_with("0x")
        || lower.starts_with("0o")
        || is_sexagesimal(text)
}

/// `12:30:00` was a number once.
fn is_sexagesimal(text: &str) -> bool {
    text.contains(':')
        && text.split(':').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<&'static str> {
        let mut report = Report::new("t.yml", text);
        let _ = read(text, &mut report);
        report.finish().iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn a_tree_knows_its_places() {
        let text = "a: [x, 'y z']\nb:\n  c: d\n";
        let mut report = Report::new("t.yml", text);
        let root = read(text, &mut report).unwrap();
        let entries = report.map(&root).unwrap();
        assert_eq!(entries[1].key, "b");
        let inner = report.map(&entries[1].value).unwrap();
        assert_eq!(inner[0].value.at, At { line: 3, column: 6, width: 1 });
        assert_eq!(report.texts(&entries[0].value).unwrap()[1].0, "y z");
    }

    #[test]
    fn tricks_are_findings() {
        assert_eq!(codes("a: 1\na: 2"), ["duplicate_key"]);
        assert_eq!(codes("<<: {a: 1}"), ["merge_key"]);
        assert_eq!(codes("a: &x 1"), ["anchor"]);
        assert_eq!(codes("a: *x"), ["bad_yaml"]);
        assert_eq!(codes("a: !!str x"), ["tag"]);
        assert_eq!(codes("---\na: 1\n---\nb: 2"), ["second_document"]);
        assert_eq!(codes(""), ["empty"]);
        assert_eq!(codes("# only a comment\n"), ["empty"]);
        assert_eq!(codes("? [a]\n: b"), ["bad_key"]);
        assert_eq!(codes(&"[".repeat(40)), ["too_deep"]);
        assert_eq!(codes(&"[".repeat(100_000)), ["bad_yaml"]);
        assert_eq!(codes(&" ".repeat(MAX_BYTES + 1)), ["too_large"]);
    }

    #[test]
    fn words_that_are_not_texts_to_everyone_must_be_quoted() {
        for word in ["no", "On", "~", "null", "1", "1.5", "0x10", "12:30", ""] {
            let text = format!("a: {word}");
            let mut report = Report::new("t.yml", &text);
            let root = read(&text, &mut report).unwrap();
            let entries = report.map(&root).unwrap();
            assert!(report.text(&entries[0].value).is_none(), "{word}");
        }
    }
}
