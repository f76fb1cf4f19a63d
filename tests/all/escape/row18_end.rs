//! Row 18, ignoring the end: a command that will not stop is stopped, and its container is gone.

use runner::ids::CallId;
use runner::sandbox::outcome::Verdict;
use runner_policy::limits::Limit;

use super::harness::{On, attack};
use crate::death::gone;
use crate::engine::{argv, call_as, plan, workspace};

/// Ways of not ending. The last is the control: it ends by itself.
const WAYS: [&str; 8] = [
    "trap '' TERM INT HUP QUIT; sleep 60 & wait; sleep 60",
    "trap '' TERM; while :; do :; done",
    "kill -STOP $$; sleep 60",
    "sleep 60 & kill -STOP $!; wait",
    "mkfifo f && cat f",
    "setsid sleep 60 & setsid sh -c 'trap \"\" TERM; sleep 60' & sleep 60",
    "(setsid sh -c 'sleep 60 & exec sleep 60' > /dev/null 2>&1 &); sleep 60",
    "exec 2>&-; exec >&-; sleep 60",
];

fn what_ignores_the_end_is_ended(on: On) {
    for script in WAYS {
        let folder = workspace();
        let mut plan = plan(folder.path());
        plan.runtime = on.runtime();
        plan.limits.set(Limit::Wall, 1_000);
        let id = CallId::fresh().unwrap();
        let outcome = call_as(&id, plan, argv(&["sh", "-c", script])).unwrap();
        assert_eq!(outcome.verdict, Verdict::Timeout, "{script}");
        println!("{script}: gone {:?} after its end", gone(&id));
    }
    // The control: what ends by itself is not taken for one that did not.
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    let id = CallId::fresh().unwrap();
    let outcome = call_as(&id, plan, argv(&["sh", "-c", "setsid true & exit 3"])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed { status: 3 });
    gone(&id);
}
attack!(18, "timeout", what_ignores_the_end_is_ended);

/// What a call leaves running does not go on after it.
fn after_the_end_nothing_is_written_any_more(on: On) {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    let script = "for i in 1 2 3 4 5 6; do (while :; do echo x >> f$i; done) & done; sleep 1";
    let id = CallId::fresh().unwrap();
    let outcome = call_as(&id, plan, argv(&["sh", "-c", script])).unwrap();
    gone(&id);
    let written = outcome.stage.as_ref().unwrap().upper(0);
    let sizes = || -> Vec<u64> {
        let size = |at| std::fs::metadata(written.join(format!("f{at}"))).unwrap().len();
        (1..=6).map(size).collect()
    };
    let at_the_end = sizes();
    // That nothing comes can only be seen by waiting.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(sizes(), at_the_end);
    assert!(at_the_end.iter().all(|size| *size > 0), "the control: they did write");
}
attack!(18, "timeout", after_the_end_nothing_is_written_any_more);
