//! Where the groups of one sandbox are made, now that its launcher lives.

use std::path::PathBuf;

use super::{PREFIX, Places, Trees};
use crate::engine::embedded::systemd::ScopeError;

/// A place that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine::embedded) enum Place {
    /// Version 1.
    Trees(Trees),
    /// Version 2: in this group.
    Unified {
        /// Its folder.
        folder: PathBuf,
        /// Whether groups in it can limit processors.
        cpus: bool,
    },
    /// Version 2: in this scope, which has the launcher itself and nothing else.
    Scope {
        /// Its folder.
        folder: PathBuf,
        /// Whether groups in it can limit processors.
        cpus: bool,
    },
    /// Nowhere.
    None,
}

/// The place for the sandbox of a launcher, who has been told nothing yet. `name` is no other sandbox's.
///
/// # Errors
/// systemd was asked for a scope and gave none that holds what these places promise.
pub(in crate::engine::embedded) async fn settle(
    places: Places,
    launcher: u32,
    name: &str,
) -> Result<Place, ScopeError> {
    let (manager, cpus) = match places {
        Places::Trees(trees) => return Ok(Place::Trees(trees)),
        Places::Unified { folder, cpus, .. } => return Ok(Place::Unified { folder, cpus }),
        Places::None => return Ok(Place::None),
        Places::Scopes { manager, cpus, .. } => (manager, cpus),
    };
    let folder = manager.adopt(launcher, &format!("{PREFIX}{name}")).await?;
    let text = std::fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    let has = |name: &str| text.split_whitespace().any(|controller| controller == name);
    let missing = ["memory", "pids", "cpu"]
        .into_iter()
        .filter(|name| *name != "cpu" || cpus)
        .find(|name| !has(name));
    match missing {
        Some(name) => Err(ScopeError::Controller(name)),
        None => Ok(Place::Scope { folder, cpus }),
    }
}
