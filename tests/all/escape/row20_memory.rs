//! Row 20, memory bombs: heap, scratch and page cache stay within the limit; a lack of memory is told from a status.

use runner::call::launch::outcome::Outcome;
use runner::sandbox::outcome::{RunError, Verdict};
use runner_policy::limits::Limit;

use super::harness::{On, attack};
use crate::engine::{argv, call, plan, workspace};

/// Much more than the guest and gVisor's own kernel need, much less than the bombs want.
const MEMORY: u64 = 128 << 20;

fn limited(on: On, script: &str) -> Result<Outcome, RunError> {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    plan.limits.set(Limit::Memory, MEMORY);
    plan.tmpfs[0].size = 1 << 30;
    call(plan, argv(&["sh", "-c", script]))
}

const HEAP: &str = "python3 -c 'x = bytearray(1 << 30)'";
const SCRATCH: &str = "dd if=/dev/zero of=/tmp/x bs=1M count=600 2>/dev/null; test $(stat -c %s /tmp/x) -ge 629145600";

fn a_bomb_is_oom_and_a_status_of_137_is_not(on: On) {
    for script in [HEAP, SCRATCH] {
        let outcome = limited(on, script).unwrap();
        assert_eq!(outcome.verdict, Verdict::Oom, "{script}: {outcome:?}");
        let usage = outcome.usage.unwrap();
        assert!(usage.oom_kills.unwrap() > 0);
        assert!(usage.peak_memory.unwrap() <= MEMORY, "{usage:?}");
    }
    let chosen = limited(on, "exit 137").unwrap();
    assert_eq!(chosen.verdict, Verdict::Failed { status: 137 });
    let killed = limited(on, "kill -9 $$").unwrap();
    assert_eq!(killed.verdict, Verdict::Signalled { signal: 9 });
    // Whoever has to tell outlives who is told of: the kernel takes the command before the guest.
    if on != On::Gvisor {
        let before = "test $(cat /proc/self/oom_score_adj) -gt $(cat /proc/1/oom_score_adj)";
        let outcome = limited(on, before).unwrap();
        assert_eq!(outcome.verdict, Verdict::Completed, "{outcome:?}");
    }
}
attack!(20, "told apart by child", a_bomb_is_oom_and_a_status_of_137_is_not);

fn a_bomb_never_gets_what_it_asks_for(on: On) {
    for script in [HEAP, SCRATCH] {
        let ended = limited(on, script);
        assert!(
            !matches!(&ended, Ok(outcome) if outcome.verdict == Verdict::Completed),
            "{script}: {ended:?}"
        );
    }
    // The control: what fits is had.
    let fits = limited(on, "python3 -c 'x = bytearray(16 << 20)'").unwrap();
    assert_eq!(fits.verdict, Verdict::Completed, "{fits:?}");
    // Page cache is not the command's own: it is given back, and nobody is killed for it.
    let cache = limited(
        on,
        "dd if=/dev/zero of=big bs=1M count=200 2>/dev/null && cat big > /dev/null && rm big",
    )
    .unwrap();
    assert_eq!(cache.verdict, Verdict::Completed, "{cache:?}");
    if let Some(peak) = cache.usage.and_then(|usage| usage.peak_memory) {
        assert!(peak <= MEMORY, "{peak}");
    }
}
attack!(20, "heap", a_bomb_never_gets_what_it_asks_for);
