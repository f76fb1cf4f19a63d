//! Reads an index: header, entries, extensions, checksum. The layout is in `gitformat-index(5)`.
//!
//! Stricter than git where git is lenient: paths are checked as for a checkout, padding is zero,
//! modes and lengths are as git writes them.

use std::ops::Range;

use ring::digest;

use super::IndexError;
use super::input::Input;

/// Longest index. One of 500,000 files takes about 60 MiB.
pub const MAX_INDEX: usize = 256 * 1024 * 1024;

/// Longest path of an entry.
pub(super) const MAX_PATH: usize = 32 * 1024;

/// Sum of all paths. Version 4 shares prefixes: a few bytes can stand for a long path.
const MAX_PATHS: usize = MAX_INDEX;

/// Times, device, inode, mode, owner, size.
const STAT: usize = 40;
const MODE: Range<usize> = 24..28;

const FLAG_EXTENDED: u16 = 0x4000;
const FLAG_STAGE: u16 = 0x3000;
const FLAG_LENGTH: u16 = 0x0fff;
/// The working tree's file is not looked at.
pub(super) const EXTENDED_SKIP_WORKTREE: u16 = 0x4000;
const EXTENDED_INTENT_TO_ADD: u16 = 0x2000;

const FOLDER: u32 = 0o040_000;

/// The hash of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
}

impl Hash {
    /// Its length in bytes.
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    pub(super) fn of(self, bytes: &[u8]) -> digest::Digest {
        let algorithm = match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
        };
        digest::digest(algorithm, bytes)
    }
}

/// An index that was read in full.
#[derive(Debug)]
pub struct Index<'a> {
    hash: Hash,
    version: u32,
    entries: Vec<Entry<'a>>,
    paths: Vec<u8>,
    extensions: Vec<Extension<'a>>,
}

/// One path of an index, at one stage of a merge.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    pub(super) stat: &'a [u8],
    pub(super) id: &'a [u8],
    /// Without the length, and without the mark of extended flags.
    pub(super) flags: u16,
    pub(super) extended: u16,
    path: Range<usize>,
}

/// What follows the entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extension<'a> {
    pub(super) name: [u8; 4],
    pub(super) data: &'a [u8],
}

impl Extension<'_> {
    /// Whether a reader that does not know it must refuse the index.
    pub(super) fn is_mandatory(&self) -> bool {
        !self.name[0].is_ascii_uppercase()
    }
}

impl Entry<'_> {
    /// The mode: kind and permissions.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.stat[MODE].iter().fold(0, |mode, byte| (mode << 8) | u32::from(*byte))
    }

    /// The object id, raw.
    #[must_use]
    pub fn id(&self) -> &[u8] {
        self.id
    }

    /// 0, or 1 to 3 in a merge that is not finished.
    #[must_use]
    pub fn stage(&self) -> u16 {
        (self.flags & FLAG_STAGE) >> 12
    }

    /// Whether it stands for a whole folder outside the sparse checkout.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.mode() == FOLDER
    }

    /// Whether git leaves the working tree's file alone.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        self.extended & EXTENDED_SKIP_WORKTREE != 0
    }

    /// All flags that are no stat data: assume-valid, stage, skip-worktree, intent-to-add.
    pub(super) fn marks(&self) -> (u16, u16) {
        (self.flags, self.extended)
    }
}

impl<'a> Index<'a> {
    /// Reads an index, whose hash is that of its checksum.
    ///
    /// # Errors
    ///
    /// It breaks a rule of the format or a limit of this program.
    pub fn read(bytes: &'a [u8]) -> Result<Self, IndexError> {
        if bytes.len() > MAX_INDEX {
            return Err(IndexError::TooLarge);
        }
        let fits = [Hash::Sha1, Hash::Sha256].map(|hash| Checksum::of(bytes, hash));
        match fits {
            [Checksum::Right, _] => Self::body(bytes, Hash::Sha1),
            [_, Checksum::Right] => Self::body(bytes, Hash::Sha256),
            // `index.skipHash`: zeros stand for the checksum, so only one hash lets it be read.
            [Checksum::None, Checksum::None] => {
                Self::body(bytes, Hash::Sha1).or_else(|_| Self::body(bytes, Hash::Sha256))
            }
            [Checksum::None, Checksum::Wrong] => Self::body(bytes, Hash::Sha1),
            _ => Err(IndexError::Checksum),
        }
    }

