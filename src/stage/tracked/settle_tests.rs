//! Stages that git wrote in a copy of a repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::git_index::tests::{git, says};
use crate::git_index::{Index, hide};
use crate::stage::change::Why;
use crate::stage::judge::System;
use crate::stage::walk::{Bounds, walk};
use crate::workspace::grants::tests::globs;
use crate::workspace::grants::{Code, FileGrants, Writes};

/// A repository `host` with a covered `.env`, and a copy of it in which commands run.
struct Case {
    dir: tempfile::TempDir,
    covered: BTreeSet<PathBuf>,
}

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let case = Self { dir, covered: [PathBuf::from(".env")].into() };
        for folder in ["host", "upper", "room"] {
            fs::create_dir(case.at(folder)).unwrap();
        }
        let host = case.at("host");
        git(&host, &["init", "-q", "-b", "main"]);
        for name in [".env", "a"] {
            fs::write(host.join(name), name).unwrap();
        }
        git(&host, &["add", "-A"]);
        git(&host, &["commit", "-q", "-m", "one"]);
        let copied = std::process::Command::new("cp")
            .args(["-a", "host", "copy"])
            .current_dir(case.dir.path())
            .status();
        assert!(copied.unwrap().success());
        let index = case.at("copy/.git/index");
        let hidden = hide(&fs::read(&index).unwrap(), &|path| path == b".env").unwrap().unwrap();
        fs::write(&index, hidden).unwrap();
        fs::write(case.at("copy/.env"), "").unwrap();
        case
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Everything of the copy that differs becomes the stage.
    fn stage(&self) {
        let mut open = vec![PathBuf::new()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(self.at("copy").join(&folder)).unwrap() {
                let path = folder.join(entry.unwrap().file_name());
                let copy = self.at("copy").join(&path);
                if copy.is_dir() {
                    open.push(path);
                    continue;
                }
                let same = fs::read(&copy).ok() == fs::read(self.at("host").join(&path)).ok();
                if !same && path != Path::new(".env") {
                    let upper = self.at("upper").join(&path);
                    fs::create_dir_all(upper.parent().unwrap()).unwrap();
                    fs::copy(copy, upper).unwrap();
                }
            }
        }
    }

    fn settle(&self) -> (Vec<Change>, BTreeMap<PathBuf, Why>) {
        let (host, upper) =
            (File::open(self.at("host")).unwrap(), File::open(self.at("upper")).unwrap());
        let mut changes = walk(upper.as_fd(), host.as_fd(), Bounds::default()).unwrap();
        let trees = [WorkTree { git: self.at("host/.git"), top: PathBuf::new() }];
        let all = globs(&["**"]);
        let grants = FileGrants {
            policy: [0; 32],
            read: &all,
            write: &all,
            create: &[],
            readonly: &globs(&["Cargo.lock"]),
            deny: &globs(&[]),
            writes: Writes::Some,
            code: Code::Granted,
        };
        let rules = Rules {
            grants: &grants,
            policy: "test",
            covered: &self.covered,
            root: &self.at("host"),
            kind: RootKind::Workspace,
            host: host.as_fd(),
            upper: upper.as_fd(),
            repositories: &[PathBuf::from(".git")].into(),
            links: &BTreeSet::new(),
            home: None,
            led: &[],
            system: &System::default(),
        };
        let staged = Staged {
            host: host.as_fd(),
            upper: upper.as_fd(),
            rules: &rules,
            root: &self.at("host"),
            kind: RootKind::Workspace,
            covered: &self.covered,
            trees: &trees,
            room: &self.at("room"),
        };
        let imported = import(&changes, &staged);
        if imported.is_changed() {
            changes = walk(upper.as_fd(), host.as_fd(), Bounds::default()).unwrap();
        }
        let held = settle(&mut changes, &staged, &imported);
        let held = held.iter().map(|(at, held)| (changes[*at].path.clone(), held.why)).collect();
        assert_eq!(fs::read_dir(self.at("room")).unwrap().count(), 0);
        (changes, held)
    }

    fn staged_index(&self) -> Vec<u8> {
        fs::read(self.at("upper/.git/index")).unwrap()
    }
}

#[test]
fn a_commit_of_other_files_passes_with_the_index_revealed() {
    let case = Case::new();
    fs::write(case.at("copy/a"), "changed").unwrap();
    git(&case.at("copy"), &["commit", "-q", "-a", "-m", "two"]);
    case.stage();
    let index = case.at("upper/.git/index");
    fs::set_permissions(&index, PermissionsExt::from_mode(0o640)).unwrap();
    let (changes, held) = case.settle();
    assert_eq!(held, BTreeMap::new());
    let bytes = case.staged_index();
    assert!(Index::read(&bytes).unwrap().entries().iter().all(|entry| !entry.is_skipped()));
    let change = changes.iter().find(|change| change.path == Path::new(".git/index")).unwrap();
    let What::File(file) = &change.what else { panic!("{change:?}") };
    use std::os::unix::fs::MetadataExt as _;
    let found = index.metadata().unwrap();
    assert_eq!((file.identity.ino, file.size, file.mode), (found.ino(), found.len(), 0o640));
}

