//! The connection to the server: kept for the client's next request, made anew when the server has closed it.

use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::answer::Outgoing;
use super::limits;
use super::powers::{Dialer, Stream};
use super::relay::{Place, Protocol};
use crate::broker::Refusal;
use crate::broker::net::Roots;
use crate::codes::Code;

/// A connection and the task that moves its bytes. Dropping it closes the connection.
struct Open {
    sender: SendRequest<Outgoing>,
    driver: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The server of one tunnel.
pub(super) struct Upstream<'u> {
    place: &'u Place,
    roots: &'u Roots,
    dialer: &'u dyn Dialer,
    open: tokio::sync::Mutex<Option<Open>>,
}

impl<'u> Upstream<'u> {
    pub(super) fn new(place: &'u Place, roots: &'u Roots, dialer: &'u dyn Dialer) -> Self {
        Self { place, roots, dialer, open: tokio::sync::Mutex::default() }
    }

    /// Sends a request and waits for the head of its answer. `again` makes the request a second time, for a kept
    /// connection that the server closed meanwhile; it gives none where a body was sent.
    ///
    /// # Errors
    /// The server cannot be reached, proves no identity, or does not speak HTTP/1.1.
    pub(super) async fn send(
        &self,
        request: Request<Outgoing>,
        again: impl FnOnce() -> Option<Request<Outgoing>>,
    ) -> Result<Response<Incoming>, Refusal> {
        let mut open = self.open.lock().await;
        if let Some(mut kept) = open.take()
            && kept.sender.ready().await.is_ok()
        {
            match kept.sender.try_send_request(request).await {
                Ok(answer) => {
                    *open = Some(kept);
                    return Ok(answer);
                }
                Err(mut failed) => {
                    drop(kept);
                    // The request was not sent, or may be sent twice.
                    let retried = failed.take_message().or_else(again);
                    let Some(request) = retried else {
                        return Err(self.broken(&failed.into_error()));
                    };
                    return self.fresh(request, &mut open).await;
                }
            }
        }
        self.fresh(request, &mut open).await
    }

    async fn fresh(
        &self,
        request: Request<Outgoing>,
        open: &mut Option<Open>,
    ) -> Result<Response<Incoming>, Refusal> {
        let mut made = self.connect().await?;
        let answer =
            made.sender.send_request(request).await.map_err(|error| self.broken(&error))?;
        *open = Some(made);
        Ok(answer)
    }

    async fn connect(&self) -> Result<Open, Refusal> {
        let stream = self.dialer.dial().await?;
        match self.place.protocol {
            Protocol::Http => self.speak(stream).await,
            Protocol::Https => {
                let shown = self.place.authority();
                let handshake = self.roots.connect(&self.place.name, &shown, stream);
                let late = |_| {
                    let message = format!("no TLS handshake with {shown} in time");
                    Refusal::new(Code::Timeout, message)
                };
                let stream = timeout(limits::UPSTREAM, handshake).await.map_err(late)??;
                self.speak(stream).await
            }
        }
    }

    async fn speak(&self, stream: impl Stream + 'static) -> Result<Open, Refusal> {
        let (sender, connection) = Builder::new()
            .max_headers(limits::ANSWER_HEADERS)
            .max_header_size(limits::ANSWER_HEAD)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.broken(&error))?;
        let driver = tokio::spawn(async move {
            // What goes wrong is told to the request that waits for the answer or its body.
            let _ = connection.await;
        });
        Ok(Open { sender, driver })
    }

    fn broken(&self, error: &hyper::Error) -> Refusal {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
        let message = format!("{}: {error}{}", self.place.authority(), cause.unwrap_or_default());
        Refusal::new(Code::NetProtocol, message)
    }
}
