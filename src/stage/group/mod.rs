//! Git folders: what belongs together, and under which locks it is applied.
//!
//! Objects are applied first: nothing refers to them yet. The index, `HEAD`, refs and logs come last, all
//! or none, while git's own lock files are held. If a call moved a branch, and a path that git tracks is
//! held back or in conflict, nothing of the call is applied: the commit would not match the files. The same
//! holds for the state of an unfinished rebase: without it, `HEAD` would be in the middle of nothing.
//!
//! Non-goals: which git files may be written at all; the judge decides that. An index is compared
//! without the facts of files, so a `git status` on the host is no conflict.

mod folders;

pub use folders::GitFolders;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::apply::act::RootHandles;
use super::change::Held;
use super::change::RootKind;
use super::conflict::{Finding, open_file};
use super::folder::Stage;
use super::gitconfig;
use super::handles::{self, split};
use crate::git_index::{MAX_INDEX, Tracked, same_but_stat};

/// What a path in a git folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// An object, or a file of LFS: named by its content.
    Objects,
    /// The index, `HEAD`, a ref or a log: applied all or none.
    Metadata,
    /// Anything else.
    Other,
}

/// Whether a call moved a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    Branch,
    Nothing,
}

/// What must not be applied although it could be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// Nothing.
    Free,
    /// The metadata of these git folders, by root.
    Metadata(Vec<(usize, PathBuf)>),
    /// Everything.
    Everything,
}

pub(super) fn part_of_rest(rest: &Path) -> Part {
    let mut parts = rest.components();
    let Some(Component::Normal(first)) = parts.next() else { return Part::Other };
    let alone = parts.next().is_none();
    match first.as_bytes() {
        b"objects" | b"lfs" => Part::Objects,
        b"refs" | b"logs" => Part::Metadata,
        b"index" | b"packed-refs" if alone => Part::Metadata,
        // `HEAD`, `ORIG_HEAD`, `FETCH_HEAD`, `MERGE_HEAD`, `CHERRY_PICK_HEAD` and the like.
        name if alone && name.ends_with(b"HEAD") => Part::Metadata,
        _ => Part::Other,
    }
}

/// Whether the path is that of an index.
pub(super) fn is_index(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "index")
}

/// In which order metadata are applied: logs, refs, packed refs, index, `HEAD`.
pub(super) fn order(path: &Path) -> (u8, PathBuf) {
    let name = path.file_name().map_or(&b""[..], |name| name.as_bytes());
    let has = |part: &str| path.iter().any(|found| found == part);
    let rank = match name {
        b"HEAD" if !has("logs") && !has("refs") => 4,
        b"index" if !has("logs") && !has("refs") => 3,
        b"packed-refs" => 2,
        _ if has("logs") => 0,
        _ => 1,
    };
    (rank, path.to_owned())
}

/// The lock file that git holds while it changes a file of the metadata; logs have none.
pub(super) fn lock_of(path: &Path) -> Option<PathBuf> {
    if path.iter().any(|part| part == "logs") {
        return None;
    }
    let mut name = path.file_name()?.to_owned();
    name.push(".lock");
    Some(path.with_file_name(name))
}

/// Whether changing this moves a branch.
pub(super) fn moves_branch(rest: &Path) -> bool {
    let first = rest.iter().next().unwrap_or_default();
    first == "refs" || rest == Path::new("HEAD") || rest == Path::new("packed-refs")
}

/// Whether git keeps a commit there to go on with, or to go back to.
pub(super) fn keeps_commit(rest: &Path) -> bool {
    let name = rest.file_name().unwrap_or_default().as_bytes();
    rest.iter().count() == 1
        && (name.ends_with(b"_HEAD") || name == b"MERGE_AUTOSTASH" || name.starts_with(b"BISECT_"))
}

/// Whether it is the state of a rebase or sequence that is not finished.
fn is_unfinished(rest: &Path) -> bool {
    let first = rest.iter().next().unwrap_or_default();
    first == "rebase-merge" || first == "rebase-apply" || first == "sequencer"
}

