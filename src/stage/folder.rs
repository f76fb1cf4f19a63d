//! One stage on disk.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use runner_wire::MARK;
use rustix::fs::{XattrFlags, fsetxattr};

use crate::engine::plan::SandboxPlan;
use crate::ids::CallId;
use crate::workspace::attributes;

/// The folder of stages in the caller's state folder.
pub const FOLDER: &str = "stages";

/// A stage.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// Where the stage of a sandbox is.
    #[must_use]
    pub fn place(state: &Path, label: &CallId) -> PathBuf {
        state.join(FOLDER).join(label.as_str())
    }

    /// Makes the stage of a sandbox, if its plan has one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn of_plan(state: &Path, label: &CallId, plan: &SandboxPlan) -> io::Result<Option<Self>> {
        if !plan.is_staged() {
            return Ok(None);
        }
        let roots: Vec<&Path> = plan.overlays.iter().map(|it| it.target.as_path()).collect();
        Self::make(state, label, &roots).map(Some)
    }

    /// Makes a stage over these folders.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(state: &Path, label: &CallId, roots: &[&Path]) -> io::Result<Self> {
        let folder = Self::place(state, label);
        let make = |path: &Path| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        for (at, root) in roots.iter().enumerate() {
            let (upper, work) = (folder.join(format!("{at}/upper")), folder.join(format!("{at}/work")));
            make(&upper)?;
            make(&work)?;
            let (real, own) = (std::fs::File::open(root)?, std::fs::File::open(&upper)?);
            attributes::copy(real.as_fd(), own.as_fd())?;
            fsetxattr(&own, MARK, label.as_str().as_bytes(), XattrFlags::empty())?;
        }
        Ok(Self { folder })
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
