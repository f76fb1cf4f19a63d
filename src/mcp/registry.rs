//! Tools of the registry: listed with their schemas, and called.

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::calls::Ended;
use super::command::{asking, beside, ended, error_lines, failed};
use super::events::Heard;
use super::host::Host;
use super::own::{self, Allows};
use super::work::Started;
use crate::audit::Redactor;
use crate::call::launch::run::{Keep, Streams};
use crate::call::tool::{self, Entry, Front, Given, Memory, State, ToolRequest, entries};
use crate::call::{CallError, CallResult, Warmth};
use crate::ids::ToolName;
use crate::sandbox::cancel::Cancel;
use crate::tool::{Definition, Library, Schema, Tier};

/// Every tool of the server, those of the registry in the order of names.
pub(super) async fn list(host: &Arc<Host>) -> Result<Vec<Tool>, CallError> {
    let host = Arc::clone(host);
    beside("list tools", move || list_now(&host)).await
}

fn list_now(host: &Host) -> Result<Vec<Tool>, CallError> {
    let loaded = host.policy()?;
    let policy = &loaded.policy;
    let net = policy.layers.iter().any(|layer| !layer.net.is_empty());
    let allows = Allows { writes: policy.writes_anything(), net };
    let mut tools = own::tools(policy.name(), allows);
    let (places, config) = (host.places(), host.config()?);
    let library = Library::find(&places, &host.settings.tools, &config);
    let memory = Memory::open(&places);
    let environment = &host.settings.context.environment;
    let entries = entries(&library, environment, |tool| memory.remembered(tool));
    let ready = |entry: &&Entry<'_>| {
        entry.state == State::Ready && !own::NAMES.contains(&entry.tool.name.as_str())
    };
    tools.extend(entries.iter().filter(ready).map(|entry| match entry.definition() {
        Some(definition) => listed(definition, allows),
        None => unknown(&entry.tool.name),
    }));
    Ok(tools)
}

/// A tool as clients see it. Its annotations are those of its tier, within what the policy allows.
fn listed(definition: &Definition, allows: Allows) -> Tool {
    let tier = definition.tier;
    let reads = tier == Tier::ReadOnly;
    let annotations = ToolAnnotations::new()
        .read_only(reads)
        .destructive(!reads && allows.writes)
        .open_world(tier == Tier::ExternalApi && allows.net);
    let schema = object(definition.schema.json()).unwrap_or_default();
    let about = definition.description.clone();
    let mut tool = Tool::new(definition.name.to_string(), about, Arc::new(schema));
    tool.annotations = Some(annotations);
    tool.output_schema = returns(definition).map(Arc::new);
    tool
}

/// A module that was never asked what it is: it is asked when it is called.
fn unknown(name: &ToolName) -> Tool {
    let schema = json!({ "type": "object" });
    let about = format!("The tool {name}, which describes itself when it is first called.");
    Tool::new(name.to_string(), about, Arc::new(object(&schema).unwrap_or_default()))
}

fn object(value: &Value) -> Option<JsonObject> {
    value.as_object().cloned()
}

/// What the tool returns, if that is described and an object, as the protocol wants it.
fn returns(definition: &Definition) -> Option<JsonObject> {
    let schema = object(definition.returns.as_ref().map(Schema::json)?)?;
    (schema.get("type").and_then(Value::as_str) == Some("object")).then_some(schema)
}

/// The text of a tool's file, by the tool's name.
pub(super) async fn source(host: &Arc<Host>, name: ToolName) -> Result<Option<String>, CallError> {
    let host = Arc::clone(host);
    beside("read a tool", move || {
        let library = Library::find(&host.places(), &host.settings.tools, &host.config()?);
        Ok(library.tools.iter().find(|tool| tool.name == name).map(|tool| tool.text.clone()))
    })
    .await
}

/// Prepares and runs a tool.
pub(super) async fn run(
    started: &Started,
    name: ToolName,
    arguments: Value,
    mut cancel: Cancel,
) -> Ended {
    let host = &started.host;
    match try_run(started, name, arguments, &mut cancel).await {
        Ok((result, described)) => {
            let mut ended = ended(host, &started.owner, &result);
            ended.words = match &result.error {
                Some(error) => error_lines(&result, error).join("\n"),
                None => String::new(),
            };
            if result.error.is_none() {
                let value = result.value.unwrap_or(Value::Null);
                started.entry.output.push(shown(&value).as_bytes());
                ended.structured = Some(value).filter(|_| described);
            }
            ended
        }
        Err(error) => failed(&error),
    }
}

/// A string as it is, anything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "done".to_owned(),
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
    }
}

async fn try_run(
    started: &Started,
    name: ToolName,
    arguments: Value,
    cancel: &mut Cancel,
) -> Result<(CallResult, bool), CallError> {
    let settings = &started.host.settings;
    let folder: PathBuf = started.host.cwd.clone();
    let request = ToolRequest {
        name,
        given: Given { json: Some(arguments.to_string()), pairs: Vec::new() },
        cwd: Some(folder),
        policy: settings.policy.clone(),
        tools: settings.tools.clone(),
        image: settings.image.clone(),
        engine: settings.engine.clone(),
        tighten: Vec::new(),
        warmth: Warmth::Pool,
    };
    let prepared = request.prepare(&started.context, cancel).await?;
    let redactor = Redactor::new();
    let mut asking = asking(started, prepared.places(), prepared.config().approvals());
    asking.redactor = redactor.clone();
    let front = Front {
        events: Arc::new(Heard::new(Arc::clone(&started.entry.output), redactor.clone())),
        streams: Arc::new(|| Streams { keep: Keep::Limit, ..Streams::default() }),
        asking: Arc::new(asking),
        redactor,
        retry: None,
    };
    let result = tool::run(&prepared, &front, cancel).await?;
    let described = returns(&prepared.definition).is_some() && result.value.is_some();
    Ok((result, described))
}
