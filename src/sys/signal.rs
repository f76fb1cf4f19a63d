//! Signals as they were before this program caught them.

/// From here on SIGINT, SIGTERM and SIGHUP end the process. The event loop catches them for its calls, and its
/// handlers stay when it has ended: what comes after it must not be deaf.
#[expect(unsafe_code, reason = "the handlers of the event loop cannot be taken back otherwise")]
pub fn default_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: no pointers; the default action is always valid.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
