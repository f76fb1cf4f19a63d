//! The book of questions and answers.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::binding::{Asked, Binding, Bound, Covers};
use super::error::ApprovalError;
use super::id::ApprovalId;
use super::recorder::{Note, Recorder};
use crate::caller::{Caller, Session};
use crate::config::Approvals as Times;
use crate::ids::CallId;
use crate::store::{ApprovalRow, ApprovalRows};
use crate::text::harmless_json;

/// How long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For one call.
    Once,
    /// Until the session ends.
    Session,
    /// For a time.
    Time,
    /// It says no, to the same call each time.
    Never,
}

/// What has become of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// There is no answer yet.
    Pending,
    /// Yes.
    Granted,
    /// No.
    Denied,
    /// A yes for one call, and that call has come.
    Used,
    /// A yes to a tool that has changed.
    Void,
}

macro_rules! words {
    ($type:ident { $($variant:ident $word:literal)* }) => {
        impl $type {
            /// Its word.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            fn by_word(word: &str) -> Option<Self> {
                [$(Self::$variant),*].into_iter().find(|it| it.word() == word)
            }
        }
    };
}
words!(Scope { Once "once" Session "session" Time "time" Never "never" });
words!(State { Pending "pending" Granted "granted" Denied "denied" Used "used" Void "void" });

/// What the book says about a call.
#[derive(Debug)]
pub enum Ruling {
    /// It was approved. An approval for one call is used up now.
    Granted(ApprovalId),
    /// A person said never.
    Never(Box<Never>),
    /// Nothing: it must be asked about.
    Nothing,
}

/// A never that stands.
#[derive(Debug, Clone)]
pub struct Never {
    /// The question that was answered so; `runner approve` with this id takes the answer back.
    pub id: ApprovalId,
    /// When it was said, in milliseconds since 1970.
    pub said: i64,
}

/// An answer that a person gives.
#[derive(Debug, Clone)]
pub struct Given {
    /// How long it holds.
    pub scope: Scope,
    /// For a time: which. Cut to what the configuration allows.
    pub time: Option<Duration>,
    /// Arguments that may differ, with the pattern that they must match.
    pub patterns: Vec<(String, String)>,
}

/// A question, or an answer that holds, as it is listed.
#[derive(Debug, Clone, Serialize)]
pub struct Waiting {
    /// Its id.
    pub id: ApprovalId,
    /// When it was asked, in milliseconds since 1970.
    pub asked: i64,
    /// Until when it waits or holds.
    pub ends: i64,
    /// What has become of it.
    pub state: State,
    /// How long it holds.
    pub scope: Scope,
    /// What is asked about.
    pub subject: String,
    /// Where.
    pub workspace: String,
    /// The call that asked.
    pub call: String,
    /// What is shown, line by line.
    pub question: Value,
    #[serde(skip)]
    asker: CallId,
    #[serde(skip)]
    row: ApprovalRow,
    #[serde(skip)]
    binding: Binding,
}

/// How a named answer and a call go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fits {
    /// It is about something else that is asked.
    Nothing,
    /// It is about the same subject, and another call.
    Subject,
    /// It is about this call.
    Call,
}

/// The word of an answer that says no for good.
const NEVER: &str = "never";

/// The name of a question's line that says that parts of it are not shown.
pub const HIDDEN: &str = "hidden";

impl Waiting {
    /// That a person who answers it by its id sees all of it.
    ///
    /// # Errors
    /// Parts of it are not shown.
    pub fn must_be_whole(&self) -> Result<(), ApprovalError> {
        let hidden = |line: &Value| line.get(0).and_then(Value::as_str) == Some(HIDDEN);
        match self.question.as_array().is_some_and(|lines| lines.iter().any(hidden)) {
            true => Err(ApprovalError::NotWhole(self.id.clone())),
            false => Ok(()),
        }
    }
}

/// The book in a store.
pub struct Book {
    recorder: Box<dyn Recorder>,
    times: Times,
    /// Who asks or answers here.
    caller: Caller,
}

impl Book {
    /// The book in a recorder's store, under these times, for who asks or answers.
    #[must_use]
    pub fn new(recorder: impl Recorder + 'static, times: Times, caller: Caller) -> Self {
        Self { recorder: Box::new(recorder), times, caller }
    }

