//! Which processors threads run on.

use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that a process may use.
#[derive(Clone, Copy)]
pub struct Processors(CpuSet);

impl Processors {
    /// Those of this thread; `None` where the kernel does not tell, or there is only one.
    #[must_use]
    pub fn several() -> Option<Self> {
        sched_getaffinity(None).ok().filter(|set| set.count() > 1).map(Self)
    }

    /// Has a thread that was just started run on another processor than this thread's. The kernel may put it in line behind
    /// the one that has started it, which works on for longer than the new one has to do, while another processor idles.
    /// Best effort. It stays bound until it lets go by [`use_all`](Self::use_all).
    pub fn begin_elsewhere<T>(self, thread: &JoinHandle<T>) {
        #[expect(
            unsafe_code,
            reason = "reading the kernel's own page, the safe call fails under valgrind"
        )]
        // SAFETY: no pointers; where it cannot be told it is -1.
        let Ok(here) = usize::try_from(unsafe { libc::sched_getcpu() }) else { return };
        let mut others = self.0;
        others.unset(here);
        let size = size_of::<CpuSet>();
        #[expect(unsafe_code, reason = "a thread of the C library has no safe setting")]
        // SAFETY: the thread was not joined, so its handle is good; the set is as large as is said, and only read.
        unsafe {
            libc::pthread_setaffinity_np(thread.as_pthread_t(), size, (&raw const others).cast());
        }
    }

    /// Lets this thread run on any of them again.
    pub fn use_all(self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_new_thread_is_bound_to_others_until_it_lets_go() {
        let Some(processors) = Processors::several() else { return };
        let (go, told) = channel::<()>();
        let thread = std::thread::spawn(move || {
            told.recv().unwrap();
            let bound = sched_getaffinity(None).unwrap().count();
            processors.use_all();
            (bound, sched_getaffinity(None).unwrap().count())
        });
        processors.begin_elsewhere(&thread);
        go.send(()).unwrap();
        let all = processors.0.count();
        assert_eq!(thread.join().unwrap(), (all - 1, all));
    }
}
