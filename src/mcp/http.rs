//! The protocol over HTTP, on TCP.
//!
//! Before the protocol sees a request: its path, its token, that its session is the client's own, the size and the form of
//! its body. Host and origin are checked by the library, with the lists that are made here.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::error::ServeError;
use super::lines::message;
use super::who::Who;
use crate::json;

/// Where the protocol is spoken.
const PATH: &str = "/mcp";
/// The largest body.
const MAX_BODY: usize = json::MAX_BYTES;
/// How long a body may take to come.
const BODY: Duration = Duration::from_secs(30);
/// How long the head of a request may take to come.
const HEAD: Duration = Duration::from_secs(15);
/// Connections at once.
const CONNECTIONS: usize = 256;
/// Sessions of one client at once.
const SESSIONS: usize = 32;
/// The header that names a session.
const SESSION: &str = "mcp-session-id";

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Decides which requests come in.
pub trait Gate: Send + Sync + 'static {
    /// The client that sends this token; `None` if no client does.
    fn admit(&self, token: Option<&str>) -> Option<Who>;
}

/// Names under which the server may be reached, beside those of the loopback.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Further values of `Host`.
    pub hosts: Vec<String>,
    /// Further values of `Origin`.
    pub origins: Vec<String>,
}

/// Listens. Without `plain` only loopback addresses are taken.
///
/// # Errors
/// The address is not a loopback one, or cannot be listened at.
pub async fn bind(address: SocketAddr, plain: bool) -> Result<TcpListener, ServeError> {
    if !address.ip().is_loopback() && !plain {
        return Err(ServeError::NotLoopback(address));
    }
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

struct Door<H: ServerHandler> {
    service: StreamableHttpService<H, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    gate: Arc<dyn Gate>,
    /// Whose each session is.
    sessions: Mutex<HashMap<String, String>>,
}

/// Serves until it is dropped. `make` makes the handler of a session or of a request.
pub async fn serve_http<H: ServerHandler>(
    listener: TcpListener,
    gate: Arc<dyn Gate>,
    reach: Reach,
    make: impl Fn() -> H + Send + Sync + 'static,
) -> Result<(), ServeError> {
    let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let origins = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(str::to_owned);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(loopback.into_iter().chain(reach.hosts))
        .with_allowed_origins(origins.into_iter().chain(reach.origins))
        .enforce_origin_validation()
        .with_max_request_body_bytes(MAX_BODY);
    let manager = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(make()), Arc::clone(&manager), config);
    let door = Arc::new(Door { service, manager, gate, sessions: Mutex::default() });
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let held = Arc::clone(&places).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: connections that end give some back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Answers are small and wait for nothing.
        let _ = stream.set_nodelay(true);
        let door = Arc::clone(&door);
        tokio::spawn(async move {
            let serve = service_fn(move |request| {
                let door = Arc::clone(&door);
                async move { Ok::<_, Infallible>(door.answer(request).await) }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(stream), serve)
                .await;
            drop(held);
        });
    }
}

impl<H: ServerHandler> Door<H> {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        match self.admit(request).await {
            Ok((who, request)) => {
                let answer = self.service.handle(request).await;
                if let Some(session) = session(answer.headers()) {
                    self.sessions().insert(session.to_owned(), who.owner().to_owned());
                }
                answer
            }
            Err(refusal) => *refusal,
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn admit(
        &self,
        request: Request<Incoming>,
    ) -> Result<(Who, Request<Full<Bytes>>), Box<Answer>> {
        let (mut parts, body) = request.into_parts();
        if parts.uri.path() != PATH {
            return Err(refuse(StatusCode::NOT_FOUND, -32600, "the protocol is spoken at /mcp"));
        }
        let Some(who) = self.gate.admit(token(&parts.headers)) else {
            let text = "a token is needed: Authorization: Bearer TOKEN (runner mcp token new NAME)";
            let mut refusal = refuse(StatusCode::UNAUTHORIZED, -32001, text);
            let headers = refusal.headers_mut();
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"runner\""));
            return Err(refusal);
        };
        self.own_session(&who, &parts).await?;
        let bytes = match parts.method {
            Method::POST => read(body).await?,
            _ => Bytes::new(),
        };
        parts.extensions.insert(who.clone());
        // The token goes no further.
        parts.headers.remove(AUTHORIZATION);
        Ok((who, Request::from_parts(parts, Full::new(bytes))))
    }

    /// A session is its client's alone; to others it does not exist. A client has so many at once.
    async fn own_session(&self, who: &Who, parts: &Parts) -> Result<(), Box<Answer>> {
        let Some(session) = session(&parts.headers) else {
            let own: Vec<String> = {
                let sessions = self.sessions();
                let own = sessions.iter().filter(|(_, owner)| *owner == who.owner());
                own.map(|(session, _)| session.clone()).collect()
            };
            let mut live = 0;
            for session in own.into_iter().filter(|_| parts.method == Method::POST) {
                if self.manager.has_session(&session.as_str().into()).await.unwrap_or(false) {
                    live += 1;
                } else {
                    self.sessions().remove(&session);
                }
            }
            if live >= SESSIONS {
                let text = "this client has too many sessions; end one with DELETE";
                return Err(refuse(StatusCode::TOO_MANY_REQUESTS, -32000, text));
            }
            return Ok(());
        };
        let is_own = self.sessions().get(session).is_some_and(|owner| owner == who.owner());
        if is_own {
            Ok(())
        } else {
            Err(refuse(StatusCode::NOT_FOUND, -32001, "there is no such session"))
        }
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

/// A body within its bounds, of strict JSON.
async fn read(body: Incoming) -> Result<Bytes, Box<Answer>> {
    let whole = tokio::time::timeout(BODY, Limited::new(body, MAX_BODY).collect()).await;
    let bytes = match whole {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let text = "the body is too large";
            return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, -32600, text));
        }
        Ok(Err(_)) => return Err(refuse(StatusCode::BAD_REQUEST, -32700, "the body broke off")),
        Err(_) => return Err(refuse(StatusCode::REQUEST_TIMEOUT, -32600, "the body is too slow")),
    };
    match message(&bytes) {
        Ok(_) => Ok(bytes),
        Err(refused) => {
            let (error, id) = *refused;
            let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            Err(answer_with(StatusCode::BAD_REQUEST, body))
        }
    }
}

/// An error of JSON-RPC that answers no request in particular.
fn refuse(status: StatusCode, code: i32, text: &str) -> Box<Answer> {
    let error = json!({ "code": code, "message": text });
    answer_with(status, json!({ "jsonrpc": "2.0", "id": null, "error": error }))
}

fn answer_with(status: StatusCode, body: Value) -> Box<Answer> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())).boxed());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Box::new(response)
}
