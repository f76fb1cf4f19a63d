//! Groups whose launcher was killed.

use std::path::Path;

use runner_wire::GROUP_LOCK;

use super::{PREFIX, Places};
use crate::sys::lease::{self, Found};

/// Removes every group of a sandbox that no launcher has any more; how many. The kernel removes none that has processes.
pub(in crate::engine::embedded) fn remove_left_over(places: &Places) -> usize {
    let parents: Vec<&Path> = match places {
        Places::Trees(trees) => {
            let counted = [trees.cpu.as_deref(), trees.cpuacct.as_deref()];
            let parents = [Some(trees.memory.as_path()), Some(&trees.pids)];
            parents.into_iter().chain(counted).flatten().collect()
        }
        Places::Unified { folder, .. } => vec![folder],
        // systemd removes a scope with its last process.
        Places::Scopes { .. } | Places::None => Vec::new(),
    };
    parents.into_iter().map(remove_below).sum()
}

fn remove_below(parent: &Path) -> usize {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let is_ours = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(PREFIX);
    let ours = entries.filter(|entry| is_ours(&entry.file_name()));
    ours.filter(|entry| has_no_launcher(&entry.path())).count()
}

/// Removes a group whose launcher holds no lock on it any more; whether it is gone.
fn has_no_launcher(group: &Path) -> bool {
    match lease::find(&group.join(GROUP_LOCK)) {
        Ok(Found::Free(_lease)) => std::fs::remove_dir(group).is_ok(),
        Ok(Found::Held(_) | Found::Gone) | Err(_) => false,
    }
}
