//! What waits ends: by its time, by a drain, by what is configured; and nobody waits for its end.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use runner::engine::{SandboxId, State};
use serde_json::Value;

use super::{Caller, files, processes, sandbox, state, until, until_gone, until_nothing_is_left};
use crate::slow_engine::SlowEngine;
use crate::support::{Ran, needs_engine};

#[test]
fn what_waits_ends_itself_and_what_is_drained_ends_at_once() {
    needs_engine();
    let caller = Caller::new("size: 2, ttl: 15s");
    assert_eq!(caller.0.run(["pool", "warm", "1"]).code, Some(0));
    let entry = caller.waiting().remove(0);
    assert_eq!(state(&sandbox(&entry)), Some(State::Running));
    // Nobody asks for it, and nobody of ours runs.
    until_gone(&sandbox(&entry));
    assert_eq!(caller.waiting().len(), 0);
    assert!(!caller.warm(&["--", "true"]), "what is over is not handed out");

    let caller = Caller::new("size: 3");
    let made = caller.0.run(["pool", "warm", "5", "--json=full"]).json();
    assert_eq!(made["made"], 3, "{made}");
    let entries = caller.settled(3);
    let drained = caller.0.run(["pool", "drain", "--json=full"]).json();
    assert_eq!(drained["ended"], 3);
    for entry in &entries {
        until_gone(&sandbox(entry));
    }
    assert_eq!(caller.waiting().len(), 0);
}

#[test]
fn a_drain_goes_on_where_an_engine_is_gone_and_says_so() {
    needs_engine();
    let caller = Caller::new("size: 3");
    assert_eq!(caller.0.run(["pool", "warm", "2"]).code, Some(0));
    let waiting: Vec<SandboxId> = caller.settled(2).iter().map(sandbox).collect();
    let entry = files(&caller, "waiting").remove(0);
    let text = fs::read_to_string(&entry).unwrap();
    let mut moved: Value = serde_json::from_str(&text).unwrap();
    let stays = SandboxId::new(moved["sandbox"].as_str().unwrap().to_owned());
    moved["address"] = "docker:unix:///nowhere/docker.sock".into();
    fs::write(&entry, moved.to_string()).unwrap();
    let drained = caller.0.run(["pool", "drain", "--json=full"]);
    let told = drained.json();
    assert_eq!((drained.code, &told["ended"]), (Some(125), &1.into()), "{told:#}");
    assert_eq!(told["left"][0]["endpoint"], "unix:///nowhere/docker.sock", "{told:#}");
    for id in waiting.iter().filter(|id| **id != stays) {
        until_gone(id);
    }
    // It is not forgotten: when its engine is back, it is ended.
    assert_eq!(caller.waiting().len(), 1);
    fs::write(&entry, text).unwrap();
    assert_eq!(caller.0.run(["pool", "drain", "--json=full"]).json()["ended"], 1);
    until_gone(&stays);
}

#[test]
fn a_repository_bounds_its_own_and_a_user_turns_all_off() {
    needs_engine();
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

/// A time in which no sandbox could be handed out makes none.
#[test]
fn a_pool_that_could_hand_out_none_is_off() {
    needs_engine();
    let caller = Caller::new("size: 2, ttl: 2s");
    assert!(!caller.warm(&["--", "true"]));
    // One would be made once the call is over, by its watchdog, which ends after that. It may be over itself by now, and
    // not be shown; its file would still be there.
    until("its watchdog has ended", || processes(&caller).is_empty());
    caller.settled(0);
    assert_eq!(files(&caller, "waiting"), Vec::<std::path::PathBuf>::new());
    let warmed = caller.0.run(["pool", "warm", "--json=full"]).json();
    assert_eq!(warmed["made"], 0, "{warmed}");
    assert!(warmed["note"].as_str().is_some_and(|note| note.contains("pool.ttl")), "{warmed}");
}

#[test]
fn an_answer_waits_for_no_removal() {
    needs_engine();
    let (slow, silent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (is_slow, is_silent) = (Arc::clone(&slow), Arc::clone(&silent));
    let engine = SlowEngine::new(move |request| {
        // Whoever asks the engine to end a sandbox, or to tell of its end, waits for an hour.
        let end = request.starts_with("DELETE ")
            || ["/wait", "/kill", "/stop", "/events"].iter().any(|what| request.contains(what));
        let post = |what: &str| request.starts_with("POST ") && request.contains(what);
        let slow = is_slow.load(Ordering::SeqCst);
        if (slow && end) || (post("/attach?") && is_silent.swap(false, Ordering::SeqCst)) {
            return Some(Duration::from_secs(3600));
        }
        // Time for what is asked for while a sandbox is made.
        (slow && post("/start")).then_some(Duration::from_secs(1))
    });
    let caller = Caller::new("size: 2");
    let warm = |words: &[&str]| {
        let mut command = caller.0.runner();
        command.env("DOCKER_HOST", engine.endpoint()).args(["exec", "--json=full"]).args(words);
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
    // Those that were used end by themselves. One that does not answer is given up, and the call itself has it removed.
    let given_up = sandbox(&caller.settled(1)[0]);
    silent.store(true, Ordering::SeqCst);
    assert!(!warm(&["--", "true"]));
    let held = engine.held_back();
    let removal = |line: &String| line.starts_with("DELETE ") && line.contains(given_up.as_str());
    assert!(held.iter().any(removal), "{held:#?}");
    assert_eq!(state(&given_up), Some(State::Running), "it is not removed yet");
    engine.release();
    until_nothing_is_left(&caller);
}
