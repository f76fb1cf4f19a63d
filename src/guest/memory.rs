//! The limit of memory where no control group holds it: the guest looks, and ends the call that has too much.
//!
//! A look adds up what processes have in memory. That counts shared pages more than once, so it is a bound from above.
//! The kernel can tell each process's share, which takes longer: it is asked when the sum has grown by a quarter, and
//! where the sum is above the limit also when it has grown by half of what was left, and after a while. Files in memory
//! count too. Between two looks a call can have more than its limit; the table of protections says so.
//!
//! Memory that processes share stays when they let go of its pages, and only its size can be seen: such mappings count
//! in full; those of a process that lets nobody look cannot be seen, and count only while they are in its memory. Page
//! tables count. Memory that no process maps is forbidden to the command (`filter`).

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two looks: what a process can fill meanwhile is what it can have too much.
pub const EVERY: Duration = Duration::from_millis(10);

/// The longest time between two questions for shares while the sum is above the limit.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The kernel's unit of sizes in memory.
const PAGE: u64 = 4096;

/// What is read of a file of one process.
const FILE_MAX: u64 = 4096;

/// How mappings are named that hold memory of their own and that several processes can share.
const SHARED: [&str; 3] = ["/dev/zero (deleted)", "/memfd:", "/SYSV"];

/// The memory of all processes together.
pub struct Memory {
    limit: u64,
    at: Instant,
    /// Folders in memory, whose files count.
    folders: Vec<PathBuf>,
    /// The sum above which shares are asked for.
    ask_above: u64,
    /// When shares are asked for anyway, if the sum is above the limit.
    ask_at: Instant,
    /// The size of what processes share, when it was last looked at.
    shared: u64,
    /// The size of page tables.
    tables: u64,
    /// When both are looked at again.
    shared_at: Instant,
    peak: u64,
}

impl Memory {
    /// Begins to watch.
    pub fn new(limit: u64, now: Instant) -> Self {
        let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
        Self {
            limit,
            at: now,
            folders: folders_in_memory(&table),
            ask_above: 0,
            ask_at: now,
            shared: 0,
            tables: 0,
            shared_at: now,
            peak: 0,
        }
    }

    /// Looks, if it is time; whether there is more than the limit.
    pub fn is_over(&mut self, now: Instant) -> bool {
        if now < self.at {
            return false;
        }
        self.at = now + EVERY;
        let files: u64 = self.folders.iter().map(|folder| crate::sys::used_space(folder)).sum();
        let processes = processes();
        if now >= self.shared_at {
            self.shared = shared(&processes);
            self.tables = processes.iter().map(|process| tables(process)).sum();
            self.shared_at = now + ASK_EVERY;
        }
        let resident = processes.iter().map(|process| resident(process)).sum::<u64>();
        let sum = files + self.shared + self.tables + resident;
        let overdue = sum > self.limit && now >= self.ask_at;
        if sum <= self.ask_above && !overdue {
            return false;
        }
        let (own, in_common) = processes
            .iter()
            .map(|process| share(process))
            .fold((0, 0), |sum, share| (sum.0 + share.0, sum.1 + share.1));
        let shares = files + self.tables + own + in_common.max(self.shared);
        self.peak = self.peak.max(shares);
        let left = self.limit.saturating_sub(shares) / 2;
        self.ask_above = sum + left.min(sum / 4);
        self.ask_at = now + ASK_EVERY;
        shares > self.limit
    }

    /// The most that was seen.
    pub fn peak(&self) -> u64 {
        self.peak
    }
}

