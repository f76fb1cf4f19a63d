//! Sandboxes that are dead, somebody else's or silent: none is handed out, and what is not ours is not ended.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runner::engine::{SandboxId, State};

use super::{Caller, files, sandbox, state, until_gone};
use crate::engine::{block_on, engine};
use crate::slow_engine::SlowEngine;
use crate::support::{Ran, needs_engine};

#[test]
fn a_dead_and_a_foreign_sandbox_are_never_handed_out() {
    needs_engine();
    let caller = Caller::new("size: 3");
    let remove = |id: &SandboxId| {
        block_on(async { engine().await.remove(id).await.unwrap() });
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
    needs_engine();
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
            // The next one is there, and no other will come behind the drain.
            caller.settled(1);
        }
        until_gone(&own);
        assert_eq!(state(&foreign), Some(State::Running), "drained: {drained}");
    }
}

#[test]
fn a_sandbox_that_nobody_answers_for_is_given_up_and_a_new_one_made() {
    needs_engine();
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
    assert_eq!(run(&["pool", "warm", "2", "--json=full"])["made"], 2);
    let waiting: Vec<_> = caller.settled(2).iter().map(sandbox).collect();
    // An answer to a request is awaited for longer than this call has.
    let result = run(&["exec", "--json=full", "--", "echo", "hi"]);
    assert_eq!(engine.held(), 1, "once only");
    assert_eq!((&result["stdout"], &result["metadata"]["warm"]), (&"hi\n".into(), &false.into()));
    let left: Vec<_> = caller.settled(2).iter().map(sandbox).collect();
    let given_up: Vec<_> = waiting.iter().filter(|id| !left.contains(id)).collect();
    let [given_up] = given_up.as_slice() else { panic!("{waiting:?} {left:?}") };
    until_gone(given_up);
    assert_eq!(
        run(&["exec", "--json=full", "--", "true"])["metadata"]["warm"],
        true,
        "the control"
    );
}
