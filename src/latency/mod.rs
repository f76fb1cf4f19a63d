//! Measures that make a call start faster. Without them every call works the same, but takes longer.
//!
//! Each measure has its gain beside it: the median of a warm `exec -- true` in a workspace of 1,000 files with the measure
//! switched off, less the median with it (2 processors, 22 rounds in turn; a median varies by about 0.2 ms). A measure that
//! gains less than 0.2 ms goes: keeping the index of SQLite's log (0.2 ms of a denial at most, nothing of a warm call) and
//! a pause of the watchdog for the process that ends (nothing) are gone.
//!
//! | measure | where | gain |
//! | --- | --- | --- |
//! | the watchdog of a warm call becomes a program only when the call is over | `sys/sentinel.rs` | 1.8 ms |
//! | the helping thread begins on another processor | `sys/processors.rs` | 1.3 ms |
//! | a waiting sandbox is claimed on a guess and woken while the call is planned | `pool/guess.rs`, `call/launch/{ahead,wake}.rs` | 1.1 ms |
//! | a thread opens the database and plans, beside the main thread | [`Helper`] | 0.4 ms |
//! | that thread begins before the command line is parsed | [`Early`] | 0.2 ms; 0.7 ms of a denial |
//!
//! The unsafe parts are in `sys`, the parts about waiting sandboxes in `pool` and `call`: dependencies point one way, and
//! this table is the only list. [`run_if_slow`] is no gain: it shows calls that wait in `ps`, without a cost for those that
//! do not.

mod early;
mod helper;
mod run_if_slow;

pub use early::{Early, Opening};
pub use helper::{Beside, Helper};
pub use run_if_slow::run_if_slow;
