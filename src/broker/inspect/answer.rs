//! Bodies in both directions: counted, bounded, timed; answers without the credentials that were sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::time::Sleep;

use super::head::{is_hop_by_hop, named_by_connection};
use super::powers::{Exchange, Records};
use crate::audit::{Redactor, Scrubber};
use crate::codes::Code;

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokenOff {
    #[error("the body is larger than the rule allows")]
    TooLarge,
    #[error("the request took longer than the rule allows")]
    TooLate,
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

/// The body of a request on its way to the server. Trailers do not pass.
pub(super) struct Outgoing {
    body: Option<Incoming>,
    left: u64,
    sent: Arc<AtomicU64>,
}

impl Outgoing {
    pub(super) fn new(body: Option<Incoming>, most: u64, sent: Arc<AtomicU64>) -> Self {
        Self { body, left: most, sent }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        loop {
            let Some(body) = &mut this.body else { return Poll::Ready(None) };
            let frame = match ready!(Pin::new(body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(frame) => frame?,
            };
            let Ok(data) = frame.into_data() else { continue };
            let length = data.len() as u64;
            let Some(left) = this.left.checked_sub(length) else {
                return Poll::Ready(Some(Err(BrokenOff::TooLarge)));
            };
            this.left = left;
            this.sent.fetch_add(length, Ordering::Relaxed);
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// A record that is given away when the answer ends, however it ends.
pub(super) struct Pending {
    pub exchange: Option<Exchange>,
    pub records: Arc<dyn Records>,
    pub began: Instant,
    pub sent: Arc<AtomicU64>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Some(mut exchange) = self.exchange.take() else { return };
        exchange.took = self.began.elapsed();
        exchange.sent = self.sent.load(Ordering::Relaxed);
        self.records.exchanged(exchange);
    }
}

/// The body of an answer on its way to the client.
pub(super) enum Answer {
    /// The host's own words.
    Own(Option<Bytes>),
    /// The server's.
    Server(Box<FromServer>),
}

/// The server's body.
pub(super) struct FromServer {
    pub body: Incoming,
    /// Masks credentials, if the call has any.
    pub scrubber: Option<Scrubber>,
    pub left: u64,
    pub deadline: Pin<Box<Sleep>>,
    pub pending: Pending,
    pub done: bool,
}

impl FromServer {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        while !self.done {
            if self.deadline.as_mut().poll(cx).is_ready() {
                return self.fail(BrokenOff::TooLate, Code::Timeout);
            }
            let piece = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => {
                    self.done = true;
                    let rest = self.scrubber.as_mut().map(Scrubber::finish);
                    Bytes::from(rest.unwrap_or_default())
                }
                Some(Err(error)) => return self.fail(error.into(), Code::NetProtocol),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let length = data.len() as u64;
                    let Some(left) = self.left.checked_sub(length) else {
                        return self.fail(BrokenOff::TooLarge, Code::TooLarge);
                    };
                    self.left = left;
                    if let Some(exchange) = &mut self.pending.exchange {
                        exchange.received += length;
                    }
                    match &mut self.scrubber {
                        Some(scrubber) => Bytes::from(scrubber.push(data.to_vec())),
                        None => data,
                    }
                }
            };
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
        Poll::Ready(None)
    }

    fn fail(
        &mut self,
        why: BrokenOff,
        code: Code,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.done = true;
        if let Some(exchange) = &mut self.pending.exchange {
            exchange.code = Some(code);
        }
        Poll::Ready(Some(Err(why)))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut *self {
            Self::Own(words) => Poll::Ready(words.take().map(|words| Ok(Frame::data(words)))),
            Self::Server(server) => server.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(words) => words.is_none(),
            Self::Server(server) => {
                server.done || (server.scrubber.is_none() && server.body.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(words) => {
                SizeHint::with_exact(words.as_ref().map_or(0, |words| words.len() as u64))
            }
            // A mask has another length than what it stands for.
            Self::Server(server) if server.scrubber.is_some() => SizeHint::default(),
            Self::Server(server) => server.body.size_hint(),
        }
    }
}

/// The headers of an answer for the client.
pub(super) fn headers(given: &HeaderMap, redactor: &Redactor, is_head: bool) -> HeaderMap {
    let named = named_by_connection(given);
    let masks = redactor.has_learned();
    let mut shown = HeaderMap::new();
    for (name, value) in given {
        // `alt-svc` would send the client to other ports and protocols.
        if is_hop_by_hop(name, &named) || name.as_str() == "alt-svc" {
            continue;
        }
        if name == header::CONTENT_LENGTH && !is_head {
            continue;
        }
        if !masks {
            shown.append(name.clone(), value.clone());
        } else if !redactor.hides_words(name.as_str())
            && let Ok(value) = HeaderValue::from_bytes(&redactor.bytes(value.as_bytes()))
        {
            shown.append(name.clone(), value);
        }
    }
    shown
}

/// The host's own answer: why the request was not sent, or failed.
pub(super) fn refusal(status: StatusCode, words: String) -> Response<Answer> {
    let mut response = Response::new(Answer::Own(Some(Bytes::from(words))));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// The end of what a rule allows for an answer.
pub(super) fn deadline(time: Duration) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(time))
}
