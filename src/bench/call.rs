//! One call of this program as a sample: it counts only if it was what was to be measured.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::error::BenchError;
use super::folder::Site;
use super::idle::wait_until_idle;
use super::sample::timed;
use super::turns::Taken;
use crate::pool::Class;

/// How often a call is made until it is what is to be measured.
const TRIES: usize = 5;

/// What a call finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// A sandbox of this class waits for it; a call that found none is made again.
    Always(Class),
    /// Whatever waits at this moment: nothing, on an engine that keeps none.
    AsItComes,
    /// Nothing, and it leaves nothing.
    Never,
}

/// A call, and what is there before it.
pub struct Ours<'a> {
    /// Its words. With `--json=full`, a result says whether it was warm.
    pub words: &'a [&'a str],
    /// What it finds.
    pub waits: Waits,
}

impl Ours<'_> {
    /// Makes the call once on an idle machine, and waits for its background work, so that the next measurement does not pay for it.
    ///
    /// # Errors
    /// It did not go well, or was not what is measured however often it was made.
    pub fn once(&self, site: Site<'_>, folder: &Path) -> Result<Taken, BenchError> {
        for missed in 0..TRIES {
            site.settle(self.waits);
            wait_until_idle();
            let (took, text) = timed(&mut site.runner(folder, self.words))?;
            site.settle(self.waits);
            let metadata = &read(&text)?["metadata"];
            let warm = metadata["warm"] == Value::Bool(true);
            let counts = match self.waits {
                Waits::Always(_) => warm,
                Waits::Never => !warm,
                Waits::AsItComes => true,
            };
            if counts {
                let plan = metadata["duration_ms"]["plan"].as_f64().unwrap_or_default();
                let plan = Some(Duration::from_secs_f64(plan.max(0.0) / 1e3));
                return Ok(Taken { whole: took, plan, missed });
            }
        }
        let line = format!("runner {}", self.words.join(" "));
        Err(BenchError::Command { line, how: format!("was {TRIES} times not as it should be") })
    }
}

/// A result in JSON.
pub fn read(text: &[u8]) -> Result<Value, BenchError> {
    serde_json::from_slice(text).map_err(|error| BenchError::Local("read a result", error.into()))
}
