//! `runner config show`: every value in force, with the layer and the line that it comes from.

use serde::Serialize;
use serde_json::{Value, json};

use super::places;
use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::config::{self, Config, FIGURES, FLAGS, Figure, Source, Sourced};
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner config show\n",
        "  runner config show --json | jq '.settings[] | select(.layer != \"default\")'",
    )
)]
pub struct Args {}

/// One value.
#[derive(Debug, Serialize)]
struct Row {
    key: String,
    value: Value,
    #[serde(flatten)]
    source: Source,
}

pub(super) fn run(_: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let config = config::load(&places(context)?)?;
    let rows = rows(&config);
    match printer.format() {
        Format::Json => printer.json(&json!({ "settings": rows }))?,
        Format::Text => {
            let mut table = Table::new(["key", "value", "layer", "from"]);
            for Row { key, value, source } in rows {
                let place = source.file.zip(source.line);
                let from = place.map(|(file, line)| format!("{file}:{line}"));
                let layer = source.layer.word().to_owned();
                table.row([key, shown(&value), layer, from.unwrap_or_default()]);
            }
            printer.data(&table)?;
        }
    }
    Ok(Ending::ok())
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn rows(config: &Config) -> Vec<Row> {
    let row = |key: &str, value: Value, source: &Source| Row {
        key: key.to_owned(),
        value,
        source: source.clone(),
    };
    let figure = |key: &str, figure: Figure, held: &Sourced<u64>| {
        row(key, figure.row().unit.show(held.value).into(), &held.source)
    };
    let mut rows = Vec::new();
    for it in &FIGURES {
        rows.push(figure(it.key, it.figure, config.figure(it.figure)));
    }
    for it in &FLAGS {
        let held = config.flag(it.flag);
        rows.push(row(it.key, held.value.into(), &held.source));
    }
    let skip = config.scan_skip();
    rows.push(row("scan.skip", json!(skip.value), &skip.source));
    let clients = config.approval_clients();
    rows.push(row("approvals.clients", json!(clients.value), &clients.source));
    if let Some(folder) = config.team() {
        let path = folder.value.display().to_string();
        rows.push(row("team.folder", path.into(), &folder.source));
    }
    if let Some(policy) = config.policy() {
        rows.push(row("policy", policy.value.clone().into(), &policy.source));
    }
    if let Some(policy) = config.project_policy() {
        rows.push(row("policy (of the project)", policy.value.clone().into(), &policy.source));
    }
    if let Some(engine) = config.engine() {
        rows.push(row("engine", engine.value.to_string().into(), &engine.source));
    }
    for (folder, policy) in config.workspaces() {
        let key = format!("workspaces.{}.policy", folder.display());
        rows.push(row(&key, policy.value.clone().into(), &policy.source));
    }
    for (name, tool) in config.tools() {
        if let Some(enabled) = &tool.enabled {
            rows.push(row(&format!("tools.{name}.enabled"), enabled.value.into(), &enabled.source));
        }
        if let Some(said) = &tool.auto_accept {
            rows.push(row(&format!("tools.{name}.autoAccept"), said.value.into(), &said.source));
        }
        for (it, held) in &tool.figures {
            let word = it.row().key.rsplit('.').next().unwrap_or_default();
            rows.push(figure(&format!("tools.{name}.{word}"), *it, held));
        }
    }
    for (name, held) in config.servers() {
        let key = |word: &str| format!("mcp.servers.{name}.{word}");
        if let Some(enabled) = &held.enabled {
            rows.push(row(&key("enabled"), enabled.value.into(), &enabled.source));
        }
        let Some(Sourced { value: server, source }) = &held.server else { continue };
        rows.push(row(&key("command"), json!(server.command), source));
        if !server.env.is_empty() {
            // Values may be secrets.
            let names: Vec<&String> = server.env.keys().collect();
            rows.push(row(&key("env"), json!(names), source));
        }
        if let Some(policy) = &server.policy {
            rows.push(row(&key("policy"), policy.clone().into(), source));
        }
        if let Some(tools) = &server.tools {
            rows.push(row(&key("tools"), json!(tools), source));
        }
        if let Some(timeout) = server.timeout {
            let time = runner_policy::limits::Unit::Time.show(timeout);
            rows.push(row(&key("timeout"), time.into(), source));
        }
    }
    for (it, held) in config.ceilings() {
        rows.push(figure(&format!("ceiling.{}", it.row().key), *it, held));
    }
    rows
}
