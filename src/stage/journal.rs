//! What an apply is about to do, written down before it does it.
//!
//! The file holds a head, one line for each operation, and marks that are added as the apply goes on.
//! It appears under its name complete. Operations find out from the file system whether they have
//! happened, so a death at any moment is followed by the same run once more:
//!
//! ```text
//! head, operations        nothing is changed; copies beside their targets may be there
//! "prepared"              copies are complete; operations happen one after the other
//! "acted": skipped        all happened, or are skipped as conflicts; only tidying is left
//! (file removed)          over
//! ```
//!
//! Non-goals: history; that is the business of `undo`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::change::{Facts, Moment, Why};
use super::folder::{HeldRow, JOURNAL, Stage};
use crate::ids::Identity;
use crate::undo::names::decode;

/// The form of the file; another version's journal is left alone.
pub(super) const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub version: u32,
    /// How each root's files get to their places.
    pub ways: Vec<Way>,
    pub held: Vec<HeldRow>,
    pub unity: Unity,
    /// Lock files of git that are held meanwhile: root and encoded path.
    pub locks: Vec<(usize, String)>,
    pub operations: usize,
    /// Whether everything that is taken away is kept for undo.
    pub undo: bool,
}

/// How a root's files get to their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// The stage is in the same mount: the staged files themselves.
    Rename,
    /// By copies under temporary names beside their targets.
    Copy,
}

/// What must happen together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unity {
    /// Git metadata, which are the last operations from this index on.
    From(usize),
    /// Everything: the call moved a branch. Git metadata begin at this index.
    Whole(usize),
}

/// An operation that did not happen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Skipped {
    pub index: usize,
    pub why: Why,
    pub reason: String,
}

/// One operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operation {
    pub root: usize,
    /// Encoded as `undo` encodes paths.
    pub path: String,
    pub act: Act,
    /// What has the name before.
    pub old: Option<Old>,
    /// The row of `undo`.
    pub row: i64,
    /// The name under which `undo` keeps the content, if it does.
    pub image: Option<String>,
    /// Where a copy waits, for a root whose files are copied: the nearest folder that was there.
    pub beside: Option<String>,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Act {
    /// A file or symlink goes.
    Remove,
    /// An empty folder goes.
    RemoveFolder,
    /// A folder is made, open for its owner.
    Make { mode: u32 },
    /// A folder gets other permissions.
    Mode { mode: u32 },
    /// A staged file or symlink gets its name.
    Put { staged: Identity, size: u64 },
    /// A staged folder with all that is in it gets its name.
    Tree { staged: Identity, files: u64, folders: u64, size: u64 },
}

/// What had a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Old {
    pub identity: Identity,
    pub mode: u32,
    pub size: u64,
    pub links: u64,
    mtime: (i64, u32),
    ctime: (i64, u32),
}

impl From<&Facts> for Old {
    fn from(facts: &Facts) -> Self {
        let pair = |moment: Moment| (moment.seconds, moment.nanoseconds);
        Self {
            identity: facts.identity,
            mode: facts.mode,
            size: facts.size,
            links: facts.links,
            mtime: pair(facts.mtime),
            ctime: pair(facts.ctime),
        }
    }
}

impl Old {
    /// Whether this is the same file with the same content, as far as its inode tells.
    pub(super) fn is_moved(&self, now: &Facts) -> bool {
        let now = Self::from(now);
        (now.identity, now.size, now.mtime) == (self.identity, self.size, self.mtime)
    }

    /// Whether it is untouched. The change time of a file with further names moves with those.
    pub(super) fn is_untouched(&self, now: &Facts) -> bool {
        let same = self.is_moved(now) && now.mode == self.mode;
        same && (self.links > 1 || Self::from(now).ctime == self.ctime)
    }
}

impl Operation {
    pub(super) fn path(&self) -> PathBuf {
        decode(&self.path)
    }
}

/// A line that is added while the apply goes on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    /// Copies are complete.
    Prepared,
    /// All operations have happened but these, which were conflicts.
    Acted(Vec<Skipped>),
}

/// A journal that is not over.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    pub head: Head,
    pub operations: Vec<Operation>,
    pub marks: Vec<Mark>,
}

impl Journal {
    /// Writes a journal. It has its name when it is complete.
    pub(super) fn begin(stage: &Stage, head: Head, operations: Vec<Operation>) -> io::Result<Self> {
        let path = stage.folder().join(JOURNAL);
        let new = path.with_extension("new");
        let mut writer = BufWriter::new(File::create(&new)?);
        line(&mut writer, &head)?;
        for operation in &operations {
            line(&mut writer, operation)?;
        }
        writer.flush()?;
        drop(writer);
        fs::rename(&new, &path)?;
        let file = OpenOptions::new().append(true).open(&path)?;
        Ok(Self { file, path, head, operations, marks: Vec::new() })
    }

    /// The journal of a stage, if it has one.
    pub(super) fn open(stage: &Stage) -> io::Result<Option<Self>> {
        Self::read(stage.folder().join(JOURNAL))
    }

    /// The journal at a path, if it is there.
    pub(super) fn read(path: PathBuf) -> io::Result<Option<Self>> {
        let file = match OpenOptions::new().read(true).append(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut lines = BufReader::new(&file).split(b'\n');
        let mut next = || -> io::Result<Vec<u8>> {
            lines.next().transpose()?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        };
        let head: Head = serde_json::from_slice(&next()?)?;
        if head.version != VERSION {
            return Err(io::Error::other(format!("a journal of version {}", head.version)));
        }
        let mut operations = Vec::new();
        for _ in 0..head.operations {
            operations.push(serde_json::from_slice(&next()?)?);
        }
        // A mark that is cut off was not made.
        let marks = lines.map_while(|text| serde_json::from_slice(&text.ok()?).ok()).collect();
        Ok(Some(Self { file, path, head, operations, marks }))
    }

    /// Adds a mark.
    pub(super) fn mark(&mut self, mark: Mark) -> io::Result<()> {
        let mut text = serde_json::to_vec(&mark)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        self.marks.push(mark);
        Ok(())
    }

    pub(super) fn is_prepared(&self) -> bool {
        !self.marks.is_empty()
    }

    /// The conflicts, if all operations have happened.
    pub(super) fn acted(&self) -> Option<&[Skipped]> {
        self.marks.iter().find_map(|mark| match mark {
            Mark::Acted(skipped) => Some(skipped.as_slice()),
            Mark::Prepared => None,
        })
    }

    /// Removes it: the apply is over.
    pub(super) fn end(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

fn line(writer: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *writer, value)?;
    writer.write_all(b"\n")
}
