//! Which mounts come out of which grants.

use super::*;
use crate::workspace::grants::tests::globs;
use crate::workspace::grants::{Code, Companion, Writes};
use std::os::unix::fs::symlink;

struct Case {
    _dir: tempfile::TempDir,
    claims: tempfile::TempDir,
    workspace: Workspace,
    points: MountPoints,
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
        claims: tempfile::tempdir().unwrap(),
        points: MountPoints::read(),
        _dir: dir,
    }
}

#[derive(Clone, Copy)]
struct Lists<'a> {
    write: &'a [&'a str],
    readonly: &'a [&'a str],
    deny: &'a [&'a str],
    create: &'a [Companion],
    code: Code,
    missing: Missing,
}

const NOTHING: Lists<'static> = Lists {
    write: &[],
    readonly: &[],
    deny: &[],
    create: &[],
    code: Code::Granted,
    missing: Missing::Make,
};

fn around(case: &Case) -> Surroundings<'_> {
    let (claims, points) = (case.claims.path(), &case.points);
    Surroundings { claims, memory: None, unscanned: &[], points }
}

fn plan(case: &Case, lists: Lists<'_>) -> Result<WorkspaceMounts, MountError> {
    let (read, write) = (globs(&["**"]), globs(lists.write));
    let (readonly, deny) = (globs(lists.readonly), globs(lists.deny));
    let grants = FileGrants {
        policy: [0; 32],
        read: &read,
        write: &write,
        readonly: &readonly,
        deny: &deny,
        create: lists.create,
        writes: if lists.write.is_empty() { Writes::None } else { Writes::Some },
        code: lists.code,
    };
    plan_mounts(&case.workspace, &grants, lists.missing, case.workspace.owner(), around(case))
}

/// `rw path` and `ro path`, in mount order.
fn shown(case: &Case, plan: &WorkspaceMounts) -> Vec<String> {
    plan.mounts
        .iter()
        .map(|mount| {
            assert_eq!(mount.source, mount.target);
            let path = mount.target.strip_prefix(case.workspace.root()).unwrap().display();
            let found =
                case.workspace.open(mount.target.strip_prefix(case.workspace.root()).unwrap());
            assert_eq!(found.unwrap().identity, mount.identity);
            match mount.access {
                Access::ReadOnly => format!("ro {path}"),
                Access::ReadWrite => format!("rw {path}"),
            }
        })
        .collect()
}

#[test]
fn without_a_write_effect_there_is_one_read_only_mount() {
    let case = case(&[".git/config", "src/a", ".env"]);
    let plan = plan(&case, Lists { deny: &["**/.env"], ..NOTHING }).unwrap();
    assert_eq!(shown(&case, &plan), ["ro "]);
    assert_eq!(plan.hidden.len(), 1);
}

#[test]
fn only_the_write_folders_are_writable_and_missing_ones_are_made() {
    let case = case(&["src/a", "build/x"]);
    let plan = plan(&case, Lists { write: &["build/**", "target/debug/**"], ..NOTHING }).unwrap();
    assert_eq!(shown(&case, &plan), ["ro ", "rw build", "rw target/debug"]);
    let root = case.workspace.root();
    assert_eq!(plan.created, [root.join("target"), root.join("target/debug")]);
}

#[test]
fn a_description_makes_nothing() {
    let case = case(&["src/a"]);
    let lists = Lists { write: &["target/**"], missing: Missing::Describe, ..NOTHING };
    let plan = plan(&case, lists).unwrap();
    assert_eq!(shown(&case, &plan), ["ro "]);
    assert_eq!(plan.created, [case.workspace.root().join("target")]);
    assert!(!case.workspace.root().join("target").exists());
}

