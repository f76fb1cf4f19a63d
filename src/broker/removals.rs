//! Whether a tool may destroy what it may write.

use super::{Boxed, Refusal};

/// Asked before something is removed that the policy lets the tool write.
pub trait Removals: Send + Sync {
    /// Whether this path, below the workspace as the tool names it, may be removed.
    fn may(&self, path: String, recursive: bool) -> Boxed<'_, Result<(), Refusal>>;
}

/// Whatever may be written may be removed.
#[derive(Debug, Clone, Copy)]
pub struct FreeRemovals;

impl Removals for FreeRemovals {
    fn may(&self, _: String, _: bool) -> Boxed<'_, Result<(), Refusal>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
