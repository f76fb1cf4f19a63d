//! One request on one connection, up to the head of its answer.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::Builder;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use super::headers::Headers;
use super::limits;
use super::url::Url;
use crate::broker::Refusal;
use crate::codes::Code;

/// What is sent.
pub(super) struct Outgoing<'r> {
    pub method: &'r str,
    pub url: &'r Url,
    pub headers: &'r Headers,
    /// What the policy adds; stands in for headers of the same name.
    pub added: &'r [(HeaderName, HeaderValue)],
    pub body: Option<Bytes>,
}

/// The task that moves a connection's bytes; it ends with whoever holds this.
#[derive(Debug)]
pub(super) struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends and waits for the head of the answer.
///
/// # Errors
/// The peer does not speak HTTP, or more of it than we listen to.
pub(super) async fn exchange<S>(
    stream: S,
    outgoing: Outgoing<'_>,
) -> Result<(Response<Incoming>, Driver), Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let authority = outgoing.url.authority();
    let failed = |error: hyper::Error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let message = format!("{authority}: {error}{}", cause.unwrap_or_default());
        Refusal::new(Code::NetProtocol, message)
    };
    let request = request(&outgoing)?;
    let (mut sender, connection) = Builder::new()
        .max_headers(limits::ANSWER_HEADERS)
        .max_header_size(limits::ANSWER_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let driver = Driver(tokio::spawn(async move {
        // What goes wrong is told to whoever waits for the answer or its body.
        let _ = connection.await;
    }));
    let answer = sender.send_request(request).await.map_err(failed)?;
    if answer.status().is_informational() {
        let message = format!("{authority} wants to speak something else than HTTP");
        return Err(Refusal::new(Code::NetProtocol, message));
    }
    Ok((answer, driver))
}

fn request(outgoing: &Outgoing<'_>) -> Result<Request<Full<Bytes>>, Refusal> {
    let Outgoing { method, url, headers, added, body } = outgoing;
    let mut request = Request::builder().method(*method).uri(url.path_and_query());
    if let Some(map) = request.headers_mut() {
        for (name, value) in *headers {
            map.append(name.clone(), value.clone());
        }
        let own = |text: &'static str| HeaderValue::from_static(text);
        map.entry(header::USER_AGENT).or_insert(own(concat!("runner/", env!("CARGO_PKG_VERSION"))));
        map.entry(header::ACCEPT).or_insert(own("*/*"));
        map.insert(header::ACCEPT_ENCODING, own("identity"));
        map.insert(header::CONNECTION, own("close"));
        if let Ok(host) = HeaderValue::from_str(&url.authority()) {
            map.insert(header::HOST, host);
        }
        for (name, value) in *added {
            map.insert(name.clone(), value.clone());
        }
    }
    request.body(Full::new(body.clone().unwrap_or_default())).map_err(|error| {
        Refusal::new(Code::InvalidArgument, format!("the request cannot be written: {error}"))
    })
}