#[test]
fn a_wholly_writable_workspace_holds_protected_names_that_are_missing() {
    let case = case(&[
        ".git/HEAD",
        ".git/config",
        ".git/hooks/x",
        ".git/info/exclude",
        ".git/objects/info/",
        "src/a",
        "Cargo.toml",
    ]);
    let plan = plan(&case, Lists { write: &["**"], ..NOTHING }).unwrap();
    let held: Vec<String> = protected::in_root()
        .filter(|name| name != Path::new(".git"))
        .map(|name| format!("ro {}", name.display()))
        .collect();
    let (names, others): (Vec<String>, Vec<String>) =
        shown(&case, &plan).into_iter().partition(|mount| held.contains(mount));
    assert_eq!(names.len(), held.len(), "each is mounted read-only");
    assert_eq!(
        others,
        [
            "rw ",
            "rw .git",
            "ro .git/config",
            "ro .git/hooks",
            "ro .git/info",
            "rw .git/objects",
            "rw .git/info/exclude",
            "ro .git/objects/info",
        ]
    );
    let root = case.workspace.root();
    for name in ["commondir", "config.worktree", "modules", "worktrees"] {
        assert!(plan.guarded.contains(&root.join(".git").join(name)), "{name}");
    }
    assert!(plan.notes.iter().any(|note| note.code == "held_names"));
    assert!(
        plan.created.contains(&root.join(".bashrc")),
        "what holds a name goes with the claim too"
    );
    drop(plan);
    let left: Vec<_> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "the names are free again: {left:?}");
}

#[test]
fn a_name_that_another_call_holds_is_read_only_here_too() {
    let case = case(&["a"]);
    let first = plan(&case, Lists { write: &["**"], ..NOTHING }).unwrap();
    let second = plan(&case, Lists { write: &["**"], ..NOTHING }).unwrap();
    assert!(shown(&case, &second).contains(&"ro .git".to_owned()));
    drop(first);
    assert!(case.workspace.root().join(".git").exists(), "the second call still needs it");
    drop(second);
    assert!(!case.workspace.root().join(".git").exists());
}

#[test]
fn a_protected_link_in_the_root_seals_it() {
    let case = case(&["a", "elsewhere/x"]);
    symlink("elsewhere", case.workspace.root().join(".vscode")).unwrap();
    let plan = plan(&case, Lists { write: &["**"], ..NOTHING }).unwrap();
    let shown = shown(&case, &plan);
    for mount in ["ro ", "rw a", "rw elsewhere"] {
        assert!(shown.contains(&mount.to_owned()), "{mount} in {shown:?}");
    }
    assert!(plan.notes.iter().any(|note| note.code == "sealed"));
}

#[test]
fn every_folder_above_a_protected_or_hidden_path_is_a_mount_point() {
    let case = case(&["w/a/b/keep.lock", "w/c/.env", "w/d/free"]);
    let lists =
        Lists { write: &["w/**"], readonly: &["**/keep.lock"], deny: &["**/.env"], ..NOTHING };
    let plan = plan(&case, lists).unwrap();
    assert_eq!(
        shown(&case, &plan),
        ["ro ", "rw w", "rw w/a", "rw w/c", "rw w/a/b", "ro w/a/b/keep.lock"]
    );
    assert_eq!(plan.mounts[2].role, MountRole::Anchor);
}

#[test]
fn a_missing_read_only_file_seals_its_folder() {
    let case = case(&["w/a", "w/d/x"]);
    let plan = plan(&case, Lists { write: &["w/**"], readonly: &["w/keep"], ..NOTHING }).unwrap();
    assert_eq!(shown(&case, &plan), ["ro ", "ro w", "rw w/a", "rw w/d"]);
}

#[test]
fn protected_names_are_never_writable_by_a_write_list() {
    let case = case(&[".runner/config.yml", ".vscode/tasks.json", ".ssh/id_rsa"]);
    let write = &[".runner/**", ".vscode/**", ".ssh/**", ".git/hooks/**", ".bashrc"];
    let plan = plan(&case, Lists { write, ..NOTHING }).unwrap();
    assert_eq!(shown(&case, &plan), ["ro "]);
    assert!(!case.workspace.root().join(".git").exists(), "nothing was made");
    assert_eq!(plan.notes.iter().filter(|note| note.code == "write_protected").count(), 5);
}