    /// Reads an index that must use `hash`.
    pub(super) fn read_as(bytes: &'a [u8], hash: Hash) -> Result<Self, IndexError> {
        if bytes.len() > MAX_INDEX {
            return Err(IndexError::TooLarge);
        }
        match Checksum::of(bytes, hash) {
            Checksum::Right | Checksum::None => Self::body(bytes, hash),
            Checksum::Wrong => match Self::read(bytes) {
                Ok(_) => Err(IndexError::OtherHash),
                Err(error) => Err(error),
            },
        }
    }

    /// Which hash it uses.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The version of the format.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// The path of an entry of this index, below the top of the working tree.
    #[must_use]
    pub fn path(&self, entry: &Entry<'_>) -> &[u8] {
        self.paths.get(entry.path.clone()).unwrap_or_default()
    }

    pub(super) fn extensions(&self) -> &[Extension<'a>] {
        &self.extensions
    }

    #[cfg(test)]
    pub(super) fn body_reads(bytes: &'a [u8], hash: Hash) -> bool {
        Self::body(bytes, hash).is_ok()
    }

    fn body(bytes: &'a [u8], hash: Hash) -> Result<Self, IndexError> {
        let end = bytes.len().saturating_sub(hash.length());
        let mut input = Input { bytes: &bytes[..end], at: 0 };
        if input.take(4, "the header")? != b"DIRC" {
            return Err(IndexError::Malformed { what: "the signature" });
        }
        let version = input.number("the header")?;
        if !(2..=4).contains(&version) {
            return Err(IndexError::Version(version));
        }
        let count = input.number("the header")? as usize;
        let least = STAT + hash.length() + 4;
        if count > input.left() / least {
            return Err(IndexError::Truncated { what: "the entries" });
        }
        let mut index = Self {
            hash,
            version,
            entries: Vec::with_capacity(count),
            paths: Vec::new(),
            extensions: Vec::new(),
        };
        for _ in 0..count {
            let entry = index.entry(&mut input)?;
            index.check_order(&entry)?;
            index.entries.push(entry);
        }
        while input.left() > 0 {
            index.extension(&mut input)?;
        }
        if index.entries.iter().any(|entry| entry.path.is_empty()) {
            return Err(IndexError::UnsafePath(Vec::new()));
        }
        let sparse = index.extensions.iter().any(|extension| &extension.name == b"sdir");
        if !sparse && index.entries.iter().any(Entry::is_folder) {
            return Err(IndexError::Malformed { what: "a folder without a sparse index" });
        }
        Ok(index)
    }

