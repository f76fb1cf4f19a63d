//! Requests of the protocol, answered. One of these serves one client, whatever it is connected by.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, Prompt, PromptMessage, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, Role,
    ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use super::answer::{self, Said, of_ended, of_running};
use super::approve::{self, Answer};
use super::arguments::{self, Cancel, Explain, Read, Run};
use super::calls::{Ended, Entry, RUNNING};
use super::command;
use super::host::Host;
use super::own;
use super::registry;
use super::resources;
use super::seal::now;
use super::who::Who;
use super::work::{CommandWork, NotBegun, Work, begin};
use crate::approvals::ApprovalId;
use crate::call::CallError;
use crate::error::Failure as _;
use crate::ids::ToolName;

/// The oldest version of the protocol that is spoken.
const OLDEST: &str = "2025-06-18";
/// Tools on one page of the list.
const PAGE: usize = 64;
/// How often the list of tools is looked at while a client wants to hear of changes.
const LOOK: Duration = Duration::from_secs(2);
/// The shortest time between two messages about the progress of a call.
const PROGRESS: Duration = Duration::from_millis(500);
/// How long a cancelled call may take to end before its request is answered.
const CANCELLED: Duration = Duration::from_secs(10);
/// The part of the answer's time for which unread output waits for more, or for the end.
const MORE: u32 = 10;

/// Serves one client.
#[derive(Clone)]
pub struct Client {
    host: Arc<Host>,
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

    fn who(&self, context: &RequestContext<RoleServer>) -> Result<Who, ErrorData> {
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

    async fn call(
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

    /// A figure for the list of tools that changes with it.
    async fn list_figure(&self) -> Option<u64> {
        let tools = registry::list(&self.host).await.ok()?;
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&tools).ok()?.hash(&mut hasher);
        Some(hasher.finish())
    }

    /// Waits until the list of tools is another than before.
    async fn list_changes(&self, before: &mut Option<u64>) {
        loop {
            let now = self.list_figure().await;
            if before.is_some() && now.is_some() && *before != now {
                *before = now;
                return;
            }
            *before = now.or(*before);
            tokio::time::sleep(LOOK).await;
        }
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

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn of_call(error: CallError) -> ErrorData {
    internal(format!("[{}] {error}", error.code().as_str()))
}

/// One page, from a cursor of ours.
fn page<T>(
    all: Vec<T>,
    request: Option<PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let cursor = request.and_then(|request| request.cursor);
    let from: usize = match cursor {
        None => 0,
        Some(cursor) => cursor
            .parse()
            .ok()
            .filter(|from| *from > 0 && *from < all.len())
            .ok_or_else(|| ErrorData::invalid_params("no page begins at this cursor", None))?,
    };
    let next = (all.len() > from + PAGE).then(|| (from + PAGE).to_string());
    Ok((all.into_iter().skip(from).take(PAGE).collect(), next))
}

impl ServerHandler for Client {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("runner", env!("CARGO_PKG_VERSION")))
            .with_instructions(resources::instructions(&self.host))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter();
        known.filter(|version| version.as_str() >= OLDEST).cloned().collect()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, &context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = registry::list(&self.host).await.map_err(of_call)?;
        let (tools, next) = page(tools, request)?;
        Ok(ListToolsResult { next_cursor: next, ..ListToolsResult::with_all_items(tools) })
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = Prompt::new(resources::PROMPT, Some(resources::PROMPT_ABOUT), None);
        let (prompts, _) = page(vec![prompt], request)?;
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != resources::PROMPT {
            return Err(ErrorData::invalid_params("there is no prompt of this name", None));
        }
        let text = resources::prompt(&self.host).await.map_err(of_call)?;
        let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
        Ok(result.with_description(resources::PROMPT_ABOUT).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (resources, _) = page(resources::resources(), request)?;
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (templates, _) = page(resources::templates(), request)?;
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let who = self.who(&context)?;
        let uri = request.uri;
        let read = resources::read(&self.host, &who, &uri).await.map_err(of_call)?;
        let Some((text, kind)) = read else {
            let data = serde_json::json!({ "uri": uri });
            let code = ErrorCode::RESOURCE_NOT_FOUND;
            return Err(ErrorData::new(code, "there is no such resource", Some(data)));
        };
        let contents = ResourceContents::text(text, uri).with_mime_type(kind);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (client, peer) = (self.clone(), context.peer);
        tokio::spawn(async move {
            let mut before = None;
            while !peer.is_transport_closed() {
                let changed = client.list_changes(&mut before);
                // A client that has left hears nothing, and nothing is looked at for it.
                if tokio::time::timeout(10 * LOOK, changed).await.is_ok()
                    && peer.notify_tool_list_changed().await.is_err()
                {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut before = None;
        let wanted = context.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.list_changes(&mut before), if wanted => {
                    if context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
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

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let all: Vec<usize> = (0..150).collect();
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let request = cursor.take().map(|cursor| {
                let mut request = PaginatedRequestParams::default();
                request.cursor = Some(cursor);
                request
            });
            let (items, next) = page(all.clone(), request).unwrap();
            seen.extend(items);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
        for wrong in ["x", "-1", "150", "99999999999999999999999"] {
            let mut request = PaginatedRequestParams::default();
            request.cursor = Some(wrong.to_owned());
            assert!(page(all.clone(), Some(request)).is_err(), "{wrong}");
        }
    }
}
