//! The key that signs the ledger, and the signed head that is kept apart from it.
//!
//! ```text
//! store.db     records, each stretch signed by who wrote it          (one transaction)
//! ledger.head  first and last record of the newest stretch, its link, signed anew
//! ledger.key   the seed of an Ed25519 key, made at the first use, mode 0600
//! ```
//!
//! The head is written after the commit that it tells of, so it can lag, by what a death in between leaves, and can
//! never lead: a head that names records which are not there says that they were taken away. The next
//! append by any process brings it up to date. It has one sector's room and is overwritten in place under a lock:
//! no reader and no death sees half of it, and nothing waits for the disk.
//!
//! A key is made for a ledger without records, and for no other: whoever could have a new key made for records that are
//! there could change them first. Without the key of its records a ledger takes no more of them.
//!
//! Trust boundary: a process that can read the key can sign anything, so this shows edits by processes that cannot,
//! and not by the caller's own account or root.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::chain::{Link, Purpose, Stretch, hex, unhex};
use crate::store::StoreError;
use crate::sys::lease::{Exclusive, Lease};

/// The key's file in the state folder.
const KEY: &str = "ledger.key";
/// The head's file in the state folder.
const HEAD: &str = "ledger.head";
/// The first word of the head's line.
const MAGIC: &str = "runner-ledger-1";
/// The longest head: one sector, which disks write whole.
const SECTOR: usize = 512;

/// A public key.
pub(super) type Public = [u8; 32];

/// The key and the place of the head.
pub(super) struct Seal {
    key: Ed25519KeyPair,
    folder: PathBuf,
    /// The head's line that was found good last, or written by us: it need not be proved again.
    proved: RefCell<Option<(Vec<u8>, Stretch, Public)>>,
}

/// What the head's file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Head {
    /// It is not there.
    Missing,
    /// It is not a head, or its signature is wrong.
    Broken,
    /// It was signed with this key.
    Signed(Stretch, Public),
}

/// What the head was known to be when the records were appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// A head of this chain: it only goes forward.
    Follows,
    /// None of this chain, which was recorded: a new one takes its place.
    Replaced,
}

/// Whether the ledger has records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorded {
    /// It has none.
    Nothing,
    /// It has some.
    Something,
}

impl Seal {
    /// The key in `folder`; made together with an empty head if it is missing and nothing is recorded. The caller holds
    /// the database's write lock, so that two processes do not make two.
    pub(super) fn open_or_make(folder: &Path, recorded: Recorded) -> Result<Self, StoreError> {
        match (Self::open(folder)?, recorded) {
            (Some(seal), _) => Ok(seal),
            (None, Recorded::Nothing) => Self::make(folder),
            (None, Recorded::Something) => {
                let why = "it is missing, and there are records that it has signed".to_owned();
                Err(StoreError::Seal("use", folder.join(KEY), why))
            }
        }
    }

