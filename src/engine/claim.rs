//! What a plan holds on to for as long as a copy of it exists.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A claim on folders of the workspace. Dropping it ends it.
pub trait HeldClaim: fmt::Debug + Send + Sync {
    /// The file that lists what the claim covers, for the process that cleans up after a death.
    fn ledger(&self) -> &Path;
}

/// A claim as part of a plan: shared by the plan's copies, ended with the last of them. It is not part of what a
/// plan describes, so all are equal.
#[derive(Debug, Clone, Default)]
pub struct ClaimHandle(Option<Arc<dyn HeldClaim>>);

impl ClaimHandle {
    /// The handle of a claim.
    #[must_use]
    pub fn new(claim: Arc<dyn HeldClaim>) -> Self {
        Self(Some(claim))
    }

    /// The ledger, for a watchdog.
    #[must_use]
    pub fn ledger(&self) -> Option<&Path> {
        self.0.as_ref().map(|claim| claim.ledger())
    }
}

impl PartialEq for ClaimHandle {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ClaimHandle {}
