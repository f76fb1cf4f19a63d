//! Which project policies a person has read and pinned.
//!
//! One small JSON file in the user's state folder. A pin names workspace, policy and digest; the
//! digest covers everything the policy builds on, so any change asks again. A file that is damaged,
//! foreign or writable by others is an error: forgetting pins silently would be as wrong as
//! believing planted ones.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::sys::lease::{Exclusive, Lease};

/// The format of the file.
const VERSION: u32 = 1;
/// The file under whose lock pins are added.
const LOCK: &str = "trust.lock";
/// Largest file that is read: thousands of pins.
const MAX_BYTES: u64 = 4 << 20;

/// One policy of one workspace, as it was when a person trusted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The workspace's path.
    pub workspace: PathBuf,
    /// The policy's name.
    pub policy: String,
    /// Digest of the policy with all it builds on.
    pub digest: String,
    /// When.
    pub at: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pins {
    version: u32,
    pins: Vec<Pin>,
}

/// The file of pins.
#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: PathBuf,
}

/// The pins cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// There is no folder for our state.
    #[error("there is no folder for the pins of trusted policies")]
    NoFolder,
    /// Reading or writing failed.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else owns the file or can write to it.
    #[error("{0} belongs to another user, or another user can change it")]
    Unsafe(PathBuf),
    /// It is not what we wrote.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl TrustStore {
    /// The store in a state folder.
    ///
    /// # Errors
    /// Neither `XDG_STATE_HOME` nor `HOME` names one.
    pub fn open(state: Option<&Path>) -> Result<Self, TrustError> {
        state.map(|folder| Self { folder: folder.to_owned() }).ok_or(TrustError::NoFolder)
    }

    /// Whether this digest of this policy is pinned for this workspace.
    ///
    /// # Errors
    /// The file is unsafe, damaged or unreadable.
    pub fn trusts(&self, workspace: &Path, policy: &str, digest: &str) -> Result<bool, TrustError> {
        let is =
            |pin: &Pin| pin.workspace == workspace && pin.policy == policy && pin.digest == digest;
        Ok(self.pins()?.iter().any(is))
    }

    /// Every pin.
    ///
    /// # Errors
    /// The file is unsafe, damaged or unreadable.
    pub fn pins(&self) -> Result<Vec<Pin>, TrustError> {
        let path = self.path();
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let file = match OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(&path)
        {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(TrustError::Io { path, source }),
        };
        check_owner(&file, &path)?;
        let mut text = String::new();
        file.take(MAX_BYTES)
            .read_to_string(&mut text)
            .map_err(|source| TrustError::Io { path: path.clone(), source })?;
        let pins: Pins = serde_json::from_str(&text)
            .map_err(|error| TrustError::Damaged { path: path.clone(), why: error.to_string() })?;
        if pins.version == VERSION {
            Ok(pins.pins)
        } else {
            Err(TrustError::Damaged {
                path,
                why: format!("version {} is not {VERSION}", pins.version),
            })
        }
    }

    /// Adds a pin in place of an older one of the same policy.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn pin(&self, pin: Pin) -> Result<(), TrustError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| TrustError::Io { path, source }
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(failed(&self.folder))?;
        let folder = File::open(&self.folder).map_err(failed(&self.folder))?;
        check_owner(&folder, &self.folder)?;
        // Two people at once must not lose a pin: read, change and replace under one lock.
        let lock = self.folder.join(LOCK);
        let _lock = Lease::<Exclusive>::wait(&lock).map_err(failed(&lock))?;
        let mut pins = self.pins()?;
        pins.retain(|old| (&old.workspace, &old.policy) != (&pin.workspace, &pin.policy));
        pins.push(pin);
        let text = serde_json::to_string_pretty(&Pins { version: VERSION, pins })
            .map_err(|error| failed(&self.path())(error.into()))?;
        // A reader sees the old file or the new one, never a half.
        let new = self.folder.join(format!("trust.json.{}", std::process::id()));
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, self.path())
        };
        write().map_err(failed(&self.path()))
    }

    fn path(&self) -> PathBuf {
        self.folder.join("trust.json")
    }
}

/// Only the caller (or root) may have written here.
fn check_owner(file: &File, path: &Path) -> Result<(), TrustError> {
    let meta =
        file.metadata().map_err(|source| TrustError::Io { path: path.to_owned(), source })?;
    let ours = meta.uid() == rustix::process::geteuid().as_raw() || meta.uid() == 0;
    if ours && meta.mode() & 0o022 == 0 { Ok(()) } else { Err(TrustError::Unsafe(path.to_owned())) }
}

impl Failure for TrustError {
    fn code(&self) -> Code {
        match self {
            Self::NoFolder | Self::Io { .. } => Code::TrustUnavailable,
            Self::Unsafe(_) => Code::TrustUnsafe,
            Self::Damaged { .. } => Code::TrustDamaged,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoFolder => "set HOME or XDG_STATE_HOME".to_owned(),
            Self::Io { .. } => "check the permissions of your state folder".to_owned(),
            Self::Unsafe(path) => format!("look at it, then chmod go-w {}", path.display()),
            Self::Damaged { .. } => {
                "look at it, remove it, and trust your policies again".to_owned()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn pin(workspace: &str, policy: &str, digest: &str) -> Pin {
        Pin {
            workspace: workspace.into(),
            policy: policy.into(),
            digest: digest.into(),
            at: "now".into(),
        }
    }

    fn store() -> (tempfile::TempDir, TrustStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::open(Some(&dir.path().join("state/runner"))).unwrap();
        (dir, store)
    }

    #[test]
    fn a_pin_holds_for_one_digest_of_one_policy_in_one_workspace() {
        let (_dir, store) = store();
        assert!(!store.trusts("/w".as_ref(), "p", "d1").unwrap());
        store.pin(pin("/w", "p", "d1")).unwrap();
        assert!(store.trusts("/w".as_ref(), "p", "d1").unwrap());
        for (workspace, policy, digest) in
            [("/w2", "p", "d1"), ("/w", "q", "d1"), ("/w", "p", "d2")]
        {
            assert!(!store.trusts(workspace.as_ref(), policy, digest).unwrap());
        }
        store.pin(pin("/w", "p", "d2")).unwrap();
        assert!(
            !store.trusts("/w".as_ref(), "p", "d1").unwrap(),
            "the new digest replaces the old"
        );
    }

    #[test]
    fn the_files_are_private() {
        let (_dir, store) = store();
        store.pin(pin("/w", "p", "d")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&store.folder), mode(&store.path())), (0o700, 0o600));
    }

    #[test]
    fn damaged_and_open_files_are_errors_not_empty() {
        let (_dir, store) = store();
        store.pin(pin("/w", "p", "d")).unwrap();
        for text in
            ["", "{}", "[]", "{\"version\":2,\"pins\":[]}", "{\"version\":1,\"pins\":[],\"x\":1}"]
        {
            fs::write(store.path(), text).unwrap();
            assert!(matches!(store.pins(), Err(TrustError::Damaged { .. })), "{text}");
        }
        fs::set_permissions(store.path(), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(store.pins(), Err(TrustError::Unsafe(_))));
    }

    #[test]
    fn pins_made_at_once_all_stay() {
        let (_dir, store) = store();
        std::thread::scope(|scope| {
            for at in 0..8 {
                let store = &store;
                scope.spawn(move || store.pin(pin("/w", &format!("p{at}"), "d")).unwrap());
            }
        });
        assert_eq!(store.pins().unwrap().len(), 8);
    }
}