/// Decides what belongs together, from what could be applied and what is held back.
pub(super) fn decide(
    stage: &Stage,
    roots: &[RootHandles],
    folders: &[GitFolders<'_>],
    ready: &[(usize, &Path)],
    held: &[(usize, PathBuf, Held)],
) -> (Moved, Together) {
    let of = |root: usize, path: &Path| folders[root].of(path);
    let all =
        || ready.iter().copied().chain(held.iter().map(|(root, path, _)| (*root, path.as_path())));
    let moved: Vec<(usize, PathBuf)> = all()
        .filter_map(|(root, path)| {
            let (folder, rest) = of(root, path)?;
            // A repository that the host does not have has no branch there.
            let known = handles::open_folder(&roots[root].host, &folder).is_ok();
            (known && moves_branch(&rest)).then_some((root, folder))
        })
        .collect();
    let in_git = |root: usize, path: &Path| {
        let belongs = |rest: &Path| part_of_rest(rest) == Part::Metadata || is_unfinished(rest);
        of(root, path).filter(|(_, rest)| belongs(rest))
    };
    if !moved.is_empty() {
        // A worktree that is new has no files that could differ from its commit before.
        let known = moved
            .iter()
            .filter(|(root, folder)| handles::open_folder(&roots[*root].host, folder).is_ok());
        let mut tracked = BTreeMap::new();
        for (root, folder) in known {
            tracked.entry((*root, folder)).or_insert_with(|| indexes(stage, roots, *root, folder));
        }
        let is_tracked = |root: usize, path: &Path| {
            if of(root, path).is_some() {
                return in_git(root, path).is_some()
                    || folders[root].part(path) == Some(Part::Objects);
            }
            tracked.values().any(|found| match found {
                // What cannot be read may track anything.
                None => true,
                Some((above, indexes)) => path.strip_prefix(above).is_ok_and(|below| {
                    indexes.iter().any(|index| index.has(below.as_os_str().as_bytes()))
                }),
            })
        };
        let stays = held.iter().any(|(root, path, _)| is_tracked(*root, path));
        return (Moved::Branch, if stays { Together::Everything } else { Together::Free });
    }
    let broken: Vec<(usize, PathBuf)> = held
        .iter()
        .filter_map(|(root, path, _)| in_git(*root, path).map(|(folder, _)| (*root, folder)))
        .collect();
    (Moved::Nothing, if broken.is_empty() { Together::Free } else { Together::Metadata(broken) })
}

/// The indexes of a git folder, of the host and of the stage, with the folder that their paths are below.
/// `None` if one cannot be understood.
fn indexes(
    stage: &Stage,
    roots: &[RootHandles],
    root: usize,
    folder: &Path,
) -> Option<(PathBuf, Vec<Tracked>)> {
    let above = match stage.roots()[root].kind {
        RootKind::GitFolder => PathBuf::new(),
        RootKind::Workspace => top(&stage.roots()[root].path(), &roots[root].host, folder)?,
    };
    let path = folder.join("index");
    let mut found = Vec::new();
    for handle in [&roots[root].host, &roots[root].upper] {
        match read(handle, &path) {
            Ok(bytes) => found.push(Tracked::read(&bytes).ok()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    // Without any index it is not known what is tracked.
    (!found.is_empty()).then_some((above, found))
}

/// The top of the working tree that a git folder belongs to, below the root; `None` if it is not known.
fn top(root: &Path, host: &OwnedFd, folder: &Path) -> Option<PathBuf> {
    if folder.file_name()? == ".git" {
        return folder.parent().map(Path::to_owned);
    }
    let written = match folder.parent()?.file_name()?.as_bytes() {
        b"worktrees" => {
            let text = read(host, &folder.join("gitdir")).ok()?;
            Path::new(OsStr::from_bytes(text.trim_ascii())).parent()?.to_owned()
        }
        _ => {
            let config = gitconfig::parse(&read(host, &folder.join("config")).ok()?)?;
            PathBuf::from(config.worktree()?)
        }
    };
    // As git writes it: absolute, or relative with `..` before all names.
    let mut top = PathBuf::new();
    for part in root.join(folder).join(written).components() {
        match part {
            Component::ParentDir => {
                top.pop();
            }
            part => top.push(part),
        }
    }
    top.strip_prefix(root).ok().map(Path::to_owned)
}

fn read(root: &OwnedFd, path: &Path) -> io::Result<Vec<u8>> {
    let (folder, name) = split(path).ok_or(io::ErrorKind::InvalidInput)?;
    let file = open_file(handles::open_folder(root, folder)?, name)?;
    if file.metadata()?.len() > MAX_INDEX as u64 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_INDEX as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Keeps the host's index as it is when a call begins, so that it can be told later whether the host
/// changed more of it than facts of files. A repository without an index has nothing to keep.
///
/// # Errors
/// It cannot be read, or not be written in the stage.
pub fn remember_index(stage: &Stage, root: usize, git_folder: &Path) -> io::Result<()> {
    let host = stage.roots()[root].open().map_err(io::Error::other)?;
    let path = git_folder.join("index");
    match read(&host, &path) {
        Ok(bytes) => std::fs::write(base_of(stage, root, &path), bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn base_of(stage: &Stage, root: usize, path: &Path) -> PathBuf {
    let digest = blake3::hash(path.as_os_str().as_bytes()).to_hex();
    stage.folder().join(root.to_string()).join(format!("index-{}", &digest[..16]))
}

/// Looks again at a finding about an index: what differs in facts of files only does not differ.
pub(super) fn find_index(
    stage: &Stage,
    root: usize,
    handles: &RootHandles,
    path: &Path,
    finding: Finding,
) -> Finding {
    let Ok(now) = read(&handles.host, path) else { return finding };
    if read(&handles.upper, path).is_ok_and(|staged| same_but_stat(&staged, &now)) {
        return Finding::NoChange;
    }
    if !matches!(finding, Finding::Conflict(_)) {
        return finding;
    }
    match std::fs::read(base_of(stage, root, path)) {
        Ok(base) if same_but_stat(&base, &now) => Finding::Applies,
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn paths_of_git_folders_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        // Names with a slash, and one that is a part of a git folder.
        for git in [".git/modules/m", ".git/modules/libs/logs", "repo.git"] {
            for folder in ["objects", "refs"] {
                std::fs::create_dir_all(dir.path().join(git).join(folder)).unwrap();
            }
            std::fs::write(dir.path().join(git).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        let host = std::fs::File::open(dir.path()).unwrap();
        let folders = GitFolders::new(RootKind::Workspace, host.as_fd());
        let of = |path: &str| folders.part(Path::new(path));
        for path in
            [".git/objects/aa/bb", "sub/.git/lfs/objects/x", ".git/modules/m/objects/pack/p"]
        {
            assert_eq!(of(path), Some(Part::Objects), "{path}");
        }
        for path in [
            ".git/index",
            ".git/HEAD",
            ".git/ORIG_HEAD",
            ".git/refs/heads/main",
            ".git/packed-refs",
            ".git/logs/HEAD",
            "a/.git/worktrees/w/HEAD",
            ".git/modules/m/refs/heads/x",
            ".git/modules/libs/logs/index",
            "repo.git/refs/heads/x",
            "repo.git/worktrees/w/index",
        ] {
            assert_eq!(of(path), Some(Part::Metadata), "{path}");
        }
        for path in [".git/config", ".git/info/exclude", ".git/hooks/index", ".git/COMMIT_EDITMSG"]
        {
            assert_eq!(of(path), Some(Part::Other), "{path}");
        }
        let split = |path: &str| folders.of(Path::new(path)).unwrap();
        assert_eq!(
            split(".git/modules/libs/logs/index"),
            (".git/modules/libs/logs".into(), "index".into())
        );
        assert_eq!(
            split("repo.git/worktrees/w/index"),
            ("repo.git/worktrees/w".into(), "index".into())
        );
        assert_eq!(of("src/index"), None);
        assert_eq!(of(".git"), None);
        let folders = GitFolders::new(RootKind::GitFolder, host.as_fd());
        assert_eq!(folders.part(Path::new("worktrees/w/index")), Some(Part::Metadata));
        assert_eq!(lock_of(Path::new(".git/refs/heads/x")), Some(".git/refs/heads/x.lock".into()));
        assert_eq!(lock_of(Path::new(".git/logs/HEAD")), None);
    }
}
