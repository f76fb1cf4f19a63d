//! `runner mcp list`: the servers that are configured. Nothing is started.

use std::path::PathBuf;

use runner_policy::word::quoted;
use serde::Serialize;
use serde_json::json;

use crate::call::Context;
use crate::call::mcp::Servers;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::style;
use crate::cli::table::{Cell, Table};
use crate::config::{Flag, Layer, ServerName, Source};
use crate::exit::Ending;
use crate::mcp_client::{Known, Peer, Remembered};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "A server is configured in your own or the managed configuration, as ",
        "`mcp.servers.NAME`. A project can only switch it off. A policy decides about a ",
        "server as about any command, and it runs in a sandbox of its own.\n\n",
        "Examples:\n",
        "  runner mcp list\n",
        "  runner mcp list --json | jq -r '.servers[] | select(.state != \"asked\").name'",
    )
)]
pub struct Args {
    /// Look as if from this folder
    #[arg(long, short = 'C', visible_alias = "workdir", value_name = "DIR")]
    cwd: Option<PathBuf>,
}

/// What is known of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Asked,
    Never,
    Changed,
    Off,
}

impl State {
    const fn words(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Never => "never asked",
            Self::Changed => "changed",
            Self::Off => "off",
        }
    }
}

#[derive(Debug, Serialize)]
struct Row {
    name: ServerName,
    state: State,
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// How many of its tools are taken.
    tools: Option<usize>,
    /// What it says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    says: Option<Peer>,
    /// When it was asked, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_at: Option<i64>,
    #[serde(flatten)]
    source: Source,
}

pub(super) fn run(args: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let servers = Servers::find(args.cwd.as_deref(), context)?;
    let known = servers.known();
    let mut rows: Vec<Row> = known.iter().map(row).collect();
    rows.extend(off(&servers, &known));
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    match printer.format() {
        Format::Json => printer.json(&json!({ "servers": rows }))?,
        Format::Text => text(&rows, printer)?,
    }
    Ok(Ending::ok())
}

fn row(it: &Remembered) -> Row {
    let (state, asked) = match &it.known {
        Known::Asked(asked) => (State::Asked, Some(asked)),
        Known::Changed => (State::Changed, None),
        Known::Never => (State::Never, None),
    };
    Row {
        name: it.name.clone(),
        state,
        command: it.server.command.clone(),
        policy: it.server.policy.clone(),
        tools: asked.map(|_| it.taken().count()),
        says: asked.map(|asked| asked.peer.clone()),
        asked_at: asked.map(|asked| asked.at),
        source: it.source.clone(),
    }
}

/// The columns that can be left out.
const POLICY: usize = 3;
const COMMAND: usize = 4;

/// Servers that are defined and not used.
fn off(servers: &Servers, known: &[Remembered]) -> Vec<Row> {
    let used = |name: &ServerName| known.iter().any(|it| it.name == *name);
    let defined = servers.config().servers().filter(|(name, _)| !used(name));
    let local = servers.config().flag(Flag::DisableLocalTools);
    defined
        .filter_map(|(name, said)| {
            let server = said.server.as_ref()?;
            let off = said.enabled.as_ref().filter(|enabled| !enabled.value);
            let forbidden = local.value && server.source.layer != Layer::Managed;
            let switched = off.map(|off| &off.source);
            let source = switched.or_else(|| forbidden.then_some(&local.source));
            Some(Row {
                name: name.clone(),
                state: State::Off,
                command: server.value.command.clone(),
                policy: server.value.policy.clone(),
                tools: None,
                says: None,
                asked_at: None,
                source: source.unwrap_or(&server.source).clone(),
            })
        })
        .collect()
}

fn text(rows: &[Row], printer: &mut Printer) -> Result<(), Error> {
    if rows.is_empty() {
        printer.hint("no server is configured: write `mcp: { servers: { NAME: { command: [program, argument] } } }` in your own configuration; `runner config path` says where that is");
        return Ok(());
    }
    let mut table = Table::new(["server", "state", "tools", "policy", "command", "from"])
        .sparing(&[COMMAND, POLICY]);
    for row in rows {
        let colour = match row.state {
            State::Asked => style::GOOD,
            State::Never | State::Changed => style::WARN,
            State::Off => style::FAINT,
        };
        let words: Vec<String> = row.command.iter().map(|word| quoted(word)).collect();
        let place = row.source.file.as_ref().zip(row.source.line);
        table.styled([
            Cell::new(row.name.as_str(), style::STRONG),
            Cell::new(row.state.words(), colour),
            Cell::plain(row.tools.map_or_else(|| "?".to_owned(), |count| count.to_string())),
            Cell::plain(row.policy.as_deref().unwrap_or("the call's")),
            Cell::plain(words.join(" ")),
            Cell::plain(place.map(|(file, line)| format!("{file}:{line}")).unwrap_or_default()),
        ]);
    }
    let width = printer.width();
    printer.data(table.fitting(width))?;
    let of = |state: State| {
        let names = rows.iter().filter(|row| row.state == state).map(|row| row.name.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    let (never, changed) = (of(State::Never), of(State::Changed));
    if !never.is_empty() {
        printer.hint(&format!("not asked for their tools yet; to ask: runner mcp refresh {never}"));
    }
    if !changed.is_empty() {
        printer.hint(&format!(
            "what changed since it was asked is not used; ask again: runner mcp refresh {changed}"
        ));
    }
    Ok(())
}
