//! A connection to the daemon of its own, and one request on it.
//!
//! Whoever holds a copy of the connection sees when the daemon is done with the request: it closes it then, and not
//! before, also when the one who asked has died. Requests that share connections cannot show that.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::BollardRequest;
use bollard::errors::Error;
use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::connect::{REACH, REQUEST_SECONDS};
use crate::engine::error::EngineError;

/// How long a connection may take.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// What a connection is to those who use it.
pub(super) trait Stream: AsyncRead + AsyncWrite + AsFd + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + AsFd + Unpin + Send> Stream for S {}

/// A connection on which nothing was asked yet.
pub struct Line(Box<dyn Stream>);

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Line").field(&self.as_fd()).finish()
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Line {
    /// Connects to `unix:///path` or `tcp://host:port`.
    pub(super) async fn open(endpoint: &str) -> Result<Self, EngineError> {
        let failed = |error: io::Error| {
            let endpoint = endpoint.to_owned();
            match error.kind() {
                io::ErrorKind::PermissionDenied => EngineError::NotPermitted { endpoint },
                _ => EngineError::Missing { endpoint },
            }
        };
        let connecting = async {
            Ok(Self(match endpoint.split_once("://") {
                Some(("unix", path)) if path.starts_with('/') => {
                    Box::new(UnixStream::connect(path).await.map_err(failed)?)
                }
                Some(("tcp" | "http", address)) => {
                    let address = address.trim_end_matches('/');
                    Box::new(TcpStream::connect(address).await.map_err(failed)?)
                }
                _ => return Err(EngineError::BadEndpoint { endpoint: endpoint.to_owned() }),
            }))
        };
        tokio::time::timeout(CONNECT_WAIT, connecting)
            .await
            .unwrap_or(Err(EngineError::Slow { operation: REACH }))
    }

    /// The bare connection.
    pub(super) fn into_stream(self) -> Box<dyn Stream> {
        self.0
    }

    /// A client like `other`, for one request, which goes over this line.
    pub(super) fn client(self, other: &bollard::Docker) -> Result<bollard::Docker, Error> {
        let line = Mutex::new(Some(self.0));
        let request = move |request| {
            let line = line.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move {
                let used = || io::Error::other("a line carries one request");
                send(line.ok_or_else(used)?, request).await
            }
        };
        bollard::Docker::connect_with_custom_transport(
            request,
            Some("http://docker"),
            REQUEST_SECONDS,
            &other.client_version(),
        )
    }
}

async fn send(
    stream: Box<dyn Stream>,
    request: BollardRequest,
) -> Result<Response<Incoming>, Error> {
    let (mut head, body) = request.into_parts();
    if let Some(path) = head.uri.path_and_query() {
        head.uri = path.clone().into();
    }
    head.headers.insert(HOST, HeaderValue::from_static("docker"));
    // Its end is the end of the request, for all who hold it; unless it becomes another conversation.
    head.headers.entry(CONNECTION).or_insert(HeaderValue::from_static("close"));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // What goes wrong is told to whoever waits for the answer.
    tokio::spawn(connection.with_upgrades());
    Ok(sender.send_request(BollardRequest::from_parts(head, body)).await?)
}
