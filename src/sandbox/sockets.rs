//! Unix sockets of the host that lie below a folder which a sandbox shows.
//!
//! A read-only mount does not stop a program from connecting to a socket that lies in it: behind it is a process of the
//! host. So those that are bound are covered. Non-goals: the workspace, whose overlay gives each socket another inode, so
//! that nothing listens there; sockets that are made while the call runs, and those of other network namespaces, which
//! the kernel's table does not show.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The kernel's table of unix sockets in this network namespace.
const TABLE: &str = "/proc/net/unix";

/// Columns before the name.
const COLUMNS: usize = 7;

/// The sockets below any of these folders, by the names that they were bound to.
pub(super) fn below<'a>(folders: impl Iterator<Item = &'a Path> + Clone) -> Vec<PathBuf> {
    let table = fs::read(TABLE).unwrap_or_default();
    let mut found: Vec<PathBuf> = table
        .split(|byte| *byte == b'\n')
        .filter_map(name)
        .filter(|path| folders.clone().any(|folder| path.starts_with(folder)))
        .filter(|path| path.symlink_metadata().is_ok_and(|it| it.file_type().is_socket()))
        .map(Path::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The name of a line `NUM REFCOUNT PROTOCOL FLAGS TYPE ST INODE NAME`, if it is a path.
fn name(line: &[u8]) -> Option<&Path> {
    let mut rest = line;
    for _ in 0..COLUMNS {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let length = rest[start..].iter().position(|byte| *byte == b' ')?;
        rest = &rest[start + length..];
    }
    let path = Path::new(OsStr::from_bytes(rest.strip_prefix(b" ")?));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn names_are_the_rest_of_a_line() {
        let line =
            |name: &str| format!("0000000000000000: 00000002 00000000 00010000 0001 01 123{name}");
        assert_eq!(name(line(" /run/a b").as_bytes()), Some(Path::new("/run/a b")));
        assert_eq!(name(line(" @abstract").as_bytes()), None);
        assert_eq!(name(line("").as_bytes()), None);
        assert_eq!(name(b"Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }

    #[test]
    fn those_below_a_folder_are_found_and_no_others() {
        let (shown, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(shown.path().join("run")).unwrap();
        let bind = |path: PathBuf| UnixListener::bind(&path).map(|it| (it, path)).unwrap();
        let (_one, inside) = bind(shown.path().join("run/one"));
        let (_two, _) = bind(other.path().join("two"));
        assert_eq!(below([shown.path()].into_iter()), [inside]);
    }
}
