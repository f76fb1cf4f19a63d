//! Landlock over the finished root: the same folders closed once more, by another part of the kernel.
//!
//! Reading and starting programs is allowed everywhere, since the root shows nothing else; changing things only where
//! the recipe has something that can be written. No device can be made, nothing can be mounted, and neither signals nor
//! abstract sockets reach what is outside. The command inherits it.

use super::failure::Failed;
use ::landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use runner_wire::{LaunchMount, LaunchStep, Recipe};
use std::io;

/// What every kernel with Landlock can deny.
const LEAST: ABI = ABI::V1;

/// What is denied where the kernel can.
const WANTED: ABI = ABI::V6;

/// Where the kernel and the guest need to write besides.
const OUR_OWN: [&str; 2] = ["/dev", "/proc"];

/// The step of a launch that this is.
const STEP: LaunchStep = LaunchStep::Landlock;

/// Closes the root of this process for it and all that it starts.
pub fn close(recipe: &Recipe) -> Result<(), Failed> {
    let enforced = restrict(recipe).map_err(|_| Failed::io(STEP, &io::Error::last_os_error()))?;
    match enforced {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => {
            Err(Failed::io(STEP, &io::Error::from_raw_os_error(libc::EOPNOTSUPP)))
        }
    }
}

fn restrict(recipe: &Recipe) -> Result<RulesetStatus, RulesetError> {
    let read = AccessFs::from_read(WANTED);
    let write = AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let rule = |path: &str, access| PathFd::new(path).map(|fd| PathBeneath::new(fd, access)).ok();
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        // A place that is not there cannot be written either.
        .add_rules(rule("/", read).into_iter().map(Ok::<_, RulesetError>))?;
    for place in OUR_OWN {
        rules = rules.add_rules(rule(place, write).into_iter().map(Ok::<_, RulesetError>))?;
    }
    for mount in &recipe.mounts {
        let target = match mount {
            LaunchMount::Tmpfs { target, .. }
            | LaunchMount::Overlay { target, stage: Some(_), .. } => target,
            LaunchMount::Bind { .. } | LaunchMount::Overlay { stage: None, .. } => continue,
        };
        let rule = PathFd::new(target.as_os()).map(|fd| PathBeneath::new(fd, write)).ok();
        rules = rules.add_rules(rule.into_iter().map(Ok::<_, RulesetError>))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}
