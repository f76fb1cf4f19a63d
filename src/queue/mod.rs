//! How many calls of one tool run at once, and how many wait: an orderly queue across processes.
//!
//! ```text
//!            none waits, a slot is free                      slots 0..9    held while a call runs
//! newcomer ----------------------------------------------->  [ ][ ][ ]
//!     |                                                        ^
//!     +--> a waiting place, 0..99 --> the line --> its head ---+
//!              |
//!              none is free: `busy`
//! ```
//!
//! Duty: a place for a call, or a refusal that says so. Each slot, each waiting place, the line and its head is a
//! file with a lease ([`crate::sys::lease`]). The kernel keeps those who wait for the line in the order in which they came,
//! and frees whatever a process held when that process ends, however it ends: nothing has to be repaired after a
//! crash. Only the call at the head of the line looks for a free slot, so a crowd costs no more than one
//! call. A call leaves the line only from its head, so a newcomer always sees that others wait. Without a
//! crowd a place costs three opened files and three locks.
//!
//! No deadlock: a call of a tool holds a slot of that tool and its commands take slots of [`Subject::Command`]; a
//! command never takes a slot of a tool, and nothing else is waited for with a slot in hand. The order is
//! fixed, and every holder of a command's slot ends by its own time limit.
//!
//! Non-goals: fairness between users (each has its own queue), limits of what a call uses (the sandbox has
//! those). Trust boundary: the files are in the caller's own state folder, which no sandbox sees; whoever can
//! write there is the caller.

mod error;
mod gate;
mod held_slot;
mod slots;

pub use error::QueueError;
pub use gate::{Breaker, Gate, Shut, Standing, Went, Why};
pub use held_slot::HeldSlot;
pub use slots::{Figures, Queue, Subject};
