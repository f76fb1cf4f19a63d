//! Random stages over random hosts, under a policy that lets everything be written. What is judged fit is
//! carried out. Then nothing of the class *never* has changed, no folder has become a repository, and no
//! new symlink leads out. Needs root, for whiteouts.
#![no_main]

#[allow(unused_imports, reason = "not every id is used here")]
#[path = "../host/ids.rs"]
mod ids;
#[path = "../host/stage.rs"]
mod stage;
#[path = "../host/sys.rs"]
mod sys;
#[path = "../host/undo.rs"]
mod undo;
#[path = "../host/stage_workspace.rs"]
mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use libfuzzer_sys::fuzz_target;
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};

use stage::change::{Host, Judged, RootKind, Verdict, What};
use stage::gitconfig;
use stage::judge::{Rules, System, judge};
use workspace::protected::table::{self, Class};
use stage::walk::{Bounds, walk};
use workspace::grants::{Code, FileGrants, PathSet, Writes};

/// One byte chooses one of these, so that short inputs already make whole trees.
const NAMES: &[&str] = &[
    "a", "b", "HEAD", "objects", "refs", ".git", "config", "hooks", "commondir", ".envrc", ".GIT", "head",
    ".cargo", "config.toml", "info", "alternates", "modules", "worktrees", ".husky", "store", ".github",
    "workflows", "pre-commit", "index",
];
const TEXTS: &[&str] = &[
    "", "x", "ref: refs/heads/x\n", "gitdir: ../store\n", "[core]\n\tfsmonitor = x\n",
    "[core]\n\thooksPath = a\n", "[user]\n\tname = x\n", "[include]\n\tpath = ../b\n",
];
const TARGETS: &[&str] = &[".", "a", "..", "../..", "/etc", "a/..", ".git", "store", "b/../../x", "/"];

struct All(bool);

impl PathSet for All {
    fn matches(&self, _: &Path) -> bool {
        self.0
    }

    fn patterns(&self) -> Vec<String> {
        if self.0 { vec!["**".to_owned()] } else { Vec::new() }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    if choice % 4 == 0 {
        return configuration(rest);
    }
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let top = std::env::temp_dir().join(format!("runner-fuzz-stage-{}-{number}", std::process::id()));
    let (host, upper) = (top.join("host"), top.join("upper"));
    fs::create_dir_all(&host).and_then(|()| fs::create_dir_all(&upper)).expect("a temporary folder");
    let half = rest.len() / 2;
    build(&host, &rest[..half], Side::Host);
    build(&upper, &rest[half..], Side::Stage);
    run(&host, &upper);
    fs::remove_dir_all(&top).expect("a temporary folder");
});

fn configuration(added: &[u8]) {
    let base = b"[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n";
    let new = [base.as_slice(), added].concat();
    if gitconfig::is_harmless_change(base, &new) {
        let config = gitconfig::parse(&new).expect("it was understood");
        let other = |section: &str| !matches!(section, "branch" | "user");
        let rest = config.settings.iter().filter(|setting| other(&setting.section)).count();
        assert_eq!(rest, 2, "{config:?}");
        assert!(!config.settings.iter().any(|setting| setting.name == "pushremote"));
        let includes = config.includes().count() + config.commands().count();
        assert_eq!(includes + config.hooks_paths().count(), 0, "{config:?}");
    }
}

#[derive(PartialEq)]
enum Side {
    Host,
    Stage,
}

/// Four bytes make one entry: its kind, two names, and what is in it.
fn build(root: &Path, bytes: &[u8], side: Side) {
    let pick = |from: &[&'static str], byte: u8| from[usize::from(byte) % from.len()];
    let mut folders = vec![root.to_owned()];
    for entry in bytes.chunks_exact(4).take(40) {
        let folder = folders[usize::from(entry[1]) % folders.len()].clone();
        let path = folder.join(pick(NAMES, entry[2]));
        let deep = path.components().count() > root.components().count() + 5;
        if deep || path.symlink_metadata().is_ok() {
            continue;
        }
        let made = match entry[0] % 7 {
            0 | 1 => fs::write(&path, pick(TEXTS, entry[3])),
            2 => symlink(pick(TARGETS, entry[3]), &path),
            5 if side == Side::Stage => {
                mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), 0).map_err(Into::into)
            }
            6 if side == Side::Stage => fs::create_dir(&path).and_then(|()| {
                folders.push(path.clone());
                setxattr(&path, "user.overlay.opaque", b"y", XattrFlags::empty()).map_err(Into::into)
            }),
            _ => fs::create_dir(&path).map(|()| folders.push(path.clone())),
        };
        made.expect("an entry");
    }
}

