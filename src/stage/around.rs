//! What lies around a file that is judged without a stage: where the host runs it by another name.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::led::Led;

/// What is known of a workspace and of the configurations outside that lead into it.
#[derive(Debug, Default)]
pub struct Around {
    /// The `.git` of each repository, below the workspace.
    pub repositories: BTreeSet<PathBuf>,
    /// Symlinks that stand where the host runs something, or could, below the workspace.
    pub links: BTreeSet<PathBuf>,
    /// Places that configurations outside lead git to.
    pub led: Vec<Led>,
    /// The caller's home, for which `~` stands in a configuration.
    pub home: Option<PathBuf>,
}

/// Finds it out, once for a call that writes. The error says why it cannot.
pub type LookAround = dyn Fn() -> Result<Around, String> + Send + Sync;
