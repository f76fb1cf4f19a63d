//! What is asked about while a tool runs: its commands, its requests, what it removes.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::approvals::{Asked, Terms};
use crate::audit::MASK;
use crate::broker::{self, Boxed, Code, NetApproval, Refusal, Removals};
use crate::call::approval::{Answer, Asking, Inquiry, Question, put};
use crate::engine::CallId;
use crate::error::Failure as _;
use crate::text::counted;

/// Who asks: the tool as it is, its call, and the way to an answer.
#[derive(Clone)]
pub(super) struct Asker {
    /// The way to an answer.
    pub asking: Arc<Asking>,
    /// The tool's name.
    pub tool: String,
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
    /// Asks about something that the tool wants to do; `Ok` if it may.
    pub async fn ask(
        &self,
        what: &str,
        question: Question,
        arguments: Map<String, Value>,
    ) -> Result<(), Refusal> {
        let asked = Asked {
            subject: format!("tool:{}/{what}", self.tool),
            digest: self.digest.clone(),
            inputs: self.inputs.clone(),
            terms: self.terms.clone(),
            arguments,
            workspace: self.workspace.clone(),
        };
        let inquiry = Inquiry { question, asked, call: self.call.clone() };
        match put(Arc::clone(&self.asking), inquiry).await {
            Ok(Answer::Yes) => Ok(()),
            Ok(Answer::No(why)) => {
                let code = match why.code() {
                    "approval_denied" => Code::AccessDenied,
                    _ => Code::ApprovalNeeded,
                };
                let error = why.error("it");
                Err(Refusal::new(code, error.message).hint(why.suggestion()))
            }
            Err(error) => {
                let mut refusal = Refusal::new(Code::AccessDenied, error.to_string());
                refusal.suggestion = error.hint();
                Err(refusal)
            }
        }
    }
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
    fn approve(&self, asked: broker::Asked) -> Boxed<'_, bool> {
        let command = format!("{} {}", asked.method, asked.url);
        let body = asked.body.as_ref();
        let digest = json!(body.map(|body| &body.digest));
        // Whole, but for who is shown them: an answer keeps their digest alone.
        let headers = json!(asked.headers);
        let bound = [("request", json!(command)), ("headers", headers), ("body", digest)];
        let arguments = bound.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        let question = Question::Command {
            tool: Some(self.tool.clone()),
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
        };
        Box::pin(async move { self.ask("net", question, arguments).await.is_ok() })
    }
}

impl Removals for Asker {
    fn may(&self, path: String, recursive: bool) -> Boxed<'_, Result<(), Refusal>> {
        let bound = [("path", json!(path)), ("recursive", json!(recursive))];
        let arguments = bound.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        let question = Question::Removal { tool: self.tool.clone(), path, recursive };
        Box::pin(self.ask("remove", question, arguments))
    }
}
