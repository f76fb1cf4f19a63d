//! The state of a talk: which requests and bodies are under way, and what has been used.
//!
//! Nothing here waits. A frame changes the state, starts a request, or is a protocol error.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use runner_policy::limits::Limit;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};

use super::answer::{Context, Task, answer, unheard};
use super::frame::{Frame, HostKind, Kind, encode};
use super::incoming::{self, Inlet};
use super::meter::Meter;
use super::outgoing::{self, Outgoing};
use super::request::{self, Action};
use super::said::{self, Note};
use super::{
    Body, BrokerLimits, BrokerUsage, Brokered, Events, ProtocolError, Refusal, ServeError, Served,
    ToolEnd,
};

use crate::codes::Code;

/// Requests that may be unanswered at once; a further one is refused as `busy`.
pub(super) const PENDING_MAX: usize = 256;
/// Bytes of their parameters together; beyond that, the same.
const PENDING_BYTES: usize = 8 * 1024 * 1024;
/// Answered requests whose bodies may still be under way; the oldest are forgotten first.
const LATE_MAX: usize = 4096;
/// Requests beyond the limit that are still answered (with `limit_reached`) before the call ends.
pub(super) const CALLS_GRACE: u64 = 1000;
/// Bytes beyond the limit before the call ends: what credit may have let under way.
const BYTES_GRACE: u64 = 64 * 1024 * 1024;
/// Log lines and progress that are passed on; more are counted only.
pub(super) const NOTES_MAX: u64 = 10_000;
/// Bytes of them.
const NOTES_BYTES: u64 = 16 * 1024 * 1024;
/// Requests that the record lists.
const LISTED_MAX: usize = 20_000;

// Memory, not only content: this is what a tool can make us hold of bodies, however it cuts them up. Those
// of answered requests hold nothing.
const _: () = assert!(PENDING_MAX * incoming::HELD_MAX <= 128 * 1024 * 1024);

/// A request that is not answered yet.
struct Active {
    task: Id,
    /// Used or dropped when the request is not wanted any more.
    cancel: Option<oneshot::Sender<()>>,
    body: Option<Inlet>,
    /// Bytes of its parameters.
    cost: usize,
    method: &'static str,
}

/// One talk.
pub(super) struct Talk {
    pub(super) context: Arc<Context>,
    pub(super) tasks: JoinSet<Brokered>,
    pub(super) data: mpsc::Sender<Vec<u8>>,
    control: mpsc::UnboundedSender<Vec<u8>>,
    events: Arc<dyn Events>,
    meter: Arc<Meter>,
    calls_limit: u64,
    active: HashMap<u32, Active>,
    pending_bytes: usize,
    /// Bodies of requests that were answered before they were complete.
    late: BTreeMap<u32, Inlet>,
    /// The highest id so far.
    last: u32,
    /// Answers that did not come from a task of their own. Nothing is read while there is one.
    owed: VecDeque<Vec<u8>>,
    aborted: bool,
    usage: BrokerUsage,
    note_bytes: u64,
    requests: Vec<Brokered>,
    /// What the tool says that it cost.
    cost: Option<serde_json::Value>,
}

impl Talk {
    pub(super) fn new(
        context: Context,
        events: Arc<dyn Events>,
        limits: BrokerLimits,
        control: mpsc::UnboundedSender<Vec<u8>>,
        data: mpsc::Sender<Vec<u8>>,
    ) -> Self {
        Self {
            context: Arc::new(context),
            tasks: JoinSet::new(),
            data,
            control,
            events,
            meter: Arc::new(Meter::new(limits.bytes)),
            calls_limit: limits.calls,
            active: HashMap::new(),
            pending_bytes: 0,
            late: BTreeMap::new(),
            last: 0,
            owed: VecDeque::new(),
            aborted: false,
            usage: BrokerUsage::default(),
            note_bytes: 0,
            requests: Vec::new(),
            cost: None,
        }
    }

