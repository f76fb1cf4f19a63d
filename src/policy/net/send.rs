//! What the host adds to a request: headers made of text and of secrets, which are named and never valued here.

use std::fmt;

/// A header that the host adds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Send {
    /// Its name, in lower case.
    pub header: String,
    /// What it is made of.
    pub template: Template,
    /// The secrets in it, each with its source.
    pub secrets: Vec<Secret>,
}

/// A secret as a policy declares it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Secret {
    /// Its name in the policy.
    pub name: String,
    /// Where the host finds its value.
    pub source: SecretSource,
}

/// Where the host finds a secret.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SecretSource {
    /// A variable of the caller's environment.
    Env(String),
    /// A file, by its absolute path.
    File(String),
}

impl SecretSource {
    /// Reads `env:VAR` or `file:/absolute/path`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "env" => crate::variables::is_name(rest).then(|| Self::Env(rest.to_owned())),
            "file" => {
                let plain = rest.len() > 1
                    && rest.starts_with('/')
                    && !rest.ends_with('/')
                    && !rest.chars().any(char::is_control)
                    && rest[1..].split('/').all(|part| !["", ".", ".."].contains(&part));
                plain.then(|| Self::File(rest.to_owned()))
            }
            _ => None,
        }
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

/// The value of a header: text with secrets in it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Template {
    parts: Vec<Part>,
}

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Part {
    /// As it stands.
    Text(String),
    /// The value of this secret.
    Secret(String),
}

impl Template {
    /// Reads `Bearer ${secret:NAME}`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.trim() != text || text.is_empty() {
            return Err("a value neither is empty nor begins or ends with a space");
        }
        if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err("a value is made of printable ASCII characters");
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, after) = rest.split_at(at);
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (inside, tail) = after[2..].split_once('}').ok_or("a `${` without its `}`")?;
            let name = inside
                .strip_prefix("secret:")
                .filter(|name| !name.is_empty())
                .ok_or("only `${secret:NAME}` is filled in")?;
            parts.push(Part::Secret(name.to_owned()));
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The parts in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The names of the secrets in it.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Secret(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Secret(name) => write!(f, "${{secret:{name}}}"),
        })
    }
}

/// Headers that say how a message travels, not what it says. Who sets them could make two requests of one,
/// reach another host behind the same address, or get an answer that cannot be read as it streams.
const RESERVED: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Whether a header, in lower case, is set by the host alone.
#[must_use]
pub fn is_reserved_header(name: &str) -> bool {
    RESERVED.contains(&name) || name.starts_with("proxy-")
}

/// Whether a text can be the name of a header.
#[must_use]
pub fn is_header_name(name: &str) -> bool {
    /// No real header has a longer name.
    const LONGEST: usize = 128;
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= LONGEST && name.bytes().all(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_survive_writing_and_reading() {
        for text in ["Bearer ${secret:API}", "${secret:A}:${secret:B}", "plain", "a $ b } c"] {
            let template = Template::parse(text).unwrap();
            assert_eq!(template.to_string(), text);
        }
        let both = Template::parse("${secret:A}:${secret:B}").unwrap();
        assert_eq!(both.secrets().collect::<Vec<_>>(), ["A", "B"]);
    }

    #[test]
    fn templates_inject_nothing() {
        for text in
            ["", " x", "x ", "a\r\nb: c", "a\0", "é", "${secret:A", "${env:A}", "${secret:}"]
        {
            assert!(Template::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn sources_are_plain() {
        for text in ["env:API_TOKEN", "file:/run/secrets/api"] {
            assert_eq!(SecretSource::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "API",
            "env:",
            "env:A B",
            "file:x",
            "file:/",
            "file:/a/../b",
            "file:/a//b",
            "sh:x",
            "file:/a/",
        ] {
            assert_eq!(SecretSource::parse(text), None, "{text}");
        }
    }
}
