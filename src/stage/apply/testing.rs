//! A workspace and a stage for tests, and a small walker that judges everything as applicable.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, mknodat};

use super::{Context, Sync};
use crate::config::Undo;
use crate::ids::CallId;
use crate::stage::change::RootKind;
use crate::stage::change::{Change, Host, Judged, Origin, Staged, Verdict, What};
use crate::stage::folder::{Root, Stage};
use crate::stage::handles;
use crate::store::Store;
use crate::undo::{Backups, KeepNothing, Site, Writing, changes, plan};

/// Everything that a test needs; the folders go with it.
pub(super) struct Bench {
    pub dir: tempfile::TempDir,
    pub state: PathBuf,
    pub workspace: PathBuf,
    pub stage: Option<Stage>,
}

impl Bench {
    /// A workspace with these files.
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (state, workspace) = (dir.path().join("state"), dir.path().join("work"));
        fs::create_dir(&workspace).unwrap();
        Self::at(dir, state, workspace, files)
    }

    pub(super) fn at(
        dir: tempfile::TempDir,
        state: PathBuf,
        workspace: PathBuf,
        files: &[(&str, &str)],
    ) -> Self {
        for (path, content) in files {
            write(&workspace.join(path), content);
        }
        Self { dir, state, workspace, stage: None }
    }

    /// A call begins: what the host has is older than the claim.
    pub(super) fn begin(&mut self) {
        tick(self.dir.path());
        fs::create_dir_all(&self.state).unwrap();
        let roots = vec![Root::of(&self.workspace, RootKind::Workspace).unwrap()];
        let label = CallId::fresh().unwrap();
        let mut stage = Stage::make(&self.state, &label, roots).unwrap();
        stage.claim(&label).unwrap();
        tick(self.dir.path());
        self.stage = Some(stage);
    }

    pub(super) fn stage(&self) -> &Stage {
        self.stage.as_ref().unwrap()
    }

    /// A file that the command made or replaced.
    pub(super) fn put(&self, path: impl AsRef<Path>, content: &str) {
        write(&self.stage().upper(0).join(path), content);
    }

    /// A file that the overlay copied up and the command changed.
    pub(super) fn edit(&self, path: &str, content: &str) {
        self.put(path, content);
        let upper = self.stage().upper(0).join(path);
        lsetxattr(&upper, "user.overlay.origin", b"host", XattrFlags::empty()).unwrap();
        let mode = fs::metadata(self.workspace.join(path)).unwrap().permissions();
        fs::set_permissions(&upper, mode).unwrap();
    }

    /// A whiteout.
    pub(super) fn remove(&self, path: &str) {
        let upper = self.stage().upper(0).join(path);
        fs::create_dir_all(upper.parent().unwrap()).unwrap();
        mknodat(CWD, &upper, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }

    pub(super) fn context(&self) -> Context<'_> {
        let bounds = Undo { size: 1 << 30, age: Duration::from_secs(3600) };
        Context { state: &self.state, bounds, sync: Sync::Never }
    }

    pub(super) fn walk(&self) -> Vec<Judged> {
        walk(self.stage())
    }

    pub(super) fn apply(&self) -> super::Applied {
        super::apply(self.stage(), &[self.walk()], &self.context()).unwrap()
    }

    /// Takes a call back as `runner undo` does.
    pub(super) fn undo(&self, call: &str) -> Result<(), String> {
        let store = Store::open(Some(&self.state)).unwrap();
        let environment = crate::environment::Environment::default();
        let workspace =
            crate::workspace::Workspace::find(Some(&self.workspace), &environment).unwrap();
        let backups = Backups::open(&self.state).unwrap();
        let site = Site::new(&workspace, backups, Writing::AsCommand).unwrap();
        for (_, changes) in changes(&store, call).unwrap().all {
            let steps = plan(&site, &changes).map_err(|found| format!("{found:?}"))?;
            for step in steps {
                site.take(&step, &KeepNothing).map_err(|error| format!("{step:?}: {error}"))?;
            }
        }
        Ok(())
    }

    /// Everything in the workspace: kind, permissions and content by path.
    pub(super) fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        snapshot(&self.workspace)
    }
}

