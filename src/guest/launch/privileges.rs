//! Gives up everything that the sandbox must not have, in the one order that works.

use super::failure::{Failed, Trying};
use super::{kernel, landlock};
use runner_wire::{LaunchStep, Recipe, Right};
use std::os::fd::OwnedFd;

/// Bits that new files of the guest never get; it sets those of the command itself.
const UMASK: u32 = 0o022;

/// Limits, user, capabilities, Landlock, filter.
pub fn give_up(recipe: &Recipe, launcher: OwnedFd) -> Result<(), Failed> {
    for (resource, soft, hard) in &recipe.rlimits {
        kernel::limit(*resource, *soft, *hard).trying(LaunchStep::Limit)?;
    }
    // Needs a capability, so it comes before they are gone.
    kernel::empty_bounding_set().trying(LaunchStep::Capabilities)?;
    match recipe.right {
        Right::Capable => kernel::become_user(recipe.uid, recipe.gid).trying(LaunchStep::User)?,
        // The map made this process that user. Its further groups cannot be given up: the kernel forbids it.
        Right::User => {}
    }
    kernel::drop_capabilities().trying(LaunchStep::Capabilities)?;
    crate::sys::set_umask(UMASK);
    // If the launcher is killed, so is the sandbox. A change of the user would clear it, so it comes after that.
    kernel::end_with(&launcher).trying(LaunchStep::Process)?;
    drop(launcher);
    kernel::forbid_new_privileges().trying(LaunchStep::Filter)?;
    if recipe.landlock {
        landlock::close(recipe)?;
    }
    kernel::install_filter(&recipe.filter.0).trying(LaunchStep::Filter)
}
