//! Who uses the folders that we made in a workspace, across parallel calls and sudden deaths.
//!
//! Duty: a missing write folder is made by one call, may be used by others that start later, and goes when the
//! last of them ends, if it is still empty, also after `kill -9`. Non-goals: making and removing by
//! itself (folders). Trust boundary: the files here are the caller's own; a workspace that
//! holds them is refused.
//!
//! One ledger a workspace lists what was made and what is guarded. Whoever uses the workspace's write folders
//! holds a shared lock on it, which the kernel drops at any death. A second file is the mutex: under it
//! things are made, and the last one out, who alone can turn its lock into an exclusive one, cleans up. Where
//! sandboxes may wait, cleaning puts what was made aside, out of the workspace, and the next claim puts the same thing
//! back: a waiting sandbox has it mounted, and it is that one by its inode.
//!
//! ```text
//! begin   lock mutex | lock ledger shared | for each folder: write it down, make it | unlock mutex
//! end     lock mutex | unlock ledger | can it be locked exclusively? then clean | unlock mutex
//! death   the watchdog, or the next call's end, does what `end` does
//! ```

use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{folders, quarantine};
use crate::engine::claim::{ClaimHandle, HeldClaim};
use crate::ids::Identity;
use crate::sys::lease::{Exclusive, Lease, Shared};

/// The folder of all ledgers.
pub(crate) const FOLDER: &str = "claims";

/// The ending of the folder in which a ledger's things are put away.
const ASIDE: &str = "aside";

/// First byte of a record: a folder or file that was made.
const MADE: u8 = b'M';
/// First byte of a record: a path where nothing may appear.
const GUARDED: u8 = b'G';

/// A claim on the write folders of a workspace. Dropping it ends it.
#[derive(Debug)]
pub struct Claim {
    /// On the ledger. Released before `end` cleans up: fields are dropped in this order.
    held: Lease<Shared>,
    end: End,
}

/// Cleans up after the claims of a ledger when it is dropped, if no other claim holds it.
#[derive(Debug)]
struct End {
    ledger: PathBuf,
}

impl Drop for End {
    fn drop(&mut self) {
        // What cannot be cleaned now is cleaned by the next call's end.
        let _ = clean(&self.ledger);
    }
}

impl HeldClaim for Claim {
    fn ledger(&self) -> &Path {
        &self.end.ledger
    }
}

impl From<Option<Claim>> for ClaimHandle {
    fn from(claim: Option<Claim>) -> Self {
        claim.map_or_else(Self::default, |claim| Self::new(Arc::new(claim)))
    }
}

/// A claim under which things are being made; nobody else makes or cleans meanwhile.
#[derive(Debug)]
pub struct Making {
    mutex: Lease<Exclusive>,
    claim: Claim,
}

impl Claim {
    /// Begins a claim on a workspace. `folder` is the caller's own, and is made if it is missing.
    ///
    /// # Errors
    /// The files cannot be made or locked.
    pub fn begin(folder: &Path, workspace: Identity) -> io::Result<Making> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Making::begin(&folder.join(name(workspace)))
    }

    /// Writes down paths where nothing may appear.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn guard(&self, paths: &[PathBuf]) -> io::Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let _mutex = lock_mutex(&self.end.ledger)?;
        self.write_down(GUARDED, paths)
    }

    fn write_down(&self, kind: u8, paths: &[PathBuf]) -> io::Result<()> {
        let mut records = Vec::new();
        for path in paths {
            records.push(kind);
            records.extend(path.as_os_str().as_bytes());
            records.push(0);
        }
        let mut ledger = self.held.file();
        ledger.seek(SeekFrom::End(0))?;
        ledger.write_all(&records)
    }
}

impl Making {
    fn begin(ledger: &Path) -> io::Result<Self> {
        let mutex = lock_mutex(ledger)?;
        let held = Lease::wait(ledger)?;
        Ok(Self { mutex, claim: Claim { held, end: End { ledger: ledger.to_owned() } } })
    }

    /// Writes down what is about to be made: a death in the next moment must not leave it behind.
    ///
    /// # Errors
    /// The ledger cannot be written; then nothing may be made.
    pub fn announce(&self, path: &Path) -> io::Result<()> {
        self.claim.write_down(MADE, &[path.to_owned()])
    }

    /// Where things that were made before may have been put away.
    #[must_use]
    pub fn aside(&self) -> PathBuf {
        aside(&self.claim.end.ledger)
    }

    /// All is made; lets others go on.
    #[must_use]
    pub fn finish(self) -> Claim {
        drop(self.mutex);
        self.claim
    }
}

/// Lets what a ledger's claims make be put away instead of removed, so that it can come back as the same: sandboxes
/// that wait show it.
///
/// # Errors
/// The folder for it cannot be made.
pub fn keep(ledger: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(aside(ledger))
}

/// Claims what was put away, and puts it back where it was.
///
/// # Errors
/// Something is in the way, or was not put away.
pub fn bring_back(ledger: &Path, made: &[PathBuf]) -> io::Result<Claim> {
    let making = Making::begin(ledger)?;
    for path in made {
        making.announce(path)?;
        folders::bring_back(path, &making.aside())?;
    }
    Ok(making.finish())
}

