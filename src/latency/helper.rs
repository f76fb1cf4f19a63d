//! A thread that does what it is told, one after the other.
//!
//! Duty: to do the small things of one call beside its main thread. One thread and not one for each: starting and waking
//! them costs as much as what they do. Non-goals: a pool; a server's calls have a thread each while they begin.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use crate::sys::Processors;

type Work = Box<dyn FnOnce() + Send>;

/// It ends when nobody can tell it anything any more.
#[derive(Debug)]
pub struct Helper(Sender<Work>);

impl Helper {
    /// Starts one; `None` if there are no more threads. Where it runs, a processor has to be woken first, which can take
    /// longer than what it will do: a front starts one before it knows what that is ([`crate::store::Early`]).
    #[must_use]
    pub fn start() -> Option<Self> {
        let (sender, receiver) = channel::<Work>();
        let processors = Processors::several();
        let thread = move || {
            let mut bound = processors;
            for work in receiver {
                // Whoever has something for it to do has also said where it begins.
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

    /// Has it do something when it is done with what came before. One that has died drops it: who waits for its result
    /// finds nobody to send one.
    pub fn tell(&self, work: impl FnOnce() + Send + 'static) {
        let _ = self.0.send(Box::new(work));
    }

    /// Has it find something out, or nothing.
    pub fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Beside<T> {
        let (sender, receiver) = channel();
        self.tell(move || {
            // Nobody may wait for it any more.
            let _ = work().map(|found| sender.send(found));
        });
        Beside(receiver)
    }
}

/// What a thread will have found out.
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
