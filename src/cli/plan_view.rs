//! The plan of a sandbox for people: what is mounted, hidden, limited, protected.

use std::fmt;

use runner_policy::limits::Unit;

use super::style;
use super::visible::visible;
use crate::engine::plan::{Image, OverlayRole, OverlayWrites, ProtectionStatus, SandboxPlan};

/// How an overlay with a stage is shown.
const STAGED: &str = "changes are judged when the call is over";

/// A plan, shown.
pub struct PlanView<'a>(pub &'a SandboxPlan);

impl fmt::Display for PlanView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0;
        let faint = style::FAINT;
        let image = match &plan.image {
            Image::Host => "host",
            Image::Reference(reference) => reference,
        };
        writeln!(f, "  {:<10}  {}", "image", visible(image))?;
        writeln!(
            f,
            "  {:<10}  {}:{}  {faint}{}{faint:#}",
            "user",
            plan.user.uid,
            plan.user.gid,
            plan.user.why.words()
        )?;
        writeln!(f, "  {:<10}  {}", "folder", visible(&plan.cwd.to_string_lossy()))?;
        for overlay in &plan.overlays {
            let (label, writes) = match (overlay.role, overlay.writes) {
                (OverlayRole::Workspace, OverlayWrites::Refused) => ("workspace", "read-only"),
                (OverlayRole::Workspace, OverlayWrites::Staged) => ("workspace", STAGED),
                (OverlayRole::Below, OverlayWrites::Refused) => ("below", "read-only"),
                (OverlayRole::Below, OverlayWrites::Staged) => ("below", STAGED),
                (OverlayRole::Git, OverlayWrites::Refused) => ("git", "read-only"),
                (OverlayRole::Git, OverlayWrites::Staged) => ("git", STAGED),
            };
            let target = overlay.target.to_string_lossy();
            writeln!(f, "  {label:<10}  {}  {faint}{writes}{faint:#}", visible(&target))?;
        }
        let mut label = "covered";
        for path in &plan.covered {
            writeln!(f, "  {label:<10}  {}", visible(&path.to_string_lossy()))?;
            label = "";
        }
        let mut label = "mounts";
        for mount in &plan.mounts {
            let target = mount.target.to_string_lossy();
            writeln!(
                f,
                "  {label:<10}  {}  {faint}{}{faint:#}",
                visible(&target),
                format!("{:?}", mount.role).to_lowercase()
            )?;
            label = "";
        }
        let mut label = "hidden";
        for mask in &plan.masks {
            writeln!(f, "  {label:<10}  {}", visible(&mask.target.to_string_lossy()))?;
            label = "";
        }
        let mut label = "scratch";
        for tmpfs in &plan.tmpfs {
            let target = tmpfs.target.to_string_lossy();
            let size = Unit::Bytes.show(tmpfs.size);
            writeln!(f, "  {label:<10}  {}  {faint}{size}{faint:#}", visible(&target))?;
            label = "";
        }
        let mut label = "variables";
        for (name, value) in &plan.env {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            writeln!(f, "  {label:<10}  {}={}", visible(&name), visible(&value))?;
            label = "";
        }
        let mut label = "limits";
        for (limit, figure) in plan.limits.iter() {
            let row = limit.row();
            writeln!(f, "  {label:<10}  {:<13} {}", row.key, row.unit.show(figure))?;
            label = "";
        }
        let mut label = "protected";
        for protection in &plan.protections {
            let (mark, why) = match protection.status {
                ProtectionStatus::Enforced => ("yes", ""),
                ProtectionStatus::BestEffort(why) => ("partly", why),
                ProtectionStatus::Absent(why) => ("NO", why),
            };
            writeln!(
                f,
                "  {label:<10}  {mark:<6} {:<24} {faint}{}{faint:#}",
                protection.name, protection.enforced_by
            )?;
            if !why.is_empty() {
                writeln!(f, "  {:<10}         {faint}{why}{faint:#}", "")?;
            }
            label = "";
        }
        let mut label = "notes";
        for note in &plan.notes {
            writeln!(f, "  {label:<10}  {}", visible(&note.text))?;
            label = "";
        }
        Ok(())
    }
}
