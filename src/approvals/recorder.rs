//! What the book needs of the ledger: a record of each question and answer.

use serde_json::Value;

use super::error::ApprovalError;
use super::id::ApprovalId;
use crate::caller::Caller;
use crate::ids::CallId;
use crate::store::Store;

/// A question, or an answer to one, to be recorded.
#[derive(Debug, Clone)]
pub struct Note {
    /// The question.
    pub id: String,
    /// `asked`, `approved`, `used`, `--yes`, `denied`, `never`, `void`, `given back`.
    pub answer: &'static str,
    /// How long it holds: `once`, `session`, `time`, `never`.
    pub scope: String,
    /// Until when, in milliseconds since 1970.
    pub until: i64,
    /// What is asked about.
    pub subject: String,
    /// Where.
    pub workspace: String,
    /// What was shown, line by line, without secrets.
    pub question: Value,
    /// Who asked or answered.
    pub caller: Caller,
}

/// Records questions and answers. The ledger implements it.
pub trait Recorder {
    /// The store, which also has the book's rows.
    fn store(&self) -> &Store;

    /// Records a note under a call, with who asked or answered.
    ///
    /// # Errors
    /// It cannot be recorded.
    fn record(&self, call: &CallId, note: Note) -> Result<(), ApprovalError>;

    /// When an answer to a question was last recorded under a call, in milliseconds since 1970.
    ///
    /// # Errors
    /// The records cannot be read.
    fn last(
        &self,
        call: &CallId,
        id: &ApprovalId,
        answer: &str,
    ) -> Result<Option<i64>, ApprovalError>;
}
