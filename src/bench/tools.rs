//! Parts of tools' calls: round trips to the broker, and lists of many tools.

use std::time::Duration;

use serde_json::Value;

use super::Extent;
use super::call::{Waits, read};
use super::calls::is_installed;
use super::error::BenchError;
use super::folder::Site;
use super::idle::wait_until_idle;
use super::report::{Report, Row};
use super::sample::{Samples, measured, timed};

/// Tools of a long list.
const LISTED: usize = 200;

/// Whether a custom tool can run here; if not, this row is left out.
pub fn can_run(row: &str, report: &mut Report) -> bool {
    is_installed("node", row, report)
}

/// A tool's round trip to the broker, as the tool itself measures it.
///
/// # Errors
/// The tool did not go well.
pub fn broker(
    site: Site<'_>,
    waits: Waits,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let row = site.row("broker round trip (exists)");
    if !can_run(&row, report) {
        return Ok(());
    }
    tell(&row);
    let words = ["--json=full", "tool", "run", "measure", "--yes"];
    wait_until_idle();
    let (_, text) = timed(&mut site.runner(&site.place().workspace(), &words))?;
    let result = read(&text)?;
    let mut samples = Samples::default();
    for nanos in result["value"].as_array().into_iter().flatten().filter_map(Value::as_u64) {
        samples.push(Duration::from_nanos(nanos));
    }
    report.add(Row::times(&row, &samples));
    // What the call ordered behind its back is made before anything else is measured.
    site.settle(waits);
    Ok(())
}

/// How long a list of many tools takes, once they are known.
///
/// # Errors
/// They cannot be listed.
pub fn listing(
    site: Site<'_>,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    tell(&format!("a list of {LISTED} tools"));
    let folder = site.place().tools(LISTED)?;
    let list = || site.runner(&folder, &["tool", "list"]);
    timed(&mut list())?;
    let mut samples = Samples::default();
    for _ in 0..extent.slow_rounds() {
        samples.push(measured(&mut list())?);
    }
    report.add(Row::times(&format!("runner tool list, {LISTED} tools"), &samples));
    Ok(())
}
