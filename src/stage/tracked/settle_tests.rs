//! Stages that git wrote in a copy of a repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::git_index::tests::{git, says};
use crate::git_index::{Index, hide};
use crate::stage::change::Why;
use crate::stage::walk::{Bounds, walk};

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
        let staged = Staged {
            host: host.as_fd(),
            upper: upper.as_fd(),
            workspace: host.as_fd(),
            led: &[],
            repositories: &[PathBuf::from(".git")].into(),
            home: None,
            root: &self.at("host"),
            kind: RootKind::Workspace,
            covered: &self.covered,
            trees: &trees,
            room: &self.at("room"),
        };
        let held = settle(&mut changes, &staged);
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
    assert!(!held.keys().any(|path| path.starts_with(".git/objects")));
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
