//! The power to reach the net, as the broker asks for it.

use std::time::Duration;

use super::{Body, Boxed, Refusal};

use crate::codes::Code;

/// What happens when an answer leads elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirect {
    /// It is followed, if the policy allows the new place too.
    Follow,
    /// It is the answer.
    Manual,
    /// It is an error.
    Error,
}

/// A tool's wish to fetch something. Nothing in it has been judged yet.
#[derive(Debug)]
pub struct FetchRequest {
    /// The HTTP method, as sent.
    pub method: String,
    /// The URL, as sent.
    pub url: String,
    /// Headers in order; names may repeat.
    pub headers: Vec<(String, String)>,
    /// How long it may take; the policy's own limit holds too.
    pub timeout: Option<Duration>,
    /// What a redirect means.
    pub redirect: Redirect,
    /// What is sent, if the tool sends a body.
    pub body: Option<Body>,
}

/// An answer.
#[derive(Debug)]
pub struct Fetched {
    /// The HTTP status.
    pub status: u16,
    /// Its text; may be empty.
    pub status_text: String,
    /// Where the answer came from, without credentials.
    pub url: String,
    /// Headers in order; names may repeat.
    pub headers: Vec<(String, String)>,
    /// Whether a redirect was followed.
    pub redirected: bool,
    /// The answer's body. Limits of size and time of the rule are inside it, as refusals.
    pub body: Body,
}

/// Reaches the net. It decides before it dials; an answer of any status is a reply, what may not be
/// reached is a refusal.
pub trait Net: Send + Sync {
    /// Fetches. The broker drops the future, or the body of the answer, when the tool cancels the
    /// request or the call ends.
    fn fetch(&self, request: FetchRequest) -> Boxed<'_, Result<Fetched, Refusal>>;
}

/// Nothing may be reached.
#[derive(Debug, Clone, Copy)]
pub struct NoNet;

impl Net for NoNet {
    fn fetch(&self, _: FetchRequest) -> Boxed<'_, Result<Fetched, Refusal>> {
        Box::pin(async { Err(Refusal::new(Code::NetDenied, "this tool may not use the net")) })
    }
}
