//! This process as a front: whose calls it makes, and with which environment.

use crate::call::Context;
use crate::caller::{Caller, Front};
use crate::environment::Environment;

/// The environment of this process. Nothing else asks the process for it.
pub(super) fn environment() -> Environment {
    std::env::vars_os().collect()
}

/// What this process passes to its calls.
pub(super) fn context() -> Context {
    Context::new(Caller::of_process(Front::CommandLine), environment())
}
