//! Calls of one client: begun, waited for, answered, read on and cancelled, whatever the client is connected by.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, JsonObject,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::RequestContext;
use serde_json::Value;

use super::answer::{self, Said, of_ended, of_running};
use super::approve::{self, Answer};
use super::arguments::{self, Cancel, Explain, Read, Run};
use super::calls::{Ended, Entry, RUNNING};
use super::command;
use super::host::Host;
use super::own;
use super::seal::now;
use super::who::Who;
use super::work::{CommandWork, NotBegun, Work, begin};
use crate::approvals::ApprovalId;
use crate::call::CallError;
use crate::error::Failure as _;
use crate::ids::ToolName;

/// The shortest time between two messages about the progress of a call.
const PROGRESS: Duration = Duration::from_millis(500);
/// How long a cancelled call may take to end before its request is answered.
const CANCELLED: Duration = Duration::from_secs(10);
/// The part of the answer's time for which unread output waits for more, or for the end.
const MORE: u32 = 10;

/// Serves one client.
#[derive(Clone)]
pub struct Client {
    pub(super) host: Arc<Host>,
    /// `None` if each request says who sends it.
    who: Option<Who>,
}

/// How waiting for a call ended.
enum Waited {
    Ended(Arc<Ended>),
    Running,
    Gone,
}

impl Client {
    /// A client that the transport has named.
    #[must_use]
    pub fn of(host: Arc<Host>, who: Who) -> Self {
        Self { host, who: Some(who) }
    }

    /// Clients that are named by each request, as the gate of the HTTP server admits them.
    #[must_use]
    pub fn of_requests(host: Arc<Host>) -> Self {
        Self { host, who: None }
    }

    pub(super) fn who(&self, context: &RequestContext<RoleServer>) -> Result<Who, ErrorData> {
        let admitted =
            || context.extensions.get::<hyper::http::request::Parts>()?.extensions.get::<Who>();
        let who = self.who.clone().or_else(|| admitted().cloned());
        who.ok_or_else(|| ErrorData::internal_error("the request has no credential", None))
    }

    async fn run(
        &self,
        who: &Who,
        work: Work,
        bound: &[&[u8]],
        request: (Option<String>, Answer),
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let claimed = claimed(context);
        let named = match request {
            (None, _) => None,
            (Some(state), brought) => {
                let id = self.host.seal.open(&state, bound, now());
                let id = id.map_err(|broken| ErrorData::invalid_params(broken.words(), None))?;
                let written = approve::answer(&self.host, who, &id, brought, claimed.clone()).await;
                match (written, brought) {
                    (Ok(()), Answer::Yes) => Some(id),
                    (Ok(()), Answer::No) => return Ok(declined().into()),
                    (Ok(()), Answer::Nothing) => None,
                    (Err(error), _) => return Ok(of_error(&error).into()),
                }
            }
        };
        let first = named.is_none();
        let (result, waits) = match self.begin(who, work.clone(), named, context).await? {
            Ok(begun) => begun,
            Err(refused) => return Ok(refused.into()),
        };
        let Some(id) = waits.filter(|_| first && approve::can_ask(context)) else {
            return Ok(result.into());
        };
        let asked = match approve::question(&self.host, who, id).await {
            Ok(Some(asked)) => asked,
            Ok(None) | Err(_) => return Ok(result.into()),
        };
        if is_without_sessions(context) {
            let state = self.host.seal.make(&asked.id, bound, asked.ends).map_err(internal)?;
            return Ok(approve::required(&asked, state).into());
        }
        let most = Duration::from_millis(u64::try_from(asked.ends - now()).unwrap_or(0));
        let said = approve::put(context, &asked, most).await;
        if let Err(error) = approve::answer(&self.host, who, &asked.id, said, claimed).await {
            return Ok(of_error(&error).into());
        }
        match said {
            Answer::Yes => {}
            Answer::No => return Ok(declined().into()),
            Answer::Nothing => return Ok(result.into()),
        }
        match self.begin(who, work, Some(asked.id), context).await? {
            Ok((result, _)) => Ok(result.into()),
            Err(refused) => Ok(refused.into()),
        }
    }

