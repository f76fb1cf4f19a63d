//! What a call leaves behind that came to its end in a sandbox.

use std::time::Duration;

use runner_wire::{LimitHit, Programs, Seen, Usage};

use super::farewell::Farewell;
use crate::sandbox::kept::Kept;
use crate::sandbox::outcome::{Phases, Verdict};
use crate::stage::folder::Stage;

/// Whether a sandbox can still change its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stillness {
    /// No process of the call is left: its guest said so, or the engine has removed the sandbox.
    Still,
    /// Neither is known.
    Unknown,
}

/// A call that ended.
#[derive(Debug)]
pub struct Outcome {
    /// How.
    pub verdict: Verdict,
    /// Limits that were met on the way.
    pub hits: Vec<LimitHit>,
    /// Which programs ran, if the guest could tell.
    pub programs: Option<Programs>,
    /// Processes that still ran when the command ended by itself; the sandbox ended them.
    pub left_running: u64,
    /// What it used, if the guest could tell.
    pub usage: Option<Usage>,
    /// Standard output.
    pub stdout: Kept,
    /// Standard error.
    pub stderr: Kept,
    /// Time by phase.
    pub phases: Phases,
    /// The image that it ran in, if it came to that.
    pub image_digest: Option<String>,
    /// What the guest saw of itself.
    pub seen: Option<Seen>,
    /// How long its sandbox had waited; `None` if it was made for the call.
    pub waited: Option<Duration>,
    /// How many that waited were tried before, and given up.
    pub discarded: usize,
    /// What it changed, if it could write.
    pub stage: Option<Stage>,
    /// Whether every process of it is gone.
    pub stillness: Stillness,
    /// Its sandbox, to be let go of.
    pub farewell: Option<Farewell>,
}
