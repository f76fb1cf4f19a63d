//! The question in a terminal: what would run, with what, and for how long the answer holds.
//!
//! Whoever answers must see what the answer is about: one question at a time, nothing of the tool's between it and
//! the answer, nothing that was typed before it, and nothing of it left out. What cannot be shown whole is not
//! asked, and so not approved.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use runner_policy::limits::Unit;
use rustix::termios::{QueueSelector, tcflush};

use super::tool::desk::Desk;
use super::visible::visible;
use crate::approvals::{Given, Scope, session};
use crate::call::{Always, Approver, Question, Reply};

/// The most lines of a question. A person does not read more.
const LINES_SHOWN: usize = 60;

/// The longest answer.
const ANSWER: u64 = 256;

/// Whether the caller's own option answers everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Yes {
    /// `--yes` was typed.
    Typed,
    /// It was not.
    NotTyped,
}

/// Who answers: `--yes` for everything, else a person at a terminal, else nobody.
pub(super) fn approver(yes: Yes, desk: Arc<Desk>) -> Arc<dyn Approver> {
    match (yes, io::stdin().is_terminal() && io::stderr().is_terminal()) {
        (Yes::Typed, _) => Arc::new(Always(Reply::Option)),
        (Yes::NotTyped, true) => Arc::new(Person(desk)),
        (Yes::NotTyped, false) => Arc::new(Always(Reply::Nobody)),
    }
}

struct Person(Arc<Desk>);

impl Approver for Person {
    fn ask(&self, question: &Question) -> Reply {
        let lines = question.lines();
        let _held = self.0.hold();
        let mut err = io::stderr().lock();
        if lines.len() > LINES_SHOWN || !question.fits() {
            let _ = writeln!(
                err,
                "  {} lines with {} bytes are too much to ask about at a terminal: look at it, then call it with --yes",
                lines.len(),
                lines.iter().map(|(_, value)| value.len()).sum::<usize>()
            );
            return Reply::No;
        }
        let text: String = lines
            .iter()
            .map(|(name, value)| format!("  {name:<10} {}\n", visible(value)))
            .collect();
        // What was typed before the question is no answer to it.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        let (here, session) = match session() {
            Some(_) => (Here::Session, "[s] this session, "),
            None => (Here::NoSession, ""),
        };
        let choices = format!("Run it? [y] once, {session}a time such as 1h, [n] no, [never]: ");
        let asked = write!(err, "{text}{choices}").and_then(|()| err.flush());
        drop(err);
        let mut answer = String::new();
        let mut input = io::Read::take(io::stdin().lock(), ANSWER);
        match asked.and_then(|()| input.read_line(&mut answer)) {
            Ok(_) => reply(answer.trim(), here),
            Err(_) => Reply::No,
        }
    }
}

/// Whether the session can be told from another, so that an answer can be for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Here {
    Session,
    NoSession,
}

/// What an answer means; anything else is no.
fn reply(answer: &str, here: Here) -> Reply {
    let given = |scope, time| Reply::Given(Given { scope, time, patterns: Vec::new() });
    match answer {
        "y" | "Y" | "yes" | "o" | "once" => given(Scope::Once, None),
        "s" | "session" if here == Here::Session => given(Scope::Session, None),
        "never" => given(Scope::Never, None),
        text => match Unit::Time.parse(text) {
            Ok(time) => given(Scope::Time, Some(Duration::from_millis(time))),
            Err(_) => Reply::No,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let replied = |answer: &str, here| match reply(answer, here) {
            Reply::Given(given) => Some((given.scope, given.time)),
            Reply::No | Reply::Option | Reply::Nobody => None,
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
    }
}
