//! Judges each change of a stage: apply it, or hold it back.
//!
//! Duty: the verdict by the policy's lists, the built-in table, the repositories around, and the
//! covered paths. Non-goals: conflicts with the host's own edits, the group of a commit (the apply
//! step holds those). Trust boundary: every change is the adversary's. What is not understood is
//! held.
//!
//! The first of these that fits decides:
//!
//! | | held as |
//! | --- | --- |
//! | at or below a covered path, or takes one away | `Covered` |
//! | a pipe, socket or device; an access list that the host has not; setuid, setgid on a file, setuid on a folder; over something like that | `Special` |
//! | denied by the policy, or key material | `Denied` |
//! | *never* in the table; a git folder's configuration, hooks, links; a new repository; led to by git | `RunsOnHost` |
//! | a symlink that leads out, or could | `LeadsOut` |
//! | `readonly`, or not in `write` and no companion | `NotWritable` |
//! | *named* in the table and not named by the policy | `Named` |
//!
//! Then what belongs together is held together: a folder that keeps a name stays; what is below a
//! new folder that is held is held with it; and a new folder that the policy does not name is made
//! if something in it may be applied.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::fd::BorrowedFd;
use std::path::{Component, Path, PathBuf};

use runner_glob::Glob;

use super::alias::{self, Alias};
use super::change::{Change, Held, Host, Judged, Origin, RootKind, Staged, Verdict, What};
use super::gitconfig;
use super::leads::UnknownLeads;
use super::led::{Led, Reach};
use super::merged::Merged;
use super::reasons;
use super::repository::{Place, Repositories};
use super::worktree::{self, Worktree};
use crate::ids::Identity;
use crate::workspace::grants::{FileGrants, Writes};
use crate::workspace::protected;
use crate::workspace::protected::table::{self, Class, Row};

/// Setuid and setgid: on a file, both make it run as another.
const SET_ID: u32 = 0o6000;

/// Setuid. On a folder setgid only passes its group on, and new folders inherit it.
const SET_UID: u32 = 0o4000;

/// What changes are judged by.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// The policy's lists, for paths below the root.
    pub grants: &'a FileGrants<'a>,
    /// The policy's name.
    pub policy: &'a str,
    /// Paths below the root that were covered in the call.
    pub covered: &'a BTreeSet<PathBuf>,
    /// The root's absolute path, on the host and in the sandbox.
    pub root: &'a Path,
    /// What the root is.
    pub kind: RootKind,
    /// The host's root.
    pub host: BorrowedFd<'a>,
    /// The stage.
    pub upper: BorrowedFd<'a>,
    /// The `.git` of each repository below the root that is known. The judge finds those around the
    /// changes itself.
    pub repositories: &'a BTreeSet<PathBuf>,
    /// Symlinks below the root that stand where the host runs something, or could.
    pub links: &'a BTreeSet<PathBuf>,
    /// The caller's home, for which `~` stands in a configuration.
    pub home: Option<&'a Path>,
    /// Places that configurations outside the root lead git to.
    pub led: &'a [Led],
    /// What of the host the call saw read-only, absolute: a symlink to a system program or an
    /// interpreter leads out, and is what virtual environments are made of.
    pub system: &'a System,
}

/// Folders of the host that every call sees read-only, and what is hidden in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct System {
    /// The folders.
    pub folders: Vec<PathBuf>,
    /// Files and folders in them that hold credentials.
    pub hidden: Vec<PathBuf>,
}

impl System {
    /// Whether a path is absolute, goes nowhere up, and leads to something in them.
    fn holds(&self, path: &Path) -> bool {
        let plain = path.is_absolute()
            && path
                .components()
                .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        plain
            && self.folders.iter().any(|folder| path.starts_with(folder))
            && !self.hidden.iter().any(|it| path.starts_with(it) || it.starts_with(path))
    }
}

/// Where git is led to is not known: everything is held.
fn unknown_leads(change: Change, why: &UnknownLeads) -> Judged {
    Judged { change, verdict: Verdict::Hold(reasons::unknown_leads(why)) }
}

