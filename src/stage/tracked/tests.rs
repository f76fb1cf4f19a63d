//! Real repositories: in an overlay with covers, and refs in two layers.

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::refs::{HeldRef, Question, RefsError, check};
use crate::git_index::tests::{command, git, says};
use crate::git_index::{self as index, SPARSE_CONFIG};

fn covered(path: &[u8]) -> bool {
    path == b".env" || path.ends_with(b"/.env")
}

/// A repository `repo` with covered files, beside the layers of an overlay over it.
struct Case {
    dir: tempfile::TempDir,
}

impl Case {
    fn new(format: &str) -> Self {
        let case = Self { dir: tempfile::tempdir().unwrap() };
        for folder in ["repo/sub", "covers/sub", "covers/.git", "upper", "work", "merged", "room"] {
            fs::create_dir_all(case.at(folder)).unwrap();
        }
        let repo = case.at("repo");
        git(&repo, &["init", "-q", "-b", "main", &format!("--object-format={format}")]);
        for (path, content) in
            [(".env", "KEY=1\n"), ("a", "a\n"), ("sub/.env", "KEY=2\n"), ("sub/b", "b\n")]
        {
            fs::write(repo.join(path), content).unwrap();
        }
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-q", "-m", "one"]);
        case
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Covers the files and places the hidden index, with the time of the host's.
    fn cover(&self) {
        let host = self.at("repo/.git/index");
        let hidden = index::hide(&fs::read(&host).unwrap(), &covered).unwrap().unwrap();
        let copy = self.at("covers/.git/index");
        fs::write(&copy, hidden).unwrap();
        let time = fs::metadata(&host).unwrap().modified().unwrap();
        File::options().write(true).open(&copy).unwrap().set_modified(time).unwrap();
        fs::write(self.at("covers/.env"), "").unwrap();
        fs::write(self.at("covers/sub/.env"), "").unwrap();
    }

    /// Runs lines of shell in the overlay, in a mount namespace of their own. They must succeed.
    fn inside(&self, lines: &str) -> String {
        let script = format!(
            "set -eu\n\
             mount -t overlay overlay \
             -o userxattr,nosuid,nodev,lowerdir=covers:repo,upperdir=upper,workdir=work merged\n\
             cd merged\n{lines}\n"
        );
        let done = command(self.dir.path(), "unshare")
            .args(["-m", "sh", "-c", &script])
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", SPARSE_CONFIG.0)
            .env("GIT_CONFIG_VALUE_0", SPARSE_CONFIG.1)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
        text
    }

    /// What the stage does to the refs.
    fn check(&self) -> Result<Vec<HeldRef>, RefsError> {
        self.check_with(Path::new("/usr/bin/git"), Instant::now() + Duration::from_secs(600))
    }

    fn check_with(&self, git: &Path, deadline: Instant) -> Result<Vec<HeldRef>, RefsError> {
        let host = File::open(self.at("repo/.git")).unwrap();
        let staged = File::open(self.at("upper/.git")).unwrap();
        let answer = check(&Question {
            host: host.as_fd(),
            staged: staged.as_fd(),
            commits: &[],
            held: &|entries| {
                let found = entries.iter().find(|entry| covered(&entry.path))?;
                Some(found.path.clone())
            },
            git,
            room: &self.at("room"),
            deadline,
        });
        assert_eq!(fs::read_dir(self.at("room")).unwrap().count(), 0, "the scratch folder is gone");
        answer
    }

    /// Applies the stage as the host would: everything but covered paths, and the index revealed.
    fn apply(&self) {
        assert_eq!(self.check().unwrap(), []);
        let (repo, upper) = (self.at("repo"), self.at("upper"));
        let original = fs::read(repo.join(".git/index")).unwrap();
        let staged = upper.join(".git/index");
        let revealed = fs::read(&staged)
            .ok()
            .map(|staged| index::reveal(&staged, &original, &covered).unwrap());
        for path in self.staged_covers() {
            fs::remove_file(upper.join(path)).unwrap();
        }
        let copied = Command::new("cp").arg("-a").arg(upper.join(".")).arg(&repo).status().unwrap();
        assert!(copied.success());
        // What the stage removed: whiteouts.
        let swept = Command::new("find").arg(&repo).args(["-type", "c", "-delete"]).status();
        assert!(swept.unwrap().success());
        fs::write(repo.join(".git/index"), revealed.unwrap_or(original)).unwrap();
    }

    /// Covered paths that the stage has.
    fn staged_covers(&self) -> Vec<&'static str> {
        let staged = |path: &&str| self.at("upper").join(path).symlink_metadata().is_ok();
        [".env", "sub/.env"].into_iter().filter(staged).collect()
    }

