//! The power to keep what a change is about to take away. The broker uses it; the journal has it.

use std::os::fd::BorrowedFd;

/// Something in the workspace is about to change.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// What will happen.
    pub what: What<'a>,
    /// Where, below the workspace, links resolved.
    pub path: &'a str,
    /// The folder that it happens in: the very one that was judged.
    pub folder: BorrowedFd<'a>,
    /// The name in it; one that is not UTF-8 is encoded as in `names`.
    pub name: &'a str,
}

/// What will happen to a name.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    /// It gets this content, whole.
    Put {
        /// BLAKE3 of the content.
        digest: blake3::Hash,
        /// Its length.
        size: u64,
        /// The permissions.
        mode: u32,
    },
    /// More is written at its end; it is made if it is missing.
    Grow,
    /// It is removed: a file, a link, or a folder that is empty by then.
    Gone,
    /// It becomes a folder.
    Made {
        /// The permissions.
        mode: u32,
    },
    /// The folder gets other permissions.
    Mode {
        /// The permissions.
        mode: u32,
    },
    /// A whole tree is moved away.
    TreeGone {
        /// The tree as `state` writes it.
        tree: &'a str,
        /// The name under which it is kept.
        image: &'a str,
        /// Bytes of its files.
        size: u64,
    },
    /// A whole tree is moved back.
    TreeBack {
        /// The tree as `state` writes it.
        tree: &'a str,
    },
    /// It becomes a link.
    Linked {
        /// To what.
        target: &'a str,
    },
    /// What has the name gets another one.
    Moved {
        /// The new place below the workspace.
        to: &'a str,
        /// Its folder.
        folder: BorrowedFd<'a>,
        /// Its name there.
        name: &'a str,
    },
}

/// Why nothing was kept; then nothing is changed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotKept(pub String);

/// Keeps what changes take away. Everything here blocks.
pub trait Keep: Send + Sync {
    /// Called before changes happen, all of them in one request.
    ///
    /// # Errors
    /// It cannot be kept, and so must not be changed.
    fn before(&self, changes: &[Change<'_>]) -> Result<(), NotKept>;

    /// Called when a change has happened.
    fn after(&self, change: &Change<'_>);
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy)]
pub struct KeepNothing;

impl Keep for KeepNothing {
    fn before(&self, _: &[Change<'_>]) -> Result<(), NotKept> {
        Ok(())
    }

    fn after(&self, _: &Change<'_>) {}
}
