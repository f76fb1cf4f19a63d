//! runner is killed while it makes, runs and ends a sandbox: nothing of the sandbox stays.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::traces::{self, Traces};
use crate::everyday::caller::Caller;
use crate::support::{choose_engine, needs_root};
use runner::engine::EngineName;

/// The span over which the kills are spread: a launch, a short command, and the apply of what it wrote.
const SPAN: u64 = 60_000;

/// Kills this many calls, each at another moment of its life.
fn kill_at_moments(caller: &Caller, count: u64) {
    let project = caller.project("project", &[("a.txt", "a")]);
    caller.works(&project, &["exec", "--policy", "contained", "--", "true"]);
    for at in 0..count {
        // A prime spreads the moments over the span in another order than time's.
        let moment = Duration::from_micros(at * 7_919 % SPAN);
        let traces = Traces::of_now();
        let line = format!("echo one > one-{at}; sleep 0.01; echo two > two-{at}");
        let mut call = caller.runner(&project);
        call.args(["exec", "--policy", "contained", "--", "sh", "-c", &line]);
        let mut call = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment);
        call.kill().unwrap();
        call.wait().unwrap();
        if let Some(left) = traces.left(&format!("killed after {moment:?}")) {
            panic!("{left}");
        }
    }
    // What a dead call cannot remove itself goes with the next one, or with `gc`.
    caller.works(&project, &["gc", "--engine", "embedded"]);
    let list = caller.works(&project, &["audit", "list", "--json"]);
    let groups: BTreeSet<_> = traces::groups()
        .into_iter()
        .filter(|group| {
            let name = group.file_name().unwrap().to_string_lossy().into_owned();
            list.contains(name.trim_start_matches("runner-sandbox-"))
        })
        .collect();
    assert!(groups.is_empty(), "{groups:?}");
    assert_eq!(traces::stages(caller), None);
    let there = |name: String| project.join(name).exists();
    for at in 0..count {
        let (one, two) = (there(format!("one-{at}")), there(format!("two-{at}")));
        assert_eq!(one, two, "call {at} was applied by half");
    }
    caller.works(&project, &["audit", "verify"]);
}

#[test]
fn root_is_killed_at_twenty_moments() {
    needs_root();
    choose_engine(EngineName::Embedded);
    kill_at_moments(&Caller::with_home("/var/tmp"), 20);
}

#[test]
fn an_ordinary_user_is_killed_at_twenty_moments() {
    choose_engine(EngineName::Embedded);
    kill_at_moments(&Caller::ordinary("/var/tmp"), 20);
}

#[test]
fn root_is_killed_at_two_hundred_moments() {
    needs_root();
    choose_engine(EngineName::Embedded);
    kill_at_moments(&Caller::with_home("/var/tmp"), 200);
}

#[test]
fn an_ordinary_user_is_killed_at_two_hundred_moments() {
    choose_engine(EngineName::Embedded);
    kill_at_moments(&Caller::ordinary("/var/tmp"), 200);
}

/// Processes of this machine that have this word among their words.
fn with_word(word: &str) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_word = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let inside = fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let ours = fs::read_link("/proc/self/ns/pid").ok();
        inside != ours && String::from_utf8_lossy(&words).contains(word)
    };
    numbers.filter(has_word).collect()
}

/// Waits for something that must come about.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The first process of the sandbox that a process is in.
fn guest_of(pid: u32) -> u32 {
    let space = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let is_first = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        line.is_some_and(|numbers| numbers.split_whitespace().last() == Some("1"))
    };
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let guest = numbers.find(|other| {
        let status = fs::read_to_string(format!("/proc/{other}/status")).unwrap_or_default();
        space(*other) == space(pid) && is_first(&status)
    });
    guest.unwrap()
}

/// A call of a program that holds a file of the workspace open and writes on and on, from many processes that use every
/// processor. `word` tells them from all others.
fn writes_for_ever(caller: &Caller, project: &Path, word: &str, wall: &str) -> Child {
    let script = format!(
        "import os, time\nheld = open('held', 'w')\nfor _ in range(40):\n  if os.fork() == 0:\n    while True: pass\n\
         while True:\n  held.seek(0); held.write(str(time.time())); held.flush() # {word}\n"
    );
    let mut call = caller.runner(project);
    call.args(["exec", "--policy", "contained", "--timeout", wall, "--", "python3", "-c", &script]);
    let call = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the program runs", || with_word(word).len() > 40);
    call
}

/// The guest is stopped, as if it got no processor: the launcher kills every process before anything is applied.
fn a_guest_that_does_not_answer_is_ended_first(caller: &Caller, word: &str) {
    let project = caller.project("project", &[("held", "before")]);
    let mut call = writes_for_ever(caller, &project, word, "3s");
    let guest = guest_of(with_word(word)[0]);
    let guest = rustix::process::Pid::from_raw(guest.cast_signed()).unwrap();
    rustix::process::kill_process(guest, rustix::process::Signal::STOP).unwrap();
    let ended = call.wait().unwrap();
    assert_eq!(with_word(word), Vec::<u32>::new(), "at the moment of its end");
    assert_eq!(ended.code(), Some(124));
    // The next call works, and the file is not written any more.
    let held = fs::read(project.join("held")).unwrap();
    caller.works(&project, &["exec", "--policy", "contained", "--", "true"]);
    assert_eq!(fs::read(project.join("held")).unwrap(), held);
}

#[test]
fn root_has_a_guest_that_does_not_answer() {
    needs_root();
    choose_engine(EngineName::Embedded);
    let caller = Caller::with_home("/var/tmp");
    a_guest_that_does_not_answer_is_ended_first(&caller, "word-of-a-stopped-guest-of-root");
}

#[test]
fn an_ordinary_user_has_a_guest_that_does_not_answer() {
    choose_engine(EngineName::Embedded);
    let caller = Caller::ordinary("/var/tmp");
    a_guest_that_does_not_answer_is_ended_first(&caller, "word-of-a-stopped-guest-of-a-user");
}

/// The same for a host that is killed: nothing but the launcher is left to end the sandbox.
fn a_guest_that_does_not_answer_is_ended_after_a_kill(caller: &Caller, word: &str) {
    let project = caller.project("project", &[("held", "before")]);
    let mut call = writes_for_ever(caller, &project, word, "10m");
    let guest = guest_of(with_word(word)[0]);
    let guest = rustix::process::Pid::from_raw(guest.cast_signed()).unwrap();
    rustix::process::kill_process(guest, rustix::process::Signal::STOP).unwrap();
    call.kill().unwrap();
    call.wait().unwrap();
    until("every process is gone", || with_word(word).is_empty());
    assert_eq!(fs::read_to_string(project.join("held")).unwrap(), "before");
}

#[test]
fn root_is_killed_while_the_guest_does_not_answer() {
    needs_root();
    choose_engine(EngineName::Embedded);
    let caller = Caller::with_home("/var/tmp");
    a_guest_that_does_not_answer_is_ended_after_a_kill(&caller, "word-of-a-killed-call-of-root");
}

#[test]
fn an_ordinary_user_is_killed_while_the_guest_does_not_answer() {
    choose_engine(EngineName::Embedded);
    let caller = Caller::ordinary("/var/tmp");
    a_guest_that_does_not_answer_is_ended_after_a_kill(&caller, "word-of-a-killed-call-of-a-user");
}
