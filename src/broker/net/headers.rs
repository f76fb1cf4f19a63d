//! Headers of a request and of an answer.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use runner_policy::net::{Send, is_header_name, is_reserved_header};

use super::limits;
use crate::broker::Refusal;
use crate::codes::Code;

/// Headers that a tool may set, in order.
pub(super) type Headers = Vec<(HeaderName, HeaderValue)>;

/// Headers that tell nothing about who asks. The others may hold credentials under any name, so only these go
/// along when a redirection leads to another origin.
const HARMLESS: &[&str] = &[
    "accept",
    "accept-language",
    "cache-control",
    "content-language",
    "content-type",
    "if-modified-since",
    "if-none-match",
    "range",
    "user-agent",
];

/// Headers about a body that is not sent any more.
const OF_BODY: &[&str] =
    &["content-encoding", "content-language", "content-location", "content-type"];

/// Headers as a tool sent them.
///
/// # Errors
/// One of them is malformed, or not the tool's to set.
pub(super) fn checked(given: &[(String, String)]) -> Result<Headers, Refusal> {
    let refused = |message: String| Err(Refusal::new(Code::InvalidArgument, message));
    let bytes: usize = given.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    if given.len() > limits::HEADERS || bytes > limits::HEADER_BYTES {
        return refused("there are too many headers, or they are too long".to_owned());
    }
    let mut headers = Headers::new();
    for (name, value) in given {
        let lower = name.to_ascii_lowercase();
        if !is_header_name(&lower) {
            return refused(format!("{name:?} is no name of a header"));
        }
        let value = value.trim_matches([' ', '\t', '\r', '\n']);
        if lower == "accept-encoding" && value.eq_ignore_ascii_case("identity") {
            continue;
        }
        if is_reserved_header(&lower) {
            return refused(format!("the header {lower} is set by the host alone"));
        }
        // One byte a character, as the fetch standard has it; a line break would begin another header.
        let latin: Option<Vec<u8>> =
            value.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let (Ok(name), Some(Ok(value))) = (
            HeaderName::from_bytes(lower.as_bytes()),
            latin.map(|bytes| HeaderValue::from_bytes(&bytes)),
        ) else {
            return refused(format!(
                "the value of {lower} holds characters that no header can hold"
            ));
        };
        headers.push((name, value));
    }
    Ok(headers)
}

/// Whether what a rule sends goes with what the tool sends.
///
/// # Errors
/// The tool sets a header of the rule's, or asks for a part of an answer: parts of a repeated secret would
/// not be known as one.
pub(super) fn goes_with(headers: &Headers, send: &[Send]) -> Result<(), Refusal> {
    for (name, _) in headers {
        if send.iter().any(|send| send.header == name.as_str()) {
            let message = format!("the header {name} is set by the policy");
            return Err(Refusal::new(Code::InvalidArgument, message));
        }
        if !send.is_empty() && (name == "range" || name == "if-range") {
            let message = format!("the header {name} does not go with credentials of the policy");
            return Err(Refusal::new(Code::InvalidArgument, message));
        }
    }
    Ok(())
}

/// Only what tells nothing about who asks.
pub(super) fn keep_harmless(headers: &mut Headers) {
    headers.retain(|(name, _)| HARMLESS.contains(&name.as_str()));
}

/// Nothing about a body.
pub(super) fn drop_body(headers: &mut Headers) {
    headers.retain(|(name, _)| !OF_BODY.contains(&name.as_str()));
}

/// Headers of an answer as texts.
pub(super) fn shown(headers: &HeaderMap) -> impl Iterator<Item = (&str, String)> {
    headers.iter().map(|(name, value)| (name.as_str(), text(value)))
}

/// Headers of a request as texts. Their order says nothing, but for those of one name.
pub(super) fn told(headers: &Headers) -> Vec<(String, String)> {
    let mut told: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    told.sort_by(|(one, _), (other, _)| one.cmp(other));
    told
}

/// A value as a text, one character a byte.
fn text(value: &HeaderValue) -> String {
    value.as_bytes().iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<Headers, Code> {
        checked(&[(name.to_owned(), value.to_owned())]).map_err(|refusal| refusal.code)
    }

    #[test]
    fn ordinary_headers_pass_in_order() {
        let given =
            [("Accept", "text/html"), ("X-A", "1"), ("x-a", " 2 "), ("X-Latin", "caf\u{e9}")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let seen = checked(&given).unwrap();
        let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["accept", "x-a", "x-a", "x-latin"]);
        assert_eq!((seen[2].1.as_bytes(), seen[3].1.as_bytes()), (&b"2"[..], &b"caf\xe9"[..]));
        assert_eq!(check("Accept-Encoding", "identity"), Ok(Vec::new()));
    }

    #[test]
    fn headers_of_the_host_and_injections_are_refused() {
        for name in [
            "Host",
            "connection",
            "Content-Length",
            "transfer-encoding",
            "Proxy-Authorization",
            "proxy-x",
            "Upgrade",
            "TE",
            "Trailer",
            "Expect",
            "Accept-Encoding",
            "",
            "a b",
            "a:",
            "a\r\nb",
            "é",
        ] {
            assert_eq!(check(name, "x"), Err(Code::InvalidArgument), "{name:?}");
        }
        for value in ["a\r\nHost: b", "a\nb", "a\rb", "a\0b", "a\u{7f}", "\u{100}"] {
            assert_eq!(check("x-a", value), Err(Code::InvalidArgument), "{value:?}");
        }
        assert_eq!(check("x-a", &"x".repeat(limits::HEADER_BYTES)), Err(Code::InvalidArgument));
    }
}
