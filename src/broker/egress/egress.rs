//! The connections of one call.

use std::fmt;
use std::sync::Arc;

use runner_policy::Effective;
use runner_policy::net::RegistryHost;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::carry::carry;
use super::record::{Book, Reached};
use super::tunnel::Inspect;
use crate::broker::net::resolve::{Resolve, System};
use crate::sandbox::tunnels::{Connections, End};

/// What every connection of a call needs.
pub(super) struct Shared {
    pub policy: Arc<Effective>,
    pub registries: Vec<RegistryHost>,
    pub resolver: Arc<dyn Resolve>,
    pub inspector: Option<Arc<dyn Inspect>>,
    pub book: Arc<Book>,
}

/// What is to be carried on.
enum Opened {
    Connection(End, String, u16),
    Missed(String),
}

/// The part of the pump: it passes on what the guest opens.
struct Doors(mpsc::UnboundedSender<Opened>);

impl Connections for Doors {
    fn open(&mut self, end: End, name: String, port: u16) {
        // Once the task is over the end is dropped, which resets the connection.
        let _ = self.0.send(Opened::Connection(end, name, port));
    }

    fn missed(&mut self, name: String) {
        let _ = self.0.send(Opened::Missed(name));
    }
}

/// Carries on the connections of one call until it is asked what came of them.
pub struct Egress {
    book: Arc<Book>,
    task: tokio::task::JoinHandle<()>,
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").finish_non_exhaustive()
    }
}

impl Egress {
    /// For one call under this policy; and what the call's pump is given.
    #[must_use]
    pub fn begin(
        policy: Arc<Effective>,
        registries: Vec<RegistryHost>,
        inspector: Option<Arc<dyn Inspect>>,
    ) -> (Self, Box<dyn Connections>) {
        Self::with(policy, registries, inspector, Arc::new(System))
    }

    pub(super) fn with(
        policy: Arc<Effective>,
        registries: Vec<RegistryHost>,
        inspector: Option<Arc<dyn Inspect>>,
        resolver: Arc<dyn Resolve>,
    ) -> (Self, Box<dyn Connections>) {
        let book = Arc::new(Book::default());
        let kept = Arc::clone(&book);
        let shared = Arc::new(Shared { policy, registries, resolver, inspector, book });
        let (doors, opened) = mpsc::unbounded_channel();
        let task = tokio::spawn(serve(shared, opened));
        (Self { book: kept, task }, Box::new(Doors(doors)))
    }

    /// Waits for the last connections, which end with the call's pump, and tells what came of all.
    pub async fn finish(mut self) -> Reached {
        // A broken task has told the book what it knew.
        let _ = (&mut self.task).await;
        self.book.take()
    }
}

impl Drop for Egress {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(shared: Arc<Shared>, mut opened: mpsc::UnboundedReceiver<Opened>) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            next = opened.recv() => match next {
                Some(Opened::Connection(end, name, port)) => {
                    tasks.spawn(carry(Arc::clone(&shared), end, name, port));
                }
                Some(Opened::Missed(name)) => shared.book.missed(name),
                None => break,
            },
            Some(_) = tasks.join_next() => {}
        }
    }
    // The pump is over: every stream into the sandbox has failed, and a dial that succeeds now has no use.
    tasks.shutdown().await;
}
