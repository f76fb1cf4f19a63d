//! The guest's executable as a launcher: makes a sandbox on this machine without a daemon.
//!
//! ```text
//! runner            launcher                      first process (PID 1 inside)
//!   | spawn, recipe -> |
//!   |                  | divides its scope, if systemd gave it one
//!   |                  | user namespace, maps
//!   |                  | makes control groups
//!   |                  | PID namespace, fork ------> | joins the groups
//!   |                  | waits, and watches the wire | namespaces, root, mounts
//!   |                  |                             | user, capabilities, filter
//!   | <------------------- wire -------------------- | becomes the guest
//!   |                  | <------ ends -------------- |
//!   |                  | removes the groups
//! ```
//!
//! Duty: carry a recipe out, step by step, and tell which step failed and why. Nothing is softened: a step
//! that fails ends the launch. Non-goals: deciding what a sandbox has; the host wrote the recipe. Trust
//! boundary: the recipe is the host's, the files that it names may be the adversary's: each source is opened
//! once, compared with what was planned, and mounted from that handle.
//!
//! The host's own process cannot do this in place: it is undumpable, and a process whose memory is not
//! dumpable may not map users of its own namespace.

mod devices;
mod failure;
mod groups;
mod kernel;
mod landlock;
mod open;
mod privileges;
mod procfs;
mod root;
mod users;
mod watch;

use failure::{Failed, Trying};
use groups::Groups;
use kernel::Namespace;
use runner_wire::{LaunchStep, RECIPE_MAX, Recipe, Right};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use watch::Watch;

/// What a sandbox is called from inside.
const HOSTNAME: &str = "sandbox";

/// How a launcher ends whose sandbox could not be made.
const FAILED: u8 = 125;

/// The life of a launcher, and of the first process until it is the guest.
pub fn main() -> ExitCode {
    let Err(failed) = launch() else { return ExitCode::SUCCESS };
    if let Ok(mut line) = serde_json::to_vec(&failed.0) {
        line.push(b'\n');
        // Without a reader there is no one to tell.
        let _ = std::io::stderr().write_all(&line);
    }
    ExitCode::from(FAILED)
}

fn launch() -> Result<(), Failed> {
    crate::sys::set_umask(0);
    let recipe = read_recipe().map_err(|error| Failed::io(LaunchStep::Recipe, &error))?;
    if let Some(scope) = &recipe.scope {
        groups::divide(scope)?;
    }
    let id_map = match recipe.right {
        Right::User => {
            users::enter(recipe.uid, recipe.gid)?;
            None
        }
        Right::Capable if recipe.id_map => Some(users::swap(recipe.uid, recipe.gid)?),
        Right::Capable => None,
    };
    kernel::unshare(&[Namespace::Processes]).trying(LaunchStep::Namespace)?;
    let signals = kernel::Signals::hold().trying(LaunchStep::Process)?;
    let watch = Watch::begin(&signals).trying(LaunchStep::Process)?;
    let launcher = kernel::open_process(std::process::id()).trying(LaunchStep::Process)?;
    let groups = Groups::make(&recipe.groups)?;
    match kernel::fork_into(groups.birthplace()).trying(LaunchStep::Process)? {
        Some(first) => {
            kernel::let_go_of_the_wire().trying(LaunchStep::Process)?;
            if recipe.tells_start {
                kernel::let_go_of_words().trying(LaunchStep::Process)?;
            }
            watch.until_ended(first).trying(LaunchStep::Process)
        }
        None => {
            let joined = groups.join();
            groups.leave_to_the_launcher();
            joined?;
            signals.release().trying(LaunchStep::Process)?;
            drop(watch);
            become_the_guest(&recipe, id_map.as_ref(), launcher)
        }
    }
}

/// A length, then JSON; what follows belongs to the guest.
fn read_recipe() -> std::io::Result<Recipe> {
    // Unbuffered: std's own handle would read ahead, into what is the guest's.
    let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > RECIPE_MAX {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    input.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// The first process. It returns only if a step failed.
fn become_the_guest(
    recipe: &Recipe,
    id_map: Option<&OwnedFd>,
    launcher: OwnedFd,
) -> Result<(), Failed> {
    // Neither the caller's terminal nor its process group reaches the sandbox.
    kernel::new_session().trying(LaunchStep::Process)?;
    crate::oom::set_own(recipe.oom_score);
    if let Some(count) = recipe.processors {
        kernel::stay_on(count).trying(LaunchStep::Processors)?;
    }
    kernel::unshare(&[Namespace::Mounts]).trying(LaunchStep::Namespace)?;
    let sources = open::Sources::open(recipe)?;
    kernel::unshare(&[Namespace::Network, Namespace::Ipc, Namespace::Names, Namespace::Groups])
        .trying(LaunchStep::Namespace)?;
    kernel::loopback_up().trying(LaunchStep::Loopback)?;
    if recipe.low_ports {
        // Where that is forbidden, the guest says which port it cannot have.
        let _ = kernel::open_low_ports();
    }
    kernel::set_host_name(HOSTNAME).trying(LaunchStep::Namespace)?;
    root::build(recipe, &sources, id_map)?;
    drop(sources);
    privileges::give_up(recipe, launcher)?;
    if recipe.tells_start {
        kernel::end_words_with_exec().trying(LaunchStep::Exec)?;
    }
    let words = std::iter::once(root::GUEST).chain(recipe.arguments.iter().map(String::as_str));
    let error = kernel::exec(root::GUEST, words);
    Err(error).trying(LaunchStep::Exec)
}
