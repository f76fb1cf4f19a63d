//! What the sandbox used, from the control group files of either version.
//!
//! The files are read-only inside. A counter that a kernel or runtime does not have is `None`, never
//! a guess.

use runner_wire::Usage;

/// Version 2 has all files in one folder, version 1 a folder for each controller.
const ROOT: &str = "/sys/fs/cgroup";

/// Fills in what the control group knows; `cpu_us` is what was counted at the end of children.
pub fn usage(cpu_us: u64) -> Usage {
    Usage {
        peak_memory: number("memory.peak").or_else(|| number("memory/memory.max_usage_in_bytes")),
        cpu_us: field("cpu.stat", "usage_usec")
            .or_else(|| number("cpuacct/cpuacct.usage").map(|nanos| nanos / 1000))
            .or(Some(cpu_us)),
        peak_pids: number("pids.peak").or_else(|| number("pids/pids.peak")),
        oom_kills: field("memory.events", "oom_kill")
            .or_else(|| field("memory/memory.oom_control", "oom_kill")),
        pids_refused: pids_refused(),
        ..Usage::default()
    }
}

/// How many processes and threads were refused.
pub fn pids_refused() -> Option<u64> {
    field("pids.events", "max").or_else(|| field("pids/pids.events", "max"))
}

fn read(name: &str) -> Option<String> {
    std::fs::read_to_string(format!("{ROOT}/{name}")).ok()
}

fn number(name: &str) -> Option<u64> {
    read(name)?.trim().parse().ok()
}

/// The value of `key` in a file of `key value` lines.
fn field(name: &str, key: &str) -> Option<u64> {
    read(name)?
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}
