//! `runner hook AGENT`: one JSON object in, one out.
//!
//! Duty: an answer in any case. An agent runs the original command, on the host, where its hook crashes, hangs or says
//! what the agent does not understand; so the work is done by a thread of its own, and a panic, a delay or an error in it
//! is a refusal. Non-goals: an engine, which is not asked here; and running anything.

use std::io::Read;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use runner_policy::Verdict;
use serde_json::Value;

use super::answer::{Answer, Rewritten, Said, refusal};
use super::error::AgentError;
use super::input::{self, ToolCall};
use super::judge::{Judged, Wanted};
use super::kind::Agent;
use super::pin::Pinned;
use super::place::Place;
use super::quote::quoted;
use super::ticket::Wrapped;
use crate::audit::Redactor;
use crate::call::launch::run::Keep;
use crate::call::{self, Always, Asking, CallResult, Output, Reply, Spent};
use crate::error::Failure as _;
use crate::json;
use crate::sandbox::cancel::Cancel;

/// The longest time until there is an answer. The agents' own limits, which `install` writes, are longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers within [`PATIENCE`], whatever happens: `work` reads the agent's words.
#[must_use]
pub fn answer_in_time(agent: Agent, work: impl FnOnce() -> Said + Send + 'static) -> Said {
    in_time(agent, PATIENCE, work)
}

fn in_time(agent: Agent, patience: Duration, work: impl FnOnce() -> Said + Send + 'static) -> Said {
    // Its message would stand before the refusal that tells of it.
    std::panic::set_hook(Box::new(|_| {}));
    let (sender, receiver) = mpsc::sync_channel(1);
    let worker = std::thread::Builder::new().name("hook".to_owned()).spawn(move || {
        let _ = sender.send(work());
    });
    let failed = |what| refusal(agent, &told(&AgentError::Hook(what)));
    if worker.is_err() {
        return failed("could not be started; the command was not run");
    }
    match receiver.recv_timeout(patience) {
        Ok(said) => said,
        Err(RecvTimeoutError::Timeout) => failed("took too long; the command was not run"),
        Err(RecvTimeoutError::Disconnected) => failed("crashed; the command was not run"),
    }
}

/// All that the agent says, within what is read of JSON.
///
/// # Errors
/// It is too long, or cannot be read.
pub fn read_bounded(input: impl Read) -> Result<Vec<u8>, AgentError> {
    let most = json::MAX_BYTES as u64;
    let mut bytes = Vec::new();
    let read = input.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| AgentError::Input(error.to_string()))?;
    if bytes.len() as u64 > most {
        return Err(AgentError::Input(format!("it is longer than {most} bytes")));
    }
    Ok(bytes)
}

/// The answer to what an agent said.
#[must_use]
pub fn answer(agent: Agent, said: Result<Vec<u8>, AgentError>) -> Said {
    let answered = said.and_then(|bytes| {
        let call = input::read(agent, &bytes)?;
        if call.is_shell(agent) { of_shell(agent, &call) } else { Ok(Answer::Pass) }
    });
    match answered {
        Ok(answer) => answer.said(agent),
        Err(error) => refusal(agent, &told(&error)),
    }
}

/// An error for a model.
fn told(error: &AgentError) -> String {
    let findings = error.findings().iter().map(|finding| format!("\n{finding}"));
    let mut text = format!("runner: {error} [{}]{}", error.code(), findings.collect::<String>());
    if let Some(hint) = error.hint() {
        text.push_str("\nnext: ");
        text.push_str(&hint);
    }
    text
}

/// The answer to a shell call.
fn of_shell(agent: Agent, call: &ToolCall) -> Result<Answer, AgentError> {
    let line = call.line()?;
    let place = Place::of_account()?;
    let pinned = Pinned::find(&place, agent, &call.cwd)?;
    let start = call.start();
    let wanted = Wanted { agent, session: &call.session, start: &start, line };
    let judged = wanted.judge(&place, &pinned)?;
    let decision = &judged.decided.decision;
    let verdict = decision.decision;
    match (verdict, decision.approvable) {
        (Verdict::Allow, _) => {}
        (Verdict::Ask, true) => {}
        (Verdict::Ask, false) | (Verdict::Deny, _) => {
            return Ok(Answer::Refuse(refused(&recorded(judged)?)));
        }
    }
    let wrapped = Wrapped { agent, session: &call.session, workspace: &judged.workspace, line };
    let command = command(&pinned, &wrapped, &place)?;
    let mut input = call.input.clone();
    // The first of the call's fields keeps its place.
    input.insert("command".to_owned(), Value::String(command));
    let prompts = pinned.pin.prompts;
    let rewritten = Rewritten { input, prompts, mode: call.mode.clone() };
    Ok(match verdict {
        Verdict::Allow => Answer::Allow(rewritten),
        _ => {
            let reason = format!("runner's policy asks: {}", judged.decided.decision.message);
            Answer::Ask(rewritten, reason)
        }
    })
}