    /// Begins a call and waits for its answer; also the question that it waits for.
    async fn begin(
        &self,
        who: &Who,
        work: Work,
        named: Option<ApprovalId>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Result<(CallToolResult, Option<ApprovalId>), CallToolResult>, ErrorData> {
        let entry = match begin(&self.host, who, claimed(context), work, named) {
            Ok(entry) => entry,
            Err(NotBegun::Local(error)) => return Err(internal(error)),
            Err(NotBegun::Busy) => {
                return Ok(Err(answer::error(format!(
                    "busy: {RUNNING} calls of this client run already; wait for one, or cancel one"
                ))));
            }
        };
        let waited = self.wait(&entry, self.host.settings.answer_within, context).await;
        Ok(match waited {
            Waited::Ended(ended) => {
                let waits = ended.waits.clone();
                Ok((self.told(&entry, ended).await, waits))
            }
            Waited::Running => {
                let running = in_thread(move || of_running(&entry)).await;
                Ok((running, None))
            }
            Waited::Gone => {
                self.host.calls.forget(&entry.handle);
                Err(answer::error("cancelled: the client cancelled the request"))
            }
        })
    }

    /// The answer of a call that is over. It is forgotten if there is nothing left to read.
    async fn told(&self, entry: &Arc<Entry>, ended: Arc<Ended>) -> CallToolResult {
        let of = Arc::clone(entry);
        let (result, said) = in_thread(move || of_ended(&of, &ended)).await;
        if said == Said::Everything {
            self.host.calls.forget(&entry.handle);
        }
        result
    }

    /// Waits for a call, and tells the client meanwhile how it goes on, if it wants to hear that.
    async fn wait(
        &self,
        entry: &Entry,
        most: Duration,
        context: &RequestContext<RoleServer>,
    ) -> Waited {
        let token = context.meta.get_progress_token();
        let mut news = entry.output.news();
        let (mut told, mut count) = (None::<Instant>, 0.0);
        let late = tokio::time::sleep(most);
        tokio::pin!(late);
        loop {
            tokio::select! {
                biased;
                ended = entry.wait() => return Waited::Ended(ended),
                () = context.ct.cancelled() => {
                    entry.cancel();
                    let _ = tokio::time::timeout(CANCELLED, entry.wait()).await;
                    return Waited::Gone;
                }
                () = &mut late => return Waited::Running,
                changed = news.changed(), if token.is_some() => {
                    if changed.is_err() {
                        continue;
                    }
                    if let Some(wait) = told.and_then(|at| PROGRESS.checked_sub(at.elapsed())) {
                        tokio::select! {
                            () = tokio::time::sleep(wait) => {}
                            _ = entry.wait() => continue,
                            () = context.ct.cancelled() => continue,
                        }
                    }
                    told = Some(Instant::now());
                    count += 1.0;
                    let text = news.borrow_and_update().clone();
                    if let Some(token) = token.clone() {
                        let progress = ProgressNotificationParam::new(token, count);
                        let _ = context.peer.notify_progress(progress.with_message(text)).await;
                    }
                }
            }
        }
    }

    async fn read_output(
        &self,
        who: &Who,
        read: Read,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        let Some(entry) = self.host.calls.find(who.owner(), &read.id) else {
            return no_call(&read.id);
        };
        let within = self.host.settings.answer_within;
        if entry.ended().is_none() {
            if entry.output.total() <= read.offset {
                let mut news = entry.output.news();
                let more = async {
                    while entry.output.total() <= read.offset && news.changed().await.is_ok() {}
                };
                tokio::select! {
                    _ = entry.wait() => {}
                    () = more => {}
                    () = tokio::time::sleep(within) => {}
                    () = context.ct.cancelled() => {}
                }
            }
            let _ = tokio::time::timeout(within / MORE, entry.wait()).await;
        }
        let offset = read.offset;
        in_thread(move || piece(&entry, offset)).await
    }

    async fn cancel(&self, who: &Who, id: &str) -> CallToolResult {
        let Some(entry) = self.host.calls.find(who.owner(), id) else { return no_call(id) };
        let was_over = entry.ended().is_some();
        entry.cancel();
        match tokio::time::timeout(CANCELLED, entry.wait()).await {
            Ok(_) if was_over => answer::plain("the call was over already"),
            Ok(ended) => answer::plain(format!("ended\n{}", ended.words)),
            Err(_) => answer::error("the call was told to end, and has not ended yet"),
        }
    }

    pub(super) async fn call(
        &self,
        mut request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let who = self.who(context)?;
        let name = request.name.into_owned();
        let given = request.arguments.take();
        let wrong = |why: String| Ok(answer::error(why).into());
        let work = match name.as_str() {
            own::RUN => {
                match arguments::read::<Run>(&name, given.clone()).and_then(CommandWork::new) {
                    Ok(work) => Work::Command(work),
                    Err(why) => return wrong(why),
                }
            }
            own::READ => {
                return match arguments::read::<Read>(&name, given) {
                    Ok(read) => Ok(self.read_output(&who, read, context).await.into()),
                    Err(why) => wrong(why),
                };
            }
            own::CANCEL => {
                return match arguments::read::<Cancel>(&name, given) {
                    Ok(cancel) => Ok(self.cancel(&who, &cancel.id).await.into()),
                    Err(why) => wrong(why),
                };
            }
            own::EXPLAIN => {
                return match arguments::read::<Explain>(&name, given) {
                    Ok(explain) => {
                        match command::explain(&self.host, &who, explain.command).await {
                            Ok(text) => {
                                let text = in_thread(move || answer::fitting(&text).to_owned());
                                Ok(answer::plain(text.await).into())
                            }
                            Err(error) => Ok(of_error(&error).into()),
                        }
                    }
                    Err(why) => wrong(why),
                };
            }
            _ => {
                let known: Result<ToolName, _> = name.parse();
                let Ok(known) = known else {
                    let text = format!("there is no tool {name:?}");
                    return Err(ErrorData::invalid_params(text, None));
                };
                Work::Tool(known, given.clone().unwrap_or_default())
            }
        };
        let brought = approve::brought(request.input_responses.as_ref());
        let body = canonical(&Value::Object(given.unwrap_or_default()));
        let bound = [who.owner().as_bytes(), name.as_bytes(), body.as_bytes()];
        self.run(&who, work, &bound, (request.request_state, brought), context).await
    }
}

/// What the client says of itself.
fn claimed(context: &RequestContext<RoleServer>) -> Option<String> {
    context.client_info().map(|info| format!("{} {}", info.name, info.version))
}

/// Whether the client speaks the protocol that has no sessions.
fn is_without_sessions(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// A value as text, with the keys in order: a client may send them in another.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| key.as_str());
            let pairs = pairs.iter().map(|(key, value)| {
                format!("{}:{}", Value::String((*key).clone()), canonical(value))
            });
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        value => value.to_string(),
    }
}

