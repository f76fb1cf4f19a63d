//! Who calls, as the transport proves it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::caller::{Caller, Credential, Front};
use crate::ids::Owner;

/// A client of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Its name in the configuration: `stdio`, `socket`, or that of its token.
    pub name: String,
    /// What tells it from other clients of the same user.
    pub credential: Credential,
    /// The key of its calls and handles. A connection without a token is its own owner.
    owner: String,
}

/// The name of the client at the standard streams.
pub const STDIO: &str = "stdio";
/// The name of every client of the unix socket.
pub const SOCKET: &str = "socket";

/// The longest text of a client about itself that is recorded.
const CLAIM: usize = 128;

/// Connections so far, to tell them apart.
fn connection() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Who {
    /// The client that started this process and holds its standard streams.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn at_stdio() -> std::io::Result<Self> {
        let this = Owner::this()?;
        let id = format!("stdio:{}:{}:{}", this.place, this.pid, this.started);
        Ok(Self::of_connection(STDIO, Credential::Peer(id)))
    }

    /// A process at the other end of the unix socket, as the kernel names it.
    ///
    /// # Errors
    /// The process is gone, or `/proc` cannot be read.
    pub fn at_socket(pid: u32) -> std::io::Result<Self> {
        let peer = Owner::of(pid)?;
        let id = format!("{}:{}:{}", peer.place, peer.pid, peer.started);
        Ok(Self::of_connection(SOCKET, Credential::Peer(id)))
    }

    fn of_connection(name: &str, credential: Credential) -> Self {
        let owner = format!("{}#{}", credential.id().unwrap_or_default(), connection());
        Self { name: name.to_owned(), credential, owner }
    }

    /// The client that sent a token of ours.
    #[must_use]
    pub fn with_token(name: &str, id: &str) -> Self {
        let credential = Credential::Token(id.to_owned());
        let owner = credential.id().unwrap_or_default();
        Self { name: name.to_owned(), credential, owner }
    }

    /// The key of its calls.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The caller of its calls. What the client says of itself is cut, and recorded as its claim.
    #[must_use]
    pub fn caller(&self, claimed: Option<String>) -> Caller {
        let claimed = claimed.map(|mut text| {
            text.truncate(text.floor_char_boundary(CLAIM));
            text
        });
        Caller {
            uid: rustix::process::getuid().as_raw(),
            front: Front::Mcp,
            credential: self.credential.clone(),
            claimed,
        }
    }
}