    /// The key in `folder`, if there is one.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, StoreError> {
        let fail = |why: String| StoreError::Seal("read", folder.join(KEY), why);
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(folder.join(KEY));
        let mut text = String::new();
        match file
            .and_then(|file| io::Read::read_to_string(&mut io::Read::take(file, 256), &mut text))
        {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error.to_string())),
        }
        let seed: [u8; 32] =
            unhex(text.trim_end()).ok_or_else(|| fail("it is not a key".to_owned()))?;
        Self::of(&seed, folder).map(Some)
    }

    fn of(seed: &[u8; 32], folder: &Path) -> Result<Self, StoreError> {
        let key = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|error| StoreError::Seal("use", folder.join(KEY), error.to_string()))?;
        Ok(Self { key, folder: folder.to_owned(), proved: RefCell::default() })
    }

    fn make(folder: &Path) -> Result<Self, StoreError> {
        let fail = |error: io::Error| StoreError::Seal("make", folder.join(KEY), error.to_string());
        let seed: [u8; 32] = crate::sys::random().map_err(fail)?;
        let seal = Self::of(&seed, folder)?;
        // The head first: a key without a head means that the head was removed. An empty head without a key
        // is what a death in between leaves, and tells of nothing; any other stays, for all to see.
        let named = match head(folder)? {
            Head::Signed(Stretch { last: 0, .. }, _) => Named::Replaced,
            Head::Missing | Head::Broken | Head::Signed(..) => Named::Kept,
        };
        let empty = Stretch { first: 0, last: 0, link: Link::FIRST };
        place(folder, HEAD, seal.line(empty).as_bytes(), named).map_err(fail)?;
        place(folder, KEY, format!("{}\n", hex(&seed)).as_bytes(), Named::Kept).map_err(fail)?;
        Ok(seal)
    }

    /// Who signs.
    pub(super) fn public(&self) -> Public {
        let mut public = [0; 32];
        public.copy_from_slice(self.key.public_key().as_ref());
        public
    }

    /// Vouches for records.
    pub(super) fn sign(&self, stretch: Stretch) -> Vec<u8> {
        self.key.sign(&stretch.message(Purpose::Records)).as_ref().to_vec()
    }

    /// The head as it is now.
    pub(super) fn head(&self) -> Result<Head, StoreError> {
        look(&self.folder, |file| self.read(file))
    }

    /// Reads a head; what was proved before is compared only.
    fn read(&self, file: &File) -> io::Result<Head> {
        let line = line(file)?;
        if let Some((known, stretch, public)) = &*self.proved.borrow()
            && *known == line
        {
            return Ok(Head::Signed(*stretch, *public));
        }
        let found = judge(&line);
        if let Head::Signed(stretch, public) = found {
            self.proved.replace(Some((line, stretch, public)));
        }
        Ok(found)
    }

    /// Brings the head up to date, unless a later writer has done so.
    pub(super) fn advance(&self, stretch: Stretch, known: Known) -> Result<(), StoreError> {
        let path = self.folder.join(HEAD);
        let write = || {
            let lease = Lease::<Exclusive>::wait(&path)?;
            let file = lease.file();
            match self.read(file)? {
                Head::Signed(newest, public)
                    if known == Known::Follows
                        && public == self.public()
                        && newest.last >= stretch.last => {}
                Head::Signed(..) | Head::Missing | Head::Broken => {
                    let line = self.line(stretch);
                    file.write_all_at(line.as_bytes(), 0)?;
                    // Heads are of one length: cutting one off would be a change of its own for the file system.
                    if file.metadata()?.len() != line.len() as u64 {
                        file.set_len(line.len() as u64)?;
                    }
                    self.proved.replace(Some((line.into_bytes(), stretch, self.public())));
                }
            }
            Ok(())
        };
        write()
            .map_err(|error: io::Error| StoreError::Seal("write", path.clone(), error.to_string()))
    }

    fn line(&self, stretch: Stretch) -> String {
        let signature = self.key.sign(&stretch.message(Purpose::Head));
        let Stretch { first, last, link } = stretch;
        let (public, signature) = (hex(&self.public()), hex(signature.as_ref()));
        format!("{MAGIC} {first:020} {last:020} {link} {public} {signature}\n")
    }
}

/// The head in `folder` as it is now, for a reader without the key.
pub(super) fn head(folder: &Path) -> Result<Head, StoreError> {
    look(folder, |file| Ok(judge(&line(file)?)))
}

fn look(folder: &Path, read: impl Fn(&File) -> io::Result<Head>) -> Result<Head, StoreError> {
    let path = folder.join(HEAD);
    let look = || {
        let lease = Lease::wait_to_read(&path)?;
        read(lease.file())
    };
    match look() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Head::Missing),
        found => found.map_err(|error| StoreError::Seal("read", path.clone(), error.to_string())),
    }
}

/// Whether a signature vouches for a stretch.
pub(super) fn vouches(public: &Public, stretch: Stretch, signature: &[u8]) -> bool {
    let key = UnparsedPublicKey::new(&ED25519, public);
    key.verify(&stretch.message(Purpose::Records), signature).is_ok()
}

/// What stands in the head's file.
fn line(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; SECTOR];
    let length = file.read_at(&mut bytes, 0)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn judge(line: &[u8]) -> Head {
    if line.is_empty() {
        return Head::Missing;
    }
    let parsed = std::str::from_utf8(line).ok().and_then(parse);
    parsed.map_or(Head::Broken, |(stretch, public)| Head::Signed(stretch, public))
}

fn parse(text: &str) -> Option<(Stretch, Public)> {
    let words: Vec<&str> = text.strip_suffix('\n')?.split(' ').collect();
    let [MAGIC, first, last, link, public, signature] = words.as_slice() else { return None };
    let stretch = Stretch {
        first: first.parse().ok()?,
        last: last.parse().ok()?,
        link: Link::from_hex(link)?,
    };
    let public: Public = unhex(public)?;
    let signature: [u8; 64] = unhex(signature)?;
    let key = UnparsedPublicKey::new(&ED25519, public);
    key.verify(&stretch.message(Purpose::Head), &signature).ok().map(|()| (stretch, public))
}

