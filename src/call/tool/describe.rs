//! What a module is, by asking it: it runs in a sandbox of its own, once for each content, and may ask for
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::authority::nothing;
use super::error::ToolCallError;
use super::outcome::{Words, judge};
use super::recorded::Recorded;
use super::sandbox::{Scene, run_job};
use crate::audit::{Redactor, Started, ToolRef};
use crate::broker::{Authority, Form, Job, Mode, Silent};
use crate::call::CallError;
use crate::call::launch::run::Streams;
use crate::call::record::{End, Unrecorded};
use crate::call::request::path_text;
use crate::engine::runtime;
use crate::exit::Status;
use crate::ids::CallId;
use crate::sandbox::cancel::Cancel;
use crate::store::{Descriptions, Store};
use crate::tool::compile::Compiled;
use crate::tool::{Definition, Tool, ToolError, from_description};

/// What a module says it is: remembered, or asked now.
pub(super) async fn describe(
    tool: &Tool,
    compiled: &Compiled,
    scene: &Scene,
    cancel: &mut Cancel,
) -> Result<Definition, CallError> {
    let store = Store::open(scene.places.state.as_deref())?;
    if let Some(definition) = remembered(tool, compiled, &store)? {
        return Ok(definition);
    }
    let value = ask(tool, compiled, scene, Mode::Describe, |_| nothing(scene), cancel).await?;
    let definition = read(tool, &value)?;
    Descriptions::new(&store).put(&key(compiled), &value.to_string())?;
    Ok(definition)
}

/// What a module said when it was asked before.
pub(super) fn remembered(
    tool: &Tool,
    compiled: &Compiled,
    store: &Store,
) -> Result<Option<Definition>, CallError> {
    let text = Descriptions::new(store).get(&key(compiled))?;
    let value = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(value.and_then(|value| read(tool, &value).ok()))
}

fn read(tool: &Tool, value: &Value) -> Result<Definition, ToolCallError> {
    from_description(value, &tool.file, &tool.text, &tool.name)
        .map(|definition| tool.held(definition))
        .map_err(|error| ToolError::Description { name: tool.name.clone(), error }.into())
}

/// Another runtime may describe the same module in other words.
fn key(compiled: &Compiled) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(compiled.digest.as_bytes());
    hasher.update(runtime::DIGEST.as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// Runs the module to ask it, with these powers.
pub(super) async fn ask(
    tool: &Tool,
    compiled: &Compiled,
    scene: &Scene,
    mode: Mode,
    powers: impl FnOnce(&CallId) -> Authority,
    cancel: &mut Cancel,
) -> Result<Value, CallError> {
    let call = Unrecorded::new(&scene.places, &scene.context)?;
    let id = call.id().clone();
    let started = Started::of_tool(
        if mode == Mode::Check { "check" } else { "describe" },
        ToolRef { name: tool.name.to_string(), digest: compiled.digest.clone() },
        Value::Null,
        (path_text(scene.workspace.root())?, path_text(scene.workspace.cwd())?),
        &scene.policy,
        &scene.context.caller,
    );
    let record = call.open()?.start(&started)?;
    let job = Job {
        mode,
        form: Form::Module,
        name: tool.name.to_string(),
        file: tool.file.clone(),
        args: json!({}),
        env: BTreeMap::new(),
        config: Map::new(),
        conversation: None,
        workspace: path_text(scene.workspace.root())?.to_owned(),
        attempt: 1,
        code: compiled.code.clone().into_bytes(),
    };
    let authority = powers(&id);
    let silent = Arc::new(Silent);
    let recorded = Arc::new(Recorded::new(&scene.places, &id, &Redactor::new(), silent));
    let streams = Streams::default();
    let ran = run_job(&id, scene, job, authority, &recorded, streams, cancel).await;
    let (requests, ran) = recorded.finish_after(ran);
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => {
            record.end(End { requests: requests.left, ..End::of_error(&error) })?;
            return Err(CallError::Started(id, Box::new(error)));
        }
    };
    let (verdict, limits) = (ran.within.verdict(), ran.within.limits());
    let judged = judge(verdict, ran.served, limits, Words::Theirs, &tool.name);
    let code = judged.error.as_ref().map(|error| error.code);
    let detail = json!({ "broker": { "usage": { "recorded": requests.count() } } });
    let (ending, requests) = (judged.ending, requests.left);
    let late = ending.status == Status::Timeout;
    record.end(End { ending, code, rule: None, cost: None, detail, requests })?;
    match (judged.value, judged.error) {
        (Some(value), _) => Ok(value),
        (None, _) if late => {
            Err(ToolCallError::NotDescribedInTime { name: tool.name.to_string() }.into())
        }
        (None, error) => {
            let why = error.map_or_else(|| "it said nothing".to_owned(), |error| error.message);
            Err(ToolCallError::NotDescribed { name: tool.name.to_string(), why }.into())
        }
    }
}
