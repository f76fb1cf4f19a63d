//! Every request that built-in tools make, as a function.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::link::{Answer, Link};
use super::thrown::Refused;
use crate::broker::frame::Kind;
use crate::codes::Code;

/// The broker, as a tool sees it.
#[derive(Clone)]
pub struct Client {
    link: Arc<Link>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// What was read of a file.
#[derive(Debug)]
pub struct Contents {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the file has more.
    pub more: bool,
}

/// What is in a folder.
#[derive(Debug, Deserialize)]
pub struct Listing {
    /// Each entry.
    pub entries: Vec<Entry>,
    /// Whether there were too many.
    #[serde(default)]
    pub truncated: bool,
}

/// One entry of a folder.
#[derive(Debug, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// `file`, `dir`, `link` or `other`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// What a path leads to.
#[derive(Debug, Deserialize)]
pub struct Stat {
    /// `file`, `dir`, `link` or `other`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Bytes.
    pub size: u64,
}

/// Paths that a pattern covers.
#[derive(Debug, Deserialize)]
pub struct Paths {
    /// Each, below the folder that was searched.
    pub paths: Vec<String>,
    /// Whether there were too many.
    pub truncated: bool,
}

/// A command that should run.
#[derive(Debug, Default)]
pub struct Exec<'a> {
    /// Program and arguments, or nothing.
    pub argv: &'a [String],
    /// A shell line, instead.
    pub line: Option<&'a str>,
    /// In which folder.
    pub cwd: Option<&'a str>,
    /// Variables.
    pub env: &'a [(String, String)],
    /// Milliseconds.
    pub timeout: Option<u64>,
    /// Its standard input.
    pub stdin: Option<&'a [u8]>,
}

/// A command that ran.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub exit_code: i64,
    /// How it ended, in a word.
    pub status: String,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Whether something was left out of either.
    pub truncated: bool,
    /// Milliseconds.
    pub duration: u64,
    /// The id of its own call.
    pub call: String,
}

/// A request to the net.
#[derive(Debug)]
pub struct Fetch<'a> {
    /// The method.
    pub method: &'a str,
    /// Where.
    pub url: &'a str,
    /// Headers in order.
    pub headers: &'a [(String, String)],
    /// What is sent.
    pub body: Option<&'a [u8]>,
    /// Milliseconds.
    pub timeout: Option<u64>,
    /// Most bytes of the answer that are kept.
    pub most: usize,
}

/// An answer from the net.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u64,
    /// Its words.
    pub status_text: String,
    /// Where it came from.
    pub url: String,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether there was more of it.
    pub more: bool,
}

/// Bytes of a command's output that are kept here: more than its limits leave.
const OUTPUT_MAX: usize = 64 << 20;

