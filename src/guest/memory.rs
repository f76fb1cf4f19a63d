//! The limit of memory where no control group holds it: the guest looks, and ends the call that has too much.
//!
//! A look adds up what processes have in memory. That counts shared pages more than once, so it is a bound from above.
//! The kernel can tell each process's share, which takes longer: it is asked when the sum has grown by a quarter, and
//! where the sum is above the limit also when it has grown by half of what was left, and after a while. Files in memory
//! count too. Between two looks a call can have more than its limit; the table of protections says so.

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
        let sum = files + processes.iter().map(|process| resident(process)).sum::<u64>();
        let overdue = sum > self.limit && now >= self.ask_at;
        if sum <= self.ask_above && !overdue {
            return false;
        }
        let shares = files + processes.iter().map(|process| share(process)).sum::<u64>();
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
    let pages = read(&process.join("statm"))
        .and_then(|text| text.split(' ').nth(1)?.trim().parse::<u64>().ok());
    pages.map_or(0, |pages| pages * PAGE)
}

/// Its share of what is in memory for it and not for a file on disk, in bytes. Of a process that lets nobody look, all that
/// it has counts.
fn share(process: &Path) -> u64 {
    let Some(table) = read(&process.join("smaps_rollup")).filter(|text| !text.is_empty()) else {
        return resident(process);
    };
    match (field(&table, "Pss_Anon:"), field(&table, "Pss_Shmem:")) {
        (Some(own), Some(shared)) => own + shared,
        // A kernel before 5.6 tells the sum alone.
        _ => field(&table, "Pss:").unwrap_or_else(|| resident(process)),
    }
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
