//! URLs: one normal form, which is judged, dialled and sent. What cannot be brought into it is refused.

use runner_policy::net::{Target, request};

use super::limits;

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::broker) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A URL in its normal form, without fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::broker) struct Url {
    pub scheme: Scheme,
    /// In lower case; an IPv6 address in brackets.
    pub host: String,
    pub port: u16,
    /// Begins with a slash.
    pub path: String,
    pub query: Option<String>,
}

/// Why a text is no URL that can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::broker) struct NotAUrl(pub &'static str);

impl NotAUrl {
    /// Why, in a sentence.
    pub(in crate::broker) fn reason(self) -> &'static str {
        self.0
    }
}

impl Url {
    /// Reads an absolute URL.
    pub(in crate::broker) fn parse(text: &str) -> Result<Self, NotAUrl> {
        if text.len() > limits::URL {
            return Err(NotAUrl("the URL is too long"));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) || text.contains('\\') {
            return Err(NotAUrl("a URL has no spaces, control characters or backslashes"));
        }
        let (scheme, rest) = text.split_once("://").ok_or(NotAUrl("the URL is not absolute"))?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(NotAUrl("only http and https can be fetched")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (place, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if place.contains('@') {
            return Err(NotAUrl(
                "a URL has no user and password here; a rule's `send` adds credentials",
            ));
        }
        let (path, query) = match tail.split_once('?') {
            Some((path, query)) => (path, Some(encoded(query))),
            None => (tail, None),
        };
        let path = without_dots(&encoded(path));
        // The policy's own reader has the last word: what it cannot read plainly, nobody dials.
        let plain = format!("{}://{place}{path}", scheme.word());
        let read = request("GET", &plain).ok_or(NotAUrl(
            "the URL is not plain: odd host, or encoded dots or slashes in its path",
        ))?;
        let port = read.port.filter(|port| *port != 0).ok_or(NotAUrl("the URL has no port"))?;
        Ok(Self { scheme, host: read.host, port, path: read.path.unwrap_or(path), query })
    }

    /// Where a `Location` leads from here.
    pub(super) fn join(&self, location: &str) -> Result<Self, NotAUrl> {
        let location = location.split('#').next().unwrap_or_default();
        if has_scheme(location) {
            return Self::parse(location);
        }
        let origin = format!("{}://{}", self.scheme.word(), self.authority());
        let text = if location.starts_with("//") {
            format!("{}:{location}", self.scheme.word())
        } else if location.starts_with('/') {
            format!("{origin}{location}")
        } else if location.is_empty() || location.starts_with('?') {
            let query = match &self.query {
                Some(query) if location.is_empty() => format!("?{query}"),
                _ => location.to_owned(),
            };
            format!("{origin}{}{query}", self.path)
        } else {
            let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{origin}{folder}/{location}")
        };
        Self::parse(&text)
    }

    /// Host, and port where it is not the scheme's own.
    pub(super) fn authority(&self) -> String {
        if self.port == self.scheme.port() {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// What stands in the first line of a request.
    pub(super) fn path_and_query(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// The whole.
    pub(in crate::broker) fn text(&self) -> String {
        format!("{}://{}{}", self.scheme.word(), self.authority(), self.path_and_query())
    }

    /// Whether two URLs have the same scheme, host and port.
    pub(super) fn same_origin(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// As the policy reads it.
    pub(super) fn target(&self, method: &str) -> Option<Target> {
        request(method, &self.text())
    }
}

/// `name:` before any slash or question mark.
fn has_scheme(text: &str) -> bool {
    let end = text.find(['/', '?']).unwrap_or(text.len());
    text[..end].split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// Characters that have no place in a request's first line, percent-encoded.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && !"\"<>^`{|}".contains(c) {
            out.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    out
}

/// A path without `.` and `..`.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        match *part {
            "." | ".." => {
                if *part == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    if path.is_empty() { String::new() } else { format!("/{}", kept.join("/")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> String {
        Url::parse(text).map_or_else(|why| why.0.to_owned(), |url| url.text())
    }

    #[test]
    fn urls_have_one_form() {
        for (text, expected) in [
            ("https://A.Example./x?y=1#z", "https://a.example/x?y=1"),
            ("HTTP://a.example", "http://a.example/"),
            ("http://a.example:80/x", "http://a.example/x"),
            ("http://a.example:8080?q", "http://a.example:8080/?q"),
            ("https://[0:0:0:0:0:0:0:1]/x", "https://[::1]/x"),
            ("https://[::ffff:10.0.0.1]/x", "https://10.0.0.1/x"),
            ("https://a.example/a/./b/../c", "https://a.example/a/c"),
            ("https://a.example/../../x/..", "https://a.example/"),
            ("https://a.example/é?ü={}", "https://a.example/%C3%A9?%C3%BC=%7B%7D"),
        ] {
            assert_eq!(normal(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_read_in_two_ways_is_refused() {
        for text in [
            "",
            "a.example",
            "//a.example/",
            "file:///etc/passwd",
            "ftp://a.example/",
            "data://x",
            "https://user@a.example/",
            "https://user:pass@a.example/",
            "https://a.example\\@b.example/",
            "https://a.example /",
            "https://a.example/\r\nHost: b",
            "https://a.example/\0",
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://ex%61mple/",
            "https://exämple/",
            "https://a.example:0/",
            "https://a.example:99999/",
            "https://a.example:/x:y@z/../",
            "https:///x",
            "https://a.example/%2e%2e/x",
            "https://a.example/a%2fb",
            "https://*/x",
            "https://[::1/x",
            "https://[fe80::1%25eth0]/x",
        ] {
            let read = Url::parse(text);
            // An empty port is the scheme's own to every reader.
            if text.starts_with("https://a.example:/") {
                assert_eq!(read.unwrap().text(), "https://a.example/", "{text}");
            } else {
                assert!(read.is_err(), "{text} {read:?}");
            }
        }
        assert!(Url::parse(&format!("https://a.example/{}", "x".repeat(limits::URL))).is_err());
    }

    #[test]
    fn locations_are_joined_as_the_standard_has_it() {
        let base = Url::parse("https://a.example/b/c/d?q").unwrap();
        for (location, expected) in [
            ("https://b.example/x#f", "https://b.example/x"),
            ("//b.example/x", "https://b.example/x"),
            ("/x?y", "https://a.example/x?y"),
            ("x", "https://a.example/b/c/x"),
            ("./x/../y", "https://a.example/b/c/y"),
            ("../x", "https://a.example/b/x"),
            ("?z", "https://a.example/b/c/d?z"),
            ("", "https://a.example/b/c/d?q"),
            ("#f", "https://a.example/b/c/d?q"),
            ("x?u=https://c.example/", "https://a.example/b/c/x?u=https://c.example/"),
        ] {
            assert_eq!(base.join(location).unwrap().text(), expected, "{location}");
        }
        for location in
            ["file:///etc/passwd", "javascript:x", "https:x", "//u@b.example/", "/\\b.example"]
        {
            assert!(base.join(location).is_err(), "{location}");
        }
    }
}