impl Client {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self { link }
    }

    /// Reads at most so many bytes of a file.
    ///
    /// # Errors
    /// It may not be read, or is no file.
    pub async fn read(&self, path: &str, most: usize) -> Result<Contents, Refused> {
        // One byte more tells whether there is more.
        let params = json!({ "path": path, "length": most.saturating_add(1) });
        let Answer { bytes, more, .. } = self.link.ask("file.read", params, None, most).await?;
        Ok(Contents { bytes, more })
    }

    /// Gives a file this content, whole or not at all.
    ///
    /// # Errors
    /// It may not be written; or with `exclusive`, something is there.
    pub async fn write(&self, path: &str, content: &[u8], exclusive: bool) -> Result<u64, Refused> {
        let params = json!({ "path": path, "exclusive": exclusive });
        let answer = self.link.ask("file.write", params, Some(content), 0).await?;
        Ok(answer.ok["bytes"].as_u64().unwrap_or_default())
    }

    /// Lists a folder.
    ///
    /// # Errors
    /// It may not be read, or is no folder.
    pub async fn list(&self, path: &str) -> Result<Listing, Refused> {
        self.typed("file.list", json!({ "path": path })).await
    }

    /// Looks at what a path leads to.
    ///
    /// # Errors
    /// It may not be seen, or is not there.
    pub async fn stat(&self, path: &str) -> Result<Stat, Refused> {
        self.typed("file.stat", json!({ "path": path })).await
    }

    /// Makes a folder with its parents.
    ///
    /// # Errors
    /// It may not be made.
    pub async fn mkdir(&self, path: &str) -> Result<(), Refused> {
        let params = json!({ "path": path, "recursive": true });
        self.link.ask("file.mkdir", params, None, 0).await.map(drop)
    }

    /// Removes a file, or a folder; with `recursive`, all that is in it.
    ///
    /// # Errors
    /// It may not be removed, or is not there.
    pub async fn remove(&self, path: &str, recursive: bool) -> Result<(), Refused> {
        let params = json!({ "path": path, "recursive": recursive });
        self.link.ask("file.remove", params, None, 0).await.map(drop)
    }

    /// Looks for paths, names that start with a dot included.
    ///
    /// # Errors
    /// The pattern is none, or the folder may not be looked through.
    pub async fn glob(&self, pattern: &str, cwd: &str) -> Result<Paths, Refused> {
        self.typed("file.glob", json!({ "pattern": pattern, "cwd": cwd, "dot": true })).await
    }

    /// Runs a command in a sandbox.
    ///
    /// # Errors
    /// It may not run, or could not. A command that failed is no error.
    pub async fn exec(&self, exec: Exec<'_>) -> Result<Ran, Refused> {
        let mut params = Map::new();
        match (exec.line, exec.argv.split_first()) {
            (Some(line), _) => drop(params.insert("line".to_owned(), line.into())),
            (None, Some((program, args))) => {
                params.insert("command".to_owned(), json!(program));
                params.insert("args".to_owned(), json!(args));
            }
            (None, None) => {
                return Err(Refused::of_talk(Code::InvalidArgument, "there is no command"));
            }
        }
        if let Some(cwd) = exec.cwd {
            params.insert("cwd".to_owned(), cwd.into());
        }
        if !exec.env.is_empty() {
            let env = exec.env.iter().map(|(name, value)| (name.clone(), json!(value)));
            params.insert("env".to_owned(), Value::Object(env.collect()));
        }
        if let Some(timeout) = exec.timeout {
            params.insert("timeoutMs".to_owned(), timeout.into());
        }
        let params = Value::Object(params);
        let Answer { ok, bytes, .. } =
            self.link.ask("exec.run", params, exec.stdin, OUTPUT_MAX).await?;
        let figure = |key: &str| ok[key].as_u64().unwrap_or_default();
        let text = |key: &str| ok[key].as_str().unwrap_or_default().to_owned();
        let split = usize::try_from(figure("stdoutBytes")).unwrap_or(usize::MAX).min(bytes.len());
        let (stdout, stderr) = bytes.split_at(split);
        Ok(Ran {
            exit_code: ok["exitCode"].as_i64().unwrap_or_default(),
            status: text("status"),
            stdout: stdout.to_vec(),
            stderr: stderr.to_vec(),
            truncated: ok["truncated"] == true,
            duration: figure("durationMs"),
            call: text("call"),
        })
    }

    /// Fetches something. Redirects are followed where the policy allows the new place too.
    ///
    /// # Errors
    /// It may not be reached, or cannot be. An answer of any status is no error.
    pub async fn fetch(&self, fetch: Fetch<'_>) -> Result<Response, Refused> {
        let mut params =
            json!({ "method": fetch.method, "url": fetch.url, "headers": fetch.headers });
        if let (Some(timeout), Some(params)) = (fetch.timeout, params.as_object_mut()) {
            params.insert("timeoutMs".to_owned(), timeout.into());
        }
        let Answer { ok, bytes, more } =
            self.link.ask("net.fetch", params, fetch.body, fetch.most).await?;
        let text = |key: &str| ok[key].as_str().unwrap_or_default().to_owned();
        Ok(Response {
            status: ok["status"].as_u64().unwrap_or_default(),
            status_text: text("statusText"),
            url: text("url"),
            headers: serde_json::from_value(ok["headers"].clone()).unwrap_or_default(),
            body: bytes,
            more,
        })
    }

    /// Tells how far it has come.
    pub fn progress(&self, fraction: f64, text: &str) {
        let note = json!({ "progress": { "fraction": fraction, "text": text } });
        self.link.say(Kind::Note, note.to_string().as_bytes());
    }

    async fn typed<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, Refused> {
        let answer = self.link.ask(method, params, None, 0).await?;
        serde_json::from_value(answer.ok).map_err(|error| {
            Refused::of_talk(Code::TalkBroken, &format!("the host's answer: {error}"))
        })
    }
}
