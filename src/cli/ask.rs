//! The question in a terminal: what would run, with what, and for how long the answer holds.
//!
//! The person who answers must see what the answer is about: one question at a time, nothing of the tool's between it and
//! the answer, nothing that was typed before it, and nothing of it left out. What cannot be shown whole is not
//! asked, and so not approved.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use runner_policy::limits::Unit;
use rustix::termios::{QueueSelector, tcflush};

use super::tool::shared_stderr::SharedStderr;
use super::visible::visible;
use crate::approvals::{ApprovalError, Given, Scope};
use crate::call::{Always, Approver, Question, Reply};
use crate::caller::Caller;
use crate::cli::Error;
use crate::config::{Config, Flag};

/// The most lines of a question. A person does not read more.
const LINES_SHOWN: usize = 60;

/// The longest answer.
const ANSWER: u64 = 256;

/// How many mistyped answers are accepted before the question is given up.
const TRIES: usize = 3;

/// Whether the caller's own option answers everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Yes {
    /// `--yes` was typed, where it counts.
    Typed,
    /// It was not.
    NotTyped,
}

impl Yes {
    /// As typed. `--yes` is an answer, so it needs what an answer needs: a terminal, or a configuration that says
    /// otherwise. An agent that may type options must not approve itself with one.
    ///
    /// # Errors
    /// It was typed where it does not count; or there is no configuration to tell.
    pub(super) fn typed(
        typed: bool,
        config: impl FnOnce() -> Result<Config, Error>,
    ) -> Result<Self, Error> {
        match typed {
            false => Ok(Self::NotTyped),
            true if is_terminal() || config()?.is_on(Flag::ApproveWithoutTerminal) => {
                Ok(Self::Typed)
            }
            true => Err(ApprovalError::NoTerminalForYes.into()),
        }
    }
}

/// Whether there is a terminal that shows the question and takes the answer.
pub(super) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Who answers: `--yes` for everything, else a person at a terminal. Without a terminal there is no answer.
pub(super) fn approver(yes: Yes, desk: Arc<SharedStderr>, caller: &Caller) -> Arc<dyn Approver> {
    match (yes, is_terminal()) {
        (Yes::Typed, _) => Arc::new(Always(Reply::Option)),
        (Yes::NotTyped, true) => Arc::new(Person { desk, here: Here::of(caller) }),
        (Yes::NotTyped, false) => Arc::new(Always(Reply::Nobody)),
    }
}

/// Puts a line to a person until they have typed something that `read` takes for an answer; `None` if they do not.
pub(super) fn answer<T>(question: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    for _ in 0..TRIES {
        // What was typed before the question is no answer to it.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        let mut err = io::stderr().lock();
        write!(err, "{question}").and_then(|()| err.flush()).ok()?;
        drop(err);
        let mut typed = String::new();
        let ended = io::Read::take(io::stdin().lock(), ANSWER).read_line(&mut typed).ok()? == 0;
        match read(typed.trim()) {
            Some(answer) => return Some(answer),
            None if ended => return None,
            None => {
                let mut err = io::stderr().lock();
                writeln!(err, "  `{}` is not an answer", visible(typed.trim())).ok()?;
            }
        }
    }
    None
}

struct Person {
    desk: Arc<SharedStderr>,
    here: Here,
}

impl Approver for Person {
    fn ask(&self, question: &Question) -> Reply {
        let lines = question.lines();
        let _held = self.desk.hold();
        let mut err = io::stderr().lock();
        if lines.len() > LINES_SHOWN || !question.fits() {
            let _ = writeln!(
                err,
                "  {} lines with {} bytes are too much to ask about at a terminal, and so not approved",
                lines.len(),
                lines.iter().map(|(_, value)| value.len()).sum::<usize>()
            );
            return Reply::No;
        }
        let text: String = lines
            .iter()
            .map(|(name, value)| format!("  {name:<10} {}\n", visible(value)))
            .collect();
        let session = match self.here {
            Here::Session => "[s] this session, ",
            Here::NoSession => "",
        };
        let choices = format!("Run it? [y] once, {session}a time such as 1h, [n] no, [never]: ");
        let shown = write!(err, "{text}").is_ok();
        drop(err);
        let answered = if shown { answer(&choices, |typed| reply(typed, self.here)) } else { None };
        answered.unwrap_or(Reply::No)
    }
}

/// Whether the session can be told from another, so that an answer can be for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Here {
    Session,
    NoSession,
}

impl Here {
    fn of(caller: &Caller) -> Self {
        match caller.credential.id() {
            Some(_) => Self::Session,
            None => Self::NoSession,
        }
    }
}

/// What an answer means; anything else is none.
fn reply(answer: &str, here: Here) -> Option<Reply> {
    let given = |scope, time| Reply::Given(Given { scope, time, patterns: Vec::new() });
    Some(match answer {
        "" | "n" | "N" | "no" => Reply::No,
        "y" | "Y" | "yes" | "o" | "once" => given(Scope::Once, None),
        "s" | "session" if here == Here::Session => given(Scope::Session, None),
        "never" => given(Scope::Never, None),
        text => match Unit::Time.parse(text) {
            Ok(time) => given(Scope::Time, Some(Duration::from_millis(time))),
            Err(_) => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let replied = |answer: &str, here| match reply(answer, here) {
            Some(Reply::Given(given)) => Some((given.scope, given.time)),
            Some(Reply::No | Reply::Option | Reply::Nobody) | None => None,
        };
        let scope = |answer: &str| replied(answer, Here::Session);
        assert_eq!(scope("y"), Some((Scope::Once, None)));
        assert_eq!(scope("session"), Some((Scope::Session, None)));
        assert_eq!(scope("90m"), Some((Scope::Time, Some(Duration::from_secs(5_400)))));
        assert_eq!(scope("never"), Some((Scope::Never, None)));
        for answer in ["", "n", "yep", "1", "always", "y n"] {
            assert_eq!(scope(answer), None, "{answer}");
        }
        assert_eq!(replied("session", Here::NoSession), None);
        // No is an answer; what is none is asked about again.
        for answer in ["", "n", "no"] {
            assert!(matches!(reply(answer, Here::Session), Some(Reply::No)), "{answer}");
        }
        for answer in ["yep", "1", "always", "y n", "nein"] {
            assert!(reply(answer, Here::Session).is_none(), "{answer}");
        }
    }
}
