//! Where this process may make control groups.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::table::Own;
use super::{Places, Swap, Trees};
use crate::engine::embedded::systemd::Manager;

/// Finds a place for the groups of sandboxes. Without one in reach this manager of systemd makes it.
pub(in crate::engine::embedded) fn find(manager: Option<&Manager>) -> Places {
    let own = Own::read();
    let found = trees(&own).or_else(|| unified(&own));
    found.or_else(|| scopes(manager?)).unwrap_or(Places::None)
}

/// Version 2, made by systemd: what the manager's own group has, a delegated scope in it has too.
fn scopes(manager: &Manager) -> Option<Places> {
    // A service that shows control groups read-only would be given a scope and could not use it.
    let folder = Some(manager.group()).filter(|folder| may_make_groups(folder))?;
    let text = std::fs::read_to_string(folder.join("cgroup.controllers")).ok()?;
    let has = |name| text.split_whitespace().any(|controller| controller == name);
    // The topmost group has no such file.
    let counts_swap =
        folder.join("memory.swap.max").exists() || !folder.join("memory.max").exists();
    (has("memory") && has("pids")).then(|| Places::Scopes {
        manager: manager.clone(),
        cpus: has("cpu"),
        swap: swap(counts_swap),
    })
}

/// Version 1: whoever may write the caller's own groups of memory and processes.
fn trees(own: &Own) -> Option<Places> {
    let usable = |controller| own.tree(controller).filter(|folder| may_make_groups(folder));
    let memory = usable("memory")?.to_owned();
    let counts_swap = memory.join("memory.memsw.limit_in_bytes").exists();
    Some(Places::Trees(Trees {
        pids: usable("pids")?.to_owned(),
        cpu: usable("cpu").map(Path::to_owned),
        cpuacct: usable("cpuacct").map(Path::to_owned),
        swap: swap(counts_swap),
        memory,
    }))
}

/// Version 2: the nearest group above the caller's whose groups can have all controllers; else one whose groups can limit
/// memory and processes.
fn unified(own: &Own) -> Option<Places> {
    let (folder, top) = own.unified.as_ref()?;
    let usable: Vec<(PathBuf, Vec<String>)> = above(folder, top)
        .filter(|folder| may_make_groups(folder))
        .map(|folder| (folder.to_owned(), enabled(folder)))
        .filter(|(_, controllers)| ["memory", "pids"].iter().all(|name| has(controllers, name)))
        .collect();
    let best = usable.iter().find(|(_, controllers)| has(controllers, "cpu"));
    let (folder, controllers) = best.or_else(|| usable.first())?;
    // The topmost group of all has no such file, and no kernel that has version 2 and limits there lacks it elsewhere.
    let counts_swap = folder.join("memory.swap.max").exists() || folder == top;
    Some(Places::Unified {
        folder: folder.clone(),
        cpus: has(controllers, "cpu"),
        swap: swap(counts_swap),
    })
}

/// The groups above one, the nearest first, up to the top. The top itself may have processes and groups.
fn above<'a>(folder: &'a Path, top: &'a Path) -> impl Iterator<Item = &'a Path> {
    let skip = usize::from(folder != top);
    folder.ancestors().skip(skip).take_while(move |folder| folder.starts_with(top))
}

/// Whether this process may make groups in a group, and move its own processes there.
fn may_make_groups(folder: &Path) -> bool {
    let folder_may = access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    folder_may && access(folder.join("cgroup.procs"), Access::WRITE_OK).is_ok()
}

/// The controllers that groups in a group have.
fn enabled(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn has(controllers: &[String], name: &str) -> bool {
    controllers.iter().any(|controller| controller == name)
}

fn swap(counted: bool) -> Swap {
    // The first line names the columns.
    let table = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if counted || table.lines().nth(1).is_none() { Swap::Bounded } else { Swap::Free }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_passed_over_unless_it_is_the_top() {
        let (top, own) = (Path::new("/g"), Path::new("/g/a/b"));
        let found: Vec<&Path> = above(own, top).collect();
        assert_eq!(found, [Path::new("/g/a"), Path::new("/g")]);
        assert_eq!(above(top, top).collect::<Vec<_>>(), [top]);
    }

    /// Folders that look like groups of version 2.
    #[test]
    fn a_place_has_controllers_for_groups_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let group = |below: &str, controllers: &str| {
            let folder = top.join(below);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("cgroup.procs"), "").unwrap();
            std::fs::write(folder.join("cgroup.subtree_control"), controllers).unwrap();
            folder
        };
        group("", "cpu memory pids");
        let slice = group("user/app", "memory pids");
        let own = group("user/app/shell", "");
        group("user", "cpu memory pids");
        let own = Own { trees: Vec::new(), unified: Some((own, top.clone())) };
        let found = unified(&own).unwrap();
        let expected =
            Places::Unified { folder: top.join("user"), cpus: true, swap: Swap::Bounded };
        assert_eq!(found, expected);
        std::fs::write(top.join("user/cgroup.subtree_control"), "").unwrap();
        std::fs::write(top.join("cgroup.subtree_control"), "").unwrap();
        let Places::Unified { folder, cpus, .. } = unified(&own).unwrap() else { panic!() };
        assert_eq!((folder, cpus), (slice, false));
    }
}
