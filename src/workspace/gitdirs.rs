//! Git folders outside the workspace: of a linked worktree or a submodule.
//!
//! Duty: find where a `.git` file leads, and mount it so that git works: read-only, or writable but for
//! what git runs or is led by. Trust boundary: the `.git` file is the adversary's and may name any
//! folder, say `~/.ssh`. It is believed only if the folder points back at this workspace, from a
//! place that the workspace's content cannot reach.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, openat2};

use super::Workspace;
use super::protected::{self, Guard};
use crate::engine::plan::{Access, Mount, MountRole, Note};
use crate::ids::Identity;

/// Longest `.git` file that is read: a path, and a little more.
const MAX_POINTER: u64 = 8 * 1024;

/// What a workspace needs of git outside itself.
#[derive(Debug, Default)]
pub struct GitDirs {
    /// In mount order.
    pub mounts: Vec<Mount>,
    /// Protected paths that must not appear, absolute.
    pub guarded: Vec<PathBuf>,
    /// What a user should know.
    pub notes: Vec<Note>,
}

/// Finds and mounts the git folders that a workspace's `.git` file leads to.
#[must_use]
pub fn find(workspace: &Workspace, access: Access) -> GitDirs {
    let mut out = GitDirs::default();
    let Some(pointer) = pointer(workspace) else { return out };
    match lead(workspace, &pointer) {
        Some(Lead::Inside) => {}
        Some(Lead::Worktree { common, own }) => out.worktree(&common, &own, access),
        Some(Lead::Submodule { folder }) => out.git_folder(&folder, access),
        None => out.notes.push(Note {
            code: "git_pointer",
            text: format!(
                "`.git` leads to {}, which does not point back at this workspace, and is not mounted; \
                 `git worktree repair` or `git submodule absorbgitdirs` may help",
                pointer.display()
            ),
        }),
    }
    out
}

enum Lead {
    /// To a folder of the workspace itself.
    Inside,
    /// To a worktree's own folder, and the one it shares with others.
    Worktree { common: PathBuf, own: PathBuf },
    /// To a submodule's folder in the git folder of the project around it.
    Submodule { folder: PathBuf },
}

/// What the `.git` file says, if it is a file.
fn pointer(workspace: &Workspace) -> Option<PathBuf> {
    if workspace.open(Path::new(".git")).ok()?.kind != FileType::RegularFile {
        return None;
    }
    let handle = openat2(
        workspace.handle(),
        ".git",
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
    .ok()?;
    let text = read_short(std::fs::File::from(handle))?;
    let path = text.strip_prefix(b"gitdir:")?.trim_ascii();
    (!path.is_empty()).then(|| workspace.root().join(OsStr::from_bytes(path)))
}

fn read_short(file: impl Read) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    file.take(MAX_POINTER).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The path in a one-line file, relative to the folder that the file is in.
fn path_in(folder: &Path, name: &str) -> Option<PathBuf> {
    let text = read_short(std::fs::File::open(folder.join(name)).ok()?)?;
    folder.join(OsStr::from_bytes(text.trim_ascii())).canonicalize().ok()
}

fn lead(workspace: &Workspace, pointer: &Path) -> Option<Lead> {
    let folder = pointer.canonicalize().ok()?;
    if folder.starts_with(workspace.root()) {
        return Some(Lead::Inside);
    }
    // A git folder around the workspace, or at the root of everything, is not one that git made.
    if workspace.root().starts_with(&folder) || !folder.join("HEAD").is_file() {
        return None;
    }
    if let Some(common) = path_in(&folder, "commondir") {
        let back = path_in(&folder, "gitdir")?;
        let ours = back == workspace.root().join(".git");
        let placed = folder.parent() == Some(common.join("worktrees").as_path());
        let whole = common.join("HEAD").is_file() && common.join("objects").is_dir();
        let apart = !common.starts_with(workspace.root()) && !workspace.root().starts_with(&common);
        return (ours && placed && whole && apart)
            .then_some(Lead::Worktree { common, own: folder });
    }
    let ours = core_worktree(&folder)? == workspace.root();
    (ours && folder.join("objects").is_dir()).then_some(Lead::Submodule { folder })
}

/// `core.worktree` of a git folder, as an absolute path.
fn core_worktree(folder: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(folder.join("config")).ok()?;
    let mut in_core = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            in_core = section.trim_end_matches(']').trim().eq_ignore_ascii_case("core");
        } else if in_core
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("worktree")
        {
            return folder.join(value.trim().trim_matches('"')).canonicalize().ok();
        }
    }
    None
}

impl GitDirs {
    /// A worktree: the shared folder is read-only, and what a commit writes is opened by itself.
    fn worktree(&mut self, common: &Path, own: &Path, access: Access) {
        self.push(common, Access::ReadOnly);
        if access == Access::ReadOnly {
            return;
        }
        for name in ["objects", "refs", "logs", "lfs", "rr-cache"] {
            if common.join(name).is_dir() {
                self.push(&common.join(name), Access::ReadWrite);
            }
        }
        self.close(&common.join("objects/info"));
        self.git_folder(own, access);
    }

    /// A git folder: writable but for what git runs or is led by.
    fn git_folder(&mut self, folder: &Path, access: Access) {
        self.push(folder, access);
        if access == Access::ReadOnly {
            return;
        }
        for path in protected::in_git(folder) {
            let below = path.strip_prefix(folder).unwrap_or(&path);
            debug_assert_eq!(protected::guard_in_git(below), Guard::ReadOnly);
            match path.symlink_metadata() {
                Ok(_) if below.components().count() == 1 => self.close(&path),
                // `info/attributes`: the folder that it is in, or would be made in.
                _ => match path.parent() {
                    Some(parent) if parent != folder && parent.is_dir() => {
                        if !self.mounts.iter().any(|mount| mount.target == parent) {
                            self.anchor(folder, parent);
                            self.close(parent);
                        }
                    }
                    _ => self.guarded.push(path),
                },
            }
        }
    }

