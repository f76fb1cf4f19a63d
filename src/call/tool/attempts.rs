//! Whether a tool that failed is tried again, after which pause, and with how much time.
//!
//! | what went wrong | what happens |
//! | --- | --- |
//! | a denial, a missing approval, a safety violation, a cancelled call | never again |
//! | `rate_limit_exceeded` | again, after the time that the error says |
//! | `timeout` | again, with twice the time, up to the policy's |
//! | `authentication_expired` | once more: each attempt is a fresh sandbox, so `initialize` runs anew |
//! | a code that the policy for retries names, or that can pass by itself if it names none | again |
//!
//! It reads no clock and waits for nothing: how much time is left is told, and the pause is an answer.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::outcome::MARK;
use crate::call::details::{Details, Source, Thrown};
use crate::call::result::ErrorObject;
use crate::codes::{self, Code, Group};
use crate::exit::Status;
use crate::tool::RetryPolicy;

/// The longest time that an error of a service can make us wait.
const SAID_MOST: Duration = Duration::from_secs(600);

/// What is about safety, beside what policies decide: trying again changes nothing, and may be what an attacker wants.
const NEVER: &[Code] = &[
    Code::AccessDenied,
    Code::ApprovalNeeded,
    Code::ApprovalDenied,
    Code::ApprovalFailed,
    Code::PathEscape,
    Code::ProtectedPath,
    Code::SpecialFile,
    Code::NetDenied,
    Code::NetAddress,
    Code::NetRedirect,
    Code::ToolDigestMismatch,
    Code::SandboxWeaker,
    Code::MountIdentity,
    Code::ProtocolError,
    Code::Cancelled,
    Code::OutputClosed,
];

/// One attempt, as the result tells it.
#[derive(Debug, Clone, Serialize)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// How it ended.
    pub status: Status,
    /// The code of its error, as the tool or we call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `tool` if the code is the tool's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Milliseconds that were waited before it.
    pub waited_ms: u64,
    /// Milliseconds that it took.
    pub duration_ms: u64,
}

/// What comes after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing: this is the result.
    Stop,
    /// Another attempt.
    Again {
        /// After this pause.
        pause: Duration,
        /// With this much time, in milliseconds.
        wall: u64,
    },
}

/// What decides about the next attempt.
pub(super) struct Plan<'a> {
    /// The policy for retries.
    pub policy: &'a RetryPolicy,
    /// The most time that an attempt can get, in milliseconds.
    pub longest: u64,
}

impl Plan<'_> {
    /// What comes after attempt number `attempt`, which had `wall` milliseconds. `left` is how much time the whole call
    /// still has, if that is bounded. `random` is between 0 and 1.
    pub fn next(
        &self,
        attempt: u32,
        status: Status,
        error: Option<&ErrorObject>,
        wall: u64,
        left: Option<Duration>,
        random: f64,
    ) -> Next {
        let Some(error) = error else { return Next::Stop };
        let code = Said::of(error);
        if attempt > self.policy.retries || !self.retries(&code, status, error, attempt) {
            return Next::Stop;
        }
        let pause = match code {
            Said::Ours(Code::RateLimitExceeded) => {
                said(error).unwrap_or_else(|| self.policy.pause(attempt, random))
            }
            Said::Ours(Code::AuthenticationExpired) => Duration::ZERO,
            _ => self.policy.pause(attempt, random),
        };
        if left.is_some_and(|left| left <= pause) {
            return Next::Stop;
        }
        let wall = match code {
            Said::Ours(Code::Timeout) => wall.saturating_mul(2).min(self.longest),
            _ => wall,
        };
        Next::Again { pause, wall }
    }

    fn retries(&self, code: &Said, status: Status, error: &ErrorObject, attempt: u32) -> bool {
        let decided = matches!(status, Status::Denied | Status::NeedsApproval | Status::Cancelled);
        if decided || code.is_about_safety() || code.is_decision() {
            return false;
        }
        let named = |list: &[String]| list.iter().any(|word| Said::word(word) == *code);
        if named(&self.policy.never) {
            return false;
        }
        match (&self.policy.only, code) {
            (_, Said::Ours(Code::AuthenticationExpired)) => attempt == 1,
            (Some(only), _) => named(only),
            (None, Said::Ours(code)) => error.recoverable || code.can_pass(),
            (None, Said::Theirs(_)) => error.recoverable,
        }
    }
}

/// Whether another tool may stand in: it failed by itself, and not by a decision.
pub(super) fn may_fall_back(status: Status, error: Option<&ErrorObject>) -> bool {
    let failed = matches!(
        status,
        Status::Failed | Status::Timeout | Status::Oom | Status::Limit | Status::Error
    );
    failed && error.is_none_or(|error| !Said::of(error).is_about_safety())
}