    fn assert_intact(&self) {
        let repo = self.at("repo");
        assert_eq!(fs::read_to_string(repo.join(".env")).unwrap(), "KEY=1\n");
        assert_eq!(fs::read_to_string(repo.join("sub/.env")).unwrap(), "KEY=2\n");
        assert_eq!(says(&repo, &["status", "--porcelain"]), "");
        assert_eq!(says(&repo, &["show", "HEAD:.env"]), "KEY=1\n");
        assert_eq!(says(&repo, &["show", "HEAD:sub/.env"]), "KEY=2\n");
        assert!(!says(&repo, &["ls-files", "-t"]).contains("S "));
        git(&repo, &["fsck", "--strict"]);
    }
}

/// Neither shown nor changed, whatever git does inside.
const EVERYDAY: &str = "
test ! -s .env && test ! -s sub/.env
git status --porcelain
git diff
git diff HEAD
git diff-index --name-only HEAD
echo change >> a
git add -A
git diff --cached --name-only
git commit -q -a -m two
echo more >> sub/b
git stash -q
git stash pop -q
git commit -q -a -m three
git switch -q -c topic HEAD~1
echo topic > topic
git add -A
git commit -q -a -m topic
git rebase -q main
git switch -q main
git merge -q --ff-only topic
git reset -q --hard HEAD
git checkout -q .
git branch -q -d topic
git status --porcelain
";

#[test]
fn everyday_git_neither_shows_nor_changes_a_covered_path() {
    for format in ["sha1", "sha256"] {
        for version in ["2", "4"] {
            let case = Case::new(format);
            git(&case.at("repo"), &["update-index", "--index-version", version]);
            case.cover();
            assert_eq!(case.inside(EVERYDAY), "a\n", "{format}, version {version}");
            assert!(case.staged_covers().is_empty());
            case.apply();
            case.assert_intact();
            let log = says(&case.at("repo"), &["log", "--format=%s"]);
            assert_eq!(log, "topic\nthree\ntwo\none\n");
        }
    }
}

#[test]
fn without_the_bit_git_shows_and_commits_the_loss() {
    let case = Case::new("sha1");
    case.cover();
    fs::remove_file(case.at("covers/.git/index")).unwrap();
    let shown = case.inside("git diff; git commit -q -a -m lost");
    assert!(shown.contains("-KEY=1"));
    let held = case.check().unwrap();
    let names: Vec<_> = held.iter().map(|held| held.name.as_slice()).collect();
    assert_eq!(names, [b"HEAD".as_slice(), b"refs/heads/main"]);
    assert!(held.iter().all(|held| held.path == b".env"));
}

#[test]
fn a_sparse_checkout_hides_and_reveals_too() {
    for sparse_index in ["--sparse-index", "--no-sparse-index"] {
        let case = Case::new("sha1");
        let repo = case.at("repo");
        fs::create_dir(repo.join("far")).unwrap();
        fs::write(repo.join("far/c"), "c\n").unwrap();
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-q", "-m", "far"]);
        git(&repo, &["sparse-checkout", "set", "--cone", sparse_index, "sub"]);
        case.cover();
        let shown = case.inside(
            "git status --porcelain
             git diff
             echo x >> a
             git add -A
             git commit -q -a -m two
             git status --porcelain",
        );
        assert_eq!(shown, "");
        assert!(case.staged_covers().is_empty());
        // Git takes the bit off where the patterns include the path, and writes what is committed.
        // The stage then has an entry at a covered path, which the judge holds back.
        case.inside("echo y >> a; git stash -q; git stash pop -q; git commit -q -a -m three");
        assert_eq!(case.staged_covers(), [".env", "sub/.env"]);
        case.apply();
        assert_eq!(fs::read_to_string(repo.join(".env")).unwrap(), "KEY=1\n");
        assert_eq!(says(&repo, &["status", "--porcelain"]), "");
        assert_eq!(
            says(&repo, &["ls-files", "-t", ".env", "sub/.env", "far/c"]),
            "H .env\nS far/c\nH sub/.env\n"
        );
    }
}

#[test]
fn a_commit_that_changes_a_covered_path_is_held() {
    let case = Case::new("sha256");
    case.cover();
    case.inside(
        "git update-index --no-skip-worktree sub/.env
         git switch -q -c topic
         git commit -q -a -m lost
         git tag -a -m tag lost
         git switch -q -f main
         git branch fine",
    );
    let held = case.check().unwrap();
    let names: Vec<_> =
        held.iter().map(|held| String::from_utf8(held.name.clone()).unwrap()).collect();
    assert_eq!(names, ["refs/heads/topic", "refs/tags/lost"]);
    assert!(held.iter().all(|held| held.path == b"sub/.env"));
}

