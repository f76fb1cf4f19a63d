//! From a journal to its end: for an apply that begins, and for one that a death interrupted.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::syncfs;

use super::act::{Actor, Outcome};
use super::copy::copy;
use super::settle::{forget_copy, settle};
use super::{Applied, ApplyError, Sync, count, locks, told, tree};
use crate::stage::change::{Held, Why};
use crate::stage::conflict;
use crate::stage::folder::{HeldRow, JOURNAL, Stage};
use crate::stage::journal::{Act, Journal, Mark, Operation, Skipped, Unity, Way};
use crate::store::Store;
use crate::undo::names::decode;
use crate::undo::{Backups, finish_staged};

/// How a journal came to its end.
#[derive(Debug)]
pub(in crate::stage) enum Ended {
    /// Operations happened, or were skipped as conflicts.
    Applied(Applied),
    /// An operation failed, and all were taken back.
    TakenBack { what: &'static str, error: io::Error },
}

/// Why operations stopped.
enum Stop {
    Failed(&'static str, io::Error),
    /// A part of what must happen together was a conflict.
    Together(Skipped),
}

/// Runs a journal to its end from wherever it stands.
pub(in crate::stage) fn run(
    stage: &Stage,
    actor: &mut Actor,
    mut journal: Journal,
    (store, backups): (&Store, &Backups),
    sync: Sync,
) -> Result<Ended, ApplyError> {
    let place = stage.folder().join(JOURNAL);
    let between = |what| {
        let journal = place.clone();
        move |error| ApplyError::Between { what, error, journal }
    };
    if journal.acted().is_none() {
        let acted = act(stage, actor, &mut journal, sync);
        locks::release(stage, &actor.roots, &journal.head.locks);
        let skipped = match acted {
            Ok(skipped) => skipped,
            Err(stop) => {
                take_back(actor, &journal, 0).map_err(between("take back what was done"))?;
                let rows: Vec<_> = journal.operations.iter().map(|op| (op.row, None)).collect();
                finish_staged(store, &rows)?;
                // Before the journal goes: a stage with neither is removed as that of a dead process.
                let held = all_held(actor, &journal, &stop);
                stage
                    .keep(&held)
                    .map_err(io::Error::other)
                    .map_err(between("note that nothing was applied"))?;
                let ended = match stop {
                    Stop::Failed(what, error) => Ended::TakenBack { what, error },
                    Stop::Together(_) => {
                        let counts = super::Counts::default();
                        Ended::Applied(Applied { counts, held: told(&held), undo: true })
                    }
                };
                journal.end().map_err(between("end the journal"))?;
                return Ok(ended);
            }
        };
        journal.mark(Mark::Acted(skipped)).map_err(between("note that all happened"))?;
    }
    let left = settle(actor, &journal, backups).map_err(between("keep what was there"))?;
    finish_staged(store, &left)?;
    let skipped = journal.acted().unwrap_or_default();
    let mut held = std::mem::take(&mut journal.head.held.clone());
    for skip in skipped {
        held.extend(held_rows(actor, &journal.operations[skip.index], &held_for(skip)));
    }
    let counts = count(&journal.operations, skipped);
    let undo = journal.head.undo;
    if !held.is_empty() {
        stage.keep(&held)?;
    }
    if sync == Sync::Once {
        sync_copies(actor, &journal).map_err(between("sync the host's files"))?;
    }
    journal.end().map_err(between("end the journal"))?;
    Ok(Ended::Applied(Applied { counts, held: told(&held), undo }))
}

/// Prepares copies and does all operations; those that were conflicts.
fn act(
    stage: &Stage,
    actor: &mut Actor,
    journal: &mut Journal,
    sync: Sync,
) -> Result<Vec<Skipped>, Stop> {
    if !journal.is_prepared() {
        prepare(actor, journal).map_err(|error| Stop::Failed("copy to the host", error))?;
        if sync == Sync::Once {
            let synced = sync_copies(actor, journal);
            synced.map_err(|error| Stop::Failed("sync the copies", error))?;
        }
        let marked = journal.mark(Mark::Prepared);
        marked.map_err(|error| Stop::Failed("write the journal", error))?;
    }
    let (metadata, whole) = match journal.head.unity {
        Unity::From(first) => (first, false),
        Unity::Whole(first) => (first, true),
    };
    let mut skipped: Vec<Skipped> = Vec::new();
    let mut together: Option<Skipped> = None;
    for (index, operation) in journal.operations.iter().enumerate() {
        if index == metadata {
            let taken = locks::take(stage, &actor.roots, &journal.head.locks)
                .map_err(|error| Stop::Failed("lock the git folder", error))?;
            if !taken {
                let reason = "git holds a lock there".to_owned();
                together = Some(Skipped { index, why: Why::Conflict, reason });
                break;
            }
        }
        match actor.act(operation, index) {
            Ok(Outcome::Done) => {}
            Ok(Outcome::Skipped(reason)) => {
                let skip = Skipped { index, why: Why::Conflict, reason };
                if whole || index >= metadata {
                    together = Some(skip);
                    break;
                }
                skipped.push(skip);
            }
            Err(error) => return Err(Stop::Failed("change the host's files", error)),
        }
    }
    let Some(first) = together else { return Ok(skipped) };
    if whole {
        return Err(Stop::Together(first));
    }
    take_back(actor, journal, metadata).map_err(|error| Stop::Failed("take back", error))?;
    for index in metadata..journal.operations.len() {
        skipped.push(if index == first.index { first.clone() } else { grouped(index) });
    }
    Ok(skipped)
}

fn grouped(index: usize) -> Skipped {
    let reason = "another part of the same git folder is in conflict".to_owned();
    Skipped { index, why: Why::Group, reason }
}

/// Copies what cannot be renamed to temporary names beside its targets.
fn prepare(actor: &mut Actor, journal: &Journal) -> io::Result<()> {
    for (index, operation) in journal.operations.iter().enumerate() {
        if actor.way(operation) == Way::Copy && matches!(operation.act, Act::Put { .. }) {
            let staged = actor.staged(operation)?;
            let beside = actor.beside(operation, index)?;
            copy(&staged, &beside)?;
        }
    }
    Ok(())
}

fn sync_copies(actor: &Actor, journal: &Journal) -> io::Result<()> {
    for (root, way) in actor.roots.iter().zip(&journal.head.ways) {
        if *way == Way::Copy {
            syncfs(root.host.as_fd())?;
        }
    }
    Ok(())
}

/// Takes back operations from an index on, the last one first, and removes their copies.
fn take_back(actor: &mut Actor, journal: &Journal, from: usize) -> io::Result<()> {
    let prepared = journal.is_prepared();
    for (index, operation) in journal.operations.iter().enumerate().skip(from).rev() {
        if prepared {
            actor.take_back(operation, index)?;
        }
        forget_copy(actor, operation, index)?;
    }
    Ok(())
}

/// Why an operation did not happen.
fn held_for(skip: &Skipped) -> Held {
    match skip.why {
        Why::Conflict => conflict::held(&*skip.reason),
        _ => super::plan::hold_group(&skip.reason),
    }
}

/// The paths of an operation that did not happen: for a folder that is one operation, also all that
/// is in it.
fn held_rows(actor: &Actor, operation: &Operation, held: &Held) -> Vec<HeldRow> {
    let path = decode(&operation.path);
    let below = match operation.act {
        Act::Tree { .. } => tree::entries(&actor.roots[operation.root].upper, &path),
        _ => Vec::new(),
    };
    let all = std::iter::once(path).chain(below);
    all.map(|path| HeldRow::new(operation.root, &path, held)).collect()
}

/// What was held before, and every operation: nothing of the call was applied.
fn all_held(actor: &Actor, journal: &Journal, stop: &Stop) -> Vec<HeldRow> {
    let mut held = journal.head.held.clone();
    // A path that is replaced by something of another kind has two operations.
    let mut seen = HashSet::new();
    for (index, operation) in journal.operations.iter().enumerate() {
        let why = match stop {
            Stop::Failed(what, error) => super::not_applied(&super::taken_back(what, error)),
            Stop::Together(first) if index == first.index => held_for(first),
            Stop::Together(_) => held_for(&grouped(index)),
        };
        let rows = held_rows(actor, operation, &why);
        held.extend(rows.into_iter().filter(|row| seen.insert((row.root, row.path.clone()))));
    }
    held
}
