//! One request from its action to its reply.
//!
//! A handler waits for bytes, locks and peers only in `async` code; what blocks (files) runs in short
//! pieces on threads of their own. So a request that waits, for a slow body or for a runtime that does
//! not read, holds no thread, and the others go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::files::Files;
use super::outgoing::{Outgoing, ok};
use super::request::Action;
use super::{Authority, Body, Brokered, Command, ExecRequest, FetchRequest, Refusal};
use crate::codes::Code;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::outcome::CancelCause;

/// Pieces of file work at once: enough for a disk, few threads.
const FILE_SLOTS: u32 = 8;
/// Commands of one call at once: each is a sandbox.
const EXEC_SLOTS: usize = 4;
/// Fetches of one call at once.
const NET_SLOTS: usize = 16;
/// How long a cancelled command has to end in order before its run is dropped.
const EXEC_GRACE: Duration = Duration::from_secs(10);
/// Longest description of a request in the ledger.
const OBJECT_MAX: usize = 512;

/// What all requests of a call share.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) authority: Authority,
    files: Arc<Files>,
    file_slots: Arc<Semaphore>,
    exec_slots: Semaphore,
    net_slots: Semaphore,
}

/// What the ledger will say of a request, as far as it is known.
#[derive(Debug, Default)]
struct Note {
    object: String,
    call: Option<String>,
}

/// One request on its way.
pub(super) struct Task {
    pub(super) id: u32,
    pub(super) action: Action,
    /// Whether the tool sends a body; [`Self::body`] is empty otherwise.
    pub(super) has_body: bool,
    pub(super) body: Body,
    pub(super) out: Outgoing,
    /// Fires, or is dropped, when the request is not wanted any more.
    pub(super) cancelled: oneshot::Receiver<()>,
}

impl Context {
    /// `None` if the workspace's path is not text.
    pub(super) fn new(authority: Authority) -> Option<Self> {
        Some(Self {
            files: Arc::new(Files::new(&authority)?),
            authority,
            file_slots: Arc::new(Semaphore::new(FILE_SLOTS as usize)),
            exec_slots: Semaphore::new(EXEC_SLOTS),
            net_slots: Semaphore::new(NET_SLOTS),
        })
    }

    /// Waits until no file is worked on any more: nothing happens on the host after a call is over.
    pub(super) async fn settle(&self) {
        drop(self.file_slots.acquire_many(FILE_SLOTS).await);
    }

    /// Runs a piece of work that blocks.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = slot(&self.file_slots).await?;
        let files = Arc::clone(&self.files);
        let done = tokio::task::spawn_blocking(move || {
            let result = work(&files);
            // Only now is the piece over, whether somebody still waits for it or not.
            drop(permit);
            result
        });
        done.await.unwrap_or_else(|_| {
            Err(Refusal::new(Code::IoError, "the broker failed; this is a bug"))
        })
    }
}

async fn slot(slots: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(slots).acquire_owned().await.map_err(|_| cancelled())
}

fn cancelled() -> Refusal {
    Refusal::new(Code::Cancelled, "the request was cancelled, or the call is ending")
}

/// Does what a request asks for and sends its one reply.
pub(super) async fn answer(context: Arc<Context>, task: Task) -> Brokered {
    let Task { id, action, has_body, body, mut out, cancelled: mut unwanted } = task;
    let started = Instant::now();
    let method = action.method();
    let mut note = Note { object: named(&action), call: None };
    let (canceller, cancel) = Cancel::pair();
    // Whether a command runs: one that waits for its turn has nothing to end in order.
    let running = AtomicBool::new(false);
    let result = {
        let asked = Asked { action, body: has_body.then_some(body), cancel, running: &running };
        let work = perform(&context, asked, &mut out, &mut note);
        tokio::pin!(work);
        tokio::select! {
            biased;
            result = &mut work => result,
            _ = &mut unwanted => {
                if running.load(Ordering::Relaxed) {
                    canceller.cancel(CancelCause::Terminate);
                    // Its sandbox should end in order; whatever it answers, nobody wants it.
                    drop(tokio::time::timeout(EXEC_GRACE, &mut work).await);
                }
                Err(cancelled())
            }
        }
    };
    // If nobody writes any more, nobody waits for the answer.
    let _ = out.reply(&result).await;
    let refusal = result.as_ref().err();
    Brokered {
        id,
        method,
        object: shortened(note.object),
        refused: refusal.map(|refusal| refusal.code),
        message: refusal.map(|refusal| refusal.message.clone()),
        rule: refusal.and_then(|refusal| refusal.rule.as_deref().cloned()),
        suggestion: refusal.and_then(|refusal| refusal.suggestion.clone()),
        approval: refusal.and_then(|refusal| refusal.approval.clone()),
        bytes_in: 0,
        bytes_out: out.sent(),
        duration: started.elapsed(),
        call: note.call,
    }
}