#[test]
fn an_index_or_a_ref_that_changes_a_covered_path_holds_its_git_folder() {
    let changed = |case: &Case| {
        let id = says(&case.at("copy"), &["hash-object", "-w", "a"]);
        let info = format!("100644,{},.env", id.trim());
        git(&case.at("copy"), &["update-index", "--cacheinfo", &info]);
    };
    let case = Case::new();
    changed(&case);
    case.stage();
    let before = case.staged_index();
    let (_, held) = case.settle();
    assert_eq!(held, BTreeMap::from([(PathBuf::from(".git/index"), Why::Covered)]));
    assert_eq!(case.staged_index(), before);

    // The commit has it, and the index does not.
    let case = Case::new();
    let before = fs::read(case.at("copy/.git/index")).unwrap();
    changed(&case);
    git(&case.at("copy"), &["commit", "-q", "-m", "two"]);
    fs::write(case.at("copy/.git/index"), before).unwrap();
    case.stage();
    let (_, held) = case.settle();
    assert_eq!(held.get(Path::new(".git/refs/heads/main")), Some(&Why::Covered));
    assert_eq!(held.get(Path::new(".git/logs/HEAD")), Some(&Why::Group));
    // A later call could refer to the commit.
    assert!(held.keys().any(|path| path.starts_with(".git/objects")));
}

#[test]
fn refs_that_are_not_understood_are_held() {
    let case = Case::new();
    fs::create_dir_all(case.at("upper/.git/refs/heads")).unwrap();
    fs::write(case.at("upper/.git/refs/heads/main"), "nothing\n").unwrap();
    let (_, held) = case.settle();
    assert_eq!(held, BTreeMap::from([(PathBuf::from(".git/refs/heads/main"), Why::Covered)]));
}

#[test]
fn an_index_is_not_removed_where_something_is_covered() {
    for (covered, expected) in [(".env", 1), ("", 0)] {
        let mut case = Case::new();
        case.covered = covered.split_whitespace().map(PathBuf::from).collect();
        fs::create_dir_all(case.at("upper/.git")).unwrap();
        let index = case.at("upper/.git/index");
        let kind = rustix::fs::FileType::CharacterDevice;
        rustix::fs::mknodat(CWD, &index, kind, Mode::empty(), 0).unwrap();
        assert_eq!(case.settle().1.len(), expected);
    }
}

#[test]
fn a_split_index_is_held_for_its_entries_are_not_seen() {
    let case = Case::new();
    git(&case.at("host"), &["update-index", "--split-index"]);
    git(&case.at("copy"), &["update-index", "--split-index"]);
    fs::write(case.at("copy/new"), "").unwrap();
    git(&case.at("copy"), &["add", "new"]);
    case.stage();
    assert!(case.settle().1.contains_key(Path::new(".git/index")));
}

