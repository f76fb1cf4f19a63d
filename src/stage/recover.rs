//! What dead processes left: interrupted applies are brought to their end, dead stages removed.
//!
//! An interrupted apply is finished. If that fails, all of it is taken back. If that fails too, the journal
//! stays and names what is between; the next recovery tries again.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::apply::act::{Actor, open_roots};
use super::apply::{Applied, ApplyError, Ended, Sync, run};
use super::folder::{Root, Stage, StageError, StageState, list, remove_remains};
use super::journal::Journal;
use super::turn::{Turn, TurnError};
use crate::ids::CallId;
use crate::store::Store;
use crate::undo::Backups;

/// How long recovery waits for other calls. It is not urgent: who judges changes of the same folders
/// ends it first.
const PATIENCE: Duration = Duration::from_secs(2);

/// What came of one stage.
#[derive(Debug)]
pub enum Recovered {
    /// Its apply was finished.
    Finished(CallId, Applied),
    /// Its apply could not be finished, and was taken back.
    TakenBack(CallId, io::Error),
    /// Nothing of it had been applied; it was removed.
    Removed(CallId),
    /// It could not be brought to an end.
    Failed(CallId, ApplyError),
}

/// Finishes applies that a death has interrupted, or takes them back.
///
/// # Errors
/// The folder of stages cannot be read.
pub fn finish_all(state: &Path, sync: Sync) -> io::Result<Vec<Recovered>> {
    let interrupted = list(state)?.into_iter().filter(|it| it.state == StageState::Applying);
    Ok(interrupted.filter_map(|it| told(&it.label, finish(state, &it.label, sync))).collect())
}

/// Finishes interrupted applies, and removes stages of which nothing was applied. Those that are kept
/// for review stay, and so do those that are spared: their sandboxes may still be there.
///
/// # Errors
/// The folder of stages cannot be read.
pub fn recover(
    state: &Path,
    sync: Sync,
    spared: &dyn Fn(&CallId) -> bool,
) -> io::Result<Vec<Recovered>> {
    let mut all = finish_all(state, sync)?;
    let dead = list(state)?.into_iter().filter(|it| it.state == StageState::Dead);
    let dead = dead.filter(|it| !spared(&it.label));
    all.extend(dead.filter_map(|it| told(&it.label, remove(state, &it.label))));
    Ok(all)
}

fn told(label: &CallId, done: Result<Recovered, ApplyError>) -> Option<Recovered> {
    match done {
        Ok(recovered) => Some(recovered),
        // Another process looks after it, or works in the same folder: then the next call does.
        Err(
            ApplyError::Stage(StageError::Running(_) | StageError::Missing(_))
            | ApplyError::Turn(TurnError::Busy(..)),
        ) => None,
        Err(error) => Some(Recovered::Failed(label.clone(), error)),
    }
}

fn finish(state: &Path, label: &CallId, sync: Sync) -> Result<Recovered, ApplyError> {
    let stage = Stage::open(state, label)?;
    let folders: Vec<PathBuf> = stage.roots().iter().map(Root::path).collect();
    let _turn = Turn::lock(state, &folders, PATIENCE)?;
    let read = |error| ApplyError::Failed { what: "read the journal", error };
    let Some(journal) = Journal::open(&stage).map_err(read)? else {
        // Another process was faster.
        return Err(StageError::Missing(label.to_string()).into());
    };
    let ways = journal.head.ways.clone();
    let mut actor = Actor::new(open_roots(&stage)?, label, ways);
    let store = Store::open(Some(state))?;
    let backups = Backups::open(store.folder())
        .map_err(|error| ApplyError::Failed { what: "open the backups", error })?;
    let ended = run(&stage, &mut actor, journal, (&store, &backups), sync)?;
    let call = stage.call();
    Ok(match ended {
        // The rest is removed when its sandbox is surely gone.
        Ended::Applied(applied) => Recovered::Finished(call, applied),
        // What could not be applied stays for review: it is the command's work.
        Ended::TakenBack { error, .. } => Recovered::TakenBack(call, error),
    })
}

fn remove(state: &Path, label: &CallId) -> Result<Recovered, ApplyError> {
    match Stage::open(state, label) {
        Ok(stage) => stage.discard()?,
        Err(StageError::Running(label)) => return Err(StageError::Running(label).into()),
        Err(_) => remove_remains(state, label)?,
    }
    Ok(Recovered::Removed(label.clone()))
}