    /// Looks for an answer that covers a call. `only` names the one that the caller means.
    ///
    /// # Errors
    /// The tool has changed since it was approved, or the named answer is not one to this call.
    pub fn look(
        &self,
        asked: &Asked,
        only: Option<&ApprovalId>,
        call: &CallId,
    ) -> Result<Ruling, ApprovalError> {
        // A never stands above every yes, whichever came first or is named.
        if let Some(never) = self.never(asked)? {
            return Ok(Ruling::Never(Box::new(never)));
        }
        let rows = match only {
            Some(id) => vec![self.find(id)?],
            None => self.about(asked)?,
        };
        let mut changed = None;
        for it in rows {
            let covers = it.binding.covers(asked);
            let named = only == Some(&it.id);
            if named {
                check_named(&it, &covers)?;
            }
            match covers {
                _ if !self.holds(&it) => {}
                Covers::Yes if self.use_it(&it, call)? => return Ok(Ruling::Granted(it.id)),
                Covers::Changed { file } => {
                    self.become_(&it, State::Void, call)?;
                    changed.get_or_insert(file);
                }
                // People change what a command runs all day: the answer is over, and the question is put anew.
                Covers::Stale { file } => {
                    self.become_(&it, State::Void, call)?;
                    if named {
                        return Err(ApprovalError::Stale { file });
                    }
                }
                Covers::Yes | Covers::No => {}
            }
        }
        match changed {
            Some(file) => Err(ApprovalError::Changed { subject: asked.subject.clone(), file }),
            None => Ok(Ruling::Nothing),
        }
    }

    /// The never that stands against a call, whatever it was said to.
    fn never(&self, asked: &Asked) -> Result<Option<Never>, ApprovalError> {
        let rows = ApprovalRows::new(self.recorder.store()).nevers(&asked.workspace)?;
        let stands = |it: &Waiting| it.state == State::Denied && it.binding.forbids(asked);
        match rows.into_iter().filter_map(waiting).find(stands) {
            Some(it) => Ok(Some(self.when(&it)?)),
            None => Ok(None),
        }
    }

    /// When a never was said, as it was recorded.
    fn when(&self, it: &Waiting) -> Result<Never, ApprovalError> {
        let said = self.recorder.last(&it.asker, &it.id, NEVER)?;
        Ok(Never { id: it.id.clone(), said: said.unwrap_or(it.asked) })
    }

    /// Gives a yes for one call back that a call took and had no use for.
    ///
    /// # Errors
    /// The store refused.
    pub fn give_back(&self, id: &ApprovalId, call: &CallId) -> Result<(), ApprovalError> {
        let it = self.find(id)?;
        let row = ApprovalRow { state: State::Granted.word().to_owned(), ..it.row };
        if ApprovalRows::new(self.recorder.store()).replace(State::Used.word(), &row)? {
            self.record(call, &row, "given back")?;
        }
        Ok(())
    }

    /// Whether an answer is about this call, and for which of several named ones it is.
    ///
    /// # Errors
    /// There is no such answer.
    pub fn fits(&self, id: &ApprovalId, asked: &Asked) -> Result<Fits, ApprovalError> {
        let it = self.find(id)?;
        Ok(match it.binding.covers(asked) {
            _ if it.subject != asked.subject => Fits::Nothing,
            Covers::Yes => Fits::Call,
            Covers::Changed { .. } | Covers::Stale { .. } | Covers::No => Fits::Subject,
        })
    }

    /// Voids every answer that lets a subject run in a workspace, now that it is not what was approved; what each
    /// was about.
    ///
    /// # Errors
    /// The store refused.
    pub fn void(
        &self,
        subject: &str,
        workspace: &str,
        call: &CallId,
    ) -> Result<Vec<Binding>, ApprovalError> {
        let rows = ApprovalRows::new(self.recorder.store()).list(Some((subject, workspace)))?;
        let mut voided = Vec::new();
        for it in rows.into_iter().filter_map(waiting).filter(|it| self.holds(it)) {
            if self.become_(&it, State::Void, call)? {
                voided.push(it.binding);
            }
        }
        Ok(voided)
    }

