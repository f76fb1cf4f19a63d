//! Overlay mounts, as volumes of Docker's `local` driver.
//!
//! Duty: open the layers of an overlay, compare each with the plan, and name them to the daemon. The
//! volume is anonymous: the daemon mounts it when the container starts, and removes it with the
//! container.
//!
//! A layer is named by descriptor (`/proc/PID/fd/N`) where the daemon is in our PID namespace: what was
//! compared is what is mounted, and no character of a path has a meaning. Elsewhere it is named by its
//! path, with the separators of overlayfs escaped; the host compares the sources again after the
//! mount. In both cases the guest proves the topmost layer by its mark: had the number of a process
//! meant another one there, the mark would be missing.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

use crate::engine::error::EngineError;
use crate::engine::plan::{Overlay, OverlayWrites};
use crate::ids::Identity;

/// What every overlay is mounted with. Without `userxattr` an ordinary caller could not read what the
/// kernel writes into a stage, and a command could forge it.
const OPTIONS: &str = "userxattr,nosuid,nodev";

/// How the daemon is told which folder is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// By a descriptor of this process.
    Descriptors,
    /// By its path.
    Paths,
}

/// How a daemon at the other end of this socket can be told of our folders: by descriptor if the
/// kernel shows its process to us with one number alone, that of our own PID namespace.
pub(super) fn naming(socket: BorrowedFd<'_>) -> Naming {
    let single = || {
        let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", peer.pid)).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        Some(numbers.split_whitespace().count() == 1)
    };
    if single() == Some(true) { Naming::Descriptors } else { Naming::Paths }
}

/// Overlays whose layers are open. Descriptors must stay open until the container has started.
#[derive(Debug)]
pub(super) struct Layers {
    /// Options for each overlay of the plan, in order.
    pub options: Vec<String>,
    _open: Vec<OwnedFd>,
}

/// Opens the layers of all overlays. `stage` is the folder of the sandbox's stage; the staged
/// overlay with number N has its upper layer in `N/upper` and its work folder in `N/work`.
///
/// # Errors
/// A layer is gone, or is not what was planned, or its path cannot be named.
pub(super) fn open(
    overlays: &[Overlay],
    stage: Option<&Path>,
    naming: Naming,
) -> Result<Layers, EngineError> {
    let mut names = Names { naming, open: Vec::new() };
    let mut options = Vec::new();
    let mut staged = 0;
    for overlay in overlays {
        let covers = names.layer(&overlay.covers.path, Some(overlay.covers.identity))?;
        let lowest = names.layer(&overlay.target, Some(overlay.identity))?;
        let mut text = format!("lowerdir={covers}:{lowest}");
        if overlay.writes == OverlayWrites::Staged {
            let folder = stage.ok_or_else(no_stage)?.join(staged.to_string());
            staged += 1;
            let upper = names.layer(&folder.join("upper"), None)?;
            let work = names.layer(&folder.join("work"), None)?;
            text.push_str(&format!(",upperdir={upper},workdir={work}"));
        }
        options.push(format!("{text},{OPTIONS}"));
    }
    Ok(Layers { options, _open: names.open })
}

/// The same for people: by path, and nothing is opened.
pub(super) fn describe(overlays: &[Overlay]) -> Vec<String> {
    let describe = |overlay: &Overlay| {
        let stage = match overlay.writes {
            OverlayWrites::Staged => ",upperdir=STAGE/upper,workdir=STAGE/work",
            OverlayWrites::Refused => "",
        };
        let (covers, lowest) = (overlay.covers.path.display(), overlay.target.display());
        format!("lowerdir={covers}:{lowest}{stage},{OPTIONS}")
    };
    overlays.iter().map(describe).collect()
}

fn no_stage() -> EngineError {
    EngineError::Local {
        operation: "mount a stage",
        source: std::io::Error::other("none was made; this is a mistake of ours, please report it"),
    }
}

struct Names {
    naming: Naming,
    open: Vec<OwnedFd>,
}

