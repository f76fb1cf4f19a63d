//! Looks through a workspace for what a plan must hide.
//!
//! Duty: one walk that finds denied and special files, and the repositories. Non-goals: covering them
//! ([`crate::sandbox::covers`]). Trust boundary: the tree is the
//! adversary's. A denied name that is a link hides what it leads to; a denied file with a second name
//! hides that name too; sockets, pipes and devices lead out of the sandbox and are always hidden.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::binding;
use super::grants::FileGrants;
use super::look::{FileFacts, Found, Look, Mark};
use super::memory::Memory;
use super::walk::{WalkError, walk_from};
use super::{Found as OpenedAt, Workspace};
use crate::engine::plan::MaskKind;
use crate::ids::Identity;

/// What a walk found.
#[derive(Debug, Default)]
pub struct Survey {
    /// What must not be seen, by path below the workspace.
    pub hidden: BTreeMap<PathBuf, Hidden>,
    /// Folders that were not looked through and can be seen all the same.
    pub not_scanned: BTreeSet<PathBuf>,
    /// The `.git` of each repository.
    pub repositories: BTreeSet<PathBuf>,
    /// Symlinks that stand where the host runs something, or could.
    pub links: BTreeSet<PathBuf>,
    /// Ends when what was found is written down.
    pub(super) keeping: Option<JoinHandle<()>>,
}

/// Something that must not be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hidden {
    /// What covers it.
    pub kind: MaskKind,
    /// Why.
    pub why: WhyHidden,
}

/// Why something is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyHidden {
    /// A policy denies it, or it is key material.
    Denied,
    /// A denied link leads to it, or it is another name of a denied file.
    SameAsDenied,
    /// A socket, pipe or device.
    Special,
    /// It cannot be looked through.
    Closed,
    /// The policy's read list does not hold it.
    NotReadable,
    /// It is a folder that is not to be looked through.
    NotScanned,
}

/// A folder that is not looked through, because it is too large or of no interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unscanned {
    /// The folder, below the workspace.
    pub folder: PathBuf,
    /// What a command sees of it.
    pub shown: Shown,
}

/// What a command sees of a folder that was not surveyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Nothing: it is covered as a whole. Always safe.
    Nothing,
    /// All that is in it, denied files, sockets and second names of denied files too. Only the owner of a policy
    /// may say so.
    Everything,
}

/// What to look through, and for whom.
#[derive(Clone, Copy)]
pub struct Looking<'a> {
    /// The workspace.
    pub workspace: &'a Workspace,
    /// What was decided about files.
    pub grants: &'a FileGrants<'a>,
    /// A folder of the caller's own where it may be remembered what was found, if it may.
    pub memory: Option<&'a Path>,
    /// Folders that are not looked through.
    pub unscanned: &'a [Unscanned],
    /// Whether the host has mounted something below the workspace.
    pub mounted_below: bool,
}

/// How often a workspace is looked through because denied files have further names.
const LOOKS: usize = 3;

/// Inodes that may be looked for beyond twice the number of denied files: those of files that are gone.
pub(super) const MOST_STALE: usize = 1024;

/// Looks through a workspace.
///
/// # Errors
/// The workspace is too large, too deep or unreadable.
pub fn survey(looking: &Looking<'_>) -> Result<Survey, WalkError> {
    let open = |folder| Memory::open(folder, looking.workspace, binding::of(looking));
    let mut survey = survey_with(looking, looking.memory.and_then(open))?;
    let mut keeping = keeping();
    keeping.retain(|thread| !thread.is_finished());
    keeping.extend(survey.keeping.take());
    drop(keeping);
    Ok(survey)
}

/// Threads that write down what surveys of this process found, so that the end of the process can wait for them. A call never
/// reads this list.
static KEEPING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

fn keeping() -> MutexGuard<'static, Vec<JoinHandle<()>>> {
    KEEPING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until what surveys of this process found is written down. For the end of the process, when the answer is
/// given: most calls have nothing to write, and those that have were slow for lack of it.
pub fn settle() {
    let waiting = std::mem::take(&mut *keeping());
    for thread in waiting {
        // Whatever became of it: without a memory, folders are read again.
        let _ = thread.join();
    }
}

/// The same, with a memory.
pub(super) fn survey_with(
    looking: &Looking<'_>,
    memory: Option<Memory>,
) -> Result<Survey, WalkError> {
    let workspace = looking.workspace;
    let mut look = Look::new(looking, memory);
    let mut looks = 0;
    loop {
        let found = walk_from(workspace.handle(), workspace.root(), &look, look.starts())?;
        let mut gathered = gather(workspace, found)?;
        looks += 1;
        // Further names of denied files are found by inode, and those are known only now.
        let inodes: BTreeSet<u64> = gathered.several.iter().map(|identity| identity.ino).collect();
        if !inodes.is_subset(&look.inodes) {
            if looks == LOOKS {
                return Err(WalkError::Restless(workspace.root().to_owned()));
            }
            look.start_over(inodes);
            continue;
        }
        if looks == 1 && look.inodes.len() > MOST_STALE + 2 * gathered.survey.hidden.len() {
            look.start_over(inodes);
            continue;
        }
        gathered.hide_second_names(workspace)?;
        let Gathered { mut survey, files, .. } = gathered;
        survey.outermost();
        survey.not_scanned = not_scanned(looking, &survey);
        let inodes: BTreeSet<u64> = look.inodes.union(&files).copied().collect();
        survey.keeping = look.memory.and_then(|memory| memory.keep(inodes.into_iter().collect()));
        return Ok(survey);
    }
}

