//! Sandboxes that wait: used once, by exactly the calls that they were planned for, and gone by themselves.

mod changed;
mod killed;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use runner::engine::{Docker, Engine, SandboxId, State};
use serde_json::Value;

use crate::engine::block_on;
use crate::slow_engine::SlowEngine;
use crate::support::{Home, Ran, containers};

/// A caller whose sandboxes wait; none is left when it goes.
struct Caller(Home);

impl Caller {
    fn new(pool: &str) -> Self {
        let home = Home::new();
        home.config(&format!("pool: {{ {pool} }}\napprovals: {{ withoutTerminal: true }}\n"));
        Self(home)
    }

    fn exec(&self, words: &[&str]) -> Ran {
        let mut all = vec!["exec", "--json"];
        all.extend(words);
        self.0.run(all)
    }

    /// Runs a command and says whether its sandbox had waited.
    fn warm(&self, words: &[&str]) -> bool {
        let ran = self.exec(words);
        let result = ran.json();
        assert_eq!(result["status"], "completed", "{result:#}");
        result["metadata"]["warm"].as_bool().unwrap()
    }

    fn status(&self) -> Value {
        self.0.run(["pool", "status", "--json"]).json()
    }

    fn waiting(&self) -> Vec<Value> {
        self.status()["waiting"].as_array().unwrap().clone()
    }

    /// Waits until this many sandboxes wait and none is being made.
    fn settled(&self, count: usize) -> Vec<Value> {
        for _ in 0..600 {
            let status = self.status();
            let waiting = status["waiting"].as_array().unwrap();
            if waiting.len() == count && status["being_made"] == 0 {
                return waiting.clone();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{count} should wait: {:#}", self.status());
    }

    /// A policy beside the project, by its path.
    fn policy(&self, name: &str, text: &str) -> String {
        let path = self.0.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.path(&format!("project/{name}"))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let drained = self.0.run(["pool", "drain"]);
        if !std::thread::panicking() {
            assert_eq!(drained.code, Some(0), "{}", drained.err);
        }
    }
}

fn sandbox(entry: &Value) -> SandboxId {
    SandboxId::new(entry["sandbox"].as_str().unwrap().to_owned())
}

fn state(id: &SandboxId) -> Option<State> {
    block_on(async {
        let engine = Docker::connect().await.unwrap();
        let found = engine.list(None).await.unwrap();
        found.into_iter().find(|found| found.id == *id).map(|found| found.state)
    })
}

fn until_gone(id: &SandboxId) -> Duration {
    let begun = Instant::now();
    while state(id).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{id} is still there");
        std::thread::sleep(Duration::from_millis(100));
    }
    begun.elapsed()
}

#[test]
fn the_second_call_is_warm_and_a_sandbox_is_used_once() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2");
    // Only a sandbox that nobody used before lets this succeed.
    let used = ["--policy", "contained", "--", "mkdir", "/tmp/used"];
    assert!(!caller.warm(&used), "nothing waits yet");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let entry = caller.settled(1).remove(0);
        assert!(!seen.contains(&entry["sandbox"]), "a sandbox was left after it was used");
        assert!(caller.warm(&used));
        until_gone(&sandbox(&entry));
        seen.push(entry["sandbox"].clone());
    }
    // What varies from call to call travels with it.
    caller.settled(1);
    fs::create_dir(caller.file("sub")).unwrap();
    assert!(!caller.warm(&["--", "pwd"]), "another policy");
    caller.settled(2);
    let ran = caller.exec(&["-C", "sub", "--timeout", "20s", "--", "pwd"]);
    let result = ran.json();
    assert_eq!(result["metadata"]["warm"], true, "{result:#}");
    assert!(result["stdout"].as_str().unwrap().ends_with("project/sub\n"), "{result:#}");
    assert_eq!(result["metadata"]["limits"]["wall"], "20s");
}

#[test]
fn a_cold_call_takes_none_and_leaves_none() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2");
    assert!(!caller.warm(&["--cold", "--", "true"]));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(caller.settled(0).len(), 0);
    assert_eq!(caller.0.run(["pool", "warm"]).code, Some(0));
    assert!(!caller.warm(&["--cold", "--", "true"]));
    assert_eq!(caller.settled(1).len(), 1);
    assert!(caller.warm(&["--", "true"]), "the control");
}

