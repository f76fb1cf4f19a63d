//! The file in which a survey's memory is kept: how it is laid out, and reading it.
//!
//! Duty: bytes to pages and back. Non-goals: whether a page still holds (memory). Trust boundary: the file is the
//! caller's own, but may be cut off, damaged, or of another version. Its digest is checked before
//! anything is believed, and every length before anything is read; what does not fit is no page.
//!
//! ```text
//! file    digest of all that follows (32), FORMAT (8), binding (32), clock (8), root page (4),
//!         inode count (4), inodes (8 each), pages
//! page    inode (8), ctime (8 + 4), mtime (8 + 4), entries (4), marks (4), folders (4),
//!         marks: kind (1), length (2), name; folders: page (4), length (2), name
//! ```
//!
//! Numbers are little-endian. A page is named by its offset in the file; 0 is none. A page stands behind those
//! of the folders in it.

use crate::ids::Identity;

/// The layout above, and what marks mean.
const FORMAT: [u8; 8] = *b"walk\0\0\0\x01";

/// Largest file: about four million entries.
pub(super) const MAX_FILE: usize = 64 << 20;

const DIGEST: usize = blake3::OUT_LEN;

/// When a folder last changed, and which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    pub(super) ino: u64,
    /// Seconds and nanoseconds.
    pub(super) changed: (i64, u32),
    /// The same for its content; a program can set it.
    pub(super) modified: (i64, u32),
}

/// What a file is about: it counts for nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Binding(pub(super) [u8; 32]);

/// A whole file, checked.
#[derive(Debug)]
pub(super) struct Pages {
    bytes: Vec<u8>,
    /// Where the wall clock stood when the machine started, in nanoseconds.
    pub(super) clock: i64,
    pub(super) root: Option<u32>,
    /// Inodes whose names every page marks.
    pub(super) inodes: Vec<u64>,
}

/// What a page says.
pub(super) struct Page<'a> {
    pub(super) stamp: Stamp,
    pub(super) entries: u32,
    marks: u32,
    folders: u32,
    rest: Reader<'a>,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn name(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }
}

impl Pages {
    /// Reads a file; `None` if it is damaged, or about something else.
    pub(super) fn read(bytes: Vec<u8>, binding: Binding) -> Option<Self> {
        let mut reader = Reader(&bytes);
        let digest: [u8; DIGEST] = reader.array()?;
        if blake3::hash(reader.0) != digest
            || reader.array() != Some(FORMAT)
            || reader.array() != Some(binding.0)
        {
            return None;
        }
        let clock = reader.i64()?;
        let root = reader.u32().map(|page| (page != 0).then_some(page))?;
        let count = reader.u32()?;
        let inodes = (0..count).map(|_| reader.u64()).collect::<Option<_>>()?;
        Some(Self { bytes, clock, root, inodes })
    }

    pub(super) fn page(&self, page: u32) -> Option<Page<'_>> {
        let mut reader = Reader(self.bytes.get(usize::try_from(page).ok()?..)?);
        let stamp = Stamp {
            ino: reader.u64()?,
            changed: (reader.i64()?, reader.u32()?),
            modified: (reader.i64()?, reader.u32()?),
        };
        let (entries, marks, folders) = (reader.u32()?, reader.u32()?, reader.u32()?);
        Some(Page { stamp, entries, marks, folders, rest: reader })
    }
}