    /// Records a question that cannot be answered now. The same question is recorded once.
    ///
    /// # Errors
    /// The store refused.
    pub fn wait(
        &self,
        asked: &Asked,
        question: Value,
        call: &CallId,
    ) -> Result<Waiting, ApprovalError> {
        let binding = asked.exactly();
        let same =
            |it: &Waiting| it.state == State::Pending && it.ends > now() && it.binding == binding;
        if let Some(already) = self.about(asked)?.into_iter().find(same) {
            return Ok(already);
        }
        let ends = now().saturating_add(millis(self.times.pending));
        let row = new_row(&binding, question, call, State::Pending, Scope::Once, ends)?;
        self.write(row, "asked", call)
    }

    /// Writes down what a person at the terminal has answered.
    ///
    /// # Errors
    /// The store refused.
    pub fn answered(
        &self,
        asked: &Asked,
        question: Value,
        call: &CallId,
        given: &Given,
    ) -> Result<Waiting, ApprovalError> {
        let binding = bound(asked.exactly(), given)?;
        let (state, word) = match given.scope {
            Scope::Never => (State::Denied, NEVER),
            // The call that asked is the one that uses it up.
            Scope::Once => (State::Used, "approved"),
            Scope::Session | Scope::Time => (State::Granted, "approved"),
        };
        let session = self.session_for(given.scope, &binding)?;
        let row = new_row(&binding, question, call, state, given.scope, self.until(given))?;
        self.write(ApprovalRow { session, ..row }, word, call)
    }

    /// Records that the caller's own option approved it.
    ///
    /// # Errors
    /// The store refused.
    pub fn by_option(&self, asked: &Asked, call: &CallId) -> Result<(), ApprovalError> {
        let row = new_row(&asked.exactly(), Value::Null, call, State::Used, Scope::Once, now())?;
        self.record(call, &row, "--yes")
    }

    /// Answers a question by its id.
    ///
    /// # Errors
    /// There is none, it is over, parts of it are not shown, or a pattern is not about its arguments.
    pub fn answer(&self, id: &ApprovalId, given: &Given) -> Result<Waiting, ApprovalError> {
        let mut it = self.find(id)?;
        if given.scope != Scope::Never {
            it.must_be_whole()?;
        }
        let open = match it.state {
            State::Pending => it.ends > now(),
            // A no can be taken back, and a yes too.
            State::Denied | State::Granted => true,
            State::Used | State::Void => false,
        };
        if !open {
            let state =
                if it.state == State::Pending { "it waited too long" } else { it.state.word() };
            return Err(ApprovalError::Over { id: id.clone(), state });
        }
        let seen = it.state;
        it.binding = bound(it.binding, given)?;
        it.scope = given.scope;
        it.state = if given.scope == Scope::Never { State::Denied } else { State::Granted };
        it.ends = self.until(given);
        let answer = if it.state == State::Denied { NEVER } else { "approved" };
        self.put(&mut it, seen, answer)?;
        Ok(it)
    }

    /// Says no to a question, this time.
    ///
    /// # Errors
    /// There is none, or it is over.
    pub fn deny(&self, id: &ApprovalId) -> Result<Waiting, ApprovalError> {
        let mut it = self.find(id)?;
        let seen = it.state;
        if !matches!(seen, State::Pending | State::Granted) {
            return Err(ApprovalError::Over { id: id.clone(), state: seen.word() });
        }
        it.state = State::Denied;
        it.scope = Scope::Once;
        self.put(&mut it, seen, "denied")?;
        Ok(it)
    }