#[test]
fn folders_that_were_made_are_there_for_a_warm_call_and_gone_after_it() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2");
    let look =
        ["-p", "develop", "--", "python3", "-c", "import os; assert os.access('dist', os.W_OK)"];
    let there = || caller.file("dist").exists();
    assert!(!caller.warm(&look));
    for _ in 0..2 {
        caller.settled(1);
        assert!(!there(), "nothing of it is left in the workspace while it waits");
        assert!(caller.warm(&look));
    }
    caller.settled(1);
    assert!(!there());
    // Somebody's own folder is another one: it is not hidden behind ours.
    fs::create_dir(caller.file("dist")).unwrap();
    fs::write(caller.file("dist/own"), "").unwrap();
    let own = ["-p", "develop", "--", "python3", "-c", "open('dist/own')"];
    assert!(!caller.warm(&own));
    assert!(caller.file("dist/own").exists());
}

#[test]
fn a_dead_and_a_foreign_sandbox_are_never_handed_out() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 3");
    let remove = |id: &SandboxId| {
        block_on(async { Docker::connect().await.unwrap().remove(id).await.unwrap() });
    };
    assert!(!caller.warm(&["--", "true"]));
    let dead = sandbox(&caller.settled(1)[0]);
    remove(&dead);
    assert!(!caller.warm(&["--", "true"]), "it is dead");
    // The sandbox of another workspace, under the name of this one's.
    caller.settled(1);
    fs::create_dir_all(caller.0.path("other/.git")).unwrap();
    fs::write(caller.0.path("other/secret"), "elsewhere").unwrap();
    let other = caller.0.path("other");
    let there = ["-C", other.to_str().unwrap(), "--", "true"];
    assert!(!caller.warm(&there));
    let entries = caller.settled(2);
    let of = |workspace: &Path| {
        let text = workspace.to_str().unwrap();
        entries.iter().find(|entry| entry["workspace"] == text).unwrap()["key"].as_str().unwrap()
    };
    let pool = caller.0.path("state/runner/pool");
    let (ours, foreign) = (of(&caller.0.path("project")), of(&other));
    for entry in fs::read_dir(&pool).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with(ours) {
            fs::remove_file(&path).unwrap();
        } else if name.starts_with(foreign) {
            let text = fs::read_to_string(&path).unwrap().replace(foreign, ours);
            fs::write(pool.join(name.replace(foreign, ours)), text).unwrap();
            fs::remove_file(&path).unwrap();
        }
    }
    let result = caller.exec(&["--", "ls"]).json();
    assert_eq!(result["metadata"]["warm"], false, "{result:#}");
    assert_eq!(result["status"], "completed", "{result:#}");
    assert!(!result["stdout"].as_str().unwrap().contains("secret"), "{result:#}");
    caller.settled(1);
    assert!(caller.warm(&["--", "true"]), "the control");
}

/// THREATS row 4: whoever can write an entry can name any container in it.
#[test]
fn a_forged_entry_reaches_and_ends_no_container_of_somebody_else() {
    if !containers() {
        return;
    }
    let (caller, other) = (Caller::new("size: 3"), Caller::new("size: 3"));
    assert!(!other.warm(&["--", "true"]));
    let foreign = sandbox(&other.settled(1)[0]);
    // At claim, and when the pool is drained.
    for drained in [false, true] {
        assert_eq!(caller.0.run(["pool", "drain"]).code, Some(0));
        assert_eq!(caller.0.run(["pool", "warm"]).code, Some(0));
        let own = sandbox(&caller.settled(1)[0]);
        let entry = files(&caller, "waiting").remove(0);
        let text = fs::read_to_string(&entry).unwrap();
        fs::write(&entry, text.replace(own.as_str(), foreign.as_str())).unwrap();
        if drained {
            assert_eq!(caller.0.run(["pool", "drain"]).code, Some(0));
        } else {
            // By its label, the entry's own sandbox is found all the same.
            let result = caller.exec(&["--", "true"]).json();
            assert_eq!(result["metadata"]["warm"], true, "{result:#}");
        }
        until_gone(&own);
        assert_eq!(state(&foreign), Some(State::Running), "drained: {drained}");
    }
}