/// Judges changes, which are in the order of [`super::walk::walk`]. The order stays.
#[must_use]
pub fn judge(changes: Vec<Change>, rules: &Rules<'_>) -> Vec<Judged> {
    let verdicts = {
        let merged = Merged::new(rules.host, rules.upper, rules.root, &changes);
        let repositories = Repositories::new(&merged, rules.kind, rules.home);
        let worktrees = worktree::find(&changes, &merged, &repositories, rules.root);
        let paths = changes.iter().map(|change| change.path.as_path());
        let known = rules.repositories.iter().filter_map(|git| git.parent());
        let mut led = match repositories.led(paths.chain(known), &worktrees) {
            Ok(led) => led,
            Err(why) => {
                return changes.into_iter().map(|change| unknown_leads(change, &why)).collect();
            }
        };
        led.extend_from_slice(rules.led);
        let aliases = alias::find(rules.links, &merged, &repositories);
        let (merged, repositories) = (&merged, &repositories);
        let judge = Judge { rules, merged, repositories, worktrees, led, aliases };
        let mut verdicts: Vec<Opinion> = changes.iter().map(|change| judge.one(change)).collect();
        settle_new_folders(&changes, &mut verdicts);
        settle_kept_folders(&changes, &mut verdicts);
        settle_replaced_folders(&changes, &mut verdicts);
        verdicts
    };
    changes
        .into_iter()
        .zip(verdicts)
        .map(|(change, opinion)| Judged { change, verdict: opinion.verdict() })
        .collect()
}

/// Why a file may not be written at a path, for who writes it without a stage.
#[must_use]
pub fn judge_file(path: &Path, rules: &Rules<'_>) -> Option<Held> {
    let host = Merged::new(rules.host, rules.upper, rules.root, &[]).on_host(path);
    let file = Staged {
        identity: Identity::UNMADE,
        mode: 0o644,
        size: 0,
        links: 1,
        born: None,
        origin: Origin::New,
    };
    let change = Change { path: path.to_owned(), what: What::File(file), host, lost: false };
    let judged = judge(vec![change], rules);
    judged.into_iter().find_map(|judged| match judged.verdict {
        Verdict::Hold(held) => Some(held),
        Verdict::Apply => None,
    })
}

/// What is thought of one change by itself.
#[derive(Debug, Clone)]
enum Opinion {
    Apply,
    /// Held, unless it is a new folder for something that is applied.
    Unlisted(Held),
    Hold(Held),
}

impl Opinion {
    fn verdict(self) -> Verdict {
        match self {
            Self::Apply => Verdict::Apply,
            Self::Unlisted(held) | Self::Hold(held) => Verdict::Hold(held),
        }
    }

    fn held(&self) -> Option<&Held> {
        match self {
            Self::Apply => None,
            Self::Unlisted(held) | Self::Hold(held) => Some(held),
        }
    }
}

struct Judge<'r, 'a> {
    rules: &'r Rules<'a>,
    merged: &'r Merged<'r>,
    repositories: &'r Repositories<'r>,
    worktrees: Vec<Worktree>,
    led: Vec<Led>,
    aliases: Vec<Alias>,
}

impl Judge<'_, '_> {
    fn one(&self, change: &Change) -> Opinion {
        let path = change.path.as_path();
        let (grants, policy) = (self.rules.grants, self.rules.policy);
        if let Some(covered) = self.covered(change) {
            return Opinion::Hold(reasons::covered(path, &covered));
        }
        if let Some(held) = special(change) {
            return Opinion::Hold(held);
        }
        if protected::is_key_material(path) {
            return Opinion::Hold(reasons::key_material());
        }
        if grants.deny.matches(path) {
            return Opinion::Hold(reasons::denied(policy));
        }
        let row = match &change.what {
            What::Link { .. } => table::find_for_link(path),
            _ => table::find(path),
        };
        if let Some(row) = row.filter(|row| row.class == Class::Never) {
            return Opinion::Hold(reasons::never(row));
        }
        let by_name = || self.in_repository(change).or_else(|| self.led_to(change));
        if let Some(held) = by_name().or_else(|| self.by_another_name(change)) {
            return Opinion::Hold(held);
        }
        if let What::Link { target } = &change.what
            && !self.leads_within(path, target)
        {
            return Opinion::Hold(reasons::leads_out(target));
        }
        if grants.readonly.matches(path) {
            return Opinion::Hold(reasons::read_only(policy));
        }
        // A manifest that the call made itself makes no package: the host's files count.
        let has = |file: &Path| matches!(self.merged.on_host(file), Host::File(_));
        let writable = grants.writes == Writes::Some && grants.write.matches_where(path, &has);
        if !writable && !self.is_companion(change) {
            return Opinion::Unlisted(reasons::not_writable(policy));
        }
        match row {
            Some(row) if !self.is_named(path, row) => Opinion::Hold(reasons::named(row, path)),
            _ => Opinion::Apply,
        }
    }

    /// Whether a symlink leads to a place below the root, or to a program of the system.
    fn leads_within(&self, path: &Path, target: &OsStr) -> bool {
        let folder = path.parent().unwrap_or(Path::new(""));
        self.merged.leads_within(folder, target, &|path| self.rules.system.holds(path))
    }

