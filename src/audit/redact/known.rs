//! Exact values: found in bytes as they are, and in the encodings in which servers repeat what they were sent.
//!
//! A value is found plain, percent-encoded, escaped for JSON or HTML (each byte for itself, so mixtures too),
//! in one case of letters, in base64 at any offset, and in hex; base64 and hex also in lines. Other encodings are not found: a server that wants to betray a
//! secret to the tool can; it has the secret already.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::{MASK, Redactor, SHORTEST};

/// Longest value: what does not fit into a header is not sent.
pub(super) const LONGEST: usize = 8 << 10;

/// Most bytes that one byte becomes by an encoding: `\u002f`, `&quot;`.
const WIDEST: usize = 6;

/// Most bytes of a line break inside base64 or hex: `\\r\\n` and some indentation.
const BREAK: usize = 12;

/// One form of a value.
#[derive(Clone, PartialEq, Eq)]
struct Form {
    bytes: Vec<u8>,
    /// Whether line breaks may stand inside: encoders write lines of a fixed length.
    breaks: bool,
}

/// What a set of values looks like.
#[derive(Clone)]
pub(super) struct Known {
    values: Vec<String>,
    /// Every form of every value.
    forms: Vec<Form>,
    /// Bytes with which one can begin.
    first: [bool; 256],
    /// Length of the longest form.
    longest: usize,
}

impl Default for Known {
    fn default() -> Self {
        Self { values: Vec::new(), forms: Vec::new(), first: [false; 256], longest: 0 }
    }
}

impl Known {
    pub(super) fn can_learn(value: &str) -> bool {
        (SHORTEST..=LONGEST).contains(&value.len()) && !MASK.contains(value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    pub(super) fn knows(&self, value: &str) -> bool {
        self.values.iter().any(|known| known == value)
    }

    /// Also this value.
    pub(super) fn with(&self, value: &str) -> Self {
        let mut more = self.clone();
        more.values.push(value.to_owned());
        more.add_forms(value.as_bytes());
        // `Basic` credentials are often kept encoded; servers answer with what is in them.
        let decoded = STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(value));
        if let Ok(text) =
            decoded.map_err(|_| ()).and_then(|bytes| String::from_utf8(bytes).map_err(|_| ()))
            && !text.chars().any(char::is_control)
            && let Some((_, password)) = text.split_once(':')
        {
            for part in [text.as_str(), password] {
                if Self::can_learn(part) {
                    more.add_forms(part.as_bytes());
                }
            }
        }
        more
    }

    fn add_forms(&mut self, value: &[u8]) {
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        let plain = |bytes: Vec<u8>| Form { bytes, breaks: false };
        let encoded = |bytes: Vec<u8>| Form { bytes, breaks: true };
        let mut forms = vec![
            plain(value.to_vec()),
            plain(value.to_ascii_lowercase()),
            plain(value.to_ascii_uppercase()),
            encoded(hex.to_uppercase().into_bytes()),
            encoded(hex.into_bytes()),
        ];
        for offset in 0..3 {
            let mut padded = vec![0; offset];
            padded.extend_from_slice(value);
            // The first characters mix with what stands before, the last with what follows.
            let (from, to) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
            for text in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
                forms.extend(text.get(from..to).map(|middle| encoded(middle.as_bytes().to_vec())));
            }
        }
        for form in forms {
            if form.bytes.len() >= SHORTEST && !self.forms.contains(&form) {
                self.first[usize::from(form.bytes[0])] = true;
                self.longest = self.longest.max(form.bytes.len());
                self.forms.push(form);
            }
        }
        for escape in *b"%\\&+" {
            self.first[usize::from(escape)] = true;
        }
    }

    /// Bytes without the values; `None` if there were none.
    pub(super) fn scrub(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let end = self.pass(bytes, bytes.len(), &mut out)?;
        out.extend_from_slice(&bytes[end..]);
        Some(out)
    }

    /// Copies to `out` what stands before `until`, masked. Gives the end of the last match, up to which everything
    /// was copied, or `None` if nothing was found and nothing copied.
    fn pass(&self, bytes: &[u8], until: usize, out: &mut Vec<u8>) -> Option<usize> {
        let (mut copied, mut at, mut found) = (0, 0, false);
        while at < until {
            if !self.first[usize::from(bytes[at])] {
                at += 1;
                continue;
            }
            match self.match_at(&bytes[at..]) {
                Some(length) => {
                    out.extend_from_slice(&bytes[copied..at]);
                    out.extend_from_slice(MASK.as_bytes());
                    at += length;
                    copied = at;
                    found = true;
                }
                None => at += 1,
            }
        }
        found.then_some(copied)
    }

    /// The longest form with which these bytes begin.
    fn match_at(&self, bytes: &[u8]) -> Option<usize> {
        self.forms.iter().filter_map(|form| spelled(form, bytes)).max()
    }