/// The files of the pool with this ending.
fn files(caller: &Caller, ending: &str) -> Vec<std::path::PathBuf> {
    let pool = fs::read_dir(caller.0.path("state/runner/pool")).unwrap();
    let paths = pool.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

#[test]
fn what_a_dead_process_had_in_its_hands_is_ended_by_the_next() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 3");
    type End = fn(&Caller);
    let ends: [(&str, End); 3] = [
        ("gc", |caller| assert_eq!(caller.0.run(["gc"]).code, Some(0))),
        ("drain", |caller| assert_eq!(caller.0.run(["pool", "drain"]).code, Some(0))),
        ("another call", |caller| assert!(!caller.warm(&["--", "true"]))),
    ];
    for (name, end) in ends {
        assert_eq!(caller.0.run(["pool", "warm"]).code, Some(0));
        let left = sandbox(&caller.settled(1)[0]);
        // As a call leaves it that is killed when it has claimed, and not attached.
        let entry = files(&caller, "waiting").remove(0);
        let label: Value = serde_json::from_slice(&fs::read(&entry).unwrap()).unwrap();
        let claimed = format!("{}.claimed", label["label"].as_str().unwrap());
        fs::rename(&entry, entry.with_file_name(claimed)).unwrap();
        assert_eq!(state(&left), Some(State::Running), "{name}");
        end(&caller);
        until_gone(&left);
        assert_eq!(caller.0.run(["pool", "drain"]).code, Some(0));
        assert!(files(&caller, "claimed").is_empty(), "{name}");
    }
}

#[test]
fn a_drain_goes_on_where_an_engine_is_gone_and_says_so() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 3");
    assert_eq!(caller.0.run(["pool", "warm", "2"]).code, Some(0));
    let waiting: Vec<SandboxId> = caller.settled(2).iter().map(sandbox).collect();
    let entry = files(&caller, "waiting").remove(0);
    let text = fs::read_to_string(&entry).unwrap();
    let mut moved: Value = serde_json::from_str(&text).unwrap();
    let stays = SandboxId::new(moved["sandbox"].as_str().unwrap().to_owned());
    moved["endpoint"] = "unix:///nowhere/docker.sock".into();
    fs::write(&entry, moved.to_string()).unwrap();
    let drained = caller.0.run(["pool", "drain", "--json"]);
    let told = drained.json();
    assert_eq!((drained.code, &told["ended"]), (Some(125), &1.into()), "{told:#}");
    assert_eq!(told["left"][0]["endpoint"], "unix:///nowhere/docker.sock", "{told:#}");
    for id in waiting.iter().filter(|id| **id != stays) {
        until_gone(id);
    }
    // It is not forgotten: when its engine is back, it is ended.
    assert_eq!(caller.waiting().len(), 1);
    fs::write(&entry, text).unwrap();
    assert_eq!(caller.0.run(["pool", "drain", "--json"]).json()["ended"], 1);
    until_gone(&stays);
}

#[test]
fn a_repository_bounds_its_own_and_a_user_turns_all_off() {
    if !containers() {
        return;
    }
    let caller = Caller::new("ttl: 5m");
    let other = caller.0.path("other");
    fs::create_dir_all(other.join(".runner")).unwrap();
    fs::write(other.join(".runner/config.yml"), "pool: { size: 1 }\n").unwrap();
    assert_eq!(caller.0.run(["pool", "warm", "2"]).code, Some(0));
    let there = ["-C", other.to_str().unwrap(), "--", "true"];
    for _ in 0..2 {
        caller.warm(&there);
        caller.settled(3);
    }
    caller.0.config("pool: { size: 0 }\n");
    let result = caller.exec(&["--", "true"]).json();
    assert_eq!(result["metadata"]["warm"], false, "{result:#}");
    caller.settled(0);
}

