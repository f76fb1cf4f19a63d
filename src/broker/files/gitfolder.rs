//! No tool makes a git folder.
//!
//! Whatever has `HEAD`, `objects` and `refs` in it is a git folder, whatever it is called, and git runs what its
//! `config` names as soon as somebody uses git in it. In one that is there already nothing is
//! writable (see `judge`); here nobody can write a `config` first and make the folder around it afterwards.
//!
//! Trust boundary: requests of a tool run side by side, and so do other calls. Each could add one name while it
//! sees only one of the others. Looking and acting are therefore one step, for which all calls of a caller wait in
//! turn ([`Turn`]).

use std::time::Duration;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use super::place::Slot;
use super::{Files, errno};
use crate::broker::Refusal;
use crate::codes::Code;
use crate::stage::turn::{Turn, TurnError};

/// How long a request waits for calls that change the workspace. Less than what a call that ends waits for its
/// requests.
const PATIENCE: Duration = Duration::from_secs(10);

impl Files {
    /// Waits for the turn to change the workspace.
    pub(super) fn turn(&self) -> Result<Turn, Refusal> {
        let Some(state) = &self.state else {
            return Err(Refusal::new(Code::IoError, "there is no state folder to wait in"));
        };
        let root = self.workspace.root().to_owned();
        Turn::take(state, &[root], PATIENCE).map_err(|error| {
            let refusal = |code| Refusal::new(code, error.to_string());
            match error {
                TurnError::Busy(..) => refusal(Code::Busy),
                TurnError::Interrupted(_) => {
                    refusal(Code::IoError).hint("run `runner gc`, then try again")
                }
                TurnError::Io(..) => refusal(Code::IoError),
            }
        })
    }

    /// Gives a slot something, unless its folder would be a git folder by that. It is the caller's turn.
    pub(super) fn fill<T>(
        &self,
        _: &Turn,
        slot: &Slot,
        verb: &str,
        act: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Refusal> {
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
