use std::time::Duration;

use runner_policy::limits::{Isolation, Limit};

use super::*;
use crate::broker::{BrokerUsage, ProtocolError};
use crate::exit::Status;

fn served(end: Result<ToolEnd, ServeError>, refused: &[Code]) -> Served {
    let requests = refused.iter().map(|code| Brokered {
        id: 1,
        method: "file.read",
        object: "a".to_owned(),
        refused: Some(*code),
        rule: None,
        suggestion: None,
        approval: None,
        bytes_in: 0,
        bytes_out: 0,
        duration: Duration::ZERO,
        call: None,
    });
    Served { end, usage: BrokerUsage::default(), requests: requests.collect() }
}

fn thrown(code: Option<&str>) -> Result<ToolEnd, ServeError> {
    Ok(ToolEnd::Error(ToolError {
        name: "TypeError".to_owned(),
        message: "no".to_owned(),
        code: code.map(str::to_owned),
        stack: None,
        data: None,
        recoverable: None,
    }))
}

fn status(verdict: Verdict, served: Served) -> (Status, u8, Option<String>) {
    let judged = judge(&verdict, served, &Limits::preset(Isolation::Strict), Words::Theirs);
    (judged.ending.status, judged.ending.exit.get(), judged.error.map(|error| error.code))
}

#[test]
fn a_value_counts_whatever_the_exit_code_after_it() {
    for verdict in [Verdict::Completed, Verdict::Failed { status: 3 }] {
        let value = Ok(ToolEnd::Value(json!(1)));
        assert_eq!(status(verdict, served(value, &[])), (Status::Completed, 0, None));
    }
}

#[test]
fn a_limit_of_the_sandbox_wins_over_a_value() {
    let value = Ok(ToolEnd::Value(json!(1)));
    let (status, exit, code) = status(Verdict::Limit(Limit::Pids), served(value, &[]));
    assert_eq!((status, exit, code.as_deref()), (Status::Limit, 121, Some("limit")));
}

#[test]
fn a_broken_talk_wins_over_everything() {
    let broken = Err(ProtocolError::AfterResult.into());
    let (status, exit, _) = status(Verdict::Timeout, served(broken, &[]));
    assert_eq!((status, exit), (Status::Error, 125));
}

#[test]
fn a_refusal_that_was_passed_on_is_a_denial() {
    let passed = served(thrown(Some("access_denied")), &[Code::AccessDenied]);
    let (status, exit, code) = status(Verdict::Completed, passed);
    assert_eq!((status, exit, code.as_deref()), (Status::Denied, 126, Some("access_denied")));
}

#[test]
fn a_refusal_that_never_was_is_the_tools_own_error() {
    let forged = served(thrown(Some("approval_needed")), &[]);
    let (status, exit, code) = status(Verdict::Completed, forged);
    assert_eq!((status, exit, code.as_deref()), (Status::Failed, 1, Some("tool_error")));
}

#[test]
fn a_tools_own_word_brings_its_advice_and_never_ours() {
    let advice = |code: &str, refused: &[Code]| {
        let served = served(thrown(Some(code)), refused);
        let judged =
            judge(&Verdict::Completed, served, &Limits::preset(Isolation::Strict), Words::Theirs);
        let error = judged.error.unwrap();
        (error.recoverable, error.suggestion.unwrap_or_default())
    };
    assert_eq!(advice("RATE_LIMIT_EXCEEDED", &[]), (true, "Wait, then try again.".to_owned()));
    assert!(advice("approval_needed", &[Code::ApprovalNeeded]).1.contains("--approve"));
    assert!(!advice("approval_needed", &[]).1.contains("--approve"));
    assert!(!advice("USER_REJECTED", &[]).1.contains("--approve"));
    // Whether it can pass is a fact about the word, whoever says it.
    for (code, passes) in [("NETWORK_ERROR", true), ("TIMEOUT", true), ("VALIDATION_ERROR", false)]
    {
        assert_eq!(advice(code, &[]).0, passes, "{code}");
    }
}

#[test]
fn a_process_that_just_ends_has_no_result() {
    let ended = served(Err(ServeError::NoResult), &[]);
    let judged = judge(
        &Verdict::Failed { status: 7 },
        ended,
        &Limits::preset(Isolation::Strict),
        Words::Theirs,
    );
    assert_eq!((judged.ending.status, judged.ending.exit.get()), (Status::Failed, 1));
    assert!(judged.error.unwrap().message.contains("exit code 7"));
}
