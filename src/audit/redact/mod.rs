//! Redaction: what looks like a secret, or is one that we know, does not stand in logs, errors and records.
//!
//! Duty: text in, text out, with [`MASK`] where a secret stood. Three ways to know one: the exact values that the
//! host itself sent (plain and in the encodings in which servers repeat them), names of keys (`password`) and options
//! (`curl -u`), and shapes (tokens of well-known services, keys, credentials in URLs). Non-goals: finding every secret there is, and
//! changing what a command or tool was given. Pure but for the values that a [`Redactor`] has learned; linear in the
//! text; the result is never longer than four times the text and a mask, and redacting it again changes nothing.

mod known;
mod line;
mod names;
mod options;
#[cfg(test)]
mod options_tests;
mod prints;
mod shapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value};

use known::Known;
pub use known::Scrubber;
pub use prints::Prints;

/// What stands where a secret stood.
pub const MASK: &str = "[redacted]";

/// Shortest value that can be learned: a shorter one stands in too much innocent text.
pub const SHORTEST: usize = 8;

/// Deepest JSON that is walked; what is below is masked. Parsers stop at 128.
const DEEPEST: usize = 256;

/// Redacts. Clones share what was learned.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Arc<Known>>>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor(..)")
    }
}

impl Redactor {
    /// One that knows no exact values yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Learns a value that must not be seen from now on. Gives back whether it can be kept out of a text: what
    /// is too short, too long or part of the mask itself cannot.
    #[must_use]
    pub fn learn(&self, value: &str) -> bool {
        if !Known::can_learn(value) {
            return false;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !known.knows(value) {
            *known = Arc::new(known.with(value));
        }
        true
    }

    /// Whether any exact value was learned.
    #[must_use]
    pub fn has_learned(&self) -> bool {
        !self.current().is_empty()
    }

    fn current(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A text without secrets.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.values(text) {
            Cow::Borrowed(text) => unshaped(text),
            Cow::Owned(text) => Cow::Owned(unshaped(&text).into_owned()),
        }
    }

    /// A command line without secrets; nothing of it hides behind one.
    #[must_use]
    pub fn line(&self, line: &str) -> String {
        line::redact(&self.values(line))
    }

    /// What the options of a command line hide. Texts about the command may hold it without its option.
    #[must_use]
    pub fn secrets(&self, line: &str) -> Vec<String> {
        line::secrets(&self.values(line))
    }

    /// A line about a command, without its own secrets and those of the command.
    #[must_use]
    pub fn line_about(&self, line: &str, secrets: &[String]) -> String {
        let mut shown = self.line(line);
        for secret in secrets {
            // Whole words only: a short password may stand inside of many.
            shown = shown
                .split(' ')
                .map(|word| if word.trim_matches(['`', '"', '\'']) == secret { MASK } else { word })
                .collect::<Vec<_>>()
                .join(" ");
            if secret.contains(' ') {
                shown = shown.replace(secret.as_str(), MASK);
            }
        }
        shown
    }

    /// Whether [`Self::text`] hides more than secrets: what could be words of their own, or do something in a shell.
    #[must_use]
    pub fn hides_words(&self, text: &str) -> bool {
        hides_words(text, |text| self.text(text).into_owned())
    }

    /// The same of [`Self::line`].
    #[must_use]
    pub fn hides_words_of_line(&self, line: &str) -> bool {
        hides_words(line, |line| self.line(line))
    }

    /// A text without the exact values that were learned; shapes and names are left alone. For what a tool is
    /// given: it may have tokens of its own.
    #[must_use]
    pub fn values<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let known = self.current();
        if known.is_empty() {
            return Cow::Borrowed(text);
        }
        match known.scrub(text.as_bytes()) {
            None => Cow::Borrowed(text),
            // Whole characters are replaced by whole characters.
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The same for bytes that come piece by piece.
    #[must_use]
    pub fn stream(&self) -> Scrubber {
        Scrubber::new(self.clone())
    }

    /// What a program prints, piece by piece, without secrets.
    #[must_use]
    pub fn prints(&self) -> Prints {
        Prints::new(self.clone())
    }

    /// Bytes of which the text in them has no secrets; what is no text stays.
    #[must_use]
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            out.extend_from_slice(self.text(chunk.valid()).as_bytes());
            out.extend_from_slice(chunk.invalid());
        }
        out
    }

