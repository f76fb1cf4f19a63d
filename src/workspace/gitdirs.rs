//! Git folders outside the workspace: of a linked worktree or a submodule.
//!
//! Duty: find where a `.git` file leads, so that it can be shown and git works. Trust boundary: the `.git` file is the adversary's and may name any
//! folder, say `~/.ssh`. It is believed only if the folder points back at this workspace, from a
//! place that the workspace's content cannot reach.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, openat2};

use super::Workspace;
use crate::engine::plan::Note;
use crate::ids::Identity;

/// Longest `.git` file that is read: a path, and a little more.
const MAX_POINTER: u64 = 8 * 1024;

/// What a workspace needs of git outside itself.
#[derive(Debug, Default)]
pub struct GitDirs {
    /// The git folder that its `.git` file leads to: of a submodule, or the one that linked worktrees
    /// share.
    pub folder: Option<(PathBuf, Identity)>,
    /// The git folder that has the index of the workspace: the same, or one below its `worktrees`.
    pub own: Option<PathBuf>,
    /// What a user should know.
    pub notes: Vec<Note>,
}

/// Finds the git folder that a workspace's `.git` file leads to.
#[must_use]
pub fn find(workspace: &Workspace) -> GitDirs {
    let Some(pointer) = pointer(workspace) else { return GitDirs::default() };
    match lead(workspace, &pointer) {
        Some(Lead::Inside) => GitDirs::default(),
        Some(Lead::Outside(folder)) => {
            let found = folder.symlink_metadata().ok().filter(std::fs::Metadata::is_dir);
            let identity = found.map(|found| Identity { dev: found.dev(), ino: found.ino() });
            let own = pointer.canonicalize().ok().filter(|own| own.starts_with(&folder));
            let folder = identity.map(|identity| (folder, identity));
            GitDirs { folder, own, notes: Vec::new() }
        }
        None => GitDirs {
            folder: None,
            own: None,
            notes: vec![Note {
                code: "git_pointer",
                text: format!(
                    "`.git` leads to {}, which does not point back at this workspace, and is not mounted; \
                     `git worktree repair` or `git submodule absorbgitdirs` may help",
                    pointer.display()
                ),
            }],
        },
    }
}

enum Lead {
    /// To a folder of the workspace itself.
    Inside,
    /// To a submodule's folder in the git folder of the project around it, or to that of a linked
    /// worktree, which lies in the folder that it shares with others: this one.
    Outside(PathBuf),
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
        return (ours && placed && whole && apart).then_some(Lead::Outside(common));
    }
    let ours = core_worktree(&folder)? == workspace.root();
    (ours && folder.join("objects").is_dir()).then_some(Lead::Outside(folder))
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

    fn look(case: &Case, name: &str) -> (Option<PathBuf>, GitDirs) {
        let workspace = Workspace::find(
            Some(&case.top.join(name)),
            &crate::environment::Environment::default(),
        )
        .unwrap();
        assert_eq!(workspace.root(), case.top.join(name));
        let found = find(&workspace);
        let shown =
            found.folder.as_ref().map(|(path, _)| path.strip_prefix(&case.top).unwrap().to_owned());
        (shown, found)
    }

    #[test]
    fn a_worktree_brings_the_shared_folder_and_a_submodule_its_own() {
        let case = case();
        assert_eq!(look(&case, "tree").0, Some("main/.git".into()));
        assert_eq!(look(&case, "outer/sub").0, Some("outer/.git/modules/sub".into()));
        assert_eq!(look(&case, "main").0, None, "an ordinary repository has all it needs");
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
            let (shown, found) = look(&case, "evil");
            assert!(shown.is_none(), "{}: {shown:?}", target.display());
            assert_eq!(found.notes[0].code, "git_pointer");
        }
    }
}
