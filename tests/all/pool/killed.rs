//! Callers, and those who make sandboxes for them, killed at any moment.

use std::collections::HashSet;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use runner::engine::State;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{
    Caller, files, processes, sandbox, sandboxes, state, until, until_gone, until_nothing_is_left,
    used_once,
};
use crate::support::needs_engine;

/// At how many moments of a call they are killed.
const MOMENTS: u32 = 18;

/// How far those lie apart. All of them together are as long as a call of an unoptimised build, and what it leaves to
/// others.
const APART: Duration = Duration::from_millis(25);

/// At how many moments, as far apart, whoever makes a sandbox is killed. All of them together are about as long as that
/// takes.
const MAKING: u32 = 5;

/// Kills all processes that a caller has, until it has none; how many there were.
fn kill_all(caller: &Caller) -> usize {
    let mut killed = HashSet::new();
    until("all are dead", || {
        let found = processes(caller);
        for process in &found {
            let _ = kill_process(*process, Signal::KILL);
        }
        killed.extend(found.iter().copied());
        found.is_empty()
    });
    killed.len()
}

#[test]
fn killed_at_any_moment_nothing_is_used_twice_and_nothing_stays() {
    needs_engine();
    let caller = Caller::new("size: 2");
    let calls = used_once(&caller);
    let calls = calls.each_ref().map(|call| call.each_ref().map(String::as_str));
    for call in &calls {
        caller.warm(call);
    }
    caller.settled(2);
    // Watchdogs, and what was used, go a while after the calls.
    let quiet = || processes(&caller).is_empty();
    until("the control", || quiet() && sandboxes(&caller).len() == 2);
    let (mut after, mut watchdogs) = (0, 0);
    // The caller alone, whose watchdog sees to the rest; and everybody that it has, those that earlier calls left too.
    for (moment, all) in (0..MOMENTS).flat_map(|moment| [(moment, false), (moment, true)]) {
        let call = &calls[moment as usize % calls.len()];
        let mut command = caller.0.runner();
        command.arg("exec").args(call).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(APART * moment);
        let _ = child.kill();
        after += u32::from(child.wait().unwrap().success());
        if all {
            watchdogs += kill_all(&caller);
        }
        // Whoever comes next finds something unused, whatever is left.
        caller.warm(call);
    }
    println!("{after} of {} calls were over before they were killed", 2 * MOMENTS);
    assert!(after < 2 * MOMENTS, "the moments lie within a call");
    assert!(watchdogs > 0, "watchdogs are killed with their callers");
    // Behind a call that is over, its watchdog makes the next sandbox.
    let mut unfinished = 0;
    for (call, moment) in calls.iter().flat_map(|call| (0..MAKING).map(move |at| (call, at))) {
        // Nobody else makes one then, and there is room for it.
        until("all watchdogs have ended", quiet);
        let there = || ["making", "waiting"].map(|ending| files(&caller, ending)).concat();
        let before = there();
        caller.warm(call);
        until("one is made", || there().iter().any(|file| !before.contains(file)));
        std::thread::sleep(APART * moment);
        kill_all(&caller);
        until("nobody makes one", || caller.status()["being_made"] == 0);
        // Whoever dies while making one leaves a file that nobody holds.
        let left = files(&caller, "making");
        unfinished += u32::from(left.iter().any(|file| !before.contains(file)));
        caller.warm(call);
    }
    println!("{unfinished} watchdogs were killed while they made a sandbox");
    assert!(unfinished > 0, "the moments lie within the making of one");
    until_nothing_is_left(&caller);
}

#[test]
fn a_warm_call_that_is_killed_leaves_nothing() {
    needs_engine();
    let caller = Caller::new("size: 2");
    let sleep = ["exec", "-p", "contained", "--", "sleep", "60"];
    for signal in [Signal::KILL, Signal::TERM] {
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
        let pid = Pid::from_raw(i32::try_from(call.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        call.wait().unwrap();
        until_gone(&claimed);
        caller.0.run(["pool", "drain"]);
    }
}

#[test]
fn what_a_dead_process_had_in_its_hands_is_ended_by_the_next() {
    needs_engine();
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
        // Whoever ended it removes its file last.
        until(&format!("{name}: no file is left"), || files(&caller, "claimed").is_empty());
    }
}
