//! Whether staged commits change what a call may not change.
//!
//! Duty: find the refs that a stage changes and the commits that it brings, and name the entries in
//! which the tree of each differs from the one before it: of a ref from its old value, or the old `HEAD`
//! if it is new, of a commit from its first parent. So it does not matter what leads to a commit: a ref, a
//! reflog, a stash, a later call. Non-goals: whether the objects are what their names say (`import`), and
//! which entries may differ. Trust boundary: refs and objects of the stage are the adversary's.
//! Whatever is not understood is an error, and an error means that all refs are held back.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Instant;

use rustix::io::Errno;

use super::layers::{Layers, View, parse_id};
use super::objects::staged_objects;
use super::run::Git;

/// Most refs that one call may change.
const MAX_REFS: usize = 10_000;

/// The trees without entries, which git knows without an object.
const EMPTY_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// What is asked.
pub struct Question<'a> {
    /// The host's git folder. For a linked worktree: the common one.
    pub host: BorrowedFd<'a>,
    /// The same folder in the stage: the upper layer.
    pub staged: BorrowedFd<'a>,
    /// The commits that the stage brings.
    pub commits: &'a [String],
    /// The path of an entry that may not differ, if one of them may not.
    pub held: &'a dyn Fn(&[Entry]) -> Option<Vec<u8>>,
    /// The host's git, by an absolute path that does not lead through the workspace.
    pub git: &'a Path,
    /// A folder that only this program writes, for a throw-away git folder.
    pub room: &'a Path,
    /// When the answer must be there.
    pub deadline: Instant,
}

/// What a commit has at a path where the one before it has something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Below the top of the working tree.
    pub path: Vec<u8>,
    /// 0 where nothing is left.
    pub mode: u32,
    /// The object id, raw.
    pub id: Vec<u8>,
    /// The target of a symlink.
    pub target: Option<Vec<u8>>,
}

/// The mode of a symlink in a tree.
pub const LINK: u32 = 0o120_000;

/// A ref or a commit that makes a change which it may not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRef {
    /// Its name: `HEAD`, `refs/heads/main`, `worktrees/NAME/HEAD`, `the commit ID`.
    pub name: Vec<u8>,
    /// Whether it is a commit, whatever leads to it.
    pub is_commit: bool,
    /// Where.
    pub path: Vec<u8>,
}

