use std::time::Duration;

use runner_policy::limits::{Isolation, Limit};

use serde_json::json;

use super::*;
use crate::broker::{BrokerUsage, ProtocolError};
use crate::exit::Status;

fn served(end: Result<ToolEnd, ServeError>, refused: &[Code]) -> Served {
    let requests = refused.iter().map(|code| Brokered {
        id: 1,
        method: "file.read",
        object: "a".to_owned(),
        refused: Some(*code),
        message: Some("our words".to_owned()),
        rule: None,
        suggestion: None,
        approval: None,
        bytes_in: 0,
        bytes_out: 0,
        duration: Duration::ZERO,
        call: None,
    });
    Served { end, cost: None, usage: BrokerUsage::default(), requests: requests.collect() }
}

fn thrown(code: Option<&str>, refused: Option<u32>) -> Result<ToolEnd, ServeError> {
    Ok(ToolEnd::Error(ToolError {
        refused,
        name: "TypeError".to_owned(),
        message: "no".to_owned(),
        code: code.map(str::to_owned),
        stack: None,
        data: None,
        recoverable: None,
    }))
}

fn judged(verdict: &Verdict, served: Served) -> Judged {
    let name = "t".parse().unwrap();
    judge(verdict, served, &Limits::preset(Isolation::Strict), Words::Theirs, &name)
}

fn status(verdict: Verdict, served: Served) -> (Status, u8, Option<String>) {
    let judged = judged(&verdict, served);
    (
        judged.ending.status,
        judged.ending.exit.get(),
        judged.error.map(|error| error.code.to_string()),
    )
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
    let passed = served(thrown(Some("anything"), Some(1)), &[Code::AccessDenied]);
    let error = judged(&Verdict::Completed, passed).error.unwrap();
    assert_eq!(error.message, "our words", "nothing that the tool says stands under our code");
    let passed = served(thrown(None, Some(1)), &[Code::AccessDenied]);
    let (status, exit, code) = status(Verdict::Completed, passed);
    assert_eq!((status, exit, code.as_deref()), (Status::Denied, 126, Some("access_denied")));
}

#[test]
fn no_code_that_a_tool_throws_decides_status_or_exit_code() {
    let (access, approval) = (Code::AccessDenied, Code::ApprovalNeeded);
    for (code, names, refused) in [
        ("approval_needed", None, None),
        ("approval_needed", None, Some(approval)),
        ("access_denied", None, Some(access)),
        ("access_denied", Some(2), Some(access)),
        ("timeout", Some(1), None),
        ("oom", None, None),
        ("cancelled", None, None),
        ("FLAKY", None, None),
    ] {
        let list: Vec<Code> = refused.into_iter().collect();
        let forged = served(thrown(Some(code), names), &list);
        let (status, exit, said) = status(Verdict::Completed, forged);
        assert_eq!(
            (status, exit, said.as_deref()),
            (Status::Failed, 1, Some("tool_error")),
            "{code}"
        );
    }
}

#[test]
fn a_tools_own_code_says_whose_it_is_and_is_none_of_ours() {
    let told = |code: &str| {
        let judged = judged(&Verdict::Completed, served(thrown(Some(code), None), &[]));
        let details = json!(judged.error.unwrap().details);
        assert_eq!(details["source"], "tool");
        details["code"].as_str().unwrap().to_owned()
    };
    for code in ["access_denied", "timeout", "no_rule", "oom", "tool_digest_mismatch", "tool:x"] {
        assert_eq!(told(code), format!("tool:{code}"));
    }
    for code in ["FLAKY", "TIMEOUT", "rate_limit_exceeded", "never_settled", "tool_failed"] {
        assert_eq!(told(code), code);
    }
}

#[test]
fn a_result_that_does_not_fit_is_an_error_whoever_finds_it() {
    let issue = Issue { pointer: "/a".to_owned(), message: "not\na number".to_owned() };
    let found = served(Ok(ToolEnd::Invalid(vec![issue])), &[]);
    let judged = judged(&Verdict::Completed, found);
    assert_eq!((judged.ending.status, judged.ending.exit.get()), (Status::Error, 125));
    let error = judged.error.unwrap();
    assert_eq!(error.code, "invalid_result");
    assert!(error.message.contains("/a") && error.message.contains("not a number"), "{error:?}");
}

#[test]
fn a_cost_that_is_no_price_is_an_error_unless_more_went_wrong() {
    let with =
        |cost: Value| Served { cost: Some(cost), ..served(Ok(ToolEnd::Value(json!(1))), &[]) };
    for cost in [json!(-1), json!("NaN"), json!(null), json!({})] {
        let (status, exit, code) = status(Verdict::Completed, with(cost.clone()));
        let expected = (Status::Error, 125, Some("invalid_cost"));
        assert_eq!((status, exit, code.as_deref()), expected, "{cost}");
        assert_eq!(self::status(Verdict::Timeout, with(cost)).0, Status::Timeout);
    }
    assert_eq!(status(Verdict::Completed, with(json!(0.5))), (Status::Completed, 0, None));
}

#[test]
fn a_tools_own_word_brings_its_advice_and_never_ours() {
    let advice = |code: &str, refused: &[Code]| {
        let names = (!refused.is_empty()).then_some(1);
        let served = served(thrown(Some(code), names), refused);
        let error = judged(&Verdict::Completed, served).error.unwrap();
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
    let judged = judged(&Verdict::Failed { status: 7 }, ended);
    assert_eq!((judged.ending.status, judged.ending.exit.get()), (Status::Failed, 1));
    assert!(judged.error.unwrap().message.contains("exit code 7"));
}
