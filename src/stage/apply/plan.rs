//! From judged changes to operations in the order in which they happen.
//!
//! Removals come first, contents before their folder. Then folders are made, then git objects, then all
//! other files, then permissions of folders, and git metadata last. A new folder of which every entry may
//! be applied is one operation.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::super::change::{Change, Facts, Held, Host, Judged, Moment, Verdict, What, Why};
use super::super::conflict::{self, Finding, open_file, same_content};
use super::super::folder::Stage;
use super::super::group::{self, GitFolders, Part, Together};
use super::super::handles::{self, Parents, Side, split};
use super::super::journal::{Act, Old, Unity, Way};
use super::act::{RootHandles, Slot};
use super::copy::copy;
use super::tree::{Expected, take_tree};
use crate::ids::Identity;
use crate::undo::names::encode;
use crate::undo::{Stamp, State};

/// An operation without its row.
#[derive(Debug)]
pub(super) struct Draft {
    pub root: usize,
    pub path: PathBuf,
    pub act: Act,
    pub old: Option<Old>,
    pub beside: Option<String>,
    /// The word for undo, and what was there; `None` if another row says it.
    pub undo: Option<(&'static str, State)>,
    class: Class,
}

/// When an operation happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Removal,
    Folder,
    Object,
    Other,
    Permission,
    Metadata,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub drafts: Vec<Draft>,
    pub held: Vec<(usize, PathBuf, Held)>,
    pub unity: Option<Unity>,
    pub locks: Vec<(usize, String)>,
}

/// A change that can be applied.
struct Ready<'j> {
    change: &'j Change,
    now: Host,
    /// The owner that it gets, for a caller who is root.
    owner: Option<(u32, u32)>,
    part: Option<Part>,
}

/// Plans the changes of all roots.
pub(super) fn plan(
    stage: &Stage,
    roots: &[RootHandles],
    ways: &[Way],
    judged: &[Vec<Judged>],
) -> io::Result<Plan> {
    let mut plan = Plan::default();
    let mut ready: Vec<BTreeMap<PathBuf, Ready<'_>>> = Vec::new();
    let folders: Vec<GitFolders<'_>> = roots
        .iter()
        .zip(stage.roots())
        .map(|(root, facts)| GitFolders::new(facts.kind, root.host.as_fd()))
        .collect();
    for (index, changes) in judged.iter().enumerate() {
        let found = sort_out(stage, roots, &folders[index], index, changes, &mut plan.held)?;
        ready.push(found);
    }
    let could: Vec<(usize, &Path)> = ready
        .iter()
        .enumerate()
        .flat_map(|(root, found)| found.keys().map(move |path| (root, path.as_path())))
        .collect();
    let (moved, together) = group::decide(stage, roots, &folders, &could, &plan.held);
    hold_together(&folders, &mut ready, &together, &mut plan.held);
    for (root, found) in ready.iter().enumerate() {
        let all = &judged[root];
        draft_root(&mut plan, root, &roots[root], ways[root], found, all)?;
    }
    plan.drafts.sort_by(|one, other| {
        let order = one.class.cmp(&other.class).then(one.root.cmp(&other.root));
        order.then_with(|| match one.class {
            Class::Removal | Class::Permission => other.path.cmp(&one.path),
            Class::Metadata => group::order(&one.path).cmp(&group::order(&other.path)),
            _ => one.path.cmp(&other.path),
        })
    });
    let first = plan.drafts.iter().position(|draft| draft.class == Class::Metadata);
    let first = first.unwrap_or(plan.drafts.len());
    for draft in &plan.drafts[first..] {
        if let Some(lock) = group::lock_of(&draft.path) {
            plan.locks.push((draft.root, encode(&lock)));
        }
    }
    plan.locks.dedup();
    plan.unity = Some(match moved {
        group::Moved::Branch => Unity::Whole(first),
        group::Moved::Nothing => Unity::From(first),
    });
    Ok(plan)
}

