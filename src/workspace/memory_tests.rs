//! A survey from memory finds what a survey without one finds, whatever happened between the two.
//!
//! Folders of a test changed a moment ago, and would not count. So these tests pretend that the walk began
//! later, and take care themselves that no change falls into the same tick of the clock.

use super::*;
use crate::workspace::binding;
use crate::workspace::grants::tests::{Globs, globs};
use crate::workspace::grants::{Code, FileGrants, Writes};
use crate::workspace::survey::{Looking, MOST_STALE, Survey, survey, survey_with};
use rustix::fs::{CWD, RenameFlags, Timespec, Timestamps, renameat_with, utimensat};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::OnceLock;
use std::time::Duration;

struct Case {
    dir: tempfile::TempDir,
    workspace: Workspace,
    lists: [Globs; 4],
    writes: Writes,
}

fn case(writes: Writes) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("ws");
    fs::create_dir_all(root.join("out")).unwrap();
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    Case {
        workspace: Workspace::find(Some(&root), &crate::environment::Environment::default())
            .unwrap(),
        dir,
        lists: [
            globs(&["**"]),
            globs(&["out/**", "a/b/**"]),
            globs(&["**/*.lock"]),
            globs(&["**/.env", "**/*.pem", "!**/ok.pem", "**/secrets/**"]),
        ],
        writes,
    }
}

impl Case {
    fn root(&self) -> &Path {
        self.workspace.root()
    }

