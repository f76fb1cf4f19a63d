//! Finds the daemon and agrees on a version of its protocol.
//!
//! The first word is a ping, which costs under a millisecond and answers with the newest version
//! that the daemon speaks; asking for more than that would be refused. A daemon with a socket of its own is asked
//! once in a while.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, ClientVersion};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::cache::{Age, Memory};
use super::line::{Line, Stream};
use crate::engine::address::Address;
use crate::engine::choice::EngineName;
use crate::engine::error::EngineError;
use crate::engine::lifeline::REQUEST_WAIT;
use crate::engine::open::{Variable, cache_folder};
use crate::engine::traits::Facts;

/// The oldest protocol: Docker 20.10.
pub const API_MIN: &str = "1.41";

/// The same as numbers.
const API_MIN_NUMBERS: Api = (1, 41);

/// A version of the protocol.
type Api = (usize, usize);

/// Seconds that one request may take.
pub(super) const REQUEST_SECONDS: u64 = REQUEST_WAIT.as_secs();

/// How long an operation may take, which can be several requests. The client bounds the wait for the head of each answer; this
/// bounds what follows it too, so that an engine that stops in the middle of an answer holds nothing up for ever.
const OPERATION_WAIT: Duration = Duration::from_secs(3 * REQUEST_SECONDS);

/// How long a ping may take.
const PING_WAIT: Duration = Duration::from_secs(10);

/// How long it is remembered what a daemon speaks. It changes when another version is installed.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What is tried here, in errors.
pub(super) const REACH: &str = "reach the Docker engine";

/// The longest answer to a ping that is read.
const PING_MAX: u64 = 16 << 10;

/// Where a daemon is by itself.
const SOCKET: &str = "/var/run/docker.sock";

/// A Docker daemon that answered.
#[derive(Clone)]
pub struct Docker {
    pub(super) client: bollard::Docker,
    pub(super) address: Address,
    api: String,
    pub(super) version: String,
    /// What it is, once it was asked: a call wants to know more than once.
    pub(super) facts: Arc<OnceLock<Facts>>,
    /// The connection by which it was found, if nothing was asked on it.
    spare: Arc<Mutex<Option<Line>>>,
    /// Where it is remembered what was learned from the daemon.
    pub(super) cache: Option<PathBuf>,
}

impl fmt::Debug for Docker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Docker({}, {})", self.address, self.api)
    }
}

impl Docker {
    /// Connects to the daemon that `DOCKER_HOST` names, else the system's, else this user's own.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub async fn connect(variable: Variable<'_>) -> Result<Self, EngineError> {
        let text = |name| variable(name).and_then(|value| value.into_string().ok());
        let cache = cache_folder(variable);
        if let Some(endpoint) = text("DOCKER_HOST").filter(|endpoint| !endpoint.is_empty()) {
            return Self::connect_to(&endpoint, cache).await;
        }
        let system = Self::connect_to(&format!("unix://{SOCKET}"), cache.clone()).await;
        match (system, rootless_socket(text("XDG_RUNTIME_DIR"))) {
            (Err(error), Some(socket)) if error.is_out_of_reach() => {
                Self::connect_to(&format!("unix://{socket}"), cache).await
            }
            (system, _) => system,
        }
    }

    /// Connects to the daemon at `unix:///path` or `tcp://host:port`. What is learned from it is kept in this folder.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub async fn connect_to(endpoint: &str, cache: Option<PathBuf>) -> Result<Self, EngineError> {
        let line = Line::open(endpoint).await?;
        let (pong, spare) = match memory(endpoint, cache.as_deref()) {
            Some(memory) => remembered_pong(endpoint, memory, line).await?,
            None => (pong(endpoint, line).await?, None),
        };
        if pong.os != "linux" {
            return Err(EngineError::NotLinux { os: pong.os });
        }
        if pong.api < API_MIN_NUMBERS {
            return Err(EngineError::TooOld { api: format!("{}.{}", pong.api.0, pong.api.1) });
        }
        let newest = (API_DEFAULT_VERSION.major_version, API_DEFAULT_VERSION.minor_version);
        let (major_version, minor_version) = pong.api.min(newest);
        let api = ClientVersion { major_version, minor_version };
        let client = if endpoint.starts_with("unix://") {
            bollard::Docker::connect_with_unix(endpoint, REQUEST_SECONDS, &api)
        } else {
            bollard::Docker::connect_with_http(endpoint, REQUEST_SECONDS, &api)
        }
        .map_err(|error| EngineError::from_client(REACH, error))?;
        Ok(Self {
            client,
            address: Address::new(EngineName::Docker, endpoint),
            api: api.to_string(),
            version: pong.version,
            facts: Arc::default(),
            spare: Arc::new(Mutex::new(spare)),
            cache,
        })
    }

    /// A connection for one request: that by which the daemon was found, if nobody has used it.
    pub(super) async fn any_line(&self) -> Result<Line, EngineError> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        match spare {
            Some(line) => Ok(line),
            None => self.line().await,
        }
    }

    /// A connection of its own.
    pub(super) async fn line(&self) -> Result<Line, EngineError> {
        Line::open(self.address.place()).await
    }

    /// What is remembered of the daemon, if it has a socket.
    pub(super) fn memory(&self) -> Option<Memory<'_>> {
        memory(self.address.place(), self.cache.as_deref())
    }
}

