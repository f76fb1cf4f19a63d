//! Whether a tool may destroy what it may write.
//!
//! Destructive is what takes an entry of the workspace from its place: a removal, a rename of something that the call did
//! not make itself, a rename onto something that is there. A write that replaces a file's content is not: it is what a
//! tool that writes is for, and can be undone.

use super::{Boxed, Refusal};

/// What a tool wants to destroy: paths below the workspace as the broker has resolved them, not as the tool names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destroys {
    /// An entry goes.
    Removed {
        /// Which.
        path: String,
        /// Whether everything below it goes too.
        recursive: bool,
    },
    /// An entry gets another name.
    Moved {
        /// From here.
        from: String,
        /// To here.
        to: String,
        /// What is not in its place then: the one, if the call did not make it, and what had the other name.
        loses: Vec<String>,
    },
}

impl Destroys {
    /// The entries that are not in their places then.
    #[must_use]
    pub fn loses(&self) -> &[String] {
        match self {
            Self::Removed { path, .. } => std::slice::from_ref(path),
            Self::Moved { loses, .. } => loses,
        }
    }
}

/// Asked before something is destroyed that the policy lets the tool write.
pub trait Removals: Send + Sync {
    /// Whether it may be.
    fn may(&self, what: Destroys) -> Boxed<'_, Result<(), Refusal>>;
}

/// Whatever may be written may be removed.
#[derive(Debug, Clone, Copy)]
pub struct FreeRemovals;

impl Removals for FreeRemovals {
    fn may(&self, _: Destroys) -> Boxed<'_, Result<(), Refusal>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
