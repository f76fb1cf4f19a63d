//! One tunnel from its first byte to its end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use hyper::body::{Body, Incoming};
use hyper::header::CONTENT_ENCODING;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::timeout;

use super::answer::{self, Answer, FromServer, Outgoing, Pending};
use super::head::{self, Head};
use super::powers::{Dialer, Exchange, Granted, Judge, Records, Stream};
use super::upstream::Upstream;
use super::{Authority, hello, limits};
use crate::audit::Redactor;
use crate::broker::Refusal;
use crate::broker::net::Roots;
use crate::codes::Code;

/// What the client speaks, and what the server is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 over TLS.
    Https,
    /// HTTP/1.1 as it is.
    Http,
}

/// Where a tunnel leads, as the program asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The asked name, in lower case.
    pub name: String,
    /// The port.
    pub port: u16,
    /// What is spoken there.
    pub protocol: Protocol,
}

impl Place {
    /// Host, and port where it is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.protocol.port() {
            self.name.clone()
        } else {
            format!("{}:{}", self.name, self.port)
        }
    }
}

/// Inspects the tunnels of one call.
#[derive(Clone)]
pub struct Inspector {
    pub(super) authority: Arc<Authority>,
    pub(super) judge: Arc<dyn Judge>,
    pub(super) records: Arc<dyn Records>,
    pub(super) redactor: Redactor,
    pub(super) roots: Arc<Roots>,
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").field("authority", &self.authority).finish_non_exhaustive()
    }
}

impl Inspector {
    /// For one call. The redactor knows every credential that the judge gives out.
    #[must_use]
    pub fn new(
        authority: Arc<Authority>,
        judge: Arc<dyn Judge>,
        records: Arc<dyn Records>,
        redactor: Redactor,
    ) -> Self {
        Self { authority, judge, records, redactor, roots: Arc::new(Roots::System) }
    }

    /// Serves a tunnel until one end closes it. `stream` is the program's end.
    ///
    /// # Errors
    /// The program does not speak what is inspected; [`Records::refused`] was told.
    pub async fn serve(
        &self,
        place: &Place,
        stream: impl Stream + 'static,
        dialer: &dyn Dialer,
    ) -> Result<(), Refusal> {
        let served = match place.protocol {
            Protocol::Http => self.speak(place, stream, dialer).await,
            Protocol::Https => match hello::accept(&self.authority, place, stream).await {
                Ok(stream) => self.speak(place, stream, dialer).await,
                Err(refusal) => Err(refusal),
            },
        };
        if let Err(refusal) = &served {
            self.records.refused(&place.name, place.port, refusal);
        }
        served
    }