/// Holds back what could be applied but belongs to something that is held back.
fn hold_together(
    folders: &[GitFolders<'_>],
    ready: &mut [BTreeMap<PathBuf, Ready<'_>>],
    together: &Together,
    held: &mut Vec<(usize, PathBuf, Held)>,
) {
    for (root, found) in ready.iter_mut().enumerate() {
        found.retain(|path, item| {
            let reason = match together {
                Together::Free => return true,
                Together::Everything => {
                    "the call moved a branch, and a path that git tracks is held back"
                }
                Together::Metadata(held) => {
                    let own = folders[root].of(path).map(|(folder, _)| (root, folder));
                    let broken = own.is_some_and(|own| held.contains(&own));
                    if !broken || item.part != Some(Part::Metadata) {
                        return true;
                    }
                    "another part of the same git folder is held back"
                }
            };
            held.push((root, path.clone(), hold_group(reason)));
            false
        });
    }
}

/// Separates what can be applied from what is held, in conflict, or no change.
fn sort_out<'j>(
    stage: &Stage,
    roots: &[RootHandles],
    folders: &GitFolders<'_>,
    index: usize,
    judged: &'j [Judged],
    held: &mut Vec<(usize, PathBuf, Held)>,
) -> io::Result<BTreeMap<PathBuf, Ready<'j>>> {
    let root = &roots[index];
    let (mut host, mut upper) = (Parents::default(), Parents::default());
    let mut ready = BTreeMap::new();
    let root_owner = handles::owner_of(&root.host)?;
    let mut lost: Option<&Path> = None;
    for Judged { change, verdict } in judged {
        let mut conflict = |why: &str| {
            held.push((index, change.path.clone(), conflict::held(why)));
        };
        if let Verdict::Hold(why) = verdict {
            held.push((index, change.path.clone(), why.clone()));
            continue;
        }
        if lost.is_some_and(|folder| change.path.starts_with(folder)) {
            conflict("the host removed the folder that it is in");
            continue;
        }
        if change.lost && matches!(change.what, What::Folder { .. }) {
            lost = Some(&change.path);
        }
        let plain =
            change.path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let Some((folder, name)) = split(&change.path).filter(|_| plain) else {
            conflict("it is not a path below the root");
            continue;
        };
        let (now, stat, owner) = match host.open(root.host.as_fd(), folder, Side::Host) {
            Ok(parent) => {
                let looked = handles::look(parent, name)
                    .and_then(|now| Ok((now, handles::stat(parent, name)?)))
                    .and_then(|(now, stat)| Ok((now, stat, handles::owner_of(parent)?)));
                match looked {
                    Ok(looked) => looked,
                    Err(error) => {
                        conflict(&format!("the host's file cannot be looked at: {error}"));
                        continue;
                    }
                }
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => (Host::Absent, None, root_owner),
            Err(error) => {
                conflict(&format!("its folder cannot be opened: {error}"));
                continue;
            }
        };
        let part = folders.part(&change.path);
        let mut finding = conflict::find(change, &now, stage.claimed());
        if let (What::File(staged), Host::File(facts)) = (&change.what, &now)
            && staged.size == facts.size
            && staged.mode & 0o777 == facts.mode & 0o777
            && let Ok(mine) = upper.open(root.upper.as_fd(), folder, Side::Stage)
            && let Ok(theirs) = host.open(root.host.as_fd(), folder, Side::Host)
            && let (Ok(one), Ok(other)) = (open_file(mine, name), open_file(theirs, name))
            && same_content(&one, &other).unwrap_or(false)
        {
            finding = Finding::NoChange;
        }
        if group::is_index(&change.path) && part.is_some() {
            finding = group::find_index(stage, index, root, &change.path, finding);
        }
        match finding {
            Finding::NoChange => {}
            Finding::Conflict(why) => conflict(why),
            Finding::Applies => {
                let owner =
                    owner.map(|new| stat.map_or(new, |stat: Stat| (stat.st_uid, stat.st_gid)));
                ready.insert(change.path.clone(), Ready { change, now, owner, part });
            }
        }
    }
    Ok(ready)
}

/// Adds the operations of one root.
fn draft_root(
    plan: &mut Plan,
    index: usize,
    root: &RootHandles,
    way: Way,
    ready: &BTreeMap<PathBuf, Ready<'_>>,
    judged: &[Judged],
) -> io::Result<()> {
    let links = count_links(ready);
    let whole = whole_folders(ready, judged, way, &links);
    let mut upper = Parents::default();
    let mut below: Option<PathBuf> = None;
    for (path, item) in ready {
        if below.as_ref().is_some_and(|top| path.starts_with(top)) {
            continue;
        }
        let mut add = |act, old: Option<&Facts>, undo, class| {
            let beside = (way == Way::Copy).then(|| encode(&nearest(root, path, ready)));
            let old = old.map(Old::from);
            let path = path.clone();
            plan.drafts.push(Draft { root: index, path, act, old, beside, undo, class });
        };
        let metadata = item.part == Some(Part::Metadata);
        let removal = if metadata { Class::Metadata } else { Class::Removal };
        // What a folder replaces, or is replaced by, goes first.
        let replaced = match (&item.change.what, &item.now) {
            (What::Folder { .. }, Host::Folder(_)) => false,
            (What::Folder { .. } | What::Removed, _) => item.now != Host::Absent,
            (_, now) => matches!(now, Host::Folder(_)),
        };
        if replaced {
            match &item.now {
                // Empty folders mean nothing to git, and others may use them.
                Host::Folder(_) if metadata => {}
                Host::Folder(facts) => {
                    add(Act::RemoveFolder, Some(facts), Some(("gone", before(&item.now))), removal);
                }
                Host::File(facts) | Host::Link { facts, .. } => {
                    add(Act::Remove, Some(facts), Some(("gone", before(&item.now))), removal);
                }
                Host::Absent | Host::Other(_) => {}
            }
        }
        let old = if replaced { &Host::Absent } else { &item.now };
        match &item.change.what {
            What::Removed | What::Special => {}
            What::Folder { mode } if *old != Host::Absent => {
                let facts = facts_of(old);
                let undo = Some(("mode", before(old)));
                add(Act::Mode { mode: *mode }, facts, undo, Class::Permission);
            }
            What::Folder { mode } => {
                if whole.contains(path) {
                    let expected: Expected<'_> = ready
                        .range(path.clone()..)
                        .take_while(|(inner, _)| inner.starts_with(path))
                        .map(|(inner, item)| (inner.as_path(), item.change))
                        .collect();
                    if let Some(taken) = take_tree(&root.upper, path, &expected, item.owner)? {
                        let class = match item.part {
                            Some(Part::Objects) => Class::Object,
                            _ => Class::Other,
                        };
                        add(taken, None, Some(("tree", State::Absent)), class);
                        below = Some(path.clone());
                        continue;
                    }
                }
                let undo = Some(("made", State::Absent));
                add(Act::Make { mode: *mode }, None, undo, Class::Folder);
                if mode & 0o700 != 0o700 {
                    add(Act::Mode { mode: *mode }, None, None, Class::Permission);
                }
            }
            What::File(_) | What::Link { .. } => {
                let class = match item.part {
                    Some(Part::Metadata) => Class::Metadata,
                    Some(Part::Objects) => Class::Object,
                    Some(Part::Other) | None => Class::Other,
                };
                match ready_file(root, &mut upper, path, item, &links)? {
                    Some((staged, size)) => {
                        let word = if matches!(item.change.what, What::Link { .. }) {
                            "linked"
                        } else {
                            "put"
                        };
                        let undo = Some((word, before(old)));
                        add(Act::Put { staged, size }, facts_of(old), undo, class);
                    }
                    None => {
                        let why = conflict::held("the stage does not hold what was judged");
                        plan.held.push((index, path.clone(), why));
                    }
                }
            }
        }
    }
    Ok(())
}

/// How many of the names of each staged file may be applied.
fn count_links(ready: &BTreeMap<PathBuf, Ready<'_>>) -> HashMap<Identity, u64> {
    let mut counts = HashMap::new();
    for item in ready.values() {
        if let What::File(staged) = &item.change.what
            && staged.links > 1
        {
            *counts.entry(staged.identity).or_default() += 1;
        }
    }
    counts
}

/// New folders of which every entry may be applied as it lies in the stage.
fn whole_folders(
    ready: &BTreeMap<PathBuf, Ready<'_>>,
    judged: &[Judged],
    way: Way,
    links: &HashMap<Identity, u64>,
) -> HashSet<PathBuf> {
    let is_plain = |path: &Path| {
        ready.get(path).is_some_and(|item| {
            let new = item.now == Host::Absent && item.part != Some(Part::Metadata);
            new && match &item.change.what {
                What::Folder { mode } => mode & 0o700 == 0o700,
                What::File(staged) => {
                    staged.links == 1 || links.get(&staged.identity) == Some(&staged.links)
                }
                What::Link { .. } => true,
                What::Removed | What::Special => false,
            }
        })
    };
    if way == Way::Copy {
        return HashSet::new();
    }
    let mut broken: HashSet<&Path> = HashSet::new();
    for Judged { change, .. } in judged {
        if !is_plain(&change.path) {
            for above in change.path.ancestors() {
                if !broken.insert(above) {
                    break;
                }
            }
        }
    }
    let is_folder = |item: &Ready<'_>| matches!(item.change.what, What::Folder { .. });
    let whole =
        ready.iter().filter(|(path, item)| is_folder(item) && !broken.contains(path.as_path()));
    whole.map(|(path, _)| path.clone()).collect()
}

/// Makes a staged file or symlink fit for its place; which it is, and its length. `None` if it is not what
/// was judged.
fn ready_file(
    root: &RootHandles,
    upper: &mut Parents,
    path: &Path,
    item: &Ready<'_>,
    links: &HashMap<Identity, u64>,
) -> io::Result<Option<(Identity, u64)>> {
    let Some((folder, name)) = split(path) else { return Ok(None) };
    let Ok(parent) = upper.open(root.upper.as_fd(), folder, Side::Stage) else { return Ok(None) };
    let Some(stat) = handles::stat(parent, name)? else { return Ok(None) };
    let mode = match &item.change.what {
        What::File(staged) => {
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if !is_file || handles::identity(&stat) != staged.identity {
                return Ok(None);
            }
            if staged.links > 1 && links.get(&staged.identity) != Some(&staged.links) {
                // Another name of it stays in the stage: what is applied must be a file of its own.
                let slot = |name| -> io::Result<Slot> {
                    let folder = rustix::io::fcntl_dupfd_cloexec(parent, 3)?;
                    Ok(Slot { folder, name })
                };
                let temporary = crate::workspace::temp::temp_name()?.into();
                let (from, to) = (slot(name.to_owned())?, slot(temporary)?);
                copy(&from, &to)?;
                rustix::fs::renameat(parent, &to.name, parent, name)?;
            }
            Some(staged.mode)
        }
        What::Link { target } => {
            let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
            if !is_link || handles::target(parent, name)? != *target {
                return Ok(None);
            }
            None
        }
        _ => return Ok(None),
    };
    let Some(stat) = handles::stat(parent, name)? else { return Ok(None) };
    handles::clean(parent, name, &stat, mode, item.owner)?;
    Ok(Some((handles::identity(&stat), handles::facts(&stat).size)))
}

/// The nearest folder above a path that the host has and keeps: a folder in which a copy waits could not
/// be removed.
fn nearest(root: &RootHandles, path: &Path, ready: &BTreeMap<PathBuf, Ready<'_>>) -> PathBuf {
    let stays = |above: &&Path| {
        ready.get(*above).is_none_or(|item| matches!(item.change.what, What::Folder { .. }))
    };
    let above = path.ancestors().skip(1).filter(stays);
    let mut there = above.filter(|above| handles::open_folder(&root.host, above).is_ok());
    there.next().unwrap_or(Path::new("")).to_owned()
}

fn facts_of(host: &Host) -> Option<&Facts> {
    match host {
        Host::File(facts) | Host::Folder(facts) | Host::Link { facts, .. } => Some(facts),
        Host::Absent | Host::Other(_) => None,
    }
}

/// What undo notes of what the host has.
fn before(host: &Host) -> State {
    let stamp = |facts: &Facts| {
        let Moment { seconds, nanoseconds } = facts.ctime;
        let Identity { dev, ino } = facts.identity;
        Some(Stamp::new(dev, ino, (seconds, u64::from(nanoseconds))))
    };
    match host {
        Host::Absent => State::Absent,
        Host::File(facts) => {
            State::File { mode: facts.mode, size: facts.size, digest: None, stamp: stamp(facts) }
        }
        Host::Folder(facts) => State::Folder { mode: facts.mode, stamp: stamp(facts) },
        Host::Link { target, .. } => State::Link { target: encode(Path::new(target)) },
        Host::Other(_) => State::Other,
    }
}

/// Everything that would be applied is held back as part of a whole.
pub(super) fn hold_group(reason: &str) -> Held {
    Held {
        why: Why::Group,
        reason: reason.to_owned(),
        rule: "built-in/git".to_owned(),
        next: "look at the other held paths of this call, then apply or discard all of it"
            .to_owned(),
    }
}