    fn entry(&mut self, input: &mut Input<'a>) -> Result<Entry<'a>, IndexError> {
        const WHAT: &str = "an entry";
        let start = input.at;
        let stat = input.take(STAT, WHAT)?;
        let id = input.take(self.hash.length(), WHAT)?;
        let flags = input.short(WHAT)?;
        let mut extended = 0;
        if flags & FLAG_EXTENDED != 0 {
            if self.version == 2 {
                return Err(IndexError::Malformed { what: "extended flags in version 2" });
            }
            extended = input.short(WHAT)?;
            if extended & !(EXTENDED_SKIP_WORKTREE | EXTENDED_INTENT_TO_ADD) != 0 {
                return Err(IndexError::Malformed { what: "unknown flags" });
            }
        }
        let path = self.read_path(input)?;
        if self.version < 4 {
            let padding = 8 - (input.at - start) % 8;
            if input.take(padding, WHAT)?.iter().any(|byte| *byte != 0) {
                return Err(IndexError::Malformed { what: "padding that is not zero" });
            }
        }
        if usize::from(flags & FLAG_LENGTH) != path.len().min(usize::from(FLAG_LENGTH)) {
            return Err(IndexError::Malformed { what: "the length of a path" });
        }
        let flags = flags & !(FLAG_EXTENDED | FLAG_LENGTH);
        let entry = Entry { stat, id, flags, extended, path };
        let path = self.path(&entry);
        let path = match entry.mode() {
            0o100_644 | 0o100_755 | 0o120_000 | 0o160_000 => path,
            FOLDER if entry.is_skipped() && entry.stage() == 0 => path
                .strip_suffix(b"/")
                .ok_or(IndexError::Malformed { what: "the path of a folder" })?,
            _ => return Err(IndexError::Malformed { what: "a mode" }),
        };
        // In a split index, it replaces an entry of the other file. Told apart at the end.
        if !path.is_empty() && !is_safe(path) {
            return Err(IndexError::UnsafePath(path.to_vec()));
        }
        Ok(entry)
    }

    /// Reads the path of an entry, without what pads it. The one before it is the last in `paths`.
    fn read_path(&mut self, input: &mut Input<'a>) -> Result<Range<usize>, IndexError> {
        let before = self.entries.last().map_or(0..0, |entry| entry.path.clone());
        let kept = if self.version == 4 {
            let dropped = input.varint()?;
            before
                .len()
                .checked_sub(dropped)
                .ok_or(IndexError::Malformed { what: "the prefix of a path" })?
        } else {
            0
        };
        let rest = input.until_nul(self.version)?;
        if kept + rest.len() > MAX_PATH || self.paths.len() + kept + rest.len() > MAX_PATHS {
            return Err(IndexError::TooLarge);
        }
        let start = self.paths.len();
        self.paths.extend_from_within(before.start..before.start + kept);
        self.paths.extend_from_slice(rest);
        Ok(start..self.paths.len())
    }

    fn check_order(&self, entry: &Entry<'_>) -> Result<(), IndexError> {
        let Some(last) = self.entries.last() else {
            return Ok(());
        };
        let (before, path) = (self.path(last), self.path(entry));
        if path.is_empty() {
            return Ok(());
        }
        // Several entries of one stage are left by merges with more than one base.
        let ordered =
            before < path || (before == path && last.stage() > 0 && last.stage() <= entry.stage());
        if ordered { Ok(()) } else { Err(IndexError::Malformed { what: "the order of entries" }) }
    }

    fn extension(&mut self, input: &mut Input<'a>) -> Result<(), IndexError> {
        const WHAT: &str = "an extension";
        let mut name = [0; 4];
        name.copy_from_slice(input.take(4, WHAT)?);
        let length = input.number(WHAT)? as usize;
        let extension = Extension { name, data: input.take(length, WHAT)? };
        match &name {
            b"link" => return Err(IndexError::SplitIndex),
            b"sdir" if length > 0 => {
                return Err(IndexError::Malformed { what: "the extension of a sparse index" });
            }
            b"sdir" => {}
            _ if extension.is_mandatory() => return Err(IndexError::UnknownExtension(name)),
            _ => {}
        }
        if self.extensions.iter().any(|other| other.name == name) {
            return Err(IndexError::Malformed { what: "an extension that is there twice" });
        }
        self.extensions.push(extension);
        Ok(())
    }
}

/// Whether the last bytes of an index are its checksum.
#[derive(Clone, Copy)]
enum Checksum {
    Right,
    /// Zeros in its place.
    None,
    Wrong,
}

impl Checksum {
    fn of(bytes: &[u8], hash: Hash) -> Self {
        let Some((body, sum)) = bytes.len().checked_sub(hash.length()).map(|at| bytes.split_at(at))
        else {
            return Self::Wrong;
        };
        if sum.iter().all(|byte| *byte == 0) {
            Self::None
        } else if hash.of(body).as_ref() == sum {
            Self::Right
        } else {
            Self::Wrong
        }
    }
}

/// As git judges paths that a checkout would write: ordinary parts, and no form of `.git`.
fn is_safe(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|part| {
        // Some file systems take `.git.` and `.git ` for `.git`.
        let end = part.iter().rposition(|b| !matches!(b, b'.' | b' ')).map_or(0, |at| at + 1);
        !matches!(part, b"" | b"." | b"..")
            && !part[..end].eq_ignore_ascii_case(b".git")
            && !part[..end].eq_ignore_ascii_case(b"git~1")
    })
}