#[test]
fn a_result_says_what_all_of_it_took() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2");
    let result = |words: &[&str]| caller.exec(words).json()["metadata"].clone();
    assert_eq!(result(&["--", "true"])["discarded"], 0);
    let dead = sandbox(&caller.settled(1)[0]);
    block_on(async { Docker::connect().await.unwrap().remove(&dead).await.unwrap() });
    let metadata = result(&["--", "true"]);
    assert_eq!((&metadata["warm"], &metadata["discarded"]), (&false.into(), &1.into()));
    let phases = metadata["duration_ms"].as_object().unwrap();
    let of = |name: &str| phases[name].as_f64().unwrap();
    assert!(of("plan") > 0.0, "{phases:?}");
    let parts: f64 = phases.keys().filter(|name| *name != "total").map(|name| of(name)).sum();
    assert!(of("total") + 0.01 >= parts, "{phases:?}");
}

/// A time in which no sandbox could be handed out makes none.
#[test]
fn a_pool_that_could_hand_out_none_is_off() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2, ttl: 2s");
    assert!(!caller.warm(&["--", "true"]));
    caller.settled(0);
    let warmed = caller.0.run(["pool", "warm", "--json"]).json();
    assert_eq!(warmed["made"], 0, "{warmed}");
    assert!(warmed["note"].as_str().is_some_and(|note| note.contains("pool.ttl")), "{warmed}");
}

#[test]
fn an_answer_waits_for_no_removal() {
    if !containers() {
        return;
    }
    // Whoever asks the engine to end a sandbox, or to tell of its end, waits for an hour.
    let slow = Arc::new(AtomicBool::new(false));
    let is_slow = Arc::clone(&slow);
    let engine = SlowEngine::new(move |request| {
        let end = request.starts_with("DELETE ")
            || ["/wait", "/kill", "/stop", "/events"].iter().any(|what| request.contains(what));
        (end && is_slow.load(Ordering::SeqCst)).then_some(Duration::from_secs(3600))
    });
    let caller = Caller::new("size: 2");
    let warm = |words: &[&str]| {
        let mut command = caller.0.runner();
        command.env("DOCKER_HOST", engine.endpoint()).args(["exec", "--json"]).args(words);
        let result = Ran::from(command.output().unwrap()).json();
        assert_eq!(result["status"], "completed", "{result:#}");
        result["metadata"]["warm"].as_bool().unwrap()
    };
    // The first call finds out what engine this is, for which it makes a container and removes it.
    assert!(!warm(&["--", "true"]));
    caller.settled(1);
    slow.store(true, Ordering::SeqCst);
    assert!(warm(&["--", "true"]));
    assert!(!warm(&["--cold", "--", "true"]));
    caller.settled(1);
    // Those that were used have ended by themselves.
    slow.store(false, Ordering::SeqCst);
    killed::until_nothing_is_left(&caller);
}

#[test]
fn a_sandbox_that_nobody_answers_for_is_given_up_and_a_new_one_made() {
    if !containers() {
        return;
    }
    // The engine takes the first request to attach, and says nothing to it. The others may be better.
    let first = AtomicUsize::new(0);
    let engine = SlowEngine::new(move |request| {
        let attach = request.starts_with("POST ") && request.contains("/attach?");
        (attach && first.fetch_add(1, Ordering::SeqCst) == 0).then_some(Duration::from_secs(3600))
    });
    let caller = Caller::new("size: 2");
    let run = |words: &[&str]| {
        let mut command = caller.0.runner();
        command.env("DOCKER_HOST", engine.endpoint()).args(words);
        let ran = Ran::from(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.json()
    };
    assert_eq!(run(&["pool", "warm", "2", "--json"])["made"], 2);
    let waiting: Vec<_> = caller.settled(2).iter().map(sandbox).collect();
    let begun = Instant::now();
    let result = run(&["exec", "--json", "--", "echo", "hi"]);
    // Far from what an answer to a request is awaited for, and once only.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(engine.held(), 1);
    assert_eq!((&result["stdout"], &result["metadata"]["warm"]), (&"hi\n".into(), &false.into()));
    let left: Vec<_> = caller.settled(2).iter().map(sandbox).collect();
    let given_up: Vec<_> = waiting.iter().filter(|id| !left.contains(id)).collect();
    let [given_up] = given_up.as_slice() else { panic!("{waiting:?} {left:?}") };
    until_gone(given_up);
    assert_eq!(run(&["exec", "--json", "--", "true"])["metadata"]["warm"], true, "the control");
}

#[test]
fn another_policy_limit_or_kind_of_call_is_another_key() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 8");
    let policy = |reason: &str| {
        caller.0.user_policy(
            "mine",
            &format!(
                "policy: 1\nname: mine\nextends: [readonly]\ncommands:\n  - id: t\n    allow: \"true\"\n    reason: {reason}\n"
            ),
        );
    };
    policy("One.");
    let mine = ["-p", "mine", "--", "true"];
    assert!(!caller.warm(&mine));
    caller.settled(1);
    assert!(caller.warm(&mine), "the control");
    let stale = sandbox(&caller.settled(1)[0]);
    policy("Another.");
    assert!(!caller.warm(&mine), "the policy changed");
    until_gone(&stale);
    caller.settled(1);
    for other in [
        &["-p", "mine", "--memory", "64MiB", "--", "true"][..],
        &["-p", "mine", "--limit", "pids=17", "--", "true"],
        &["-p", "readonly", "--", "true"],
    ] {
        assert!(!caller.warm(other), "{other:?}");
    }
    caller.settled(4);
    assert!(caller.warm(&["-p", "mine", "--timeout", "9s", "--", "true"]), "time is the guest's");
}

