//! A call of a tool that an MCP server offers: the server runs in a sandbox of its own, is asked once more what the tool
//! is, and only then called.
//!
//! | rank | what | status |
//! | --- | --- | --- |
//! | 1 | the policy does not let the server run | `denied` or `needs_approval` |
//! | 2 | the tool is not what was remembered, and approved | `denied`, `tool_digest_mismatch`; it was not called |
//! | 3 | the sandbox met time, memory or another limit before the answer, or was cancelled | as for any call |
//! | 4 | the server broke the protocol, or ended without an answer | `error`, its code |
//! | 5 | the tool says that it failed | `failed`, exit code 1 |
//! | 6 | the tool answered | `completed`; `error` if the value is not what its output schema says |

use std::sync::Arc;

use runner_policy::Effective;
use runner_policy::limits::Limit;

use super::consent::asker;
use super::outcome::{Judged, Words, threw_by_itself};
use super::prepare::Prepared;
use super::run::{Front, assemble, checked, redacted};
use crate::broker::BrokerUsage;
use crate::call::approval::{Action, Fed, Question};
use crate::call::gate::{Consent, Gate, NotApproved, Shut, pass};
use crate::call::launch::run::Streams;
use crate::call::mcp::{Site, Spoken, broke, converse, decide};
use crate::call::metadata::{Attachments, Metadata, OfBroker, OfServer};
use crate::call::place::place;
use crate::call::record::Unrecorded;
use crate::call::request::Decided;
use crate::call::result::{ErrorObject, Stream};
use crate::call::shortfall::Shortfall;
use crate::call::{CallError, CallResult};
use crate::codes::Code;
use crate::exit::{Ending, Kind};
use crate::ids::CallId;
use crate::mcp_client::{Answer, Attachment, Change, Offered, Peer, changes};
use crate::queue::{HeldSlot, Subject};
use crate::sandbox::cancel::Cancel;
use crate::tool::FromServer;

/// What a server said.
enum Said {
    /// The tool is what was remembered, and this is its answer.
    Answer(Answer),
    /// It is not, so it was not called.
    Differs(Option<Change>),
}

/// What an attempt came to.
struct Came {
    judged: Judged,
    metadata: Metadata,
    stderr: Option<Stream>,
    sandbox: Vec<Shortfall>,
}

/// One attempt.
pub(super) async fn attempt(
    id: &CallId,
    prepared: &Prepared,
    front: &Front,
    (from, policy): (&FromServer, &Arc<Effective>),
    wall: u64,
    cancel: &mut Cancel,
) -> Result<CallResult, CallError> {
    let streams = (front.streams)();
    let keeps = streams.stdout.is_none();
    let came = run(id, prepared, front, (from, policy), streams, wall, cancel).await?;
    let (Came { judged, mut metadata, stderr, sandbox }, place) = came;
    let judged = redacted(checked(prepared, judged), Words::Theirs, &front.redactor);
    if let Some(mcp) = &mut metadata.mcp {
        mcp.redact(&front.redactor);
    }
    let stderr = stderr.map(|stream| stream.redacted(&front.redactor));
    let streams = [None, stderr.filter(|_| keeps)];
    metadata.queued(place.queued());
    Ok(CallResult { sandbox, ..assemble(id, prepared, judged, Some(metadata), streams) })
}

async fn run(
    id: &CallId,
    prepared: &Prepared,
    front: &Front,
    (from, policy): (&FromServer, &Arc<Effective>),
    mut streams: Streams,
    wall: u64,
    cancel: &mut Cancel,
) -> Result<(Came, HeldSlot), CallError> {
    let scene = &prepared.scene;
    let (subject, tell) = (Subject::Tool(&prepared.definition.name), &mut streams.stderr);
    let place = place((&scene.places, &scene.config), subject, &scene.limits, cancel, tell).await?;
    let tighten = prepared.tighten.iter().copied().chain([(Limit::Wall, wall)]);
    let site = Site {
        root: scene.workspace.root().to_owned(),
        places: &scene.places,
        config: &scene.config,
        image: scene.image.clone(),
        engine: scene.engine.clone(),
        tighten: tighten.collect(),
        warmth: scene.warmth,
        context: &scene.context,
    };
    let mut decided = decide(&from.server, Arc::clone(policy), site)?;
    let consent = if decided.asks() {
        let action = Action::of_command(&decided)?;
        let (name, holds) = (prepared.definition.name.as_str(), action.holds(&action.files()));
        let (question, arguments) = Question::of_command(Some(name), &decided, Fed::Input, holds);
        let asker = asker(id, prepared, Arc::clone(&front.asking))?;
        asker.pending("exec", question, arguments, action).put(cancel).await
    } else {
        Consent::NotAsked
    };
    let call = match pass(
        Unrecorded::new(&scene.places, &scene.context)?,
        &mut decided,
        consent,
        Some(id),
    )? {
        Gate::Open(call) => call,
        Gate::Shut(shut) => return Ok((refused(shut, &decided, from)?, place)),
    };
    let talk = async |client: &mut crate::call::mcp::Talker| {
        let peer = client.greet().await?.clone();
        let tools = client.tools().await?;
        if let Some(change) = differs(&from.offered, &tools) {
            return Ok((peer, Said::Differs(change)));
        }
        let answer = client.call(&from.offered.name, &prepared.args).await?;
        Ok((peer, Said::Answer(answer)))
    };
    let spoken = converse(call, &decided, streams.stderr, cancel, Some(id), talk).await?;
    Ok((judge(from, spoken), place))
}

