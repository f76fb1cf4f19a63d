//! The stage of a sandbox, as its plan wants it.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use runner_wire::MARK;
use rustix::fs::{XattrFlags, fsetxattr};

use super::change::RootKind;
use super::folder::{Root, Stage, StageError};
use crate::engine::plan::{OverlayRole, OverlayWrites, SandboxPlan};
use crate::ids::CallId;
use crate::workspace::attributes;

impl Stage {
    /// Makes the stage of the sandbox with this label, if its plan has one. The root of each upper layer
    /// looks like the folder that it lies over, and bears the label as its mark.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn of_plan(
        state: &Path,
        label: &CallId,
        plan: &SandboxPlan,
    ) -> Result<Option<Self>, StageError> {
        if !plan.is_staged() {
            return Ok(None);
        }
        let staged = plan.overlays.iter().filter(|it| it.writes == OverlayWrites::Staged);
        let roots = staged.map(|overlay| {
            let kind = match overlay.role {
                OverlayRole::Workspace | OverlayRole::Below => RootKind::Workspace,
                OverlayRole::Git => RootKind::GitFolder,
            };
            let root = Root::of(&overlay.target, kind)
                .map_err(|error| StageError::Io("open", overlay.target.clone(), error))?;
            match root.identity == overlay.identity {
                true => Ok(root),
                false => Err(StageError::OtherRoot(overlay.target.clone())),
            }
        });
        let stage = Self::make(state, label, roots.collect::<Result<_, StageError>>()?)?;
        for at in 0..stage.roots().len() {
            stage.dress(at).map_err(|error| StageError::Io("prepare", stage.upper(at), error))?;
        }
        Ok(Some(stage))
    }

    fn dress(&self, at: usize) -> io::Result<()> {
        let real = self.roots()[at].open().map_err(io::Error::other)?;
        let own = std::fs::File::open(self.upper(at))?;
        attributes::copy(real.as_fd(), own.as_fd())?;
        Ok(fsetxattr(&own, MARK, self.label().as_str().as_bytes(), XattrFlags::empty())?)
    }
}