#[test]
fn a_storm_never_makes_more_than_may_wait() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2");
    let calls: Vec<Child> = (0..12)
        .map(|_| {
            let mut command = caller.0.runner();
            command.args(["exec", "--", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    let mut most = 0;
    let mut running: Vec<Child> = calls;
    while !running.is_empty() {
        let status = caller.status();
        let all = status["waiting"].as_array().unwrap().len()
            + usize::try_from(status["being_made"].as_u64().unwrap()).unwrap();
        most = most.max(all);
        running.retain_mut(|call| match call.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                false
            }
            None => true,
        });
    }
    let left = caller.settled(2);
    assert!(most <= 2, "{most} waited or were being made at once");
    assert_eq!(left.len(), 2);
}

#[test]
fn what_waits_ends_itself_and_what_is_drained_ends_at_once() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2, ttl: 5s");
    assert_eq!(caller.0.run(["pool", "warm", "1"]).code, Some(0));
    let entry = caller.waiting().remove(0);
    assert_eq!(state(&sandbox(&entry)), Some(State::Running));
    // Nobody asks for it, and nobody of ours runs.
    until_gone(&sandbox(&entry));
    assert_eq!(caller.waiting().len(), 0);
    assert!(!caller.warm(&["--", "true"]), "what is over is not handed out");

    let caller = Caller::new("size: 3");
    let made = caller.0.run(["pool", "warm", "5", "--json"]).json();
    assert_eq!(made["made"], 3, "{made}");
    let entries = caller.settled(3);
    let drained = caller.0.run(["pool", "drain", "--json"]).json();
    assert_eq!(drained["ended"], 3);
    for entry in &entries {
        until_gone(&sandbox(entry));
    }
    assert_eq!(caller.waiting().len(), 0);
}