fn memory<'a>(endpoint: &'a str, cache: Option<&'a Path>) -> Option<Memory<'a>> {
    Some(Memory { socket: Path::new(endpoint.strip_prefix("unix://")?), folder: cache? })
}

/// Bounds an operation of the engine.
pub(super) async fn in_time<T>(
    operation: &'static str,
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    tokio::time::timeout(OPERATION_WAIT, work).await.unwrap_or(Err(EngineError::Slow { operation }))
}

/// The socket of a rootless daemon of this user, if there is one.
fn rootless_socket(runtime_folder: Option<String>) -> Option<String> {
    let uid = rustix::process::getuid().as_raw();
    let runtime = runtime_folder.unwrap_or_else(|| format!("/run/user/{uid}"));
    let socket = format!("{runtime}/docker.sock");
    Path::new(&socket).exists().then_some(socket)
}

/// What the daemon behind a socket is. That it is there is seen each time; what it speaks is remembered.
/// Then nothing was asked on the line.
async fn remembered_pong(
    endpoint: &str,
    memory: Memory<'_>,
    line: Line,
) -> Result<(Pong, Option<Line>), EngineError> {
    const WHAT: &str = "speaks";
    match memory.get(WHAT, Age::Within(REMEMBERED)) {
        Some(pong) => Ok((pong, Some(line))),
        None => {
            let pong = pong(endpoint, line).await?;
            memory.put(WHAT, &pong);
            Ok((pong, None))
        }
    }
}

/// What the daemon at the other end of a line is.
async fn pong(endpoint: &str, line: Line) -> Result<Pong, EngineError> {
    let answer = ping(line.into_stream()).await.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => EngineError::Slow { operation: REACH },
        _ => EngineError::Lost { operation: REACH, why: error.to_string() },
    })?;
    Pong::read(&answer).ok_or_else(|| EngineError::Lost {
        operation: REACH,
        why: format!("{endpoint} does not answer like Docker"),
    })
}

/// Asks for a ping and reads the whole answer.
async fn ping(mut stream: Box<dyn Stream>) -> io::Result<Vec<u8>> {
    const ASK: &[u8] = b"GET /_ping HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n";
    let talk = async {
        stream.write_all(ASK).await?;
        let mut answer = Vec::with_capacity(1 << 10);
        stream.take(PING_MAX).read_to_end(&mut answer).await?;
        Ok(answer)
    };
    tokio::time::timeout(PING_WAIT, talk)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// What a ping tells.
#[derive(Debug, Serialize, Deserialize)]
struct Pong {
    api: Api,
    version: String,
    os: String,
}

impl Pong {
    fn read(answer: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(answer);
        let (head, _) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        if lines.next()?.split(' ').nth(1)? != "200" {
            return None;
        }
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let (major, minor) = header("Api-Version")?
            .split_once('.')
            .map(|(major, minor)| (major.parse().ok(), minor.parse().ok()))?;
        let server = header("Server").unwrap_or_default();
        let version = server.split([' ', '/']).nth(1).unwrap_or("unknown").to_owned();
        Some(Self {
            api: (major?, minor?),
            version,
            os: header("Ostype").unwrap_or_else(|| "linux".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_tells_versions() {
        let answer = b"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nOstype: linux\r\nServer: Docker/20.10.24+dfsg1 (linux)\r\n\r\nOK";
        let pong = Pong::read(answer).unwrap();
        assert_eq!(pong.api, (1, 41));
        assert_eq!(pong.version, "20.10.24+dfsg1");
        for bad in [
            &b""[..],
            b"HTTP/1.1 500 X\r\nApi-Version: 1.41\r\n\r\n",
            b"SSH-2.0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n",
        ] {
            assert!(Pong::read(bad).is_none());
        }
    }
}