/// What a walk found, put in its place.
#[derive(Default)]
struct Gathered {
    survey: Survey,
    /// Inodes of denied files that were not looked for before.
    files: BTreeSet<u64>,
    /// Those of them with several names.
    several: BTreeSet<Identity>,
    /// What has the inode of a denied file, of this walk or of one before.
    names: Vec<PathBuf>,
}

fn gather(workspace: &Workspace, all: Vec<Found>) -> Result<Gathered, WalkError> {
    let mut gathered = Gathered::default();
    let mut links = Vec::new();
    for Found { mark, path, known, facts } in all {
        match mark {
            Mark::Hide(kind, why) if known => {
                gathered.survey.hidden.entry(path).or_insert(Hidden { kind, why });
            }
            Mark::Hide(kind, why) => match facts {
                Some(facts) => gathered.note(path, Hidden { kind, why }, facts),
                None => gathered.hide(workspace, path, Hidden { kind, why })?,
            },
            Mark::DeniedLink => links.push(path),
            Mark::SecondName => gathered.names.push(path),
            Mark::Repository => drop(gathered.survey.repositories.insert(path)),
            Mark::Link => drop(gathered.survey.links.insert(path)),
        }
    }
    for link in links {
        if let Some((path, kind)) = leads_to(workspace, &link)? {
            let hidden = Hidden { kind, why: WhyHidden::SameAsDenied };
            gathered.hide(workspace, path, hidden)?;
        }
    }
    Ok(gathered)
}

impl Gathered {
    /// Hides a path after a look at what is there now.
    fn hide(
        &mut self,
        workspace: &Workspace,
        path: PathBuf,
        hidden: Hidden,
    ) -> Result<(), WalkError> {
        // What is gone by now needs no cover.
        let found = open(workspace, &path)?.filter(|_| !path.as_os_str().is_empty());
        let Some(found) = found else { return Ok(()) };
        self.note(path, hidden, FileFacts { identity: found.identity, links: found.links });
        Ok(())
    }

    /// Hides a path at which this was found.
    fn note(&mut self, path: PathBuf, hidden: Hidden, facts: FileFacts) {
        let hidden = self.survey.hidden.entry(path).or_insert(hidden);
        if hidden.kind == MaskKind::File {
            self.files.insert(facts.identity.ino);
            if facts.links > 1 {
                self.several.insert(facts.identity);
            }
        }
    }

    /// Hides further names of files that are denied now. Inodes of denied files that are gone may be in
    /// use again.
    fn hide_second_names(&mut self, workspace: &Workspace) -> Result<(), WalkError> {
        let names = std::mem::take(&mut self.names);
        if names.is_empty() {
            return Ok(());
        }
        let mut denied = BTreeSet::new();
        for (path, _) in self.survey.hidden.iter().filter(|(_, it)| it.kind == MaskKind::File) {
            denied.extend(open(workspace, path)?.map(|found| found.identity));
        }
        for path in names {
            if open(workspace, &path)?.is_some_and(|found| denied.contains(&found.identity)) {
                let hidden = Hidden { kind: MaskKind::File, why: WhyHidden::SameAsDenied };
                self.survey.hidden.entry(path).or_insert(hidden);
            }
        }
        Ok(())
    }
}

/// Opens what was found; `None` if it is gone by now. Any other failure is one: what cannot be looked at may be there.
fn open(workspace: &Workspace, path: &Path) -> Result<Option<OpenedAt>, WalkError> {
    match workspace.open(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(WalkError::Open(workspace.root().join(path), error)),
    }
}

/// Whether nothing is there, or a link stands on the way to it.
fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// The folders that were left out and can be seen.
fn not_scanned(looking: &Looking<'_>, survey: &Survey) -> BTreeSet<PathBuf> {
    let is_folder = |path: &Path| {
        looking.workspace.open(path).is_ok_and(|found| found.kind == FileType::Directory)
    };
    let seen = |one: &&Unscanned| {
        one.shown == Shown::Everything && !survey.is_hidden(&one.folder) && is_folder(&one.folder)
    };
    looking.unscanned.iter().filter(seen).map(|one| one.folder.clone()).collect()
}

impl Survey {
    /// Whether the path is hidden, or lies in something hidden.
    #[must_use]
    pub fn is_hidden(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.hidden.contains_key(above))
    }

    /// Drops what lies below something that is hidden as a whole.
    fn outermost(&mut self) {
        // In order, what lies below a folder follows it.
        let mut above: Option<PathBuf> = None;
        self.hidden.retain(|path, hidden| {
            if above.as_ref().is_some_and(|above| path.starts_with(above)) {
                return false;
            }
            if hidden.kind == MaskKind::Folder {
                above = Some(path.clone());
            }
            true
        });
    }
}

/// What a link in the workspace leads to, if that lies in the workspace. Where the caller may not go, the command, which
/// runs as no more than the caller, may not either.
fn leads_to(workspace: &Workspace, link: &Path) -> Result<Option<(PathBuf, MaskKind)>, WalkError> {
    let link = workspace.root().join(link);
    let real = match link.canonicalize() {
        Ok(real) => real,
        Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(None);
        }
        Err(error) => return Err(WalkError::Open(link, error)),
    };
    let Ok(path) = real.strip_prefix(workspace.root()).map(Path::to_owned) else {
        return Ok(None);
    };
    let Some(found) = open(workspace, &path)? else { return Ok(None) };
    let kind = match found.kind {
        FileType::Directory => MaskKind::Folder,
        _ => MaskKind::File,
    };
    Ok((!path.as_os_str().is_empty()).then_some((path, kind)))
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