/// The folders of all processes but this one.
fn processes() -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_other = |name: &str| name.parse::<u32>().is_ok_and(|pid| pid != 1);
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_other))
        .map(|entry| entry.path())
        .collect()
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(FILE_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What a process has in memory, in bytes. One that is gone has nothing.
fn resident(process: &Path) -> u64 {
    match pages_of(process) {
        // Its first thread may have ended and left the memory to the others.
        Some(0) => fs::read_dir(process.join("task"))
            .into_iter()
            .flatten()
            .flatten()
            .find_map(|thread| pages_of(&thread.path()).filter(|pages| *pages > 0))
            .map_or(0, |pages| pages * PAGE),
        pages => pages.map_or(0, |pages| pages * PAGE),
    }
}

fn pages_of(task: &Path) -> Option<u64> {
    read(&task.join("statm"))?.split(' ').nth(1)?.trim().parse().ok()
}

/// Its share of what is in memory for it and not for a file on disk, in bytes: its own, and of what it has in common with
/// others. Of a process that lets nobody look, all that it has counts.
fn share(process: &Path) -> (u64, u64) {
    let Some(table) = read(&process.join("smaps_rollup")).filter(|text| !text.is_empty()) else {
        return (resident(process), 0);
    };
    match (field(&table, "Pss_Anon:"), field(&table, "Pss_Shmem:")) {
        (Some(own), Some(shared)) => (own, shared),
        // A kernel before 5.6 tells the sum alone.
        _ => (field(&table, "Pss:").unwrap_or_else(|| resident(process)), 0),
    }
}

/// The size of a process's page tables.
fn tables(process: &Path) -> u64 {
    let status = read(&process.join("status")).unwrap_or_default();
    field(&status, "VmPTE:").unwrap_or(0)
}

/// The size of all memory that processes share, each once.
fn shared(processes: &[PathBuf]) -> u64 {
    let mut sizes = BTreeMap::new();
    for process in processes {
        let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
        for (inode, size) in maps.lines().filter_map(shared_mapping) {
            let known: &mut u64 = sizes.entry(inode).or_default();
            *known = size.max(*known);
        }
    }
    sizes.values().sum()
}

/// The inode and size of what a line `FROM-TO MODE OFFSET DEVICE INODE NAME` maps, if it is memory that is shared.
fn shared_mapping(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let mode = fields.next()?;
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    let name = line.find('/').and_then(|at| line.get(at..))?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let end = offset.checked_add(number(to)?.checked_sub(number(from)?)?)?;
    let counts = mode.ends_with('s') && SHARED.iter().any(|known| name.starts_with(known));
    counts.then_some((inode, end))
}

/// The value of a line `NAME  FIGURE kB`, in bytes.
fn field(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    let figure = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(figure * 1024)
}

/// Every folder in memory that can be written, by the kernel's table of mounts.
fn folders_in_memory(table: &[u8]) -> Vec<PathBuf> {
    let found = String::from_utf8_lossy(table);
    let mut folders: Vec<PathBuf> = found
        .lines()
        .filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let mut fields = mount.split(' ').skip(4);
            let (at, options) = (fields.next()?, fields.next()?);
            let writable = !options.split(',').any(|option| option == "ro");
            (kind.starts_with("tmpfs ") && writable).then(|| PathBuf::from(at))
        })
        .collect();
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_from_the_kernels_table() {
        let table = "0-1 ---p 0 00:00 0 [rollup]\nRss:  900 kB\nPss:   500 kB\nPss_Anon:  300 kB\n\
                     Pss_File:  150 kB\nPss_Shmem:  50 kB\n";
        assert_eq!(field(table, "Pss_Anon:"), Some(300 << 10));
        assert_eq!(field(table, "Pss:"), Some(500 << 10));
        assert_eq!(field(table, "Swap:"), None);
    }

    #[test]
    fn what_processes_share_counts_by_its_size() {
        let own = "7f00-7f10 rw-p 00000000 00:00 0 [heap]";
        let anonymous = "7f3e21a00000-7f3e21a10000 rw-s 00000000 00:01 2051 /dev/zero (deleted)";
        let second_part = "7f3e21a00000-7f3e21a10000 r--s 00010000 00:01 7 /memfd:x (deleted)";
        let of_disk = "7f3e21a00000-7f3e21a10000 rw-s 00000000 08:01 9 /tmp/x";
        assert_eq!(shared_mapping(own), None);
        assert_eq!(shared_mapping(anonymous), Some((2051, 0x10000)));
        assert_eq!(shared_mapping(second_part), Some((7, 0x20000)));
        assert_eq!(shared_mapping(of_disk), None);
    }

    #[test]
    fn folders_in_memory_are_those_that_can_be_written() {
        let table = b"1 0 0:1 / / ro - tmpfs tmpfs rw\n2 1 0:2 / /tmp rw,nosuid - tmpfs tmpfs rw\n\
                      3 1 0:3 / /usr ro - ext4 /dev/x rw\n4 1 0:4 / /home/runner rw - tmpfs x rw\n";
        let expected = [PathBuf::from("/tmp"), PathBuf::from("/home/runner")];
        assert_eq!(folders_in_memory(table), expected);
    }

    #[test]
    fn too_much_is_seen_and_the_rest_is_let_be() {
        let now = Instant::now();
        let mut plenty = Memory::new(u64::MAX / 4, now);
        assert!(!plenty.is_over(now));
        assert!(plenty.peak() > 0, "what other processes of this machine have");
        let mut little = Memory::new(1, now);
        assert!(little.is_over(now));
        assert!(!little.is_over(now), "it is not time yet");
    }
}
