//! JSON with comments, edited in place: what is not changed keeps every byte.
//!
//! Duty: find the spans of values in a text, and insert members and items at them. Comments and trailing commas are read
//! as the agents read them. A key that stands twice is refused: two readers would see two values. Non-goals: reading the
//! values for anything but finding where to edit.

use serde_json::Value;

use crate::json::MAX_DEPTH;

/// Where a text is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Byte.
    pub at: usize,
    /// Why.
    pub why: String,
}

/// A value, with where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Members in order: key, where the key begins, value.
    Object(Vec<(String, usize, Node)>),
    /// Items in order.
    Array(Vec<Node>),
    /// A text.
    Text(String),
    /// A number, a boolean or null.
    Other,
}

/// Reads a text.
///
/// # Errors
/// It is not JSON, even with comments.
pub fn parse(text: &str) -> Result<Node, Wrong> {
    let mut reader = Reader { text, at: 0 };
    reader.blank()?;
    let node = reader.value(0)?;
    reader.blank()?;
    if reader.at < text.len() {
        Err(reader.wrong("something stands behind the value"))
    } else {
        Ok(node)
    }
}

/// Line and column of a byte, both from 1.
#[must_use]
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    (line, text.get(begin..at.min(text.len())).map_or(1, |part| part.chars().count() + 1))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, why: &str) -> Wrong {
        Wrong { at: self.at, why: why.to_owned() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// White space and comments.
    fn blank(&mut self) -> Result<(), Wrong> {
        loop {
            let rest = &self.text[self.at..];
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'/') if rest.starts_with("//") => {
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                Some(b'/') if rest.starts_with("/*") => {
                    let end = rest.find("*/").ok_or_else(|| self.wrong("a comment has no end"))?;
                    self.at += end + 2;
                }
                _ if self.at == 0 && rest.starts_with('\u{feff}') => self.at += 3,
                _ => return Ok(()),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Wrong> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("it is nested too deep"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.members(depth)?),
            Some(b'[') => Kind::Array(self.items(depth)?),
            Some(b'"') => Kind::Text(self.string()?),
            Some(_) => {
                let rest = &self.text[start..];
                let end = rest
                    .find(|letter: char| {
                        !(letter.is_ascii_alphanumeric() || "+-.".contains(letter))
                    })
                    .unwrap_or(rest.len());
                if crate::json::read(&rest[..end]).is_err() {
                    return Err(self.wrong("this is no value"));
                }
                self.at += end;
                Kind::Other
            }
            None => return Err(self.wrong("a value is missing")),
        };
        Ok(Node { start, end: self.at, kind })
    }

    fn string(&mut self) -> Result<String, Wrong> {
        let rest = &self.text.as_bytes()[self.at..];
        let mut escaped = false;
        for (length, byte) in rest.iter().enumerate().skip(1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    let text = &self.text[self.at..=self.at + length];
                    let Ok(Value::String(value)) = crate::json::read(text) else {
                        return Err(self.wrong("this is no JSON string"));
                    };
                    self.at += length + 1;
                    return Ok(value);
                }
                _ => {}
            }
        }
        Err(self.wrong("a string has no end"))
    }

    fn members(&mut self, depth: usize) -> Result<Vec<(String, usize, Node)>, Wrong> {
        let mut members: Vec<(String, usize, Node)> = Vec::new();
        self.at += 1;
        loop {
            self.blank()?;
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(members);
                }
                Some(b'"') => {}
                _ => return Err(self.wrong("a key in double quotes or `}` should stand here")),
            }
            let at = self.at;
            let key = self.string()?;
            if members.iter().any(|(known, ..)| *known == key) {
                return Err(Wrong { at, why: format!("the key {key:?} stands twice") });
            }
            self.blank()?;
            if self.peek() != Some(b':') {
                return Err(self.wrong("`:` should stand here"));
            }
            self.at += 1;
            self.blank()?;
            let value = self.value(depth + 1)?;
            members.push((key, at, value));
            self.separator(b'}')?;
        }
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Node>, Wrong> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.blank()?;
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(items);
            }
            items.push(self.value(depth + 1)?);
            self.separator(b']')?;
        }
    }

    /// A comma, or the end that follows.
    fn separator(&mut self, end: u8) -> Result<(), Wrong> {
        self.blank()?;
        match self.peek() {
            Some(b',') => self.at += 1,
            Some(byte) if byte == end => {}
            _ => return Err(self.wrong("`,` or the end should stand here")),
        }
        Ok(())
    }
}

