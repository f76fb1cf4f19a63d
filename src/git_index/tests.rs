//! Indexes that real git wrote, and what git says of ours; then indexes that no git writes.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;

pub(crate) fn command(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "a").env(format!("GIT_{role}_EMAIL"), "a@b");
    }
    command
}

pub(crate) fn says(folder: &Path, args: &[&str]) -> String {
    let done = command(folder, "git").args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

pub(crate) fn git(folder: &Path, args: &[&str]) {
    says(folder, args);
}

pub(crate) fn git_with(folder: &Path, args: &[&str], input: &str) {
    let file = folder.join(".git/input");
    fs::write(&file, input).unwrap();
    let input = Stdio::from(File::open(&file).unwrap());
    assert!(command(folder, "git").args(args).stdin(input).status().unwrap().success());
}

fn env(path: &[u8]) -> bool {
    path == b".env" || path.ends_with(b"/.env") || path.starts_with(b"secret/")
}

fn none(_: &[u8]) -> bool {
    false
}

/// A repository with covered files at the top, in a folder, and a whole covered folder.
fn repository(format: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    git(top, &["init", "-q", "-b", "main", &format!("--object-format={format}")]);
    for (path, content) in [
        (".env", "KEY=1\n"),
        (".env.sample", "KEY=\n"),
        ("a", "a\n"),
        ("secret/one", "1\n"),
        ("sub/.env", "KEY=2\n"),
        ("sub/b", "b\n"),
    ] {
        std::fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
        std::fs::write(top.join(path), content).unwrap();
    }
    git(top, &["add", "-A"]);
    git(top, &["commit", "-q", "-m", "one"]);
    dir
}

fn index(top: &Path) -> Vec<u8> {
    std::fs::read(top.join(".git/index")).unwrap()
}

fn put(top: &Path, index: &[u8]) {
    std::fs::write(top.join(".git/index"), index).unwrap();
}

/// Every form of an index: both hashes and all versions.
fn forms() -> Vec<(tempfile::TempDir, Vec<u8>)> {
    let mut forms = Vec::new();
    for format in ["sha1", "sha256"] {
        for version in ["2", "3", "4"] {
            let dir = repository(format);
            // Version 3 is written only if an entry needs it.
            if version == "3" {
                std::fs::write(dir.path().join("later"), "").unwrap();
                git(dir.path(), &["add", "--intent-to-add", "later"]);
            }
            git(dir.path(), &["update-index", "--index-version", version]);
            let bytes = index(dir.path());
            assert_eq!(Index::read(&bytes).unwrap().version().to_string(), version);
            forms.push((dir, bytes));
        }
    }
    forms
}

#[test]
fn covered_entries_are_hidden_from_git_and_revealed_as_they_were() {
    for (dir, original) in forms() {
        let top = dir.path();
        assert_eq!(hide(&original, &none).unwrap(), None);
        let hidden = hide(&original, &env).unwrap().unwrap();
        put(top, &hidden);
        let listed = says(top, &["ls-files", "-t"]);
        let listed: Vec<_> = listed.lines().filter(|line| !line.ends_with("later")).collect();
        let want = ["S .env", "H .env.sample", "H a", "S secret/one", "S sub/.env", "H sub/b"];
        assert_eq!(listed, want);
        assert!(!same_but_stat(&hidden, &original));
        let revealed = reveal(&hidden, &original, &env).unwrap();
        assert!(same_but_stat(&revealed, &original));
        put(top, &revealed);
        git(top, &["fsck", "--strict"]);
        assert!(!says(top, &["ls-files", "-t"]).contains("S "));
    }
}

#[test]
fn what_git_did_to_a_hidden_index_is_kept() {
    for (dir, original) in forms() {
        let top = dir.path();
        put(top, &hide(&original, &env).unwrap().unwrap());
        for covered in [".env", "sub/.env", "secret/one"] {
            std::fs::write(top.join(covered), "").unwrap();
        }
        std::fs::write(top.join("a"), "other\n").unwrap();
        std::fs::write(top.join("new"), "new\n").unwrap();
        std::fs::remove_file(top.join("sub/b")).unwrap();
        git(top, &["add", "-A"]);
        let revealed = reveal(&index(top), &original, &env).unwrap();
        put(top, &revealed);
        std::fs::write(top.join(".env"), "KEY=1\n").unwrap();
        std::fs::write(top.join("sub/.env"), "KEY=2\n").unwrap();
        std::fs::write(top.join("secret/one"), "1\n").unwrap();
        let status = says(top, &["status", "--porcelain"]);
        let lines: Vec<_> = status.lines().filter(|line| !line.ends_with("later")).collect();
        assert_eq!(lines, ["M  a", "A  new", "D  sub/b"]);
        assert_eq!(says(top, &["diff", "--", ".env", "sub/.env", "secret"]), "");
    }
}

#[test]
fn a_bit_that_the_user_set_stays() {
    let dir = repository("sha1");
    git(dir.path(), &["update-index", "--skip-worktree", ".env", "a"]);
    let original = index(dir.path());
    let hidden = hide(&original, &env).unwrap().unwrap();
    let revealed = reveal(&hidden, &original, &env).unwrap();
    put(dir.path(), &revealed);
    let listed = says(dir.path(), &["ls-files", "-t", ".env", "a", "sub/.env"]);
    assert_eq!(listed, "S .env\nS a\nH sub/.env\n");
}

#[test]
fn a_staged_index_that_touches_a_covered_path_is_refused() {
    let dir = repository("sha1");
    let top = dir.path();
    let original = index(top);
    let staged = |args: &[&str]| {
        put(top, &original);
        git(top, args);
        reveal(&index(top), &original, &env).unwrap_err()
    };
    assert_eq!(
        staged(&["update-index", "--force-remove", ".env"]),
        IndexError::CoveredRemoved(b".env".to_vec())
    );
    assert_eq!(
        staged(&["update-index", "--chmod=+x", "sub/.env"]),
        IndexError::CoveredChanged(b"sub/.env".to_vec())
    );
    std::fs::write(top.join("secret/one"), "").unwrap();
    assert_eq!(staged(&["add", "-A"]), IndexError::CoveredChanged(b"secret/one".to_vec()));
    std::fs::write(top.join("secret/one"), "1\n").unwrap();
    std::fs::write(top.join("secret/two"), "").unwrap();
    assert_eq!(staged(&["add", "-A"]), IndexError::CoveredAdded(b"secret/two".to_vec()));
}

#[test]
fn an_unmerged_covered_path_cannot_be_hidden() {
    let dir = repository("sha1");
    let top = dir.path();
    let id = says(top, &["rev-parse", "HEAD:.env"]);
    let lines: String =
        (1..=3).map(|stage| format!("100644 {} {stage}\t.env\n", id.trim())).collect();
    git(top, &["update-index", "--force-remove", ".env"]);
    git_with(top, &["update-index", "--index-info"], &lines);
    assert_eq!(hide(&index(top), &env), Err(IndexError::Unmerged(b".env".to_vec())));
    let other = |path: &[u8]| path == b"a";
    assert!(hide(&index(top), &other).unwrap().is_some());
}

#[test]
fn a_split_index_is_told_by_its_own_error() {
    let dir = repository("sha1");
    git(dir.path(), &["update-index", "--split-index"]);
    assert_eq!(hide(&index(dir.path()), &env), Err(IndexError::SplitIndex));
}

#[test]
fn folders_outside_a_sparse_checkout_stay_and_may_not_change() {
    for format in ["sha1", "sha256"] {
        let dir = repository(format);
        let top = dir.path();
        git(top, &["sparse-checkout", "set", "--cone", "--sparse-index", "sub"]);
        let original = index(top);
        assert!(Index::read(&original).unwrap().entries().iter().any(Entry::is_folder));
        let hidden = hide(&original, &env).unwrap().unwrap();
        put(top, &hidden);
        let expected = format!("{}={}", SPARSE_CONFIG.0, SPARSE_CONFIG.1);
        assert_eq!(
            says(top, &["-c", &expected, "ls-files", "-t", "--sparse"]),
            "S .env\nH .env.sample\nH a\nS secret/\nS sub/.env\nH sub/b\n"
        );
        let revealed = reveal(&hidden, &original, &env).unwrap();
        assert!(same_but_stat(&revealed, &original));
        // The entry of the folder `secret/` gets the tree of `sub`.
        let (secret, sub) =
            (says(top, &["rev-parse", "HEAD:secret"]), says(top, &["rev-parse", "HEAD:sub"]));
        let forged = replace(&hidden, &raw(secret.trim()), &raw(sub.trim()));
        assert_eq!(
            reveal(&forged, &original, &env),
            Err(IndexError::SparseFolder(b"secret/".to_vec()))
        );
    }
}

#[test]
fn without_a_checksum_both_hashes_are_read() {
    for format in ["sha1", "sha256"] {
        let dir = repository(format);
        git(dir.path(), &["-c", "index.skipHash=true", "update-index", "--index-version", "4"]);
        let original = index(dir.path());
        assert!(original.ends_with(&[0; 20]));
        let hidden = hide(&original, &env).unwrap().unwrap();
        assert!(!hidden.ends_with(&[0; 20]));
        assert!(same_but_stat(&reveal(&hidden, &original, &env).unwrap(), &original));
    }
}

#[test]
fn stat_data_is_no_difference_and_anything_else_is() {
    let dir = repository("sha1");
    let top = dir.path();
    let before = index(top);
    let file = std::fs::File::options().write(true).open(top.join("a")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    git(top, &["update-index", "--refresh"]);
    let after = index(top);
    assert_ne!(before, after);
    assert!(same_but_stat(&before, &after));
    git(top, &["update-index", "--assume-unchanged", "a"]);
    assert!(!same_but_stat(&before, &index(top)));
    assert!(!same_but_stat(b"", b""));
    assert!(!same_but_stat(&before, &index(repository("sha256").path())));
}

#[test]
fn an_index_of_another_hash_is_refused() {
    let (one, other) = (repository("sha1"), repository("sha256"));
    let (one, other) = (index(one.path()), index(other.path()));
    assert_eq!(reveal(&other, &one, &env), Err(IndexError::OtherHash));
    assert_eq!(reveal(&one, &other, &env), Err(IndexError::OtherHash));
}

#[test]
fn an_entry_that_a_checkout_must_not_write_is_refused() {
    let dir = repository("sha1");
    let good = index(dir.path());
    // Of the same length as `.env.sample`.
    for path in [
        "../.bashrc1",
        "/etc/passwd",
        ".git/hooks1",
        ".GIT/config",
        "sub/../../x",
        "a//b//c//dd",
        ".git. /hook",
        "git~1/confi",
        "./a/b/c/d/e",
        "x/./b/c/d/e",
    ] {
        assert_eq!(path.len(), 11);
        let bad = replace(&good, b".env.sample", path.as_bytes());
        let error = Index::read(&bad).unwrap_err();
        assert!(matches!(&error, IndexError::UnsafePath(_)), "{path}: {error:?}");
    }
    assert!(Index::read(&replace(&good, b".env.sample", b".env...f.git")).is_err(), "a length");
    assert!(Index::read(&replace(&good, b".env.sample", b".env/..gitx")).is_ok());
}

#[test]
fn no_cut_and_no_flipped_byte_is_taken_for_an_index() {
    for (_dir, original) in forms() {
        for length in 0..original.len() {
            assert!(Index::read(&original[..length]).is_err());
        }
        for at in 0..original.len() {
            let mut changed = original.clone();
            changed[at] ^= 0x41;
            assert!(Index::read(&changed).is_err());
            // With a right checksum it is read or refused, and never more.
            let changed = sealed(changed);
            if let Ok(Some(hidden)) = hide(&changed, &env) {
                let revealed = reveal(&hidden, &changed, &env).unwrap();
                assert!(same_but_stat(&revealed, &changed));
            }
        }
    }
}

#[test]
fn shared_prefixes_do_not_blow_up_memory() {
    // Each entry adds one byte to the path before it: lengths grow with the number of entries.
    let count = 40_000_u32;
    let mut bytes = b"DIRC\0\0\0\x04".to_vec();
    bytes.extend_from_slice(&count.to_be_bytes());
    for at in 1..=count {
        let mut stat = [0; 40];
        stat[24..28].copy_from_slice(&0o100_644_u32.to_be_bytes());
        bytes.extend_from_slice(&stat);
        bytes.extend_from_slice(&[1; 20]);
        bytes.extend_from_slice(&(at.min(0xfff) as u16).to_be_bytes());
        bytes.extend_from_slice(b"\0a\0");
    }
    let sum = Hash::Sha1.of(&bytes);
    bytes.extend_from_slice(sum.as_ref());
    assert_eq!(Index::read(&bytes).unwrap_err(), IndexError::TooLarge);
}

/// An index with one text replaced and the checksum made right.
fn replace(index: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let at = index.windows(old.len()).position(|window| window == old).unwrap();
    let mut changed = index[..at].to_vec();
    changed.extend_from_slice(new);
    changed.extend_from_slice(&index[at + old.len()..]);
    sealed(changed)
}

fn sealed(mut index: Vec<u8>) -> Vec<u8> {
    // Only one hash lets it be read.
    let hash = if Index::body_reads(&index, Hash::Sha256) { Hash::Sha256 } else { Hash::Sha1 };
    let end = index.len() - hash.length();
    index.truncate(end);
    let sum = hash.of(&index);
    index.extend_from_slice(sum.as_ref());
    index
}

fn raw(id: &str) -> Vec<u8> {
    (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn a_new_index_may_not_have_a_covered_path() {
    let dir = repository("sha1");
    let staged = index(dir.path());
    assert_eq!(reveal_new(&staged, &env), Err(IndexError::CoveredAdded(b".env".to_vec())));
    let applied = reveal_new(&staged, &none).unwrap();
    assert!(same_but_stat(&applied, &staged));
    assert!(Index::read(&applied).unwrap().extensions().is_empty());
}

#[test]
fn tracked_paths_are_those_of_files_and_of_folders_outside_a_sparse_checkout() {
    let dir = repository("sha1");
    let tracked = Tracked::read(&index(dir.path())).unwrap();
    assert!(tracked.has(b"sub/b") && !tracked.has(b"sub") && !tracked.has(b"other/x"));
    git(dir.path(), &["sparse-checkout", "set", "--cone", "--sparse-index", "sub"]);
    let tracked = Tracked::read(&index(dir.path())).unwrap();
    assert!(tracked.has(b"secret/any") && !tracked.has(b"secrets"));
}
