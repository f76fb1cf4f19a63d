//! `runner mcp refresh`: servers are started, each in a sandbox, and asked what they offer. What changed is said.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::approvals::ApprovalId;
use crate::audit::Redactor;
use crate::call::Context;
use crate::call::Details;
use crate::call::mcp::{Failed, Refresh, Refreshed, Servers};
use crate::call::{Asking, Spent};
use crate::cli::Error;
use crate::cli::ask::{Yes, approver};
use crate::cli::event_loop::cancellable;
use crate::cli::policy::place::choice;
use crate::cli::policy::view::View;
use crate::cli::printer::{Format, Printer};
use crate::cli::style;
use crate::cli::tool::shared_stderr::SharedStderr;
use crate::cli::usage::UsageError;
use crate::cli::visible::{visible, visible_inside};
use crate::config::{ServerName, ServerNameError};
use crate::engine;
use crate::exit::Ending;
use crate::mcp_client::{Change, Remembered};
use crate::policy_files::Choice;
use crate::text::counted;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Without a name, every server that can be used here is asked. A server runs under ",
        "the policy that its definition names, else under --policy. If a tool has changed, ",
        "its approvals are void.\n\n",
        "Examples:\n",
        "  runner mcp refresh\n",
        "  runner mcp refresh files --policy develop\n\n",
        "Exit codes: 0 all servers answered, else as for `runner exec` of the first one that ",
        "did not.",
    )
)]
pub struct Args {
    /// Servers by name
    #[arg(value_name = "NAME", value_parser = name)]
    names: Vec<ServerName>,
    /// The policy that decides about servers that name none [default: the configuration's, else readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
    /// What makes the sandboxes of the servers [default: auto]
    #[arg(long, value_name = "ENGINE", value_parser = crate::cli::engine::choice())]
    engine: Option<engine::Choice>,
    /// Look as if from this folder
    #[arg(long, short = 'C', visible_alias = "workdir", value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Approve servers that the policy asks about; needs a terminal, as every answer does
    #[arg(long, short = 'y')]
    yes: bool,
    /// Use this approval, given with `runner approve`
    #[arg(long, value_name = "ID")]
    approve: Vec<ApprovalId>,
}

fn name(word: &str) -> Result<ServerName, ServerNameError> {
    word.parse()
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let servers = Servers::find(args.cwd.as_deref(), context)?;
    let known = servers.known();
    let wanted = wanted(&args.names, &known)?;
    let choice = choice(args.policy, &context.environment)?;
    let engine = args.engine;
    let yes = Yes::typed(args.yes, || Ok(servers.config().clone()))?;
    let asking = Arc::new(Asking {
        approver: approver(yes, Arc::new(SharedStderr::new()), &context.caller),
        named: args.approve,
        times: servers.config().approvals(),
        places: servers.places().clone(),
        redactor: Redactor::new(),
        spent: Spent::default(),
        caller: context.caller.clone(),
    });
    let mut ending = Ending::ok();
    let mut rows = Vec::new();
    cancellable(async |cancel| {
        for it in wanted {
            let outcome = servers
                .refresh(it, &choice, engine.as_ref(), Some(Arc::clone(&asking)), cancel)
                .await?;
            let (row, ended) = match &outcome {
                Refresh::Done(done) => (done_row(it, done), Ending::ok()),
                Refresh::Refused(result) => (
                    json!({ "name": it.name, "error": result.error, "call": result.call }),
                    result.ending.clone(),
                ),
                Refresh::Failed(failed) => (
                    json!({ "name": it.name, "error": failed.error, "call": failed.call }),
                    failed.ending.clone(),
                ),
            };
            if ending == Ending::ok() {
                ending = ended;
            }
            rows.push(row);
            if printer.format() == Format::Text {
                match &outcome {
                    Refresh::Done(done) => told(it, done, printer)?,
                    Refresh::Refused(result) => {
                        printer.talk(format_args!("{}: the server may not run", it.name));
                        let answer = result.error.as_ref().filter(|error| error.is_answer());
                        if let Some(error) = answer {
                            printer.talk(visible(&error.message));
                            printer.hint(error.suggestion.as_deref().unwrap_or_default());
                            continue;
                        }
                        if let Some(explanation) = result.decision.refused() {
                            let words: Vec<String> = it
                                .server
                                .command
                                .iter()
                                .map(|it| runner_policy::word::quoted(it))
                                .collect();
                            let asked = words.join(" ");
                            let view =
                                View { asked: &asked, explanation, configured: None }.to_string();
                            printer.talk(view.trim_end());
                        }
                        if let Some(error) = result.error.as_ref().filter(|it| it.details.is_some())
                        {
                            printer.hint(error.suggestion.as_deref().unwrap_or_default());
                        }
                        if it.server.policy.is_none() {
                            printer.hint(&format!("name a policy that lets it run: --policy NAME, or `policy: NAME` of mcp.servers.{} in the configuration", it.name));
                        }
                    }
                    Refresh::Failed(failed) => broken(it, failed, printer),
                }
            }
        }
        Ok(())
    })?;
    if printer.format() == Format::Json {
        printer.json(&json!({ "servers": rows }))?;
    } else if known.is_empty() {
        printer.hint("no server is configured, or all are off; runner mcp list shows them");
    }
    Ok(ending)
}

