//! Sandboxes that wait: each is held by a process of its own, another run of this program.
//!
//! ```text
//! refill                    holder                            launcher, guest
//!  | -- spawn, order ------> | checks the folder, locks a file
//!  |                         | -- recipe, over the wire -----> | makes the sandbox
//!  |                         | <-- standard error ends ------- | the guest runs, and waits
//!  | <-- it waits ---------- | listens on a socket
//!  x                         |
//! call                       |
//!  | -- connect, take -----> | compares the user
//!  | <-- the wire itself --- | ends
//!  | <------------------------- hello, ready, start ---------> |
//! ```
//!
//! Duty: a sandbox that outlives the process that made it, for one call, which gets the wire itself, so that nothing is
//! relayed. Non-goals: which call may have it ([`crate::pool`] decides, and the call proves what it got). What else
//! ends it: `end` over the socket, its time to live, which the guest counts, and the holder's own clock behind that; and
//! any death of the holder, because the wire closes with it.
//!
//! | what | where | who may |
//! | --- | --- | --- |
//! | the folder | `$XDG_RUNTIME_DIR/runner`, else `waiting` in the state folder | mode 700, this user's, no link; otherwise nothing is done there |
//! | `ID.holder` | in it | labels; locked while the holder lives: a free one is left over |
//! | `ID.socket` | in it | mode 600; both ends compare the user and the process namespace of the other |
//!
//! Trust boundary: a process of this user that is in no sandbox is the caller. No sandbox shows the folder, which no
//! workspace may hold, and none sees the holder, which is in no sandbox's process namespace. The holder has no variable of
//! the caller's, no terminal, no folder and no descriptor but its own, and cannot be inspected.

mod claim;
mod folder;
mod holder;
mod park;
mod words;

pub(super) use claim::{attach, end, list};
pub(super) use folder::choose;
pub use holder::main;
pub(super) use park::{Waiting, park};