    /// How many bytes can be needed to tell whether a form begins at a place.
    fn reach(&self) -> usize {
        self.longest * (WIDEST + BREAK)
    }
}

/// How many of the bytes spell the form, each byte as it is or escaped.
fn spelled(form: &Form, bytes: &[u8]) -> Option<usize> {
    let plain = |wanted, bytes: &[u8]| (bytes.first() == Some(&wanted)).then_some(1);
    let walk = |step: &dyn Fn(u8, &[u8]) -> Option<usize>| {
        form.bytes.iter().try_fold(0, |at, wanted| {
            let here = bytes.get(at..)?;
            let skipped = if form.breaks && at > 0 { line_break(here) } else { 0 };
            Some(at + skipped + step(*wanted, here.get(skipped..)?)?)
        })
    };
    // A byte that begins an escape may also stand for itself.
    walk(&|wanted, bytes| plain(wanted, bytes).or_else(|| escaped(wanted, bytes)))
        .or_else(|| walk(&|wanted, bytes| escaped(wanted, bytes).or_else(|| plain(wanted, bytes))))
}

/// How many of the bytes are a line break, plain or escaped, with the indentation behind it. Nothing if it is longer
/// than a break may be.
fn line_break(bytes: &[u8]) -> usize {
    const ENDS: [&[u8]; 6] = [b"\n", b"\r", b"\\n", b"\\r", b"%0A", b"%0D"];
    let mut at = 0;
    while let Some(rest) = bytes.get(at..) {
        let end = ENDS
            .iter()
            .find(|end| rest.get(..end.len()).is_some_and(|start| start.eq_ignore_ascii_case(end)));
        let blank = || at > 0 && rest.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        at += match end {
            Some(end) => end.len(),
            None if blank() => 1,
            None => break,
        };
    }
    if at <= BREAK { at } else { 0 }
}

/// How many of the bytes are an escape for this one.
fn escaped(wanted: u8, bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    let hex = |from: usize, to: usize| {
        let digits = std::str::from_utf8(bytes.get(from..to)?).ok()?;
        u8::from_str_radix(digits, 16).ok()
    };
    match first {
        b'%' => (hex(1, 3)? == wanted).then_some(3),
        b'+' => (wanted == b' ').then_some(1),
        b'\\' => match bytes.get(1)? {
            b'u' => (bytes.get(2..4)? == b"00" && hex(4, 6)? == wanted).then_some(6),
            b'x' => (hex(2, 4)? == wanted).then_some(4),
            escaped => (*escaped == wanted && !wanted.is_ascii_alphanumeric()).then_some(2),
        },
        b'&' => {
            let names: &[&[u8]] = match wanted {
                b'&' => &[b"&amp;", b"&#38;", b"&#x26;"],
                b'<' => &[b"&lt;", b"&#60;", b"&#x3c;", b"&#x3C;"],
                b'>' => &[b"&gt;", b"&#62;", b"&#x3e;", b"&#x3E;"],
                b'"' => &[b"&quot;", b"&#34;", b"&#x22;"],
                b'\'' => &[b"&apos;", b"&#39;", b"&#x27;"],
                b'/' => &[b"&#47;", b"&#x2f;", b"&#x2F;"],
                b'=' => &[b"&#61;", b"&#x3d;", b"&#x3D;"],
                b'+' => &[b"&#43;", b"&#x2b;", b"&#x2B;"],
                b'`' => &[b"&#96;", b"&#x60;"],
                _ => &[],
            };
            names.iter().find(|name| bytes.starts_with(name)).map(|name| name.len())
        }
        _ => None,
    }
}

/// Bytes that come piece by piece, without the values. A few bytes are held back: a value may go on in the next
/// piece.
pub struct Scrubber {
    redactor: Redactor,
    known: Arc<Known>,
    held: Vec<u8>,
    found: bool,
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scrubber(..)")
    }
}

impl Scrubber {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { known: redactor.current(), redactor, held: Vec::new(), found: false }
    }

    /// What can be passed on after this piece; may be nothing yet.
    #[must_use]
    pub fn push(&mut self, piece: Vec<u8>) -> Vec<u8> {
        // What is sent while this streams may come back in it.
        self.known = self.redactor.current();
        if self.known.is_empty() {
            return piece;
        }
        self.held.extend_from_slice(&piece);
        let sure = (self.held.len() + 1).saturating_sub(self.known.reach());
        self.release(sure)
    }

    /// The rest.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        self.release(self.held.len())
    }

    /// Whether anything was masked.
    #[must_use]
    pub fn found(&self) -> bool {
        self.found
    }

    fn release(&mut self, sure: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let copied = self.known.pass(&self.held, sure, &mut out);
        self.found |= copied.is_some();
        let copied = copied.unwrap_or(0);
        let end = sure.max(copied);
        out.extend_from_slice(&self.held[copied..end]);
        self.held.drain(..end);
        out
    }
}
