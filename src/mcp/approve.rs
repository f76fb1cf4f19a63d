//! Questions that calls wait for, and clients that may put them to a person.
//!
//! A question waits in the book with its id, and a person answers it at a terminal: the next same call then runs, once. Where the user's or the managed configuration lists a client (`approvals.clients`), the client itself may put the
//! question to its user and bring back the answer. Everything but a clear yes is no.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::command::beside;
use super::host::Host;
use super::who::Who;
use crate::approvals::{ApprovalId, Book, Given, Scope, State};
use crate::audit::Ledger;
use crate::call::CallError;
use crate::caller::Caller;
use crate::config::Approvals as Times;
use crate::policy_files::Places;
use crate::store::Store;
use crate::text::{is_deceptive, push_escaped};

/// The name of the one question in a request for input, and of its one answer.
const KEY: &str = "approve";

fn book(places: &Places, times: Times, caller: Caller) -> Result<Book, CallError> {
    Ok(Book::new(Ledger::new(Store::open(places.state.as_deref())?), times, caller))
}

/// What a client brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No; or anything else that was said.
    No,
    /// Nothing was said.
    Nothing,
}

/// A question that may be put to the client's user.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its id.
    pub id: ApprovalId,
    /// All of it.
    message: String,
    /// Until when it waits, in milliseconds since 1970.
    pub ends: i64,
}

/// Whether the client says that it can put a form to its user.
pub fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    capabilities.and_then(|all| all.elicitation).is_some_and(|it| {
        // Without a word on the forms it has, it has the first one.
        it.form.is_some() || it.url.is_none()
    })
}

/// Whether answers of this client count: the user's or the managed configuration names it.
pub(super) fn counts(host: &Host, who: &Who) -> Result<bool, CallError> {
    Ok(host.config()?.approval_clients().value.contains(&who.name))
}

/// The question, if this client may answer it and all of it can be shown.
pub(super) async fn question(
    host: &Arc<Host>,
    who: &Who,
    id: ApprovalId,
) -> Result<Option<Asked>, CallError> {
    let (host, who) = (Arc::clone(host), who.clone());
    beside("read a question", move || {
        if !counts(&host, &who)? {
            return Ok(None);
        }
        let book = book(&host.places(), host.config()?.approvals(), who.caller(None))?;
        let it = match book.find(&id) {
            Ok(it) if it.state == State::Pending && it.must_be_whole().is_ok() => it,
            _ => return Ok(None),
        };
        let mut message = "May runner do this?\n".to_owned();
        for line in it.question.as_array().into_iter().flatten() {
            let part = |at: usize| line.get(at).and_then(Value::as_str).unwrap_or_default();
            message.push_str(part(0));
            message.push_str(": ");
            for c in part(1).chars() {
                if is_deceptive(c) {
                    push_escaped(&mut message, c);
                } else {
                    message.push(c);
                }
            }
            message.push('\n');
        }
        Ok(Some(Asked { id, message, ends: it.ends }))
    })
    .await
}

/// Writes the answer of a client's user into the book. A yes is for one call.
pub(super) async fn answer(
    host: &Arc<Host>,
    who: &Who,
    id: &ApprovalId,
    answer: Answer,
    claimed: Option<String>,
) -> Result<(), CallError> {
    let (host, who, id) = (Arc::clone(host), who.clone(), id.clone());
    beside("answer a question", move || {
        let book = book(&host.places(), host.config()?.approvals(), who.caller(claimed))?;
        // The configuration may have changed since the question was put.
        match answer {
            Answer::Yes if counts(&host, &who)? => {
                let given = Given { scope: Scope::Once, time: None, patterns: Vec::new() };
                book.answer(&id, &given)?;
            }
            Answer::Yes | Answer::No => drop(book.deny(&id)?),
            Answer::Nothing => {}
        }
        Ok(())
    })
    .await
}

fn form(asked: &Asked) -> ElicitRequest {
    let schema = json!({
        "type": "object",
        "properties": { KEY: {
            "type": "boolean", "title": "Run it once?", "description": "yes lets it run this one time",
        } },
        "required": [KEY],
    });
    // The schema is the one above.
    let requested_schema = serde_json::from_value(schema)
        .unwrap_or_else(|_| ElicitationSchema::new(Default::default()));
    let message = asked.message.clone();
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    })
}

/// Puts the question through a session.
pub async fn put(context: &RequestContext<RoleServer>, asked: &Asked, most: Duration) -> Answer {
    let request = ServerRequest::ElicitRequest(form(asked));
    let sent = context.peer.send_request(request);
    tokio::select! {
        answered = tokio::time::timeout(most, sent) => match answered {
            Ok(Ok(ClientResult::ElicitResult(result))) => read(&result),
            Ok(Ok(_)) => Answer::No,
            Ok(Err(_)) | Err(_) => Answer::Nothing,
        },
        () = context.ct.cancelled() => Answer::Nothing,
    }
}

/// The question for a client without a session.
pub fn required(asked: &Asked, state: String) -> InputRequiredResult {
    let mut requests = InputRequests::new();
    requests.insert(KEY.to_owned(), InputRequest::Elicitation(form(asked)));
    InputRequiredResult::new(Some(requests), Some(state))
}

/// What a client without a session brings back.
pub fn brought(responses: Option<&InputResponses>) -> Answer {
    let Some(value) = responses.and_then(|responses| responses.get(KEY)) else {
        return Answer::Nothing;
    };
    match serde_json::from_value::<ElicitResult>(value.clone()) {
        Ok(result) => read(&result),
        Err(_) => Answer::No,
    }
}

/// Only an accepted form whose one answer is true is a yes.
fn read(result: &ElicitResult) -> Answer {
    let yes = result.content.as_ref().and_then(|content| content.get(KEY)) == Some(&json!(true));
    match result.action {
        ElicitationAction::Accept if yes => Answer::Yes,
        _ => Answer::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let answer = |value: Value| brought(Some(&[(KEY.to_owned(), value)].into()));
        let yes = json!({"action": "accept", "content": {"approve": true}});
        assert_eq!(answer(yes), Answer::Yes);
        for no in [
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept", "content": {"approve": "true"}}),
            json!({"action": "accept", "content": {"approve": false}}),
            json!({"action": "decline", "content": {"approve": true}}),
            json!({"action": "cancel"}),
            json!({"action": "ACCEPT", "content": {"approve": true}}),
            json!(true),
        ] {
            assert_eq!(answer(no.clone()), Answer::No, "{no}");
        }
        assert_eq!(brought(None), Answer::Nothing);
    }

    #[test]
    fn the_form_asks_for_one_thing() {
        let asked = Asked { id: ApprovalId::fresh().unwrap(), message: "m".to_owned(), ends: 1 };
        let form = serde_json::to_value(form(&asked)).unwrap();
        assert_eq!(form["params"]["requestedSchema"]["required"], json!(["approve"]));
        assert_eq!(form["params"]["requestedSchema"]["properties"]["approve"]["type"], "boolean");
    }
}
