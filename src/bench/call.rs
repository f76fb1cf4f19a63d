//! One call of this program as a sample: it counts only if it was what was to be measured.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::error::BenchError;
use super::place::Place;
use super::quiet::quiet;
use super::report::{Report, Row};
use super::sample::{Samples, timed};
use crate::pool::Class;

/// How often a call is made until a sandbox had waited for it.
const TRIES: usize = 5;

/// A call, and what is there before it.
pub struct Ours<'a> {
    /// Its words. With `--json=full`, a result says whether it was warm.
    pub words: &'a [&'a str],
    /// The class of sandbox that waits for it; `None` for a cold one.
    pub class: Option<Class>,
}

/// Times of calls.
#[derive(Debug, Default)]
pub struct Calls {
    /// From start to end.
    pub whole: Samples,
    /// Of that, the plan: the look through the workspace, which proves that a sandbox may be claimed.
    pub plan: Samples,
    /// How many found no sandbox that they could use, and were made again.
    pub missed: usize,
}

impl Ours<'_> {
    /// Makes the call once on an idle machine.
    ///
    /// # Errors
    /// It did not go well, or was not what is measured however often it was made.
    pub fn once(&self, place: &Place, folder: &Path, calls: &mut Calls) -> Result<(), BenchError> {
        for _ in 0..TRIES {
            if let Some(class) = self.class {
                place.settle(class);
            }
            quiet();
            let (took, text) = timed(&mut place.runner(folder, self.words))?;
            let result = read(&text)?;
            let metadata = &result["metadata"];
            if metadata["warm"] == Value::Bool(self.class.is_some()) {
                calls.whole.push(took);
                let plan = metadata["duration_ms"]["plan"].as_f64().unwrap_or_default();
                calls.plan.push(Duration::from_secs_f64(plan.max(0.0) / 1e3));
                return Ok(());
            }
            calls.missed += 1;
        }
        let line = format!("runner {}", self.words.join(" "));
        Err(BenchError::Command { line, how: format!("was {TRIES} times not as it should be") })
    }
}

/// Adds a row of calls. Those that had to be made again are told.
pub fn add(report: &mut Report, name: &str, calls: &Calls, peers: &[&str]) {
    if calls.missed > 0 {
        let missed = calls.missed;
        report.note(format!("{name}: {missed} found no sandbox that waited, and do not count"));
    }
    let row = Row::times(name, &calls.whole);
    report.add(peers.iter().fold(row, |row, peer| row.beside(peer)));
}

/// A result in JSON.
pub fn read(text: &[u8]) -> Result<Value, BenchError> {
    serde_json::from_slice(text).map_err(|error| BenchError::Local("read a result", error.into()))
}
