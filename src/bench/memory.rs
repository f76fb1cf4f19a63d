//! What a sandbox that waits costs in memory: its guest, what the guest has started, and the engine's shim.

use std::collections::BTreeMap;
use std::process::Command;

use super::error::BenchError;
use super::peers;
use super::place::Place;
use super::report::{Report, Row, Unit};
use super::sample::timed;
use crate::pool::Class;

/// How many of a command's wait while they are measured: engines share a shim's code between all that run, so one
/// alone would be charged with all of it. A full pool has more.
const COMMANDS: usize = 4;

/// Measures one of each class that waits, as the mean of those.
pub fn waiting(
    place: &Place,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    tell("memory of sandboxes that wait");
    if !peers::is_installed("docker") {
        report.left_out("memory of a waiting sandbox: the command `docker` is not installed");
        return Ok(());
    }
    let folder = place.workspace();
    let commands = COMMANDS.to_string();
    let name = format!("a command's sandbox that waits, of {COMMANDS}");
    for (class, name, words) in [
        (Class::Read, name.as_str(), &["pool", "warm", commands.as_str()][..]),
        (Class::Tool, "a tool's sandbox that waits", &["tool", "run", "once", "--yes"]),
    ] {
        timed(&mut place.runner(&folder, words))?;
        place.settle(class);
        // Node settles down after its start.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let entries = place.pool().entries();
        let of_class = entries.iter().filter(|entry| entry.class == class);
        let shares: Option<Vec<u64>> = of_class
            .map(|entry| {
                let inspect = ["inspect", "--format", "{{.State.Pid}}", &entry.sandbox];
                let (_, pid) = timed(Command::new("docker").args(inspect)).ok()?;
                of_sandbox(String::from_utf8_lossy(&pid).trim().parse().ok()?)
            })
            .collect();
        match shares.as_deref() {
            Some(shares @ [_, ..]) => {
                let mean = shares.iter().sum::<u64>() as f64 / shares.len() as f64;
                report.add(Row::one(name, mean / f64::from(1 << 20), Unit::MiB, 1));
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
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}