/// How a tool differs from what was remembered; nothing if it does not.
#[expect(clippy::option_option, reason = "that it differs, and how if that can be told")]
fn differs(remembered: &Offered, tools: &[Offered]) -> Option<Option<Change>> {
    let now: Vec<Offered> =
        tools.iter().filter(|tool| tool.name == remembered.name).cloned().collect();
    match now.as_slice() {
        [one] if one.digest() == remembered.digest() => None,
        several => {
            let mut changes = changes(std::slice::from_ref(remembered), several);
            Some(changes.pop().map(|(_, change)| change))
        }
    }
}

/// A server that may not run.
fn refused(shut: Shut, decided: &Decided, from: &FromServer) -> Result<Came, CallError> {
    let denied = !matches!(shut.why, Some(NotApproved::Cancelled(_)));
    let CallResult { ending, error, call, .. } = shut.result(decided)?;
    let error = error.map(|error| match denied {
        true => ErrorObject {
            message: format!("the server {} may not run: {}", from.name, error.message),
            ..error
        },
        false => error,
    });
    let metadata = told(None, from, &call, None, Vec::new());
    let judged = Judged { ending, value: None, error };
    Ok(Came { judged, metadata, stderr: None, sandbox: Vec::new() })
}

/// Judges by the table above.
fn judge(from: &FromServer, spoken: Spoken<(Peer, Said)>) -> Came {
    let Spoken { said, mut result } = spoken;
    let (metadata, call) = (result.metadata.take(), result.call.clone());
    let sandbox = result.sandbox.clone();
    match said {
        Ok((peer, Said::Answer(Answer::Value { value, attachments }))) => Came {
            judged: Judged { ending: Ending::ok(), value: Some(value), error: None },
            metadata: told(metadata, from, &call, Some(peer), attachments),
            stderr: result.stderr,
            sandbox,
        },
        Ok((peer, Said::Answer(Answer::Failed { message, data }))) => Came {
            judged: threw_by_itself(message, data),
            metadata: told(metadata, from, &call, Some(peer), Vec::new()),
            stderr: result.stderr,
            sandbox,
        },
        Ok((peer, Said::Differs(change))) => Came {
            judged: another(from, change.as_ref()),
            metadata: told(metadata, from, &call, Some(peer), Vec::new()),
            stderr: result.stderr,
            sandbox,
        },
        Err(error) => {
            let (ending, object) = broke(&error, result);
            let judged = Judged { ending, value: None, error: Some(object) };
            let metadata = told(metadata, from, &call, None, Vec::new());
            Came { judged, metadata, stderr: None, sandbox }
        }
    }
}

/// How it ran, as results and records tell it: as the server's command did, and by whom.
fn told(
    metadata: Option<Metadata>,
    from: &FromServer,
    call: &str,
    peer: Option<Peer>,
    attachments: Vec<Attachment>,
) -> Metadata {
    let mcp = OfServer {
        server: from.name.to_string(),
        tool: from.offered.name.clone(),
        call: Some(call.to_owned()),
        says: peer,
        attachments: (!attachments.is_empty()).then_some(Attachments::Whole(attachments)),
    };
    // A server has no terminal to ask at.
    let broker = OfBroker::new(&BrokerUsage::default(), &[], &crate::audit::Redactor::new());
    Metadata {
        mcp: Some(Box::new(mcp)),
        broker: Some(Box::new(broker)),
        ..metadata.unwrap_or_default()
    }
}

/// A tool that is not what was remembered.
fn another(from: &FromServer, change: Option<&Change>) -> Judged {
    let (server, tool) = (&from.name, &from.offered.name);
    let message = match change {
        Some(Change::Removed) => format!("the server {server} does not offer {tool} any more"),
        Some(Change::Changed { parts }) => format!(
            "the server {server} says something else of {tool} than when it was asked: its {} changed",
            parts.join(", ")
        ),
        Some(Change::Added) | None => {
            format!("the server {server} offers {tool} more than once now")
        }
    };
    let code = Code::ToolDigestMismatch;
    let error = ErrorObject {
        code,
        message: format!("{message}; it was not called"),
        recoverable: false,
        suggestion: Some(format!("look at what changed, then use it: runner mcp refresh {server}")),
        rule: None,
        stack: None,
        details: None,
    };
    Judged { ending: Ending::of_kind(Kind::Denied, code), value: None, error: Some(error) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, about: &str) -> Offered {
        let said = json!({ "description": about, "inputSchema": { "type": "object" } });
        let said = said.as_object().cloned().unwrap_or_default();
        Offered { name: name.to_owned(), said }
    }

    #[test]
    fn a_tool_is_called_only_if_it_is_offered_once_and_as_it_was() {
        let remembered = tool("a", "x");
        let (same, other) = (tool("a", "x"), tool("b", "x"));
        assert_eq!(differs(&remembered, &[other.clone(), same.clone()]), None, "the control");
        assert_eq!(differs(&remembered, &[other]), Some(Some(Change::Removed)));
        let changed = Some(Some(Change::Changed { parts: vec!["description"] }));
        assert_eq!(differs(&remembered, &[tool("a", "y")]), changed);
        // Which of two would be called is the server's choice.
        assert_eq!(differs(&remembered, &[same.clone(), same]), Some(None));
        assert!(differs(&remembered, &[tool("a", "x"), tool("a", "y")]).is_some());
    }
}