/// A request that was refused without being looked at.
pub(super) fn unheard(id: u32, action: &Action, code: Code) -> Brokered {
    Brokered {
        id,
        method: action.method(),
        object: shortened(named(action)),
        refused: Some(code),
        message: None,
        rule: None,
        suggestion: None,
        approval: None,
        bytes_in: 0,
        bytes_out: 0,
        duration: Duration::ZERO,
        call: None,
    }
}

/// What a request is about, as the tool names it.
fn named(action: &Action) -> String {
    match action {
        Action::Read { path, .. }
        | Action::Write { path, .. }
        | Action::Append { path }
        | Action::List { path }
        | Action::Stat { path }
        | Action::Remove { path, .. }
        | Action::Mkdir { path, .. } => path.clone(),
        Action::Rename { from, to } => format!("{from} -> {to}"),
        Action::Glob { pattern, .. } => pattern.clone(),
        Action::Exec { command: Command::Argv(argv), .. } => {
            argv.iter().map(|word| runner_policy::word::quoted(word)).collect::<Vec<_>>().join(" ")
        }
        Action::Exec { command: Command::Line(line), .. } => line.clone(),
        Action::Fetch { method, url, .. } => format!("{method} {url}"),
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(OBJECT_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// What a request brings.
struct Asked<'a> {
    action: Action,
    body: Option<Body>,
    cancel: Cancel,
    running: &'a AtomicBool,
}

async fn perform(
    context: &Context,
    asked: Asked<'_>,
    out: &mut Outgoing,
    note: &mut Note,
) -> Result<String, Refusal> {
    let Asked { action, body, cancel, running } = asked;
    match action {
        Action::Read { path, offset, length } => {
            read(context, path, offset, length, out, note).await
        }
        Action::Write { path, exclusive } => {
            let mut body = body.unwrap_or_else(Body::empty);
            let mut draft = context.blocking(move |files| files.write(&path, exclusive)).await?;
            draft.relative().clone_into(&mut note.object);
            while let Some(piece) = body.next().await? {
                draft = context.blocking(move |_| draft.write(&piece).map(|()| draft)).await?;
            }
            let bytes = context.blocking(move |files| files.commit(draft)).await?;
            ok(&json!({"bytes": bytes}))
        }
        Action::Append { path } => {
            let mut body = body.unwrap_or_else(Body::empty);
            let mut file = context.blocking(move |files| files.append(&path)).await?;
            note.object.clone_from(&file.relative);
            while let Some(piece) = body.next().await? {
                file = context.blocking(move |_| file.write(&piece).map(|()| file)).await?;
            }
            ok(&json!({"bytes": file.written()}))
        }
        Action::List { path } => {
            let listing = context.blocking(move |files| files.list(&path)).await?;
            note.object.clone_from(&listing.relative);
            ok(&listing)
        }
        Action::Stat { path } => {
            let stat = context.blocking(move |files| files.stat(&path)).await?;
            note.object.clone_from(&stat.relative);
            ok(&stat)
        }
        Action::Remove { path, recursive, force } => {
            let named = path.clone();
            let judged =
                context.blocking(move |files| files.removes(&named, recursive, force)).await?;
            if let Some(what) = &judged {
                context.authority.removals.may(what.clone()).await?;
            }
            let remove =
                move |files: &Files| files.remove(&path, recursive, force, judged.as_ref());
            note.object = context.blocking(remove).await?;
            ok(&json!({}))
        }
        Action::Rename { from, to } => {
            let named = (from.clone(), to.clone());
            let judged = context.blocking(move |files| files.moves(&named.0, &named.1)).await?;
            if !judged.loses().is_empty() {
                context.authority.removals.may(judged.clone()).await?;
            }
            note.object = context.blocking(move |files| files.rename(&from, &to, &judged)).await?;
            ok(&json!({}))
        }
        Action::Mkdir { path, recursive } => {
            note.object = context.blocking(move |files| files.mkdir(&path, recursive)).await?;
            ok(&json!({}))
        }
        Action::Glob { pattern, cwd, dot, limit } => {
            let (paths, _) = context
                .blocking(move |files| files.glob(&pattern, cwd.as_deref(), dot, limit))
                .await?;
            ok(&paths)
        }
        Action::Exec { command, cwd, env, timeout } => {
            let cwd = cwd.unwrap_or_else(|| ".".to_owned());
            let cwd = context.blocking(move |files| files.folder(&cwd)).await?;
            let stdin = body.unwrap_or_else(Body::empty);
            let request = ExecRequest { command, cwd, env, timeout, stdin, cancel };
            exec(context, request, running, out, note).await
        }
        Action::Fetch { method, url, headers, timeout, redirect } => {
            let request = FetchRequest { method, url, headers, timeout, redirect, body };
            fetch(context, request, out).await
        }
    }
}

async fn read(
    context: &Context,
    path: String,
    offset: u64,
    length: Option<u64>,
    out: &mut Outgoing,
    note: &mut Note,
) -> Result<String, Refusal> {
    let open = move |files: &Files| {
        let mut reading = files.read(&path, offset, length)?;
        let frames = reading.frames()?;
        Ok((reading, frames))
    };
    let (mut reading, mut frames) = context.blocking(open).await?;
    note.object.clone_from(&reading.relative);
    while !frames.is_empty() {
        for frame in frames {
            out.frame(frame).await?;
        }
        (reading, frames) = context
            .blocking(move |_| {
                let frames = reading.frames()?;
                Ok((reading, frames))
            })
            .await?;
    }
    ok(&json!({"bytes": out.sent()}))
}

async fn exec(
    context: &Context,
    request: ExecRequest,
    running: &AtomicBool,
    out: &mut Outgoing,
    note: &mut Note,
) -> Result<String, Refusal> {
    let _slot = context.exec_slots.acquire().await.map_err(|_| cancelled())?;
    running.store(true, Ordering::Relaxed);
    let reply = context.authority.exec.run(request).await?;
    note.call = Some(reply.call.clone());
    out.bytes(&reply.stdout).await?;
    out.bytes(&reply.stderr).await?;
    let mut answer = json!({
        "exitCode": reply.exit_code,
        "status": reply.status,
        "stdoutBytes": reply.stdout.len(),
        "stderrBytes": reply.stderr.len(),
        "truncated": reply.truncated,
        "durationMs": u64::try_from(reply.duration.as_millis()).unwrap_or(u64::MAX),
        "call": reply.call,
    });
    if let (Some(signal), Some(answer)) = (reply.signal, answer.as_object_mut()) {
        answer.insert("signal".to_owned(), signal.into());
    }
    ok(&answer)
}

async fn fetch(
    context: &Context,
    request: FetchRequest,
    out: &mut Outgoing,
) -> Result<String, Refusal> {
    let _slot = context.net_slots.acquire().await.map_err(|_| cancelled())?;
    let mut fetched = context.authority.net.fetch(request).await?;
    while let Some(piece) = fetched.body.next().await? {
        out.bytes(&piece).await?;
    }
    ok(&json!({
        "status": fetched.status,
        "statusText": fetched.status_text,
        "url": fetched.url,
        "headers": fetched.headers,
        "redirected": fetched.redirected,
    }))
}
