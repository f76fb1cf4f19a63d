//! What a tool ran in, and what a result says of it.

use std::time::Duration;

use runner_policy::limits::Limits;

use crate::audit::Redactor;
use crate::broker::Served;
use crate::call::launch::farewell::Farewell;
use crate::call::launch::outcome::Outcome;
use crate::call::launch::run::Keep;
use crate::call::metadata::Metadata;
use crate::call::result::Stream;
use crate::call::shortfall::{self, Ended, Shortfall};
use crate::engine::plan::SandboxPlan;
use crate::sandbox::outcome::Verdict;

/// What came of an attempt.
pub(super) struct Ran {
    /// How the talk ended.
    pub served: Served,
    /// What it ran in.
    pub within: Within,
    /// What the sandboxes of its commands kept from them.
    pub shortfalls: Vec<Shortfall>,
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
    pub(super) fn metadata(&self) -> Metadata {
        match self {
            Self::Sandbox { outcome, plan, engine } => Metadata::of_sandbox(plan, engine, outcome),
            Self::Nothing { .. } => Metadata::default(),
            Self::Ourselves { limits, duration, .. } => Metadata::of_built_in(limits, *duration),
        }
    }

    /// What its own sandbox kept from it. `keep` is what a result has of its output, if it has that.
    pub(super) fn shortfalls(&self, keep: Option<Keep>) -> Vec<Shortfall> {
        match self {
            Self::Sandbox { outcome, plan, .. } => {
                shortfall::of_sandbox(&Ended { outcome, plan, keep })
            }
            Self::Nothing { .. } | Self::Ourselves { .. } => Vec::new(),
        }
    }

    /// What it printed, without secrets, and what is left of it. A built-in tool prints nothing, and leaves nothing.
    pub(super) fn rest(self, redactor: &Redactor) -> ([Option<Stream>; 2], Option<Farewell>) {
        match self {
            Self::Sandbox { outcome, .. } => {
                let Outcome { stdout, stderr, farewell, .. } = *outcome;
                let shown = |kept| Some(Stream::new(kept).redacted(redactor));
                ([stdout, stderr].map(shown), farewell)
            }
            Self::Nothing { .. } | Self::Ourselves { .. } => ([None, None], None),
        }
    }
}
