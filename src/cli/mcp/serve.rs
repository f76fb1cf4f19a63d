//! `runner mcp serve`: the MCP server, for one client at the standard streams or for many over TCP and a socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anstream::adapter::strip_str;
use runner_policy::decide::Explanation;
use runner_policy::limits::Unit;

use crate::call::Context;
use crate::cli::Error;
use crate::cli::event_loop::cancellable;
use crate::cli::policy::summary::Summary;
use crate::cli::policy::view::View;
use crate::cli::printer::Printer;
use crate::cli::usage::UsageError;
use crate::engine;
use crate::exit::Ending;
use crate::mcp::{
    ANSWER_WITHIN, Client, Host, Reach, ServeError, Settings, Tokens, Words, bind, serve_http,
    serve_socket, serve_stdio,
};
use crate::policy_files::{Choice, Configured, Loaded};
use crate::sys;

/// The longest time that a request may wait for its call.
const LONGEST_ANSWER: Duration = Duration::from_secs(3_600);

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --http and --socket the client is at the standard streams. The person who starts the server chooses policy, folder and engine; clients only narrow. RUNNER_POLICY does not count here. Over TCP every client needs a token: runner mcp token new NAME.\n\nExamples:\n  runner mcp serve --policy develop\n  runner mcp serve --http 127.0.0.1:7300 --policy develop\n  runner mcp serve --socket ~/.local/state/runner.sock"
)]
pub struct Args {
    /// The policy that decides: a name, or the path of a .yml file [default: the configuration's, else readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
    /// Serve the workspace of this folder
    #[arg(long, short = 'C', visible_alias = "cwd", value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// What makes the sandboxes [default: auto]
    #[arg(long, value_name = "ENGINE", value_parser = crate::cli::engine::choice())]
    engine: Option<engine::Choice>,
    /// The image: `host`, or an OCI reference that the engine has
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// A further folder with tools
    #[arg(long, value_name = "DIR")]
    tools: Vec<PathBuf>,
    /// Listen at this address, such as 127.0.0.1:7300; the protocol is spoken at /mcp
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Listen at a unix socket of this user, one message a line
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// With --http: a further name under which clients reach the server
    #[arg(long, value_name = "NAME", requires = "http")]
    host: Vec<String>,
    /// With --http: a further origin of web pages that may call, such as https://app.example:443
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    origin: Vec<String>,
    /// With --http: listen at other than loopback addresses; tokens then travel unencrypted
    #[arg(long, requires = "http")]
    plain: bool,
    /// Answer within this time, with an id if the command still runs [default: 50s]
    #[arg(long, value_name = "TIME")]
    answer_within: Option<String>,
}

/// A policy as `policy show` shows it.
fn policy(loaded: &Loaded) -> String {
    strip_str(&Summary::of(loaded).to_string()).to_string()
}

/// A decision as `policy explain` shows it.
fn decision(asked: &str, explanation: &Explanation, configured: Option<&Configured>) -> String {
    strip_str(&View { asked, explanation, configured }.to_string()).to_string()
}

/// Serves until the client leaves or a signal comes.
pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let answer_within = args.answer_within.as_deref().map_or(Ok(ANSWER_WITHIN), time)?;
    sys::one_arena();
    let host = Host::new(Settings {
        context: context.clone(),
        folder: args.workdir,
        policy: args.policy.unwrap_or_default(),
        engine: args.engine,
        image: args.image,
        tools: args.tools,
        answer_within,
        words: Words { policy, decision },
    })?;
    cancellable(async |cancel| {
        let listener = match args.http {
            Some(address) => Some(bind(address, args.plain).await?),
            None => None,
        };
        let at_stdio = listener.is_none() && args.socket.is_none();
        let reach = Reach { hosts: args.host.clone(), origins: args.origin.clone() };
        let http = async {
            let Some(listener) = listener else { return std::future::pending().await };
            if let Ok(address) = listener.local_addr() {
                printer.talk(format_args!("runner: serving at http://{address}/mcp"));
            }
            let tokens = Arc::new(Tokens::open(host.places().state.as_deref())?);
            let own = Arc::clone(&host);
            let make = move || Client::of_requests(Arc::clone(&own));
            serve_http(listener, tokens, reach, make).await.map_err(Error::from)
        };
        let socket = async {
            let Some(path) = &args.socket else { return std::future::pending().await };
            serve_socket(&host, path).await
        };
        let stdio = async {
            if at_stdio { serve_stdio(&host).await } else { std::future::pending().await }
        };
        let done = tokio::select! {
            done = http => done,
            done = socket => done.map_err(|error: ServeError| error.into()),
            done = stdio => done.map_err(|error: ServeError| error.into()),
            _ = cancel.asked() => Ok(()),
        };
        host.end().await;
        done
    })?;
    Ok(Ending::ok())
}

fn time(text: &str) -> Result<Duration, UsageError> {
    let wrong = |why: String| UsageError::Option { option: "--answer-within".to_owned(), why };
    let millis = Unit::Time
        .parse(text)
        .map_err(|form| wrong(format!("`{text}` is not a time; write {form}")))?;
    let time = Duration::from_millis(millis);
    if time.is_zero() || time > LONGEST_ANSWER {
        let most = LONGEST_ANSWER.as_secs();
        return Err(wrong(format!("`{text}` is not between 1ms and {most}s")));
    }
    Ok(time)
}