#[test]
fn a_warm_call_that_is_killed_leaves_nothing() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2");
    let sleep = ["exec", "-p", "contained", "--", "sleep", "60"];
    for signal in [rustix::process::Signal::KILL, rustix::process::Signal::TERM] {
        assert_eq!(
            caller.0.run(["pool", "warm", "-p", "contained", "--", "sleep", "1"]).code,
            Some(0)
        );
        let claimed = sandbox(&caller.waiting()[0]);
        let mut call = caller.0.runner();
        call.args(sleep).stdout(Stdio::null()).stderr(Stdio::null());
        let mut call = call.spawn().unwrap();
        while caller.waiting().iter().any(|entry| sandbox(entry) == claimed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(300));
        let pid = rustix::process::Pid::from_raw(i32::try_from(call.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        call.wait().unwrap();
        until_gone(&claimed);
        caller.0.run(["pool", "drain"]);
    }
}

#[test]
fn a_kernel_of_its_own_can_wait_too() {
    if !containers() {
        return;
    }
    let runtimes =
        block_on(async { Docker::connect().await.unwrap().probe().await.unwrap().runtimes });
    if !runtimes.iter().any(|name| name == "runsc") {
        eprintln!("SKIPPED: the engine does not know runsc");
        return;
    }
    let caller = Caller::new("size: 2");
    caller.0.user_policy(
        "gvisor",
        "policy: 1\nname: gvisor\nextends: [readonly]\nsandbox: { runtime: runsc }\n",
    );
    let list = ["-p", "gvisor", "--", "ls", "-a"];
    assert!(!caller.warm(&list));
    caller.settled(1);
    assert!(caller.warm(&list));
    // A denied file that appears is not shown.
    caller.settled(1);
    fs::write(caller.file(".env"), "canary-41-g").unwrap();
    let result = caller.exec(&["-p", "gvisor", "--", "grep", "-r", "a", "."]).json();
    assert_eq!(result["metadata"]["warm"], false, "{result:#}");
    assert!(!result.to_string().contains("canary-41-g"), "{result:#}");
}

/// Calls from this many clients at once, each of which succeeds only in a sandbox that nobody used before. In turn, one is
/// taken on a guess and one once it is planned.
fn crowd(caller: &Caller, clients: usize, calls: usize) -> usize {
    let used_once = used_once(caller);
    let next = AtomicUsize::new(0);
    let warm = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= calls {
                        break;
                    }
                    if caller.warm(&used_once[at % 2].each_ref().map(String::as_str)) {
                        warm.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    warm.into_inner()
}

/// The words of two calls that succeed only where nobody was before: the sandbox of the first only reads, and is taken on a
/// guess; that of the second can write.
fn used_once(caller: &Caller) -> [[String; 6]; 2] {
    let look = "policy: 1\nname: look\nextends: [readonly]\ncommands:\n  - { id: look, allow: \"perl ...\", effects: [read, code] }\n";
    let look = caller.policy("look.yml", look);
    let script = "mkdir '/tmp/used' or die $!; select undef, undef, undef, 0.05";
    [look.as_str(), "contained"]
        .map(|policy| ["-p", policy, "--", "perl", "-e", script].map(str::to_owned))
}

#[test]
fn a_crowd_shares_what_waits_and_uses_nothing_twice() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 4");
    crowd(&caller, 6, 18);
    caller.settled(4);
    assert!(crowd(&caller, 4, 4) > 0, "what waits is used");
}

#[test]
#[ignore = "a thousand calls; tests/run --long runs it"]
fn a_thousand_calls_from_twenty_clients_use_nothing_twice_and_leave_nothing() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 8");
    let warm = crowd(&caller, 20, 1_000);
    eprintln!("{warm} of 1000 were warm");
    caller.settled(8);
    killed::until_nothing_is_left(&caller);
}

#[test]
#[ignore = "two hundred calls with time to think; tests/run --long runs it"]
fn two_hundred_calls_in_a_row_are_all_warm() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2");
    assert!(!caller.warm(&["--", "true"]));
    for call in 0..200 {
        // Somebody thinks; nobody waits until there is one.
        std::thread::sleep(Duration::from_secs(1));
        assert!(caller.warm(&["--", "true"]), "call {call} fell back to a cold start");
    }
}

#[test]
fn a_tool_waits_with_node_started_and_nothing_of_the_caller_in_it() {
    if !containers() {
        return;
    }
    const CANARY: &str = "canary-15-pool";
    let caller = Caller::new("size: 2");
    fs::create_dir_all(caller.file(".runner/tools")).unwrap();
    fs::write(
        caller.file(".runner/tools/once.yml"),
        "name: once\ndescription: Looks once.\nschema: { type: object }\ncode: |\n  export async function execute(_: {}, { platform }: ToolContext) {\n    const { existsSync, writeFileSync } = await import('node:fs');\n    const used = existsSync('/tmp/used');\n    writeFileSync('/tmp/used', '');\n    return { used, there: await platform.fs.exists('f0') };\n  }\n",
    )
    .unwrap();
    fs::write(caller.file("f0"), CANARY).unwrap();
    let call = || {
        let mut command = caller.0.runner();
        command.env("LANG", "C.UTF-8").env("SECRET_TOKEN", CANARY);
        command.args(["tool", "run", "once", "--yes", "--json"]);
        let result = Ran::from(command.output().unwrap()).json();
        assert_eq!(
            result["value"],
            serde_json::json!({ "used": false, "there": true }),
            "{result:#}"
        );
        result["metadata"]["warm"].as_bool().unwrap()
    };
    assert!(!call());
    for _ in 0..3 {
        let entry = caller.settled(1).remove(0);
        assert_eq!(entry["for"], "tool");
        // THREATS row 15: whoever may ask the engine sees nothing of the caller.
        let shown = crate::image::docker(&["inspect", entry["sandbox"].as_str().unwrap()]);
        assert!(!shown.contains(CANARY) && shown.contains("runtime/main.mjs"), "{shown}");
        assert!(call());
    }
}

