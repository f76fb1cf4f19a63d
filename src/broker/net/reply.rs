//! The body of an answer: streamed, counted, timed, and without the secrets that were sent.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::exchange::Driver;
use crate::audit::Scrubber;
use crate::broker::{Boxed, Refusal, Source};
use crate::codes::Code;

/// Gives the body piece by piece.
pub(super) struct Reply {
    pub body: Incoming,
    pub scrubber: Scrubber,
    /// Bytes that may still come.
    pub left: u64,
    /// What the rule allows, for the message.
    pub size: u64,
    pub deadline: Instant,
    /// Where it comes from, for messages.
    pub from: String,
    pub done: bool,
    /// Held until the answer is read or dropped.
    pub _driver: Driver,
    pub _permit: OwnedSemaphorePermit,
}

impl Source for Reply {
    fn next(&mut self) -> Boxed<'_, Result<Option<Vec<u8>>, Refusal>> {
        Box::pin(async move {
            while !self.done {
                let frame = timeout_at(self.deadline, self.body.frame())
                    .await
                    .map_err(|_| too_late(&self.from))?;
                let piece = match frame {
                    None => {
                        self.done = true;
                        self.scrubber.finish()
                    }
                    Some(Err(error)) => {
                        let message = format!("the answer of {} broke off: {error}", self.from);
                        return Err(Refusal::new(Code::NetProtocol, message));
                    }
                    Some(Ok(frame)) => {
                        // Trailers are nobody's business.
                        let Ok(data) = frame.into_data() else { continue };
                        let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
                        self.left = self
                            .left
                            .checked_sub(length)
                            .ok_or_else(|| too_large(&self.from, self.size))?;
                        self.scrubber.push(data.to_vec())
                    }
                };
                if !piece.is_empty() {
                    return Ok(Some(piece));
                }
            }
            Ok(None)
        })
    }
}

/// The answer is larger than its rule allows.
pub(super) fn too_large(from: &str, size: u64) -> Refusal {
    let most = runner_policy::limits::Unit::Bytes.show(size);
    Refusal::new(Code::TooLarge, format!("the answer of {from} is larger than {most}"))
        .hint("a larger `limits: { size: … }` of the rule would allow it")
}

/// The request took longer than its rule, or the tool, allows.
pub(super) fn too_late(from: &str) -> Refusal {
    Refusal::new(Code::Timeout, format!("{from} took longer than the request may take"))
}
