//! Waits for an idle machine, so that no measurement pays for another one's work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long the processors must have had nothing to do. It is also the time in which a user thinks.
const QUIET: Duration = Duration::from_millis(100);

/// How often that is waited for: a machine that is never idle is measured as it is.
const TRIES: usize = 50;

/// Of so many parts of one processor's time, one may have been used.
const IDLE_PARTS: u64 = 4;

/// The same, on a machine that was not idle before either.
const FEWER_TRIES: usize = 3;

/// How often there was no idle moment.
static NEVER_IDLE: AtomicUsize = AtomicUsize::new(0);

/// Before how many samples the machine did not become idle.
pub fn never_idle() -> usize {
    NEVER_IDLE.load(Ordering::Relaxed)
}

/// Returns when the processors had next to nothing to do for a while: what the call before has left to others, such as
/// the end of its container, is over then.
pub fn wait_until_idle() {
    let mut before = Times::now();
    for _ in 0..if never_idle() == 0 { TRIES } else { FEWER_TRIES } {
        std::thread::sleep(QUIET);
        let now = Times::now();
        if now.is_idle_since(before) {
            return;
        }
        before = now;
    }
    NEVER_IDLE.fetch_add(1, Ordering::Relaxed);
}

/// What the processors did since the machine was started, in ticks.
#[derive(Clone, Copy)]
struct Times {
    idle: u64,
    all: u64,
    processors: u64,
}

impl Times {
    fn now() -> Self {
        Self::of(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Of the first line, `cpu user nice system idle iowait irq softirq ...`; one for each processor follows.
    fn of(text: &str) -> Self {
        let line = text.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or("");
        let ticks: Vec<u64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let part = |at: usize| ticks.get(at).copied().unwrap_or(0);
        let processors = text.lines().skip(1).filter(|line| line.starts_with("cpu")).count();
        Self {
            idle: part(3) + part(4),
            all: ticks.iter().take(8).sum(),
            processors: processors.max(1) as u64,
        }
    }

    /// Whether hardly any time was used. A machine that does not tell counts as idle.
    fn is_idle_since(self, before: Self) -> bool {
        let all = self.all.saturating_sub(before.all);
        let busy = all.saturating_sub(self.idle.saturating_sub(before.idle));
        busy * IDLE_PARTS * self.processors <= all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_waits_is_idle_and_one_that_works_is_not() {
        let each = "cpu0 1 2 3 4\ncpu1 1 2 3 4\nintr 7\n";
        let before = Times::of(&format!("cpu  100 0 50 1000 10 0 5 2 7 7\n{each}"));
        let after = |user: u64, idle: u64| {
            Times::of(&format!("cpu  {} 0 50 {} 10 0 5 2 99 99\n{each}", 100 + user, 1000 + idle))
        };
        assert!(after(1, 19).is_idle_since(before));
        assert!(after(2, 18).is_idle_since(before));
        assert!(!after(3, 17).is_idle_since(before), "a third of one of two");
        assert!(!after(20, 0).is_idle_since(before));
        assert!(Times::of("").is_idle_since(Times::of("")), "who does not tell");
    }
}