    /// Takes one frame; gives the tool's end if it was the last.
    pub(super) fn frame(&mut self, frame: Frame) -> Result<Option<ToolEnd>, ServeError> {
        let Frame { kind, id, payload } = frame;
        match kind {
            Kind::Request => self.request(id, &payload)?,
            Kind::Chunk => {
                self.meter.came(payload.len());
                if self.meter.excess() > BYTES_GRACE {
                    return Err(ServeError::Limit(Limit::BrokerBytes));
                }
                self.inlet(kind, id)?.chunk(payload)?;
            }
            Kind::End => {
                self.inlet(kind, id)?.end()?;
                self.late.remove(&id);
            }
            Kind::Cancel => {
                if id > self.last {
                    return Err(ProtocolError::BadId { kind: kind.name(), id }.into());
                }
                // One that was answered meanwhile crossed its answer on the way.
                if let Some(active) = self.active.get_mut(&id) {
                    drop(active.cancel.take());
                }
            }
            Kind::Note => self.note(&payload)?,
            Kind::Result => {
                let (end, cost) = said::result(&payload)?;
                self.cost = cost;
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    fn request(&mut self, id: u32, payload: &[u8]) -> Result<(), ServeError> {
        if id <= self.last {
            return Err(ProtocolError::BadId { kind: Kind::Request.name(), id }.into());
        }
        self.last = id;
        let request::Request { action, body } = request::decode(payload)?;
        self.usage.calls += 1;
        if self.usage.calls > self.calls_limit.saturating_add(CALLS_GRACE) {
            return Err(ServeError::Limit(Limit::BrokerCalls));
        }
        let (inlet, incoming) = incoming::body(id, self.control.clone(), Arc::clone(&self.meter));
        let inlet = body.then_some(inlet);
        match self.admit(payload.len()) {
            Ok(()) => self.start(id, action, inlet, Body::new(incoming), payload.len()),
            Err(refusal) => {
                if let Some(inlet) = inlet {
                    self.keep_late(id, inlet);
                }
                self.refuse(id, &action, refusal);
            }
        }
        Ok(())
    }

    /// Whether one more request can be taken up.
    fn admit(&self, cost: usize) -> Result<(), Refusal> {
        if self.aborted {
            return Err(Refusal::new(Code::Cancelled, "the call is ending"));
        }
        if self.usage.calls > self.calls_limit {
            let message = format!("the call has made its {} requests", self.calls_limit);
            let key = Limit::BrokerCalls.row().key;
            return Err(Refusal::new(Code::LimitReached, message)
                .hint(format!("raise `limits.{key}` in the policy")));
        }
        self.meter.check()?;
        if self.active.len() >= PENDING_MAX || self.pending_bytes + cost > PENDING_BYTES {
            return Err(Refusal::new(Code::Busy, "too many requests are unanswered at once")
                .hint("await some of them before sending more"));
        }
        Ok(())
    }

    fn start(&mut self, id: u32, action: Action, inlet: Option<Inlet>, body: Body, cost: usize) {
        let (cancel, cancelled) = oneshot::channel();
        let out = Outgoing::new(id, self.data.clone(), Arc::clone(&self.meter));
        let method = action.method();
        let has_body = inlet.is_some();
        let task = Task { id, action, has_body, body, out, cancelled };
        let task = self.tasks.spawn(answer(Arc::clone(&self.context), task)).id();
        self.pending_bytes += cost;
        let active = Active { task, cancel: Some(cancel), body: inlet, cost, method };
        self.active.insert(id, active);
    }

    fn refuse(&mut self, id: u32, action: &Action, refusal: Refusal) {
        let brokered = unheard(id, action, refusal.code);
        self.owe(id, &Err(refusal));
        self.list(brokered);
    }

    fn owe(&mut self, id: u32, reply: &Result<String, Refusal>) {
        let payload = outgoing::reply(reply);
        self.owed.push_back(encode(HostKind::Reply.number(), id, payload.as_bytes()));
    }

    /// Whether an answer waits for room in the writer's queue.
    pub(super) fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Sends an answer that was owed; without a writer there is nobody to send it to.
    pub(super) fn pay(&mut self, room: Option<mpsc::OwnedPermit<Vec<u8>>>) {
        if let (Some(frame), Some(room)) = (self.owed.pop_front(), room) {
            room.send(frame);
        }
    }

    /// The body that a chunk or an end belongs to.
    fn inlet(&mut self, kind: Kind, id: u32) -> Result<&mut Inlet, ProtocolError> {
        let active = self.active.get_mut(&id).and_then(|active| active.body.as_mut());
        active
            .or_else(|| self.late.get_mut(&id))
            .ok_or(ProtocolError::BadId { kind: kind.name(), id })
    }

    fn keep_late(&mut self, id: u32, inlet: Inlet) {
        if !inlet.is_open() {
            return;
        }
        if self.late.len() >= LATE_MAX {
            self.late.pop_first();
        }
        self.late.insert(id, inlet);
    }

    fn note(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let note = said::note(payload)?;
        self.usage.notes += 1;
        self.note_bytes += payload.len() as u64;
        if self.usage.notes > NOTES_MAX || self.note_bytes > NOTES_BYTES {
            self.usage.notes_dropped += 1;
            return Ok(());
        }
        match note {
            Note::Log(log) => self.events.log(log),
            Note::Progress(progress) => self.events.progress(progress),
        }
        Ok(())
    }

    /// A request has sent its answer.
    pub(super) fn finished(&mut self, mut brokered: Brokered) {
        if let Some(active) = self.active.remove(&brokered.id) {
            self.pending_bytes -= active.cost;
            if let Some(inlet) = active.body {
                brokered.bytes_in = inlet.came();
                self.keep_late(brokered.id, inlet);
            }
        }
        self.list(brokered);
    }

    /// The task of a request broke: that is our bug, and still needs its one answer.
    pub(super) fn broke(&mut self, task: Id) {
        let found = self.active.iter().find(|(_, active)| active.task == task);
        let Some((id, method)) = found.map(|(id, active)| (*id, active.method)) else { return };
        let refusal = Refusal::new(Code::IoError, "the broker failed; this is a bug");
        self.owe(id, &Err(refusal));
        self.finished(Brokered {
            id,
            method,
            object: String::new(),
            refused: Some(Code::IoError),
            message: None,
            rule: None,
            suggestion: None,
            approval: None,
            bytes_in: 0,
            bytes_out: 0,
            duration: std::time::Duration::ZERO,
            call: None,
        });
    }

    fn list(&mut self, brokered: Brokered) {
        self.usage.refused += u64::from(brokered.refused.is_some());
        self.events.request(&brokered);
        if self.requests.len() < LISTED_MAX {
            self.requests.push(brokered);
        } else {
            self.usage.unlisted += 1;
        }
    }

    /// Tells the tool to end, and ends what it asked for.
    pub(super) fn abort(&mut self, reason: &str) {
        self.aborted = true;
        let payload = json!({"reason": reason}).to_string();
        let _ = self.control.send(encode(HostKind::Abort.number(), 0, payload.as_bytes()));
        for active in self.active.values_mut() {
            drop(active.cancel.take());
        }
    }

    /// Nobody wants an answer any more.
    pub(super) fn cancel_all(&mut self) {
        for active in self.active.values_mut() {
            drop(active.cancel.take());
        }
        self.late.clear();
    }

    /// How it went.
    pub(super) fn served(mut self, end: Result<ToolEnd, ServeError>) -> Served {
        self.usage.bytes_in = self.meter.bytes_in();
        self.usage.bytes_out = self.meter.bytes_out();
        Served { end, cost: self.cost, usage: self.usage, requests: self.requests }
    }
}
