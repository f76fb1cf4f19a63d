//! Which of two handles SIGINT, SIGTERM and SIGHUP: the event loop, or the kernel's default.

use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

/// The signals that a call is ended with.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The event loop's handlers, while the default is in force. A process has one handler a signal, and the event loop installs
/// its own only once: this mirrors that state of the process, not of a call.
static TAKEN: Mutex<Vec<(libc::c_int, libc::sigaction)>> = Mutex::new(Vec::new());

/// From here on SIGINT, SIGTERM and SIGHUP end the process. The event loop's handlers stay installed when it has ended:
/// without this, the process would ignore these signals from then on.
pub fn default_signals() {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in SIGNALS {
        let handler = set(signal, None);
        if let Some(handler) = handler.filter(|it| it.sa_sigaction != libc::SIG_DFL) {
            taken.retain(|(of, _)| *of != signal);
            taken.push((signal, handler));
        }
    }
}

/// Installs the event loop's handlers again after [`default_signals`]. The event loop installs them once in the life of a
/// process: without this, a second one would hear no signals.
pub fn catch_signals() {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    for (signal, handler) in taken.drain(..) {
        set(signal, Some(handler));
    }
}

/// Sets what a signal does, the default for `None`; what it did before.
#[expect(unsafe_code, reason = "the handlers of the event loop cannot be taken back otherwise")]
fn set(signal: libc::c_int, handler: Option<libc::sigaction>) -> Option<libc::sigaction> {
    // SAFETY: all zeroes is a valid action: the default one, with no flags and an empty mask.
    let default = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    let action = handler.unwrap_or(default);
    let mut before = MaybeUninit::uninit();
    // SAFETY: both point to actions of ours; a handler is one that the kernel gave us for this signal.
    let done = unsafe { libc::sigaction(signal, &raw const action, before.as_mut_ptr()) };
    // SAFETY: the kernel has filled it in where it succeeded.
    (done == 0).then(|| unsafe { before.assume_init() })
}

#[cfg(test)]
mod tests {
    use tokio::signal::unix::{SignalKind, signal};

    use super::*;

    #[test]
    fn a_second_event_loop_hears_signals_after_the_first_let_go_of_them() {
        for _ in 0..3 {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut heard = signal(SignalKind::hangup()).unwrap();
                catch_signals();
                rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::HUP,
                )
                .unwrap();
                heard.recv().await.unwrap();
            });
            default_signals();
        }
    }
}
