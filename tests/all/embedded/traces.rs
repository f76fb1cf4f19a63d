//! What a sandbox of this machine's kernel could leave: mounts, processes, control groups, stages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::everyday::caller::Caller;

/// How long the kernel may take to end processes on a busy machine.
const GONE: Duration = Duration::from_secs(20);

/// What is on this machine at a moment.
pub struct Traces {
    mounts: BTreeSet<String>,
    processes: BTreeSet<String>,
}

impl Traces {
    /// Now.
    pub fn of_now() -> Self {
        Self { mounts: mounts(), processes: launchers() }
    }

    /// What is there now that was not, if it stays.
    pub fn left(&self, when: &str) -> Option<String> {
        let begun = Instant::now();
        loop {
            let mounts: Vec<_> = mounts().difference(&self.mounts).cloned().collect();
            let processes: Vec<_> = launchers().difference(&self.processes).cloned().collect();
            if mounts.is_empty() && processes.is_empty() {
                return None;
            }
            if begun.elapsed() > GONE {
                return Some(format!("{when}: left {mounts:?} {processes:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn mounts() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    // Other tests' engines mount and unmount theirs meanwhile; sandboxes of ours are about these alone.
    let ours = |line: &&str| {
        line.contains(" overlay ") && line.contains("runner") || line.contains("/.runner")
    };
    table.lines().filter(ours).map(str::to_owned).collect()
}

/// Launchers and guests that are processes of this machine, by number and start.
fn launchers() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let path = entry.path();
        let words = fs::read(path.join("cmdline")).unwrap_or_default();
        let first = String::from_utf8_lossy(words.split(|byte| *byte == 0).next().unwrap_or(&[]))
            .into_owned();
        let ours = first.ends_with("/guest") || first.ends_with("/guest.real");
        // What another test has waiting stays as long as it likes.
        if ours && !is_held(&path) {
            found.insert(format!("{} {first}", path.display()));
        }
    }
    found
}

/// Whether a process is below one that holds a sandbox that waits.
fn is_held(process: &Path) -> bool {
    let parent = |process: &PathBuf| {
        let stat = fs::read_to_string(process.join("stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.to_owned();
        Some(Path::new("/proc").join(parent))
    };
    std::iter::successors(Some(process.to_owned()), parent).any(|process| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"--internal-holder")
    })
}

/// Control groups of sandboxes, in every tree.
pub fn groups() -> BTreeSet<PathBuf> {
    fn below(folder: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().starts_with("runner-sandbox-") {
                found.insert(entry.path());
            } else if depth > 0 {
                below(&entry.path(), depth - 1, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    below(Path::new("/sys/fs/cgroup"), 3, &mut found);
    found
}

/// The stages of a caller that are still there.
pub fn stages(caller: &Caller) -> Option<Vec<PathBuf>> {
    let folder = caller.state().join("runner/stages");
    let all: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).collect();
    let folders: Vec<_> = all.into_iter().filter(|path| path.is_dir()).collect();
    (!folders.is_empty()).then_some(folders)
}