#[test]
fn refs_are_compared_however_they_are_kept() {
    let lost = "git update-index --no-skip-worktree .env\ngit commit -q -a -m lost\n";
    // Packed inside; removed so that a packed value shows through; HEAD without a branch; gone.
    for (more, want) in [
        ("git pack-refs --all", &["HEAD", "refs/heads/main"][..]),
        ("git switch -q --detach; git branch -f main HEAD~1", &["HEAD"][..]),
        (
            "git branch x; git reset -q --soft HEAD~1; git pack-refs --all",
            &["refs/heads/x", "ORIG_HEAD"][..],
        ),
        ("git gc -q --prune=now", &["HEAD", "refs/heads/main"][..]),
        ("rm .git/refs/heads/main", &["HEAD"][..]),
        (
            "mkdir ../w; git worktree add -q ../w/t; git reset -q --soft HEAD~1",
            &["refs/heads/t", "worktrees/t/HEAD", "ORIG_HEAD", "worktrees/t/ORIG_HEAD"][..],
        ),
    ] {
        let case = Case::new("sha1");
        case.cover();
        case.inside(&format!("{lost}{more}"));
        let held = case.check().unwrap();
        let names: Vec<_> =
            held.iter().map(|held| String::from_utf8(held.name.clone()).unwrap()).collect();
        assert_eq!(names, want, "{more}");
    }
}

#[test]
fn a_first_commit_may_not_bring_a_covered_path() {
    let case = Case::new("sha1");
    let repo = case.at("repo");
    fs::remove_dir_all(repo.join(".git")).unwrap();
    git(&repo, &["init", "-q", "-b", "main"]);
    fs::create_dir_all(case.at("upper/.git")).unwrap();
    assert_eq!(case.check().unwrap(), []);
    case.inside("git add a; git commit -q -m one");
    assert_eq!(case.check().unwrap(), []);
    case.inside("git add -A; git commit -q -m two");
    assert_eq!(case.check().unwrap()[0].path, b".env");
}

#[test]
fn whatever_is_not_understood_is_an_error() {
    let write = |case: &Case, path: &str, text: &str| {
        let path = case.at("upper/.git").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let id = "0123456789012345678901234567890123456789";
    for (path, text) in [
        ("HEAD", id),
        ("HEAD", "ref: ../../etc/passwd"),
        ("HEAD", "ref: refs/heads/../../x"),
        ("HEAD", "--help"),
        ("refs/heads/x", "01234"),
        ("refs/heads/x", ""),
        ("refs/heads/x", id),
        ("refs/heads/x", "ref: refs/heads/x"),
        ("refs/heads/x\ny", id),
        ("packed-refs", "what\n"),
        ("packed-refs", "01234 refs/heads/x\n"),
        ("packed-refs", "0123456789012345678901234567890123456789 x\n"),
        ("reftable/tables.list", ""),
    ] {
        let case = Case::new("sha1");
        write(&case, path, text);
        assert!(case.check().is_err(), "{path} {text}");
    }
    let case = Case::new("sha1");
    write(&case, "refs/heads/x", id);
    write(&case, "objects/info/alternates", "/other/objects\n");
    assert!(matches!(case.check(), Err(RefsError::Odd("objects that lead elsewhere"))));
    let case = Case::new("sha1");
    write(&case, "refs/heads/x", id);
    std::os::unix::fs::symlink("/", case.at("upper/.git/objects")).unwrap();
    assert!(case.check().is_err());
    let case = Case::new("sha1");
    fs::create_dir_all(case.at("upper/.git/refs")).unwrap();
    std::os::unix::fs::symlink("/", case.at("upper/.git/refs/heads")).unwrap();
    assert!(case.check().is_err());
}

#[test]
fn without_git_or_time_there_is_no_answer() {
    let case = Case::new("sha1");
    case.cover();
    case.inside("echo x >> a; git commit -q -a -m two");
    let later = Instant::now() + Duration::from_secs(600);
    assert!(matches!(case.check_with(Path::new("/none/git"), later), Err(RefsError::NoGit(_))));
    assert!(matches!(case.check_with(Path::new("/bin/false"), later), Err(RefsError::GitFailed)));
    assert!(matches!(case.check_with(Path::new("/bin/true"), later), Err(RefsError::GitFailed)));
    let slow = case.at("slow");
    fs::write(&slow, "#!/bin/sh\nexec tail -f /dev/null\n").unwrap();
    fs::set_permissions(&slow, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let soon = Instant::now() + Duration::from_millis(50);
    assert!(matches!(case.check_with(&slow, soon), Err(RefsError::Deadline)));
    assert_eq!(case.check().unwrap(), []);
}

#[test]
fn no_configuration_of_the_repository_is_read() {
    let case = Case::new("sha1");
    let canary = case.at("canary");
    let run = format!("touch {}", canary.display());
    for key in ["core.fsmonitor", "diff.external", "core.pager", "core.sshCommand"] {
        git(&case.at("repo"), &["config", key, &run]);
    }
    case.cover();
    let _ = fs::remove_file(&canary);
    case.inside("git -c core.fsmonitor= commit -q --allow-empty -m two");
    let _ = fs::remove_file(&canary);
    assert_eq!(case.check().unwrap(), []);
    assert!(!canary.exists());
}
