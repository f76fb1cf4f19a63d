//! Waiting sandboxes: claim, refill, expire. There is no daemon of ours.
//!
//! Duty: keep a few sandboxes that were made and never used, so that a call costs milliseconds. Who holds them until then
//! is the engine's affair: a daemon, or a process for each. Non-goals:
//! planning a sandbox (a call does, each time) and talking to a guest (the run does).
//!
//! ```text
//! call                       pool folder            watchdog of the call         engine
//!  | -- take what was made for calls like this ----------- |                        |
//!  | plan, afresh                | (attach, hello, ready)  |                        |
//!  | key of the plan             |                         |                        |
//!  | -- order: one like this ----|-----------------------> |  waits for the end,    |
//!  | -- take the entry's file -> |                         |  or a moment           |
//!  | attach, hello, ready: every mount is compared --------|----------------------> |
//!  | start, run, end             |                         | -- create, start ----> |
//!  |                             | <------ a new entry --- |                        |
//! ```
//!
//! - **Used once.** An entry is a file; taking it is locking and renaming it, which one process alone can do. A guest
//!   takes one hello and one start, and ends with its call. What a process had in its hands when it died is ended by
//!   the next that makes one, by `pool drain` and by `gc`.
//! - **Of exactly this key.** A call plans as if there were no pool: it walks the workspace, opens every source,
//!   and its plan is the key. Whatever cannot change after a container is made is in it, with the device and
//!   inode of each source and of all that is hidden. Another workspace, policy, guest or figure is another key.
//! - **Taken on a guess.** Planning and waking take as long as each other, so a call takes an entry that was made for one
//!   like it ([`Guess`]) and wakes it while it plans. It is used only if the plan turns out to be its key; otherwise
//!   something has changed under it, and it is given up. Nothing is sent to it before. A sandbox that writes is taken once
//!   it is planned: folders that were made for it are back only then.
//! - **As planned.** Before the command is sent, the guest reports what stands at each mount, as in a new sandbox.
//! - **Ends itself.** A waiting guest has a time to live, counted inside; it needs neither us nor the engine for it.
//! - **Bounded.** Entries and those being made are counted under one lock, so no storm makes more than the
//!   configured number, or more than the configured memory. A project's own bounds count its own sandboxes, and never
//!   cost another project's. What a call cannot get here it makes for itself.
//!
//! Trust boundary: the folder is the caller's own, mode 700; a workspace that holds it is refused. What it says is
//! not trusted to be alive or right: an entry only names a container, the claim proves the rest, and nothing is ended
//! that does not say itself that it is this user's.

mod discard;
mod drain;
mod entry;
mod guess;
mod held;
mod key;
mod order;
mod refill;
mod reserve;

pub use discard::discard;
pub use drain::{Drained, Status, drain};
pub use entry::{Claimed, Class, Entry, Pool, PoolError};
pub use guess::{Guess, GuessFacts};
pub use held::{Held, Trace};
pub use key::{Key, Lane, Wanted};
pub use order::{Bounds, Order, Supply};
pub use refill::{Refilled, refill};