/// A tool that needs no more than what every tool has; `files` is what it may read.
fn write_tool(caller: &Caller, name: &str, files: &str) {
    fs::create_dir_all(caller.file(".runner/tools")).unwrap();
    let text = format!(
        "name: {name}\ndescription: Answers.\nschema: {{ type: object, required: [word], properties: {{ word: {{ type: string }} }} }}\nfiles: {{ read: [\"{files}\"] }}\ncode: |\n  export async function execute({{ word }}: {{ word: string }}) {{ return word; }}\n"
    );
    fs::write(caller.file(&format!(".runner/tools/{name}.yml")), text).unwrap();
}

#[test]
fn a_tool_is_warmed_by_name_and_its_first_call_is_warm() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 3");
    write_tool(&caller, "one", "a/**");
    write_tool(&caller, "two", "b/**");
    let warm = |words: &[&str]| {
        let ran = caller.0.run(["pool", "warm", "--json"].iter().chain(words));
        assert_eq!(ran.code, Some(0), "{}", ran.out);
        ran.json()
    };
    let call = |name: &str| {
        let ran = caller.0.run(["tool", "run", name, "--yes", "--json", "--arg", "word=hi"]);
        let result = ran.json();
        assert_eq!(result["value"], "hi", "{result:#}");
        result["metadata"]["warm"].as_bool().unwrap()
    };
    // No arguments are needed, and one tool's do not push out another's.
    let made = |count: usize, note: Value| serde_json::json!({ "made": count, "note": note });
    assert_eq!(warm(&["--tool", "one"]), made(1, Value::Null));
    assert_eq!(warm(&["--tool", "two"]), made(1, Value::Null));
    let waiting = caller.settled(2);
    for entry in &waiting {
        assert_eq!((&entry["for"], &entry["workspace"]), (&"tool".into(), &"".into()), "{entry}");
        assert!(entry["tool"].is_string(), "{entry}");
        let shown = crate::image::docker(&["top", entry["sandbox"].as_str().unwrap()]);
        assert!(shown.contains("runtime/main.mjs"), "Node has started: {shown}");
    }
    assert!(call("one") && call("two"), "{waiting:?}");
    // No more than may wait, said as for commands.
    caller.settled(2);
    let full = warm(&["--tool", "one", "9"]);
    assert!(full["note"].as_str().is_some_and(|note| note.contains("no room")), "{full}");
    assert_eq!(caller.settled(3).len(), 3);
}

#[test]
fn only_a_tool_with_a_sandbox_of_its_own_is_warmed() {
    let caller = Caller::new("size: 2");
    write_tool(&caller, "one", "a/**");
    for (words, code, says) in [
        (&["--tool", "on"][..], Some(2), "one"),
        (&["--tool", "file_operations"], Some(2), "built in"),
        (&["--tool", "Not A Name"], Some(2), "--tool"),
        (&["--tool", "one", "--", "true"], Some(2), "cannot be used with"),
        (&["--tools", "more"], Some(2), "--tool"),
    ] {
        let ran = caller.0.run(["pool", "warm"].iter().chain(words));
        assert_eq!(ran.code, code, "{words:?}: {}", ran.err);
        assert!(ran.err.contains(says), "{words:?}: {}", ran.err);
    }
    assert!(caller.waiting().is_empty());
}
