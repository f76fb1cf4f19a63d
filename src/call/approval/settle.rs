//! From a question to an answer.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::question::Question;
use crate::approvals::{
    ANSWERED_THERE, ApprovalError, ApprovalId, Asked, Book, Fits, Found, Given, Never, Scope,
    Waiting,
};
use crate::audit::Redactor;
use crate::call::result::ErrorObject;
use crate::config::Approvals as Times;
use crate::engine::CallId;
use crate::exit::{Ending, Kind};
use crate::policies::Places;
use crate::store::Store;
use crate::text::moment;

/// What whoever is asked says.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Yes, for as long as this says; or never.
    Given(Given),
    /// No, this time.
    No,
    /// Yes to everything, as the caller's own option says.
    Option,
    /// Nobody is there.
    Nobody,
}

/// Puts questions to a person.
pub trait Approver: Send + Sync {
    /// Asks; it may wait for the person.
    fn ask(&self, question: &Question) -> Reply;
}

/// The same reply to everything.
#[derive(Debug, Clone)]
pub struct Always(pub Reply);

impl Approver for Always {
    fn ask(&self, _: &Question) -> Reply {
        self.0.clone()
    }
}

/// Everything that an answer needs.
pub struct Asking {
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// Answers that the caller names.
    pub named: Vec<ApprovalId>,
    /// Where the book is.
    pub places: Places,
    /// How long questions wait and answers hold.
    pub times: Times,
    /// Hides secrets in what is kept.
    pub redactor: Redactor,
    /// The answers that this call has used.
    pub spent: Spent,
}

/// The answers that a call has used.
#[derive(Debug, Default)]
pub struct Spent(Mutex<Vec<ApprovalId>>);

/// A question on its way.
pub(in crate::call) struct Inquiry {
    /// What is asked.
    pub question: Question,
    /// What an answer is bound to.
    pub asked: Asked,
    /// The call that asks.
    pub call: CallId,
}

/// What came of it.
#[derive(Debug)]
pub(in crate::call) enum Answer {
    /// It may run.
    Yes,
    /// It may not.
    No(Unapproved),
}

/// Why it may not run.
#[derive(Debug)]
pub enum Unapproved {
    /// The person said no.
    Declined,
    /// A person said never.
    Never(Box<Never>),
    /// Nobody was there; the question waits.
    Waits(Box<Waiting>),
}

/// Puts a question. A person may take their time, so it has a thread of its own.
pub(in crate::call) async fn put(
    asking: Arc<Asking>,
    inquiry: Inquiry,
) -> Result<Answer, ApprovalError> {
    let answer = tokio::task::spawn_blocking(move || asking.settle(&inquiry)).await;
    // A question that nobody lived to answer is not approved.
    answer.unwrap_or(Ok(Answer::No(Unapproved::Declined)))
}

impl Asking {
    fn settle(&self, inquiry: &Inquiry) -> Result<Answer, ApprovalError> {
        let Inquiry { question, asked, call } = inquiry;
        let book = Book::new(Store::open(self.places.state.as_deref())?, self.times);
        match book.look(asked, self.named(&book, asked)?, call)? {
            Found::Granted(id) => {
                self.spent.0.lock().unwrap_or_else(PoisonError::into_inner).push(id);
                return Ok(Answer::Yes);
            }
            Found::Never(never) => return Ok(Answer::No(Unapproved::Never(never))),
            Found::Nothing => {}
        }
        let record = || question.record(&self.redactor);
        Ok(match self.approver.ask(question) {
            Reply::Option => {
                book.by_option(asked, call)?;
                Answer::Yes
            }
            Reply::Given(given) => {
                let it = book.answered(asked, record(), call, &given)?;
                match given.scope {
                    Scope::Never => {
                        let never = Never { id: it.id, said: it.asked };
                        Answer::No(Unapproved::Never(Box::new(never)))
                    }
                    Scope::Once | Scope::Session | Scope::Time => Answer::Yes,
                }
            }
            Reply::No => Answer::No(Unapproved::Declined),
            Reply::Nobody => {
                Answer::No(Unapproved::Waits(Box::new(book.wait(asked, record(), call)?)))
            }
        })
    }

    /// The answer that the caller means. A tool may ask several times: each named answer is for the question that it
    /// was given to, and one that was used in this call is for no other.
    fn named(&self, book: &Book, asked: &Asked) -> Result<Option<&ApprovalId>, ApprovalError> {
        let spent = self.spent.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut best = (Fits::Nothing, None);
        for id in &self.named {
            let fits = book.fits(id, asked)?;
            if fits > best.0 && !spent.contains(id) {
                best = (fits, Some(id));
            }
        }
        Ok(best.1)
    }

    /// Gives back what a call has used of answers for one call, because it did nothing with them.
    ///
    /// # Errors
    /// The store refused.
    pub(in crate::call) fn give_back(&self, call: &CallId) -> Result<(), ApprovalError> {
        let spent =
            std::mem::take(&mut *self.spent.0.lock().unwrap_or_else(PoisonError::into_inner));
        if spent.is_empty() {
            return Ok(());
        }
        let book = Book::new(Store::open(self.places.state.as_deref())?, self.times);
        spent.iter().try_for_each(|id| book.give_back(id, call))
    }
}

impl Unapproved {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Declined | Self::Waits(_) => "approval_needed",
            Self::Never(_) => "approval_denied",
        }
    }

    /// How the process ends because of it.
    #[must_use]
    pub fn ending(&self) -> Ending {
        let kind = match self {
            Self::Declined | Self::Waits(_) => Kind::ApprovalNeeded,
            Self::Never(_) => Kind::Denied,
        };
        Ending::of_kind(kind, self.code())
    }

    /// The next step.
    #[must_use]
    pub fn suggestion(&self) -> String {
        match self {
            Self::Declined => "look at what it does, then answer yes at a terminal".to_owned(),
            Self::Never(never) => {
                format!("whoever said never can take it back: runner approve {}", never.id)
            }
            Self::Waits(it) if it.must_be_whole().is_err() => ANSWERED_THERE.to_owned(),
            Self::Waits(it) => {
                let id = &it.id;
                format!(
                    "a person can answer: runner approve {id}; then call it again with --approve {id}"
                )
            }
        }
    }

    /// What went wrong, about `what`.
    #[must_use]
    pub fn error(&self, what: &str) -> ErrorObject {
        let (message, details) = match self {
            Self::Declined => (format!("{what} was not approved"), None),
            Self::Never(never) => {
                let details = json!({ "approval": { "id": never.id, "said": never.said } });
                let said = moment(never.said);
                (format!("a person said never to {what}, on {said} UTC"), Some(details))
            }
            Self::Waits(it) => {
                let details = json!({ "approval": { "id": it.id, "ends": it.ends } });
                (format!("{what} needs approval, and nobody is here to ask"), Some(details))
            }
        };
        ErrorObject {
            code: self.code().to_owned(),
            message,
            // The same call ends the same way until a person has answered.
            recoverable: false,
            suggestion: Some(self.suggestion()),
            rule: None,
            stack: None,
            details,
        }
    }
}
