//! Names are found wherever git would find them.

use super::*;
use std::fs;

fn keys(text: &str) -> Vec<String> {
    let found = settings(text).unwrap();
    found.iter().flat_map(|(key, _)| harmless(key)).map(|(key, _)| key).collect()
}

#[test]
fn drivers_are_found_in_every_form_that_git_reads() {
    for text in [
        "[diff \"x\"]\n\ttextconv = sh evil\n",
        "[diff \"x\"] textconv = sh evil\n",
        "[core] [diff \"x\"] textconv=sh evil",
        "\u{feff}[DIFF \"x\"]\r\nTextConv = sh evil\r\n",
        "[diff.x]\n  textconv = sh evil\n",
        "[diff\t \"x\"]\n textconv\n",
        "[alias]\n a = \"!f() { \\\n [ -n x ] \\\n }\"\n[diff \"x\"]\ntextconv=evil\n",
        "# a comment \\\n[diff \"x\"]\ntextconv=evil\n",
    ] {
        assert_eq!(keys(text), ["diff.x.textconv"], "{text:?}");
    }
    assert_eq!(keys("[diff \"A.b\\\"c\"]\ncommand=x\n"), ["diff.A.b\"c.command"]);
    assert_eq!(
        keys("[filter \"lfs\"]\nprocess = x\n"),
        ["filter.lfs.clean", "filter.lfs.smudge", "filter.lfs.process", "filter.lfs.required"]
    );
    assert_eq!(keys("[diff]\nexternal = x\nrenames = true\n"), ["diff.external"]);
    assert_eq!(keys("[diff \"rust\"]\nxfuncname = \"^fn\"\n[user]\nname = textconv\n"), [""; 0]);
    for broken in ["[diff \"x\n]textconv=y\n", "[di ff]\n", "[\n"] {
        assert!(settings(broken).is_none(), "{broken:?}");
    }
}

/// A workspace with a repository in it.
fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("w");
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let workspace =
        Workspace::open_at(&root, &root, &crate::environment::Environment::default()).unwrap();
    (dir, workspace)
}

fn found(files: &[(&str, &str)], git: &[&str], writes: Writes) -> Result<Vec<String>, Unsafe> {
    let (_dir, workspace) = workspace(files);
    let git = git.iter().map(PathBuf::from).collect();
    overrides(&workspace, &git, None, writes).map(|keys| keys.into_keys().collect())
}

const EVIL: &str = "[diff \"x\"]\ntextconv = evil\n";

#[test]
fn configurations_are_read_where_git_reads_them() {
    let x = || Ok(vec!["diff.x.textconv".to_owned()]);
    for files in [
        &[(".git/HEAD", ""), (".git/config", EVIL)][..],
        &[(".git/HEAD", ""), (".git/config.worktree", EVIL)],
        &[(".git/HEAD", ""), (".git/modules/a/b/HEAD", ""), (".git/modules/a/b/config", EVIL)],
        &[(".git/HEAD", ""), (".git/config", "[include]\npath = more\n"), (".git/more", EVIL)],
        &[
            (".git/HEAD", ""),
            (".git/config", "[includeIf \"gitdir:/\"]\npath = \"../shared\"\n"),
            ("shared", EVIL),
        ],
        &[
            (".git", "gitdir: other/folder\n"),
            ("other/folder/HEAD", ""),
            ("other/folder/config", EVIL),
        ],
        &[
            (".git", "gitdir: o\n"),
            ("o/HEAD", ""),
            ("o/commondir", "../c\n"),
            ("c/HEAD", ""),
            ("c/config", EVIL),
        ],
        // The workspace itself is a repository.
        &[("HEAD", ""), ("config", EVIL)],
    ] {
        assert_eq!(found(files, &[".git"], Writes::None), x(), "{files:?}");
    }
    let nested = &[("sub/.git/HEAD", ""), ("sub/.git/config", EVIL)];
    assert_eq!(found(nested, &["sub/.git"], Writes::None), x());
    assert_eq!(found(&[("a", "")], &[], Writes::None), Ok(Vec::new()));
}

#[test]
fn what_cannot_be_told_is_an_error() {
    let config = |text: &'static str| [(".git/HEAD", ""), (".git/config", text)];
    for (files, writes) in [
        (config("[broken\n"), Writes::None),
        (config("[include]\npath = /tmp/x\n"), Writes::None),
        (config("[include]\npath = ../shared\n"), Writes::Some),
    ] {
        assert!(found(&files, &[".git"], writes).is_err(), "{files:?}");
    }
    // What no sandbox sees is nothing.
    for text in ["[include]\npath = ~/x\n", "[include]\npath = /srv/x\n"] {
        assert_eq!(found(&config(text), &[".git"], Writes::Some), Ok(Vec::new()), "{text}");
    }
}
