//! What a survey finds in small, nasty workspaces.

use super::*;
use crate::workspace::grants::tests::globs;
use crate::workspace::grants::{Code, Writes};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

struct Case {
    _dir: tempfile::TempDir,
    workspace: Workspace,
}

/// A workspace with these files; a name that ends with `/` is a folder.
fn case(files: &[&str]) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for file in files {
        let path = root.join(file);
        if file.ends_with('/') {
            std::fs::create_dir_all(path).unwrap();
        } else {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
    }
    Case {
        workspace: Workspace::find(Some(&root), &crate::environment::Environment::default())
            .unwrap(),
        _dir: dir,
    }
}

fn looking<'a>(case: &'a Case, grants: &'a FileGrants<'a>, trees: &'a [PathBuf]) -> Looking<'a> {
    let workspace = &case.workspace;
    Looking { workspace, grants, trees, user: workspace.owner(), memory: None, unscanned: &[] }
}

fn look(case: &Case, deny: &[&str], write: &[&str], readonly: &[&str]) -> Survey {
    let (read, deny) = (globs(&["**"]), globs(deny));
    let (write_set, readonly) = (globs(write), globs(readonly));
    let grants = FileGrants {
        policy: [0; 32],
        read: &read,
        write: &write_set,
        readonly: &readonly,
        deny: &deny,
        create: &[],
        writes: if write.is_empty() { Writes::None } else { Writes::Some },
        code: Code::Granted,
    };
    let trees: Vec<PathBuf> = write
        .iter()
        .filter_map(|text| text.strip_suffix("**"))
        .map(|text| text.trim_end_matches('/').into())
        .collect();
    survey(&looking(case, &grants, &trees)).unwrap()
}

fn names<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<&'a str> {
    paths.into_iter().map(|path| path.to_str().unwrap()).collect()
}

#[test]
fn only_what_is_not_there_counts_as_gone() {
    for errno in [Errno::NOENT, Errno::NOTDIR, Errno::LOOP] {
        assert!(is_gone(&errno.into()), "{errno}");
    }
    // The last two say nothing about the file.
    for errno in [Errno::ACCESS, Errno::IO, Errno::XDEV, Errno::MFILE, Errno::NOMEM] {
        assert!(!is_gone(&errno.into()), "{errno}");
    }
}

#[test]
fn denied_files_and_folders_are_found_and_exceptions_are_left() {
    let case = case(&[
        ".env",
        ".env.example",
        "a/.env.local",
        "secrets/deep/x",
        "src/main.rs",
        ".ssh/id_rsa",
    ]);
    let found = look(&case, &["**/.env", "**/.env.*", "!**/.env.example", "secrets/**"], &[], &[]);
    assert_eq!(names(found.hidden.keys()), [".env", ".ssh", "a/.env.local", "secrets"]);
    assert!(found.is_hidden(Path::new("secrets/deep/x")));
    assert_eq!(found.hidden[Path::new("secrets")].kind, MaskKind::Folder);
    assert!(found.protected.is_empty(), "nothing is writable");
}

#[test]
fn sockets_and_pipes_are_hidden() {
    let case = case(&["src/"]);
    let root = case.workspace.root();
    let _socket = UnixListener::bind(root.join("agent.sock")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("src/pipe"),
        FileType::Fifo,
        rustix::fs::Mode::from(0o644),
        0,
    )
    .unwrap();
    let found = look(&case, &[], &[], &[]);
    assert_eq!(names(found.hidden.keys()), ["agent.sock", "src/pipe"]);
    assert_eq!(found.hidden[Path::new("agent.sock")].why, WhyHidden::Special);
}

#[test]
fn what_a_denied_link_leads_to_is_hidden_inside_the_workspace() {
    let case = case(&["config/real", "other"]);
    let root = case.workspace.root();
    symlink("config/real", root.join(".env")).unwrap();
    symlink("/etc/hostname", root.join(".env.out")).unwrap();
    let found = look(&case, &["**/.env", "**/.env.*"], &[], &[]);
    assert_eq!(names(found.hidden.keys()), ["config/real"]);
}

#[test]
fn a_second_name_of_a_denied_file_is_hidden_too() {
    let case = case(&[".env", "plain", "a/"]);
    let root = case.workspace.root();
    std::fs::hard_link(root.join(".env"), root.join("a/innocent")).unwrap();
    let found = look(&case, &["**/.env"], &[], &[]);
    assert_eq!(names(found.hidden.keys()), [".env", "a/innocent"]);
    assert_eq!(found.hidden[Path::new("a/innocent")].why, WhyHidden::SameAsDenied);
}

