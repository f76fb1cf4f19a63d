//! Proves that a sandbox is what was planned, before it is given a command.
//!
//! Bind sources follow links and paths can be swapped while a container is made, so a mount is judged
//! by what is there afterwards: its device and inode must be those of the handle that the planner
//! held, and the topmost layer of an overlay must bear the mark that we gave it. A runtime with a kernel of its own shows numbers of its own; there the host looks at each
//! source again.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runner_wire::{Bytes, MountSeen, Ready};

use super::outcome::RunError;
use crate::engine::plan::{Overlay, OverlayWrites, SandboxPlan};
use crate::engine::runtime_kind::{IdentityProof, RuntimeKind};
use crate::ids::Identity;

/// What must be found at one target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    target: PathBuf,
    /// Folders and files of the host that it is made from.
    sources: Vec<(PathBuf, Identity)>,
    shown: Shown,
}

/// How the guest knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shown {
    /// A read-only bind: by device and inode.
    Bind(Identity),
    /// An overlay, which has numbers of its own: by the mark of its topmost layer.
    Overlay(String, OverlayWrites),
}

impl Expected {
    fn bind(source: &Path, target: &Path, identity: Identity) -> Self {
        Self {
            target: target.to_owned(),
            sources: vec![(source.to_owned(), identity)],
            shown: Shown::Bind(identity),
        }
    }

    fn overlay(overlay: &Overlay, stage: &str) -> Self {
        let mark = match overlay.writes {
            OverlayWrites::Staged => stage,
            OverlayWrites::Refused => &overlay.covers.mark,
        };
        Self {
            target: overlay.target.clone(),
            sources: vec![
                (overlay.target.clone(), overlay.identity),
                (overlay.covers.path.clone(), overlay.covers.identity),
            ],
            shown: Shown::Overlay(mark.to_owned(), overlay.writes),
        }
    }

    fn stands(&self) -> bool {
        self.sources.iter().all(|(path, planned)| identity(path).ok() == Some(*planned))
    }

    fn replaced(&self) -> RunError {
        RunError::Identity { target: self.target.clone(), why: "its source was replaced" }
    }

    /// Compares with what the guest saw there; why it differs.
    fn check(&self, seen: &MountSeen) -> Result<(), &'static str> {
        match &self.shown {
            Shown::Bind(planned) => {
                if (Identity { dev: seen.dev, ino: seen.ino }) != *planned {
                    return Err("another file or folder is there");
                }
                if !seen.read_only {
                    return Err("it should be read-only");
                }
            }
            Shown::Overlay(mark, writes) => {
                if seen.mark.as_ref().map(|seen| seen.0.as_slice()) != Some(mark.as_bytes()) {
                    return Err("another overlay is there, or none");
                }
                match (writes, seen.read_only) {
                    (OverlayWrites::Refused, false) => return Err("it should be read-only"),
                    (OverlayWrites::Staged, true) => return Err("its stage cannot be written"),
                    (OverlayWrites::Refused, true) | (OverlayWrites::Staged, false) => {}
                }
            }
        }
        Ok(())
    }
}

/// Everything that must be found.
#[derive(Debug)]
pub struct Expectation {
    mounts: Vec<Expected>,
    runtime: RuntimeKind,
    uid: u32,
    gid: u32,
}

impl Expectation {
    /// Reads a plan. `stage` is the mark of the sandbox's stage.
    #[must_use]
    pub fn of(plan: &SandboxPlan, stage: &str) -> Self {
        let overlays = plan.overlays.iter().map(|overlay| Expected::overlay(overlay, stage));
        let binds =
            plan.mounts.iter().map(|it| Expected::bind(&it.source, &it.target, it.identity));
        let masks = plan.masks.iter().map(|it| Expected::bind(&it.source, &it.target, it.identity));
        let files = plan.synthetic.iter();
        let files = files.map(|it| Expected::bind(&it.source, &it.target, it.identity));
        Self {
            mounts: overlays.chain(binds).chain(masks).chain(files).collect(),
            runtime: RuntimeKind::of(plan.runtime.as_ref()),
            uid: plan.user.uid,
            gid: plan.user.gid,
        }
    }

    /// The paths that the guest has to report.
    pub fn targets(&self) -> Vec<Bytes> {
        self.mounts.iter().map(|mount| Bytes::from(mount.target.as_os_str())).collect()
    }

    /// Compares with what the guest saw.
    ///
    /// # Errors
    /// Anything differs: the command must not be sent.
    pub fn check(&self, ready: &Ready) -> Result<(), RunError> {
        self.check_standing(ready)?;
        if ready.mounts.len() != self.mounts.len() {
            return Err(RunError::Standing { why: "it did not report every mount" });
        }
        for (expected, seen) in self.mounts.iter().zip(&ready.mounts) {
            let differs = |why| RunError::Identity { target: expected.target.clone(), why };
            if seen.target.as_os() != expected.target.as_os_str() {
                return Err(differs("another path was reported"));
            }
            if seen.ino == 0 {
                return Err(differs("nothing is there"));
            }
            let proof = self.runtime.identity_proof();
            if proof == IdentityProof::Inside {
                expected.check(seen).map_err(differs)?;
            }
            // What an overlay is made from cannot be seen from inside.
            let is_overlay = matches!(expected.shown, Shown::Overlay(..));
            if (proof == IdentityProof::OnHost || is_overlay) && !expected.stands() {
                return Err(expected.replaced());
            }
        }
        Ok(())
    }

    /// Looks whether what was planned still stands at each source.
    ///
    /// # Errors
    /// Something else does.
    pub fn check_sources(&self) -> Result<(), RunError> {
        match self.mounts.iter().find(|mount| !mount.stands()) {
            Some(mount) => Err(mount.replaced()),
            None => Ok(()),
        }
    }

    fn check_standing(&self, ready: &Ready) -> Result<(), RunError> {
        let seen = &ready.seen;
        let weaker = |why| Err(RunError::Standing { why });
        if (seen.uid, seen.gid) != (self.uid, self.gid) {
            return weaker("it runs as another user");
        }
        if seen.capabilities != 0 {
            return weaker("it has capabilities");
        }
        // A kernel of its own does not tell these, and does not rely on them.
        if self.runtime == RuntimeKind::SharedKernel {
            if seen.no_new_privs != Some(true) {
                return weaker("it can gain privileges");
            }
            if seen.seccomp != Some(2) {
                return weaker("no system call filter is in force");
            }
        }
        Ok(())
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok(Identity { dev: meta.dev(), ino: meta.ino() })
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