/// How a commit that no ref names gets into a repository.
fn sneak(case: &Case, paths: &[(&str, &str)]) -> String {
    let copy = case.at("copy");
    let parent = says(&copy, &["rev-parse", "HEAD"]);
    let index = case.at("sneaked");
    let run = |args: &[&str]| {
        let done = crate::git_index::tests::command(&copy, "git")
            .args(args)
            .env("GIT_INDEX_FILE", &index)
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    run(&["read-tree", "HEAD"]);
    for (path, content) in paths {
        let file = case.at("content");
        fs::write(&file, content).unwrap();
        let id = run(&["hash-object", "-w", "--no-filters", file.to_str().unwrap()]);
        run(&["update-index", "--add", "--cacheinfo", &format!("100755,{id},{path}")]);
    }
    let tree = run(&["write-tree"]);
    let id = run(&["commit-tree", &tree, "-p", parent.trim(), "-m", "sneaked"]);
    fs::remove_file(&index).unwrap();
    id
}

/// Whatever leads to a commit that would check out what the host runs, it does not come.
#[test]
fn no_commit_brings_what_the_host_runs_whatever_leads_to_it() {
    for lead in ["nothing", "MERGE_AUTOSTASH", "BISECT_START", "logs", "intermediate", "stash"] {
        let case = Case::new();
        let copy = case.at("copy");
        let evil = sneak(&case, &[(".envrc", "canary"), (".husky/post-checkout", "canary")]);
        let head = says(&copy, &["rev-parse", "HEAD"]);
        let tree = says(&copy, &["rev-parse", "HEAD^{tree}"]);
        match lead {
            "nothing" => {}
            "logs" => {
                let log = fs::read_to_string(copy.join(".git/logs/HEAD")).unwrap();
                let line = format!(
                    "{} {} a <a@b> 1 +0000\tcheckout: moving from {evil} to main\n",
                    head.trim(),
                    head.trim()
                );
                fs::write(copy.join(".git/logs/HEAD"), log + &line).unwrap();
            }
            "intermediate" => {
                let clean = says(&copy, &["commit-tree", tree.trim(), "-p", &evil, "-m", "clean"]);
                git(&copy, &["update-ref", "refs/heads/main", clean.trim()]);
            }
            "stash" => {
                let args = ["commit-tree", tree.trim(), "-p", head.trim(), "-p", &evil, "-m", "x"];
                git(&copy, &["update-ref", "refs/stash", says(&copy, &args).trim()]);
            }
            file => fs::write(copy.join(".git").join(file), format!("{evil}\n")).unwrap(),
        }
        case.stage();
        let (changes, held) = case.settle();
        let objects: Vec<_> = changes
            .iter()
            .filter(|it| it.path.starts_with(".git/objects") && it.path.components().count() > 3)
            .collect();
        assert!(!objects.is_empty(), "{lead}");
        for change in objects {
            assert_eq!(held.get(&change.path), Some(&Why::RunsOnHost), "{lead}: {held:?}");
        }
    }
}

/// What a commit brings is judged as a checkout of it: links, named files, read-only files, submodules.
#[test]
fn a_commit_brings_no_more_than_a_working_tree_may_have() {
    for path in [".github/workflows/x.yml", "Cargo.lock", "x/.git-hooks/a"] {
        let case = Case::new();
        sneak(&case, &[(path, "canary")]);
        case.stage();
        assert!(!case.settle().1.is_empty(), "{path}");
    }
    let case = Case::new();
    sneak(&case, &[("src/a.rs", "fine"), ("docs/HEAD", "fine")]);
    case.stage();
    assert_eq!(case.settle().1, BTreeMap::new());
    // A repository without a working tree of its own.
    let case = Case::new();
    sneak(&case, &[("x/HEAD", "a"), ("x/objects/a", ""), ("x/refs/a", ""), ("x/config", "")]);
    case.stage();
    assert!(!case.settle().1.is_empty());
    for (mode, content) in [("120000", "../out"), ("120000", "/etc/passwd"), ("160000", "")] {
        let case = Case::new();
        let copy = case.at("copy");
        fs::write(copy.join("content"), content).unwrap();
        let id = match mode {
            "160000" => says(&copy, &["rev-parse", "HEAD"]),
            _ => says(&copy, &["hash-object", "-w", "--no-filters", "content"]),
        };
        fs::remove_file(copy.join("content")).unwrap();
        let entry = format!("{mode},{},entry", id.trim());
        git(&copy, &["update-index", "--add", "--cacheinfo", &entry]);
        case.stage();
        let (_, held) = case.settle();
        assert_eq!(held.get(Path::new(".git/index")), Some(&Why::RunsOnHost), "{mode} {content}");
    }
}

/// Git believes the name of an object that it finds.
#[test]
fn an_object_has_the_content_that_its_name_stands_for() {
    let forge = |case: &Case, id: &str, from: &str| {
        let at = |id: &str| case.at("copy/.git/objects").join(&id[..2]).join(&id[2..]);
        let _ = fs::remove_file(at(id));
        fs::create_dir_all(at(id).parent().unwrap()).unwrap();
        fs::copy(at(from), at(id)).unwrap();
    };
    // One that the host has: its own stays.
    let case = Case::new();
    let copy = case.at("copy");
    fs::write(copy.join("new"), "canary").unwrap();
    let canary = says(&copy, &["hash-object", "-w", "new"]).trim().to_owned();
    let known = says(&copy, &["rev-parse", "HEAD:a"]).trim().to_owned();
    forge(&case, &known, &canary);
    case.stage();
    let (changes, held) = case.settle();
    assert_eq!(held, BTreeMap::new());
    let path = PathBuf::from(format!(".git/objects/{}/{}", &known[..2], &known[2..]));
    assert!(changes.iter().all(|change| change.path != path));
    // A new name: nothing is taken over.
    let case = Case::new();
    let copy = case.at("copy");
    fs::write(copy.join("new"), "canary").unwrap();
    let canary = says(&copy, &["hash-object", "-w", "new"]).trim().to_owned();
    forge(&case, &"12".repeat(20), &canary);
    case.stage();
    let (changes, held) = case.settle();
    for change in changes.iter().filter(|change| change.path.starts_with(".git")) {
        assert_eq!(held.get(&change.path), Some(&Why::RunsOnHost), "{:?}", change.path);
    }
    assert!(!held.is_empty());
}

#[test]
fn caches_and_replaced_objects_do_not_come() {
    let case = Case::new();
    let copy = case.at("copy");
    fs::write(copy.join("b"), "b").unwrap();
    git(&copy, &["add", "b"]);
    git(&copy, &["commit", "-q", "-m", "two"]);
    git(&copy, &["commit-graph", "write", "--reachable"]);
    git(&copy, &["repack", "-q", "-a", "-d", "--write-bitmap-index"]);
    case.stage();
    let (changes, held) = case.settle();
    assert_eq!(held, BTreeMap::new());
    let names: Vec<String> = changes.iter().map(|it| it.path.display().to_string()).collect();
    assert!(
        !names.iter().any(|name| name.contains("graph") || name.contains("pack-")),
        "{names:?}"
    );
    // The commit, its tree and its file.
    let objects =
        |name: &&String| name.starts_with(".git/objects/") && name.matches('/').count() == 3;
    assert_eq!(names.iter().filter(objects).count(), 3, "{names:?}");
    let case = Case::new();
    let copy = case.at("copy");
    let head = says(&copy, &["rev-parse", "HEAD"]);
    let packed =
        format!("# pack-refs with: peeled\n{} refs/replace/{}\n", head.trim(), "12".repeat(20));
    fs::write(copy.join(".git/packed-refs"), packed).unwrap();
    case.stage();
    assert!(case.settle().1.contains_key(Path::new(".git/packed-refs")));
}

/// Many objects stay in one pack, and a stage that brings none of its own brings nothing.
#[test]
fn many_objects_come_in_a_pack_that_git_wrote() {
    let case = Case::new();
    let copy = case.at("copy");
    for at in 0..150 {
        fs::write(copy.join(format!("f{at}")), at.to_string()).unwrap();
    }
    git(&copy, &["add", "-A"]);
    git(&copy, &["commit", "-q", "-m", "many"]);
    case.stage();
    let (changes, held) = case.settle();
    assert_eq!(held, BTreeMap::new());
    let packs = changes.iter().filter(|it| it.path.starts_with(".git/objects/pack")).count();
    assert_eq!(packs, 2, "a pack and its index");
    for entry in ["objects", "refs", "index", "logs"] {
        let from = case.at("upper/.git").join(entry);
        let done =
            std::process::Command::new("cp").arg("-r").arg(from).arg(case.at("host/.git")).status();
        assert!(done.unwrap().success());
    }
    git(&case.at("host"), &["fsck", "--strict", "--full"]);
}

/// A commit or an index that brings what the host runs, while the working tree does not show it.
#[test]
fn what_the_host_runs_is_neither_committed_nor_added() {
    for (path, prepare) in [
        (".claude/settings.json", None),
        (".husky/pre-commit", None),
        ("tools/hooks/pre-commit", Some(["config", "core.hooksPath", "tools/hooks"])),
    ] {
        let case = Case::new();
        if let Some(args) = prepare {
            git(&case.at("host"), &args);
            git(&case.at("copy"), &args);
        }
        let copy = case.at("copy");
        let file = copy.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "canary").unwrap();
        git(&copy, &["add", path]);
        fs::remove_file(&file).unwrap();
        case.stage();
        let (_, held) = case.settle();
        assert_eq!(held.get(Path::new(".git/index")), Some(&Why::RunsOnHost), "{path}: {held:?}");

        git(&copy, &["commit", "-q", "-m", "two"]);
        case.stage();
        let (_, held) = case.settle();
        let main = Path::new(".git/refs/heads/main");
        assert_eq!(held.get(main), Some(&Why::RunsOnHost), "{path}: {held:?}");
    }
}

/// The control: the user's own change of such a file is committed with the rest.
#[test]
fn what_the_host_has_itself_is_committed() {
    let case = Case::new();
    for folder in ["host", "copy"] {
        fs::create_dir(case.at(folder).join(".vscode")).unwrap();
        fs::write(case.at(folder).join(".vscode/settings.json"), "{}").unwrap();
        fs::write(case.at(folder).join(".envrc"), "use x").unwrap();
        fs::set_permissions(case.at(folder).join(".envrc"), fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    git(&case.at("copy"), &["add", "-A"]);
    git(&case.at("copy"), &["commit", "-q", "-m", "two"]);
    case.stage();
    let (_, held) = case.settle();
    assert_eq!(held, BTreeMap::new());
    // With another mode it is another file.
    fs::set_permissions(case.at("host/.envrc"), fs::Permissions::from_mode(0o644)).unwrap();
    let (_, held) = case.settle();
    assert_eq!(held.get(Path::new(".git/index")), Some(&Why::RunsOnHost));
}