/// Why it is not known what a ref changes. All refs are then held back.
#[derive(Debug, thiserror::Error)]
pub enum RefsError {
    /// A file of a layer cannot be read.
    #[error("the refs cannot be read")]
    Read(#[source] Errno),
    /// A file of a layer, of the scratch folder or a pipe fails.
    #[error("the refs cannot be read")]
    Io(#[source] std::io::Error),
    /// Something has another form than git writes.
    #[error("{0} is not as git writes it")]
    Odd(&'static str),
    /// Refs are kept in the reftable format.
    #[error("refs in the reftable format are not supported")]
    Reftable,
    /// More refs, objects or changes than the limits.
    #[error("too many refs or changes")]
    TooMany,
    /// Git cannot be started.
    #[error("git cannot be started")]
    NoGit(#[source] std::io::Error),
    /// Git failed: an object is missing or damaged.
    #[error("git cannot compare the commits")]
    GitFailed,
    /// An object is not what its name says, or there are two of one name.
    #[error("an object does not have the content that its name stands for")]
    Forged,
    /// Git did not end in time.
    #[error("git did not end in time")]
    Deadline,
}

/// The refs and commits to hold back because of what they change. Each is named with the first such
/// path.
///
/// # Errors
///
/// It cannot be known. All refs of the git folder must then be held back.
pub fn check(question: &Question<'_>) -> Result<Vec<HeldRef>, RefsError> {
    let layers = Layers::open(question.host, question.staged)?;
    let mut moves = moves(&layers)?;
    let first = moves.first().and_then(|first| first.ids().next());
    let Some(digits) = first.or(question.commits.first().map(String::as_str)).map(str::len) else {
        return Ok(Vec::new());
    };
    if moves.iter().flat_map(Move::ids).any(|id| id.len() != digits) {
        return Err(RefsError::Odd("an object id"));
    }
    let objects = staged_objects(question.staged)?;
    let git = Git::new(
        question.git,
        question.host,
        objects.as_ref(),
        question.room,
        digits,
        question.deadline,
    )?;
    moves.extend(from_parents(&git, question.commits)?);
    let trees = trees(&git, &moves)?;
    let empty = if digits == 64 { EMPTY_SHA256 } else { EMPTY_SHA1 };
    let tree = |id: &Option<String>| match id {
        None => Ok(empty),
        Some(id) => trees.get(id).map(String::as_str).ok_or(RefsError::GitFailed),
    };
    let mut pairs = Pairs::new();
    for moved in &moves {
        pairs.insert((tree(&moved.old)?, tree(&moved.new)?), Vec::new());
    }
    compare(&git, &mut pairs)?;
    read_links(&git, pairs.values_mut().flatten())?;
    let first: BTreeMap<(&str, &str), Vec<u8>> = pairs
        .iter()
        .filter_map(|(pair, entries)| Some((*pair, (question.held)(entries)?)))
        .collect();
    let mut held = Vec::new();
    for moved in moves {
        if let Some(path) = first.get(&(tree(&moved.old)?, tree(&moved.new)?)) {
            let (name, is_commit) = (moved.name, moved.is_commit);
            held.push(HeldRef { name, is_commit, path: path.clone() });
        }
    }
    Ok(held)
}

/// The entries in which two trees differ.
type Pairs<'t> = BTreeMap<(&'t str, &'t str), Vec<Entry>>;

/// Reads what the symlinks among entries lead to, in a git folder.
///
/// # Errors
///
/// One of them cannot be read.
pub fn read_targets(question: &Question<'_>, entries: &mut [Entry]) -> Result<(), RefsError> {
    let Some(link) = entries.iter().find(|entry| entry.mode == LINK) else { return Ok(()) };
    let (digits, objects) = (link.id.len() * 2, staged_objects(question.staged)?);
    let (room, deadline) = (question.room, question.deadline);
    let git = Git::new(question.git, question.host, objects.as_ref(), room, digits, deadline)?;
    read_links(&git, entries.iter_mut())
}

fn read_links<'e>(
    git: &Git<'_>,
    entries: impl Iterator<Item = &'e mut Entry>,
) -> Result<(), RefsError> {
    let mut links: Vec<&mut Entry> = entries.filter(|entry| entry.mode == LINK).collect();
    if links.is_empty() {
        return Ok(());
    }
    let asked: Vec<String> = links.iter().map(|link| hex(&link.id)).collect();
    let answer =
        git.run(&["cat-file", "--batch", "--buffer"], (asked.join("\n") + "\n").as_bytes())?;
    let mut rest = answer.as_slice();
    for (link, id) in links.iter_mut().zip(asked) {
        let heading = format!("{id} blob ");
        rest = rest.strip_prefix(heading.as_bytes()).ok_or(RefsError::GitFailed)?;
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or(RefsError::GitFailed)?;
        let length = std::str::from_utf8(&rest[..end]).ok().and_then(|text| text.parse().ok());
        let length: usize = length.ok_or(RefsError::GitFailed)?;
        let target = rest.get(end + 1..).and_then(|rest| rest.split_at_checked(length));
        let (target, after) = target.ok_or(RefsError::GitFailed)?;
        link.target = Some(target.to_vec());
        rest = after.strip_prefix(b"\n").ok_or(RefsError::GitFailed)?;
    }
    Ok(())
}

/// Each new commit as a move from its first parent, or from nothing. What a merge takes from another parent
/// differs from the first.
fn from_parents(git: &Git<'_>, commits: &[String]) -> Result<Vec<Move>, RefsError> {
    if commits.is_empty() {
        return Ok(Vec::new());
    }
    if commits.len() > MAX_REFS {
        return Err(RefsError::TooMany);
    }
    let input = commits.join("\n") + "\n";
    let answer =
        git.run(&["rev-list", "--stdin", "--no-walk=unsorted", "--parents"], input.as_bytes())?;
    let lines = answer.strip_suffix(b"\n").ok_or(RefsError::GitFailed)?;
    let moves: Vec<Move> = lines
        .split(|byte| *byte == b'\n')
        .map(|line| {
            let mut ids = line.split(|byte| *byte == b' ').map(parse_id);
            let commit = ids.next().ok_or(RefsError::GitFailed)??;
            Ok(Move {
                name: format!("the commit {commit}").into_bytes(),
                is_commit: true,
                old: ids.next().transpose()?,
                new: Some(commit),
            })
        })
        .collect::<Result<_, RefsError>>()?;
    if moves.len() == commits.len() { Ok(moves) } else { Err(RefsError::GitFailed) }
}

/// An id in hexadecimal digits.
fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A ref that has another value now.
#[derive(Debug)]
struct Move {
    name: Vec<u8>,
    is_commit: bool,
    old: Option<String>,
    new: Option<String>,
}

impl Move {
    fn ids(&self) -> impl Iterator<Item = &str> {
        [&self.old, &self.new].into_iter().filter_map(|id| id.as_deref())
    }
}

fn moves(layers: &Layers<'_>) -> Result<Vec<Move>, RefsError> {
    let head = layers.resolve(View::Host, b"HEAD")?;
    let new = layers.resolve(View::Staged, b"HEAD")?;
    let mut moves = Vec::new();
    if new != head {
        // Without a commit too: a checkout of nothing removes what is covered.
        moves.push(Move { name: b"HEAD".to_vec(), is_commit: false, old: head.clone(), new });
    }
    let touched = layers.touched()?.into_iter().chain(layers.worktree_heads()?);
    for name in touched {
        if name.starts_with(b"refs/replace/") {
            return Err(RefsError::Odd("a replaced object"));
        }
        let Some(new) = layers.resolve(View::Staged, &name)? else {
            continue;
        };
        let old = layers.resolve(View::Host, &name)?.or_else(|| head.clone());
        if old.as_ref() != Some(&new) {
            if moves.len() == MAX_REFS {
                return Err(RefsError::TooMany);
            }
            moves.push(Move { name, is_commit: false, old, new: Some(new) });
        }
    }
    for (name, new) in layers.kept_ids()? {
        let (old, new) = (head.clone(), Some(new));
        if old != new {
            moves.push(Move { name, is_commit: false, old, new });
        }
    }
    Ok(moves)
}

/// The tree of each object that the moves name: commits and tags are followed.
fn trees(git: &Git<'_>, moves: &[Move]) -> Result<BTreeMap<String, String>, RefsError> {
    let mut asked: Vec<&str> = moves.iter().flat_map(Move::ids).collect();
    asked.sort_unstable();
    asked.dedup();
    let input: String = asked.iter().map(|id| format!("{id}^{{tree}}\n")).collect();
    let format = "--batch-check=%(objecttype) %(objectname)";
    let answer = git.run(&["cat-file", "--buffer", format], input.as_bytes())?;
    let lines: Vec<&[u8]> = answer.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.len() != asked.len() {
        return Err(RefsError::GitFailed);
    }
    let mut trees = BTreeMap::new();
    for (id, line) in asked.into_iter().zip(lines) {
        let tree = line
            .strip_prefix(b"tree ")
            .and_then(|line| line.strip_suffix(b"\n"))
            .ok_or(RefsError::GitFailed)?;
        let tree = parse_id(tree)?;
        if tree.len() != id.len() {
            return Err(RefsError::GitFailed);
        }
        trees.insert(id.to_owned(), tree);
    }
    Ok(trees)
}

/// Finds the entries in which the trees of each pair differ.
fn compare(git: &Git<'_>, pairs: &mut Pairs<'_>) -> Result<(), RefsError> {
    pairs.retain(|(old, new), _| old != new);
    if pairs.is_empty() {
        return Ok(());
    }
    let input: String = pairs.keys().map(|(old, new)| format!("{old} {new}\n")).collect();
    let args = [
        "diff-tree",
        "--stdin",
        "-r",
        "-z",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=none",
    ];
    let answer = git.run(&args, input.as_bytes())?;
    let mut rest = answer.as_slice();
    for ((old, new), found) in pairs.iter_mut() {
        // Each pair is repeated on a line, with its differences after it.
        let heading = format!("{old} {new}\n");
        rest = rest.strip_prefix(heading.as_bytes()).ok_or(RefsError::GitFailed)?;
        while rest.first() == Some(&b':') {
            let (facts, after) = split_nul(rest)?;
            let (path, after) = split_nul(after)?;
            let (mode, id) = new_side(facts).ok_or(RefsError::GitFailed)?;
            found.push(Entry { path: path.to_vec(), mode, id, target: None });
            rest = after;
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(RefsError::GitFailed) }
}

/// The mode and the raw id of the new side in `:OLD-MODE NEW-MODE OLD-ID NEW-ID STATUS`.
fn new_side(facts: &[u8]) -> Option<(u32, Vec<u8>)> {
    let mut words = std::str::from_utf8(facts).ok()?.split(' ');
    let mode = u32::from_str_radix(words.nth(1)?, 8).ok()?;
    let id = words.nth(1)?;
    let byte = |at: usize| u8::from_str_radix(id.get(at..at + 2)?, 16).ok();
    Some((mode, (0..id.len()).step_by(2).map(byte).collect::<Option<_>>()?))
}

fn split_nul(bytes: &[u8]) -> Result<(&[u8], &[u8]), RefsError> {
    let end = bytes.iter().position(|byte| *byte == 0).ok_or(RefsError::GitFailed)?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}
