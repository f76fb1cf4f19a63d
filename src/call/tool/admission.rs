//! Before a tool runs: its credentials, and its gate.

use std::time::Duration;

use jiff::Timestamp;

use super::entries::lacks;
use super::outcome::Judged;
use super::prepare::Prepared;
use super::program::Program;
use crate::call::details::Details;
use crate::call::result::ErrorObject;
use crate::call::{CallError, CallResult};
use crate::codes::Code;
use crate::config::Limits;
use crate::exit::{Ending, Kind, Status};
use crate::ids::CallId;
use crate::queue::{Gate, Shut, Went, Why};
use crate::store::Store;
use crate::tool::shown_cost;

/// What a tool needs to have, and has not.
pub(super) fn missing_credentials(prepared: &Prepared) -> Option<Judged> {
    let auth = lacks(&prepared.definition, &prepared.scene.context.environment)?;
    let key = &auth.config_key;
    let suggestion = match &auth.setup_url {
        Some(url) => format!("set {key}; get it at {url}"),
        None => format!("set {key}"),
    };
    let name = &prepared.definition.name;
    let message = format!("the tool {name} needs credentials, and {key} is not set");
    let details =
        Details::Credentials { config_key: key.clone(), setup_url: auth.setup_url.clone() };
    let error = ErrorObject {
        suggestion: Some(suggestion),
        ..object(Code::AuthenticationRequired, message)
    };
    Some(Judged {
        ending: Ending::of_kind(Kind::Denied, Code::AuthenticationRequired),
        value: None,
        error: Some(ErrorObject { details: Some(details), recoverable: false, ..error }),
    })
}

/// Lets a call in, or says why not and when it can be.
pub(super) fn enter(
    store: &Store,
    id: &CallId,
    prepared: &Prepared,
    limits: Limits,
) -> Result<Option<(Code, Judged)>, CallError> {
    let name = &prepared.definition.name;
    let cost = prepared.definition.estimates().cost.unwrap_or(0);
    let now = crate::sys::now();
    match Gate::new(store, name, limits).enter(id, cost, now)? {
        Ok(()) => Ok(None),
        Err(shut) => Ok(Some(refusal(name.as_str(), &shut, now))),
    }
}

fn refusal(tool: &str, shut: &Shut, now: Duration) -> (Code, Judged) {
    let (code, message) = match shut.why {
        Why::Rate { most } => (
            Code::RateLimitExceeded,
            format!(
                "the tool {tool} was called {most} times in the last minute, and may not be more often"
            ),
        ),
        Why::Cost { spent, more, most } => (
            Code::CostLimitExceeded,
            format!(
                "the tool {tool} would cost {}, and of the day's {} there are {} spent",
                shown_cost(more),
                shown_cost(most),
                shown_cost(spent)
            ),
        ),
        Why::Open => (
            Code::CircuitOpen,
            format!("the tool {tool} failed too often, and is not called for a while"),
        ),
    };
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let wait = shut.retry_at.saturating_sub(now).max(0);
    let error = ErrorObject {
        suggestion: Some(format!("try again {}", when(shut.retry_at, wait))),
        details: Some(Details::Later { retry_at: shut.retry_at, retry_after_ms: wait }),
        ..object(code, message)
    };
    (code, Judged { ending: Ending::of_kind(Kind::Busy, code), value: None, error: Some(error) })
}

/// A longer wait is shown as a time of day instead of seconds.
const COUNTED: i64 = 120_000;

/// When it can be tried again, for people.
fn when(at: i64, wait: i64) -> String {
    let seconds = (wait + 999) / 1_000;
    let moment = Timestamp::from_millisecond(at).ok().filter(|_| wait > COUNTED);
    let Some(moment) = moment else { return format!("in {seconds} s") };
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let wait =
        if hours > 0 { format!("{hours} h {minutes} min") } else { format!("{minutes} min") };
    format!("in {wait}, at {}", moment.strftime("%Y-%m-%d %H:%M UTC"))
}

fn object(code: Code, message: String) -> ErrorObject {
    ErrorObject {
        code,
        message,
        recoverable: true,
        suggestion: None,
        rule: None,
        stack: None,
        details: None,
    }
}

/// What an end says about a tool. What was refused, cancelled or called wrongly says nothing. A custom tool that fails
/// may be broken; a built-in one that fails has found something wrong with what it was asked for, unless that can pass by
/// itself: a service that does not answer, an engine that breaks.
pub(super) fn went(prepared: &Prepared, result: &CallResult) -> Went {
    let passes = result.error.as_ref().is_some_and(|error| error.recoverable);
    match result.status {
        Status::Completed => Went::Well,
        Status::Failed if matches!(prepared.program, Program::BuiltIn(_)) && !passes => {
            Went::Neither
        }
        Status::Failed | Status::Timeout | Status::Oom | Status::Limit | Status::Error => {
            Went::Badly
        }
        Status::Denied | Status::NeedsApproval | Status::Cancelled => Went::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_is_told_as_a_time_of_day() {
        assert_eq!(when(0, 1_001), "in 2 s");
        assert_eq!(when(24_691_000, 24_691_000), "in 6 h 51 min, at 1970-01-01 06:51 UTC");
        assert_eq!(when(600_000, 600_000), "in 10 min, at 1970-01-01 00:10 UTC");
    }
}
