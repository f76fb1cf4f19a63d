//! The question whether a tool may run, and the result if it may not.

use std::sync::Arc;

use super::approval::Asker;
use super::outcome::Judged;
use super::prejudge::Prejudged;
use super::prepare::Prepared;
use crate::approvals::Asked;
use crate::call::approval::{About, Asking, Inquiry, Question, Unapproved};
use crate::call::gate::{NotApproved, Pending};
use crate::call::metadata::BrokerRequest;
use crate::call::request::path_text;
use crate::call::{CallError, CallResult};
use crate::exit::Status;
use crate::ids::{CallId, ToolName};
use crate::tool::{CommandsWrite, Permissions};

/// Who asks in the name of a tool.
pub(super) fn asker(
    id: &CallId,
    prepared: &Prepared,
    asking: Arc<Asking>,
) -> Result<Asker, CallError> {
    Ok(Asker {
        asking,
        about: about(prepared),
        digest: prepared.program.digest(),
        inputs: prepared.program.inputs(),
        terms: prepared.scene.terms()?,
        workspace: path_text(prepared.scene.workspace.root())?.to_owned(),
        call: id.clone(),
    })
}

/// The call of a tool, for who is asked.
fn about(prepared: &Prepared) -> About {
    let definition = &prepared.definition;
    About {
        tool: definition.name.to_string(),
        description: definition.description.clone(),
        args: prepared.args.clone(),
        tier: definition.tier.word(),
        risk: definition.risk.word(),
        estimates: definition.estimates().lines(),
    }
}

/// The question whether the call may start.
pub(super) fn pending(
    id: &CallId,
    prepared: &Prepared,
    prejudged: Prejudged,
    asking: Arc<Asking>,
) -> Result<Pending, CallError> {
    let definition = &prepared.definition;
    let permissions = &definition.permissions;
    let lists = [
        ("run", &permissions.allowlist),
        ("write", &permissions.write),
        ("reach", &permissions.net),
        ("set", &permissions.env),
    ];
    let asks = lists
        .into_iter()
        .flat_map(|(word, list)| list.iter().map(move |entry| (word, entry.clone())))
        .chain(commands_write(permissions))
        .chain(prepared.program.command().map(|command| ("run", command)));
    let Asker { about, digest, inputs, terms, workspace, .. } =
        asker(id, prepared, Arc::clone(&asking))?;
    let Prejudged { lines, mut action } = prejudged;
    let question = Question::Tool {
        about,
        does: lines,
        file: prepared.file.clone(),
        folder: terms.cwd.clone(),
        image: terms.image.clone(),
        policy: prepared.scene.policy.name().to_owned(),
        asks: asks.collect(),
    };
    let arguments = prepared.args.as_object().cloned().unwrap_or_default();
    let subject = format!("tool:{}", definition.name);
    let (deeds, files) = (std::mem::take(&mut action.deeds), action.files());
    let asked = Asked { subject, digest, inputs, terms, arguments, deeds, files, workspace };
    let inquiry = Inquiry { question, asked, action, call: id.clone() };
    Ok(Pending::new(asking, inquiry))
}

/// What commands of a tool may write that says nothing of it.
fn commands_write(permissions: &Permissions) -> Option<(&'static str, String)> {
    let open = permissions.commands_write == CommandsWrite::AsThePolicy;
    (open && !permissions.allowlist.is_empty())
        .then(|| ("write", "what the policy lets its commands write".to_owned()))
}

/// How a tool is called in messages about its approval.
pub(super) fn named(name: &ToolName) -> String {
    format!("the tool {name}")
}

/// How a call ends that was not approved.
pub(super) fn refusal(why: &NotApproved, name: &ToolName) -> Judged {
    let mut error = why.error(&named(name));
    if let NotApproved::Answer(Unapproved::Declined) = why {
        error.suggestion = Some(format!(
            "look at what it may do (runner tool info {name}), then answer y at a terminal"
        ));
    }
    Judged { ending: why.ending(), value: None, error: Some(error) }
}

/// Gives back what answers for one call a call has used, if it then stopped at another question and did nothing: who
/// answers that one too need not answer the first again.
pub(super) fn give_back(
    id: &CallId,
    asking: &Asking,
    result: &CallResult,
) -> Result<(), CallError> {
    let Some(metadata) = &result.metadata else { return Ok(()) };
    let Some(broker) = &metadata.broker else { return Ok(()) };
    let Some(requests) = &broker.requests else { return Ok(()) };
    let looks =
        |request: &BrokerRequest| request.refused.is_some() || LOOKS.contains(&request.method);
    let unlisted = broker.usage.counted.unlisted != 0;
    let again = metadata.attempts.is_some();
    if result.status != Status::NeedsApproval || unlisted || again || !requests.iter().all(looks) {
        return Ok(());
    }
    Ok(asking.give_back(id)?)
}

/// The requests that change nothing.
const LOOKS: &[&str] = &["file.read", "file.list", "file.stat", "file.glob"];
