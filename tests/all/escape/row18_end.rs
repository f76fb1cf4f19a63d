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

/// What a process of the guest's user may try: to slow the process that ends the sandbox, or to take its limits away; and to
/// let a crash start a program of the host's. The second column is the control, on the process itself.
const SLOW_THE_GUEST: &str = r#"
import os, resource
def tried(name, act):
    try:
        act()
        print(name, "done")
    except OSError as error:
        print(name, error.strerror)
idle, usual = os.SCHED_IDLE, os.SCHED_OTHER
for name, pid, policy in (("policy", 1, idle), ("own policy", 0, usual)):
    tried(name, lambda: os.sched_setscheduler(pid, policy, os.sched_param(0)))
for name, pid in (("processors", 1), ("own processors", 0)):
    tried(name, lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)))
for name, kind, pid in (("priority", os.PRIO_PROCESS, 1), ("own priority", os.PRIO_PROCESS, 0), ("priority of the user", os.PRIO_USER, 0), ("priority of the group", os.PRIO_PGRP, 0)):
    tried(name, lambda: os.setpriority(kind, pid, 5))
for name, pid in (("files", 1), ("own files", 0)):
    tried(name, lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64)))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print("core", resource.getrlimit(resource.RLIMIT_CORE))
"#;

fn the_guest_cannot_be_slowed(on: On) {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    let id = CallId::fresh().unwrap();
    let outcome = call_as(&id, plan, argv(&["python3", "-c", SLOW_THE_GUEST])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Completed, "{outcome:?}");
    let refused = "Operation not permitted";
    let expected = format!(
        "policy {refused}\nown policy done\nprocessors {refused}\nown processors done\n\
         priority {refused}\nown priority done\npriority of the user {refused}\npriority of the group {refused}\n\
         files {refused}\nown files done\ncore (1, 1)\n"
    );
    assert_eq!(String::from_utf8(outcome.stdout.whole().unwrap()).unwrap(), expected);
    gone(&id);
}
attack!(18, "the guest's processor", the_guest_cannot_be_slowed);
