//! Requests that wait for their answers, and the frames on their way out.
//!
//! Numbers of requests only grow, so a number is taken and its frame queued under one lock. The queue has no bound of
//! its own: who sends is our own code, a request is short, and a body waits for credit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::thrown::Refused;
use crate::broker::frame::{CHUNK_MAX, HostKind, Kind, REQUEST_MAX, WINDOW, encode};
use crate::codes::Code;

/// What a request came to.
#[derive(Debug)]
pub(super) struct Answer {
    /// The JSON of the answer.
    pub ok: Value,
    /// What came before it.
    pub bytes: Vec<u8>,
    /// Whether more came than was wanted.
    pub more: bool,
}

/// A request without its answer.
struct Waiting {
    bytes: Vec<u8>,
    most: usize,
    more: bool,
    /// What its body may still send.
    credit: Arc<Semaphore>,
    answer: oneshot::Sender<Result<Answer, Refused>>,
}

#[derive(Default)]
struct State {
    last: u32,
    waiting: HashMap<u32, Waiting>,
    closed: bool,
}

/// One talk, from the tool's end. `None` in the queue is the end.
pub(super) struct Link {
    out: mpsc::UnboundedSender<Option<Vec<u8>>>,
    state: Mutex<State>,
}

impl Link {
    pub(super) fn new(out: mpsc::UnboundedSender<Option<Vec<u8>>>) -> Self {
        Self { out, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds it can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a frame that belongs to no request.
    pub(super) fn say(&self, kind: Kind, payload: &[u8]) {
        // Who does not listen any more has ended the talk, which the reader sees.
        let _ = self.out.send(Some(encode(kind.number(), 0, payload)));
    }

    /// Sends nothing more.
    pub(super) fn end(&self) {
        let _ = self.out.send(None);
    }

    /// Asks, sends the body if there is one, and waits. Of bytes in the answer `most` are kept.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: Value,
        body: Option<&[u8]>,
        most: usize,
    ) -> Result<Answer, Refused> {
        let request =
            serde_json::json!({ "method": method, "params": params, "body": body.is_some() });
        let payload = request.to_string();
        if payload.len() > REQUEST_MAX {
            return Err(Refused::of_talk(Code::TooLarge, "the request is larger than 1 MiB"));
        }
        let (answer, mut answered) = oneshot::channel();
        let credit = Arc::new(Semaphore::new(WINDOW as usize));
        let id = {
            let mut state = self.state();
            if state.closed {
                return Err(closed());
            }
            state.last += 1;
            let id = state.last;
            let waiting = Waiting {
                bytes: Vec::new(),
                most,
                more: false,
                credit: Arc::clone(&credit),
                answer,
            };
            state.waiting.insert(id, waiting);
            let _ = self.out.send(Some(encode(Kind::Request.number(), id, payload.as_bytes())));
            id
        };
        if let Some(body) = body {
            // A refusal can come before the whole body was sent; then nobody wants the rest.
            let early = tokio::select! {
                answer = &mut answered => Some(answer),
                () = self.body(id, body, &credit) => None,
            };
            if let Some(answer) = early {
                let _ = self.out.send(Some(encode(Kind::End.number(), id, &[])));
                return answer.unwrap_or_else(|_| Err(closed()));
            }
        }
        answered.await.unwrap_or_else(|_| Err(closed()))
    }

    async fn body(&self, id: u32, body: &[u8], credit: &Semaphore) {
        for chunk in body.chunks(CHUNK_MAX) {
            let wanted = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            // It is closed only with the talk; then there is nobody to send to.
            let Ok(granted) = credit.acquire_many(wanted).await else { return };
            granted.forget();
            let _ = self.out.send(Some(encode(Kind::Chunk.number(), id, chunk)));
        }
        let _ = self.out.send(Some(encode(Kind::End.number(), id, &[])));
    }

    /// Takes a frame of the host that belongs to a request.
    pub(super) fn take(&self, kind: HostKind, id: u32, payload: &[u8]) {
        let mut state = self.state();
        match kind {
            HostKind::Chunk => {
                let Some(waiting) = state.waiting.get_mut(&id) else { return };
                let room = waiting.most - waiting.bytes.len();
                waiting.bytes.extend_from_slice(&payload[..payload.len().min(room)]);
                waiting.more |= payload.len() > room;
            }
            HostKind::Credit => {
                let figure = payload.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
                if let Some(waiting) = state.waiting.get(&id) {
                    waiting.credit.add_permits(figure as usize);
                }
            }
            HostKind::Reply => {
                let Some(waiting) = state.waiting.remove(&id) else { return };
                let Waiting { bytes, more, answer, .. } = waiting;
                let _ = answer.send(reply(payload).map(|ok| Answer { ok, bytes, more }));
            }
            HostKind::Start | HostKind::End | HostKind::Abort => {}
        }
    }

    /// Nobody answers any more.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for (_, waiting) in state.waiting.drain() {
            waiting.credit.close();
            let _ = waiting.answer.send(Err(closed()));
        }
    }
}

fn closed() -> Refused {
    Refused::of_talk(Code::ChannelClosed, "the talk with the host is over")
}

fn reply(payload: &[u8]) -> Result<Value, Refused> {
    let broken = || Refused::of_talk(Code::TalkBroken, "the host's answer cannot be read");
    let mut value: Value = serde_json::from_slice(payload).map_err(|_| broken())?;
    if let Some(ok) = value.get_mut("ok") {
        return Ok(ok.take());
    }
    let error = value.get_mut("error").map(Value::take).ok_or_else(broken)?;
    Err(serde_json::from_value(error).unwrap_or_else(|_| broken()))
}
