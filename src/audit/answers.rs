//! The ledger records the questions and answers of the book of approvals.

use serde_json::json;

use super::actor::Actor;
use super::event::{Answered, Event};
use super::ledger::Ledger;
use crate::approvals::{ApprovalError, ApprovalId, Note, Recorder};
use crate::ids::{CallId, Owner};
use crate::store::Store;

impl Recorder for Ledger {
    fn store(&self) -> &Store {
        self.store()
    }

    fn record(&self, call: &CallId, note: Note) -> Result<(), ApprovalError> {
        let Note { id, answer, scope, until, subject, workspace, question, caller } = note;
        let actor = Actor::of(&caller);
        let answered = Answered { id, answer, scope, until, subject, workspace, actor, question };
        let owner = Owner::this().map_err(ApprovalError::NoId)?;
        Ok(self.append(call, &[Event::Approval(&answered)], &owner)?)
    }

    fn last(
        &self,
        call: &CallId,
        id: &ApprovalId,
        answer: &str,
    ) -> Result<Option<i64>, ApprovalError> {
        let rows = self.show(call.as_str())?;
        let says = |body: &serde_json::Value| body["id"] == json!(id) && body["answer"] == answer;
        Ok(rows.iter().rev().find(|row| says(&row.body)).map(|row| row.at))
    }
}
