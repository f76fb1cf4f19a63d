//! Calls that can write where a sandbox is being made.
//!
//! An engine makes mounts from paths, after we looked at them, as root. A call that runs meanwhile could move a folder away
//! and put a link in its place: the engine would mount what the link leads to, and make the targets of further
//! mounts *there*, in any folder of the host, before anybody can look at the result. So:
//!
//! - Whoever makes a sandbox says which folders must stay where they are (its *needs*), and begins only while no call runs
//!   that can move one of them.
//! - Whoever is about to run says what it can write (its *reach*), and begins only while nobody needs what it can move.
//!
//! Duty: these two words, across processes and sudden deaths. Each is a file of the caller's own, locked as long as it
//! holds; the kernel drops the lock at any death. Calls of the same policy hold the same folders by mounts of their
//! own, and a mount point cannot be moved: they run side by side. Who has to wait is one that met a folder which
//! became special only while another call ran.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat2};
use tokio::time::{Instant, sleep};

use super::outcome::RunError;
use crate::engine::plan::{Access, Mount, MountRole, SandboxPlan};
use crate::engine::runtime_kind::{IdentityProof, RuntimeKind};
use crate::ids::CallId;
use crate::ids::Identity;
use crate::sys::lease::{self, Exclusive, Found, Lease};

/// How long one waits for another before it gives up: making a sandbox takes a part of a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// The ending of a file with needs.
const NEEDS: &str = "needs";
/// The ending of a file with a reach.
const REACH: &str = "reach";
/// The file under whose lock one looks and begins.
const MUTEX: &str = "lock";

/// First byte of a record.
const WRITABLE: u8 = b'W';
const READ_ONLY: u8 = b'R';
const NEEDED: u8 = b'N';

/// Where calls of one caller find each other.
#[derive(Debug, Clone)]
pub struct Neighbours(PathBuf);

/// What a call has said of itself. It holds, and its file is there, until this is dropped.
#[derive(Debug)]
pub struct Held(Option<Lease<Exclusive>>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(lease) = self.0.take() {
            let _ = lease.remove();
        }
    }
}

impl Neighbours {
    /// Those of the caller whose folder for state this is.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self(state.join("neighbours"))
    }

    /// Begins to make a sandbox: from here on until the result is dropped nobody can move what its mounts lead
    /// through, and everything is where the plan found it.
    ///
    /// # Errors
    /// A call that could do so runs on, or something is not what was planned.
    pub async fn making(&self, id: &CallId, plan: &SandboxPlan) -> Result<Option<Held>, RunError> {
        let needs = needs(plan);
        if needs.is_empty() {
            return Ok(None);
        }
        let records = records(needs.iter().map(|path| (NEEDED, *path)));
        let moved = |other: &Reach| {
            needs.iter().find(|path| other.can_move(path)).map(|path| path.to_path_buf())
        };
        let held = self.begin(id, NEEDS, &records, |name, text| match name.extension() {
            Some(ending) if ending == REACH => moved(&Reach::read(text)),
            _ => None,
        });
        let held = held.await?;
        as_planned(plan)?;
        Ok(Some(held))
    }

    /// Begins to run a command in a sandbox that can write.
    ///
    /// # Errors
    /// A sandbox is being made whose mounts it could move, and is not done in time.
    pub async fn running(&self, id: &CallId, plan: &SandboxPlan) -> Result<Option<Held>, RunError> {
        if plan.mounts.iter().all(|mount| mount.access == Access::ReadOnly) {
            return Ok(None);
        }
        let reach = Reach::of(&plan.mounts);
        let records = records(reach.0.iter().map(|(path, access)| match access {
            Access::ReadWrite => (WRITABLE, path.as_path()),
            Access::ReadOnly => (READ_ONLY, path.as_path()),
        }));
        let held = self.begin(id, REACH, &records, |name, text| match name.extension() {
            Some(ending) if ending == NEEDS => paths(text)
                .find(|(kind, path)| *kind == NEEDED && reach.can_move(path))
                .map(|(_, path)| path),
            _ => None,
        });
        held.await.map(Some)
    }

    /// Says a word as soon as no word of another stands against it. `against` is the path that one of that name and
    /// content is about.
    async fn begin(
        &self,
        id: &CallId,
        ending: &str,
        records: &[u8],
        against: impl Fn(&Path, &[u8]) -> Option<PathBuf>,
    ) -> Result<Held, RunError> {
        let local =
            |source| RunError::Local { operation: "look for calls beside this one", source };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(local)?;
        let until = Instant::now() + PATIENCE;
        loop {
            let mutex = Lease::<Exclusive>::wait(&self.0.join(MUTEX)).map_err(local)?;
            let Some((call, path)) = self.conflict(&against).map_err(local)? else {
                return self.hold(id, ending, records).map_err(local);
            };
            drop(mutex);
            if Instant::now() >= until {
                return Err(RunError::Contended { path, call });
            }
            sleep(PAUSE).await;
        }
    }

    /// The first word that stands against ours: whose, and about what.
    fn conflict(
        &self,
        against: &impl Fn(&Path, &[u8]) -> Option<PathBuf>,
    ) -> io::Result<Option<(String, PathBuf)>> {
        for entry in std::fs::read_dir(&self.0)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name == MUTEX) {
                continue;
            }
            match lease::find(&path)? {
                Found::Gone => {}
                // The call that wrote it is dead.
                Found::Free(left) => drop(left.remove()),
                Found::Held(file) => {
                    if let Some(about) = against(&path, &file.read()?) {
                        let call = path.file_stem().unwrap_or_default().to_string_lossy();
                        return Ok(Some((call.into_owned(), about)));
                    }
                }
            }
        }
        Ok(None)
    }

    fn hold(&self, id: &CallId, ending: &str, records: &[u8]) -> io::Result<Held> {
        let path = self.0.join(format!("{id}.{ending}"));
        Lease::with_content(&path, records).map(|lease| Held(Some(lease)))
    }
}

