//! What a survey's memory is bound to.
//!
//! Duty: one digest of everything but the workspace's content that decides what a survey finds: a memory
//! of another workspace, policy, user or program is no memory.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use super::grants::Writes;
use super::pages::{Binder, Binding};
use super::protected;
use super::survey::{Looking, Shown};

/// The digest.
pub(super) fn of(looking: &Looking<'_>) -> Binding {
    let mut binder = Binder::new();
    binder.bytes(env!("CARGO_PKG_VERSION").as_bytes());
    // The same version can be built twice.
    if let Ok(program) = std::fs::metadata("/proc/self/exe") {
        binder.number(program.dev());
        binder.number(program.ino());
        binder.number(program.ctime().cast_unsigned());
        binder.number(program.ctime_nsec().cast_unsigned());
    }
    binder.identity(looking.workspace.identity());
    binder.bytes(looking.workspace.root().as_os_str().as_bytes());
    // Whether a folder can be read depends on who asks.
    binder.number(rustix::process::geteuid().as_raw().into());
    binder.number(rustix::process::getegid().as_raw().into());
    let groups = rustix::process::getgroups().unwrap_or_default();
    binder.list(groups.iter().map(|group| group.as_raw().to_le_bytes()));
    let grants = looking.grants;
    binder.bytes(&grants.policy);
    for list in [grants.read, grants.write, grants.readonly, grants.deny] {
        binder.list(list.patterns());
    }
    binder.list(protected::key_material());
    binder.number(match grants.writes {
        Writes::None => 0,
        Writes::Some => 1,
    });
    binder.number(looking.mounted_below.into());
    for one in looking.unscanned {
        binder.bytes(one.folder.as_os_str().as_bytes());
        binder.number(match one.shown {
            Shown::Nothing => 0,
            Shown::Everything => 1,
        });
    }
    binder.finish()
}
