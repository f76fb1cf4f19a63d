//! What the sandbox used, from the control group files of either version.
//!
//! The files are read-only inside, and opened when the guest starts, so that a call only reads them. A counter that a
//! kernel or runtime does not have is `None`, never a guess.

use runner_wire::Usage;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Version 2 has all files in one folder, version 1 a folder for each controller.
const ROOT: &str = "/sys/fs/cgroup";

/// No file that is read here is longer.
const FILE_MAX: usize = 4096;

/// Every counter that this kernel has.
pub struct Counters {
    peak_memory: Option<Counter>,
    cpu_us: Option<Counter>,
    peak_pids: Option<Counter>,
    oom_kills: Option<Counter>,
    pids_refused: Option<Counter>,
}

impl Counters {
    /// Opens them: of each the file of version 2, or that of version 1.
    pub fn open() -> Self {
        let number = |file| Counter::open(file, None, 1);
        let field = |file, key| Counter::open(file, Some(key), 1);
        Self {
            peak_memory: number("memory.peak")
                .or_else(|| number("memory/memory.max_usage_in_bytes")),
            cpu_us: field("cpu.stat", "usage_usec")
                .or_else(|| Counter::open("cpuacct/cpuacct.usage", None, 1000)),
            peak_pids: number("pids.peak").or_else(|| number("pids/pids.peak")),
            oom_kills: field("memory.events", "oom_kill")
                .or_else(|| field("memory/memory.oom_control", "oom_kill")),
            pids_refused: field("pids.events", "max").or_else(|| field("pids/pids.events", "max")),
        }
    }

    /// Fills in what the control group knows. `children_us` is the processor time that was counted at the end of
    /// children, `before_us` what [`Self::cpu_us`] told when the call began.
    pub fn usage(&self, children_us: u64, before_us: Option<u64>) -> Usage {
        Usage {
            peak_memory: read(self.peak_memory.as_ref()),
            cpu_us: self
                .cpu_us()
                .map(|now| now.saturating_sub(before_us.unwrap_or(0)))
                .or(Some(children_us)),
            peak_pids: read(self.peak_pids.as_ref()),
            oom_kills: read(self.oom_kills.as_ref()),
            pids_refused: self.pids_refused(),
            ..Usage::default()
        }
    }

    /// Processor time of the sandbox since it was made, in microseconds.
    pub fn cpu_us(&self) -> Option<u64> {
        read(self.cpu_us.as_ref())
    }

    /// How many processes and threads were refused.
    pub fn pids_refused(&self) -> Option<u64> {
        read(self.pids_refused.as_ref())
    }
}

/// One figure: a file that is a number, or the value of a key in a file of `key value` lines.
struct Counter {
    file: File,
    key: Option<&'static str>,
    /// How many of what the file counts are one of ours.
    per: u64,
}

impl Counter {
    /// None where the file, or its key, is not there.
    fn open(name: &str, key: Option<&'static str>, per: u64) -> Option<Self> {
        let counter = Self { file: File::open(format!("{ROOT}/{name}")).ok()?, key, per };
        counter.read().is_some().then_some(counter)
    }

    fn read(&self) -> Option<u64> {
        let mut buffer = [0; FILE_MAX];
        let count = self.file.read_at(&mut buffer, 0).ok()?;
        figure(std::str::from_utf8(&buffer[..count]).ok()?, self.key).map(|found| found / self.per)
    }
}

fn read(counter: Option<&Counter>) -> Option<u64> {
    counter.and_then(Counter::read)
}

fn figure(text: &str, key: Option<&str>) -> Option<u64> {
    match key {
        None => text.trim().parse().ok(),
        Some(key) => text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_whole_file_or_the_value_of_a_key() {
        assert_eq!(figure("3039232\n", None), Some(3_039_232));
        let events = "low 0\noom 4\noom_kill 2\noom_group_kill 9\n";
        assert_eq!(figure(events, Some("oom_kill")), Some(2));
        assert_eq!(figure(events, Some("max")), None);
        assert_eq!(figure("max\n", None), None);
    }
}
