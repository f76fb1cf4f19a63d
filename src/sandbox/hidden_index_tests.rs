//! Real repositories, and the copies of their indexes.

use std::process::Command;

use super::*;
use crate::environment::Environment;
use crate::git_index::Index;

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

struct Case {
    dir: tempfile::TempDir,
    workspace: Workspace,
}

/// A repository with `.env`, `a` and `sub/b`.
fn case() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("w");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    for name in [".env", "a", "sub/b"] {
        std::fs::write(root.join(name), name).unwrap();
    }
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "one"]);
    let workspace = Workspace::find(Some(&root), &Environment::default()).unwrap();
    Case { dir, workspace }
}

impl Case {
    fn trees(&self, repositories: &[&str]) -> Vec<WorkTree> {
        trees(&self.workspace, &repositories.iter().map(PathBuf::from).collect())
    }

    fn contents(
        &self,
        covered: &[&str],
        missing: Missing,
    ) -> (BTreeMap<PathBuf, Content>, Vec<Note>) {
        let covered = covered.iter().map(PathBuf::from).collect();
        let hiding = Hiding { covered: &covered, state: &self.dir.path().join("state"), missing };
        let mut notes = Vec::new();
        let at = (self.workspace.handle(), self.workspace.root());
        let found = contents(at, &self.trees(&[".git"]), hiding, &mut notes);
        (found, notes)
    }

    fn remembered(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.dir.path().join("state/tracked"));
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }
}

fn skipped(bytes: &[u8]) -> Vec<Vec<u8>> {
    let index = Index::read(bytes).unwrap();
    let skipped = index.entries().iter().filter(|entry| entry.is_skipped());
    skipped.map(|entry| index.path(entry).to_vec()).collect()
}

#[test]
fn an_index_is_copied_once_until_it_or_the_covers_change() {
    let case = case();
    let (found, notes) = case.contents(&[".env"], Missing::Make);
    assert!(notes.is_empty());
    let content = found[Path::new(".git/index")].clone();
    assert_eq!(skipped(&std::fs::read(&content.source).unwrap()), [b".env".to_vec()]);
    let real = case.workspace.root().join(".git/index").metadata().unwrap();
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(content.modified, (real.mtime(), real.mtime_nsec()));
    assert_eq!(content.mode, real.mode() & 0o777);
    // What is remembered is believed: the index is not read again.
    std::fs::write(&content.source, "").unwrap();
    assert!(case.contents(&[".env"], Missing::Make).0.is_empty());
    std::fs::write(&content.source, "x").unwrap();
    assert_eq!(case.contents(&[".env"], Missing::Make).0[Path::new(".git/index")], content);
    let other = case.contents(&[".env", "sub"], Missing::Make).0;
    let other = &other[Path::new(".git/index")];
    assert_eq!(skipped(&std::fs::read(&other.source).unwrap()), [&b".env"[..], b"sub/b"]);
    std::fs::write(case.workspace.root().join("new"), "").unwrap();
    git(case.workspace.root(), &["add", "new"]);
    assert_ne!(case.contents(&[".env"], Missing::Make).0[Path::new(".git/index")], content);
    assert_eq!(case.remembered().len(), 3);
}

#[test]
fn what_git_does_not_track_needs_no_copy() {
    let case = case();
    assert!(case.contents(&[], Missing::Make).0.is_empty());
    assert!(case.remembered().is_empty());
    assert!(case.contents(&["other/.env"], Missing::Make).0.is_empty());
    let remembered = case.remembered();
    assert_eq!(remembered.len(), 1);
    assert_eq!(remembered[0].metadata().unwrap().len(), 0);
    forget(&case.dir.path().join("state"));
    assert_eq!(case.remembered().len(), 1);
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(KEPT_SECONDS + 60);
    File::options().write(true).open(&remembered[0]).unwrap().set_modified(old).unwrap();
    forget(&case.dir.path().join("state"));
    assert!(case.remembered().is_empty());
}

#[test]
fn a_description_leaves_nothing_behind() {
    let case = case();
    assert_eq!(case.contents(&[".env"], Missing::Describe).0.len(), 1);
    assert!(case.remembered().is_empty());
}

#[test]
fn an_index_that_cannot_be_hidden_is_noted() {
    let case = case();
    git(case.workspace.root(), &["update-index", "--split-index"]);
    let (found, notes) = case.contents(&[".env"], Missing::Make);
    assert!(found.is_empty());
    assert_eq!(notes[0].code, "git_index");
    assert!(notes[0].text.contains("split index"), "{}", notes[0].text);
}

#[test]
fn worktrees_and_submodules_have_their_index_elsewhere() {
    let case = case();
    let root = case.workspace.root();
    git(root, &["worktree", "add", "-q", "wt"]);
    git(root, &["submodule", "add", "-q", root.to_str().unwrap(), "module"]);
    std::fs::create_dir(root.join("lost")).unwrap();
    std::fs::write(root.join("lost/.git"), "gitdir: /etc\n").unwrap();
    let found = case.trees(&[".git", "lost/.git", "module/.git", "wt/.git"]);
    let found: Vec<_> = found
        .iter()
        .map(|tree| (tree.git.strip_prefix(root).unwrap(), tree.top.as_path()))
        .collect();
    let tree = |git, top| (Path::new(git), Path::new(top));
    let expected =
        [tree(".git", ""), tree(".git/modules/module", "module"), tree(".git/worktrees/wt", "wt")];
    assert_eq!(found, expected);
}
