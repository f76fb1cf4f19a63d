//! Where pins, the key of tickets and the memory of sessions are, found without the environment.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::account::account_home;
use super::error::AgentError;
use crate::sys;

/// The user's folder, below the home of the account.
const FOLDER: &str = ".local/state/runner/agents";

/// The folder of whoever manages the machine.
const MANAGED: &str = "/etc/runner/agents";

/// The largest file of ours that is read.
const MAX_BYTES: u64 = 4 << 20;

/// The folders, and the home that the first one lies in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The home of the account.
    pub home: PathBuf,
    /// The user's folder.
    pub folder: PathBuf,
    /// The folder of the managed layer.
    pub managed: PathBuf,
}

impl Place {
    /// That of the user who runs this process.
    ///
    /// # Errors
    /// The account has no home.
    pub fn of_account() -> Result<Self, AgentError> {
        let home = account_home().ok_or(AgentError::NoAccount)?;
        Ok(Self { folder: home.join(FOLDER), home, managed: PathBuf::from(MANAGED) })
    }

    /// Makes the user's folder, for the user alone.
    ///
    /// # Errors
    /// It cannot be made, or is not the user's own.
    pub fn make(&self) -> Result<(), AgentError> {
        make_folder(&self.folder)
    }
}

/// Makes a folder that only this user can enter.
pub(super) fn make_folder(folder: &Path) -> Result<(), AgentError> {
    let failed = |source| AgentError::Io { path: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let opened = File::open(folder).map_err(failed)?;
    check_owner(&opened, folder, rustix::process::getuid().as_raw())
}

/// Reads a file that only `owner` can have written; `None` if it is not there.
pub(super) fn read_own(path: &Path, owner: u32) -> Result<Option<Vec<u8>>, AgentError> {
    let failed = |source| AgentError::Io { path: path.to_owned(), source };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(source)),
    };
    check_owner(&file, path, owner)?;
    // Somebody who can write to its folder could put another file there.
    if let Some(folder) = path.parent() {
        check_owner(&File::open(folder).map_err(failed)?, folder, owner)?;
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        let why = format!("it is larger than {MAX_BYTES} bytes");
        return Err(AgentError::Damaged { path: path.to_owned(), why });
    }
    Ok(Some(bytes))
}

/// Replaces a file of ours at once, with these permissions.
pub(super) fn write_own(path: &Path, bytes: &[u8], mode: u32) -> Result<(), AgentError> {
    let failed = |source| AgentError::Io { path: path.to_owned(), source };
    let chance = sys::random::<8>().map_err(failed)?;
    let temporary = path.with_extension(format!("{:016x}.tmp", u64::from_ne_bytes(chance)));
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .custom_flags(flags)
        .open(&temporary)
        .map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let named = written.and_then(|()| fs::rename(&temporary, path));
    if named.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    named.map_err(failed)
}

/// Refuses what another user owns, or may write to.
fn check_owner(file: &File, path: &Path, owner: u32) -> Result<(), AgentError> {
    let meta =
        file.metadata().map_err(|source| AgentError::Io { path: path.to_owned(), source })?;
    match meta.uid() == owner && meta.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(AgentError::Unsafe(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_a_file_of_the_owner_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        make_folder(&own).unwrap();
        let (path, uid) = (own.join("file"), rustix::process::getuid().as_raw());
        assert_eq!(read_own(&path, uid).unwrap(), None);
        write_own(&path, b"text", 0o600).unwrap();
        assert_eq!(read_own(&path, uid).unwrap().unwrap(), b"text");
        // Of another user, writable by others, in a folder that others may write to, or a link.
        assert!(matches!(read_own(&path, uid + 1), Err(AgentError::Unsafe(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(matches!(read_own(&path, uid), Err(AgentError::Unsafe(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(read_own(&path, uid), Err(AgentError::Unsafe(_))));
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        let link = own.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(read_own(&link, uid), Err(AgentError::Io { .. })));
    }
}
