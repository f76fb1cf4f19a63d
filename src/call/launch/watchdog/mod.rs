//! A child process that outlives this one by a moment, and removes the call's sandbox whatever kills this process.
//!
//! The guest ends its sandbox when this process dies, but between create and start there is no guest.
//! So this child is started first. Its standard input is a socket from us; when that closes, by any death
//! of ours, it removes every sandbox with the label of the call, also one that was never started and
//! one that the engine was still making. After an orderly end it looks once whether the sandbox is
//! gone.
//!
//! An engine may go on with what it was asked for after the process that asked has died, for as long as it takes. So the
//! watchdog is the call's [lifeline](crate::engine::Lifeline): it gets a copy of a socket that the engine closes when it is
//! done, and then the sandbox is there or will never be. No time has to be guessed.
//!
//! A sandbox that waited has a guest inside from the first moment on. So the watchdog of a call that takes one is patient: a
//! bare process, which costs a tenth of a millisecond instead of some, until the call is over or goes on for
//! longer than a moment; only then it is another run of this program, and reads what was said meanwhile.
//!
//! It is also who makes the next waiting sandbox, behind the call's back: once the call has ended, or goes on for
//! longer than a moment; and who writes the log of the records back, last of all.
//!
//! ```text
//! host                                   watchdog
//!  | -- spawn(address, call) -----------> |  waits on its standard input
//!  | -- pending: until this is closed --> |
//!  | -- settled: the sandbox is there --> |
//!  | -- took: one that waited is ours --> |
//!  | -- refill: one more like this -----> |
//!  | -- settle: where the records are --> |
//!  | -- ended: the guest told its end --> |
//!  | -- close (or death) ---------------> |  ended: refills, looks a little later
//!                                         |  pending alone: waits until the engine is done with it
//!                                         |  then: removes what there is, until nothing is left
//! ```
//!
//! | the host dies | what there is | who ends it |
//! | --- | --- | --- |
//! | before it asks | nothing | |
//! | while it asks | half a request | the engine, which refuses it when the copy is closed for writing |
//! | before the engine has answered | nothing, then a sandbox | the watchdog, when the socket is closed |
//! | before the start | a sandbox without a guest | the watchdog |
//! | while the engine starts it | a sandbox that the engine holds | the watchdog: the engine removes it after the start |
//! | later | a running guest | the guest, and the watchdog |

mod host;
mod message;
mod remove;
mod watch;

pub use host::{Activation, Watchdog};
pub use watch::main;