    fn with<T>(&self, run: impl FnOnce(&Looking<'_>) -> T) -> T {
        let [read, write, readonly, deny] = &self.lists;
        let grants = FileGrants {
            policy: [0; 32],
            read,
            write,
            readonly,
            deny,
            create: &[],
            writes: self.writes,
            code: Code::Granted,
        };
        let workspace = &self.workspace;
        run(&Looking {
            workspace,
            grants: &grants,
            memory: None,
            unscanned: &[],
            mounted_below: false,
        })
    }

    fn memory(&self, looking: &Looking<'_>) -> Memory {
        let folder = self.dir.path().join("walks");
        let mut memory = Memory::open(&folder, &self.workspace, binding::of(looking)).unwrap();
        memory.begun += 3600;
        memory.worth = 0;
        memory
    }

    /// A survey from memory, which is then written anew; also how many folders it had to read.
    fn recalled(&self) -> (Survey, usize) {
        self.with(|looking| {
            let mut found = survey_with(looking, Some(self.memory(looking))).unwrap();
            found.keeping.take().unwrap().join().unwrap();
            (found, self.read_again(looking))
        })
    }

    /// Folders that the memory does not know, out of those that it names.
    fn read_again(&self, looking: &Looking<'_>) -> usize {
        let memory = self.memory(looking);
        let mut waiting = vec![Waiting { path: PathBuf::new(), page: memory.root() }];
        let mut unknown = 0;
        while let Some(folder) = waiting.pop() {
            match memory.recall(self.workspace.handle(), &folder) {
                None => unknown += 1,
                Some(page) => page
                    .read(
                        |_, _| {},
                        |page, name| {
                            let path = folder.path.join(OsStr::from_bytes(name));
                            waiting.push(Waiting { path, page });
                        },
                    )
                    .unwrap(),
            }
        }
        unknown
    }

    fn fresh(&self) -> Survey {
        self.with(|looking| survey(looking).unwrap())
    }

    /// Both surveys agree.
    fn check(&self, what: &dyn std::fmt::Debug) {
        let (recalled, _) = self.recalled();
        let fresh = self.fresh();
        assert_eq!(summary(&recalled), summary(&fresh), "{what:?}");
    }
}

/// All that follows from a survey, as text.
fn summary(survey: &Survey) -> String {
    format!("{:?}\n{:?}\n{:?}", survey.hidden, survey.repositories, survey.not_scanned)
}

/// Waits for a new tick, if a change could fall into the one of a look before it.
fn tick(case: &Case) {
    static SHARED: OnceLock<bool> = OnceLock::new();
    let probe = case.dir.path().join("probe");
    let changed = |name: &str| {
        fs::write(probe.join(name), "").unwrap();
        stamp(&rustix::fs::stat(&probe).unwrap()).changed
    };
    // Newer kernels give each change that somebody looked at a time of its own.
    let shared = SHARED.get_or_init(|| {
        fs::create_dir(&probe).unwrap();
        (0..50).any(|at| changed(&format!("x{at}")) == changed(&format!("y{at}")))
    });
    if *shared {
        std::thread::sleep(Duration::from_millis(25));
    }
}

#[test]
fn an_unchanged_workspace_is_read_once() {
    let case = case(Writes::None);
    fs::write(case.root().join("a/b/.env"), "").unwrap();
    let (first, unknown) = case.recalled();
    assert_eq!(unknown, 0);
    assert_eq!(first.hidden.len(), 1);
    assert_eq!(summary(&case.recalled().0), summary(&first));
}

#[test]
fn a_survey_writes_its_memory_before_the_process_ends() {
    let case = case(Writes::None);
    for at in 0..WORTH {
        fs::create_dir(case.root().join(format!("d{at}"))).unwrap();
    }
    // Folders must have been as they are for a while.
    std::thread::sleep(Duration::from_secs(u64::try_from(SETTLED).unwrap() + 2));
    let folder = case.dir.path().join("walks");
    case.with(|looking| survey(&Looking { memory: Some(&folder), ..*looking }).unwrap());
    crate::workspace::survey::settle();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    case.with(|looking| assert_eq!(case.read_again(looking), 0));
}

/// The attack of a workspace that changes under a waiting sandbox, and that it is seen.
#[test]
fn a_denied_file_that_appears_or_is_replaced_is_seen() {
    let case = case(Writes::None);
    let root = case.root();
    let env = root.join("a/b/.env");
    case.check(&"nothing is denied yet");
    tick(&case);

    fs::write(&env, "canary").unwrap();
    let (found, _) = case.recalled();
    assert!(found.hidden.contains_key(Path::new("a/b/.env")));
    tick(&case);

    // As editors do it; the new file has a second name in a folder that is remembered.
    fs::write(root.join("a/b/c/innocent"), "canary").unwrap();
    assert_eq!(case.recalled().0.hidden.len(), 1);
    tick(&case);
    fs::hard_link(root.join("a/b/c/innocent"), root.join("a/b/.env.new")).unwrap();
    fs::rename(root.join("a/b/.env.new"), &env).unwrap();
    let (found, _) = case.recalled();
    let hidden: Vec<_> = found.hidden.keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(hidden, ["a/b/.env", "a/b/c/innocent"]);
    fs::remove_file(root.join("a/b/c/innocent")).unwrap();
    tick(&case);

    // Its folder is moved away, and another one is there, with the times of the first.
    let times = fs::metadata(root.join("a/b")).unwrap();
    fs::rename(root.join("a/b"), root.join("old")).unwrap();
    fs::create_dir(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/k.pem"), "canary").unwrap();
    set_times(&root.join("a/b"), &times);
    set_times(&root.join("a"), &times);
    let (found, _) = case.recalled();
    let hidden: Vec<_> = found.hidden.keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(hidden, ["a/b/k.pem", "old/.env"]);
}

fn set_times(path: &Path, times: &fs::Metadata) {
    use std::os::unix::fs::MetadataExt;
    let time = Timespec { tv_sec: times.mtime(), tv_nsec: times.mtime_nsec() };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, rustix::fs::AtFlags::empty()).unwrap();
}

#[test]
fn a_folder_that_changed_a_moment_ago_does_not_count() {
    let case = case(Writes::None);
    case.with(|looking| {
        let mut memory = case.memory(looking);
        memory.begun -= 3600;
        assert_eq!(memory.look(case.workspace.handle()), Seen::Unsettled);
        let mut found = survey_with(looking, Some(memory)).unwrap();
        assert!(found.keeping.take().is_none_or(|keeping| keeping.join().is_ok()));
        assert!(case.read_again(looking) > 0);
    });
    case.check(&"and is read again");
}

#[test]
fn a_clock_that_was_set_forgets_everything() {
    let case = case(Writes::None);
    assert_eq!(case.recalled().1, 0);
    case.with(|looking| {
        let mut memory = case.memory(looking);
        assert!(memory.root().is_some());
        memory.forget();
        memory.clock -= 2 * SAME_CLOCK;
        let mut found = survey_with(looking, Some(memory)).unwrap();
        found.keeping.take().unwrap().join().unwrap();
        assert!(case.memory(looking).root().is_none());
    });
}

#[test]
fn another_policy_or_place_has_another_memory() {
    let case = case(Writes::None);
    case.recalled();
    case.with(|looking| {
        assert!(case.memory(looking).root().is_some());
        let deny = globs(&["**/other"]);
        let grants = FileGrants { deny: &deny, ..*looking.grants };
        assert!(case.memory(&Looking { grants: &grants, ..*looking }).root().is_none());
        // The same patterns, which another policy has in other layers.
        let grants = FileGrants { policy: [1; 32], ..*looking.grants };
        assert!(case.memory(&Looking { grants: &grants, ..*looking }).root().is_none());
        let grants = FileGrants { writes: Writes::Some, ..*looking.grants };
        assert!(case.memory(&Looking { grants: &grants, ..*looking }).root().is_none());
        let inside = case.root().join("walks");
        let binding = binding::of(looking);
        assert!(Memory::open(&inside, &case.workspace, binding).is_none(), "in the workspace");
    });
}

#[test]
fn a_second_name_of_a_denied_file_is_found_in_an_unchanged_folder() {
    let case = case(Writes::None);
    let root = case.root();
    fs::write(root.join(".env"), "canary").unwrap();
    fs::write(root.join("a/b/c/innocent"), "x").unwrap();
    case.check(&"one name each");
    tick(&case);
    // The folder of the innocent name does not change; the denied name appears elsewhere.
    fs::hard_link(root.join("a/b/c/innocent"), root.join("k.pem")).unwrap();
    let (found, _) = case.recalled();
    assert!(found.hidden.contains_key(Path::new("a/b/c/innocent")));
    case.check(&"and again");
}

#[test]
fn a_second_name_of_a_remembered_denied_file_is_found_where_it_appears() {
    let case = case(Writes::None);
    let root = case.root();
    fs::write(root.join("a/b/.env"), "canary").unwrap();
    case.check(&"one name, remembered");
    tick(&case);
    // The folder of the denied name does not change.
    fs::hard_link(root.join("a/b/.env"), root.join("a/innocent")).unwrap();
    let (found, _) = case.recalled();
    assert!(found.hidden.contains_key(Path::new("a/innocent")));
    tick(&case);
    // Nor here; and what is left is no name of a denied file.
    fs::remove_file(root.join("a/b/.env")).unwrap();
    let (found, _) = case.recalled();
    assert!(found.hidden.is_empty());
    case.check(&"and again");
}

#[test]
fn inodes_of_denied_files_that_are_gone_are_forgotten() {
    let case = case(Writes::None);
    let path = |at: usize| case.root().join(format!("a/{at}.pem"));
    for at in 0..MOST_STALE + 8 {
        fs::write(path(at), "").unwrap();
    }
    case.recalled();
    let remembered = || case.with(|looking| case.memory(looking).inodes().len());
    assert_eq!(remembered(), MOST_STALE + 8);
    tick(&case);
    for at in 1..MOST_STALE + 8 {
        fs::remove_file(path(at)).unwrap();
    }
    case.check(&"one is left");
    assert_eq!(remembered(), 1);
}

/// Needs the right to mount; without it there is nothing to see.
#[test]
fn what_is_mounted_over_a_remembered_folder_is_looked_through() {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    let case = case(Writes::None);
    let place = case.root().join("a/b");
    assert_eq!(case.recalled().1, 0);
    if mount("none", &place, "tmpfs", MountFlags::empty(), None).is_err() {
        return;
    }
    fs::write(place.join(".env"), "canary").unwrap();
    let (found, unknown) = case.recalled();
    let (again, _) = case.recalled();
    unmount(&place, UnmountFlags::DETACH).unwrap();
    assert!(found.hidden.contains_key(Path::new("a/b/.env")));
    assert_eq!(unknown, 1, "only the workspace's own file system is remembered");
    assert!(again.hidden.contains_key(Path::new("a/b/.env")));
    let (found, unknown) = case.recalled();
    assert!(found.hidden.is_empty());
    assert_eq!(unknown, 0);
}

/// Numbers that look random, the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len())]
    }

    fn folder(&mut self, root: &Path) -> PathBuf {
        let names = ["", "a", "a/b", "a/b/c", "out", "out/x", "d", "d/secrets", "a/.git", "e/f"];
        root.join(self.pick(&names))
    }

    fn path(&mut self, root: &Path) -> PathBuf {
        let names = [
            ".env", "k.pem", "ok.pem", "file", "x.lock", ".bashrc", "secrets", "b", "HEAD",
            "config", "other", ".git", "é", "id_rsa", "f", "c",
        ];
        self.folder(root).join(self.pick(&names))
    }

    /// One change, or an attempt at it. What it was, for messages.
    fn change(&mut self, root: &Path) -> String {
        let (one, two) = (self.path(root), self.path(root));
        let (folder, other) = (self.folder(root), self.folder(root));
        let done = match self.roll(14) {
            0 | 1 => fs::File::create_new(&one).map(|_| "write"),
            2 => fs::create_dir_all(&folder).map(|()| "make"),
            3 => fs::remove_file(&one).map(|()| "remove"),
            4 => fs::rename(&one, &two).map(|()| "rename"),
            5 if folder != root => fs::rename(&folder, &two).map(|()| "move a folder"),
            6 => fs::hard_link(&one, &two).map(|()| "link"),
            7 => symlink("file", &one).map(|()| "point"),
            8 => {
                let mode = [0o755, 0o700, 0o000][self.roll(3)];
                let mode = if folder == root { 0o755 } else { mode };
                fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).map(|()| "close")
            }
            9 => fs::metadata(&folder)
                .and_then(|times| fs::File::create_new(&one).map(|_| set_times(&folder, &times)))
                .map(|()| "write and set the time back"),
            10 if one != folder && folder != root && other != root => {
                renameat_with(CWD, &folder, CWD, &other, RenameFlags::EXCHANGE)
                    .map(|()| "exchange")
                    .map_err(Into::into)
            }
            11 if folder != root => fs::remove_dir_all(&folder).map(|()| "remove all"),
            12 => rustix::fs::mknodat(CWD, &one, FileType::Fifo, rustix::fs::Mode::from(0o644), 0)
                .map(|()| "pipe")
                .map_err(Into::into),
            _ => fs::create_dir(&one).map(|()| "folder"),
        };
        format!("{done:?} {one:?} {two:?} {folder:?} {other:?}")
    }
}

/// `RUNNER_ROUNDS` asks for more or fewer of them.
fn random_changes(writes: Writes, seed: u64) {
    let rounds = std::env::var("RUNNER_ROUNDS").ok().and_then(|text| text.parse().ok());
    let case = case(writes);
    let mut dice = Dice(seed);
    for round in 0..rounds.unwrap_or(200) {
        tick(&case);
        let changes: Vec<String> = (0..=dice.roll(4)).map(|_| dice.change(case.root())).collect();
        case.check(&(round, changes));
    }
    // What cannot be entered could not be removed either.
    for folder in ["a", "a/b", "a/b/c", "out", "out/x", "d", "d/secrets", "a/.git", "e/f"] {
        let _ = fs::set_permissions(case.root().join(folder), fs::Permissions::from_mode(0o755));
    }
}

#[test]
fn memory_never_differs_from_a_look_where_nothing_is_writable() {
    random_changes(Writes::None, 0x9E37_79B9_7F4A_7C15);
}

#[test]
fn memory_never_differs_from_a_look_where_something_is_writable() {
    random_changes(Writes::Some, 0xD1B5_4A32_D192_ED03);
}
