//! What is known of a connection once it was judged, and who carries it on: the pump, or the part that ends TLS.
//!
//! ```text
//! connection of a command -> judged by name and port -> inspect? -- no --> ClientHello checked, dialled, pumped
//!                                                         |
//!                                                         +-- yes -> [`Inspect`], with a [`Tunnel`]
//! ```

use std::net::SocketAddr;

use runner_policy::net::Passage;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::broker::Boxed;
use crate::codes::Code;

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection that a rule allows, before anything was read from it or dialled for it.
pub struct Tunnel {
    /// What the command sends and receives. Its bytes are counted and bounded; at a bound it fails.
    pub stream: Box<dyn Stream>,
    /// The name that the program asked for, in lower case.
    pub name: String,
    /// The port that it asked for.
    pub port: u16,
    /// On what terms.
    pub passage: Passage,
    /// The way to the name's checked address.
    pub dialer: Box<dyn Dial>,
}

/// The way to a name that a rule allows.
pub trait Dial: Send + Sync {
    /// Connects. The name is resolved the first time, and its addresses are checked; later connections go to the same.
    fn dial(&self) -> Boxed<'_, Result<Dialled, NotConnected>>;
}

/// A connection to an address that was checked.
pub struct Dialled {
    /// The connection.
    pub stream: TcpStream,
    /// Where it leads.
    pub address: SocketAddr,
}

/// Why a command's connection was not made, or ended before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotConnected {
    /// What kind of failure.
    pub code: Code,
    /// A sentence.
    pub why: String,
    /// What would help.
    pub next: Option<String>,
}

/// Ends TLS on the host and judges requests one by one.
pub trait Inspect: Send + Sync {
    /// Carries a tunnel to its end.
    fn inspect(&self, tunnel: Tunnel) -> Boxed<'_, Result<(), NotConnected>>;
}
