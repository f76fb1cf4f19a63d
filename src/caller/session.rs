//! Calls that belong together.

use super::Caller;

/// Calls of one caller in one workspace under one policy. Answers that a person gives for a session hold for these calls
/// and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Tells it from the sessions of other callers: what the caller's credential proves.
    pub id: String,
    /// Whose calls these are.
    pub caller: Caller,
    /// The workspace.
    pub workspace: String,
    /// The digest of the policy.
    pub policy: String,
    /// When it ends at the latest, in milliseconds since 1970. It ends earlier with its credential: the terminal is closed,
    /// the token is taken back, the peer is gone.
    pub end: i64,
}

impl Session {
    /// The session of a caller; `None` if the caller cannot be told from another. Then nothing can be kept for a session.
    #[must_use]
    pub fn of(caller: &Caller, workspace: &str, policy: &str, end: i64) -> Option<Self> {
        Some(Self {
            id: caller.credential.id()?,
            caller: caller.clone(),
            workspace: workspace.to_owned(),
            policy: policy.to_owned(),
            end,
        })
    }
}
