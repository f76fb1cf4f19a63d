//! One talk with one server.
//!
//! Writing and reading go on at once: a server that talks before it listens, or that asks us something meanwhile, does
//! not stop the talk, and one that never listens is ended by the clock of its sandbox.

use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::answer::Answer;
use super::error::McpError;
use super::lines::Lines;
use super::message::{Message, cut, question, remark, reply};
use super::offer::{MAX_PAGES, MAX_TOOLS, Offered};

/// The versions that are spoken here, the newest first.
pub(super) const PROTOCOLS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The version that is proposed.
pub const PROTOCOL: &str = PROTOCOLS[0];

/// Longest name or version that a server gives itself.
const MAX_TITLE: usize = 200;
/// Longest mark of a page.
const MAX_CURSOR: usize = 4 << 10;

/// What a server says it is. Shown, never believed.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of the protocol that it speaks.
    pub protocol: String,
}

/// Our end of a talk.
pub struct Client<R, W> {
    lines: Lines<R>,
    writer: Option<W>,
    waiting: Vec<u8>,
    last: u64,
    peer: Peer,
    has_tools: bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Client<R, W> {
    /// Over a server's standard output and input.
    pub fn new(reader: R, writer: W) -> Self {
        Self {
            lines: Lines::new(reader),
            writer: Some(writer),
            waiting: Vec::new(),
            last: 0,
            peer: Peer::default(),
            has_tools: false,
        }
    }

    /// Greets the server.
    ///
    /// # Errors
    /// It does not answer as a server does, or in a version that is not spoken here.
    pub async fn greet(&mut self) -> Result<&Peer, McpError> {
        let params = json!({
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": { "name": "runner", "version": env!("CARGO_PKG_VERSION") },
        });
        let method = "initialize";
        let said = object(method, self.ask(method, params).await?)?;
        let text = |map: Option<&Value>, key: &str| {
            let text = map.and_then(|map| map.get(key)).and_then(Value::as_str);
            text.unwrap_or_default().chars().take(MAX_TITLE).collect::<String>()
        };
        let version = said.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let Some(protocol) = PROTOCOLS.iter().find(|known| **known == version) else {
            return Err(McpError::Version(version.chars().take(MAX_TITLE).collect()));
        };
        let info = said.get("serverInfo");
        self.peer = Peer {
            name: text(info, "name"),
            version: text(info, "version"),
            protocol: (*protocol).to_owned(),
        };
        self.has_tools = said.get("capabilities").is_some_and(|it| it.get("tools").is_some());
        self.queue(&remark("notifications/initialized"));
        Ok(&self.peer)
    }

    /// Every tool that it offers, page by page. What is wrong with a single one is that one's affair.
    ///
    /// # Errors
    /// The list itself cannot be read, or has no end.
    pub async fn tools(&mut self) -> Result<Vec<Offered>, McpError> {
        let method = "tools/list";
        let mut offered = Vec::new();
        if !self.has_tools {
            return Ok(offered);
        }
        let mut seen: Vec<String> = Vec::new();
        loop {
            let params =
                seen.last().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let mut page = object(method, self.ask(method, params).await?)?;
            let Some(Value::Array(tools)) = page.remove("tools") else {
                return Err(bad(method, "it has no list `tools`"));
            };
            if offered.len() + tools.len() > MAX_TOOLS {
                return Err(McpError::TooMany);
            }
            offered.extend(tools.into_iter().map(Offered::read));
            match page.remove("nextCursor") {
                None | Some(Value::Null) => return Ok(offered),
                Some(Value::String(cursor)) if cursor.is_empty() => return Ok(offered),
                Some(Value::String(cursor)) if cursor.len() <= MAX_CURSOR => {
                    if seen.contains(&cursor) {
                        return Err(bad(method, "the same page comes again and again"));
                    }
                    if seen.len() + 1 >= MAX_PAGES {
                        return Err(McpError::TooMany);
                    }
                    seen.push(cursor);
                }
                Some(_) => return Err(bad(method, "`nextCursor` is no short text")),
            }
        }
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// The talk broke. A tool that failed has answered.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, McpError> {
        let method = "tools/call";
        let params = json!({ "name": tool, "arguments": arguments });
        match self.ask(method, params).await {
            Ok(said) => Answer::read(object(method, said)?),
            Err(McpError::Refused { number, message, .. }) => {
                Ok(Answer::refused(number, cut(&message)))
            }
            Err(error) => Err(error),
        }
    }

    /// What the server says it is.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Says that nothing more comes, and hears the server out.
    pub async fn close(&mut self) {
        self.writer = None;
        self.lines.drain().await;
    }

    fn queue(&mut self, message: &Value) {
        self.waiting.extend_from_slice(message.to_string().as_bytes());
        self.waiting.push(b'\n');
    }

    /// Asks, and waits for the answer.
    async fn ask(&mut self, method: &'static str, params: Value) -> Result<Value, McpError> {
        self.last += 1;
        self.queue(&question(self.last, method, params));
        loop {
            let Self { lines, writer, waiting, .. } = self;
            let write = async {
                match writer {
                    Some(writer) if !waiting.is_empty() => writer.write(waiting).await,
                    _ => std::future::pending().await,
                }
            };
            let said = tokio::select! {
                written = write => {
                    match written {
                        Ok(count) if count > 0 => drop(self.waiting.drain(..count)),
                        // It does not listen any more; it may still have something to say.
                        Ok(_) | Err(_) => {
                            self.writer = None;
                            self.waiting.clear();
                        }
                    }
                    continue;
                }
                said = lines.next() => said?,
            };
            let Some(said) = said else { return Err(McpError::Ended { method }) };
            match Message::read(said)? {
                Message::Answer { id, result } if id == self.last => {
                    return result.map_err(|(number, message)| McpError::Refused {
                        method,
                        number,
                        message,
                    });
                }
                Message::Answer { .. } => return Err(McpError::NotAsked),
                Message::Question { id, method } => self.queue(&reply(&id, &method)),
                Message::Remark => {}
            }
        }
    }
}

fn object(method: &'static str, value: Value) -> Result<Map<String, Value>, McpError> {
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(bad(method, "it is no object")),
    }
}

fn bad(method: &'static str, why: &str) -> McpError {
    McpError::BadAnswer { method, why: why.to_owned() }
}