/// Every path with what it is.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let kind = path.symlink_metadata().expect("an entry").file_type();
            let shown = if kind.is_dir() {
                waiting.push(path.clone());
                "folder".to_owned()
            } else if kind.is_symlink() {
                format!("link {}", path.read_link().expect("a link").display())
            } else {
                format!("file {}", fs::read_to_string(&path).expect("a file"))
            };
            found.insert(path.strip_prefix(root).expect("below").to_owned(), shown);
        }
    }
    found
}

fn is_repository(tree: &BTreeMap<PathBuf, String>, folder: &Path) -> bool {
    let has = |name: &str| tree.contains_key(&folder.join(name));
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

fn run(host: &Path, upper: &Path) {
    let before = snapshot(host);
    let (host_fd, upper_fd) =
        (fs::File::open(host).expect("the host"), fs::File::open(upper).expect("the stage"));
    let changes = walk(upper_fd.as_fd(), host_fd.as_fd(), Bounds::default()).expect("a small stage");
    let (all, none) = (All(true), All(false));
    let grants = FileGrants {
        policy: [0; 32],
        read: &all,
        write: &all,
        create: &[],
        readonly: &none,
        deny: &none,
        writes: Writes::Some,
        code: Code::Granted,
    };
    let covered: BTreeSet<PathBuf> = [PathBuf::from("b/index")].into();
    let rules = Rules {
        grants: &grants,
        policy: "fuzz",
        covered: &covered,
        root: host,
        kind: RootKind::Workspace,
        host: host_fd.as_fd(),
        upper: upper_fd.as_fd(),
        repositories: &BTreeSet::new(),
        links: &BTreeSet::new(),
        home: None,
        led: &[],
        system: &System::default(),
    };
    let judged = judge(changes, &rules);
    for one in &judged {
        carry_out(one, host, upper);
    }
    let after = snapshot(host);
    for path in before.keys().chain(after.keys()) {
        if before.get(path) == after.get(path) {
            continue;
        }
        let row = table::find(path);
        assert!(row.is_none_or(|row| row.class == Class::Source), "{path:?} changed");
        assert_ne!(path, Path::new("b/index"), "a covered path changed");
        if let Some(target) = after.get(path).and_then(|shown| shown.strip_prefix("link ")) {
            let ups = Path::new(target).iter().take_while(|part| *part == "..").count();
            let all = Path::new(target).iter().filter(|part| *part == "..").count();
            let inside = !target.starts_with('/') && ups == all && ups < path.iter().count();
            assert!(inside, "{path:?} -> {target}");
        }
        let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
        if let Some(at) = names.iter().position(|name| name.eq_ignore_ascii_case(".git")) {
            let git: PathBuf = names[..=at].iter().collect();
            assert!(is_repository(&before, &git), "{path:?} in no repository");
            let first = names.get(at + 1).copied().unwrap_or_default();
            let runs = ["", "hooks", "commondir"].contains(&first);
            assert!(!runs, "{path:?} changed");
        }
    }
    for folder in after.keys().map(PathBuf::as_path).chain([Path::new("")]) {
        let new = is_repository(&after, folder) && !is_repository(&before, folder);
        assert!(!new, "{folder:?} became a repository");
    }
}

/// Carries out what may be applied; an order that cannot be carried out is a finding.
fn carry_out(judged: &Judged, host: &Path, upper: &Path) {
    let change = &judged.change;
    if judged.verdict != Verdict::Apply {
        return;
    }
    let (from, to) = (upper.join(&change.path), host.join(&change.path));
    let clear = || match &change.host {
        Host::Absent => Ok(()),
        Host::Folder(_) => fs::remove_dir(&to),
        _ => fs::remove_file(&to),
    };
    let done = match &change.what {
        What::Removed => clear(),
        What::Folder { mode } => match &change.host {
            Host::Folder(_) => fs::set_permissions(&to, fs::Permissions::from_mode(*mode)),
            _ => clear().and_then(|()| fs::create_dir(&to)),
        },
        What::File(_) => clear().and_then(|()| fs::copy(&from, &to)).map(drop),
        What::Link { target } => clear().and_then(|()| symlink(target, &to)),
        What::Special => unreachable!("never applied"),
    };
    done.unwrap_or_else(|error| panic!("{change:?}: {error}"));
}
