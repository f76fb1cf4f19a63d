//! On whose behalf a call runs, and which calls belong together.
//!
//! Duty: two types that every front fills and every part below uses. A [`Caller`] is what the kernel or a secret of ours
//! proves; limits, answers and memory are keyed by it. What a client says of itself (a name, a version) is recorded as
//! `claimed` and keys nothing. Non-goal: who may do what; that is the policy's.

mod session;
mod terminal;

pub use session::Session;

/// On whose behalf a call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The user id, as the kernel or the token tells it.
    pub uid: u32,
    /// What turned the request into a call.
    pub front: Front,
    /// How the caller is told from another of the same user.
    pub credential: Credential,
    /// What the client says of itself. It is recorded, and nothing depends on it.
    pub claimed: Option<String>,
}

/// What turns a request into a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// A person or a program that starts `runner`.
    CommandLine,
    /// A client of our MCP server.
    Mcp,
    /// A hook of a coding agent.
    Hook,
}

/// How a caller is told from another of the same user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The terminal session of this process. It is named by its leader; `None` if the leader cannot be seen: it lives outside
    /// of this process namespace, or is gone.
    Terminal(Option<String>),
    /// A token of ours, by its id. The token itself is a secret and is not kept.
    Token(String),
    /// The process at the other end of a socket, as the kernel names it.
    Peer(String),
}

impl Caller {
    /// The user and the terminal session of this process.
    #[must_use]
    pub fn of_process(front: Front) -> Self {
        Self {
            uid: rustix::process::getuid().as_raw(),
            front,
            credential: Credential::Terminal(terminal::leader()),
            claimed: None,
        }
    }
}

impl Front {
    /// Its word in records.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::CommandLine => "command_line",
            Self::Mcp => "mcp",
            Self::Hook => "hook",
        }
    }
}

impl Credential {
    /// The word of its kind in records.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Terminal(_) => "terminal",
            Self::Token(_) => "token",
            Self::Peer(_) => "peer",
        }
    }

    /// What tells this caller from any other; `None` if nothing does.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        match self {
            Self::Terminal(leader) => leader.clone(),
            Self::Token(id) => Some(format!("token:{id}")),
            Self::Peer(process) => Some(format!("peer:{process}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_claims_names_nobody() {
        let caller = |claimed: Option<&str>, credential| Caller {
            uid: 1,
            front: Front::Mcp,
            credential,
            claimed: claimed.map(str::to_owned),
        };
        let id = |caller: &Caller| Session::of(caller, "/w", "digest", 1).map(|it| it.id);
        let ann = caller(Some("ann"), Credential::Token("1".to_owned()));
        let bob = caller(Some("bob"), Credential::Token("1".to_owned()));
        assert_eq!(id(&ann), id(&bob));
        let other = caller(Some("ann"), Credential::Token("2".to_owned()));
        assert_ne!(id(&ann), id(&other));
        // A token that is named like a process is none.
        assert_ne!(Credential::Token("x".to_owned()).id(), Credential::Peer("x".to_owned()).id());
        assert_eq!(id(&caller(None, Credential::Terminal(None))), None);
    }
}
