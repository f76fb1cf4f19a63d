//! One message a line: over the standard streams, and over the unix socket.
//!
//! The library's own reader drops a line that is too long or no JSON, and its client waits for ever. This one answers
//! each line: a message that is taken, or an error of JSON-RPC.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServiceExt as _, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::sync::{Mutex, Semaphore};

use super::error::ServeError;
use super::host::Host;
use super::serve::Client;
use super::who::Who;
use crate::json;

/// The longest line.
pub const MAX_LINE: usize = json::MAX_BYTES;
/// How long answers are still written for a client that has closed its end.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How long a write may wait for a client that does not read.
const STUCK: Duration = Duration::from_secs(60);
/// Clients of the socket at once.
const CONNECTIONS: usize = 64;

/// Messages on lines.
struct Lines<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    too_long: bool,
    write: Arc<Mutex<W>>,
    left: Arc<dyn Fn() + Send + Sync>,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    fn new(read: R, write: W, left: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            too_long: false,
            write: Arc::new(Mutex::new(write)),
            left,
        }
    }

    /// The next line, or why there is none. It can be dropped while it waits: what was read stays.
    async fn next(&mut self) -> Option<Result<Vec<u8>, ErrorData>> {
        loop {
            let chunk = self.read.fill_buf().await.ok().filter(|chunk| !chunk.is_empty())?;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            if self.line.len() + taken > MAX_LINE {
                self.too_long = true;
                self.line = Vec::new();
            }
            if !self.too_long {
                self.line.extend_from_slice(&chunk[..taken]);
            }
            let used = end.map_or(taken, |end| end + 1);
            self.read.consume(used);
            if end.is_none() {
                continue;
            }
            if std::mem::take(&mut self.too_long) {
                let text = format!("a line is longer than {MAX_LINE} bytes");
                return Some(Err(ErrorData::new(ErrorCode::INVALID_REQUEST, text, None)));
            }
            let line = std::mem::take(&mut self.line);
            if !line.trim_ascii().is_empty() {
                return Some(Ok(line));
            }
        }
    }
}

/// A message, or the error that answers it and the id of what it answers.
pub(super) fn message(
    bytes: &[u8],
) -> Result<RxJsonRpcMessage<RoleServer>, Box<(ErrorData, Option<RequestId>)>> {
    let invalid = |text: String| ErrorData::new(ErrorCode::INVALID_REQUEST, text, None);
    let value: Value = json::read_as(bytes, json::Limits::USUAL).map_err(|error| {
        Box::new((ErrorData::new(ErrorCode::PARSE_ERROR, error.to_string(), None), None))
    })?;
    let id = value.get("id").and_then(|id| match id {
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        _ => None,
    });
    serde_json::from_value(value)
        .map_err(|error| Box::new((invalid(format!("not a message of the protocol: {error}")), id)))
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (write, left) = (Arc::clone(&self.write), Arc::clone(&self.left));
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let written = async {
                write.write_all(&line).await?;
                write.flush().await
            };
            let written = match tokio::time::timeout(STUCK, written).await {
                Ok(written) => written,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            };
            // A client that reads no answers has left.
            written.inspect_err(|_| left())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(line) = self.next().await else {
                let left = Arc::clone(&self.left);
                tokio::spawn(async move {
                    tokio::time::sleep(LAST_ANSWERS).await;
                    left();
                });
                return None;
            };
            let (error, id) = match line.map(|line| message(&line)) {
                Ok(Ok(message)) => return Some(message),
                Ok(Err(refused)) => *refused,
                Err(error) => (error, None),
            };
            self.send(TxJsonRpcMessage::<RoleServer>::error(error, id)).await.ok()?;
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        let _ = self.write.lock().await.shutdown().await;
        Ok(())
    }
}

/// Serves one client until it leaves; its calls end with it.
pub async fn serve_lines<R, W>(host: &Arc<Host>, who: Who, read: R, write: W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (left, gone) = (Arc::clone(host), who.clone());
    let lines = Lines::new(read, write, Arc::new(move || left.leave(&gone)));
    let client = Client::of(Arc::clone(host), who.clone());
    // A client that leaves before it has said who it is has nothing to be told.
    if let Ok(service) = client.serve(lines).await {
        let _ = service.waiting().await;
    }
    host.leave(&who);
}

