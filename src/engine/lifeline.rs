//! How a process that outlives the caller sees that an engine is done.
//!
//! An engine with a daemon goes on with a request after the process that sent it has died, for as long as it takes. A
//! watchdog that removes what is there at that moment would miss a sandbox that appears later. So before an
//! engine begins what could outlive this process, it hands over a socket that is closed exactly when no more will come of
//! it. An engine whose sandboxes are children of this process, and end with it, hands over nothing.

use std::os::fd::BorrowedFd;
use std::time::Duration;

/// How long one request to an engine may take. Starting a container on a loaded machine takes a while. A watchdog waits
/// no longer than that for the end of one.
pub const REQUEST_WAIT: Duration = Duration::from_secs(120);

/// Hears what an engine has begun.
pub trait Lifeline: Send {
    /// From here on a sandbox may appear, even if this process dies. `until_closed` is a connected stream socket: once its
    /// peer has closed it, the sandbox is there or will never be. The listener keeps a copy of it, and may
    /// close that for writing, which cuts off a request that was not sent as a whole.
    fn pending(&mut self, until_closed: BorrowedFd<'_>);

    /// The sandbox is there: no other will appear.
    fn settled(&mut self);
}
