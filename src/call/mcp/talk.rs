//! A server's sandbox and the talk with it, side by side.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runner_policy::Effective;
use runner_policy::limits::Limit;
use tokio::io::DuplexStream;
use tokio::time::timeout;

use crate::call::details::{Details, LastWords};
use crate::call::launch::run::{Keep, Streams};
use crate::call::record::Unrecorded;
use crate::call::request::{Command, Decided, Request, Variables};
use crate::call::result::{CallResult, ErrorObject, Stream};
use crate::call::run::{Output, carry_out};
use crate::call::shortfall::{Kind, Shortfall};
use crate::call::supply::Warmth;
use crate::call::{CallError, Context};
use crate::codes::Code;
use crate::config::{Config, Server};
use crate::engine;
use crate::error::{Failure as _, Retry};
use crate::exit::{Ending, Status};
use crate::ids::CallId;
use crate::mcp_client::{Client, McpError};
use crate::policy_files::{Choice, Places};
use crate::sandbox::cancel::{Cancel, Canceller};
use crate::sandbox::outcome::CancelCause;
use crate::sandbox::streams::Sink;
use crate::workspace::Workspace;

/// Bytes that may wait in each direction.
const PIPE: usize = 64 << 10;

/// How long a server may take to end itself when nothing more comes.
const GRACE: Duration = Duration::from_secs(1);

/// The end of a server's standard error that a failure shows.
const LAST_WORDS: usize = 2 << 10;

/// Our end of a talk with a server in a sandbox.
pub(in crate::call) type Talker = Client<DuplexStream, DuplexStream>;

/// What came of a talk.
pub(in crate::call) struct Spoken<T> {
    /// What was said, or why nothing was.
    pub said: Result<T, McpError>,
    /// What became of the command.
    pub result: CallResult,
}

/// Where a server runs.
pub(in crate::call) struct Site<'a> {
    /// The workspace.
    pub root: PathBuf,
    /// Where our own files are.
    pub places: &'a Places,
    /// The configuration.
    pub config: &'a Arc<Config>,
    /// The image, instead of the policy's.
    pub image: Option<String>,
    /// Which engines may make the sandbox.
    pub engine: Option<engine::Choice>,
    /// Limits that are tighter than the policy's.
    pub tighten: Vec<(Limit, u64)>,
    /// Whether a sandbox that waits may be used.
    pub warmth: Warmth,
    /// On whose behalf.
    pub context: &'a Context,
}

/// Puts a server's command to a policy. It runs at the workspace's root, wherever the caller stands.
pub(in crate::call) fn decide(
    server: &Server,
    policy: Arc<Effective>,
    site: Site<'_>,
) -> Result<Decided, CallError> {
    let Site { root, places, config, image, engine, mut tighten, warmth, context } = site;
    tighten.extend(server.timeout.map(|time| (Limit::Wall, time)));
    let request = Request {
        command: Command::with_variables(server.command.clone(), &server.env),
        cwd: Some(root.clone()),
        policy: Choice::default(),
        image,
        engine,
        tighten,
        warmth,
        variables: Variables::Hidden,
        writes: runner_policy::model::Writes::default(),
        on_held: crate::call::OnHeld::default(),
    };
    let workspace = Workspace::open_at(&root, &root, &context.environment)?;
    let (places, config) = (places.clone(), Arc::clone(config));
    request.decide_under(policy, workspace, places, config, context.clone())
}

/// Runs a server that may run, and talks with it. When the talk is over, so is the sandbox.
pub(in crate::call) async fn converse<T>(
    call: Unrecorded,
    decided: &Decided,
    stderr: Sink,
    cancel: &mut Cancel,
    parent: Option<&CallId>,
    talk: impl AsyncFnOnce(&mut Talker) -> Result<T, McpError>,
) -> Result<Spoken<T>, CallError> {
    let (input, stdin) = tokio::io::duplex(PIPE);
    let (stdout, output) = tokio::io::duplex(PIPE);
    let streams = Streams {
        network: None,
        stdin: Some(Box::pin(stdin)),
        stdout: Some(Box::pin(stdout)),
        stderr,
        talk: None,
        keep: Keep::Limit,
    };
    let (canceller, mut ended) = Cancel::pair();
    let run = carry_out(call, decided, Output::Spoken(streams), &mut ended, parent);
    let talking = async {
        let mut client = Client::new(output, input);
        let said = talk(&mut client).await;
        // After a protocol error nothing more is read.
        if said.is_err() || timeout(GRACE, client.close()).await.is_err() {
            canceller.cancel(CancelCause::BrokerEnded);
            client.close().await;
        }
        said
    };
    let both = async { tokio::join!(run, talking) };
    let (result, said) = tokio::select! {
        both = both => both,
        never = pass_on(cancel, &canceller) => match never {},
    };
    Ok(Spoken { said, result: result? })
}

/// Who cancels the call reaches the sandbox.
async fn pass_on(cancel: &mut Cancel, canceller: &Canceller) -> Infallible {
    loop {
        canceller.cancel(cancel.asked().await);
    }
}

/// How a call ends whose talk broke: what the sandbox met comes before what the talk saw of it.
pub(in crate::call) fn broke(error: &McpError, result: CallResult) -> (Ending, ErrorObject) {
    let CallResult { ending, error: met, stderr, sandbox, .. } = result;
    let by_itself = matches!(ending.status, Status::Completed | Status::Failed);
    let ours = met.as_ref().is_some_and(|met| met.code == Code::BrokerEnded);
    let silent = matches!(error, McpError::Ended { .. } | McpError::Stream(_));
    if let Some(met) = met.filter(|_| silent && !by_itself && !ours) {
        return (ending, met);
    }
    let mut message = error.to_string();
    if silent && by_itself {
        message.push_str(&format!("; it ended with exit code {}", ending.exit.get()));
    }
    let words = stderr.map(last_words).unwrap_or_default();
    // A server that misses a file or a network says so in its own words, or not at all.
    let lacks = |entry: &&Shortfall| {
        matches!(entry.code, Kind::OutsideSandbox | Kind::NoNetwork | Kind::ReadOnly)
    };
    let shortfalls = sandbox.iter().find(lacks).map(Shortfall::sentence);
    let object = ErrorObject {
        code: error.code(),
        message,
        recoverable: error.retry() == Retry::CanHelp,
        suggestion: shortfalls.filter(|_| silent).or_else(|| error.hint()),
        rule: None,
        stack: None,
        details: (!words.is_empty())
            .then_some(Details::Server { data: LastWords { stderr: words } }),
    };
    (Ending::of_kind(error.kind(), error.code()), object)
}

fn last_words(stderr: Stream) -> String {
    let (bytes, _) = stderr.into_bytes();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    let from = text.len().saturating_sub(LAST_WORDS);
    let start = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[start..].to_owned()
}