impl Names {
    fn layer(&mut self, path: &Path, planned: Option<Identity>) -> Result<String, EngineError> {
        let gone = || EngineError::MountGone { path: path.to_owned() };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(CWD, path, flags, Mode::empty()).map_err(|_| gone())?;
        let found = fstat(handle.as_fd()).map_err(|_| gone())?;
        let found = Identity { dev: found.st_dev, ino: found.st_ino };
        if planned.is_some_and(|planned| planned != found) {
            return Err(gone());
        }
        let name = match self.naming {
            Naming::Descriptors => {
                format!("/proc/{}/fd/{}", std::process::id(), handle.as_raw_fd())
            }
            Naming::Paths => escaped(path)?,
        };
        self.open.push(handle);
        Ok(name)
    }
}

/// A path as overlayfs and the daemon's own splitting of options take it.
fn escaped(path: &Path) -> Result<String, EngineError> {
    let unnameable = || super::settings::SettingsError::NotUtf8(PathBuf::from(path));
    let text = path.to_str().ok_or_else(unnameable)?;
    // The daemon splits options at every comma, whatever stands before it.
    if text.contains([',', '\n']) {
        return Err(super::settings::SettingsError::Comma(path.to_owned()).into());
    }
    Ok(text.replace('\\', "\\\\").replace(':', "\\:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan::{Layer, OverlayRole};

    fn identity(path: &Path) -> Identity {
        use std::os::unix::fs::MetadataExt;
        let found = path.symlink_metadata().unwrap();
        Identity { dev: found.dev(), ino: found.ino() }
    }

    fn overlay(top: &Path, writes: OverlayWrites) -> Overlay {
        let (target, covers) = (top.join("w:1"), top.join("covers"));
        for folder in [&target, &covers] {
            std::fs::create_dir_all(folder).unwrap();
        }
        Overlay {
            identity: identity(&target),
            covers: Layer { identity: identity(&covers), path: covers, mark: "m".to_owned() },
            target,
            writes,
            role: OverlayRole::Workspace,
        }
    }

    #[test]
    fn layers_are_named_by_descriptor_or_by_escaped_path() {
        let dir = tempfile::tempdir().unwrap();
        let plan = [overlay(dir.path(), OverlayWrites::Refused)];
        let layers = open(&plan, None, Naming::Descriptors).unwrap();
        let pid = std::process::id();
        assert!(layers.options[0].starts_with(&format!("lowerdir=/proc/{pid}/fd/")));
        let layers = open(&plan, None, Naming::Paths).unwrap();
        let top = dir.path().display();
        let wanted = format!("lowerdir={top}/covers:{top}/w\\:1,userxattr,nosuid,nodev");
        assert_eq!(layers.options, [wanted]);
    }

    #[test]
    fn a_stage_is_mounted_on_top_and_never_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let plan = [overlay(dir.path(), OverlayWrites::Staged)];
        assert!(open(&plan, None, Naming::Paths).is_err());
        let stage = dir.path().join("stage");
        for name in ["0/upper", "0/work"] {
            std::fs::create_dir_all(stage.join(name)).unwrap();
        }
        let layers = open(&plan, Some(&stage), Naming::Paths).unwrap();
        assert!(layers.options[0].contains(",upperdir="), "{:?}", layers.options);
    }

    #[test]
    fn a_folder_that_was_replaced_is_not_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let plan = [overlay(dir.path(), OverlayWrites::Refused)];
        std::fs::rename(&plan[0].target, dir.path().join("away")).unwrap();
        assert!(matches!(
            open(&plan, None, Naming::Descriptors),
            Err(EngineError::MountGone { .. })
        ));
        std::os::unix::fs::symlink("away", &plan[0].target).unwrap();
        assert!(open(&plan, None, Naming::Descriptors).is_err());
        std::fs::remove_file(&plan[0].target).unwrap();
        std::fs::create_dir(&plan[0].target).unwrap();
        assert!(open(&plan, None, Naming::Descriptors).is_err());
    }
}
