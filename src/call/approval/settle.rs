//! From a question to an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runner_policy::limits::Unit;
use tokio::time::timeout;

use super::action::Action;
use super::question::Question;
use crate::approvals::{
    ANSWERED_THERE, ApprovalError, ApprovalId, Asked, Book, Fits, Given, Never, QuestionRef,
    Ruling, Scope, Waiting,
};
use crate::audit::{Ledger, Redactor};
use crate::call::details::Details;
use crate::call::result::ErrorObject;
use crate::caller::Caller;
use crate::codes::Code;
use crate::config::Approvals as Times;
use crate::exit::{Ending, Kind};
use crate::ids::CallId;
use crate::policy_files::Places;
use crate::store::Store;
use crate::text::moment;

/// An approver's answer.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Yes, for as long as this says; or never.
    Given(Given),
    /// No, this time.
    No,
    /// Yes to everything, as the caller's own option says.
    Option,
    /// There is no approver.
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
    /// Who asks, and for whose session an answer may hold.
    pub caller: Caller,
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
    /// What would be done, to look at its files once more.
    pub action: Action,
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
    /// There was no approver; the question waits.
    Waits(Box<Waiting>),
    /// The approver did not answer in this time.
    Unanswered(Duration),
}

/// Set once the answer is not awaited any more: a later answer is ignored.
#[derive(Default)]
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Puts a question. A person may take their time, so it has a thread of its own; but no more time than a question waits
/// that nobody was there to answer.
pub(in crate::call) async fn put(
    asking: Arc<Asking>,
    inquiry: Inquiry,
) -> Result<Answer, ApprovalError> {
    let (most, over) = (asking.times.pending, Over::default());
    let late = Arc::clone(&over.0);
    let settled = tokio::task::spawn_blocking(move || asking.settle(&inquiry, &late));
    match timeout(most, settled).await {
        Ok(Ok(answer)) => answer,
        // The thread that asked has died: there is no approval.
        Ok(Err(_)) => Ok(Answer::No(Unapproved::Declined)),
        Err(_) => Ok(Answer::No(Unapproved::Unanswered(most))),
    }
}

impl Asking {
    fn book(&self) -> Result<Book, ApprovalError> {
        let store = Store::open(self.places.state.as_deref())?;
        Ok(Book::new(Ledger::new(store), self.times, self.caller.clone()))
    }

    fn settle(&self, inquiry: &Inquiry, late: &AtomicBool) -> Result<Answer, ApprovalError> {
        let Inquiry { question, asked, call, action } = inquiry;
        let book = self.book()?;
        match book.look(asked, self.named(&book, asked)?, call)? {
            Ruling::Granted(id) => {
                self.spent.0.lock().unwrap_or_else(PoisonError::into_inner).push(id);
                return Ok(Answer::Yes);
            }
            Ruling::Never(never) => return Ok(Answer::No(Unapproved::Never(never))),
            Ruling::Nothing => {}
        }
        let record = || question.record(&self.redactor);
        let reply = self.approver.ask(question);
        if late.load(Ordering::Relaxed) {
            return Ok(Answer::No(Unapproved::Declined));
        }
        Ok(match reply {
            Reply::Option => {
                action.must_be(&asked.files)?;
                book.by_option(asked, call)?;
                Answer::Yes
            }
            Reply::Given(given) => {
                // A person takes their time, and the files may have changed meanwhile.
                if given.scope != Scope::Never {
                    action.must_be(&asked.files)?;
                }
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
        let book = self.book()?;
        spent.iter().try_for_each(|id| book.give_back(id, call))
    }
}

impl Unapproved {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Declined | Self::Waits(_) | Self::Unanswered(_) => Code::ApprovalNeeded,
            Self::Never(_) => Code::ApprovalDenied,
        }
    }

    /// How the process ends because of it.
    #[must_use]
    pub fn ending(&self) -> Ending {
        let kind = match self {
            Self::Declined | Self::Waits(_) | Self::Unanswered(_) => Kind::ApprovalNeeded,
            Self::Never(_) => Kind::Denied,
        };
        Ending::of_kind(kind, self.code())
    }

    /// The next step.
    #[must_use]
    pub fn suggestion(&self) -> String {
        match self {
            Self::Unanswered(_) => "call it again, and answer at the terminal".to_owned(),
            Self::Declined => "run it again to be asked again".to_owned(),
            Self::Never(never) => {
                format!("to undo it, the same person runs: runner approve {}", never.id)
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
            Self::Declined => (format!("{what} was not approved: the answer was no"), None),
            Self::Unanswered(most) => {
                let most = Unit::Time.show(u64::try_from(most.as_millis()).unwrap_or(u64::MAX));
                (format!("{what} needs approval, and no answer came within {most}"), None)
            }
            Self::Never(never) => {
                let approval =
                    QuestionRef { id: never.id.clone(), said: Some(never.said), ends: None };
                let details = Details::Question { approval };
                let said = moment(never.said);
                (format!("a person said never to {what}, on {said} UTC"), Some(details))
            }
            Self::Waits(it) => {
                let approval = QuestionRef { id: it.id.clone(), said: None, ends: Some(it.ends) };
                let details = Details::Question { approval };
                (
                    format!("{what} needs approval, and there is no terminal to ask at"),
                    Some(details),
                )
            }
        };
        ErrorObject {
            code: self.code(),
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
