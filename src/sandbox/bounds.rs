//! How much one sandbox may mount: the guest is asked about each target, and its report names each again.
//!
//! A denied file takes one mount, so the workspace decides how many there are. Docker and runc need about two seconds for
//! ten thousand. Beyond these bounds a plan is refused before anything is made.

use runner_wire::{Bytes, CONTROL_MAX, SMALL_MAX};

use super::mounts::MountError;
use crate::engine::plan::SandboxPlan;

/// Most mounts of one sandbox.
pub const MAX_TARGETS: usize = 20_000;

/// Most bytes of all targets together, as the wire carries them.
pub const MAX_TARGET_BYTES: usize = 4 << 20;

/// What a guest's report adds to each target: the names of the members, two numbers of 20 digits and a word.
const REPORT_ROW: usize = 96;

// Both messages fit into one frame.
const _: () = assert!(MAX_TARGET_BYTES + MAX_TARGETS * REPORT_ROW + SMALL_MAX <= CONTROL_MAX);

/// Refuses a plan whose mounts could not be told to its guest.
///
/// # Errors
/// There are too many, or their paths are too long.
pub(super) fn check(plan: &SandboxPlan) -> Result<(), MountError> {
    let (mut mounts, mut bytes) = (0, 0_usize);
    for (target, _) in plan.mounted() {
        mounts += 1;
        bytes = bytes.saturating_add(on_the_wire(&Bytes::from(target.as_os_str())));
    }
    if mounts > MAX_TARGETS || bytes > MAX_TARGET_BYTES {
        let covers = plan.masks.len();
        return Err(MountError::TooMuch { mounts, bytes, covers });
    }
    Ok(())
}

/// The length of a path in a message, with its comma.
fn on_the_wire(path: &Bytes) -> usize {
    serde_json::to_vec(path).map_or(usize::MAX, |text| text.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::docker::settings::tests::plan;
    use crate::engine::plan::{Mask, MaskKind};
    use crate::ids::Identity;
    use runner_policy::limits::Isolation;
    use runner_wire::{MountSeen, Ready, Seen, VERSION};

    fn covered(count: usize, name: &str) -> SandboxPlan {
        let mut plan = plan(Isolation::Strict);
        plan.masks = (0..count)
            .map(|at| Mask {
                source: "/cover".into(),
                target: format!("/workspace/{at:05}{name}").into(),
                kind: MaskKind::File,
                identity: Identity { dev: u64::MAX, ino: u64::MAX },
                hides: Identity { dev: 1, ino: 2 },
            })
            .collect();
        plan
    }

    #[test]
    fn ten_thousand_denied_files_with_long_names_fit_and_more_than_the_bound_do_not() {
        let long = "n".repeat(255);
        assert!(check(&covered(10_000, &long)).is_ok());
        let error = check(&covered(10_000, &long.repeat(2))).unwrap_err();
        assert!(matches!(error, MountError::TooMuch { covers: 10_000, .. }), "{error}");
        assert!(error.to_string().contains("deny the folder"), "{error}");
        assert!(check(&covered(MAX_TARGETS + 1, "")).is_err());
        // A name that JSON has to escape counts as what it becomes.
        assert!(check(&covered(10_000, &"\u{1}".repeat(100))).is_err());
    }

    #[test]
    fn what_fits_can_be_reported() {
        let plan = covered(MAX_TARGETS - 100, &"n".repeat(180));
        check(&plan).unwrap();
        let mounts = plan.mounted().map(|(target, _)| MountSeen {
            target: Bytes::from(target.as_os_str()),
            dev: u64::MAX,
            ino: u64::MAX,
            read_only: false,
        });
        let seen = Seen { uid: 1, gid: 1, capabilities: 0, no_new_privs: None, seccomp: None };
        let ready = Ready { version: VERSION, mounts: mounts.collect(), seen };
        let length = serde_json::to_vec(&ready).unwrap().len();
        assert!(length <= runner_wire::Kind::Ready.cap(), "{length}");
        assert!(length > runner_wire::REPORT_MAX, "{length}");
    }
}
