//! Our own folders, which no workspace may hold or lie in.
//!
//! Duty: tell whether a workspace overlaps the folders that hold our state, caches, sockets and configuration. What stands there
//! is believed: which sandboxes wait, what was recorded, which policies are trusted, what the configuration says. A
//! sandbox that can write there could say all of that itself. Non-goals: a folder that is mounted a second time
//! from within one of ours.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::ids::Identity;
use crate::policy_files::Places;

/// Links that are followed at the end of a path, as many as the kernel does.
const LINKS: u32 = 40;

/// A folder of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFolder {
    /// As it is named.
    pub path: PathBuf,
    /// The variable that moves it; nothing moves the managed configuration.
    pub variable: Option<&'static str>,
}

/// The folders of the caller with this environment.
pub(super) fn own_folders(environment: &Environment) -> Vec<OwnFolder> {
    let places = Places::of(environment, None);
    let below = |base: PathBuf| base.join("runner");
    let runtime = environment.get("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| folder.is_absolute());
    [
        (Some(below(places.managed)), None),
        (places.user.map(below), Some("XDG_CONFIG_HOME")),
        (places.state, Some("XDG_STATE_HOME")),
        (environment.base_folder("XDG_CACHE_HOME", ".cache").map(below), Some("XDG_CACHE_HOME")),
        (runtime.map(below), Some("XDG_RUNTIME_DIR")),
    ]
    .into_iter()
    .filter_map(|(path, variable)| Some(OwnFolder { path: path?, variable }))
    .collect()
}

/// The folder of ours that this workspace holds or lies in, whether it exists yet or not: by path, and by what each
/// folder is, whatever it is called.
pub(super) fn overlap(
    workspace: &Path,
    identity: Identity,
    folders: Vec<OwnFolder>,
) -> Option<OwnFolder> {
    let mut seen = Seen::default();
    folders.into_iter().find(|folder| {
        let own = real(&folder.path, LINKS);
        own.starts_with(workspace)
            || workspace.starts_with(&own)
            || own.ancestors().any(|parent| seen.at(parent) == Some(identity))
            || seen
                .at(&own)
                .is_some_and(|own| workspace.ancestors().any(|parent| seen.at(parent) == Some(own)))
    })
}

/// What stands at paths. Our folders and the workspace have most of their parents in common; each is asked for once.
#[derive(Default)]
struct Seen(HashMap<PathBuf, Option<Identity>>);

impl Seen {
    fn at(&mut self, path: &Path) -> Option<Identity> {
        if let Some(known) = self.0.get(path) {
            return *known;
        }
        let found = identity_at(path);
        self.0.insert(path.to_owned(), found);
        found
    }
}

/// Where a path leads, also if its end does not exist yet: the process that creates it decides what runner reads there.
fn real(path: &Path, links: u32) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    let parent = real(parent, links);
    let here = parent.join(name);
    match here.read_link() {
        Ok(to) if links > 0 => real(&parent.join(to), links - 1),
        _ => here,
    }
}

fn identity_at(path: &Path) -> Option<Identity> {
    let found = path.symlink_metadata().ok()?;
    Some(Identity { dev: found.dev(), ino: found.ino() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_workspace_neither_holds_nor_lies_in_a_folder_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for folder in ["ws/deep", "state/runner/pool", "beside"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        symlink("ws/deep", top.join("link")).unwrap();
        symlink("ws/nothing-yet", top.join("dangling")).unwrap();
        let overlaps = |workspace: &str, own: &str| {
            let workspace = top.join(workspace);
            let folder = OwnFolder { path: top.join(own), variable: None };
            let identity = identity_at(&workspace).unwrap();
            overlap(&workspace, identity, vec![folder]).is_some()
        };
        for (workspace, own) in [
            ("state", "state/runner"),
            ("state/runner", "state/runner"),
            ("state/runner/pool", "state/runner"),
            ("ws", "ws/not/yet"),
            ("ws", "link"),
            ("ws", "link/runner"),
            ("ws", "dangling"),
            ("ws", "dangling/runner"),
        ] {
            assert!(overlaps(workspace, own), "{workspace} and {own}");
        }
        for (workspace, own) in
            [("ws", "state/runner"), ("beside", "link"), ("ws/deep", "ws/deeper"), ("ws", "wsx")]
        {
            assert!(!overlaps(workspace, own), "{workspace} and {own}");
        }
    }

    #[test]
    fn a_folder_under_another_name_is_the_same_folder() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("state/runner")).unwrap();
        std::fs::create_dir_all(top.join("elsewhere/project")).unwrap();
        // As a second mount of the same folder would have it: another path, the same numbers.
        let identity = identity_at(&top.join("state")).unwrap();
        let folder = || vec![OwnFolder { path: top.join("state/runner"), variable: None }];
        let workspace = top.join("elsewhere/project");
        assert!(overlap(&workspace, identity, folder()).is_some());
        assert!(overlap(&workspace, identity_at(&workspace).unwrap(), folder()).is_none());
    }
}
