//! A command line, word by word.
//!
//! In a text a header's value goes to the end of its line. In a command line that would hide the commands behind it, so
//! here a secret ends where its word does: `git commit -m authorization:x && git push` loses the `x` and nothing else.
//! Words are told apart as a shell does; where only a shell could (substitutions, here-documents, comments), every
//! blank and operator ends a word, also in quotes: rather more is shown than something hidden that runs.

use std::borrow::Cow;

use super::names::is_secret_option;
use super::options::{self, Command, masked_in_line};
use super::{MASK, shapes, unshaped_word};

/// Schemes that stand between a header's name and its secret.
const SCHEMES: &[&str] = &[
    "apikey",
    "basic",
    "bearer",
    "bot",
    "digest",
    "hawk",
    "key",
    "negotiate",
    "ntlm",
    "oauth",
    "token",
];

/// What quotes a word.
const QUOTES: [char; 2] = ['"', '\''];

/// The line with masks where secrets stood.
pub(super) fn redact(line: &str) -> String {
    redact_and_collect(line, &mut Vec::new())
}

/// The values of options that are masked in a line, without quotes.
pub(super) fn secrets(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let _ = redact_and_collect(line, &mut found);
    found
}

fn redact_and_collect(line: &str, found: &mut Vec<String>) -> String {
    let shaped = shapes::could_hold(line);
    if !shaped && !options::could_hold(line) {
        return line.to_owned();
    }
    let line = if shaped { shapes::without_keys(line) } else { Cow::Borrowed(line) };
    let kinds = quoted(&line).unwrap_or_else(|| every(&line));
    redact_words(&line, kinds, found)
}

/// A word of a line that is a line itself, with its quotes.
fn redact_inner(word: &str, found: &mut Vec<String>) -> String {
    for quote in ['\'', '"'] {
        if let Some(inner) = word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return format!("{quote}{}{quote}", redact_and_collect(inner, found));
        }
    }
    redact_words(word, every(word), found)
}

fn redact_words(line: &str, kinds: Vec<Part>, found: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(line.len());
    // What stood in the words before this one, unless an operator ended them.
    let mut before = Before::default();
    for (part, kind) in parts(line, kinds) {
        match kind {
            Part::Word => {
                let secret = before.command.secret(part);
                let shown = before.shown(part, secret, found);
                out.push_str(&shown);
                before.push(part, shown);
            }
            Part::Blank => out.push_str(part),
            Part::Operator => {
                before = Before::default();
                out.push_str(part);
            }
        }
    }
    out
}

/// The words before a word, in the same command.
#[derive(Default)]
struct Before {
    /// The last one as it was.
    last: String,
    /// The same without secrets.
    shown: String,
    /// Whether the one before it names a header with credentials.
    after_header: bool,
    /// What the options among them say of the words that follow.
    command: Command,
}

impl Before {
    /// A word after these, without secrets. The value of an option begins at `secret`.
    fn shown(&self, word: &str, secret: Option<usize>, found: &mut Vec<String>) -> String {
        let is_option = word.starts_with('-');
        let scheme = self.after_header && SCHEMES.contains(&bare(&self.last).as_str());
        let last = self.last.trim_matches(QUOTES);
        if !is_option && (is_secret_option(last) || is_header(&self.last) || scheme) {
            return MASK.to_owned();
        }
        if let Some(at) = secret {
            found.push(word[at..].trim_matches(QUOTES).to_owned());
            return shapes::redact(&masked_in_line(word, at)).into_owned();
        }
        if runs_a_line(&self.last) {
            return redact_inner(word, found);
        }
        // Some secrets are known by the word before them.
        let pair = format!("{} {word}", self.shown);
        let pair = shapes::redact(&pair);
        let word =
            pair.strip_prefix(&self.shown).and_then(|rest| rest.strip_prefix(' ')).unwrap_or(word);
        unshaped_word(word).into_owned()
    }

    fn push(&mut self, word: &str, shown: String) {
        self.after_header = is_header(&self.last);
        word.clone_into(&mut self.last);
        self.shown = shown;
    }
}

/// Whether a word ends with the name of a header with credentials.
fn is_header(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    ["authorization:", "authorization=", "cookie:"].iter().any(|name| lower.ends_with(name))
}

/// Whether the word after this one is a line of its own, as after `sh -c`.
pub(super) fn runs_a_line(word: &str) -> bool {
    let option = word.strip_prefix('-').and_then(|letters| letters.strip_suffix('c'));
    word == "eval" || option.is_some_and(|letters| letters.bytes().all(|c| c.is_ascii_lowercase()))
}

/// A word without its quotes, in small letters.
fn bare(word: &str) -> String {
    word.trim_matches(QUOTES).to_ascii_lowercase()
}

/// A text without the schemes of its headers with credentials: `Authorization: Bearer x` becomes `Authorization: x`. What
/// is hidden of such a header is then one word.
pub(super) fn without_schemes(text: &str) -> String {
    const NAME: &str = "authorization";
    let lower = text.to_ascii_lowercase();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(found) = lower[at..].find(NAME) {
        let value = at + found + NAME.len();
        out.push_str(&text[at..value]);
        at = value;
        let Some(rest) = lower[at..].trim_start().strip_prefix([':', '=']) else { continue };
        let rest = rest.trim_start_matches([' ', '\'']);
        let named =
            |scheme: &&&str| rest.strip_prefix(**scheme).is_some_and(|it| it.starts_with(' '));
        if let Some(scheme) = SCHEMES.iter().find(named) {
            let begun = lower.len() - rest.len();
            out.push_str(&text[at..begun]);
            at = begun + scheme.len() + 1;
        }
    }
    out.push_str(&text[at..]);
    out
}

