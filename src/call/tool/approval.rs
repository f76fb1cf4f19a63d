//! What is asked about while a tool runs: its commands, its requests, what it removes or moves away.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::approvals::{Asked, Deed, QuestionRef, Terms};
use crate::audit::MASK;
use crate::broker::{self, Boxed, Destroys, NetApproval, Refusal, Removals, Unanswered};
use crate::call::approval::{About, Action, Asking, Inquiry, Question, removal, request};
use crate::call::details::Details;
use crate::call::gate::{Consent, NotApproved, Pending};
use crate::codes::Code;
use crate::ids::CallId;
use crate::sandbox::cancel::Cancel;
use crate::text::counted;

/// Who asks: the tool as it is, its call, and the way to an answer.
#[derive(Clone)]
pub(super) struct Asker {
    /// The way to an answer.
    pub asking: Arc<Asking>,
    /// The call that it is about.
    pub about: About,
    /// The digest of all that it is made of.
    pub digest: String,
    /// Each of its files, with its digest.
    pub inputs: Vec<(String, String)>,
    /// Under what it runs.
    pub terms: Terms,
    /// The workspace.
    pub workspace: String,
    /// Its call.
    pub call: CallId,
}

impl Asker {
    /// The question about something that the tool wants to do.
    pub fn pending(
        &self,
        what: &str,
        question: Question,
        arguments: Map<String, Value>,
        mut action: Action,
    ) -> Pending {
        let asked = Asked {
            subject: format!("tool:{}/{what}", self.about.tool),
            digest: self.digest.clone(),
            inputs: self.inputs.clone(),
            terms: self.terms.clone(),
            arguments,
            deeds: std::mem::take(&mut action.deeds),
            files: action.files(),
            workspace: self.workspace.clone(),
        };
        let inquiry = Inquiry { question, asked, action, call: self.call.clone() };
        Pending::new(Arc::clone(&self.asking), inquiry)
    }

    /// Puts it. Who cancels the request drops it.
    async fn ask(
        &self,
        what: (&str, &str),
        question: Question,
        arguments: Map<String, Value>,
        deeds: Vec<Deed>,
    ) -> Result<(), Refusal> {
        let (subject, shown) = what;
        let pending = self.pending(subject, question, arguments, Action::plain(deeds));
        let (_, mut cancel) = Cancel::pair();
        match pending.put(&mut cancel).await {
            Consent::NotAsked | Consent::Given => Ok(()),
            Consent::Refused(why) => Err(refused(&why, shown)),
        }
    }
}

/// What a tool is told if its request was not approved: with the codes, the id and the next step that a question before
/// the call has.
pub(super) fn refused(why: &NotApproved, what: &str) -> Refusal {
    let error = why.error(what);
    let question = match (why, error.details) {
        (NotApproved::Failed(error), _) => {
            error.question().map(|id| QuestionRef { id: id.clone(), said: None, ends: None })
        }
        (_, Some(Details::Question { approval })) => Some(approval),
        _ => None,
    };
    // What went wrong on our side is not the policy's denial, and not a yes either.
    let code = match error.code {
        Code::ApprovalNeeded
        | Code::ApprovalDenied
        | Code::ApprovalOver
        | Code::ApprovalDiffers
        | Code::ApprovalUnknown
        | Code::ToolDigestMismatch
        | Code::Cancelled => error.code,
        _ => Code::ApprovalFailed,
    };
    let mut refusal = Refusal::new(code, error.message);
    refusal.suggestion.clone_from(&error.suggestion);
    refusal.approval = Some(Box::new(Unanswered { question, suggestion: error.suggestion }));
    refusal
}

impl Asker {
    /// Headers as a person is shown them: who answers need not learn the secrets of a tool.
    fn shown(&self, headers: &[(String, String)]) -> Vec<String> {
        let shown = headers.iter().map(|(name, value)| {
            let pair = self.asking.redactor.json(&json!({ name: value }));
            let value = pair[name].as_str().unwrap_or(MASK).to_owned();
            format!("{name}: {value}")
        });
        shown.collect()
    }
}

impl NetApproval for Asker {
    fn approve(&self, asked: broker::Asked) -> Boxed<'_, Result<(), Refusal>> {
        let command = format!("{} {}", asked.method, asked.url);
        let body = asked.body.as_ref();
        let digest = json!(body.map(|body| &body.digest));
        // Whole, but for who is shown them: an answer keeps their digest alone.
        let headers = json!(asked.headers);
        let bound = [("request", json!(command)), ("headers", headers), ("body", digest)];
        let arguments = bound.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        let deeds = vec![request(&command)];
        let question = Question::Command {
            tool: Some(self.about.tool.clone()),
            command,
            folder: String::new(),
            image: None,
            effects: Vec::new(),
            headers: self.shown(&asked.headers),
            fed: body.map(|body| {
                let (count, digest) = (counted(body.bytes, "byte"), &body.digest[..16]);
                format!("{count} that are not shown here (blake3 {digest}…)")
            }),
            reason: asked.decision.reason.clone(),
            rule: asked.decision.rule.as_ref().map(|rule| rule.id.clone()),
            holds: None,
        };
        Box::pin(self.ask(("net", "the request"), question, arguments, deeds))
    }
}

impl Removals for Asker {
    fn may(&self, what: Destroys) -> Boxed<'_, Result<(), Refusal>> {
        let (words, bound) = match &what {
            Destroys::Removed { path, recursive } => (
                ("remove", "the removal"),
                vec![("path", json!(path)), ("recursive", json!(recursive))],
            ),
            Destroys::Moved { from, to, loses } => (
                ("rename", "the rename"),
                vec![("from", json!(from)), ("to", json!(to)), ("loses", json!(loses))],
            ),
        };
        let arguments = bound.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let deeds = what.loses().iter().map(|path| removal(path)).collect();
        let question = Question::Destroys { about: self.about.clone(), what };
        Box::pin(self.ask(words, question, arguments, deeds))
    }
}
