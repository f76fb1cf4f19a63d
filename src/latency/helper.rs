//! A helper thread that runs closures one after the other.
//!
//! Duty: the small tasks of one call that can run beside its main thread. One thread serves all of them: starting and waking
//! a thread costs as much as a task. Non-goals: a thread pool; in a server, each starting call has a helper of its own.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use crate::sys::Processors;

type Work = Box<dyn FnOnce() + Send>;

/// The thread ends when this value is dropped.
#[derive(Debug)]
pub struct Helper(Sender<Work>);

impl Helper {
    /// Starts the thread; `None` if the system has no more threads. Waking a processor can take longer than the tasks, so a
    /// front starts the thread before it knows them ([`Early`](super::Early)).
    #[must_use]
    pub fn start() -> Option<Self> {
        let (sender, receiver) = channel::<Work>();
        let processors = Processors::several();
        let thread = move || {
            let mut bound = processors;
            for work in receiver {
                // The first task is here, so the thread no longer has to stay on another processor.
                if let Some(processors) = bound.take() {
                    processors.use_all();
                }
                work();
            }
        };
        let thread = Builder::new().spawn(thread).ok()?;
        if let Some(processors) = processors {
            processors.begin_elsewhere(&thread);
        }
        Some(Self(sender))
    }

    /// Queues a task. If the thread has died, the task is dropped, and a wait for its result returns `None`.
    pub fn tell(&self, work: impl FnOnce() + Send + 'static) {
        let _ = self.0.send(Box::new(work));
    }

    /// Queues a task that returns a result, or nothing.
    pub fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Beside<T> {
        let (sender, receiver) = channel();
        self.tell(move || {
            // The receiver may be gone.
            let _ = work().map(|found| sender.send(found));
        });
        Beside(receiver)
    }
}

/// The future result of a task.
#[derive(Debug)]
pub struct Beside<T>(Receiver<T>);

impl<T> Beside<T> {
    /// Waits for it; `None` if the thread has died.
    #[must_use]
    pub fn join(self) -> Option<T> {
        self.0.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_all_in_order_and_drops_what_it_cannot_do() {
        let helper = Helper::start().unwrap();
        let (sender, receiver) = channel();
        for number in 0..3 {
            let sender = sender.clone();
            helper.tell(move || sender.send(number).unwrap());
        }
        helper.tell(|| panic!("as a bug would"));
        helper.tell(move || sender.send(3).unwrap());
        assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
