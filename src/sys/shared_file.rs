//! Files of the caller's own by which processes find each other: locked, and read or written under the lock.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens one, made if it is missing, never through a link, for the caller alone. Each opening holds locks of its own,
/// also within one process, and no program that this one starts inherits it.
///
/// # Errors
/// It cannot be opened, or is a link.
pub fn shared_file(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_link_is_not_followed_and_what_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        shared_file(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&file, "kept").unwrap();
        shared_file(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(shared_file(&link).is_err());
    }
}