impl Node {
    /// A member of an object.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<&Node> {
        let Kind::Object(members) = &self.kind else { return None };
        members.iter().find(|(known, ..)| known == key).map(|(_, _, value)| value)
    }

    /// The items of an array.
    #[must_use]
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::Array(items) => items,
            _ => &[],
        }
    }

    /// Whether one of the texts in it holds this.
    #[must_use]
    pub fn mentions(&self, what: &str) -> bool {
        match &self.kind {
            Kind::Text(text) => text.contains(what),
            Kind::Array(items) => items.iter().any(|item| item.mentions(what)),
            Kind::Object(members) => members.iter().any(|(_, _, value)| value.mentions(what)),
            Kind::Other => false,
        }
    }
}

/// Puts a value at the end of the array that a path of keys leads to, and makes what is missing on the way.
///
/// # Errors
/// The text is not understood, or something else than an object or an array stands on the way.
pub fn append(text: &str, path: &[&str], value: &Value) -> Result<String, Wrong> {
    let root = parse(text)?;
    let mut node = &root;
    for (at, key) in path.iter().enumerate() {
        let Kind::Object(members) = &node.kind else {
            return Err(Wrong {
                at: node.start,
                why: format!("an object with {key:?} should stand here"),
            });
        };
        match members.iter().find(|(known, ..)| known == key) {
            Some((_, _, value)) => node = value,
            None => {
                // The rest of the way is made at once.
                let array = Value::Array(vec![value.clone()]);
                let made = path[at + 1..].iter().rev().fold(array, |inner, key| {
                    Value::Object([((*key).to_owned(), inner)].into_iter().collect())
                });
                let depth = at + 1;
                let written = format!("{}: {}", Value::from(*key), pretty(&made, depth));
                let last = members.last().map(|(_, _, value)| value.end);
                return Ok(insert(text, node, last, &written, depth));
            }
        }
    }
    match &node.kind {
        Kind::Array(items) => {
            let depth = path.len() + 1;
            let last = items.last().map(|item| item.end);
            Ok(insert(text, node, last, &pretty(value, depth), depth))
        }
        _ => Err(Wrong { at: node.start, why: "an array should stand here".to_owned() }),
    }
}

/// Writes a member of the object that a path of keys leads to: a new one, or in place of what stands there.
///
/// # Errors
/// As [`append`].
pub fn set(text: &str, path: &[&str], key: &str, value: &Value) -> Result<String, Wrong> {
    let root = parse(text)?;
    let mut node = &root;
    for (at, step) in path.iter().enumerate() {
        match node.member(step) {
            Some(inner) => node = inner,
            None => {
                let Kind::Object(members) = &node.kind else {
                    return Err(Wrong {
                        at: node.start,
                        why: "an object should stand here".to_owned(),
                    });
                };
                let inner = Value::Object([(key.to_owned(), value.clone())].into_iter().collect());
                let made = path[at + 1..].iter().rev().fold(inner, |inner, key| {
                    Value::Object([((*key).to_owned(), inner)].into_iter().collect())
                });
                let written = format!("{}: {}", Value::from(*step), pretty(&made, at + 1));
                let last = members.last().map(|(_, _, value)| value.end);
                return Ok(insert(text, node, last, &written, at + 1));
            }
        }
    }
    let Kind::Object(members) = &node.kind else {
        return Err(Wrong { at: node.start, why: "an object should stand here".to_owned() });
    };
    let depth = path.len() + 1;
    match node.member(key) {
        Some(old) => {
            Ok(format!("{}{}{}", &text[..old.start], pretty(value, depth), &text[old.end..]))
        }
        None => {
            let written = format!("{}: {}", Value::from(key), pretty(value, depth));
            let last = members.last().map(|(_, _, value)| value.end);
            Ok(insert(text, node, last, &written, depth))
        }
    }
}

/// Takes the items of an array away for which `gone` holds; whether there were any.
///
/// # Errors
/// The text is not understood.
pub fn remove(
    text: &str,
    path: &[&str],
    gone: impl Fn(&Node) -> bool,
) -> Result<(String, usize), Wrong> {
    let mut text = text.to_owned();
    let mut count = 0;
    loop {
        let root = parse(&text)?;
        let array = path.iter().try_fold(&root, |node, key| node.member(key));
        let items = array.map(Node::items).unwrap_or_default();
        let Some(at) = items.iter().position(&gone) else { return Ok((text, count)) };
        // With the comma before it, or, for the first of several, the one behind it.
        let (start, end) = match (at.checked_sub(1).map(|before| &items[before]), items.get(at + 1))
        {
            (Some(before), _) => (before.end, items[at].end),
            (None, Some(next)) => (items[at].start, next.start),
            (None, None) => (items[at].start, items[at].end),
        };
        text.replace_range(start..end, "");
        count += 1;
    }
}