    /// The question with this id.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, id: &ApprovalId) -> Result<Waiting, ApprovalError> {
        let row = ApprovalRows::new(self.recorder.store()).get(id.as_str())?;
        row.and_then(waiting).ok_or_else(|| ApprovalError::Unknown(id.clone()))
    }

    /// All that wait or hold now, newest first; with `over` also those that do not any more.
    ///
    /// # Errors
    /// The store refused.
    pub fn list(&self, over: bool) -> Result<Vec<Waiting>, ApprovalError> {
        let rows = ApprovalRows::new(self.recorder.store()).list(None)?;
        let open = |it: &Waiting| {
            it.ends > now()
                && (matches!(it.state, State::Pending | State::Granted) || it.scope == Scope::Never)
        };
        Ok(rows.into_iter().filter_map(waiting).filter(|it| over || open(it)).collect())
    }

    fn about(&self, asked: &Asked) -> Result<Vec<Waiting>, ApprovalError> {
        let about = (asked.subject.as_str(), asked.workspace.as_str());
        let rows = ApprovalRows::new(self.recorder.store()).list(Some(about))?;
        Ok(rows.into_iter().filter_map(waiting).collect())
    }

    /// Whether it is a yes that holds here and now.
    fn holds(&self, it: &Waiting) -> bool {
        let here = it.scope != Scope::Session || self.is_session_of(it);
        it.state == State::Granted && it.ends > now() && here
    }

    /// Whether an answer for a session is one for this session.
    fn is_session_of(&self, it: &Waiting) -> bool {
        self.session(&it.binding).is_some_and(|session| it.row.session == Some(session.id))
    }

    /// The caller's session in which an answer like this holds.
    fn session(&self, binding: &Binding) -> Option<Session> {
        let end = now().saturating_add(millis(self.times.session));
        Session::of(&self.caller, &binding.workspace, &binding.terms.policy, end)
    }

    /// The id of the session that an answer of this scope is bound to.
    fn session_for(
        &self,
        scope: Scope,
        binding: &Binding,
    ) -> Result<Option<String>, ApprovalError> {
        match (scope, self.session(binding)) {
            (Scope::Session, None) => Err(ApprovalError::BadOption(
                "this session has no id of its own: approve once, or for a time".to_owned(),
            )),
            (Scope::Session, Some(session)) => Ok(Some(session.id)),
            (Scope::Once | Scope::Time | Scope::Never, _) => Ok(None),
        }
    }

    /// When an answer ends, in milliseconds since 1970.
    #[must_use]
    pub fn until(&self, given: &Given) -> i64 {
        let time = match given.scope {
            Scope::Once => self.times.pending,
            Scope::Session => self.times.session,
            Scope::Time => given.time.unwrap_or(self.times.grant).min(self.times.longest),
            Scope::Never => return i64::MAX,
        };
        now().saturating_add(millis(time))
    }

    /// Records that a call uses an answer, and uses up one that is for one call; whether the call may.
    fn use_it(&self, it: &Waiting, call: &CallId) -> Result<bool, ApprovalError> {
        match it.scope {
            // Another process may have used it up at the same moment.
            Scope::Once => self.become_(it, State::Used, call),
            Scope::Session | Scope::Time => {
                self.record(call, &it.row, State::Used.word())?;
                Ok(true)
            }
            Scope::Never => Ok(false),
        }
    }

    /// A row that takes another state, unless another process was faster; whether it did.
    fn become_(&self, it: &Waiting, state: State, call: &CallId) -> Result<bool, ApprovalError> {
        let row = ApprovalRow { state: state.word().to_owned(), ..it.row.clone() };
        let done = ApprovalRows::new(self.recorder.store()).replace(it.state.word(), &row)?;
        if done {
            self.record(call, &row, state.word())?;
        }
        Ok(done)
    }

    fn put(
        &self,
        it: &mut Waiting,
        seen: State,
        answer: &'static str,
    ) -> Result<(), ApprovalError> {
        it.row.state = it.state.word().to_owned();
        it.row.scope = it.scope.word().to_owned();
        it.row.ends = it.ends;
        it.row.binding = json!(it.binding).to_string();
        it.row.session = self.session_for(it.scope, &it.binding)?;
        if !ApprovalRows::new(self.recorder.store()).replace(seen.word(), &it.row)? {
            return Err(ApprovalError::Over {
                id: it.id.clone(),
                state: "another answer came first",
            });
        }
        self.record(&it.asker, &it.row, answer)
    }

    fn write(
        &self,
        row: ApprovalRow,
        answer: &'static str,
        call: &CallId,
    ) -> Result<Waiting, ApprovalError> {
        ApprovalRows::new(self.recorder.store()).add(&row)?;
        self.record(call, &row, answer)?;
        let id = row.id.clone();
        waiting(row)
            .ok_or_else(|| ApprovalError::BadOption(format!("the question {id} cannot be kept")))
    }

    /// Every question and answer is recorded too.
    fn record(
        &self,
        call: &CallId,
        row: &ApprovalRow,
        answer: &'static str,
    ) -> Result<(), ApprovalError> {
        let note = Note {
            id: row.id.clone(),
            answer,
            scope: row.scope.clone(),
            until: row.ends,
            subject: row.subject.clone(),
            workspace: row.workspace.clone(),
            question: serde_json::from_str(&row.question).unwrap_or(Value::Null),
            caller: self.caller.clone(),
        };
        self.recorder.record(call, note)
    }
}

