//! More calls at once than may run: some run, some wait in turn, and the rest are told that it is busy.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::everyday::Caller;
use crate::support::{Ran, needs_engine};

const CALLS: usize = 115;
/// As the project's configuration has it.
const RUNNING: usize = 4;
const WAITING: usize = 20;
const CONFIG: &str = "limits: { concurrency: 4, queue: 20 }\n";

/// A command that ends when the host writes into the file `go`. A file that is new on the host may never be seen by a
/// call that looked for it.
const UNTIL_GO: &str =
    "import os, time\nwhile not os.path.getsize('go'): time.sleep(0.05)\nprint('went')";

/// A call of it.
fn call(caller: &Caller, project: &Path) -> Command {
    let mut command = caller.runner(project);
    let words = ["--json=full", "exec", "--policy", "develop", "--timeout", "10m", "--"];
    command.args(words).args(["python3", "-c", UNTIL_GO]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Those that have ended, out of the list.
fn ended(children: &mut Vec<Child>) -> Vec<Ran> {
    let (over, going) = children.drain(..).partition::<Vec<_>, _>(|child| {
        // Looking does not reap: an exited child is a zombie until it is waited for.
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'))
    });
    *children = going;
    over.into_iter().map(|child| Ran::from(child.wait_with_output().expect("ends"))).collect()
}

/// How many files of a kind in the queue of commands somebody holds.
fn held(caller: &Caller, kind: &str) -> usize {
    let folder = caller.path("state/runner/queue/exec");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = files.filter(|file| file.file_name().to_string_lossy().starts_with(kind));
    let locked = |path: &Path| {
        let file = fs::OpenOptions::new().write(true).open(path).expect("a file of the queue");
        let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(file, lock).is_err()
    };
    named.filter(|file| locked(&file.path())).count()
}

/// Waits for something that comes.
fn until(mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(300), "it does not come");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn so_many_run_so_many_wait_the_rest_is_busy_and_the_dead_leave_their_places() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("project", &[("go", ""), (".runner/config.yml", CONFIG)]);
    caller.works(&project, &["exec", "--", "true"]);
    let mut children: Vec<Child> =
        (0..CALLS).map(|_| call(&caller, &project).spawn().expect("starts")).collect();
    // Nothing can end by itself yet but what was refused.
    let mut refused = Vec::new();
    until(|| {
        refused.extend(ended(&mut children));
        refused.len() >= CALLS - RUNNING - WAITING && held(&caller, "waiting") == WAITING
    });
    for ran in &refused {
        let result = ran.json();
        assert_eq!(
            (ran.code, &result["error"]["code"]),
            (Some(75), &Value::from("busy")),
            "{result}"
        );
        assert_eq!(result["error"]["recoverable"], true);
        let message = result["error"]["message"].as_str().expect("a message");
        assert!(message.contains("4 are running and 20 are waiting"), "{message}");
        assert_eq!(result["error"]["details"]["retry_after_ms"], 1_000, "{result}");
        assert_eq!(result["error"]["fault"], "configuration");
    }
    assert_eq!((refused.len(), children.len()), (CALLS - RUNNING - WAITING, RUNNING + WAITING));
    assert_eq!((held(&caller, "running"), held(&caller, "waiting")), (RUNNING, WAITING));

    // Also those who wait can be seen, and found if they die.
    until(|| {
        let listed = caller.run(&project, &["--json=full", "ps"]).json();
        let listed = listed["calls"].as_array().expect("a list").len();
        assert!(listed <= RUNNING + WAITING, "those who were refused are not among them");
        listed == RUNNING + WAITING
    });

    // The kernel frees what the killed held, and those who wait move up.
    let killed = 8;
    for mut child in children.drain(..killed) {
        child.kill().expect("it is there");
        child.wait().expect("it ends");
    }
    let places = || (held(&caller, "running"), held(&caller, "waiting"));
    until(|| places() == (RUNNING, WAITING - killed));

    // A person hears why nothing happens, the call's own time binds the wait, and a signal ends it.
    let waited = caller.run(&project, &["exec", "--timeout", "5s", "--", "true"]);
    assert_eq!(waited.code, Some(124), "{}", waited.err);
    let heard = "runner: the call waits in the queue: 4 calls of `exec` may run at once\n";
    assert!(waited.err.starts_with(heard), "{}", waited.err);
    let interrupted = call(&caller, &project).spawn().expect("starts");
    until(|| places() == (RUNNING, WAITING - killed + 1));
    let pid = rustix::process::Pid::from_child(&interrupted);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let interrupted = Ran::from(interrupted.wait_with_output().expect("ends"));
    let status = &interrupted.json()["status"];
    assert_eq!((interrupted.code, status), (Some(130), &Value::from("cancelled")));

    fs::write(project.join("go"), "now").expect("a file");
    let left = children.len();
    let mut completed = 0;
    let mut longest = 0.0_f64;
    for child in children {
        let ran = Ran::from(child.wait_with_output().expect("ends"));
        let result = ran.json();
        assert_eq!((ran.code, &result["stdout"]), (Some(0), &Value::from("went\n")), "{result}");
        let phases = &result["metadata"]["duration_ms"];
        let queued = phases["queued"].as_f64().expect("it says how long it waited");
        assert!(phases["total"].as_f64().expect("a total") >= queued);
        longest = longest.max(queued);
        completed += 1;
    }
    assert_eq!(completed, left);
    assert!(longest > 1_000.0, "some of them waited: {longest}");
    assert_eq!((held(&caller, "running"), held(&caller, "waiting")), (0, 0));
}
