//! No tool makes a git folder.
//!
//! Whatever has `HEAD`, `objects` and `refs` in it is a git folder, whatever it is called, and git runs what its
//! `config` names as soon as somebody uses git in it. In one that is there already that `config` is never
//! writable (see `judge`); here nobody can write a `config` first and make the folder around it afterwards.
//!
//! Trust boundary: requests of a tool run side by side, and each could add one name while it sees only one of
//! the others. Looking and acting are therefore one step, which requests take in turn.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use super::place::Slot;
use super::{Files, errno};
use crate::broker::Refusal;
use crate::codes::Code;

/// Of all calls of this process: two of them may share a workspace.
static TURN: Mutex<()> = Mutex::new(());

/// Waits for the turn to give a name or take one away.
pub(super) fn turn() -> MutexGuard<'static, ()> {
    // It guards no data that could be left half changed.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    /// Gives a slot something, unless its folder would be a git folder by that.
    pub(super) fn fill<T>(
        &self,
        slot: &Slot,
        verb: &str,
        act: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Refusal> {
        let _turn = turn();
        self.may_fill(slot)?;
        act().map_err(|error| errno::refusal(verb, &slot.relative, error))
    }

    /// Whether a slot may have something; [`fill`](Self::fill) asks again.
    #[expect(clippy::unused_self, reason = "it stands beside the other questions about a path")]
    pub(super) fn may_fill(&self, slot: &Slot) -> Result<(), Refusal> {
        if !completes(slot) {
            return Ok(());
        }
        let message = format!(
            "with {} its folder would be a git folder, and git runs what such a folder says",
            slot.relative
        );
        Err(Refusal::new(Code::ProtectedPath, message)
            .at(&slot.relative)
            .hint("write to another path"))
    }
}

/// Whether the slot's name is the one that its folder lacks to be a git folder. By the handle of the folder,
/// wherever it is.
fn completes(slot: &Slot) -> bool {
    let look = |name: &str| statat(&slot.folder, name, AtFlags::SYMLINK_NOFOLLOW);
    // What cannot be looked at may be there.
    let has = |name: &str| !matches!(look(name), Err(Errno::NOENT));
    // Some file systems do not tell `head` from `HEAD`.
    let completes = match slot.name.to_ascii_lowercase().as_str() {
        "head" => has("commondir") || has("objects") && has("refs"),
        "objects" => has("HEAD") && has("refs"),
        "refs" => has("HEAD") && has("objects"),
        // It says where the other two are: with it git looks for `HEAD` alone.
        "commondir" => has("HEAD"),
        _ => false,
    };
    // What is replaced was there before, and the folder is what it was.
    completes && look(&slot.name).is_err()
}