/// Whether the answer that the caller named is one to this call.
fn check_named(it: &Waiting, covers: &Covers) -> Result<(), ApprovalError> {
    let id = it.id.clone();
    match (covers, it.state) {
        (Covers::No, _) => Err(ApprovalError::Differs(id)),
        (Covers::Changed { .. } | Covers::Stale { .. }, State::Granted) => Ok(()),
        (Covers::Stale { file }, _) => Err(ApprovalError::Stale { file: file.clone() }),
        (Covers::Changed { file }, _) => {
            Err(ApprovalError::Changed { subject: it.subject.clone(), file: file.clone() })
        }
        (Covers::Yes, State::Pending) if it.ends > now() => Err(ApprovalError::NotYet(id)),
        (Covers::Yes, State::Pending) => {
            Err(ApprovalError::Over { id, state: "it waited too long" })
        }
        (Covers::Yes, State::Granted) if it.ends <= now() => {
            Err(ApprovalError::Over { id, state: "its time is over" })
        }
        (Covers::Yes, State::Granted) => Ok(()),
        (Covers::Yes, State::Denied | State::Used | State::Void) => {
            Err(ApprovalError::Over { id, state: it.state.word() })
        }
    }
}

/// A binding with the patterns that a person gave.
fn bound(mut binding: Binding, given: &Given) -> Result<Binding, ApprovalError> {
    for (name, pattern) in &given.patterns {
        if !may_differ(&binding.subject, name) {
            return Err(ApprovalError::BadOption(format!(
                "`{name}` of {} can be approved only as it is, without a pattern",
                binding.subject
            )));
        }
        match binding.arguments.get_mut(name) {
            Some(argument) => *argument = Bound::Like(pattern.clone()),
            None => {
                let known: Vec<_> = binding.arguments.keys().map(String::as_str).collect();
                return Err(ApprovalError::BadOption(format!(
                    "the call has no argument `{name}`; it has: {}",
                    known.join(", ")
                )));
            }
        }
    }
    Ok(binding)
}

/// Whether an argument can be approved by a pattern. What a command does cannot be told from a pattern of its text, and
/// a digest is like no other.
fn may_differ(subject: &str, argument: &str) -> bool {
    match subject.split_once('/') {
        Some((_, "net")) => argument == "request",
        Some((_, "remove")) => argument == "path",
        Some(_) => false,
        None => subject != "exec",
    }
}

fn new_row(
    binding: &Binding,
    question: Value,
    call: &CallId,
    state: State,
    scope: Scope,
    ends: i64,
) -> Result<ApprovalRow, ApprovalError> {
    Ok(ApprovalRow {
        id: ApprovalId::fresh().map_err(ApprovalError::NoId)?.to_string(),
        asked: now(),
        ends,
        state: state.word().to_owned(),
        scope: scope.word().to_owned(),
        subject: binding.subject.clone(),
        workspace: binding.workspace.clone(),
        session: None,
        call: call.to_string(),
        binding: json!(binding).to_string(),
        question: harmless_json(question.to_string()),
    })
}

/// A row as it is meant. What this program did not write is not there.
fn waiting(row: ApprovalRow) -> Option<Waiting> {
    Some(Waiting {
        id: row.id.parse().ok()?,
        asked: row.asked,
        ends: row.ends,
        state: State::by_word(&row.state)?,
        scope: Scope::by_word(&row.scope)?,
        subject: row.subject.clone(),
        workspace: row.workspace.clone(),
        call: row.call.clone(),
        asker: CallId::new(&row.call)?,
        question: serde_json::from_str(&row.question).unwrap_or(Value::Object(Map::new())),
        binding: serde_json::from_str(&row.binding).ok()?,
        row,
    })
}

fn now() -> i64 {
    millis(crate::sys::now())
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