/// The named servers, or all.
fn wanted<'k>(names: &[ServerName], known: &'k [Remembered]) -> Result<Vec<&'k Remembered>, Error> {
    if names.is_empty() {
        return Ok(known.iter().collect());
    }
    let find = |name: &ServerName| {
        known.iter().find(|it| it.name == *name).ok_or_else(|| {
            Error::from(UsageError::Option {
                option: "NAME".to_owned(),
                why: format!(
                    "there is no server `{name}` that can be used here; runner mcp list shows all"
                ),
            })
        })
    };
    names.iter().map(find).collect()
}

fn done_row(it: &Remembered, done: &Refreshed) -> Value {
    let names: Vec<&String> = done.asked.tools.iter().map(|tool| &tool.name).collect();
    let changes = done.changes.as_ref().map(|changes| {
        let each = |(tool, change): &(String, Change)| json!({ "tool": tool, "change": change });
        changes.iter().map(each).collect::<Vec<_>>()
    });
    json!({
        "name": it.name, "says": done.asked.peer, "policy": done.asked.policy, "tools": names,
        "changes": changes, "call": done.call,
    })
}

fn told(it: &Remembered, done: &Refreshed, printer: &mut Printer) -> Result<(), Error> {
    let (good, warn, faint) = (style::GOOD, style::WARN, style::FAINT);
    let peer = &done.asked.peer;
    let itself = format!("{} {}", visible(&peer.name), visible(&peer.version));
    printer.data(format_args!(
        "{good}✓{good:#} {}: {}  {faint}{}, protocol {}, policy {}{faint:#}\n",
        it.name,
        counted(done.asked.tools.len(), "tool"),
        itself.trim(),
        peer.protocol,
        done.asked.policy,
    ))?;
    for (tool, change) in done.changes.iter().flatten() {
        let tool = visible(tool);
        match change {
            Change::Added => printer.data(format_args!("  + {tool}\n"))?,
            Change::Removed => printer.data(format_args!("  {warn}-{warn:#} {tool}\n"))?,
            Change::Changed { parts } => {
                let parts = parts.join(", ");
                printer.data(format_args!("  {warn}! {tool} CHANGED:{warn:#} {parts}\n"))?;
            }
        }
    }
    let changed = |it: &&(String, Change)| matches!(it.1, Change::Changed { .. });
    let count = done.changes.iter().flatten().filter(changed).count();
    if count > 0 {
        printer.hint(&format!(
            "{} of {} not what it was: read it before you use it (runner tool info); approvals of it are void",
            counted(count, "tool"),
            it.name
        ));
    }
    Ok(())
}

fn broken(it: &Remembered, failed: &Failed, printer: &mut Printer) {
    let bad = style::BAD;
    let error = &failed.error;
    printer.talk(format_args!(
        "{bad}✗{bad:#} {}: {bad}{}:{bad:#} {}",
        it.name,
        error.code,
        visible_inside(&error.message)
    ));
    if let Some(Details::Server { data }) = &error.details {
        printer.talk(format_args!("it wrote: {}", visible_inside(&data.stderr)));
    }
    if let Some(suggestion) = &error.suggestion {
        printer.hint(suggestion);
    }
}