#[test]
fn single_files_are_writable_and_made_if_they_are_missing() {
    let case = case(&["Cargo.lock", "folder/"]);
    let write = &["Cargo.lock", "new", "folder", "no/where"];
    let plan = plan(&case, Lists { write, ..NOTHING }).unwrap();
    assert_eq!(shown(&case, &plan), ["ro ", "rw Cargo.lock", "rw new"]);
    assert_eq!(plan.created, [case.workspace.root().join("new")]);
    let codes: Vec<_> = plan.notes.iter().map(|note| note.code).collect();
    assert_eq!(codes, ["write_pattern", "write_missing"]);
}

#[test]
fn a_companion_is_made_where_missing_and_closed_where_it_is() {
    let companion = |file: &str| Companion { file: file.into(), beside: "Cargo.toml".into() };
    let create = &[companion("Cargo.lock")];
    let lists = Lists { write: &["target/**"], create, ..NOTHING };
    // Nothing that it goes with.
    let without = case(&["target/"]);
    assert_eq!(shown(&without, &plan(&without, lists).unwrap()), ["ro ", "rw target"]);
    assert!(!without.workspace.root().join("Cargo.lock").exists());
    // Missing, then empty as a call beside this one would leave it, then with content.
    let case = case(&["target/", "Cargo.toml"]);
    let lock = case.workspace.root().join("Cargo.lock");
    let told = plan(&case, Lists { missing: Missing::Describe, ..lists }).unwrap();
    assert_eq!((told.created, lock.exists()), (vec![lock.clone()], false));
    assert_eq!(told.notes.iter().map(|note| note.code).collect::<Vec<_>>(), ["would_make"]);
    let made = plan(&case, lists).unwrap();
    assert_eq!(shown(&case, &made), ["ro ", "rw Cargo.lock", "rw target"]);
    let beside = plan(&case, lists).unwrap();
    assert_eq!(shown(&case, &beside), ["ro ", "rw Cargo.lock", "rw target"]);
    std::fs::write(&lock, "version = 4\n").unwrap();
    assert_eq!(shown(&case, &plan(&case, lists).unwrap()), ["ro ", "rw target"]);
    // A link is not followed, wherever it leads, and a denied name stays closed.
    std::fs::remove_file(&lock).unwrap();
    symlink("target/x", &lock).unwrap();
    assert_eq!(shown(&case, &plan(&case, lists).unwrap()), ["ro ", "rw target"]);
    std::fs::remove_file(&lock).unwrap();
    let denied = plan(&case, Lists { deny: &["*.lock"], ..lists }).unwrap();
    assert_eq!(
        (shown(&case, &denied), lock.exists()),
        (vec!["ro ".to_owned(), "rw target".to_owned()], false)
    );
}

#[test]
fn a_file_with_a_name_elsewhere_stops_the_plan() {
    let case = case(&["src/a", "target/debug/x", ".runner/config.yml", "lock"]);
    let root = case.workspace.root();
    let outside = tempfile::tempdir_in(root.parent().unwrap()).unwrap();
    std::fs::write(outside.path().join("secret"), "x").unwrap();
    let lists = Lists { write: &["target/**", "lock"], ..NOTHING };
    // A build's own names are all where it may write.
    std::fs::hard_link(root.join("target/debug/x"), root.join("target/x")).unwrap();
    assert_eq!(shown(&case, &plan(&case, lists).unwrap()), ["ro ", "rw lock", "rw target"]);
    for (other, name) in [
        (outside.path().join("secret"), "target/debug/out"),
        (root.join("src/a"), "target/in"),
        (root.join("src/a"), "lock"),
    ] {
        let name = root.join(name);
        std::fs::remove_file(&name).ok();
        std::fs::hard_link(&other, &name).unwrap();
        let error = plan(&case, lists).unwrap_err();
        assert!(matches!(&error, MountError::Shared(path) if *path == name), "{error}");
        std::fs::remove_file(&name).unwrap();
    }
    // Where the whole workspace is writable, only what is protected and what is outside is elsewhere.
    let all = Lists { write: &["**"], ..NOTHING };
    std::fs::hard_link(root.join("src/a"), root.join("target/in")).unwrap();
    plan(&case, all).unwrap();
    std::fs::hard_link(root.join(".runner/config.yml"), root.join("target/ours")).unwrap();
    assert!(matches!(plan(&case, all), Err(MountError::Shared(_))));
}

