//! What a call provides to inspection: judgement, connections, and a place for records.

use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};

use crate::broker::{Boxed, Refusal};
use crate::codes::Code;

pub use crate::broker::egress::Stream;

/// A request of a command, as it is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The HTTP method, in capitals.
    pub method: String,
    /// The URL in its normal form.
    pub url: String,
}

/// On what terms a request is sent.
#[derive(Debug, Clone, Default)]
pub struct Granted {
    /// `policy/id` of the rule.
    pub rule: String,
    /// Most bytes of the answer's body.
    pub size: u64,
    /// How long request and answer may take together.
    pub time: Duration,
    /// Headers that the host adds, in place of the client's. The call's redactor knows their values.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Judges requests by the call's policy.
pub trait Judge: Send + Sync {
    /// Whether a request may be sent.
    ///
    /// # Errors
    /// It may not, or a credential of its rule cannot be read.
    fn judge<'a>(&'a self, asked: &'a Asked) -> Boxed<'a, Result<Granted, Refusal>>;
}

/// Connects to the address that was checked for the tunnel. It resolves no name again.
pub trait Dialer: Send + Sync {
    /// A new connection.
    ///
    /// # Errors
    /// The address does not answer.
    fn dial(&self) -> Boxed<'_, Result<Box<dyn Stream>, Refusal>>;
}

/// One request and its answer, as recorded. Without its query, which may hold what the client keeps secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The asked name.
    pub name: String,
    /// The port.
    pub port: u16,
    /// The HTTP method.
    pub method: String,
    /// The path of the URL.
    pub path: String,
    /// Length of the query in bytes.
    pub query: usize,
    /// `policy/id` of the rule that allowed it.
    pub rule: Option<String>,
    /// The status of the server's answer.
    pub status: Option<u16>,
    /// Why it was refused, or failed.
    pub code: Option<Code>,
    /// Bytes of the request's body that were sent.
    pub sent: u64,
    /// Bytes of the answer's body.
    pub received: u64,
    /// From the request's head to the end of the answer.
    pub took: Duration,
}

/// Takes records of exchanges.
pub trait Records: Send + Sync {
    /// A request begins. Without room for its record it is not sent.
    fn begin(&self) -> bool;

    /// A request ended: it was answered, refused, or failed.
    fn exchanged(&self, exchange: Exchange);

    /// A connection or request was refused, or failed, for a reason that the caller should see.
    fn refused(&self, name: &str, port: u16, refusal: &Refusal);
}