/// What a part of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Word,
    Blank,
    Operator,
}

impl Part {
    /// What a character is outside of quotes.
    fn of(c: char) -> Self {
        match c {
            ' ' | '\t' => Self::Blank,
            ';' | '&' | '|' | '<' | '>' | '(' | ')' => Self::Operator,
            c if c.is_whitespace() => Self::Operator,
            _ => Self::Word,
        }
    }
}

/// The parts of a line, in order; joined they are the line.
fn parts(line: &str, kinds: Vec<Part>) -> Vec<(&str, Part)> {
    let mut parts: Vec<(&str, Part)> = Vec::new();
    let mut begun = 0;
    let mut chars = line.char_indices().zip(kinds).peekable();
    while let Some(((at, c), kind)) = chars.next() {
        if chars.peek().is_none_or(|(_, next)| *next != kind) {
            let end = at + c.len_utf8();
            parts.push((&line[begun..end], kind));
            begun = end;
        }
    }
    parts
}

/// What each character is, with quotes that quote nothing.
fn every(line: &str) -> Vec<Part> {
    line.chars().map(Part::of).collect()
}

/// What each character is, with quotes as a shell has them; `None` where that takes a shell.
fn quoted(line: &str) -> Option<Vec<Part>> {
    let mut kinds = Vec::with_capacity(line.len());
    let mut quote = None;
    let mut before = Part::Blank;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let kind = match (quote, c) {
            (Some('\''), _) => Part::Word,
            (_, '`') => return None,
            (_, '$') if matches!(next, Some('(' | '{' | '[' | '\'' | '"')) => return None,
            (_, '\\') => {
                // The next character stands for itself; a line that ends here does not end.
                kinds.push(Part::Word);
                chars.next()?;
                Part::Word
            }
            (Some(_), _) | (None, '\'' | '"') => Part::Word,
            (None, '<') if next == Some('<') => return None,
            (None, '#') if before != Part::Word => return None,
            (None, c) => Part::of(c),
        };
        quote = match (quote, c) {
            (None, '\'' | '"') => Some(c),
            (Some(open), c) if open == c => None,
            (quote, _) => quote,
        };
        kinds.push(kind);
        before = kind;
    }
    quote.is_none().then_some(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_line_hides_behind_a_secret() {
        for (line, shown) in [
            (
                "git commit -m authorization:x && git push --force",
                "git commit -m authorization:[redacted] && git push --force",
            ),
            ("echo cookie:a=b; git push", "echo cookie:[redacted]; git push"),
            ("echo 'a'authorization:x && git push", "echo 'a'authorization:[redacted] && git push"),
            ("echo authorization: x --force", "echo authorization: [redacted] --force"),
            ("echo authorization: && git push", "echo authorization: && git push"),
            ("sh -c 'authorization:x && git push'", "sh -c 'authorization:[redacted] && git push'"),
            (
                "echo \"$(echo \"\"authorization:x && git push\"\")\"",
                "echo \"$(echo \"\"authorization:[redacted] && git push\"\")\"",
            ),
            (
                "cat <<E\n'\nE\necho authorization:x && git push; echo '",
                "cat <<E\n'\nE\necho authorization:[redacted] && git push; echo '",
            ),
            (
                "true # '\necho cookie:x && git push #'",
                "true # '\necho cookie:[redacted] && git push #'",
            ),
            ("x \"\"secret\":\" && git push \"b", "x \"\"secret\":\" && git push \"b"),
            ("echo authorization:x\ngit push", "echo authorization:[redacted]\ngit push"),
        ] {
            assert_eq!(redact(line), shown);
            assert_eq!(redact(shown), shown);
        }
    }

    #[test]
    fn secrets_of_a_line_are_hidden_whole() {
        for (line, shown) in [
            (
                "curl -H 'Authorization: Bearer abc.def' https://h.example && ls",
                "curl -H 'Authorization: [redacted]' https://h.example && ls",
            ),
            (
                "curl --header=\"Authorization: Custom a b c\" x | jq .",
                "curl --header=\"Authorization: [redacted]\" x | jq .",
            ),
            ("curl -H \"Cookie: a=b; c=d\" x", "curl -H \"Cookie: [redacted]\" x"),
            ("echo Authorization: Bearer hunter2 x", "echo Authorization: [redacted] [redacted] x"),
            ("export TOKEN=\"ab cd\" && x", "export TOKEN=\"[redacted]\" && x"),
            ("mysql --password hunter2 db", "mysql --password [redacted] db"),
            ("PGPASSWORD=hunter2 psql", "PGPASSWORD=[redacted] psql"),
            ("x bearer 0123456789abcdef && y", "x bearer [redacted] && y"),
            ("curl https://u:hunter2@h.example/x", "curl https://u:[redacted]@h.example/x"),
            ("git log --oneline -- src", "git log --oneline -- src"),
        ] {
            assert_eq!(redact(line), shown);
            assert_eq!(redact(shown), shown);
        }
        assert_eq!(
            without_schemes(
                "é Authorization: Bearer x, authorization='basic y' authorization: z bearer"
            ),
            "é Authorization: x, authorization='y' authorization: z bearer"
        );
        let (begin, end) = ("-----BEGIN RSA PRIVATE ", "-----END RSA PRIVATE ");
        let key = format!("cat <<E > k\n{begin}KEY-----\nAbCd+/==\n{end}KEY-----\nE\nls");
        assert_eq!(redact(&key), "cat <<E > k\n[redacted]\nE\nls");
    }
}
