//! Whether a tool may run: what the person who is asked says, and the result if it may not.

use std::sync::Arc;

use runner_policy::Verdict;
use serde_json::Value;

use super::approval::Asker;
use super::foreseen::Foreseen;
use super::outcome::Judged;
use super::prepare::Prepared;
use crate::approvals::Asked;
use crate::call::approval::{About, Answer, Asking, Inquiry, Question, Unapproved, put};
use crate::call::request::path_text;
use crate::call::result::{ErrorObject, ending};
use crate::call::{CallError, CallResult};
use crate::engine::CallId;
use crate::exit::{Ending, Kind, Status};
use crate::sandbox::cancel::Cancel;
use crate::sandbox::outcome::{CancelCause, Verdict as Outcome};

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

/// What came of the question whether a tool may run.
#[derive(Debug)]
pub(super) enum Consent {
    /// It may.
    Given,
    /// It may not, or nobody was there to ask.
    Refused(Unapproved),
    /// Somebody ended the call instead.
    Cancelled(CancelCause),
}

/// Asks whether the call may start. A signal is an answer too.
pub(super) async fn ask(
    id: &CallId,
    prepared: &Prepared,
    foreseen: Foreseen,
    asking: Arc<Asking>,
) -> Result<Consent, CallError> {
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
        .chain(prepared.program.command().map(|command| ("run", command)));
    let Asker { about, digest, inputs, terms, workspace, .. } =
        asker(id, prepared, Arc::clone(&asking))?;
    let Foreseen { lines, deeds } = foreseen;
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
    let asked = Asked { subject, digest, inputs, terms, arguments, deeds, workspace };
    let inquiry = Inquiry { question, asked, call: id.clone() };
    let mut cancel =
        Cancel::on_signals().map_err(|error| CallError::Local("catch signals", error))?;
    Ok(tokio::select! {
        answer = put(asking, inquiry) => match answer? {
            Answer::Yes => Consent::Given,
            Answer::No(why) => Consent::Refused(why),
        },
        cause = cancel.asked() => Consent::Cancelled(cause),
    })
}

impl Consent {
    /// What the ledger says of a call that may not run.
    pub(super) fn record(&self) -> (Verdict, &'static str) {
        match self {
            Self::Refused(why @ Unapproved::Never(_)) => (Verdict::Deny, why.code()),
            Self::Given | Self::Refused(_) | Self::Cancelled(_) => {
                (Verdict::Ask, "approval_needed")
            }
        }
    }

    /// How a call ends that nobody approved.
    pub(super) fn refusal(&self, name: &str) -> Judged {
        let (ending, error) = match self {
            Self::Refused(why) => {
                let mut error = why.error(&format!("the tool {name}"));
                if let Unapproved::Declined = why {
                    error.suggestion = Some(format!(
                        "look at what it may do (runner tool info {name}), then answer y at a terminal"
                    ));
                }
                (why.ending(), error)
            }
            Self::Cancelled(cause) => (
                ending(&Outcome::Cancelled(*cause)),
                cancelled("the call was cancelled before it was approved"),
            ),
            // Whoever asks for a refusal gets one.
            Self::Given => (
                Ending::of_kind(Kind::ApprovalNeeded, "approval_needed"),
                cancelled("not approved"),
            ),
        };
        Judged { ending, value: None, error: Some(error) }
    }
}

/// Gives back what answers for one call a call has used, if it then stopped at another question and did nothing: who
/// answers that one too need not answer the first again.
pub(super) fn give_back(
    id: &CallId,
    asking: &Asking,
    result: &CallResult,
) -> Result<(), CallError> {
    let Some(requests) = result.metadata["broker"]["requests"].as_array() else { return Ok(()) };
    let looks = |request: &Value| {
        let method = request["method"].as_str().unwrap_or_default();
        !request["refused"].is_null() || LOOKS.contains(&method)
    };
    let unlisted = result.metadata["broker"]["usage"]["unlisted"] != 0;
    let again = !result.metadata["attempts"].is_null();
    if result.status != Status::NeedsApproval || unlisted || again || !requests.iter().all(looks) {
        return Ok(());
    }
    Ok(asking.give_back(id)?)
}

/// The requests that change nothing.
const LOOKS: &[&str] = &["file.read", "file.list", "file.stat", "file.glob"];

fn cancelled(message: &str) -> ErrorObject {
    ErrorObject {
        code: "cancelled".to_owned(),
        message: message.to_owned(),
        recoverable: true,
        suggestion: None,
        rule: None,
        stack: None,
        details: None,
    }
}
