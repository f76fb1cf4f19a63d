//! Row 19, fork, thread and descriptor bombs: each meets its limit, and others do not feel it.

use std::path::Path;
use std::time::Instant;

use runner::ids::CallId;
use runner::sandbox::cancel::Cancel;
use runner::sandbox::outcome::{CancelCause, Verdict};
use runner_policy::limits::Limit;
use runner_wire::LimitHit;

use super::harness::{On, attack};
use crate::death::gone;
use crate::engine::{argv, block_on, call, call_as, call_until, plan, sandbox_of, workspace};

const THREADS: &str =
    "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()";

fn a_bomb_of_processes_or_threads_is_a_limit(on: On) {
    for words in [
        &["bash", "-c", "for i in $(seq 300); do sleep 20 & done; wait"][..],
        &["bash", "-c", ":(){ :|:& };:; sleep 1"],
        &["python3", "-c", THREADS],
    ] {
        let folder = workspace();
        let mut plan = plan(folder.path());
        plan.runtime = on.runtime();
        plan.limits.set(Limit::Pids, 32);
        let id = CallId::fresh().unwrap();
        let outcome = call_as(&id, plan, argv(words)).unwrap();
        assert_eq!(outcome.verdict, Verdict::Limit(Limit::Pids), "{words:?}: {outcome:?}");
        assert!(outcome.hits.contains(&LimitHit::Pids));
        assert!(outcome.usage.unwrap().peak_pids.unwrap() <= 32);
        gone(&id);
    }
    // The control: a pipeline of a few.
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.limits.set(Limit::Pids, 32);
    let outcome =
        call(plan, argv(&["bash", "-c", "yes | head -n 9 | sort | uniq | wc -l"])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Completed);
}
attack!(19, "processes", a_bomb_of_processes_or_threads_is_a_limit);

fn a_bomb_of_descriptors_is_a_limit(on: On) {
    let script = "import os, sys, time\nfds = []\ntry:\n  while len(fds) < int(sys.argv[1]): fds.append(os.dup(0))\nexcept OSError: time.sleep(20)";
    let run = |count: &str| {
        let folder = workspace();
        let mut plan = plan(folder.path());
        plan.runtime = on.runtime();
        plan.limits.set(Limit::OpenFiles, 64);
        call(plan, argv(&["python3", "-c", script, count])).unwrap()
    };
    let bomb = run("100000");
    assert_eq!(bomb.verdict, Verdict::Limit(Limit::OpenFiles), "{bomb:?}");
    assert_eq!(run("20").verdict, Verdict::Completed, "the control");
}
attack!(19, "descriptors", a_bomb_of_descriptors_is_a_limit);

/// Control groups of a container that are still there.
fn groups(folder: &Path, id: &str, depth: usize) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            count += usize::from(entry.file_name().to_string_lossy().contains(id));
            if depth > 0 {
                count += groups(&entry.path(), id, depth - 1);
            }
        }
    }
    count
}

/// Processes whose command line has this word.
fn processes(word: &str) -> usize {
    let of = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter_map(of);
    all.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

fn a_call_beside_a_bomb_works_and_nothing_is_left(on: On) {
    let normal = || {
        let folder = workspace();
        let mut plan = plan(folder.path());
        plan.runtime = on.runtime();
        let begun = Instant::now();
        let outcome = call(plan, argv(&["sh", "-c", "echo hello | cat"])).unwrap();
        assert_eq!(outcome.verdict, Verdict::Completed, "{outcome:?}");
        assert_eq!(outcome.stdout.whole().unwrap(), b"hello\n");
        begun.elapsed()
    };
    let alone = normal();
    let id = CallId::fresh().unwrap();
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    plan.limits.set(Limit::Wall, 600_000);
    // It swallows its own failures, so that it goes on as long as anybody lets it.
    let marker = format!("bomb-{}", id.as_str());
    let script = format!(": {marker}; while :; do (while :; do :; done) & done 2>/dev/null");
    let (canceller, mut cancel) = Cancel::pair();
    let bomb = std::thread::spawn({
        let (id, script) = (id.clone(), script.clone());
        move || block_on(call_until(&id, plan, argv(&["bash", "-c", &script]), &mut cancel))
    });
    let sandbox = loop {
        assert!(!bomb.is_finished(), "{:?}", bomb.join());
        match sandbox_of(&id).first() {
            Some(sandbox) => break sandbox.clone(),
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    let beside = normal();
    println!("alone {alone:?}, beside a bomb {beside:?}");
    canceller.cancel(CancelCause::Interrupt);
    let ended = bomb.join().unwrap();
    assert!(!matches!(&ended, Ok(outcome) if outcome.verdict == Verdict::Completed), "{ended:?}");
    gone(&id);
    let cgroups = Path::new("/sys/fs/cgroup");
    let begun = Instant::now();
    while groups(cgroups, &sandbox, 4) + processes(&marker) > 0 {
        assert!(begun.elapsed().as_secs() < 60, "control groups or processes are left");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    normal();
}
attack!(19, "others stay fast", a_call_beside_a_bomb_works_and_nothing_is_left);