    async fn speak(
        &self,
        place: &Place,
        stream: impl Stream + 'static,
        dialer: &dyn Dialer,
    ) -> Result<(), Refusal> {
        let upstream = Upstream::new(place, &self.roots, dialer);
        let upstream = &upstream;
        let service = service_fn(move |request: Request<Incoming>| async move {
            Ok::<_, std::convert::Infallible>(self.answer(place, request, upstream).await)
        });
        let served = Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::HEAD)
            .max_headers(limits::HEADERS)
            .max_buf_size(limits::BUFFER)
            .auto_date_header(false)
            // A client may end its half and still wait for the answer.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        match served {
            Err(error) if error.is_parse() => {
                let message = format!(
                    "{} is inspected, and the program does not speak plain HTTP/1.1: {error}",
                    place.authority()
                );
                Err(Refusal::new(Code::NetProtocol, message)
                    .hint("other protocols need a `connect` rule without `inspect`"))
            }
            // A program may close its connection at any time; what it was sent is recorded with its request.
            _ => Ok(()),
        }
    }

    async fn answer(
        &self,
        place: &Place,
        request: Request<Incoming>,
        upstream: &Upstream<'_>,
    ) -> Response<Answer> {
        let mut pending = Pending {
            exchange: Some(self.exchange(place, &request)),
            records: Arc::clone(&self.records),
            began: Instant::now(),
            sent: Arc::default(),
        };
        let answered = self.relay(place, request, upstream, &mut pending).await;
        answered.unwrap_or_else(|mut refusal| {
            // A server may repeat a credential in what our messages quote.
            refusal.message = self.redactor.values(&refusal.message).into_owned();
            if let Some(exchange) = &mut pending.exchange {
                exchange.code = Some(refusal.code);
                exchange.rule =
                    refusal.rule.as_ref().map(|rule| rule.id.clone()).or(exchange.rule.take());
            }
            self.records.refused(&place.name, place.port, &refusal);
            let next = refusal.suggestion.as_ref().map(|next| format!("\nnext: {next}"));
            let words = format!("runner: {}{}\n", refusal.message, next.unwrap_or_default());
            answer::refusal(status(refusal.code), words)
        })
    }

    fn exchange(&self, place: &Place, request: &Request<Incoming>) -> Exchange {
        let uri = request.uri();
        Exchange {
            name: place.name.clone(),
            port: place.port,
            method: request.method().as_str().chars().take(32).collect(),
            path: self.redactor.values(uri.path()).into_owned(),
            query: uri.query().map_or(0, str::len),
            rule: None,
            status: None,
            code: None,
            sent: 0,
            received: 0,
            took: Duration::ZERO,
        }
    }

    async fn relay(
        &self,
        place: &Place,
        request: Request<Incoming>,
        upstream: &Upstream<'_>,
        pending: &mut Pending,
    ) -> Result<Response<Answer>, Refusal> {
        if !self.records.begin() {
            // Nothing of it is kept, so nothing is done.
            pending.exchange = None;
            let message = "this call has made more requests than are recorded one by one";
            return Err(Refusal::new(Code::LimitReached, message));
        }
        let (parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let mut head = head::read(&parts, place, has_body)?;
        let granted = self.granted(&head).await?;
        if let Some(exchange) = &mut pending.exchange {
            exchange.rule = Some(granted.rule.clone());
        }
        let masks = self.redactor.has_learned();
        head::complete(&mut head.headers, place, &granted.headers, masks);
        let is_head = head.method == Method::HEAD;
        let body = has_body.then_some(body);
        let deadline = answer::deadline(granted.time);
        let sending = async {
            let request = made(&head, body, &pending.sent)?;
            // A request without a body that only reads may be sent twice.
            let again = || {
                let reads = [Method::GET, Method::HEAD].contains(&head.method);
                reads.then(|| made(&head, None, &Arc::default()).ok()).flatten()
            };
            upstream.send(request, again).await
        };
        let late = |_| {
            let message = format!("{} took longer than the request may take", place.authority());
            Refusal::new(Code::Timeout, message)
        };
        let answered = timeout(granted.time, sending).await.map_err(late)??;
        self.answered(place, answered, &granted, is_head, (deadline, pending))
    }

    /// Every reading of the request must be allowed; the first one's terms hold.
    async fn granted(&self, head: &Head) -> Result<Granted, Refusal> {
        let mut granted: Option<Granted> = None;
        for asked in head.asked.iter().rev() {
            granted = Some(self.judge.judge(asked).await?);
        }
        granted.ok_or_else(|| Refusal::new(Code::InvalidArgument, "the request cannot be judged"))
    }

    fn answered(
        &self,
        place: &Place,
        answered: Response<Incoming>,
        granted: &Granted,
        is_head: bool,
        (deadline, pending): (std::pin::Pin<Box<tokio::time::Sleep>>, &mut Pending),
    ) -> Result<Response<Answer>, Refusal> {
        let from = place.authority();
        let (parts, body) = answered.into_parts();
        if let Some(exchange) = &mut pending.exchange {
            exchange.status = Some(parts.status.as_u16());
        }
        if parts.status.is_informational() {
            let message = format!("{from} wants to speak something else than HTTP");
            return Err(Refusal::new(Code::NetProtocol, message));
        }
        let masks = self.redactor.has_learned();
        let encoded = parts
            .headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .any(|value| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"));
        if encoded && masks && !is_head {
            let message =
                format!("{from} answers encoded, unasked, where credentials could not be found");
            return Err(Refusal::new(Code::NetProtocol, message));
        }
        if !is_head && body.size_hint().lower() > granted.size {
            let most = runner_policy::limits::Unit::Bytes.show(granted.size);
            let message = format!("the answer of {from} is larger than {most}");
            return Err(Refusal::new(Code::TooLarge, message)
                .hint("a larger `limits: { size: … }` of the rule would allow it"));
        }
        let mut response = Response::new(Answer::Server(Box::new(FromServer {
            body,
            scrubber: masks.then(|| self.redactor.stream()),
            left: granted.size,
            deadline,
            pending: Pending {
                exchange: pending.exchange.take(),
                records: Arc::clone(&pending.records),
                began: pending.began,
                sent: Arc::clone(&pending.sent),
            },
            done: false,
        })));
        *response.status_mut() = parts.status;
        *response.headers_mut() = answer::headers(&parts.headers, &self.redactor, is_head);
        Ok(response)
    }
}

/// The request that is sent.
fn made(
    head: &Head,
    body: Option<Incoming>,
    sent: &Arc<AtomicU64>,
) -> Result<Request<Outgoing>, Refusal> {
    let body = Outgoing::new(body, limits::REQUEST_BODY, Arc::clone(sent));
    let mut request = Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.line.parse().map_err(|error| {
        Refusal::new(Code::InvalidArgument, format!("the request cannot be written: {error}"))
    })?;
    *request.headers_mut() = head.headers.clone();
    Ok(request)
}

/// The status of the host's own answers.
fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidArgument => StatusCode::BAD_REQUEST,
        Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Code::TooLarge | Code::NetConnect | Code::NetTls | Code::NetProtocol | Code::NetDns => {
            StatusCode::BAD_GATEWAY
        }
        Code::LimitReached => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::FORBIDDEN,
    }
}
