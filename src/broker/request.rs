//! From a request's bytes to one action. Handlers see only this.
//!
//! Trust boundary: the bytes are the tool's. Duplicate keys, unknown keys, wrong types, unknown methods
//! and bodies where none belong are protocol errors: our own runtime sends none of them. What is
//! well-formed and still makes no sense (an empty path, a NUL byte) is refused by the handler.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::ProtocolError;
use super::exec::Command;
use super::fetch::Redirect;
use crate::json::{self, JsonError, Limits, Object};

/// Longest excerpt of an error that quotes the tool's own text.
const WHY_MAX: usize = 200;

/// What a tool asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// `file.read`
    Read {
        /// Which file.
        path: String,
        /// From where.
        offset: u64,
        /// At most so many bytes.
        length: Option<u64>,
    },
    /// `file.write`
    Write {
        /// Which file.
        path: String,
        /// Only if nothing is there.
        exclusive: bool,
    },
    /// `file.append`
    Append {
        /// Which file.
        path: String,
    },
    /// `file.list`
    List {
        /// Which folder.
        path: String,
    },
    /// `file.stat`
    Stat {
        /// Which path.
        path: String,
    },
    /// `file.remove`
    Remove {
        /// Which path.
        path: String,
        /// With all that is in it.
        recursive: bool,
        /// Nothing there is no error.
        force: bool,
    },
    /// `file.rename`
    Rename {
        /// From which path.
        from: String,
        /// To which path.
        to: String,
    },
    /// `file.mkdir`
    Mkdir {
        /// Which folder.
        path: String,
        /// With its parents; that it exists is no error.
        recursive: bool,
    },
    /// `file.glob`
    Glob {
        /// What to look for.
        pattern: String,
        /// In which folder; the workspace by default.
        cwd: Option<String>,
        /// Whether `*` covers names that start with a dot.
        dot: bool,
        /// Most paths.
        limit: Option<u64>,
    },
    /// `exec.run`
    Exec {
        /// What is to run.
        command: Command,
        /// In which folder; the workspace by default.
        cwd: Option<String>,
        /// Variables.
        env: Vec<(String, String)>,
        /// How long it may take.
        timeout: Option<Duration>,
    },
    /// `net.fetch`
    Fetch {
        /// The HTTP method.
        method: String,
        /// The URL.
        url: String,
        /// Headers.
        headers: Vec<(String, String)>,
        /// How long it may take.
        timeout: Option<Duration>,
        /// What a redirect means.
        redirect: Redirect,
    },
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub action: Action,
    /// Whether chunks and an end follow.
    pub body: bool,
}

impl Action {
    /// The method's name in the talk.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::Read { .. } => "file.read",
            Self::Write { .. } => "file.write",
            Self::Append { .. } => "file.append",
            Self::List { .. } => "file.list",
            Self::Stat { .. } => "file.stat",
            Self::Remove { .. } => "file.remove",
            Self::Rename { .. } => "file.rename",
            Self::Mkdir { .. } => "file.mkdir",
            Self::Glob { .. } => "file.glob",
            Self::Exec { .. } => "exec.run",
            Self::Fetch { .. } => "net.fetch",
        }
    }

    fn takes_body(&self) -> bool {
        matches!(
            self,
            Self::Write { .. } | Self::Append { .. } | Self::Exec { .. } | Self::Fetch { .. }
        )
    }
}

