//! The variables of a tool: they travel with its job, not with the order that starts its sandbox.
//!
//! Duty: keep what only the caller may know out of what a container is created with. An order for a process
//! that waits is among the container's arguments, which `inspect` and every user of this machine can
//! read; and a waiting sandbox must fit any call, whatever its variables are. The runtime sets
//! them before the tool's code is loaded.

use std::collections::BTreeMap;

use runner_policy::Effective;

use crate::engine::plan::SandboxPlan;

/// What Node reads only as it starts. None of it is secret.
const AT_START: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// Takes the policy's variables out of a plan.
pub(super) fn take(plan: &mut SandboxPlan, policy: &Effective) -> BTreeMap<String, String> {
    let set = policy.env_set().into_iter().map(|(name, _)| name);
    let names = policy.env_pass().into_iter().chain(set).filter(|name| !AT_START.contains(name));
    names
        .filter_map(|name| {
            let value = plan.env.remove(std::ffi::OsStr::new(name))?;
            // Node reads its own environment in the same way.
            Some((name.to_owned(), value.to_string_lossy().into_owned()))
        })
        .collect()
}
