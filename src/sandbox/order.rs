//! The order to a guest: what it starts, and with what, from a plan.
//!
//! Duty: the only place where a plan becomes a [`Start`], so that what is started beforehand to wait and
//! what is started by a call cannot differ. Trust boundary: an order for a process that waits is among
//! the container's arguments, which every user of this machine can read; a plan for such a process must
//! not hold what only its caller may know.

use runner_policy::limits::{Limit, Limits};
use runner_wire::{Bytes, Port, Start, StartLimits, Stdin, Work};

use crate::engine::plan::SandboxPlan;
use crate::engine::{Holder, Holders};

/// The order to do this work in the sandbox of this plan.
#[must_use]
pub fn order(plan: &SandboxPlan, work: Work, umask: u32, stdin: Stdin, port: Port) -> Start {
    let variable = |(name, value): (&std::ffi::OsString, &std::ffi::OsString)| {
        (Bytes::from(name.as_os_str()), Bytes::from(value.as_os_str()))
    };
    Start {
        work,
        env: plan.env.iter().map(variable).collect(),
        cwd: Bytes::from(plan.cwd.as_os_str()),
        umask,
        stdin,
        port,
        limits: start_limits(&plan.limits, plan.holders),
        network: plan.network.clone(),
    }
}

fn start_limits(limits: &Limits, holders: Holders) -> StartLimits {
    // The kernel does not report that a user's process limit refused a process: the guest counts as well.
    let counted = matches!(holders.pids, Holder::UserLimit | Holder::Guest);
    StartLimits {
        wall_ms: limits.get(Limit::Wall),
        cpu_ms: limits.get(Limit::CpuTime),
        open_files: limits.get(Limit::OpenFiles),
        file_size: limits.get(Limit::FileSize),
        output_max: limits.get(Limit::OutputMax),
        watched_memory: (holders.memory == Holder::Guest).then(|| limits.get(Limit::Memory)),
        watched_pids: counted.then(|| limits.get(Limit::Pids)),
    }
}