/// Inserts into a container, behind its last entry.
fn insert(text: &str, node: &Node, last: Option<usize>, written: &str, depth: usize) -> String {
    let (inner, outer) = ("  ".repeat(depth), "  ".repeat(depth - 1));
    let close = node.end - 1;
    match last {
        Some(last) => {
            // A comma may stand there already; comments stay behind the entry that they belong to.
            let comma = trailing_comma(text, last, close);
            let (at, comma) = comma.map_or((last, ","), |at| (at + 1, ""));
            format!("{}{comma}\n{inner}{written}{}", &text[..at], &text[at..])
        }
        None => {
            let rest = text[node.start + 1..close].trim_end();
            let kept = &text[..node.start + 1 + rest.len()];
            format!("{kept}\n{inner}{written}\n{outer}{}", &text[close..])
        }
    }
}

/// The comma between the last entry and the end.
fn trailing_comma(text: &str, last: usize, close: usize) -> Option<usize> {
    let mut reader = Reader { text: &text[..close], at: last };
    reader.blank().ok()?;
    (reader.peek() == Some(b',')).then_some(reader.at)
}

/// A value over several lines, indented for its depth.
fn pretty(value: &Value, depth: usize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', &format!("\n{}", "  ".repeat(depth)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_changed_keeps_every_byte() {
        let text = "{\n  // mine\n  \"a\": 1, /* b */\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"x\": 1}, // one\n    ],\n  },\n}\n";
        let path = ["hooks", "PreToolUse"];
        let after = append(text, &path, &json!({ "y": 2 })).unwrap();
        assert!(after.contains("// mine") && after.contains("/* b */") && after.contains("// one"));
        let root = parse(&after).unwrap();
        let items = path.iter().try_fold(&root, |node, key| node.member(key)).unwrap().items();
        assert_eq!(items.len(), 2);
        let (back, count) = remove(&after, &path, |item| item.member("y").is_some()).unwrap();
        assert_eq!(count, 1);
        assert!(back.contains("{\"x\": 1}") && !back.contains("\"y\""), "{back}");
        parse(&back).unwrap();
    }

    #[test]
    fn missing_parents_are_made() {
        for text in ["{}", "{ }\n", "{\n}\n", "{ // only this\n}", "{\"a\": {}}"] {
            let after = append(text, &["hooks", "PreToolUse"], &json!("x")).unwrap();
            let root = parse(&after).unwrap();
            let items = root.member("hooks").unwrap().member("PreToolUse").unwrap().items();
            assert_eq!(items.len(), 1, "{after}");
            let after = append(&after, &["hooks", "PreToolUse"], &json!("y")).unwrap();
            let root = parse(&after).unwrap();
            assert_eq!(
                root.member("hooks").unwrap().member("PreToolUse").unwrap().items().len(),
                2
            );
        }
        let after = set("{}", &["tools"], "x", &json!(true)).unwrap();
        assert_eq!(crate::json::read(&after).unwrap(), json!({ "tools": { "x": true } }));
        let after = set(&after, &["tools"], "x", &json!([1])).unwrap();
        assert_eq!(crate::json::read(&after).unwrap(), json!({ "tools": { "x": [1] } }));
    }

    #[test]
    fn what_is_not_understood_has_a_place() {
        let wrong = |text: &str| parse(text).unwrap_err();
        for (text, at) in [
            ("{\n  \"a\" 1}", (2, 7)),
            ("{\"a\": 1, \"a\": 2}", (1, 10)),
            ("{} x", (1, 4)),
            ("{\"a\": /* 1}", (1, 7)),
            ("", (1, 1)),
            ("{\"é\": nope}", (1, 7)),
        ] {
            let wrong = wrong(text);
            assert_eq!(place(text, wrong.at), at, "{text}: {}", wrong.why);
        }
        assert!(parse(&"[".repeat(500)).is_err());
        assert!(append("{\"hooks\": []}", &["hooks", "PreToolUse"], &json!(1)).is_err());
        assert!(
            append("{\"hooks\": {\"PreToolUse\": {}}}", &["hooks", "PreToolUse"], &json!(1))
                .is_err()
        );
    }
}
