//! Where surveys' memories are kept: one folder of the caller's, one file a memory.
//!
//! Duty: read one, write one whole, and keep their number bounded. Trust boundary: a folder that another user owns or
//! can enter is not used, nor is a file that is a link, belongs to another user or is open to others. What cannot be
//! read or written is no error: then folders are read again.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::fs::OFlags;

use super::pages::Binding;

/// Most memories; the oldest go.
const MAX_FILES: usize = 200;

/// Tells apart what several threads of one process write at once.
static COUNTER: AtomicU64 = AtomicU64::new(0);

fn name(binding: Binding) -> String {
    binding.0[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_ours(found: &fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0
}

/// What is kept; `Some(None)` where nothing is yet, and `None` where nothing may be.
pub(super) fn read(folder: &Path, binding: Binding, most: usize) -> Option<Option<Vec<u8>>> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() && is_ours(&found) => {}
        Ok(_) => return None,
        Err(error) => return (error.kind() == std::io::ErrorKind::NotFound).then_some(None),
    }
    Some(read_file(&folder.join(name(binding)), most))
}

fn read_file(path: &Path, most: usize) -> Option<Vec<u8>> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    let size = usize::try_from(found.len()).ok()?;
    if !found.is_file() || !is_ours(&found) || size > most {
        return None;
    }
    let mut bytes = Vec::with_capacity(size);
    file.take(found.len()).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Keeps a memory, whole or not at all.
pub(super) fn write(folder: &Path, binding: Binding, bytes: &[u8]) {
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && is_ours(&found)) {
        return;
    }
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let own = folder.join(format!("{}.{}.{number}.new", name(binding), std::process::id()));
    let placed = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&own)
        .and_then(|mut file: File| file.write_all(bytes))
        .and_then(|()| fs::rename(&own, folder.join(name(binding))));
    if placed.is_err() {
        let _ = fs::remove_file(&own);
    }
    drop_oldest(folder);
}

fn drop_oldest(folder: &Path) {
    let mut files: Vec<(SystemTime, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    if files.len() > MAX_FILES {
        files.sort();
        let surplus = files.len() - MAX_FILES;
        for (_, path) in files.drain(..surplus) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const BINDING: Binding = Binding([1; 32]);

    #[test]
    fn what_is_kept_is_read_and_only_by_its_owner() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("a/walks");
        assert_eq!(read(&folder, BINDING, 9), Some(None));
        write(&folder, BINDING, b"content");
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        let file = folder.join(name(BINDING));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read(&folder, BINDING, 9), Some(Some(b"content".to_vec())));
        assert_eq!(read(&folder, BINDING, 3), Some(None), "too large");
        assert_eq!(read(&folder, Binding([2; 32]), 9), Some(None));

        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read(&folder, BINDING, 9), Some(None), "open to others");
        fs::rename(&file, top.path().join("elsewhere")).unwrap();
        fs::set_permissions(top.path().join("elsewhere"), fs::Permissions::from_mode(0o600))
            .unwrap();
        symlink(top.path().join("elsewhere"), &file).unwrap();
        assert_eq!(read(&folder, BINDING, 9), Some(None), "a link");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(read(&folder, BINDING, 9), None, "others can enter");
        write(&folder, Binding([3; 32]), b"x");
        assert!(!folder.join(name(Binding([3; 32]))).exists());
    }

    #[test]
    fn their_number_is_bounded() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("walks");
        for number in 0..=u8::try_from(MAX_FILES).unwrap() + 5 {
            write(&folder, Binding([number; 32]), b"x");
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), MAX_FILES);
    }
}
