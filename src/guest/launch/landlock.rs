//! Landlock over the finished root: the same folders closed once more, by another part of the kernel.
//!
//! Reading and starting programs is allowed everywhere, since the root shows nothing else; changing things only where
//! the recipe has something that can be written. No device can be made, nothing can be mounted, and neither signals nor
//! abstract sockets reach what is outside. The command inherits it.

use super::failure::{Failed, Trying};
use ::landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, PathFdError, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use runner_wire::{Bytes, LaunchMount, LaunchStep, Recipe};
use std::ffi::OsStr;
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
    let mut places = Vec::new();
    for path in OUR_OWN.map(OsStr::new).into_iter().chain(written(recipe)) {
        places.extend(open(path).trying_at(STEP, &Bytes::from(path))?);
    }
    let root = PathFd::new("/").map_err(|_| Failed::io(STEP, &io::Error::last_os_error()))?;
    let enforced = restrict(root, places);
    match enforced.map_err(|_| Failed::io(STEP, &io::Error::last_os_error()))? {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => {
            Err(Failed::io(STEP, &io::Error::from_raw_os_error(libc::EOPNOTSUPP)))
        }
    }
}

/// Where the recipe has something that can be written.
fn written(recipe: &Recipe) -> impl Iterator<Item = &OsStr> {
    recipe.mounts.iter().filter_map(|mount| match mount {
        LaunchMount::Tmpfs { target, .. } | LaunchMount::Overlay { target, stage: Some(_), .. } => {
            Some(target.as_os())
        }
        LaunchMount::Bind { .. } | LaunchMount::Overlay { stage: None, .. } => None,
    })
}

/// A place, if it is there: what is not there cannot be written either.
fn open(path: &OsStr) -> io::Result<Option<PathFd>> {
    match PathFd::new(path) {
        Ok(place) => Ok(Some(place)),
        Err(PathFdError::OpenCall { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(PathFdError::OpenCall { source, .. }) => Err(source),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn restrict(root: PathFd, places: Vec<PathFd>) -> Result<RulesetStatus, RulesetError> {
    let read = AccessFs::from_read(WANTED);
    let write = AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let places =
        places.into_iter().map(|place| Ok::<_, RulesetError>(PathBeneath::new(place, write)));
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .add_rule(PathBeneath::new(root, read))?
        .add_rules(places)?;
    Ok(rules.restrict_self()?.ruleset)
}
