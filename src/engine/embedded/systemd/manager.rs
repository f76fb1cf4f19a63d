//! Which manager of systemd can give this process a group.

use std::path::{Path, PathBuf};

use crate::engine::open;

/// Where the tree of cgroup v2 is on a machine that systemd runs.
const TREE: &str = "/sys/fs/cgroup";

/// A manager that may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine::embedded) struct Manager {
    /// Its own socket.
    pub(super) socket: PathBuf,
    /// Its group: what groups below can limit.
    pub(super) group: PathBuf,
    /// The user that it runs as, which is ours.
    pub(super) uid: u32,
}

impl Manager {
    /// The manager of the caller: of the user, or of the system for root. None if there is no sign of one.
    pub(in crate::engine::embedded) fn find(variable: open::Variable<'_>) -> Option<Self> {
        let uid = rustix::process::geteuid().as_raw();
        let runtime = variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|folder| folder.is_absolute());
        let manager = Self::of(uid, runtime, Path::new(TREE));
        (manager.socket.exists() && manager.group.is_dir()).then_some(manager)
    }

    fn of(uid: u32, runtime: Option<PathBuf>, tree: &Path) -> Self {
        if uid == 0 {
            return Self { socket: "/run/systemd/private".into(), group: tree.to_owned(), uid };
        }
        // `su` and `runuser` set no variable.
        let runtime = runtime.unwrap_or_else(|| format!("/run/user/{uid}").into());
        let group = tree.join(format!("user.slice/user-{uid}.slice/user@{uid}.service"));
        Self { socket: runtime.join("systemd/private"), group, uid }
    }

    /// Its group.
    pub(in crate::engine::embedded) fn group(&self) -> &Path {
        &self.group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_manager_of_its_own() {
        let tree = Path::new("/g");
        let found = Manager::of(7, None, tree);
        assert_eq!(found.socket, Path::new("/run/user/7/systemd/private"));
        assert_eq!(found.group, Path::new("/g/user.slice/user-7.slice/user@7.service"));
        let found = Manager::of(7, Some("/r".into()), tree);
        assert_eq!(found.socket, Path::new("/r/systemd/private"));
        let found = Manager::of(0, Some("/r".into()), tree);
        assert_eq!((found.socket, found.group), ("/run/systemd/private".into(), "/g".into()));
    }

    #[test]
    fn a_folder_without_a_manager_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = dir.path().as_os_str().to_owned();
        let manager = Manager::find(&|name| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone()));
        assert!(manager.is_none_or(|manager| manager.uid == 0));
    }
}
