//! After the last operation: hand over to undo what was taken away, and note what was left.

use std::io;

use rustix::fs::{AtFlags, FileType, unlinkat};
use rustix::io::Errno;

use super::super::handles;
use super::super::journal::{Act, Journal, Operation, Way};
use super::act::{Actor, Slot};
use crate::undo::{Backups, State};

/// Tidies up after all operations. Every step finds out whether it has happened, so it can be run again.
/// What each row of undo must say is returned; `None` for a change that did not happen.
pub(in crate::stage) fn settle(
    actor: &mut Actor,
    journal: &Journal,
    backups: &Backups,
) -> io::Result<Vec<(i64, Option<State>)>> {
    let skipped: std::collections::HashSet<usize> =
        journal.acted().unwrap_or_default().iter().map(|skipped| skipped.index).collect();
    let mut left = Vec::with_capacity(journal.operations.len());
    for (index, operation) in journal.operations.iter().enumerate() {
        let state = match skipped.contains(&index) {
            true => {
                forget_copy(actor, operation, index)?;
                None
            }
            false => Some(settle_one(actor, operation, index, backups)?),
        };
        left.push((operation.row, state));
    }
    Ok(left)
}

/// Removes the copy of an operation that did not happen.
pub(in crate::stage) fn forget_copy(
    actor: &mut Actor,
    operation: &Operation,
    index: usize,
) -> io::Result<()> {
    if actor.way(operation) == Way::Copy && matches!(operation.act, Act::Put { .. }) {
        match actor.beside(operation, index) {
            Ok(copy) => unlink(&copy)?,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn settle_one(
    actor: &mut Actor,
    operation: &Operation,
    index: usize,
    backups: &Backups,
) -> io::Result<State> {
    if let Some(old) = &operation.old {
        let out = match operation.act {
            Act::Remove => actor.removed(operation, index).map(Some),
            Act::Put { .. } => actor.source(operation, index).map(Some),
            Act::RemoveFolder | Act::Make { .. } | Act::Mode { .. } | Act::Tree { .. } => Ok(None),
        };
        match out {
            Ok(Some(out)) if out.is(old.identity)? => match &operation.image {
                Some(image) => backups.adopt(out.at(), &out.name, image)?,
                None => unlink(&out)?,
            },
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    tidy_stage(actor, operation)?;
    if matches!(operation.act, Act::Remove | Act::RemoveFolder) {
        // A later operation may have given the name to something else; it has a row of its own.
        return Ok(State::Absent);
    }
    let target = match actor.target(operation) {
        Ok(target) => target,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(State::Other),
        Err(error) => return Err(error.into()),
    };
    let staged = match (operation.act, actor.way(operation)) {
        (Act::Put { staged, .. } | Act::Tree { staged, .. }, Way::Rename) => Some(staged),
        _ => None,
    };
    let state = match operation.act {
        Act::Tree { .. } => State::tree(target.at(), &target.name),
        _ => State::glance(target.at(), &*target.name),
    };
    match state {
        // The host has put something else there since: then nothing can be taken back.
        Ok(state) if staged.is_none_or(|staged| is_object(&state, staged, &target)) => Ok(state),
        Ok(_) | Err(_) => Ok(State::Other),
    }
}

fn is_object(state: &State, staged: crate::ids::Identity, target: &Slot) -> bool {
    match state {
        State::Link { .. } => target.is(staged).unwrap_or(false),
        state => state.object() == Some((staged.dev, staged.ino)),
    }
}

/// Takes out of the stage what has been applied: the source of a copy, and whiteouts.
fn tidy_stage(actor: &mut Actor, operation: &Operation) -> io::Result<()> {
    let copied = matches!(operation.act, Act::Put { .. }) && actor.way(operation) == Way::Copy;
    let removed = matches!(operation.act, Act::Remove | Act::RemoveFolder);
    if !copied && !removed {
        return Ok(());
    }
    let Ok(staged) = actor.staged(operation) else { return Ok(()) };
    let Some(found) = handles::stat(staged.at(), &staged.name)? else { return Ok(()) };
    let whiteout =
        FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice && found.st_rdev == 0;
    if copied || whiteout {
        unlink(&staged)?;
    }
    Ok(())
}

fn unlink(slot: &Slot) -> io::Result<()> {
    match unlinkat(slot.at(), &slot.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
