//! Access lists (POSIX ACLs) of staged files and folders.
//!
//! Duty: tell whether a staged entry gives rights to users or groups that the host's own lists do not
//! give. Its permission bits do not show that: the bits of the group are only the most that a list may
//! give. Non-goals: what the bits themselves give, which `stage diff` shows. Trust boundary: the lists
//! of a stage are the adversary's, those of the host count as they are read. A list that cannot be
//! read or understood gives more.
//!
//! A new entry inherits the default list of the folder in which it is made, so the host's default
//! lists count for what is new below them.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

use rustix::fs::lgetxattr;
use rustix::io::Errno;

use super::layer::through;

/// The list of an entry, as an extended attribute.
pub const ACCESS: &str = "system.posix_acl_access";

/// The list that a folder gives to what is made in it.
pub const DEFAULT: &str = "system.posix_acl_default";

/// Longest list that is read: a thousand entries, many more than file systems of disks store.
const MAX_LIST: usize = 8 * 1024;

/// `POSIX_ACL_XATTR_VERSION`, before the entries.
const VERSION: u32 = 2;

/// Bytes of an entry: tag, rights, id.
const ENTRY: usize = 8;

/// A named user and a named group (`ACL_USER`, `ACL_GROUP`). The other tags are what permission bits
/// say.
const NAMED: [u16; 2] = [0x02, 0x08];

/// Tags that an entry may have besides: owner, owning group, mask, others.
const UNNAMED: [u16; 4] = [0x01, 0x04, 0x10, 0x20];

/// Rights of one named user or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    tag: u16,
    id: u32,
    rights: u16,
}

/// What the lists of an entry give to named users and groups. `None`: it cannot be told.
#[must_use]
pub fn grants(folder: BorrowedFd<'_>, name: &OsStr, lists: &[&str]) -> Option<Vec<Grant>> {
    let path = through(folder, name);
    let mut found = Vec::new();
    for list in lists {
        let mut bytes = [0u8; MAX_LIST];
        match lgetxattr(&path, *list, &mut bytes) {
            Ok(length) => found.extend(read(&bytes[..length])?),
            Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

/// Whether one of these grants is in none of the host's.
#[must_use]
pub fn gives_more(staged: Option<&[Grant]>, host: &[Grant]) -> bool {
    let is_given = |grant: &Grant| {
        host.iter().any(|own| {
            (own.tag, own.id) == (grant.tag, grant.id) && grant.rights & !own.rights == 0
        })
    };
    staged.is_none_or(|staged| !staged.iter().all(is_given))
}

/// The named entries of a list.
fn read(bytes: &[u8]) -> Option<Vec<Grant>> {
    let (version, entries) = bytes.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*version) != VERSION || !entries.len().is_multiple_of(ENTRY) {
        return None;
    }
    let mut grants = Vec::new();
    for entry in entries.chunks_exact(ENTRY) {
        let [t0, t1, r0, r1, id @ ..] = entry else { return None };
        let tag = u16::from_le_bytes([*t0, *t1]);
        if NAMED.contains(&tag) {
            let (rights, id) =
                (u16::from_le_bytes([*r0, *r1]), u32::from_le_bytes(id.try_into().ok()?));
            grants.push(Grant { tag, id, rights });
        } else if !UNNAMED.contains(&tag) {
            return None;
        }
    }
    Some(grants)
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
