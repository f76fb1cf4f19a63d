//! Runs a built-in tool and its broker side by side in this process: both ends of one connection.
//!
//! ```text
//! function of ours -- frames, in memory --> broker -> files, exec (a sandbox), net
//! ```
//!
//! No engine is asked and nothing is started for the tool itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::recorded::Recorded;
use super::sandbox::Scene;
use super::within::{Ran, Within};
use crate::broker::client::converse;
use crate::broker::{self, Authority, Events, Job};
use crate::sandbox::cancel::Cancel;
use crate::sandbox::outcome::Verdict;
use crate::tool::builtin::BuiltIn;

/// Bytes of frames that may be under way.
const UNDER_WAY: usize = 256 << 10;

/// Runs one job until it ends, is cancelled, or its requests cannot be recorded any more.
pub(super) async fn run_in_process(
    tool: &'static BuiltIn,
    scene: &Scene,
    job: Job,
    authority: Authority,
    recorded: &Arc<Recorded>,
    cancel: &mut Cancel,
) -> Ran {
    let begun = Instant::now();
    let (ours, tools) = tokio::io::duplex(UNDER_WAY);
    let cause = Mutex::new(None);
    let stop = async {
        tokio::select! {
            reason = recorded.broken() => reason,
            asked = cancel.asked() => {
                *cause.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
                "the call was cancelled".to_owned()
            }
        }
    };
    let events = Arc::clone(recorded) as Arc<dyn Events>;
    let talk = converse(tools, |call| tool.run(call));
    // A talk that broke has no result, which the broker sees.
    let (served, _) = tokio::join!(broker::serve(ours, job, authority, events, stop), talk);
    let cause = cause.into_inner().unwrap_or_else(PoisonError::into_inner);
    let within = Within::Ourselves {
        verdict: cause.map_or(Verdict::Completed, Verdict::Cancelled),
        limits: scene.limits,
        duration: begun.elapsed(),
    };
    Ran { served, within, shortfalls: Vec::new() }
}
