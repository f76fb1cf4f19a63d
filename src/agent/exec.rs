//! `runner agent exec AGENT SESSION TICKET LINE`: what the hook rewrote a line to.
//!
//! Duty: find the same pin, judge the line again, and run it. There are no options: what a model writes cannot change
//! the policy, the engine or the limits. A line without a fitting ticket is refused.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::AgentError;
use super::judge::{Judged, Wanted};
use super::kind::Agent;
use super::pin::Pinned;
use super::place::Place;
use super::ticket::Wrapped;
use crate::audit::Redactor;
use crate::call::launch::run::Keep;
use crate::call::{self, Always, Asking, CallResult, Decided, Output, Reply, Spent};
use crate::exit::Status;
use crate::sandbox::cancel::Cancel;

/// Bytes that are kept of each output stream. Both together, and what is said of held writes and of the sandbox, fit into
/// 8,000 tokens.
const OUTPUT: u64 = 9 << 10;

/// The words, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    agent: Agent,
    session: String,
    ticket: String,
    line: String,
}

/// What came of it.
#[derive(Debug)]
pub struct Ran {
    /// The call.
    pub decided: Decided,
    /// Its result.
    pub result: CallResult,
    /// What the model should know of its session.
    pub notes: Vec<String>,
}

impl Order {
    /// Reads the words behind `agent exec`.
    ///
    /// # Errors
    /// They are not those that a hook writes.
    pub fn read(words: &[OsString]) -> Result<Self, AgentError> {
        let [agent, session, ticket, line] = words else { return Err(AgentError::Words) };
        let text = |word: &OsString| word.to_str().map(str::to_owned).ok_or(AgentError::Words);
        let agent = Agent::named(&text(agent)?).ok_or(AgentError::Words)?;
        let session = text(session)?;
        let session = if session == "-" { String::new() } else { session };
        Ok(Self { agent, session, ticket: text(ticket)?, line: text(line)? })
    }
}

/// Runs an order in the folder of this process.
///
/// # Errors
/// The ticket does not fit, or the call did not come to an outcome.
pub async fn run(order: Order, cwd: PathBuf, cancel: &mut Cancel) -> Result<Ran, AgentError> {
    let place = Place::of_account()?;
    let Order { agent, session, ticket, line } = order;
    let pinned = Pinned::find(&place, agent, &cwd)?;
    let wanted = Wanted { agent, session: &session, start: &cwd, line: &line };
    let Judged { mut decided, workspace, mut memory, mut notes } = wanted.judge(&place, &pinned)?;
    let wrapped = Wrapped { agent, session: &session, workspace: &workspace, line: &line };
    if !wrapped.fits(&ticket, &place)? {
        return Err(AgentError::Ticket);
    }
    let asking = Asking {
        approver: Arc::new(Always(Reply::Nobody)),
        named: Vec::new(),
        times: decided.config.approvals(),
        places: decided.places.clone(),
        redactor: Redactor::new(),
        spent: Spent::default(),
        caller: decided.context.caller.clone(),
    };
    let asking = decided.asks().then(|| Arc::new(asking));
    let output = Output::Kept(None, Keep::AtMost(OUTPUT));
    let result = call::run(&mut decided, output, asking, cancel).await?;
    if matches!(result.status, Status::Completed | Status::Failed) {
        if let Some(line) = decided.decision.plan.as_ref().and_then(|plan| plan.line()) {
            let succeeded = result.status == Status::Completed;
            let folder = decided.workspace.cwd().to_owned();
            memory.after(line, succeeded, &workspace, &folder);
        }
        // The call is over and its result stands, whether or not the next one starts in its folder.
        if let Err(error) = memory.keep(&place, agent, &session, &workspace) {
            notes.push(format!("the session's folder is not kept: {error}"));
        }
    }
    Ok(Ran { decided, result, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_a_hook_are_read() {
        let read =
            |words: &[&str]| Order::read(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let order = read(&["claude", "-", "t", "ls -l"]).unwrap();
        assert_eq!((order.session.as_str(), order.line.as_str()), ("", "ls -l"));
        for words in [
            &["claude", "s", "t"][..],
            &["claude", "s", "t", "ls", "-l"],
            &["nano", "s", "t", "ls"],
            &["--policy", "develop", "t", "ls"],
            &["claude", "s", "t", "ls", "--policy=develop"],
        ] {
            assert!(matches!(read(words), Err(AgentError::Words)), "{words:?}");
        }
    }
}
