//! What a command's output says, as far as it selects an entry: symptoms, and the words beside them.
//!
//! All text is the command's and may be hostile. Nothing of it leaves this part but the answers to "does this line show
//! that symptom" and "does that word stand there". The work is linear in what is looked at, and that is bounded.

use std::borrow::Cow;

use crate::sandbox::kept::Kept;

/// Bytes of each stream that are looked at: half from its beginning, half from its end. A message in the middle of
/// more output is missed.
pub(in crate::call) const EVIDENCE_MAX: u64 = 32 << 10;

/// Bytes of one line that are looked at.
const LINE_MAX: usize = 4 << 10;

/// What programs write when something fails, in the words of the C library, of Node, Rust, Go and Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symptom {
    /// EROFS.
    ReadOnly,
    /// EACCES, EPERM.
    Denied,
    /// ENOENT, or a program that is not found.
    Missing,
    /// No name resolves, or nothing can be reached.
    Network,
    /// ENOSPC.
    Full,
    /// EFBIG.
    FileSize,
    /// ENOMEM.
    Memory,
    /// EMFILE.
    OpenFiles,
}

/// Each symptom by its phrases, in lower case.
const PHRASES: [(Symptom, &[&str]); 8] = [
    (Symptom::ReadOnly, &["read-only file system", "erofs", "os error 30", "errno 30"]),
    (
        Symptom::Denied,
        &[
            "permission denied",
            "operation not permitted",
            "eacces",
            "eperm",
            "os error 13",
            "errno 13",
        ],
    ),
    (
        Symptom::Missing,
        &[
            "no such file",
            "not found",
            "cannot find",
            "can't find",
            "does not exist",
            "enoent",
            "os error 2",
            "errno 2",
        ],
    ),
    (
        Symptom::Network,
        &[
            "enotfound",
            "eai_again",
            "enetunreach",
            "ehostunreach",
            "could not resolve",
            "couldn't resolve",
            "unable to resolve",
            "failed to lookup address",
            "name resolution",
            "name or service not known",
            "no address associated",
            "no such host",
            "network is unreachable",
            "no route to host",
            "dns error",
        ],
    ),
    (Symptom::Full, &["no space left on device", "enospc", "os error 28", "errno 28"]),
    (Symptom::FileSize, &["file too large", "efbig", "os error 27", "errno 27"]),
    (
        Symptom::Memory,
        &[
            "cannot allocate memory",
            "out of memory",
            "enomem",
            "memoryerror",
            "bad_alloc",
            "os error 12",
            "errno 12",
        ],
    ),
    (Symptom::OpenFiles, &["too many open files", "emfile", "os error 24", "errno 24"]),
];

/// What is looked at of a command's output.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    lines: Vec<Line>,
}

/// One line of it.
#[derive(Debug)]
pub(super) struct Line {
    text: String,
    lower: String,
    symptoms: Vec<Symptom>,
}

impl Evidence {
    /// Takes what is looked at of these streams.
    pub fn of(streams: &[&Kept]) -> Self {
        let half = usize::try_from(EVIDENCE_MAX / 2).unwrap_or(usize::MAX);
        let mut evidence = Self::default();
        for kept in streams {
            let (head, tail) = (kept.head(), kept.tail());
            let head = &head[..head.len().min(half)];
            let tail = &tail[tail.len() - tail.len().min(half)..];
            if kept.dropped() == 0 && kept.total() <= EVIDENCE_MAX {
                evidence.add(&[head, tail].concat());
            } else {
                evidence.add(head);
                evidence.add(tail);
            }
        }
        evidence
    }

    fn add(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let line = &line[..line.len().min(LINE_MAX)];
            let text = plain(&String::from_utf8_lossy(line)).into_owned();
            if text.trim().is_empty() {
                continue;
            }
            let lower = text.to_ascii_lowercase();
            let shows = |phrases: &[&str]| phrases.iter().any(|phrase| has(&lower, phrase));
            let symptoms = PHRASES.iter().filter(|(_, phrases)| shows(phrases));
            let symptoms = symptoms.map(|(symptom, _)| *symptom).collect();
            self.lines.push(Line { text, lower, symptoms });
        }
    }

    /// Every word.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().flat_map(|line| words(&line.text))
    }

    /// The lines that show a symptom.
    pub fn showing(&self, symptom: Symptom) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.symptoms.contains(&symptom))
    }
}

