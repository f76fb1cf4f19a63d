//! The folder of sockets: found, checked, and used through the handle that was checked.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::engine::embedded::failure::LaunchError;
use crate::engine::error::EngineError;
use crate::engine::open::Variable;
use crate::ids::CallId;
use crate::json;
use crate::sys::lease::{self, Exclusive, Found, Lease, LockFile};

/// Files that say whose a sandbox is have this ending.
const HOLDER: &str = "holder";

/// Sockets have this ending.
const SOCKET: &str = "socket";

/// Where sandboxes of this caller wait; none if there is no folder for them.
pub(in crate::engine::embedded) fn choose(variable: Variable<'_>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // One that belongs to somebody else, as it may after `su`, is not used.
    let runtime = absolute("XDG_RUNTIME_DIR").filter(|folder| open(folder).is_ok());
    let state = || {
        let base = absolute("XDG_STATE_HOME")
            .or_else(|| Some(absolute("HOME")?.join(".local").join("state")))?;
        Some(base.join("runner").join("waiting"))
    };
    runtime.map(|folder| folder.join("runner")).or_else(state)
}

/// A sandbox that waits: its own label, and all of its labels.
pub(in crate::engine::embedded) type Listed = (CallId, BTreeMap<String, String>);

/// A folder that was opened, and that only this user can use.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// The folder, made if it is missing.
    pub(super) fn make(path: &Path) -> Result<Self, EngineError> {
        match fs::DirBuilder::new().recursive(true).mode(0o700).create(path) {
            // What stands there instead is told when it is opened.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(EngineError::Local {
                operation: "make the folder of waiting sandboxes",
                source: error,
            }),
            _ => open(path).map(Self).map_err(|errno| unsafe_folder(path, errno)),
        }
    }

    /// The folder, if there is one.
    pub(super) fn find(path: &Path) -> Result<Option<Self>, EngineError> {
        match open(path) {
            Ok(handle) => Ok(Some(Self(handle))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(unsafe_folder(path, errno)),
        }
    }

    /// The path of a file in this very folder, whatever stands at its name by now; it is short enough for a socket's.
    fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        Path::new("/proc/self/fd").join(self.0.as_raw_fd().to_string()).join(name.as_ref())
    }

    /// The socket of a sandbox.
    pub(super) fn socket(&self, label: &str) -> PathBuf {
        self.at(format!("{label}.{SOCKET}"))
    }

    /// Says whose a sandbox is, for as long as this process lives.
    pub(super) fn hold(
        &self,
        label: &str,
        labels: &BTreeMap<String, String>,
    ) -> io::Result<Lease<Exclusive>> {
        // A list that was quicker may take the new file for one that was left, and remove it.
        let lease = LockFile::open(&self.at(format!("{label}.{HOLDER}")))?.wait()?;
        lease.replace(&serde_json::to_vec(labels)?)?;
        Ok(lease)
    }

    /// Whether the holder of a sandbox lives.
    pub(super) fn is_held(&self, label: &str) -> bool {
        matches!(lease::find(&self.at(format!("{label}.{HOLDER}"))), Ok(Found::Held(_)))
    }

    /// Every sandbox whose holder lives, by its label, with its labels. What dead ones left is removed.
    pub(super) fn list(&self) -> io::Result<Vec<Listed>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.at(""))? {
            let name = entry?.file_name();
            let Some((label, ending)) = parts(&name) else { continue };
            let file = lease::find(&self.at(format!("{label}.{HOLDER}")));
            match (file, ending) {
                (Ok(Found::Held(file)), HOLDER) => {
                    // Empty in the moment before it is written.
                    let labels = file.read().ok();
                    let labels =
                        labels.and_then(|text| json::read_as(&text, json::Limits::USUAL).ok());
                    found.extend(labels.map(|labels| (label, labels)));
                }
                (Ok(Found::Free(lease)), _) => {
                    let _ = fs::remove_file(self.socket(label.as_str()));
                    let _ = lease.remove();
                }
                // A socket is made after the file beside it, and goes before it.
                (Ok(Found::Gone), SOCKET) => {
                    let _ = fs::remove_file(self.socket(label.as_str()));
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The label and the ending of a file of ours.
fn parts(name: &OsStr) -> Option<(CallId, &'static str)> {
    let (label, ending) = name.to_str()?.rsplit_once('.')?;
    let ending = [HOLDER, SOCKET].into_iter().find(|known| *known == ending)?;
    Some((CallId::new(label)?, ending))
}

/// Opens a folder that is no link, and that only this user can look into and change.
fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(CWD, path, flags, Mode::empty())?;
    let found = fstat(&handle)?;
    let ours = found.st_uid == rustix::process::geteuid().as_raw();
    let shut = found.st_mode & 0o077 == 0;
    let folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if ours && shut && folder { Ok(handle) } else { Err(Errno::PERM) }
}

fn unsafe_folder(path: &Path, errno: Errno) -> EngineError {
    let why = match errno {
        Errno::PERM => "it is another user's, or other users may use it".to_owned(),
        Errno::LOOP | Errno::NOTDIR => "it is a link, or no folder".to_owned(),
        other => io::Error::from(other).to_string(),
    };
    LaunchError::WaitingFolder { path: path.to_owned(), why }.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("r/waiting");
        (dir, path)
    }

    #[test]
    fn a_folder_that_others_may_use_or_that_a_link_leads_to_is_refused() {
        let (_dir, path) = folder();
        Folder::make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        for mode in [0o755, 0o701, 0o720] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(Folder::make(&path).is_err() && Folder::find(&path).is_err(), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(Folder::find(&path).unwrap().is_some(), "the control");
        let link = path.with_file_name("link");
        symlink(&path, &link).unwrap();
        assert!(Folder::make(&link).is_err() && Folder::find(&link).is_err());
        symlink("nowhere", path.with_file_name("dangling")).unwrap();
        assert!(Folder::make(&path.with_file_name("dangling")).is_err());
        assert!(Folder::find(&path.with_file_name("missing")).unwrap().is_none());
    }

    #[test]
    fn only_what_a_living_process_holds_is_listed_and_the_rest_is_removed() {
        let (_dir, path) = folder();
        let folder = Folder::make(&path).unwrap();
        let labels = BTreeMap::from([("runner.call".to_owned(), "a1".to_owned())]);
        let living = folder.hold("a1", &labels).unwrap();
        let _socket = UnixListener::bind(folder.socket("a1")).unwrap();
        drop(folder.hold("b2", &labels).unwrap());
        for label in ["b2", "c3"] {
            drop(UnixListener::bind(folder.socket(label)).unwrap());
        }
        fs::write(folder.at("not-ours"), "").unwrap();
        assert_eq!(folder.list().unwrap(), [(CallId::new("a1").unwrap(), labels)]);
        assert!(folder.is_held("a1") && !folder.is_held("b2"));
        let left = |name: &str| path.join(name).exists();
        assert_eq!(["b2.holder", "b2.socket", "c3.socket"].map(left), [false; 3]);
        assert_eq!(["a1.holder", "a1.socket", "not-ours"].map(left), [true; 3]);
        drop(living);
        assert_eq!(folder.list().unwrap(), []);
    }

    #[test]
    fn the_runtime_folder_is_used_only_if_it_is_this_users_alone() {
        let (dir, path) = folder();
        Folder::make(&path).unwrap();
        let chosen = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let (runtime, home) = (path.clone(), dir.path().to_owned());
            choose(&move |name| match name {
                "XDG_RUNTIME_DIR" => Some(runtime.clone().into()),
                "HOME" => Some(home.clone().into()),
                _ => None,
            })
        };
        let state = dir.path().join(".local/state/runner/waiting");
        assert_eq!(chosen(0o700), Some(path.join("runner")));
        assert_eq!(chosen(0o755), Some(state));
        assert_eq!(choose(&|_| None), None);
    }
}