/// What becomes of a file that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Kept,
    Replaced,
}

/// Writes a file of the caller's own whole and on the disk.
fn place(folder: &Path, name: &str, content: &[u8], named: Named) -> io::Result<()> {
    let flags = match named {
        Named::Kept => RenameFlags::NOREPLACE,
        Named::Replaced => RenameFlags::empty(),
    };
    let chance: [u8; 8] = crate::sys::random()?;
    let temporary = folder.join(format!(".{name}-{}", hex(&chance)));
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let placed = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| {
        match renameat_with(CWD, &temporary, CWD, folder.join(name), flags) {
            Err(rustix::io::Errno::EXIST) => std::fs::remove_file(&temporary),
            other => other.map_err(io::Error::from),
        }
    });
    if placed.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    placed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn stretch(last: i64) -> Stretch {
        Stretch { first: last, last, link: Link::from_hex(&"ab".repeat(32)).unwrap() }
    }

    #[test]
    fn a_head_goes_forward_only_and_its_key_is_the_callers_own() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Seal::open(folder.path()).unwrap().is_none());
        assert_eq!(head(folder.path()).unwrap(), Head::Missing);
        let seal = Seal::open_or_make(folder.path(), Recorded::Nothing).unwrap();
        assert!(matches!(seal.head().unwrap(), Head::Signed(Stretch { last: 0, .. }, _)));
        seal.advance(stretch(7), Known::Follows).unwrap();
        seal.advance(stretch(5), Known::Follows).unwrap();
        let again = Seal::open(folder.path()).unwrap().unwrap();
        assert_eq!(again.head().unwrap(), Head::Signed(stretch(7), seal.public()));
        let mode = |name| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!((mode(KEY) & 0o777, mode(HEAD) & 0o777), (0o600, 0o600));
        assert!(vouches(&seal.public(), stretch(7), &seal.sign(stretch(7))));
        assert!(!vouches(&seal.public(), stretch(8), &seal.sign(stretch(7))));
    }

    #[test]
    fn a_death_between_head_and_key_leaves_nothing_to_tell_of() {
        let folder = tempfile::tempdir().unwrap();
        let remove_key = || std::fs::remove_file(folder.path().join(KEY)).unwrap();
        let make = || Seal::open_or_make(folder.path(), Recorded::Nothing).unwrap();
        make();
        remove_key();
        let seal = make();
        let empty = Stretch { first: 0, last: 0, link: Link::FIRST };
        assert_eq!(seal.head().unwrap(), Head::Signed(empty, seal.public()));
        // A head that tells of records is never replaced by a new key.
        seal.advance(stretch(7), Known::Follows).unwrap();
        remove_key();
        let other = make();
        assert_ne!(other.public(), seal.public());
        assert_eq!(other.head().unwrap(), Head::Signed(stretch(7), seal.public()));
    }

    #[test]
    fn a_head_that_somebody_wrote_without_the_key_is_broken() {
        let folder = tempfile::tempdir().unwrap();
        let seal = Seal::open_or_make(folder.path(), Recorded::Nothing).unwrap();
        seal.advance(stretch(7), Known::Follows).unwrap();
        let path = folder.path().join(HEAD);
        let line = std::fs::read_to_string(&path).unwrap();
        assert!(line.len() <= SECTOR);
        for wrong in [line.replace("07 ", "06 "), "x".to_owned(), line[..50].to_owned()] {
            std::fs::write(&path, &wrong).unwrap();
            assert_eq!(seal.head().unwrap(), Head::Broken, "{wrong}");
        }
        // A key that is none is an error, and never replaced.
        std::fs::write(folder.path().join(KEY), "").unwrap();
        assert!(Seal::open_or_make(folder.path(), Recorded::Nothing).is_err());
    }

    #[test]
    fn no_key_is_made_for_records_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let open = |recorded| Seal::open_or_make(folder.path(), recorded);
        assert!(open(Recorded::Something).is_err());
        assert!(!folder.path().join(KEY).exists() && !folder.path().join(HEAD).exists());
        let seal = open(Recorded::Nothing).unwrap();
        assert_eq!(open(Recorded::Something).unwrap().public(), seal.public());
    }
}
