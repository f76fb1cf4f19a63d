//! The calls of this server, by handle.
//!
//! A call runs in a task of its own and outlives the request that began it: the request answers with a handle if
//! the call takes long. A handle is random and belongs to the client that got it; to any other client it does not exist.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::JsonObject;
use serde_json::Value;
use tokio::sync::watch;

use super::output::Output;
use crate::approvals::ApprovalId;
use crate::sandbox::cancel::Canceller;
use crate::sandbox::outcome::CancelCause;

/// Calls of one client that run at once.
pub const RUNNING: usize = 16;
/// Calls of one client that are over and whose output can still be read.
const OVER: usize = 16;
/// How long the output of a call that is over can be read.
const READABLE: Duration = Duration::from_secs(15 * 60);
/// How long a shutdown waits for cancelled calls to end.
const LEAVE: Duration = Duration::from_secs(10);

/// What a call came to.
#[derive(Debug, Clone)]
pub struct Ended {
    /// How it ended, in words: the last lines of the answer.
    pub words: String,
    /// Whether the answer is an error.
    pub is_error: bool,
    /// The value of a tool whose schema describes it.
    pub structured: Option<Value>,
    /// What programs want to know of it.
    pub meta: JsonObject,
    /// The question that it waits for.
    pub waits: Option<ApprovalId>,
}

/// One call.
#[derive(Debug)]
pub struct Entry {
    /// Its handle.
    pub handle: String,
    /// What it writes.
    pub output: Arc<Output>,
    /// When it began.
    pub begun: Instant,
    owner: String,
    canceller: Canceller,
    left: AtomicBool,
    ended: watch::Sender<Option<(Arc<Ended>, Instant)>>,
}

/// Every call of this server.
#[derive(Debug, Default)]
pub struct Calls(Mutex<HashMap<String, Arc<Entry>>>);

impl Entry {
    /// What it came to, if it is over.
    pub fn ended(&self) -> Option<Arc<Ended>> {
        self.ended.borrow().as_ref().map(|(ended, _)| Arc::clone(ended))
    }

    /// Waits until it is over.
    pub async fn wait(&self) -> Arc<Ended> {
        let mut ended = self.ended.subscribe();
        loop {
            if let Some((ended, _)) = ended.borrow_and_update().as_ref() {
                return Arc::clone(ended);
            }
            if ended.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Tells everyone who waits that it is over.
    pub fn finish(&self, ended: Ended) {
        self.ended.send_replace(Some((Arc::new(ended), Instant::now())));
    }

    /// Ends it.
    pub fn cancel(&self) {
        self.canceller.cancel(CancelCause::Terminate);
    }

    /// Whether its client is gone: no client reads what it came to.
    pub fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    fn over_since(&self) -> Option<Instant> {
        self.ended.borrow().as_ref().map(|(_, since)| *since)
    }
}

impl Calls {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new call; `None` if this client has too many that run.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn begin(&self, owner: &str, canceller: Canceller) -> std::io::Result<Option<Arc<Entry>>> {
        let chance: [u8; 16] = crate::sys::random()?;
        let handle = format!("c{:032x}", u128::from_le_bytes(chance));
        let mut table = self.table();
        sweep(&mut table, owner);
        let own = table.values().filter(|entry| entry.owner == owner);
        if own.filter(|entry| entry.over_since().is_none()).count() >= RUNNING {
            return Ok(None);
        }
        let entry = Arc::new(Entry {
            handle: handle.clone(),
            output: Arc::default(),
            begun: Instant::now(),
            owner: owner.to_owned(),
            canceller,
            left: AtomicBool::new(false),
            ended: watch::Sender::new(None),
        });
        table.insert(handle, Arc::clone(&entry));
        Ok(Some(entry))
    }

    /// The call with this handle, if it is this client's.
    pub fn find(&self, owner: &str, handle: &str) -> Option<Arc<Entry>> {
        self.table().get(handle).filter(|entry| entry.owner == owner).cloned()
    }

    /// Forgets a call whose answer is complete.
    pub fn forget(&self, handle: &str) {
        self.table().remove(handle);
    }

    /// Ends every call of a client that has left. Each is forgotten when it is over: a shutdown waits for those that are not.
    pub fn leave(&self, owner: &str) {
        self.table().retain(|_, entry| {
            if entry.owner != owner {
                return true;
            }
            entry.left.store(true, Ordering::Relaxed);
            entry.cancel();
            entry.ended().is_none()
        });
    }

    /// Ends every call, and waits until they are over.
    pub async fn end_all(&self) {
        let entries: Vec<Arc<Entry>> = self.table().values().cloned().collect();
        entries.iter().for_each(|entry| entry.cancel());
        let all = async {
            for entry in &entries {
                entry.wait().await;
            }
        };
        let _ = tokio::time::timeout(LEAVE, all).await;
    }

    /// How many calls of a client run, and all that are kept.
    #[cfg(test)]
    fn count(&self) -> usize {
        self.table().len()
    }
}

/// Forgets what has been readable for long enough, and the oldest of what is too much.
fn sweep(table: &mut HashMap<String, Arc<Entry>>, owner: &str) {
    table.retain(|_, entry| entry.over_since().is_none_or(|since| since.elapsed() < READABLE));
    let own = table.values().filter(|entry| entry.owner == owner);
    let mut over: Vec<(Instant, String)> =
        own.filter_map(|entry| Some((entry.over_since()?, entry.handle.clone()))).collect();
    over.sort();
    let most = over.len().saturating_sub(OVER);
    for (_, handle) in &over[..most] {
        table.remove(handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::cancel::Cancel;

    fn ended() -> Ended {
        Ended {
            words: String::new(),
            is_error: false,
            structured: None,
            meta: JsonObject::new(),
            waits: None,
        }
    }

    #[test]
    fn a_handle_is_its_owners_alone() {
        let calls = Calls::default();
        let entry = calls.begin("ann", Cancel::pair().0).unwrap().unwrap();
        assert!(calls.find("ann", &entry.handle).is_some());
        assert!(calls.find("bob", &entry.handle).is_none());
        assert_eq!(entry.handle.len(), 33);
    }

    #[test]
    fn what_runs_and_what_is_kept_is_bounded_by_client() {
        let calls = Calls::default();
        let begin = |owner: &str| calls.begin(owner, Cancel::pair().0).unwrap();
        let running: Vec<_> = (0..RUNNING).map(|_| begin("ann").unwrap()).collect();
        assert!(begin("ann").is_none());
        assert!(begin("bob").is_some());
        running.iter().for_each(|entry| entry.finish(ended()));
        for _ in 0..3 * OVER {
            begin("ann").unwrap().finish(ended());
        }
        assert!(calls.count() <= OVER + 2, "{}", calls.count());
    }

    #[tokio::test]
    async fn a_client_that_leaves_takes_its_calls_along() {
        let calls = Calls::default();
        let (canceller, mut cancel) = Cancel::pair();
        let ann = calls.begin("ann", canceller).unwrap().unwrap();
        let bob = calls.begin("bob", Cancel::pair().0).unwrap().unwrap();
        calls.leave("ann");
        assert_eq!(cancel.asked().await, CancelCause::Terminate);
        assert!(ann.is_left() && !bob.is_left());
        ann.finish(ended());
        calls.leave("ann");
        assert!(calls.find("ann", &ann.handle).is_none());
        assert!(calls.find("bob", &bob.handle).is_some());
    }
}