#[test]
fn objects_that_clones_share_are_closed_and_not_refused() {
    let case = case(&[".git/HEAD", ".git/config", ".git/hooks/", ".git/objects/ab/cd"]);
    let root = case.workspace.root();
    let other = tempfile::tempdir_in(root.parent().unwrap()).unwrap();
    std::fs::hard_link(root.join(".git/objects/ab/cd"), other.path().join("cd")).unwrap();
    let plan = plan(&case, Lists { write: &["**"], ..NOTHING }).unwrap();
    assert!(shown(&case, &plan).contains(&"ro .git/objects/ab/cd".to_owned()));
}

#[test]
fn a_scattered_pattern_is_an_error_with_code_and_a_note_without() {
    let case = case(&["a.rs"]);
    let lists = Lists { write: &["**/*.rs"], ..NOTHING };
    let error = plan(&case, lists).unwrap_err();
    assert!(matches!(&error, MountError::Scattered(text) if text == "**/*.rs"));
    assert!(error.to_string().contains("folder/**"));
    let told = plan(&case, Lists { code: Code::NotGranted, ..lists }).unwrap();
    assert_eq!(shown(&case, &told), ["ro "]);
    assert_eq!(told.notes[0].code, "write_pattern");
}

#[test]
fn a_link_where_a_write_mount_is_planned_stops_the_plan() {
    let outside = tempfile::tempdir().unwrap();
    let case = case(&["sub/", "made/"]);
    let root = case.workspace.root();
    symlink(outside.path(), root.join("target")).unwrap();
    symlink(outside.path(), root.join("sub/link")).unwrap();
    symlink("/etc/hostname", root.join("file")).unwrap();
    for write in [&["target/**"][..], &["target/debug/**"], &["sub/link/x/**"], &["file"]] {
        let error = plan(&case, Lists { write, ..NOTHING }).unwrap_err();
        assert!(matches!(error, MountError::Link(_)), "{write:?}: {error}");
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn what_was_made_is_removed_if_the_plan_fails() {
    let case = case(&[]);
    symlink("/etc", case.workspace.root().join("z")).unwrap();
    assert!(plan(&case, Lists { write: &["a/b/**", "z/**"], ..NOTHING }).is_err());
    assert!(!case.workspace.root().join("a").exists());
}

#[test]
fn a_hidden_start_is_told() {
    let case = case(&["secret/x"]);
    let root = case.workspace.root();
    let workspace =
        Workspace::open_at(root, &root.join("secret"), &crate::environment::Environment::default())
            .unwrap();
    let (read, none, deny) = (globs(&["**"]), globs(&[]), globs(&["secret/**"]));
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
    let error = plan_mounts(&workspace, &grants, Missing::Make, workspace.owner(), around(&case))
        .unwrap_err();
    assert!(matches!(error, MountError::StartHidden(_)));
}

#[test]
fn too_many_mounts_are_refused() {
    let names: Vec<String> = (0..MAX_MOUNTS + 1).map(|at| format!("w/f{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let case = case(&names);
    let lists = Lists { write: &["w/**"], readonly: &["w/missing"], ..NOTHING };
    let error = plan(&case, lists).unwrap_err();
    assert!(matches!(error, MountError::TooMany));
}