/// What a sandbox can write of the host, by its mounts.
struct Reach(BTreeMap<PathBuf, Access>);

impl Reach {
    fn of(mounts: &[Mount]) -> Self {
        Self(mounts.iter().map(|mount| (mount.source.clone(), mount.access)).collect())
    }

    fn read(text: &[u8]) -> Self {
        let mounts = paths(text).filter_map(|(kind, path)| match kind {
            WRITABLE => Some((path, Access::ReadWrite)),
            READ_ONLY => Some((path, Access::ReadOnly)),
            _ => None,
        });
        Self(mounts.collect())
    }

    /// Whether this path, or a folder on the way to it, can be given another name or be replaced: its folder can be
    /// written, and it is not itself a mount point.
    fn can_move(&self, path: &Path) -> bool {
        path.ancestors().any(|part| {
            let folder = part.parent().and_then(|folder| self.access(folder));
            !self.0.contains_key(part) && folder == Some(Access::ReadWrite)
        })
    }

    /// How a folder is mounted, if it is.
    fn access(&self, folder: &Path) -> Option<Access> {
        folder.ancestors().find_map(|above| self.0.get(above)).copied()
    }
}

/// The sources that a sandbox's mounts lead through: those in which other mounts have their targets. Where the guest
/// cannot prove what was mounted, every one.
fn needs(plan: &SandboxPlan) -> Vec<&Path> {
    let inside = RuntimeKind::of(plan.runtime.as_ref()).identity_proof() == IdentityProof::Inside;
    let targets = || {
        let mounts = plan.mounts.iter().map(|mount| &mount.target);
        let masks = plan.masks.iter().map(|mask| &mask.target);
        mounts.chain(masks).chain(plan.synthetic.iter().map(|file| &file.target))
    };
    let leads = |mount: &&Mount| {
        let nested =
            |target: &PathBuf| *target != mount.target && target.starts_with(&mount.target);
        !inside || targets().any(nested)
    };
    changeable(plan).filter(leads).map(|mount| mount.source.as_path()).collect()
}

/// The mounts of what calls can change: the workspace and git's folders. Nobody writes the host's programs.
fn changeable(plan: &SandboxPlan) -> impl Iterator<Item = &Mount> {
    let programs = |role| matches!(role, MountRole::System | MountRole::Toolchain);
    plan.mounts.iter().filter(move |mount| !programs(mount.role))
}