/// Everything below a folder: kind, permissions and content by path.
pub(super) fn snapshot(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let mode = about.permissions().mode() & 0o7777;
            let says = if about.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if about.is_dir() {
                waiting.push(path.clone());
                format!("folder {mode:o}")
            } else {
                format!("{mode:o} {}", String::from_utf8_lossy(&fs::read(&path).unwrap()))
            };
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), says);
        }
    }
    found
}

pub(super) fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Waits until the clock of files has moved.
pub(super) fn tick(folder: &Path) {
    let probe = folder.join("clock");
    let now = || {
        fs::write(&probe, "").unwrap();
        let found = fs::metadata(&probe).unwrap();
        fs::remove_file(&probe).unwrap();
        (found.mtime(), found.mtime_nsec())
    };
    let first = now();
    while now() == first {}
}

/// The changes of a stage, all of them applicable.
pub(super) fn walk(stage: &Stage) -> Vec<Judged> {
    let upper = stage.upper(0);
    let host = stage.roots()[0].open().unwrap();
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    let look = |path: &Path| {
        let (folder, name) = handles::split(path).unwrap();
        match handles::open_folder(&host, folder) {
            Ok(folder) => handles::look(&folder, name).unwrap(),
            Err(_) => Host::Absent,
        }
    };
    let mut judged = |path: PathBuf, what: What| {
        let host = look(&path);
        found.push(Judged {
            change: Change { path, what, host, lost: false },
            verdict: Verdict::Apply,
        });
    };
    let root = stage.roots()[0].path();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(upper.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let about = fs::symlink_metadata(entry.path()).unwrap();
            let kind = FileType::from_raw_mode(about.mode());
            let hidden = |path: &Path| -> Vec<PathBuf> {
                let top = root.join(path);
                match fs::symlink_metadata(&top) {
                    Ok(about) if about.is_dir() => {
                        snapshot(&top).into_keys().rev().map(|inner| path.join(inner)).collect()
                    }
                    _ => Vec::new(),
                }
            };
            match kind {
                FileType::CharacterDevice => {
                    for inner in hidden(&path) {
                        judged(inner, What::Removed);
                    }
                    judged(path, What::Removed);
                }
                FileType::Directory => {
                    let there = fs::symlink_metadata(root.join(&path)).ok();
                    let same = there.is_some_and(|there| there.mode() == about.mode());
                    if !same {
                        judged(path.clone(), What::Folder { mode: about.mode() & 0o7777 });
                    }
                    waiting.push(path);
                }
                FileType::Symlink => {
                    let target = fs::read_link(entry.path()).unwrap().into_os_string();
                    judged(path, What::Link { target });
                }
                _ => {
                    for inner in hidden(&path) {
                        judged(inner, What::Removed);
                    }
                    judged(path, file(&entry.path(), &about));
                }
            }
        }
    }
    // No order is promised.
    let mut seen = HashSet::new();
    found.retain(|judged| seen.insert(judged.change.path.clone()));
    found
}

fn file(path: &Path, about: &fs::Metadata) -> What {
    let mut buffer = [0_u8; 256];
    let copied = rustix::fs::lgetxattr(path, "user.overlay.origin", &mut buffer[..]).is_ok();
    What::File(Staged {
        identity: crate::ids::Identity { dev: about.dev(), ino: about.ino() },
        mode: about.mode() & 0o7777,
        size: about.len(),
        links: about.nlink(),
        born: handles::born(CWD, path.as_os_str()),
        origin: if copied { Origin::Host } else { Origin::New },
    })
}

/// A small file system in memory, until it is dropped.
pub(super) struct Memory(pub PathBuf);

impl Memory {
    pub(super) fn mount(at: &Path, size: &str) -> Self {
        fs::create_dir_all(at).unwrap();
        let options = std::ffi::CString::new(format!("size={size}")).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", at, "tmpfs", flags, options.as_c_str()).unwrap();
        Self(at.to_owned())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

/// A name that is not text.
pub(super) fn odd() -> &'static OsStr {
    OsStr::from_bytes(b"odd-\xff\xfe")
}
