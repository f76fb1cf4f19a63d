//! What a program prints, piece by piece, without secrets: exact values wherever they are, shapes line by line.

use super::{Redactor, Scrubber};

/// Longest text that is held back until its line ends. A longer line is cut at its last blank.
const LONGEST: usize = 64 << 10;

/// Text that comes in pieces. The last line is held back until it ends: a secret may go on in the next piece.
pub struct Prints {
    redactor: Redactor,
    values: Scrubber,
    held: Vec<u8>,
}

impl std::fmt::Debug for Prints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prints(..)")
    }
}

impl Prints {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { values: redactor.stream(), redactor, held: Vec::new() }
    }

    /// What can be shown after this piece; may be nothing yet.
    #[must_use]
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend(self.values.push(piece.to_vec()));
        let end = whole_lines(&self.held);
        let end = if self.held.len() - end > LONGEST { cut(&self.held) } else { end };
        self.release(end)
    }

    /// The rest.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        self.held.extend(self.values.finish());
        self.release(self.held.len())
    }

    fn release(&mut self, end: usize) -> Vec<u8> {
        let whole: Vec<u8> = self.held.drain(..end).collect();
        self.redactor.bytes(&whole)
    }
}

/// Where the last whole line ends that is not inside of a private key.
fn whole_lines(bytes: &[u8]) -> usize {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let last = |mark: &[u8]| bytes[..end].windows(mark.len()).rposition(|part| part == mark);
    match (last(b"-----BEGIN "), last(b"-----END ")) {
        (Some(begin), None) => begin,
        (Some(begin), Some(closed)) if begin > closed => begin,
        _ => end,
    }
}

/// Where a text that is too long to be held is cut.
fn cut(bytes: &[u8]) -> usize {
    let blank = bytes.iter().rposition(u8::is_ascii_whitespace);
    blank.map_or(bytes.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::super::MASK;
    use super::*;

    fn shown(redactor: &Redactor, whole: &[u8], piece: usize) -> String {
        let mut prints = Prints::new(redactor.clone());
        let mut out = Vec::new();
        for bytes in whole.chunks(piece) {
            out.extend(prints.push(bytes));
        }
        out.extend(prints.finish());
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn secrets_in_prints_are_hidden_however_they_arrive() {
        let redactor = Redactor::new();
        assert!(redactor.learn("canary-canary"));
        let (begin, end) = ("-----BEGIN RSA PRIVATE ", "-----END RSA PRIVATE ");
        let text = format!(
            "one ghp_{}\n{begin}KEY-----\nAbCd\nEfGh\n{end}KEY-----\nPGPASSWORD=hunter2\ncanary-canary é\nlast",
            "a1B2".repeat(9)
        );
        let expected = format!("one {MASK}\n{MASK}\nPGPASSWORD={MASK}\n{MASK} é\nlast");
        for piece in [1, 2, 7, 64, 4096] {
            assert_eq!(shown(&redactor, text.as_bytes(), piece), expected, "{piece}");
        }
    }

    #[test]
    fn harmless_prints_pass_and_long_lines_do_not_wait_for_their_end() {
        let redactor = Redactor::new();
        let mut prints = Prints::new(redactor.clone());
        let long = "word ".repeat(LONGEST / 4);
        assert!(!prints.push(long.as_bytes()).is_empty());
        for text in ["", "\n", "no line end", "a\n\nb\n", "-----BEGIN CERTIFICATE-----\nAb\n"] {
            assert_eq!(shown(&redactor, text.as_bytes(), 3), text);
        }
        let bytes = b"\xff\xfe TOKEN=abcdef \xff\n";
        let out = Redactor::new().bytes(bytes);
        assert_eq!(out, b"\xff\xfe TOKEN=[redacted] \xff\n");
    }
}
