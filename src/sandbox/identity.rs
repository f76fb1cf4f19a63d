//! Proves that a sandbox is what was planned, before it is given a command.
//!
//! Bind sources follow links and paths can be swapped while a container is made, so a mount is judged
//! by what is there afterwards: its device and inode must be those of the handle that the planner
//! held. A runtime with a kernel of its own shows numbers of its own; there the host looks at each
//! source again.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runner_wire::{Bytes, Ready};

use super::outcome::RunError;
use crate::engine::plan::{Access, SandboxPlan};
use crate::engine::runtime_kind::{IdentityProof, RuntimeKind};
use crate::ids::Identity;

/// What must be found at one target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    source: PathBuf,
    target: PathBuf,
    identity: Identity,
    access: Access,
}

impl Expected {
    fn stands(&self) -> bool {
        identity(&self.source).ok() == Some(self.identity)
    }

    fn replaced(&self) -> RunError {
        RunError::Identity { target: self.target.clone(), why: "its source was replaced" }
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
    /// Reads a plan.
    #[must_use]
    pub fn of(plan: &SandboxPlan) -> Self {
        let binds = plan.mounts.iter().map(|mount| Expected {
            source: mount.source.clone(),
            target: mount.target.clone(),
            identity: mount.identity,
            access: mount.access,
        });
        let masks = plan.masks.iter().map(|mask| (&mask.source, &mask.target, mask.identity));
        let files = plan.synthetic.iter().map(|file| (&file.source, &file.target, file.identity));
        let own = masks.chain(files).map(|(source, target, identity)| Expected {
            source: source.clone(),
            target: target.clone(),
            identity,
            access: Access::ReadOnly,
        });
        Self {
            mounts: binds.chain(own).collect(),
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
            let differs = |why| Err(RunError::Identity { target: expected.target.clone(), why });
            if seen.target.as_os() != expected.target.as_os_str() {
                return differs("another path was reported");
            }
            if seen.ino == 0 {
                return differs("nothing is there");
            }
            match self.runtime.identity_proof() {
                IdentityProof::Inside => {
                    let found = Identity { dev: seen.dev, ino: seen.ino };
                    if found != expected.identity {
                        return differs("another file or folder is there");
                    }
                }
                IdentityProof::OnHost => {
                    if !expected.stands() {
                        return Err(expected.replaced());
                    }
                }
            }
            if expected.access == Access::ReadOnly && !seen.read_only {
                return differs("it should be read-only");
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