/// Looks whether each source and each hidden thing is still what was planned, without following any link.
fn as_planned(plan: &SandboxPlan) -> Result<(), RunError> {
    let sources = changeable(plan).map(|mount| (&mount.source, mount.identity));
    // What is hidden in a toolchain may be reached through the caller's own links, and nobody in a sandbox moves it.
    let here = |target: &Path| changeable(plan).any(|mount| target.starts_with(&mount.target));
    let masks = plan.masks.iter().filter(|mask| here(&mask.target));
    let hidden = masks.map(|mask| (&mask.target, mask.hides));
    for (path, identity) in sources.chain(hidden) {
        if identity != Identity::UNMADE && found(path).ok() != Some(identity) {
            let why = "something else is there than was planned";
            return Err(RunError::Identity { target: path.clone(), why });
        }
    }
    Ok(())
}

fn found(path: &Path) -> io::Result<Identity> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let stat = fstat(&handle)?;
    Ok(Identity { dev: stat.st_dev, ino: stat.st_ino })
}

fn records<'p>(all: impl Iterator<Item = (u8, &'p Path)>) -> Vec<u8> {
    let mut text = Vec::new();
    for (kind, path) in all {
        text.push(kind);
        text.extend(path.as_os_str().as_bytes());
        text.push(0);
    }
    text
}

fn paths(text: &[u8]) -> impl Iterator<Item = (u8, PathBuf)> {
    text.split(|byte| *byte == 0).filter_map(|record| {
        let (kind, path) = record.split_first()?;
        Some((*kind, PathBuf::from(OsString::from_vec(path.to_vec()))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(mounts: &[(&str, Access)]) -> Reach {
        Reach(mounts.iter().map(|(path, access)| (PathBuf::from(path), *access)).collect())
    }

    #[test]
    fn what_is_held_by_mounts_cannot_be_moved() {
        use Access::{ReadOnly, ReadWrite};
        let call = reach(&[
            ("/w", ReadWrite),
            ("/w/.git", ReadWrite),
            ("/w/.git/hooks", ReadOnly),
            ("/w/ro", ReadOnly),
        ]);
        for (path, moves) in [
            ("/w", false),
            ("/w/.git", false),
            ("/w/.git/hooks", false),
            ("/w/.git/objects", true),
            ("/w/x", true),
            ("/w/x/y", true),
            ("/w/ro", false),
            ("/w/ro/x", false),
            ("/elsewhere", false),
            ("/", false),
        ] {
            assert_eq!(call.can_move(Path::new(path)), moves, "{path}");
        }
        // A workspace in a workspace: all of it can go.
        assert!(reach(&[("/", ReadWrite)]).can_move(Path::new("/w")));
        let text =
            records([(WRITABLE, Path::new("/w")), (READ_ONLY, Path::new("/w/ro"))].into_iter());
        assert!(
            Reach::read(&text).can_move(Path::new("/w/x"))
                && !Reach::read(&text).can_move(Path::new("/w/ro"))
        );
    }

    /// One folder, as two processes have it.
    fn two() -> (tempfile::TempDir, Neighbours, CallId, CallId) {
        let dir = tempfile::tempdir().unwrap();
        let neighbours = Neighbours::of(dir.path());
        (dir, neighbours, CallId::fresh().unwrap(), CallId::fresh().unwrap())
    }

    async fn say(all: &Neighbours, id: &CallId, against: bool) -> Result<Held, RunError> {
        all.begin(id, NEEDS, b"", |_, _| against.then(PathBuf::new)).await
    }

    #[tokio::test]
    async fn a_word_holds_until_it_is_dropped_and_stands_against_others() {
        let (_dir, all, first, second) = two();
        let held = say(&all, &first, true).await.expect("nobody else is there");
        match say(&all, &second, true).await {
            Err(RunError::Contended { call, .. }) => assert_eq!(call, first.to_string()),
            other => panic!("{other:?}"),
        }
        drop(say(&all, &second, false).await.expect("it is about something else"));
        drop(held);
        say(&all, &second, true).await.expect("it is gone");
    }

    #[tokio::test]
    async fn after_a_death_a_word_is_gone() {
        let (_dir, all, first, second) = two();
        let held = say(&all, &first, false).await.unwrap();
        // A death: the lock goes, and nothing else happens.
        let lease = { held }.0.take().unwrap();
        let path = lease.path().to_owned();
        drop(lease);
        assert!(path.exists());
        say(&all, &second, true).await.expect("nobody holds it");
        assert!(!path.exists());
    }
}