/// Runs what may take a while, such as counting tokens, in a thread of its own.
async fn in_thread<T: Send + Stand + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| T::broken())
}

/// What stands in for the answer of a thread that died.
trait Stand {
    fn broken() -> Self;
}

impl Stand for CallToolResult {
    fn broken() -> Self {
        answer::error("bug: the answer could not be written; report it")
    }
}

impl Stand for (CallToolResult, Said) {
    fn broken() -> Self {
        (CallToolResult::broken(), Said::Part)
    }
}

impl Stand for String {
    fn broken() -> Self {
        "bug: the answer could not be written; report it".to_owned()
    }
}

/// Output from an offset on.
fn piece(entry: &Entry, offset: u64) -> CallToolResult {
    let ended = entry.ended();
    let piece = entry.output.read(offset, answer::PIECE);
    let bytes = answer::whole_characters(&piece.bytes);
    let lossy = String::from_utf8_lossy(bytes);
    let fits = answer::fitting(&lossy);
    // Where bytes are no text the figures of the text are not those of the bytes.
    let used = match &lossy {
        Cow::Borrowed(_) => fits.len(),
        Cow::Owned(_) if fits.len() == lossy.len() => bytes.len(),
        Cow::Owned(_) => bytes.len() * fits.len() / lossy.len().max(1),
    };
    let used = if ended.is_some() && used == 0 { piece.bytes.len() } else { used };
    let next = piece.start + used as u64;
    let mut text = String::new();
    if piece.start > offset {
        text.push_str(&format!("[{} bytes were not kept]\n", piece.start - offset));
    }
    text.push_str(fits);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut meta = JsonObject::new();
    meta.insert("runner/next".to_owned(), next.into());
    match &ended {
        Some(ended) if next >= piece.total => {
            text.push_str(&ended.words);
            meta.extend(ended.meta.clone());
            let result = if ended.is_error { answer::error(text) } else { answer::plain(text) };
            return answer::with_meta(result, meta);
        }
        Some(_) => text.push_str(&format!("[over; next offset {next} of {}]", piece.total)),
        None => {
            let seconds = entry.begun.elapsed().as_secs();
            meta.insert("runner/status".to_owned(), "running".into());
            text.push_str(&format!("[still running after {seconds} s; next offset {next}]"));
        }
    }
    answer::with_meta(answer::plain(text), meta)
}

fn no_call(id: &str) -> CallToolResult {
    let id: String = id.chars().take(64).collect();
    answer::error(format!(
        "not_found: no call of this client has the id {id:?}; its output was read, or it is over for long"
    ))
}

fn declined() -> CallToolResult {
    answer::error(
        "needs approval [approval_needed]: the user did not approve it; do something else",
    )
}

fn of_error(error: &CallError) -> CallToolResult {
    answer::error(format!("error [{}]: {error}", error.code().as_str()))
}

pub(super) fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_matter_and_all_else_does() {
        let one = canonical(&json!({"a": 1, "b": [{"x": "1", "y": null}]}));
        let same: Value = serde_json::from_str(r#"{"b":[{"y":null,"x":"1"}],"a":1}"#).unwrap();
        assert_eq!(one, canonical(&same));
        assert_ne!(one, canonical(&json!({"a": 1, "b": [{"x": 1, "y": null}]})));
    }
}
