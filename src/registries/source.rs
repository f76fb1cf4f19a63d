//! One registry of a package manager.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use runner_policy::net::Registry;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// How a client proves to a registry who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// `Authorization: Bearer TOKEN`.
    Bearer(Secret),
    /// `Authorization: Basic …`, already encoded.
    Basic(Secret),
    /// `Authorization: TOKEN`, as cargo sends it.
    Plain(Secret),
}

impl Credential {
    /// Of a user and a password.
    #[must_use]
    pub fn of(user: &str, password: &str) -> Self {
        Self::Basic(Secret(STANDARD.encode(format!("{user}:{password}"))))
    }

    /// The value of the header `Authorization`.
    #[must_use]
    pub fn header(&self) -> String {
        match self {
            Self::Bearer(Secret(token)) => format!("Bearer {token}"),
            Self::Basic(Secret(encoded)) => format!("Basic {encoded}"),
            Self::Plain(Secret(token)) => token.clone(),
        }
    }

    /// What must not appear in an answer.
    #[must_use]
    pub fn secret(&self) -> &str {
        match self {
            Self::Bearer(Secret(text)) | Self::Basic(Secret(text)) | Self::Plain(Secret(text)) => {
                text
            }
        }
    }
}

/// What a client uses a registry for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// Everything that no other registry is for.
    Default,
    /// Further packages (`extra-index-url`).
    Extra,
    /// Packages of one scope (`@scope:registry`).
    Scope(String),
    /// The packages themselves, where the index leads to another host.
    Files,
}

/// A registry that a client of this machine is configured to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Whose.
    pub registry: Registry,
    /// What for.
    pub used: Use,
    /// `https`, or `http`.
    pub tls: bool,
    /// Its name, in lower case.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The path of its URL.
    pub path: String,
    /// How the host proves who asks. The sandbox never has it.
    pub credential: Option<Credential>,
}

impl Source {
    /// Reads an absolute URL; user and password in it become the credential.
    #[must_use]
    pub fn parse(registry: Registry, used: Use, url: &str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        // What different readers read in different ways is no address.
        if rest.contains(['\\', '?', '#'])
            || rest.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return None;
        }
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, place),
        };
        // The policy's own reader has the last word on names.
        let read = runner_policy::net::request("GET", &format!("{scheme}://{place}{path}"))?;
        let credential = match user.and_then(|user| user.split_once(':')) {
            Some((user, password)) => Some(Credential::of(&decoded(user)?, &decoded(password)?)),
            None => user.map(|user| Some(Credential::of(&decoded(user)?, ""))).unwrap_or_default(),
        };
        Some(Self {
            registry,
            used,
            tls,
            port: read.port?,
            host: read.host,
            path: path.to_owned(),
            credential,
        })
    }

    /// The URL, without credentials.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// Host, and port where it is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }

    /// Whether a URL is of this registry, so that its credential may go there.
    #[must_use]
    pub fn holds(&self, url: &str) -> bool {
        let base = self.url();
        let base = base.trim_end_matches('/');
        url.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    }
}

/// A text without percent-encoding; `None` if it is none.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let pair = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(pair, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}
