//! Memory: of this program while it makes a call; and of a sandbox that waits, which is its guest, what the guest has
//! started, and the engine's shim.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use super::call::Waits;
use super::calls::{COLD, is_installed};
use super::error::BenchError;
use super::folder::Site;
use super::report::{Report, Row, Unit};
use super::sample::timed;
use super::tools;
use crate::pool::Class;

/// Calls of which the largest peak is told.
const PEAKS: usize = 5;

/// How many of a command's wait while they are measured: engines share a shim's code between all that run, so one
/// alone would be charged with all of it. A full pool has more.
const COMMANDS: usize = 4;

/// The most memory that this program has at any moment of a call.
///
/// # Errors
/// A call does not go well.
pub fn peak(
    site: Site<'_>,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    tell(&format!("peak memory of calls on {}", site.engine()));
    let mut most = 0;
    for _ in 0..PEAKS {
        most = most.max(peak_of(site.runner(&site.place().workspace(), COLD))?);
    }
    let row = site.row("peak memory of a call");
    report.add(Row::one(&row, most as f64 / f64::from(1 << 20), Unit::MiB, PEAKS));
    Ok(())
}

/// The peak of a command's own process. It is looked at until its end: what the kernel tells a parent afterwards counts
/// the parent's own memory too, which the child had before it became another program.
fn peak_of(mut command: Command) -> Result<u64, BenchError> {
    let local = |error| BenchError::Local("measure the memory of a call", error);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(local)?;
    let file = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let status = loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        most = most.max(kib(&text, "VmHWM:").unwrap_or(0));
        if let Some(status) = child.try_wait().map_err(local)? {
            break status;
        }
    };
    if status.success() {
        return Ok(most);
    }
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    let (line, how) = (format!("runner {}", words.join(" ")), format!("ended with {status}"));
    Err(BenchError::Command { line, how })
}

/// Measures one of each class that waits, as the mean of those.
///
/// # Errors
/// A call that leaves them does not go well.
pub fn waiting(
    site: Site<'_>,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    tell("memory of sandboxes that wait");
    let row = "memory of a waiting sandbox";
    if !is_installed("docker", row, report) || !tools::can_run(row, report) {
        return Ok(());
    }
    let folder = site.place().workspace();
    let commands = COMMANDS.to_string();
    let name = format!("a command's sandbox that waits, of {COMMANDS}");
    for (class, name, words) in [
        (Class::Read, name.as_str(), &["pool", "warm", commands.as_str()][..]),
        (Class::Tool, "a tool's sandbox that waits", &["tool", "run", "once", "--yes"]),
    ] {
        timed(&mut site.runner(&folder, words))?;
        site.settle(Waits::Always(class));
        // Node settles down after its start.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let entries = site.pool().entries();
        let of_class = entries.iter().filter(|entry| entry.class == class);
        let shares: Option<Vec<u64>> = of_class
            .map(|entry| {
                let inspect = ["inspect", "--format", "{{.State.Pid}}", &entry.sandbox];
                let (_, pid) = timed(Command::new("docker").args(inspect)).ok()?;
                of_sandbox(String::from_utf8_lossy(&pid).trim().parse().ok()?)
            })
            .collect();
        let name = site.row(name);
        match shares.as_deref() {
            Some(shares @ [_, ..]) => {
                let mean = shares.iter().sum::<u64>() as f64 / shares.len() as f64;
                report.add(Row::one(&name, mean / f64::from(1 << 20), Unit::MiB, 1));
            }
            Some([]) | None => {
                report.left_out(&format!("memory of {name}: its processes cannot be read"));
            }
        }
    }
    Ok(())
}

/// The proportional share of memory of a process, all below it, and its parent.
fn of_sandbox(guest: u32) -> Option<u64> {
    let parents = parents();
    let shim = parents.get(&guest).copied()?;
    let below = |pid: u32| {
        let mut at = pid;
        while let Some(parent) = parents.get(&at).copied().filter(|parent| *parent > 1) {
            if at == guest {
                return true;
            }
            at = parent;
        }
        false
    };
    let all = parents.keys().copied().filter(|pid| below(*pid));
    all.chain([shim]).map(share).sum()
}

/// Each process with its parent.
fn parents() -> BTreeMap<u32, u32> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    folder
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect()
}

fn share(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    kib(&text, "Pss:")
}

/// The bytes that a line of the kernel's tells in KiB.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_that_of_the_command_and_not_of_this_process() {
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        // Long enough to be looked at, also where other processes have the processors.
        let mut small = Command::new("sh");
        small.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
        let small = peak_of(small).unwrap();
        assert!(small < kib(&own, "VmHWM:").unwrap(), "{small}");
        assert!(small > 100 << 10, "{small}");
        assert!(peak_of(Command::new("false")).is_err());
    }
}