/// A code as it decides about another attempt. What a tool threw is what the tool calls it.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// One of runner's codes, in any known spelling.
    Ours(Code),
    /// Another word of the tool's, in small letters.
    Theirs(String),
}

impl Said {
    fn of(error: &ErrorObject) -> Self {
        let said = said_code(error);
        Self::word(said.strip_prefix(MARK).unwrap_or(said))
    }

    fn word(word: &str) -> Self {
        codes::find(word).map_or_else(|| Self::Theirs(word.to_ascii_lowercase()), Self::Ours)
    }

    fn is_about_safety(&self) -> bool {
        matches!(self, Self::Ours(code) if NEVER.contains(code))
    }

    fn is_decision(&self) -> bool {
        matches!(self, Self::Ours(code) if code.row().group == Group::Decision)
    }
}

/// The code of an error as it is told: ours, or what the tool calls what it threw.
pub(super) fn said_code(error: &ErrorObject) -> &str {
    let thrown = thrown(error).and_then(|thrown| thrown.code.as_deref());
    thrown.unwrap_or(error.code.as_str())
}

/// Whose word the code is, if it is not ours.
pub(super) fn source(error: &ErrorObject) -> Option<Source> {
    thrown(error)?.source
}

/// What a tool threw by itself, if that is what went wrong.
fn thrown(error: &ErrorObject) -> Option<&Thrown> {
    error.details.as_ref()?.thrown().filter(|_| error.code == Code::ToolError)
}

