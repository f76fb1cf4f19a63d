//! `runner bench`: what a call costs on this machine, beside what others cost in the same run.
//!
//! Duty: run this program as a user would, in turn with its peers, and give medians and ratios: a busy moment then
//! weighs on all of them. Non-goals: judging the figures. Everything happens in a folder of its own, with a
//! state, a configuration and a pool of its own, which are gone afterwards. A peer that is not installed is
//! left out, and that is said.

mod call;
mod error;
mod inside;
mod memory;
mod ours;
mod overdue;
mod peers;
mod place;
mod quiet;
mod report;
mod sample;
mod writes;

pub use error::BenchError;
pub use report::{Report, Row, Unit};

use crate::call::Context;
use crate::engine::Facts;
use place::Place;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Two or three minutes: fewer rounds, no large workspaces.
    Quick,
    /// Everything.
    Full,
}

impl Extent {
    /// Rounds in which each command runs once.
    const fn rounds(self) -> usize {
        match self {
            Self::Quick => 10,
            Self::Full => 30,
        }
    }

    /// Calls that are made from many clients at once.
    const fn crowd(self) -> usize {
        match self {
            Self::Quick => 100,
            Self::Full => 1_000,
        }
    }

    /// Files of the workspaces in which a claim is measured.
    const fn trees(self) -> &'static [usize] {
        match self {
            Self::Quick => &[1_000, 10_000],
            Self::Full => &[1_000, 10_000, 100_000, 300_000],
        }
    }
}

/// Measures beside the engine that has these `facts`. `tell` hears what is measured next.
///
/// # Errors
/// The engine does not answer, or a command that must go well did not.
pub fn run(
    extent: Extent,
    engine: &str,
    facts: &Facts,
    context: &Context,
    tell: &mut dyn FnMut(&str),
) -> Result<Report, BenchError> {
    let place = Place::make()?;
    let mut report = Report::new(engine, facts);
    ours::calls(&place, extent, &mut report, tell)?;
    if facts.runtimes.iter().any(|name| name == ours::GVISOR) {
        ours::gvisor(&place, extent, &mut report, tell)?;
    } else {
        report.left_out("gVisor: the engine does not know `runsc`");
    }
    ours::broker(&place, &mut report, tell)?;
    ours::listing(&place, extent, &mut report, tell)?;
    tell("decisions of a policy, compiling");
    quiet::quiet();
    inside::decisions(&place, &mut report, context)?;
    inside::compile(&place, extent, &mut report)?;
    memory::waiting(&place, &mut report, tell)?;
    writes::writes(&place, extent, &mut report, tell)?;
    ours::trees(&place, extent, &mut report, tell)?;
    // A crowd leaves engine and kernel with much to tidy up: nothing is measured after it.
    ours::crowd(&place, extent, &mut report, tell)?;
    match quiet::never_idle() {
        0 => {}
        busy => report.note(format!("the machine was busy before {busy} of the samples")),
    }
    Ok(report)
}