/// Reads a request.
///
/// # Errors
/// It is none.
pub fn decode(payload: &[u8]) -> Result<Request, ProtocolError> {
    let bad = |error: JsonError| ProtocolError::BadJson { kind: "request", why: why(&error) };
    // The first reading finds the method, the second reads everything for it, strictly.
    let Object(head): Object<Envelope<IgnoredAny>> =
        json::read_as(payload, Limits::USUAL).map_err(bad)?;
    let action = match head.method.as_str() {
        "file.read" => read::<ReadParams>(payload)?.into(),
        "file.write" => read::<WriteParams>(payload)?.into(),
        "file.append" => {
            let PathParams { path } = read_as("file.append", payload)?;
            Action::Append { path }
        }
        "file.list" => {
            let PathParams { path } = read_as("file.list", payload)?;
            Action::List { path }
        }
        "file.stat" => {
            let PathParams { path } = read_as("file.stat", payload)?;
            Action::Stat { path }
        }
        "file.remove" => read::<RemoveParams>(payload)?.into(),
        "file.rename" => read::<RenameParams>(payload)?.into(),
        "file.mkdir" => read::<MkdirParams>(payload)?.into(),
        "file.glob" => read::<GlobParams>(payload)?.into(),
        "exec.run" => read::<ExecParams>(payload)?.action()?,
        "net.fetch" => read::<FetchParams>(payload)?.into(),
        other => return Err(ProtocolError::UnknownMethod(shortened(other))),
    };
    if head.body && !action.takes_body() {
        return Err(ProtocolError::UnwantedBody(action.method()));
    }
    Ok(Request { action, body: head.body })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<P> {
    method: String,
    params: P,
    #[serde(default)]
    body: bool,
}

/// Parameters that belong to one method only.
trait Params: for<'de> Deserialize<'de> {
    const METHOD: &'static str;
}

fn read<P: Params>(payload: &[u8]) -> Result<P, ProtocolError> {
    read_as(P::METHOD, payload)
}

fn read_as<P: for<'de> Deserialize<'de>>(
    method: &'static str,
    payload: &[u8],
) -> Result<P, ProtocolError> {
    json::read_as::<Object<Envelope<Object<P>>>>(payload, Limits::USUAL)
        .map(|Object(envelope)| envelope.params.0)
        .map_err(|error| ProtocolError::BadParams { method, why: why(&error) })
}

/// What is wrong, in bounds: it quotes what was found, and that is the tool's.
pub(super) fn why(error: &JsonError) -> String {
    match error {
        JsonError::TooLarge { .. } => error.to_string(),
        JsonError::Unreadable { why, line, column } => {
            shortened(&format!("{why} at line {line} column {column}"))
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(WHY_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

macro_rules! params {
    ($name:ident $method:literal { $($(#[$meta:meta])* $field:ident: $type:ty),* $(,)? } $from:expr) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        struct $name { $($(#[$meta])* $field: $type),* }

        impl Params for $name {
            const METHOD: &'static str = $method;
        }

        impl From<$name> for Action {
            fn from(params: $name) -> Self {
                let made: fn($name) -> Action = $from;
                made(params)
            }
        }
    };
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathParams {
    path: String,
}

params! { ReadParams "file.read" { path: String, #[serde(default)] offset: Option<u64>, #[serde(default)] length: Option<u64> }
    |p| Action::Read { path: p.path, offset: p.offset.unwrap_or(0), length: p.length }
}
params! { WriteParams "file.write" { path: String, #[serde(default)] exclusive: bool }
    |p| Action::Write { path: p.path, exclusive: p.exclusive }
}
params! { RemoveParams "file.remove" { path: String, #[serde(default)] recursive: bool, #[serde(default)] force: bool }
    |p| Action::Remove { path: p.path, recursive: p.recursive, force: p.force }
}
params! { RenameParams "file.rename" { from: String, to: String }
    |p| Action::Rename { from: p.from, to: p.to }
}
params! { MkdirParams "file.mkdir" { path: String, #[serde(default)] recursive: bool }
    |p| Action::Mkdir { path: p.path, recursive: p.recursive }
}
params! { GlobParams "file.glob" {
        pattern: String, #[serde(default)] cwd: Option<String>, #[serde(default)] dot: bool, #[serde(default)] limit: Option<u64>
    }
    |p| Action::Glob { pattern: p.pattern, cwd: p.cwd, dot: p.dot, limit: p.limit }
}
params! { FetchParams "net.fetch" {
        method: String, url: String, #[serde(default)] headers: Vec<(String, String)>,
        #[serde(default)] timeout_ms: Option<u64>, #[serde(default)] redirect: RedirectWord
    }
    |p| Action::Fetch {
        method: p.method,
        url: p.url,
        headers: p.headers,
        timeout: p.timeout_ms.map(Duration::from_millis),
        redirect: p.redirect.into(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ExecParams {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    line: Option<String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    env: Variables,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

impl Params for ExecParams {
    const METHOD: &'static str = "exec.run";
}

impl ExecParams {
    fn action(self) -> Result<Action, ProtocolError> {
        let command = match (self.command, self.args, self.line) {
            (Some(program), args, None) => {
                Command::Argv(std::iter::once(program).chain(args.unwrap_or_default()).collect())
            }
            (None, None, Some(line)) => Command::Line(line),
            _ => {
                return Err(ProtocolError::BadParams {
                    method: Self::METHOD,
                    why: "either `command` with `args`, or `line`".to_owned(),
                });
            }
        };
        Ok(Action::Exec {
            command,
            cwd: self.cwd,
            env: self.env.0,
            timeout: self.timeout_ms.map(Duration::from_millis),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum RedirectWord {
    #[default]
    Follow,
    Manual,
    Error,
}

impl From<RedirectWord> for Redirect {
    fn from(word: RedirectWord) -> Self {
        match word {
            RedirectWord::Follow => Self::Follow,
            RedirectWord::Manual => Self::Manual,
            RedirectWord::Error => Self::Error,
        }
    }
}

/// `{"NAME": "value"}`, each name once.
#[derive(Default)]
struct Variables(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Variables {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = Variables;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("variables by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Variables, A::Error> {
                let mut seen = std::collections::HashSet::new();
                let mut variables = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    if !seen.insert(name.clone()) {
                        return Err(de::Error::custom(format!("duplicate variable {name:?}")));
                    }
                    variables.push((name, value));
                }
                Ok(Variables(variables))
            }
        }

        from.deserialize_map(Names)
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