    /// The covered path that a change stands at or below, or takes away.
    fn covered(&self, change: &Change) -> Option<PathBuf> {
        let covered = self.rules.covered;
        let above = change.path.ancestors().find(|above| covered.contains(*above));
        if let Some(above) = above.filter(|above| !above.as_os_str().is_empty()) {
            return Some(above.to_owned());
        }
        if matches!(change.what, What::Folder { .. }) && matches!(change.host, Host::Folder(_)) {
            return None;
        }
        let from = (Bound::Excluded(change.path.as_path()), Bound::Unbounded);
        covered.range::<Path, _>(from).next().filter(|next| next.starts_with(&change.path)).cloned()
    }

    /// Why a change may not be made in or to a repository.
    fn in_repository(&self, change: &Change) -> Option<Held> {
        if self.worktrees.iter().any(|worktree| worktree.holds(&change.path)) {
            return None;
        }
        let (folder, below) = match self.repositories.place(change) {
            Place::Plain => return None,
            Place::NewGit => return Some(reasons::new_repository(None)),
            Place::Completes { folder } => return Some(reasons::new_repository(Some(&folder))),
            Place::InGit { folder, below } => (folder, below),
        };
        if below.as_os_str().is_empty() {
            return Some(reasons::git_folder());
        }
        // A repository is not taken apart: it goes as a whole or not at all.
        let kept = |change: &Change| matches!(change.what, What::Folder { .. });
        if self.merged.change(&folder).is_some_and(|change| !kept(change)) {
            return Some(reasons::git_folder());
        }
        if matches!(change.what, What::Link { .. }) {
            return Some(reasons::link_in_git());
        }
        let row = table::find_in_git(&below)?;
        let is_config = below == Path::new("config");
        (!(is_config && self.is_harmless(change))).then(|| reasons::never(row))
    }

    /// Whether a change of a repository's configuration cannot make git run or follow anything.
    fn is_harmless(&self, change: &Change) -> bool {
        let old = match &change.host {
            Host::File(facts) => {
                self.merged.read_host(&change.path, Some(*facts), gitconfig::MAX_BYTES)
            }
            Host::Absent => Some(Vec::new()),
            Host::Folder(_) | Host::Link { .. } | Host::Other(_) => None,
        };
        let new = self.merged.read_staged(change, gitconfig::MAX_BYTES);
        matches!((old, new), (Some(old), Some(new)) if gitconfig::is_harmless_change(&old, &new))
    }

    /// Why a change may not be made where a configuration leads git to.
    fn led_to(&self, change: &Change) -> Option<Held> {
        let is_link = matches!(change.what, What::Link { .. });
        let is_folder = matches!(change.what, What::Folder { .. });
        let led = self.led.iter().find(|led| {
            (led.holds(&change.path) && !(is_folder && led.reach == Reach::File))
                || (is_link && led.is_below(&change.path))
        })?;
        Some(reasons::led(led))
    }

    /// Why a change may not be made where a symlink of the host leads to.
    fn by_another_name(&self, change: &Change) -> Option<Held> {
        self.aliases.iter().find_map(|alias| {
            let row = alias.runs(change, self.repositories)?;
            Some(reasons::by_another_name(row, &alias.link))
        })
    }

    /// Whether a change makes a file that the policy lets be made where nothing is.
    fn is_companion(&self, change: &Change) -> bool {
        self.rules.grants.writes == Writes::Some
            && change.host == Host::Absent
            && matches!(change.what, What::File(_))
            && self.rules.grants.create.iter().any(|companion| {
                companion.file == change.path && self.merged.is_there_afterwards(&companion.beside)
            })
    }

    /// Whether the policy names a file itself: a pattern of its write list ends in a written name,
    /// or writes the row's folder out and ends in more than a bare star.
    fn is_named(&self, path: &Path, row: &Row) -> bool {
        let text = path.to_string_lossy();
        let names: Vec<&str> = text.split('/').collect();
        let companion = |file: &Path| file == path;
        self.rules.grants.create.iter().any(|own| companion(&own.file))
            || self.rules.grants.write.patterns().iter().any(|pattern| {
                let last = pattern.rsplit('/').next().unwrap_or_default();
                let written = !last.contains(['*', '?', '[']);
                let folder = format!("{}/", row.pattern);
                let spelled = !matches!(last, "*" | "**")
                    && (pattern.starts_with(&folder) || pattern.contains(&format!("/{folder}")));
                (written || spelled)
                    && !pattern.starts_with('!')
                    && Glob::new(pattern).is_ok_and(|glob| glob.matches(&names))
            })
    }
}

