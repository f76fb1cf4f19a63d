//! What happens inside a tool's call, in the ledger: each request to the broker. Questions to a
//! person are recorded where they are answered.
//!
//! Requests are many and small: a thread of their own appends them in few transactions. So a request is in the ledger
//! a moment ([`WAIT`]) after its answer, and all of them before the call's end, or together with it, which tells how many
//! there were: `audit verify` holds one against the other. Only the death of this process can lose the last ones, and
//! then the call is `aborted`, which says so. If they cannot be recorded, the call is ended.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use runner_policy::Verdict;
use tokio::sync::watch;

use crate::audit::{Event, Ledger, Redactor, Requested};
use crate::broker::{Brokered, Events, Log, Progress, verdict};
use crate::call::CallError;
use crate::ids::CallId;
use crate::policy_files::Places;
use crate::store::{Store, StoreError};

/// How long a request waits for others to be recorded with.
const WAIT: Duration = Duration::from_millis(20);
/// Requests that are recorded at once.
const BATCH: usize = 512;

/// Records the requests of one call, and passes everything on.
pub(super) struct Recorded {
    events: Arc<dyn Events>,
    redactor: Redactor,
    call: CallId,
    places: Places,
    /// Started by the first request: many tools make none.
    writer: Mutex<Option<Writer>>,
    broken: watch::Sender<bool>,
}

struct Writer {
    queue: Sender<Requested>,
    thread: JoinHandle<Result<Requests, StoreError>>,
}

/// The requests of a call that is over.
#[derive(Default)]
pub(super) struct Requests {
    /// How many are recorded.
    recorded: u64,
    /// The last ones, which are recorded together with the call's end.
    pub left: Vec<Requested>,
}

impl Requests {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.recorded + self.left.len() as u64
    }
}

impl Recorded {
    /// For one call.
    pub fn new(
        places: &Places,
        call: &CallId,
        redactor: &Redactor,
        events: Arc<dyn Events>,
    ) -> Self {
        Self {
            events,
            redactor: redactor.clone(),
            call: call.clone(),
            places: places.clone(),
            writer: Mutex::new(None),
            broken: watch::Sender::new(false),
        }
    }

    /// Comes when requests cannot be recorded any more: why the call must end.
    pub fn broken(&self) -> impl Future<Output = String> + Send + 'static {
        let mut broken = self.broken.subscribe();
        async move {
            let is_broken = broken.wait_for(|broken| *broken).await.is_ok();
            if !is_broken {
                // The recorder has ended, because the call is over.
                return std::future::pending().await;
            }
            "its requests cannot be recorded".to_owned()
        }
    }

    /// The requests of what came to this end, which is an error if they cannot be recorded.
    pub fn finish_after<T>(&self, ran: Result<T, CallError>) -> (Requests, Result<T, CallError>) {
        match self.finish() {
            Ok(requests) => (requests, ran),
            Err(error) => (Requests::default(), ran.and(Err(error))),
        }
    }

    /// Waits until all are recorded but the last ones.
    fn finish(&self) -> Result<Requests, CallError> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Writer { queue, thread }) = writer else { return Ok(Requests::default()) };
        drop(queue);
        match thread.join() {
            Ok(recorded) => Ok(recorded?),
            Err(_) => {
                let error = std::io::Error::other("the thread that records them broke");
                Err(CallError::Local("record the tool's requests", error))
            }
        }
    }

    fn start(&self) -> Writer {
        let (queue, waiting) = channel();
        let (call, places, broken) = (self.call.clone(), self.places.clone(), self.broken.clone());
        let thread = std::thread::spawn(move || {
            let done = write(&call, &places, &waiting);
            if done.is_err() {
                broken.send_replace(true);
            }
            done
        });
        Writer { queue, thread }
    }
}

impl Events for Recorded {
    fn log(&self, log: Log) {
        self.events.log(log);
    }

    fn progress(&self, progress: Progress) {
        self.events.progress(progress);
    }

    fn request(&self, request: &Brokered) {
        self.events.request(request);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = writer.get_or_insert_with(|| self.start());
        let requested = Requested {
            address: None,
            request: request.id,
            method: request.method,
            object: self.redactor.text(&request.object).into_owned(),
            decision: request.refused.map_or(Verdict::Allow, verdict),
            code: request.refused,
            rule: request.rule.as_ref().map(|rule| rule.id.clone()),
            bytes_in: request.bytes_in,
            bytes_out: request.bytes_out,
            us: u64::try_from(request.duration.as_micros()).unwrap_or(u64::MAX),
            call: request.call.clone(),
        };
        // A thread that has ended has said why.
        let _ = writer.queue.send(requested);
    }
}

/// Appends the records until all senders are gone. A call that ends within a moment needs no ledger here.
fn write(
    call: &CallId,
    places: &Places,
    waiting: &Receiver<Requested>,
) -> Result<Requests, StoreError> {
    let (mut ledger, mut requests) = (None, Requests::default());
    while let Ok(first) = waiting.recv() {
        let until = Instant::now() + WAIT;
        let batch = &mut requests.left;
        batch.push(first);
        while batch.len() < BATCH {
            match waiting.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(next) => batch.push(next),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(requests),
            }
        }
        let ledger = match &ledger {
            Some(ledger) => ledger,
            None => ledger.insert(Ledger::new(Store::open(places.state.as_deref())?)),
        };
        let events: Vec<Event<'_>> = batch.iter().map(Event::Request).collect();
        ledger.append_all(call, &events)?;
        requests.recorded += batch.len() as u64;
        batch.clear();
    }
    Ok(requests)
}
