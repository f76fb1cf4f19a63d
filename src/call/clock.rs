//! How long a call may take, and which of several bounds ended one that ran out of time, so that its reader knows
//! what to raise.

use std::fmt;
use std::time::Duration;

use runner_policy::limits::{Limit, Limits};
use tokio::time::{Instant, sleep_until};

use super::result::{CallResult, ErrorObject};
use crate::codes::Code;
use crate::config::Source;
use crate::exit::{Ending, Kind, Status};
use crate::sandbox::cancel::Cancel;
use crate::sandbox::outcome::Verdict;

/// When a call must be over. It begins once the call has its place among those that run, and covers all that follows:
/// asking the engine, looking through the workspace, making the sandbox, sending the command, running it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// The `wall` limit, from now on.
    pub fn of(limits: &Limits) -> Self {
        Self(Instant::now() + Duration::from_millis(limits.get(Limit::Wall)))
    }

    /// The moment.
    pub fn at(self) -> Instant {
        self.0
    }

    /// What comes of `work`, or how the call ends if that takes too long or is cancelled; then `work` is dropped.
    pub async fn hold<T>(
        self,
        cancel: &mut Cancel,
        work: impl Future<Output = T>,
    ) -> Result<T, Verdict> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            cause = cancel.asked() => Err(Verdict::Cancelled(cause)),
            () = sleep_until(self.0) => Err(Verdict::Timeout),
        }
    }
}

/// What set the time that a call had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clock {
    /// `limits.wall` of the policy with this name.
    Policy(String),
    /// The caller: `--timeout`, or `--limit wall=…`.
    Caller,
    /// `maxExecutionTime` of the configuration.
    Configuration(Source),
    /// The tool's own `timeout`.
    Tool,
    /// `timeout` of the MCP server with this name, in the configuration.
    Server(String),
    /// `limits.totalTime` of the configuration, over all attempts.
    Total(Duration),
}

impl Clock {
    /// Names what was too short in the result of a call that had `wall` milliseconds.
    pub fn blame(&self, result: &mut CallResult, wall: u64) {
        let Some(error) = result.error.as_mut().filter(|_| result.status == Status::Timeout) else {
            return;
        };
        let shown = |millis: u64| Limit::Wall.row().unit.show(millis);
        let (code, message) = match self {
            Self::Total(time) => {
                result.ending = Ending::of_kind(Kind::Timeout, Code::TotalTimeExceeded);
                let time = shown(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
                let message =
                    format!("with its waiting and retries the call took longer than {time}");
                (Code::TotalTimeExceeded, message)
            }
            _ => (Code::Timeout, format!("the call ran longer than {}", shown(wall))),
        };
        *error = ErrorObject { code, message, suggestion: Some(self.to_string()), ..error.clone() };
    }
}

/// What to do about it.
impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(name) => {
                write!(
                    f,
                    "raise `limits.wall` of the policy `{name}`, or choose another with --policy"
                )
            }
            Self::Caller => f.write_str("give it more time with --timeout"),
            Self::Configuration(source) => {
                write!(f, "raise `maxExecutionTime` of the configuration{}", place(source))
            }
            Self::Tool => f.write_str(
                "the tool's own `timeout` is that short: ask for less at once, or raise it there",
            ),
            Self::Server(name) => {
                write!(f, "raise `timeout` of `mcp.servers.{name}` in the configuration")
            }
            Self::Total(_) => {
                f.write_str("raise `limits.totalTime` of the configuration, or retry less")
            }
        }
    }
}

fn place(source: &Source) -> String {
    match (&source.file, source.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        (Some(file), None) => format!(" ({file})"),
        (None, _) => String::new(),
    }
}