/// Why a change is no file, folder or symlink that may be applied.
fn special(change: &Change) -> Option<Held> {
    match &change.what {
        What::Special => Some(reasons::special(
            "a pipe, a socket or a device, or something with capabilities or an access list",
        )),
        What::File(staged) if staged.mode & SET_ID != 0 => {
            Some(reasons::special("a file with the setuid or setgid bit"))
        }
        What::Folder { mode } if mode & SET_UID != 0 => {
            Some(reasons::special("a folder with the setuid bit"))
        }
        What::Removed => None,
        _ if matches!(change.host, Host::Other(_)) => Some(reasons::special(
            "over a pipe, a socket, a device or a mounted file system of the host",
        )),
        _ => None,
    }
}

/// Holds what is below a new folder that is held, and makes new folders that something needs.
fn settle_new_folders(changes: &[Change], opinions: &mut [Opinion]) {
    let is_new = |change: &Change| {
        matches!(change.what, What::Folder { .. }) && !matches!(change.host, Host::Folder(_))
    };
    // A folder comes before its entries.
    let mut held: HashMap<&Path, Held> = HashMap::new();
    for (change, opinion) in changes.iter().zip(opinions.iter_mut()) {
        let above = change.path.parent().and_then(|parent| held.get(parent));
        if let Some(above) = above.cloned()
            && matches!(opinion, Opinion::Apply | Opinion::Unlisted(_))
        {
            *opinion = Opinion::Hold(reasons::below_held(&above));
        }
        if is_new(change)
            && let Opinion::Hold(reason) = opinion
        {
            held.insert(&change.path, reason.clone());
        }
    }
    let mut needed: BTreeSet<&Path> = BTreeSet::new();
    for (change, opinion) in changes.iter().zip(opinions.iter_mut()).rev() {
        if matches!(opinion, Opinion::Unlisted(_))
            && is_new(change)
            && change.host == Host::Absent
            && needed.contains(change.path.as_path())
        {
            *opinion = Opinion::Apply;
        }
        if matches!(opinion, Opinion::Apply)
            && change.what != What::Removed
            && let Some(parent) = change.path.parent()
        {
            needed.insert(parent);
        }
    }
    // A new folder over something else that stays held keeps its entries held.
    let mut held: HashMap<&Path, Held> = HashMap::new();
    for (change, opinion) in changes.iter().zip(opinions.iter_mut()) {
        if let Some(above) = change.path.parent().and_then(|parent| held.get(parent)).cloned()
            && matches!(opinion, Opinion::Apply)
        {
            *opinion = Opinion::Hold(reasons::below_held(&above));
        }
        if is_new(change)
            && let Some(reason) = opinion.held()
        {
            held.insert(&change.path, reason.clone());
        }
    }
}

/// Holds the removal or replacement of a folder in which a removal is held.
fn settle_kept_folders(changes: &[Change], opinions: &mut [Opinion]) {
    // The contents of a removed folder come before it.
    let mut kept: HashMap<&Path, (Held, &Path)> = HashMap::new();
    for (change, opinion) in changes.iter().zip(opinions.iter_mut()) {
        let stays = !matches!(change.what, What::Folder { .. });
        if let Some((held, name)) = kept.get(change.path.as_path())
            && stays
            && matches!(opinion, Opinion::Apply | Opinion::Unlisted(_))
        {
            *opinion = Opinion::Hold(reasons::keeps(held, name));
        }
        if let Some(held) = opinion.held()
            && change.host != Host::Absent
            && let Some(parent) = change.path.parent()
        {
            kept.entry(parent).or_insert_with(|| (held.clone(), &change.path));
        }
    }
}

/// Keeps the contents of a folder if what would stand in its place is held.
fn settle_replaced_folders(changes: &[Change], opinions: &mut [Opinion]) {
    let mut kept: HashMap<&Path, Held> = HashMap::new();
    // The contents of a replaced folder come before it.
    for (change, opinion) in changes.iter().zip(opinions.iter_mut()).rev() {
        let above = change.path.parent().and_then(|parent| kept.get(parent)).cloned();
        if change.what == What::Removed {
            let Some(above) = above else { continue };
            if matches!(opinion, Opinion::Apply) {
                *opinion = Opinion::Hold(reasons::below_held(&above));
            }
            kept.insert(&change.path, above);
        } else if !matches!(change.what, What::Folder { .. })
            && matches!(change.host, Host::Folder(_))
            && let Some(held) = opinion.held()
        {
            kept.insert(&change.path, held.clone());
        }
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