/// How long an error says to wait: in its data, or in its words.
fn said(error: &ErrorObject) -> Option<Duration> {
    let data = error.details.as_ref().and_then(Details::data);
    let figure = |key: &str| data.and_then(|data| data.get(key)).and_then(Value::as_f64);
    let seconds = figure("retryAfter").or_else(|| figure("retry_after"));
    let seconds = seconds.or_else(|| figure("retryAfterMs").map(|it| it / 1e3)).or_else(|| {
        let text = error.message.to_ascii_lowercase();
        let (_, after) = text.split_once("retry after ")?;
        after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })?;
    Some(Duration::try_from_secs_f64(seconds).ok()?.min(SAID_MOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error(code: &str, message: &str, data: Value) -> ErrorObject {
        ErrorObject {
            code: Code::ToolError,
            message: message.to_owned(),
            recoverable: codes::find(code).is_some_and(Code::can_pass),
            suggestion: None,
            rule: None,
            stack: None,
            details: Some(Details::Thrown(Thrown {
                source: None,
                code: Some(code.to_owned()),
                data: Some(data),
            })),
        }
    }

    fn next(policy: &RetryPolicy, attempt: u32, error: &ErrorObject) -> Next {
        let plan = Plan { policy, longest: 5_000 };
        plan.next(attempt, Status::Failed, Some(error), 2_000, None, 0.5)
    }

    fn again(pause: u64, wall: u64) -> Next {
        Next::Again { pause: Duration::from_millis(pause), wall }
    }

    #[test]
    fn the_lists_decide_in_anybodys_spelling() {
        let quick = RetryPolicy::by_word("QUICK").unwrap();
        for code in ["NETWORK_ERROR", "network", "NETWORK"] {
            assert_eq!(
                next(&quick, 1, &error(code, "", Value::Null)),
                again(1_000, 2_000),
                "{code}"
            );
        }
        assert_eq!(next(&quick, 4, &error("NETWORK", "", Value::Null)), Next::Stop);
        assert_eq!(next(&quick, 1, &error("SERVER_ERROR", "", Value::Null)), Next::Stop);
        let except = RetryPolicy { never: vec!["NETWORK".to_owned()], ..quick };
        assert_eq!(next(&except, 1, &error("NETWORK_ERROR", "", Value::Null)), Next::Stop);
        let any = RetryPolicy { retries: 1, ..RetryPolicy::default() };
        assert_eq!(next(&any, 1, &error("API_ERROR", "", Value::Null)), again(0, 2_000));
        assert_eq!(next(&any, 1, &error("QUOTA_EXCEEDED", "", Value::Null)), Next::Stop);
    }

    #[test]
    fn safety_is_never_tried_again_whatever_a_tool_lists() {
        let greedy = RetryPolicy {
            retries: 5,
            only: Some(
                NEVER
                    .iter()
                    .map(ToString::to_string)
                    .chain(["PERMISSION_DENIED".to_owned(), "no_rule".to_owned()])
                    .collect(),
            ),
            ..RetryPolicy::default()
        };
        for code in NEVER.iter().map(|code| code.as_str()).chain([
            "SECURITY_VIOLATION",
            "USER_REJECTED",
            "no_rule",
            "key_material",
        ]) {
            assert_eq!(next(&greedy, 1, &error(code, "", Value::Null)), Next::Stop, "{code}");
        }
    }

    #[test]
    fn each_code_has_its_own_way_to_recover() {
        let standard = RetryPolicy::by_word("STANDARD").unwrap();
        let limited = |message: &str, data| next(&standard, 1, &error("RATE_LIMIT", message, data));
        assert_eq!(limited("", json!({"retryAfter": 7})), again(7_000, 2_000));
        assert_eq!(limited("", json!({"retryAfterMs": 250})), again(250, 2_000));
        assert_eq!(limited("Retry after 3 seconds", Value::Null), again(3_000, 2_000));
        assert_eq!(limited("", json!({"retryAfter": 1e9})), again(600_000, 2_000));
        assert_eq!(limited("", Value::Null), again(1_000, 2_000));
        let slow = error("TIMEOUT", "", Value::Null);
        assert_eq!(next(&standard, 1, &slow), again(1_000, 4_000));
        assert_eq!(
            Plan { policy: &standard, longest: 5_000 }.next(
                2,
                Status::Timeout,
                Some(&slow),
                4_000,
                None,
                0.5
            ),
            again(2_000, 5_000)
        );
        let expired = error("AUTHENTICATION_EXPIRED", "", Value::Null);
        assert_eq!(next(&standard, 1, &expired), again(0, 2_000));
        assert_eq!(next(&standard, 2, &expired), Next::Stop);
    }

    /// The pauses before each attempt of a tool that throws `code` again and again, in milliseconds. Each attempt takes a
    /// second of the time that the call has.
    fn pauses(retry: &Value, code: &str, mut left: Option<Duration>, random: f64) -> Vec<u128> {
        let policy = RetryPolicy::read(retry).unwrap();
        let (plan, error) =
            (Plan { policy: &policy, longest: 5_000 }, error(code, "", Value::Null));
        let mut pauses = vec![0];
        for attempt in 1.. {
            left = left.map(|left| left.saturating_sub(Duration::from_secs(1)));
            match plan.next(attempt, Status::Failed, Some(&error), 2_000, left, random) {
                Next::Stop => break,
                Next::Again { pause, .. } => {
                    pauses.push(pause.as_millis());
                    left = left.map(|left| left.saturating_sub(pause));
                }
            }
        }
        pauses
    }

    #[test]
    fn each_kind_of_retry_waits_as_it_says() {
        let with = |retries: u32, backoff| json!({ "maxRetries": retries, "backoff": backoff });
        let fixed = json!({ "type": "fixed", "delay": 20 });
        let linear = json!({ "type": "linear", "baseDelay": 10, "increment": 30 });
        let bounded =
            json!({ "type": "exponential", "baseDelay": 20, "maxDelay": 30, "multiplier": 10 });
        let jittered =
            json!({ "type": "jittered", "base": { "type": "fixed", "delay": 100 }, "jitter": 0.5 });
        let old = json!({ "maxAttempts": 3, "backoffMs": 10, "backoffMultiplier": 3 });
        for (retry, random, expected) in [
            (json!({}), 0.5, vec![0]),
            (json!("NONE"), 0.5, vec![0]),
            (with(2, fixed), 0.5, vec![0, 20, 20]),
            (with(3, linear), 0.5, vec![0, 10, 40, 70]),
            (with(2, bounded), 0.5, vec![0, 20, 30]),
            (old, 0.5, vec![0, 10, 30]),
            (with(1, jittered.clone()), 0.0, vec![0, 50]),
            (with(1, jittered), 1.0, vec![0, 150]),
            (json!("QUICK"), 0.5, vec![0, 1_000, 1_000, 1_000]),
            (json!("STANDARD"), 0.5, vec![0, 1_000, 2_000, 4_000]),
            (json!("AGGRESSIVE"), 0.5, vec![0, 500, 1_000, 2_000, 4_000, 8_000]),
            (json!({ "maxRetries": 3, "retryableErrors": ["TIMEOUT"] }), 0.5, vec![0]),
            (json!({ "maxRetries": 3, "nonRetryableErrors": ["NETWORK"] }), 0.5, vec![0]),
        ] {
            assert_eq!(pauses(&retry, "NETWORK_ERROR", None, random), expected, "{retry}");
        }
    }

    #[test]
    fn no_pause_lasts_until_the_call_must_be_over() {
        let retry = json!({ "maxRetries": 10, "backoff": { "type": "fixed", "delay": 9_000 } });
        let within = |seconds| {
            let left = Some(Duration::from_secs(seconds));
            pauses(&retry, "NETWORK", left, 0.5)
        };
        // Each attempt takes a second. A pause of all that is left would leave nothing for the attempt after it.
        assert_eq!(within(0), [0]);
        assert_eq!(within(10), [0]);
        assert_eq!(within(11), [0, 9_000]);
        assert_eq!(within(20), [0, 9_000]);
        assert_eq!(within(21), [0, 9_000, 9_000]);
        assert_eq!(pauses(&retry, "NETWORK", None, 0.5).len(), 11);
    }
}