/// Serves the client at the standard streams.
///
/// # Errors
/// This process cannot be named.
pub async fn serve_stdio(host: &Arc<Host>) -> Result<(), ServeError> {
    let who = Who::at_stdio().map_err(ServeError::Local)?;
    serve_lines(host, who, tokio::io::stdin(), tokio::io::stdout()).await;
    Ok(())
}

/// Removes the socket when the server ends.
struct Placed(PathBuf);

impl Drop for Placed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Serves clients of the same user at a unix socket, one connection each.
///
/// # Errors
/// There can be no socket at that place.
pub async fn serve_socket(host: &Arc<Host>, path: &Path) -> Result<(), ServeError> {
    let failed = |source| ServeError::Socket { path: path.to_owned(), source };
    let listener = place(path).map_err(failed)?;
    let _placed = Placed(path.to_owned());
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let own = rustix::process::getuid().as_raw();
    loop {
        let (stream, _) = listener.accept().await.map_err(failed)?;
        let peer = stream.peer_cred().ok().filter(|peer| peer.uid() == own);
        let pid = peer.and_then(|peer| u32::try_from(peer.pid()?).ok());
        let who = pid.and_then(|pid| Who::at_socket(pid).ok());
        // Another user, or a process that cannot be named: the connection is closed.
        let (Some(who), Ok(held)) = (who, Arc::clone(&places).try_acquire_owned()) else {
            continue;
        };
        let host = Arc::clone(host);
        tokio::spawn(async move {
            let (read, write) = stream.into_split();
            serve_lines(&host, who, read, write).await;
            drop(held);
        });
    }
}

/// A socket that only this user can connect to. One that a dead server left is replaced.
fn place(path: &Path) -> io::Result<UnixListener> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        let dead = found.file_type().is_socket()
            && std::os::unix::net::UnixStream::connect(path)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if !dead {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        std::fs::remove_file(path)?;
    }
    // The mode is set before the name exists for others: it is made in a folder of ours, then moved.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let chance: [u8; 8] = crate::sys::random()?;
    let name = format!(".runner-mcp-{:016x}", u64::from_le_bytes(chance));
    let folder = parent.unwrap_or(Path::new(".")).join(name);
    std::fs::DirBuilder::new().create(&folder)?;
    let placed = (|| {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
        let first = folder.join("socket");
        let listener = UnixListener::bind(&first)?;
        std::fs::set_permissions(&first, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&first, path)?;
        Ok(listener)
    })();
    let _ = std::fs::remove_dir_all(&folder);
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: Vec<u8>) -> Lines<io::Cursor<Vec<u8>>, Vec<u8>> {
        Lines::new(io::Cursor::new(text), Vec::new(), Arc::new(|| {}))
    }

    #[tokio::test]
    async fn every_line_is_answered_or_taken() {
        let long = [b"{\"id\": \"".to_vec(), vec![b'x'; MAX_LINE + 10], b"\"}\n".to_vec()].concat();
        let text = [
            &long[..],
            b"not json\n\n[]\n{\"id\": 7, \"method\": 1}\n{\"a\": 1, \"a\": 2}\n",
            b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\n",
        ]
        .concat();
        let mut lines = lines(text);
        assert!(lines.receive().await.is_some());
        let answered = String::from_utf8(lines.write.lock().await.clone()).unwrap();
        let answers: Vec<Value> =
            answered.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told = |answer: &Value| (answer["error"]["code"].as_i64(), answer["id"].clone());
        assert_eq!(
            answers.iter().map(told).collect::<Vec<_>>(),
            [
                (Some(-32600), Value::Null),
                (Some(-32700), Value::Null),
                (Some(-32600), Value::Null),
                (Some(-32600), 7.into()),
                (Some(-32700), Value::Null),
            ]
        );
    }
}
