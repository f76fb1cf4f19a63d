//! `runner policy explain`: what a command does, what the policy says to it, and why.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use runner_policy::decide::{Query, What, explain};
use runner_policy::model::Verdict;
use runner_policy::net::RegistryHost;
use runner_policy::word::quoted;

use super::place::{self, Place, choice};
use super::view::{self, View};
use crate::call::{CallError, Context};
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::usage::UsageError;
use crate::config;
use crate::exit::Ending;
use crate::policy_files::{Loaded, Trust, choosable, load};
use crate::registries;

/// As typed: exactly one question.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("question").required(true).multiple(false),
    after_help = concat!(
        "Examples:\n",
        "  runner policy explain -- git log --oneline\n",
        "  runner policy explain --policy develop -- npm test\n",
        "  runner policy explain --shell 'cd src && grep -r TODO . | head'\n",
        "  runner policy explain --read .env\n",
        "  runner policy explain --net 'GET https://api.example/v1/x'\n\n",
        "Exit codes: 0 allow, 77 ask, 126 deny.",
    )
)]
pub struct Args {
    #[command(flatten)]
    place: place::Args,
    /// A line as typed into a shell
    #[arg(long, value_name = "LINE", group = "question", allow_hyphen_values = true)]
    shell: Option<OsString>,
    /// May this path be read?
    #[arg(long, value_name = "PATH", group = "question")]
    read: Option<OsString>,
    /// May this path be written?
    #[arg(long, value_name = "PATH", group = "question")]
    write: Option<OsString>,
    /// May this be reached? `METHOD URL`, or HOST:PORT
    #[arg(long, value_name = "TARGET", group = "question")]
    net: Option<OsString>,
    /// May a command set this variable?
    #[arg(long, value_name = "NAME", group = "question")]
    env: Option<OsString>,
    /// A command and its arguments
    #[arg(value_name = "CMD", group = "question", trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// The question, resolved.
enum Question {
    Argv(Vec<String>),
    Line(String),
    Read(String),
    Write(String),
    Net(String),
    Env(String),
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let (place, question) = args.resolve(context)?;
    let config = config::load(&place.places).map_err(CallError::from)?;
    let choice = config.choice(&place.choice, &place.workspace);
    let Loaded { policy, configured, .. } = load(&choice, &place.places, Trust::Required)?;
    let (workspace, cwd) = (path_text(&place.workspace)?, path_text(&place.cwd)?);
    let now = jiff::Timestamp::now();
    let hosts = match &question {
        Question::Net(_) => registries::find(&policy.registries(now), &context.environment)
            .map_err(CallError::from)?
            .hosts(),
        _ => Vec::new(),
    };
    let query = Query { workspace, cwd, now, what: question.what(&hosts) };
    // Who is allowed needs no way out, so the other policies need not be read.
    let denied = runner_policy::decide::decide(&policy, &query).decision != Verdict::Allow;
    let others = if denied { choosable(&place.places) } else { Vec::new() };
    let explanation = explain(&policy, &query, &others);
    let asked = question.shown();
    let view = View { asked: &asked, explanation: &explanation, configured: configured.as_ref() };
    match printer.format() {
        Format::Json => printer.json(&view)?,
        Format::Text => printer.data(&view)?,
    }
    Ok(view::ending(&explanation.decision))
}

impl Args {
    fn resolve(self, context: &Context) -> Result<(Place, Question), Error> {
        let environment = &context.environment;
        let Self { place, shell, read, write, net, env, command } = self;
        let one = |word: Option<OsString>, question: fn(String) -> Question| {
            word.map(|word| text(word).map(question)).transpose()
        };
        let asked = one(shell, Question::Line)?
            .or(one(read, Question::Read)?)
            .or(one(write, Question::Write)?)
            .or(one(net, Question::Net)?)
            .or(one(env, Question::Env)?);
        let place = place::Args { policy: Some(choice(place.policy, environment)?), ..place };
        let question = match asked {
            Some(question) => question,
            None => Question::Argv(command.into_iter().map(text).collect::<Result<_, _>>()?),
        };
        Ok((place.resolve(context)?, question))
    }
}

impl Question {
    fn what<'a>(&'a self, registries: &'a [RegistryHost]) -> What<'a> {
        match self {
            Self::Argv(argv) => What::Argv(argv),
            Self::Line(line) => What::Line(line),
            Self::Read(path) => What::Read(path),
            Self::Write(path) => What::Write(path),
            Self::Net(target) => What::of_peer(target, registries),
            Self::Env(name) => What::Env(name),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Argv(argv) => argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            Self::Line(line) => line.clone(),
            Self::Read(path) => format!("read {path}"),
            Self::Write(path) => format!("write {path}"),
            Self::Net(target) => format!("net {target}"),
            Self::Env(name) => format!("env {name}"),
        }
    }
}

/// Policies speak of text. What is no text cannot be judged, and nothing unjudged is allowed.
fn text(word: OsString) -> Result<String, UsageError> {
    word.into_string().map_err(|word| not_text(&word))
}

fn path_text(path: &Path) -> Result<&str, UsageError> {
    path.to_str().ok_or_else(|| not_text(path.as_os_str()))
}

fn not_text(word: &OsStr) -> UsageError {
    UsageError::NotText(word.to_string_lossy().into_owned())
}