impl Line {
    /// Its words.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        words(&self.text)
    }

    /// Whether a name stands in it, whatever its case.
    pub fn names(&self, name: &str) -> bool {
        has(&self.lower, &name.to_ascii_lowercase())
    }
}

/// Whether a phrase stands in a text and does not go on: `errno 2` is not in `errno 28`.
fn has(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        let joins = |c: char| c.is_ascii_alphanumeric();
        !before.chars().next_back().is_some_and(joins) && !after.chars().next().is_some_and(joins)
    })
}

/// The words of a text that may be paths or names: what stands between spaces, quotes, brackets and the like.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let between =
        |c: char| c.is_whitespace() || c.is_control() || "'\"`‘’“”()[]{}<>,;|&=:".contains(c);
    text.split(between)
        .map(|word| word.trim_end_matches(['.', '!', '?']))
        .filter(|word| !word.is_empty())
}

/// The text without the sequences that colour it.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if chars.next_if_eq(&'[').is_some() {
            // Parameters, then the letter that ends the sequence.
            while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {}
            chars.next();
        }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(text: &[u8]) -> Evidence {
        let mut kept = Kept::new(1 << 20);
        kept.push(text);
        Evidence::of(&[&kept])
    }

    #[test]
    fn each_language_says_it_in_its_own_words() {
        for (text, symptom) in [
            ("touch: cannot touch 'a': Read-only file system", Symptom::ReadOnly),
            ("Error: EROFS: read-only file system, open '/w/a'", Symptom::ReadOnly),
            ("Read-only file system (os error 30)", Symptom::ReadOnly),
            ("OSError: [Errno 30] Read-only file system: 'a'", Symptom::ReadOnly),
            ("\u{1b}[31mEACCES\u{1b}[0m: denied", Symptom::Denied),
            ("getaddrinfo ENOTFOUND registry.example", Symptom::Network),
            ("npm ERR! code EAI_AGAIN", Symptom::Network),
            ("curl: (6) Could not resolve host: a.example", Symptom::Network),
            ("sh: 1: nosuch: not found", Symptom::Missing),
            ("dd: error writing 'x': No space left on device", Symptom::Full),
            ("[Errno 2] x", Symptom::Missing),
        ] {
            assert_eq!(evidence(text.as_bytes()).showing(symptom).count(), 1, "{text}");
        }
        for text in ["errno 28x", "zerofs", "all is well", "errno 280", "preeacces"] {
            let seen = evidence(text.as_bytes());
            assert!(PHRASES.iter().all(|(it, _)| seen.showing(*it).next().is_none()), "{text}");
        }
    }

    #[test]
    fn words_are_what_stands_between_quotes_and_brackets() {
        let seen = evidence("open(‘/w/a b’): \u{1b}[1;31m./c.txt\u{1b}[0m:12: x=.env.".as_bytes());
        let words: Vec<_> = seen.words().collect();
        assert_eq!(words, ["open", "/w/a", "b", "./c.txt", "12", "x", ".env"]);
    }

    #[test]
    fn what_is_looked_at_is_bounded() {
        let mut text = b"first EROFS\n".to_vec();
        text.extend(vec![b'x'; 10 << 20]);
        text.extend(b"\nmiddle EROFS\n");
        text.extend(b"y\n".repeat(5 << 20));
        text.extend(b"last EROFS\n");
        let mut kept = Kept::new(1 << 20);
        kept.push(&text);
        let seen = Evidence::of(&[&kept]);
        assert_eq!(seen.showing(Symptom::ReadOnly).count(), 2, "the middle is not looked at");
        let looked: usize = seen.lines.iter().map(|line| line.text.len()).sum();
        assert!(looked <= EVIDENCE_MAX as usize);
        assert!(seen.lines.iter().all(|line| line.text.len() <= LINE_MAX));
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        for bytes in [&b"\xff\xfe EROFS \x1b["[..], b"\x1b", b"\x1b[", b"\x1b[999", b"\0\0"] {
            let _ = evidence(bytes).words().count();
        }
        assert_eq!(evidence(b"\xff EROFS").showing(Symptom::ReadOnly).count(), 1);
    }
}