    /// Makes the folders between two paths mount points.
    fn anchor(&mut self, top: &Path, path: &Path) {
        let between: Vec<PathBuf> = path
            .ancestors()
            .skip(1)
            .take_while(|above| *above != top)
            .map(Path::to_owned)
            .collect();
        for folder in between.iter().rev() {
            if !self.mounts.iter().any(|mount| mount.target == *folder) {
                self.push(folder, Access::ReadWrite);
            }
        }
    }

    fn close(&mut self, path: &Path) {
        if path.exists() {
            self.push(path, Access::ReadOnly);
        }
    }

    fn push(&mut self, path: &Path, access: Access) {
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() || found.is_file() => self.mounts.push(Mount {
                source: path.to_owned(),
                target: path.to_owned(),
                access,
                identity: Identity { dev: found.dev(), ino: found.ino() },
                role: MountRole::Git,
            }),
            // A link cannot be mounted over, and could be replaced: close the folder instead.
            Ok(_) => {
                if let Some(above) = path.parent()
                    && let Some(mount) = self.mounts.iter_mut().find(|mount| mount.target == above)
                {
                    mount.access = Access::ReadOnly;
                }
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    struct Case {
        _dir: tempfile::TempDir,
        top: PathBuf,
    }

    fn git(folder: &Path, args: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// `main` with a commit, its linked worktree `tree`, and `outer` with the submodule `outer/sub`.
    fn case() -> Case {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for name in ["main", "outer"] {
            std::fs::create_dir(top.join(name)).unwrap();
            git(&top.join(name), &["init", "-q"]);
            git(&top.join(name), &["commit", "-q", "--allow-empty", "-m", "x"]);
        }
        git(&top.join("main"), &["worktree", "add", "-q", "../tree"]);
        git(&top.join("outer"), &["submodule", "add", "-q", "../main", "sub"]);
        Case { top, _dir: dir }
    }

    fn look(case: &Case, name: &str, access: Access) -> (Vec<String>, GitDirs) {
        let workspace = Workspace::find(
            Some(&case.top.join(name)),
            &crate::environment::Environment::default(),
        )
        .unwrap();
        assert_eq!(workspace.root(), case.top.join(name));
        let found = find(&workspace, access);
        let shown = found
            .mounts
            .iter()
            .map(|mount| {
                let path = mount.target.strip_prefix(&case.top).unwrap().display();
                match mount.access {
                    Access::ReadOnly => format!("ro {path}"),
                    Access::ReadWrite => format!("rw {path}"),
                }
            })
            .collect();
        (shown, found)
    }

    #[test]
    fn a_worktree_brings_the_shared_folder() {
        let case = case();
        assert_eq!(look(&case, "tree", Access::ReadOnly).0, ["ro main/.git"]);
        let (writable, found) = look(&case, "tree", Access::ReadWrite);
        for needed in [
            "ro main/.git",
            "rw main/.git/objects",
            "rw main/.git/refs",
            "ro main/.git/objects/info",
            "rw main/.git/worktrees/tree",
            "ro main/.git/worktrees/tree/commondir",
            "ro main/.git/worktrees/tree/gitdir",
        ] {
            assert!(writable.iter().any(|shown| shown == needed), "{needed} in {writable:?}");
        }
        assert!(found.guarded.contains(&case.top.join("main/.git/worktrees/tree/config.worktree")));
    }

    #[test]
    fn a_submodule_brings_its_folder() {
        let case = case();
        assert_eq!(look(&case, "outer/sub", Access::ReadOnly).0, ["ro outer/.git/modules/sub"]);
        let (writable, _) = look(&case, "outer/sub", Access::ReadWrite);
        for needed in [
            "rw outer/.git/modules/sub",
            "ro outer/.git/modules/sub/config",
            "ro outer/.git/modules/sub/hooks",
            "ro outer/.git/modules/sub/info",
        ] {
            assert!(writable.iter().any(|shown| shown == needed), "{needed} in {writable:?}");
        }
    }

    #[test]
    fn an_ordinary_repository_brings_nothing() {
        let case = case();
        assert!(look(&case, "main", Access::ReadWrite).0.is_empty());
    }

    #[test]
    fn a_pointer_is_believed_only_if_the_folder_points_back() {
        let case = case();
        let victim = case.top.join("victim");
        std::fs::create_dir_all(victim.join("objects")).unwrap();
        std::fs::write(victim.join("HEAD"), "ref: refs/heads/x\n").unwrap();
        std::fs::write(victim.join("config"), "[core]\n\tbare = false\n").unwrap();
        let evil = case.top.join("evil");
        std::fs::create_dir(&evil).unwrap();
        let main = case.top.join("main/.git");
        let tree = main.join("worktrees/tree");
        for target in [&victim, &main, &tree, &case.top, &PathBuf::from("/etc"), &evil.join("none")]
        {
            std::fs::write(evil.join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
            let (shown, found) = look(&case, "evil", Access::ReadWrite);
            assert!(shown.is_empty(), "{}: {shown:?}", target.display());
            assert_eq!(found.notes[0].code, "git_pointer");
        }
    }
}
