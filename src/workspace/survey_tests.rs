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

fn looking<'a>(case: &'a Case, grants: &'a FileGrants<'a>) -> Looking<'a> {
    Looking {
        workspace: &case.workspace,
        grants,
        memory: None,
        unscanned: &[],
        mounted_below: false,
    }
}

fn look(case: &Case, deny: &[&str], write: &[&str]) -> Survey {
    let (read, deny, none) = (globs(&["**"]), globs(deny), globs(&[]));
    let write_set = globs(write);
    let grants = FileGrants {
        policy: [0; 32],
        read: &read,
        write: &write_set,
        readonly: &none,
        deny: &deny,
        create: &[],
        writes: if write.is_empty() { Writes::None } else { Writes::Some },
        code: Code::Granted,
    };
    survey(&looking(case, &grants)).unwrap()
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
    let found = look(&case, &["**/.env", "**/.env.*", "!**/.env.example", "secrets/**"], &[]);
    assert_eq!(names(found.hidden.keys()), [".env", ".ssh", "a/.env.local", "secrets"]);
    assert!(found.is_hidden(Path::new("secrets/deep/x")));
    assert_eq!(found.hidden[Path::new("secrets")].kind, MaskKind::Folder);
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
    let found = look(&case, &[], &[]);
    assert_eq!(names(found.hidden.keys()), ["agent.sock", "src/pipe"]);
    assert_eq!(found.hidden[Path::new("agent.sock")].why, WhyHidden::Special);
}

#[test]
fn what_a_denied_link_leads_to_is_hidden_inside_the_workspace() {
    let case = case(&["config/real", "other"]);
    let root = case.workspace.root();
    symlink("config/real", root.join(".env")).unwrap();
    symlink("/etc/hostname", root.join(".env.out")).unwrap();
    let found = look(&case, &["**/.env", "**/.env.*"], &[]);
    assert_eq!(names(found.hidden.keys()), ["config/real"]);
}

#[test]
fn a_second_name_of_a_denied_file_is_hidden_too() {
    let case = case(&[".env", "plain", "a/"]);
    let root = case.workspace.root();
    std::fs::hard_link(root.join(".env"), root.join("a/innocent")).unwrap();
    let found = look(&case, &["**/.env"], &[]);
    assert_eq!(names(found.hidden.keys()), [".env", "a/innocent"]);
    assert_eq!(found.hidden[Path::new("a/innocent")].why, WhyHidden::SameAsDenied);
}

#[test]
fn what_may_be_written_does_not_change_what_is_hidden() {
    let case = case(&[".env", ".git/config", "src/a.lock", "vendor/.env", "target/x"]);
    let deny = ["**/.env"];
    let reads = look(&case, &deny, &[]);
    for write in [&["**"][..], &["**", "!vendor/**"], &["target/**"], &["**/*.lock"]] {
        assert_eq!(look(&case, &deny, write).hidden, reads.hidden, "{write:?}");
    }
    assert_eq!(names(reads.hidden.keys()), [".env", "vendor/.env"]);
}

#[test]
fn repositories_are_found_wherever_they_are_and_whatever_their_git_is() {
    let case = case(&[".git/HEAD", "sub/.git/HEAD", "module/.git", "unborn/.git/x", "src/a"]);
    symlink("../.git", case.workspace.root().join("src/.git")).unwrap();
    let found = look(&case, &[], &["**"]);
    let all = [".git", "module/.git", "src/.git", "sub/.git", "unborn/.git"];
    assert_eq!(names(&found.repositories), all);
}

#[test]
fn a_file_with_further_names_outside_hides_nothing_else() {
    let case = case(&["src/a", "store/"]);
    let root = case.workspace.root();
    std::fs::hard_link(root.join("src/a"), root.join("store/same")).unwrap();
    assert!(look(&case, &["**/.env"], &["**"]).hidden.is_empty());
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
    let found = survey(&looking(&case, &grants)).unwrap();
    assert_eq!(names(found.hidden.keys()), ["docs/y.txt", "private/z"]);
    let narrow = globs(&["src/**", "README.md"]);
    let grants = FileGrants { read: &narrow, ..grants };
    let found = survey(&looking(&case, &grants)).unwrap();
    assert_eq!(names(found.hidden.keys()), ["docs", "private"]);
}

/// Root looks into every folder; an ordinary caller does not, and a file of a denied name may be there.
#[test]
fn a_folder_that_the_caller_cannot_look_into_is_covered_as_a_whole() {
    let case = case(&["closed/.env", "closed/x", "open/.env"]);
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
    use crate::workspace::walk::Visitor;
    let look = Look::new(&looking(&case, &grants), None);
    let Found { mark, path, .. } = look.closed(Path::new("closed")).unwrap();
    assert_eq!(mark, Mark::Hide(MaskKind::Folder, WhyHidden::Closed));
    assert_eq!(path, Path::new("closed"));
    let found = survey(&looking(&case, &grants)).unwrap();
    assert_eq!(names(found.hidden.keys()), ["closed/.env", "open/.env"]);
}

#[test]
fn a_folder_that_is_not_scanned_is_hidden_or_named() {
    let case = case(&["big/.env", "big/cache/x", "covered/.env", "src/.env", "src/big/y"]);
    let (read, deny, none) = (globs(&["**"]), globs(&["**/.env"]), globs(&[]));
    let write = globs(&["**"]);
    let unscanned = [
        Unscanned { folder: "big".into(), shown: Shown::Everything },
        Unscanned { folder: "covered".into(), shown: Shown::Nothing },
        Unscanned { folder: "missing".into(), shown: Shown::Everything },
    ];
    for writes in [Writes::None, Writes::Some] {
        let grants = FileGrants {
            policy: [0; 32],
            read: &read,
            write: &write,
            readonly: &none,
            deny: &deny,
            create: &[],
            writes,
            code: Code::Granted,
        };
        let looking = Looking { unscanned: &unscanned, ..looking(&case, &grants) };
        let found = survey(&looking).unwrap();
        assert_eq!(names(found.hidden.keys()), ["covered", "src/.env"]);
        assert_eq!(found.hidden[Path::new("covered")].why, WhyHidden::NotScanned);
        assert_eq!(names(&found.not_scanned), ["big"]);
    }
}