#[test]
fn protected_paths_are_found_where_something_is_writable() {
    let case = case(&[
        ".git/config",
        ".git/hooks/x",
        ".git/index",
        ".git/HEAD",
        "sub/.git/HEAD",
        "unborn/.git/x",
        "sub/.git/config",
        ".vscode/tasks.json",
        "src/a.lock",
        "src/main.rs",
    ]);
    let found = look(&case, &[], &["**"], &["**/*.lock"]);
    assert_eq!(
        names(&found.protected),
        [".git/config", ".git/hooks", ".vscode", "src/a.lock", "sub/.git/config", "unborn/.git"]
    );
    assert_eq!(names(&found.anchored), [".git", "sub/.git"]);
    let narrow = look(&case, &[], &["src/**"], &["**/*.lock"]);
    assert_eq!(names(&narrow.protected), ["src/a.lock"]);
}

#[test]
fn what_a_write_list_subtracts_is_protected() {
    let case = case(&["src/a", "vendor/b/c"]);
    let found = look(&case, &[], &["**", "!vendor/**"], &[]);
    assert_eq!(names(&found.protected), ["vendor"]);
}

#[test]
fn a_protected_name_that_is_a_link_is_told() {
    let case = case(&["elsewhere/"]);
    symlink("elsewhere", case.workspace.root().join(".vscode")).unwrap();
    let found = look(&case, &[], &["**"], &[]);
    assert_eq!(names(&found.links), [".vscode"]);
}

#[test]
fn what_the_read_list_leaves_out_is_hidden() {
    let case =
        case(&["src/a.rs", "src/deep/b.rs", "docs/x.md", "docs/y.txt", "private/z", "README.md"]);
    let (read, none) = (globs(&["src/**", "**/*.md"]), globs(&[]));
    let grants = FileGrants {
        policy: [0; 32],
        read: &read,
        write: &none,
        readonly: &none,
        deny: &none,
        create: &[],
        writes: Writes::None,
        code: Code::NotGranted,
    };
    let found = survey(&looking(&case, &grants, &[])).unwrap();
    assert_eq!(names(found.hidden.keys()), ["docs/y.txt", "private/z"]);
    let narrow = globs(&["src/**", "README.md"]);
    let grants = FileGrants { read: &narrow, ..grants };
    let found = survey(&looking(&case, &grants, &[])).unwrap();
    assert_eq!(names(found.hidden.keys()), ["docs", "private"]);
}

#[test]
fn a_folder_that_the_user_cannot_enter_is_hidden_with_what_is_in_it() {
    use std::os::unix::fs::PermissionsExt;
    let case = case(&["closed/.env", "closed/x", "open/.env"]);
    let closed = case.workspace.root().join("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let (read, none, deny) = (globs(&["**"]), globs(&[]), globs(&["**/.env"]));
    let grants = FileGrants {
        policy: [0; 32],
        read: &read,
        write: &none,
        readonly: &none,
        deny: &deny,
        create: &[],
        writes: Writes::None,
        code: Code::NotGranted,
    };
    let other = Owner { uid: 4_000_000, gid: 4_000_000 };
    let found = survey(&Looking { user: other, ..looking(&case, &grants, &[]) }).unwrap();
    assert_eq!(names(found.hidden.keys()), ["closed", "open/.env"]);
    let found = survey(&looking(&case, &grants, &[])).unwrap();
    assert_eq!(names(found.hidden.keys()), ["closed/.env", "open/.env"]);
}

#[test]
fn a_folder_that_is_not_scanned_is_hidden_or_named() {
    let case = case(&["big/.env", "big/cache/x", "covered/.env", "src/.env", "src/big/y"]);
    let (read, deny) = (globs(&["**"]), globs(&["**/.env"]));
    let write = globs(&["big/cache/**"]);
    let grants = FileGrants {
        policy: [0; 32],
        read: &read,
        write: &write,
        readonly: &globs(&[]),
        deny: &deny,
        create: &[],
        writes: Writes::Some,
        code: Code::Granted,
    };
    let unscanned = [
        Unscanned { folder: "big".into(), shown: Shown::Everything },
        Unscanned { folder: "covered".into(), shown: Shown::Nothing },
        Unscanned { folder: "missing".into(), shown: Shown::Everything },
    ];
    let trees = [PathBuf::from("big/cache")];
    let root = case.workspace.root();
    std::fs::hard_link(root.join("src/big/y"), root.join("big/cache/linked")).unwrap();
    std::fs::write(root.join("big/cache/.env"), "").unwrap();
    let look = |trees: &[PathBuf]| {
        survey(&Looking { unscanned: &unscanned, ..looking(&case, &grants, trees) }).unwrap()
    };
    let found = look(&trees);
    assert_eq!(names(found.hidden.keys()), ["big/cache/.env", "covered", "src/.env"]);
    assert_eq!(found.hidden[Path::new("covered")].why, WhyHidden::NotScanned);
    assert_eq!(names(&found.not_scanned), ["big"]);
    assert_eq!(found.several.len(), 1, "what is writable below it is looked through");

    // Where it is writable itself, it is looked through all the same.
    let found = look(&[PathBuf::new()]);
    assert_eq!(names(found.hidden.keys()), ["big/.env", "big/cache/.env", "covered", "src/.env"]);
    assert!(found.not_scanned.is_empty());
}
