//! Whether staged commits change what a call may not change.
//!
//! Duty: find the refs that a stage changes, and compare the tree of each with the one before it. A
//! ref that is new is compared with the old `HEAD`. Non-goals: the objects themselves, reflogs,
//! what is reachable behind a tip. Trust boundary: refs and objects of the stage are the
//! adversary's. Whatever is not understood is an error, and an error means that all refs are held
//! back.

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
    /// Whether a commit may not make this change.
    pub is_held: &'a dyn Fn(&Entry<'_>) -> bool,
    /// The host's git, by an absolute path that does not lead through the workspace.
    pub git: &'a Path,
    /// A folder that only this program writes, for a throw-away git folder.
    pub room: &'a Path,
    /// When the answer must be there.
    pub deadline: Instant,
}

/// What a commit has at a path where the one before it has something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Below the top of the working tree.
    pub path: &'a [u8],
    /// 0 where nothing is left.
    pub mode: u32,
    /// The object id, raw.
    pub id: &'a [u8],
}

/// A ref whose new value makes a change that it may not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRef {
    /// Its name: `HEAD`, `refs/heads/main`, `worktrees/NAME/HEAD`.
    pub name: Vec<u8>,
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
    /// Git did not end in time.
    #[error("git did not end in time")]
    Deadline,
}

/// The refs to hold back because of what their new value changes. Each is named with the
/// first such path.
///
/// # Errors
///
/// It cannot be known. All refs of the git folder must then be held back.
pub fn check(question: &Question<'_>) -> Result<Vec<HeldRef>, RefsError> {
    let layers = Layers::open(question.host, question.staged)?;
    let moves = moves(&layers)?;
    let Some(digits) = moves.first().and_then(|first| first.ids().next()).map(str::len) else {
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
    let trees = trees(&git, &moves)?;
    let empty = if digits == 64 { EMPTY_SHA256 } else { EMPTY_SHA1 };
    let tree = |id: &Option<String>| match id {
        None => Ok(empty),
        Some(id) => trees.get(id).map(String::as_str).ok_or(RefsError::GitFailed),
    };
    let mut pairs: BTreeMap<(&str, &str), Option<Vec<u8>>> = BTreeMap::new();
    for moved in &moves {
        pairs.insert((tree(&moved.old)?, tree(&moved.new)?), None);
    }
    compare(&git, &mut pairs, question.is_held)?;
    let mut held = Vec::new();
    for moved in &moves {
        if let Some(Some(path)) = pairs.get(&(tree(&moved.old)?, tree(&moved.new)?)) {
            held.push(HeldRef { name: moved.name.clone(), path: path.clone() });
        }
    }
    Ok(held)
}

/// A ref that has another value now.
#[derive(Debug)]
struct Move {
    name: Vec<u8>,
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
        moves.push(Move { name: b"HEAD".to_vec(), old: head.clone(), new });
    }
    let touched = layers.touched()?.into_iter().chain(layers.worktree_heads()?);
    for name in touched {
        let Some(new) = layers.resolve(View::Staged, &name)? else {
            continue;
        };
        let old = layers.resolve(View::Host, &name)?.or_else(|| head.clone());
        if old.as_ref() != Some(&new) {
            if moves.len() == MAX_REFS {
                return Err(RefsError::TooMany);
            }
            moves.push(Move { name, old, new: Some(new) });
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

/// Finds the first difference between the trees of each pair that may not be made.
fn compare(
    git: &Git<'_>,
    pairs: &mut BTreeMap<(&str, &str), Option<Vec<u8>>>,
    is_held: &dyn Fn(&Entry<'_>) -> bool,
) -> Result<(), RefsError> {
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
            if found.is_none() && is_held(&Entry { path, mode, id: &id }) {
                *found = Some(path.to_vec());
            }
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