/// Removes all that was put away; nothing waits for it any more.
pub fn forget(materials: &Path) {
    let Ok(ledgers) = std::fs::read_dir(materials.join(FOLDER)) else { return };
    for ledger in ledgers.filter_map(|entry| Some(entry.ok()?.path())) {
        if ledger.extension().is_some_and(|ending| ending == ASIDE) {
            // Empty files and folders of our own making, one level deep.
            for path in std::fs::read_dir(&ledger).into_iter().flatten().flatten() {
                folders::remove_if_empty(&[path.path()]);
            }
            let _ = std::fs::remove_dir(&ledger);
        }
    }
}

/// Where a ledger's things are put away.
fn aside(ledger: &Path) -> PathBuf {
    ledger.with_extension(ASIDE)
}

/// The ledger of a workspace, whether there is one yet or not; `materials` is the folder that plans use.
#[must_use]
pub fn ledger(materials: &Path, workspace: Identity) -> PathBuf {
    materials.join(FOLDER).join(name(workspace))
}

fn name(workspace: Identity) -> String {
    format!("{:x}-{:x}", workspace.dev, workspace.ino)
}

/// Cleans up after all claims of a ledger, if nobody holds one any more.
///
/// # Errors
/// The files cannot be read or locked.
pub fn clean(ledger: &Path) -> io::Result<()> {
    if !ledger.exists() {
        return Ok(());
    }
    let _mutex = lock_mutex(ledger)?;
    let Some(lease) = Lease::<Exclusive>::try_take(ledger)? else { return Ok(()) };
    let records = lease.read()?;
    let of_kind = |kind: u8| -> Vec<PathBuf> {
        records
            .split(|byte| *byte == 0)
            .filter_map(|record| record.strip_prefix(&[kind]))
            .map(|path| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())))
            .filter(|path| path.is_absolute())
            .collect()
    };
    // Reported by the call itself; here it is for calls that died.
    drop(quarantine::sweep(&of_kind(GUARDED)));
    folders::put_away(&of_kind(MADE), &aside(ledger));
    lease.replace(&[])
}

fn lock_mutex(ledger: &Path) -> io::Result<Lease<Exclusive>> {
    let mut path = ledger.as_os_str().to_owned();
    path.push(".lock");
    Lease::wait(Path::new(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: Identity = Identity { dev: 1, ino: 2 };

    struct Case {
        dir: tempfile::TempDir,
    }

    impl Case {
        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(name)
        }

        fn begin(&self) -> Making {
            Claim::begin(&self.path("claims"), WORKSPACE).unwrap()
        }

        fn make(&self, target: &Path) -> Claim {
            let making = self.begin();
            making.announce(target).unwrap();
            std::fs::create_dir(target).unwrap();
            making.finish()
        }

        fn ledger(&self) -> PathBuf {
            self.path("claims/1-2")
        }
    }

    fn case() -> Case {
        Case { dir: tempfile::tempdir().unwrap() }
    }

    #[test]
    fn the_last_one_out_removes_what_stayed_empty() {
        let case = case();
        let target = case.path("target");
        let first = case.make(&target);
        let second = case.begin().finish();
        drop(first);
        assert!(target.exists(), "the second still uses it");
        drop(second);
        assert!(!target.exists());
        assert_eq!(case.ledger().metadata().unwrap().len(), 0);
    }

    #[test]
    fn what_was_written_stays() {
        let case = case();
        let target = case.path("target");
        let claim = case.make(&target);
        std::fs::write(target.join("x"), "").unwrap();
        drop(claim);
        assert!(target.join("x").exists());
    }

    #[test]
    fn after_a_death_anyone_can_clean() {
        let case = case();
        let (target, guarded) = (case.path("target"), case.path("commondir"));
        let claim = case.make(&target);
        claim.guard(std::slice::from_ref(&guarded)).unwrap();
        std::fs::write(&guarded, "evil").unwrap();
        clean(&case.ledger()).unwrap();
        assert!(target.exists() && guarded.exists(), "it is still in use");
        // A death: the lock goes, and nothing else happens.
        let Claim { held, end } = claim;
        drop(held);
        std::mem::forget(end);
        clean(&case.ledger()).unwrap();
        assert!(!target.exists() && !guarded.exists());
        assert!(case.path("commondir.quarantined-0").exists());
    }

    #[test]
    fn a_death_while_folders_are_made_leaves_none() {
        let case = case();
        let (made, unmade) = (case.path("made"), case.path("unmade"));
        let making = case.begin();
        making.announce(&made).unwrap();
        std::fs::create_dir(&made).unwrap();
        making.announce(&unmade).unwrap();
        // A death: both locks go, and nothing else happens.
        let Making { mutex, claim: Claim { held, end } } = making;
        drop((mutex, held));
        std::mem::forget(end);
        clean(&case.ledger()).unwrap();
        assert!(!made.exists() && !unmade.exists());
    }

    #[test]
    fn many_at_once_lose_nothing() {
        let case = case();
        let target = case.path("target");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let making = case.begin();
                        if !target.exists() {
                            making.announce(&target).unwrap();
                            std::fs::create_dir(&target).unwrap();
                        }
                        let claim = making.finish();
                        assert!(target.is_dir(), "it is there as long as it is claimed");
                        drop(claim);
                    }
                });
            }
        });
        assert!(!target.exists());
    }
}