/// What the agent runs in place of the line.
fn command(pinned: &Pinned, wrapped: &Wrapped<'_>, place: &Place) -> Result<String, AgentError> {
    let program = pinned.pin.program.to_str().ok_or_else(|| AgentError::Pin {
        agent: pinned.agent,
        what: format!("a program that is not UTF-8: {}", pinned.pin.program.display()),
    })?;
    let session = match wrapped.session {
        "" => "-",
        session => session,
    };
    Ok(format!(
        "{} agent exec {} {session} {} {}",
        plain_or_quoted(program),
        wrapped.agent.word(),
        wrapped.ticket(place)?,
        quoted(wrapped.line),
    ))
}

/// A path without characters that a shell reads is shown as it is, so that rules of agents can name it.
fn plain_or_quoted(path: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    if path.chars().all(plain) { path.to_owned() } else { quoted(path) }
}

/// Records a call that the policy refuses. Nothing of it runs, and no engine is asked.
fn recorded(judged: Judged) -> Result<CallResult, AgentError> {
    let mut decided = judged.decided;
    let asking = Asking {
        approver: std::sync::Arc::new(Always(Reply::Nobody)),
        named: Vec::new(),
        times: decided.config.approvals(),
        places: decided.places.clone(),
        redactor: Redactor::new(),
        spent: Spent::default(),
        caller: decided.context.caller.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| AgentError::Input(error.to_string()))?;
    let (_canceller, mut cancel) = Cancel::pair();
    let output = Output::Kept(None, Keep::AtMost(0));
    let asking = Some(std::sync::Arc::new(asking));
    Ok(runtime.block_on(call::run(&mut decided, output, asking, &mut cancel))?)
}

/// A refusal for a model: what, by which rule, and what to do instead.
fn refused(result: &CallResult) -> String {
    let Some(error) = &result.error else {
        return "runner: the call did not run".to_owned();
    };
    let mut text = format!("runner: denied: {} [{}]", error.message, error.code);
    if let Some(rule) = error.rule.as_ref().filter(|rule| !error.message.contains(&rule.id)) {
        text.push_str(&format!(" by {}", rule.id));
    }
    if let Some(suggestion) = &error.suggestion {
        text.push_str("\ninstead: ");
        text.push_str(suggestion);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_crashes_or_hangs_refuses() {
        let crashed = in_time(Agent::Claude, PATIENCE, || panic!("broken"));
        assert_eq!(crashed.code, 2);
        assert!(crashed.out.contains("\"deny\"") && crashed.out.contains("crashed"));
        let (hold, held) = mpsc::channel::<()>();
        let hung = in_time(Agent::Codex, Duration::from_millis(1), move || {
            let _ = held.recv();
            refusal(Agent::Codex, "late")
        });
        assert!(hung.out.contains("took too long"), "{hung:?}");
        drop(hold);
    }

    #[test]
    fn what_cannot_be_read_is_a_refusal() {
        for bytes in [b"".to_vec(), b"{".to_vec(), b"\xff".to_vec(), b"null".to_vec()] {
            let said = answer(Agent::Gemini, Ok(bytes));
            assert_eq!(said.code, 2);
            assert!(said.out.contains("\"deny\""), "{said:?}");
        }
        let long = read_bounded(std::io::repeat(b' '));
        assert_eq!(answer(Agent::Claude, long).code, 2);
    }

    #[test]
    fn tools_that_are_no_shell_are_not_spoken_of() {
        let call = br#"{"cwd":"/w","tool_name":"Read","tool_input":{"file_path":"/x"}}"#;
        let said = answer(Agent::Claude, Ok(call.to_vec()));
        assert_eq!((said.out.as_str(), said.code), ("{}", 0));
    }

    #[test]
    fn paths_are_quoted_where_a_shell_would_read_them() {
        assert_eq!(plain_or_quoted("/usr/local/bin/runner"), "/usr/local/bin/runner");
        assert_eq!(plain_or_quoted("/a b/runner"), "'/a b/runner'");
    }
}
