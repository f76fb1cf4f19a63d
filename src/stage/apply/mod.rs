//! Applies judged changes to the host: planned, written down, done, handed over to undo.
//!
//! ```text
//! plan     conflicts, order; staged files made fit          host unchanged, no journal
//! record   rows of undo, journal, one syncfs                 host unchanged
//! prepare  copies beside their targets, for another mount    error: copies removed, nothing happened
//! act      renames                                           error: all taken back
//! settle   old files to undo, what was left into the rows    error: recovery goes on here
//! ```
//!
//! A process that dies anywhere leaves the journal; [`recover`](super::recover) runs the rest. Files are
//! never written in place. Extended attributes of the overlay are removed, also those that a command set
//! itself and that the overlay escaped.
//!
//! Who applies holds the [turn](super::turn) of the folders since before the changes were judged.
//!
//! Trust boundary: see [`super::handles`].

pub(super) mod act;
mod copy;
mod locks;
mod plan;
mod run;
mod settle;
mod tree;

use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::syncfs;

use act::{Actor, open_roots};
use plan::Plan;
pub(super) use run::{Ended, run};

use super::change::{Held, Judged, Verdict, Why};
use super::folder::{HeldRow, Stage, StageError};
use super::handles::mount_of;
use super::journal::{Act, Head, Journal, Operation, Skipped, Unity, VERSION, Way};
use super::turn::TurnError;
use crate::config::Undo;
use crate::store::{Store, StoreError};
use crate::undo::names::{decode, encode};
use crate::undo::{Backups, StagedRow, State, image_name, keep_staged};

/// What an apply needs beside the stage.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The caller's state folder, which holds the store and the backups.
    pub state: &'a Path,
    /// How much undo keeps.
    pub bounds: Undo,
    /// Whether a loss of power is thought of.
    pub sync: Sync,
}

/// Whether a loss of power is thought of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// One `syncfs` before the first change.
    Once,
    /// None: a crash of this process is covered, a crash of the machine is not.
    Never,
}

/// What was applied, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// New files and symlinks, those of new folders too.
    pub created: u64,
    /// Files and symlinks that replaced others.
    pub changed: u64,
    /// Files, symlinks and folders that went.
    pub removed: u64,
    /// Folders that were made or got other permissions.
    pub folders: u64,
    /// Bytes of all files that came.
    pub bytes: u64,
}

