//! runner is killed while it makes, runs and ends a sandbox: nothing of the sandbox stays.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

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
