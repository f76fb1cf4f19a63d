//! Paths and link targets as text that stands for exactly one sequence of bytes.
//!
//! A part that is UTF-8 is written as it is. Any other part is written as NUL and its bytes in
//! hexadecimal digits: no real name holds a NUL, so the two forms cannot be mixed up. Slashes stay, so
//! that text can be cut into parts without decoding it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// How a part begins that is not UTF-8.
const MARK: char = '\0';

/// A path as text.
pub(crate) fn encode(path: &Path) -> String {
    encode_bytes(path.as_os_str().as_bytes())
}

/// Any bytes without NUL as text, part by part.
pub(crate) fn encode_bytes(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let parts: Vec<String> = bytes.split(|byte| *byte == b'/').map(encode_part).collect();
    parts.join("/")
}

fn encode_part(part: &[u8]) -> String {
    match std::str::from_utf8(part) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let digits: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{MARK}{digits}")
        }
    }
}

/// The path that a text stands for.
pub(crate) fn decode(text: &str) -> PathBuf {
    PathBuf::from(decode_os(text))
}

/// The bytes that a text stands for.
pub(crate) fn decode_os(text: &str) -> OsString {
    if !text.contains(MARK) {
        return OsStr::new(text).to_owned();
    }
    let parts: Vec<Vec<u8>> = text.split('/').map(decode_part).collect();
    OsString::from_vec(parts.join(&b'/'))
}

fn decode_part(part: &str) -> Vec<u8> {
    let Some(digits) = part.strip_prefix(MARK) else { return part.as_bytes().to_vec() };
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    // What is not of this form was not written by `encode`: it stays text, and names nothing.
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(pair).collect();
    bytes.unwrap_or_else(|| part.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_comes_back() {
        for bytes in
            [&b"a/b"[..], b"a\xff/b", b"\xfe", "ä/ö".as_bytes(), b"a//\xffb/c", b"/abs/\xc3\x28"]
        {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(decode(&encode(path)).as_os_str().as_bytes(), bytes);
        }
        assert_eq!(encode(Path::new("a/b")), "a/b");
        assert_eq!(encode(Path::new(OsStr::from_bytes(b"x/\xff"))), "x/\0ff");
    }
}