impl<'a> Page<'a> {
    /// Shows what the page holds: marks first, then folders with their pages. `None` if it is cut off; then nothing
    /// that was shown counts.
    pub(super) fn read(
        mut self,
        mut mark: impl FnMut(u8, &'a [u8]),
        mut folder: impl FnMut(Option<u32>, &'a [u8]),
    ) -> Option<()> {
        for _ in 0..self.marks {
            let [kind] = self.rest.array()?;
            mark(kind, self.rest.name()?);
        }
        for _ in 0..self.folders {
            let page = self.rest.u32()?;
            folder((page != 0).then_some(page), self.rest.name()?);
        }
        Some(())
    }
}

/// A file in the making.
pub(super) struct Writer {
    bytes: Vec<u8>,
    root_at: usize,
}

impl Writer {
    pub(super) fn new(binding: Binding, clock: i64, inodes: &[u64]) -> Self {
        let mut bytes = vec![0; DIGEST];
        bytes.extend(FORMAT);
        bytes.extend(binding.0);
        bytes.extend(clock.to_le_bytes());
        let root_at = bytes.len();
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(u32::try_from(inodes.len()).unwrap_or(0).to_le_bytes());
        bytes.extend(inodes.iter().flat_map(|inode| inode.to_le_bytes()));
        Self { bytes, root_at }
    }

    /// Adds a page; `None` where the file would be too large, or a name too long.
    pub(super) fn page(
        &mut self,
        stamp: Stamp,
        entries: u32,
        marks: &[(u8, &[u8])],
        folders: &[(Option<u32>, &[u8])],
    ) -> Option<u32> {
        let at = u32::try_from(self.bytes.len()).ok()?;
        let bytes = &mut self.bytes;
        bytes.extend(stamp.ino.to_le_bytes());
        for (seconds, nanoseconds) in [stamp.changed, stamp.modified] {
            bytes.extend(seconds.to_le_bytes());
            bytes.extend(nanoseconds.to_le_bytes());
        }
        for count in [entries, u32::try_from(marks.len()).ok()?, u32::try_from(folders.len()).ok()?]
        {
            bytes.extend(count.to_le_bytes());
        }
        for (kind, name) in marks {
            bytes.push(*kind);
            bytes.extend(u16::try_from(name.len()).ok()?.to_le_bytes());
            bytes.extend(*name);
        }
        for (page, name) in folders {
            bytes.extend(page.unwrap_or(0).to_le_bytes());
            bytes.extend(u16::try_from(name.len()).ok()?.to_le_bytes());
            bytes.extend(*name);
        }
        (bytes.len() <= MAX_FILE).then_some(at)
    }

    /// The whole file.
    pub(super) fn finish(mut self, root: u32) -> Vec<u8> {
        self.bytes[self.root_at..][..4].copy_from_slice(&root.to_le_bytes());
        let digest = blake3::hash(&self.bytes[DIGEST..]);
        self.bytes[..DIGEST].copy_from_slice(digest.as_bytes());
        self.bytes
    }
}

/// Takes a digest of what a file is about, piece by piece: no two lists of pieces run together.
pub(super) struct Binder(blake3::Hasher);

impl Binder {
    pub(super) fn new() -> Self {
        Self(blake3::Hasher::new())
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    pub(super) fn identity(&mut self, identity: Identity) {
        self.number(identity.dev);
        self.number(identity.ino);
    }

    pub(super) fn list<B: AsRef<[u8]>>(&mut self, list: impl IntoIterator<Item = B>) {
        let list: Vec<B> = list.into_iter().collect();
        self.number(list.len() as u64);
        list.iter().for_each(|piece| self.bytes(piece.as_ref()));
    }

    pub(super) fn finish(self) -> Binding {
        Binding(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: Binding = Binding([7; 32]);

    fn sample() -> Vec<u8> {
        let mut writer = Writer::new(BINDING, -5, &[3, 4]);
        let stamp = Stamp { ino: 9, changed: (1, 2), modified: (3, 4) };
        let inner = writer.page(Stamp::default(), 0, &[], &[]).unwrap();
        let root = writer.page(stamp, 2, &[(1, b".env")], &[(Some(inner), b"a"), (None, b"b")]);
        writer.finish(root.unwrap())
    }

    #[test]
    fn what_is_written_is_read() {
        let pages = Pages::read(sample(), BINDING).unwrap();
        assert_eq!((pages.clock, pages.inodes.as_slice()), (-5, &[3, 4][..]));
        let page = pages.page(pages.root.unwrap()).unwrap();
        assert_eq!((page.stamp.ino, page.stamp.changed, page.entries), (9, (1, 2), 2));
        let (mut marks, mut folders) = (Vec::new(), Vec::new());
        page.read(|kind, name| marks.push((kind, name)), |page, name| folders.push((page, name)))
            .unwrap();
        assert_eq!(marks, [(1, &b".env"[..])]);
        assert_eq!(folders.iter().map(|(_, name)| *name).collect::<Vec<_>>(), [b"a", b"b"]);
        assert!(pages.page(folders[0].0.unwrap()).is_some() && folders[1].0.is_none());
    }

    #[test]
    fn a_damaged_foreign_or_cut_file_is_no_file() {
        let whole = sample();
        assert!(Pages::read(whole.clone(), Binding([8; 32])).is_none());
        for length in 0..whole.len() {
            assert!(Pages::read(whole[..length].to_vec(), BINDING).is_none(), "{length}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(Pages::read(damaged, BINDING).is_none(), "{at}");
        }
    }

    #[test]
    fn a_page_that_points_out_of_the_file_is_no_page() {
        let mut writer = Writer::new(BINDING, 0, &[]);
        let root = writer.page(Stamp::default(), 1, &[], &[(Some(u32::MAX), b"x")]).unwrap();
        let pages = Pages::read(writer.finish(root), BINDING).unwrap();
        assert!(pages.page(u32::MAX).is_none());
        let end = u32::try_from(pages.bytes.len()).unwrap() - 1;
        assert!(pages.page(end).is_none_or(|page| page.read(|_, _| {}, |_, _| {}).is_none()));
    }
}
