//! Which calls are warm: those that a sandbox was planned for, and no others; and each sandbox once.

use std::fs;

use super::{Caller, processes, sandbox, until, until_gone};
use crate::engine::{block_on, engine};
use crate::support::needs_engine;

#[test]
fn the_second_call_is_warm_and_a_sandbox_is_used_once() {
    needs_engine();
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
    needs_engine();
    let caller = Caller::new("size: 2");
    assert!(!caller.warm(&["--cold", "--", "true"]));
    // One would be made once the call is over, by its watchdog, which ends after that.
    until("its watchdog has ended", || processes(&caller).is_empty());
    assert_eq!(caller.settled(0).len(), 0);
    assert_eq!(caller.0.run(["pool", "warm"]).code, Some(0));
    assert!(!caller.warm(&["--cold", "--", "true"]));
    assert_eq!(caller.settled(1).len(), 1);
    assert!(caller.warm(&["--", "true"]), "the control");
}

#[test]
fn another_policy_limit_or_kind_of_call_is_another_key() {
    needs_engine();
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
    assert!(caller.warm(&["-p", "mine", "--timeout", "25s", "--", "true"]), "time is the guest's");
}

#[test]
fn a_sandbox_that_can_write_waits_and_makes_nothing_in_the_workspace() {
    needs_engine();
    let caller = Caller::new("size: 2");
    let script =
        "import os; os.mkdir('dist'); open('dist/x', 'w'); os.remove('dist/x'); os.rmdir('dist')";
    let look = ["-p", "develop", "--", "python3", "-c", script];
    let there = || caller.file("dist").exists();
    assert!(!caller.warm(&look));
    for _ in 0..2 {
        caller.settled(1);
        assert!(!there(), "nothing of it is in the workspace while it waits");
        assert!(caller.warm(&look));
    }
    caller.settled(1);
    assert!(!there());
    // A folder that came while it waited is seen.
    fs::create_dir(caller.file("dist")).unwrap();
    fs::write(caller.file("dist/own"), "").unwrap();
    let own = ["-p", "develop", "--", "python3", "-c", "open('dist/own')"];
    assert!(caller.warm(&own));
    assert!(caller.file("dist/own").exists());
}

#[test]
fn a_kernel_of_its_own_can_wait_too() {
    needs_engine();
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

#[test]
fn a_result_says_what_all_of_it_took() {
    needs_engine();
    let caller = Caller::new("size: 2");
    let result = |words: &[&str]| caller.exec(words).json()["metadata"].clone();
    assert_eq!(result(&["--", "true"])["discarded"], 0);
    let dead = sandbox(&caller.settled(1)[0]);
    block_on(async { engine().await.remove(&dead).await.unwrap() });
    let metadata = result(&["--", "true"]);
    assert_eq!((&metadata["warm"], &metadata["discarded"]), (&false.into(), &1.into()));
    let phases = metadata["duration_ms"].as_object().unwrap();
    let of = |name: &str| phases[name].as_f64().unwrap();
    assert!(of("plan") > 0.0, "{phases:?}");
    let parts: f64 = phases.keys().filter(|name| *name != "total").map(|name| of(name)).sum();
    assert!(of("total") + 0.01 >= parts, "{phases:?}");
}