/// What came of an apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// What was applied.
    pub counts: Counts,
    /// What stays in the stage, by root and path; conflicts too.
    pub held: Vec<(usize, PathBuf, Held)>,
    /// Whether `runner undo` can take all of it back.
    pub undo: bool,
}

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The stage or a root cannot be used.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The record could not be written, so nothing was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something failed; what had been done was taken back.
    #[error("{}", taken_back(.what, .error))]
    Failed {
        /// What failed.
        what: &'static str,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Something failed and could not be ended either way: the journal stays for recovery.
    #[error("cannot {what}: {error}; {} names what is between", .journal.display())]
    Between {
        /// What failed.
        what: &'static str,
        /// Why.
        #[source]
        error: io::Error,
        /// The journal.
        journal: PathBuf,
    },
    /// An earlier apply of this stage is not over.
    #[error("an earlier apply of stage {0} is not over")]
    Unfinished(String),
    /// It is another call's turn to change the folders.
    #[error(transparent)]
    Turn(#[from] TurnError),
}

impl ApplyError {
    fn failed(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Failed { what, error }
    }
}

/// What an operation that failed says.
fn taken_back(what: &str, error: &io::Error) -> String {
    format!("cannot {what}: {error}; nothing was applied")
}

/// Why changes are kept that could not be applied.
#[must_use]
pub fn not_applied(reason: &str) -> Held {
    Held {
        why: Why::NotApplied,
        reason: reason.to_owned(),
        rule: "built-in/apply".to_owned(),
        next: "mend the cause, then `runner stage apply CALL`".to_owned(),
    }
}

/// Keeps a stage whose changes could not be applied, for a later apply.
///
/// # Errors
/// What is kept cannot be noted.
pub fn keep(stage: &Stage, judged: &[Vec<Judged>], why: &Held) -> Result<(), StageError> {
    let rows = judged.iter().enumerate().flat_map(|(root, changes)| {
        changes.iter().map(move |Judged { change, verdict }| match verdict {
            Verdict::Apply => HeldRow::new(root, &change.path, why),
            Verdict::Hold(held) => HeldRow::new(root, &change.path, held),
        })
    });
    stage.keep(&rows.collect::<Vec<_>>())
}

/// Applies changes; one list for each root of the stage. It blocks.
///
/// # Errors
/// See [`ApplyError`]. A change that the host's own changes do not allow is no error: it is held.
pub fn apply(
    stage: &Stage,
    judged: &[Vec<Judged>],
    context: &Context<'_>,
) -> Result<Applied, ApplyError> {
    if judged.len() > stage.roots().len() {
        let error = io::Error::other("changes of a root that the stage does not have");
        return Err(ApplyError::Failed { what: "plan", error });
    }
    if Journal::open(stage).map_err(ApplyError::failed("read the journal"))?.is_some() {
        return Err(ApplyError::Unfinished(stage.label().to_string()));
    }
    let roots = open_roots(stage)?;
    let mut ways = Vec::with_capacity(roots.len());
    for root in &roots {
        let way = || {
            Ok(if mount_of(&root.host)? == mount_of(&root.upper)? {
                Way::Rename
            } else {
                Way::Copy
            })
        };
        ways.push(way().map_err(|error: rustix::io::Errno| ApplyError::Failed {
            what: "look at the roots",
            error: error.into(),
        })?);
    }
    let Plan { drafts, held, unity, locks } =
        plan::plan(stage, &roots, &ways, judged).map_err(ApplyError::failed("read the stage"))?;
    let held: Vec<HeldRow> =
        held.iter().map(|(root, path, held)| HeldRow::new(*root, path, held)).collect();
    if drafts.is_empty() {
        if !held.is_empty() {
            stage.keep(&held)?;
        }
        return Ok(Applied { counts: Counts::default(), held: told(&held), undo: true });
    }
    let store = Store::open(Some(context.state))?;
    let backups = Backups::open(store.folder()).map_err(ApplyError::failed("open the backups"))?;
    let (operations, undo) = record(stage, &store, &backups, drafts, context)?;
    let unity = unity.unwrap_or(Unity::From(operations.len()));
    let count = operations.len();
    let head =
        Head { version: VERSION, ways: ways.clone(), held, unity, locks, operations: count, undo };
    let rows: Vec<(i64, Option<State>)> = operations.iter().map(|op| (op.row, None)).collect();
    let begun = Journal::begin(stage, head, operations).and_then(|journal| {
        if context.sync == Sync::Once {
            syncfs(roots[0].upper.as_fd())?;
        }
        Ok(journal)
    });
    let journal = match begun {
        Ok(journal) => journal,
        Err(error) => {
            // The journal may be there although it could not be synced; nothing has happened yet.
            let _ = std::fs::remove_file(stage.folder().join(super::folder::JOURNAL));
            crate::undo::finish_staged(&store, &rows)?;
            return Err(ApplyError::Failed { what: "write the journal", error });
        }
    };
    let mut actor = Actor::new(roots, stage.label(), ways);
    match run(stage, &mut actor, journal, (&store, &backups), context.sync)? {
        Ended::Applied(applied) => Ok(applied),
        Ended::TakenBack { what, error } => Err(ApplyError::Failed { what, error }),
    }
}

/// Writes the rows of undo; the operations with their rows, and whether all can be taken back.
fn record(
    stage: &Stage,
    store: &Store,
    backups: &Backups,
    drafts: Vec<plan::Draft>,
    context: &Context<'_>,
) -> Result<(Vec<Operation>, bool), ApplyError> {
    let call = stage.undone_as();
    let mut rows = Vec::with_capacity(drafts.len());
    for (number, draft) in drafts.iter().enumerate() {
        let Some((word, before)) = &draft.undo else { continue };
        let size = match before {
            State::File { size, .. } => Some(*size),
            _ => None,
        };
        rows.push(StagedRow {
            workspace: encode(&stage.roots()[draft.root].path()),
            word,
            path: encode(&draft.path),
            before: before.clone(),
            image: size.map(|_| image_name(&call, number)),
            size: size.unwrap_or(0),
        });
    }
    let ids = keep_staged(store, backups, &call, &mut rows, &context.bounds)?;
    let lost = |row: &StagedRow| matches!(row.before, State::File { .. }) && row.image.is_none();
    let undo = !rows.iter().any(lost);
    let mut kept = ids.into_iter().zip(rows);
    let mut operations = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let (row, image) = match draft.undo.is_some() {
            true => kept.next().map_or((0, None), |(id, row)| (id, row.image)),
            false => (0, None),
        };
        operations.push(Operation {
            root: draft.root,
            path: encode(&draft.path),
            act: draft.act,
            old: draft.old,
            row,
            image,
            beside: draft.beside,
        });
    }
    Ok((operations, undo))
}

/// Held changes as they are told.
fn told(held: &[HeldRow]) -> Vec<(usize, PathBuf, Held)> {
    held.iter().map(|row| (row.root, decode(&row.path), row.held())).collect()
}

/// Counts what happened.
fn count(operations: &[Operation], skipped: &[Skipped]) -> Counts {
    let mut counts = Counts::default();
    let not: std::collections::HashSet<usize> = skipped.iter().map(|skip| skip.index).collect();
    for (_, operation) in operations.iter().enumerate().filter(|(index, _)| !not.contains(index)) {
        match (operation.act, operation.old.is_some()) {
            (Act::Remove | Act::RemoveFolder, _) => counts.removed += 1,
            (Act::Make { .. }, _) | (Act::Mode { .. }, true) => counts.folders += 1,
            (Act::Mode { .. }, false) => {}
            (Act::Put { size, .. }, existed) => {
                counts.bytes += size;
                match existed {
                    true => counts.changed += 1,
                    false => counts.created += 1,
                }
            }
            (Act::Tree { files, folders, size, .. }, _) => {
                counts.bytes += size;
                counts.created += files;
                counts.folders += folders;
            }
        }
    }
    counts
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_killed;
