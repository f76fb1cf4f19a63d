//! What a tool ran in, and what a result says of it.

use std::time::Duration;

use runner_policy::limits::{Limit, Limits};
use serde_json::{Map, Value, json};

use crate::audit::Redactor;
use crate::broker::Served;
use crate::call::launch::farewell::Farewell;
use crate::call::launch::outcome::Outcome;
use crate::call::result::{Stream, metadata};
use crate::engine::plan::SandboxPlan;
use crate::sandbox::outcome::Verdict;

/// What came of an attempt.
pub(super) struct Ran {
    /// How the talk ended.
    pub served: Served,
    /// What it ran in.
    pub within: Within,
}

/// What a tool ran in.
pub(super) enum Within {
    /// A sandbox of its own.
    Sandbox {
        /// How it ended.
        outcome: Box<Outcome>,
        /// What it was.
        plan: Box<SandboxPlan>,
        /// What made it.
        engine: &'static str,
    },
    /// Nothing: the call ended before there was a plan for a sandbox.
    Nothing {
        /// How it ended.
        verdict: Verdict,
        /// The figures that bound it.
        limits: Limits,
    },
    /// This process: the tool is a part of it.
    Ourselves {
        /// How it ended.
        verdict: Verdict,
        /// The figures that bound it.
        limits: Limits,
        /// How long it took.
        duration: Duration,
    },
}

impl Within {
    /// How it ended, as far as what it ran in can tell.
    pub(super) fn verdict(&self) -> &Verdict {
        match self {
            Self::Sandbox { outcome, .. } => &outcome.verdict,
            Self::Nothing { verdict, .. } | Self::Ourselves { verdict, .. } => verdict,
        }
    }

    /// The figures in force.
    pub(super) fn limits(&self) -> &Limits {
        match self {
            Self::Sandbox { plan, .. } => &plan.limits,
            Self::Nothing { limits, .. } | Self::Ourselves { limits, .. } => limits,
        }
    }

    /// How it ran, as results and records tell it.
    pub(super) fn metadata(&self) -> Value {
        match self {
            Self::Sandbox { outcome, plan, engine } => metadata(plan, engine, Some(outcome)),
            Self::Nothing { .. } => Value::Null,
            Self::Ourselves { limits, duration, .. } => ourselves(limits, *duration),
        }
    }

    /// What it printed, without secrets, and what is left of it. A built-in tool prints nothing, and leaves nothing.
    pub(super) fn rest(self, redactor: &Redactor) -> ([Option<Stream>; 2], Option<Farewell>) {
        match self {
            Self::Sandbox { outcome, .. } => {
                let Outcome { stdout, stderr, farewell, .. } = *outcome;
                let streams = [("stdout", stdout), ("stderr", stderr)];
                let shown = |(name, kept)| Some(Stream::new(name, kept).redacted(redactor));
                (streams.map(shown), farewell)
            }
            Self::Nothing { .. } | Self::Ourselves { .. } => ([None, None], None),
        }
    }
}

/// The limits that hold without a sandbox: those of the broker.
const HOLDING: [Limit; 5] =
    [Limit::Wall, Limit::BrokerCalls, Limit::BrokerBytes, Limit::FileSize, Limit::FreeSpace];

/// No sandbox held it, and the result says so. What held it is the broker.
fn ourselves(limits: &Limits, duration: Duration) -> Value {
    let ms = (duration.as_secs_f64() * 1e7).round() / 1e4;
    let by_broker = |name: &str| json!({ "name": name, "enforced_by": "the broker", "status": "enforced", "why": null });
    json!({
        "duration_ms": { "run": ms, "total": ms },
        "engine": null,
        "isolation": null,
        "limits": HOLDING.map(|limit| (limit.row().key.to_owned(), Value::from(limit.row().unit.show(limits.get(limit))))).into_iter().collect::<Map<_, _>>(),
        "protections": [
            by_broker("policy of each request"),
            by_broker("limits of requests, bytes and time"),
            { "name": "sandbox of the tool", "enforced_by": null, "status": "absent", "why": "the tool is part of runner" },
        ],
        "notes": [{
            "code": "built_in",
            "text": "a built-in tool is part of runner and has no sandbox of its own; its commands have",
        }],
    })
}
