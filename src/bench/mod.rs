//! `runner bench`: what a call costs on this machine, beside what others cost in the same run.
//!
//! Duty: run this program as a user would, on each engine that can be used, in turn with its peers, and give medians and
//! ratios: a busy moment then weighs on all of them. Non-goals: judging the figures. Everything happens in a folder of
//! its own, with a configuration, a state and a pool for each engine, which are gone afterwards. A peer that is not
//! installed and an engine that cannot be used are left out, and that is said. A measurement that breaks is named, and
//! takes nothing away from the others.

mod call;
mod calls;
mod crowd;
mod deadline;
mod engines;
mod error;
mod folder;
mod idle;
mod inside;
mod memory;
mod peers;
mod report;
mod sample;
mod server;
mod tools;
mod trees;
mod turns;
mod writes;

pub use engines::{Engines, find as find_engines};
pub use error::BenchError;
pub use report::{Machine, Report, Row, Unit};

use std::time::Duration;

use crate::call::Context;
use crate::engine::Life;
use crate::pool::Class;
use calls::waits;
use folder::BenchFolder;

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

    /// Rounds of what takes longest.
    const fn slow_rounds(self) -> usize {
        match self {
            Self::Quick => 5,
            Self::Full => 10,
        }
    }

    /// Rounds of what works on ten thousand files.
    const fn large_rounds(self) -> usize {
        match self {
            Self::Quick => 3,
            Self::Full => 9,
        }
    }

    /// Calls in one large workspace.
    const fn per_tree(self) -> usize {
        match self {
            Self::Quick => 7,
            Self::Full => 15,
        }
    }

    /// How long so many clients call.
    const fn crowd(self) -> Duration {
        match self {
            Self::Quick => Duration::from_secs(3),
            Self::Full => Duration::from_secs(15),
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

/// Measures on these engines. `tell` hears what is measured next. What breaks is named in the report, beside all that was
/// measured.
///
/// # Errors
/// There is no place to measure in.
pub fn run(
    extent: Extent,
    engines: Engines,
    context: &Context,
    tell: &mut dyn FnMut(&str),
) -> Result<Report, BenchError> {
    let Engines { usable: mut engines, missing } = engines;
    let mut report = Report::new(&engines);
    let place = BenchFolder::make(engines.iter().map(|engine| engine.name))?;
    for (name, why) in missing {
        report.left_out(&format!("calls on {name}: {why}"));
    }
    engines.retain(|engine| {
        let site = place.site(engine.name);
        report.attempt(&site.row("first calls"), calls::first(site, tell))
    });
    calls::calls(&place, &engines, extent, &mut report, tell);
    for engine in &engines {
        let site = place.site(engine.name);
        let done = memory::peak(site, &mut report, tell);
        report.attempt(&site.row("peak memory of a call"), done);
        let done = tools::broker(site, waits(engine, Class::Tool), &mut report, tell);
        report.attempt(&site.row("broker round trip (exists)"), done);
        if engine.life == Life::Daemon {
            let done = memory::waiting(site, &mut report, tell);
            report.attempt(&site.row("memory of sandboxes that wait"), done);
        }
    }
    if let Some(engine) = engines.first() {
        let done = tools::listing(place.site(engine.name), extent, &mut report, tell);
        report.attempt("runner tool list", done);
    }
    tell("decisions of a policy, compiling");
    idle::wait_until_idle();
    let done = inside::decisions(&place, &mut report, context);
    report.attempt("decisions", done);
    let done = inside::compile(&place, extent, &mut report);
    report.attempt("compile a small tool", done);
    writes::writes(&place, &engines, extent, &mut report, tell);
    let done = trees::trees(&place, &engines, extent, &mut report, tell);
    report.attempt("large workspaces", done);
    calls::gvisor(&place, &engines, extent, &mut report, tell);
    // A crowd leaves engine and kernel with much to tidy up: nothing is measured after it.
    crowd::crowd(&place, &engines, extent, &mut report, tell);
    // Its rows stand beside those of the crowd; what has no daemon leaves little to tidy up.
    for engine in engines.iter().filter(|engine| engine.life == Life::Ours) {
        let site = place.site(engine.name);
        let done = server::server(site, extent, &mut report, tell);
        report.attempt(&site.row("mcp run_command"), done);
    }
    match idle::never_idle() {
        0 => {}
        busy => report.note(format!("the machine was busy before {busy} of the samples")),
    }
    Ok(report)
}