    /// The words of a command without secrets. Options that are named like secrets hide the word after them.
    #[must_use]
    pub fn argv(&self, argv: &[String]) -> Vec<String> {
        let mut before = "";
        let mut command = options::Command::default();
        argv.iter()
            .map(|word| {
                let before = std::mem::replace(&mut before, word);
                let secret = command.secret(word);
                if names::is_secret_option(before) && !word.starts_with('-') && !word.is_empty() {
                    MASK.to_owned()
                } else if let Some(at) = secret {
                    self.word(&options::masked(word, at))
                } else if line::runs_a_line(before) {
                    self.line(word)
                } else {
                    self.word(word)
                }
            })
            .collect()
    }

    fn word(&self, word: &str) -> String {
        unshaped_word(&self.values(word)).into_owned()
    }

    /// A value without secrets: what stands under a key that is named like one, and texts like [`Self::text`].
    #[must_use]
    pub fn json(&self, value: &Value) -> Value {
        self.walk(value, Under::Plain, 0)
    }

    fn walk(&self, value: &Value, under: Under, depth: usize) -> Value {
        let masked = || Value::String(MASK.to_owned());
        match value {
            Value::Array(_) | Value::Object(_) if depth >= DEEPEST => masked(),
            Value::Array(values)
                if under == Under::Plain && values.iter().all(Value::is_string) =>
            {
                // It may be a command.
                let words: Vec<String> =
                    values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                self.argv(&words).into()
            }
            Value::Array(values) => {
                values.iter().map(|value| self.walk(value, under, depth + 1)).collect()
            }
            Value::Object(map) => {
                let mut redacted = Map::with_capacity(map.len());
                for (key, value) in map {
                    let shown = self.text(key).into_owned();
                    let secret = names::is_secret_key(key) || names::is_secret_key(&shown);
                    let below = if secret { Under::Secret } else { under };
                    let key = unused(&redacted, shown);
                    redacted.insert(key, self.walk(value, below, depth + 1));
                }
                Value::Object(redacted)
            }
            Value::String(text) if under == Under::Secret && !text.is_empty() => masked(),
            Value::Number(_) if under == Under::Secret => masked(),
            Value::String(text) => Value::String(self.text(text).into_owned()),
            Value::Number(_) | Value::Bool(_) | Value::Null => value.clone(),
        }
    }
}

/// A text without what options and shapes say is a secret. What stood around a secret can then be read otherwise, so it is
/// done until nothing changes, within reason.
fn unshaped(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    for _ in 0..shapes::ROUNDS {
        let next = shapes::redact(&options::redact(&shown)).into_owned();
        if next == shown {
            break;
        }
        shown = Cow::Owned(next);
    }
    shown
}

/// One word of a command, whose options are known already. With blanks in it, it may be a command of its own.
fn unshaped_word(word: &str) -> Cow<'_, str> {
    if word.contains(char::is_whitespace) { unshaped(word) } else { shapes::redact(word) }
}

/// Whether a mask hides blanks or operators. A scheme before a token is no word of its own.
fn hides_words(text: &str, redact: impl Fn(&str) -> String) -> bool {
    let whole = line::without_schemes(text);
    let active = |c: &char| c.is_whitespace() || ";&|<>()$`".contains(*c);
    let count = |text: &str| text.chars().filter(active).count();
    count(&redact(&whole)) < count(&whole)
}

/// What a value stands under.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Under {
    Plain,
    Secret,
}

/// Two keys that become the same by redaction stay two.
fn unused(map: &Map<String, Value>, key: String) -> String {
    if !map.contains_key(&key) {
        return key;
    }
    let mut number = map.len();
    loop {
        let other = format!("{key}#{number}");
        if !map.contains_key(&other) {
            return other;
        }
        number += 1;
    }
}
