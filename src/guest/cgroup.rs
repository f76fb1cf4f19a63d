//! What the sandbox used, from the control group files of either version.
//!
//! The files are read-only inside. A counter that a kernel or runtime does not have is `None`, never
//! a guess.

use runner_wire::Usage;

/// Version 2 has all files in one folder, version 1 a folder for each controller.
const ROOT: &str = "/sys/fs/cgroup";

/// Fills in what the control group knows. `children_us` is the processor time that was counted at the end of
/// children, `before_us` what [`cpu_us`] told when the call began.
pub fn usage(children_us: u64, before_us: Option<u64>) -> Usage {
    Usage {
        peak_memory: number("memory.peak").or_else(|| number("memory/memory.max_usage_in_bytes")),
        cpu_us: cpu_us()
            .map(|now| now.saturating_sub(before_us.unwrap_or(0)))
            .or(Some(children_us)),
        peak_pids: number("pids.peak").or_else(|| number("pids/pids.peak")),
        oom_kills: field("memory.events", "oom_kill")
            .or_else(|| field("memory/memory.oom_control", "oom_kill")),
        pids_refused: pids_refused(),
        ..Usage::default()
    }
}

/// Processor time of the sandbox since it was made, in microseconds.
pub fn cpu_us() -> Option<u64> {
    field("cpu.stat", "usage_usec")
        .or_else(|| number("cpuacct/cpuacct.usage").map(|nanos| nanos / 1000))
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
