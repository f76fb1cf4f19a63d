//! Processes that die at any moment, and many that write at once: the ledger is sound, and every call has an end.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::assert_sound;
use crate::support::{Home, needs_engine};

/// Starts a call that prints nothing.
fn start(home: &Home, args: &[String]) -> Child {
    let mut command: Command = home.runner();
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")
}

/// Kills each of these calls after another part of `most`, some of them never.
fn kill_some(home: &Home, calls: &[Vec<String>], most: Duration) {
    let count = u32::try_from(calls.len()).expect("few");
    for (at, call) in (0..count).zip(calls) {
        let mut child = start(home, call);
        // Spread evenly, and in an order that no other schedule shares.
        let part = at * 37 % count;
        std::thread::sleep(most * part / count);
        if part != count - 1 {
            child.kill().expect("killed, or over");
        }
        child.wait().expect("reaped");
    }
}

/// Every call that started ended once, and nothing is left running.
fn assert_ended(home: &Home) -> BTreeMap<String, usize> {
    let report = assert_sound(home);
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let exported = home.run(["audit", "export"]);
    for line in exported.out.lines() {
        let record: Value = serde_json::from_str(line).expect("JSON");
        let text = |key: &str| record[key].as_str().expect("text").to_owned();
        kinds.entry(text("call")).or_default().push(text("kind"));
    }
    assert_eq!(report["calls"].as_u64(), Some(kinds.len() as u64));
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for (call, kinds) in kinds {
        let started = kinds.iter().filter(|kind| *kind == "start").count();
        let ended: Vec<_> =
            kinds.iter().filter(|kind| matches!(kind.as_str(), "end" | "aborted")).collect();
        let refused = kinds.iter().filter(|kind| *kind == "refused").count();
        assert_eq!(
            (started, ended.len(), started + refused),
            (started, started, 1),
            "{call}: {kinds:?}"
        );
        let end = ended.first().map_or("refused", |kind| kind.as_str());
        *ends.entry(end.to_owned()).or_default() += 1;
    }
    assert_eq!(home.run(["ps", "--json"]).json()["calls"], serde_json::json!([]));
    ends
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Calls that are refused die while they write their one record; those in containers at every other moment too.
fn die(refused: usize, contained: usize) {
    let home = Home::new();
    let calls: Vec<_> = (0..refused).map(|at| words(&format!("exec -- rm file-{at}"))).collect();
    kill_some(&home, &calls, Duration::from_millis(60));
    let calls: Vec<_> = (0..contained).map(|at| words(&format!("exec -- printf {at}"))).collect();
    kill_some(&home, &calls, Duration::from_millis(1200));
    let ends = assert_ended(&home);
    println!("{ends:?}");
    // The control: the next call is recorded from its start to its end.
    assert_eq!(home.run(["exec", "--", "true"]).code, Some(0));
    let after = assert_ended(&home);
    assert_eq!(
        after.get("end").copied().unwrap_or(0),
        ends.get("end").copied().unwrap_or(0) + 1,
        "{ends:?} {after:?}"
    );
}

#[test]
fn killed_at_any_moment_every_call_has_an_end_and_the_ledger_is_sound() {
    needs_engine();
    die(40, 20);
}

#[test]
fn killed_at_two_hundred_moments_every_call_has_an_end_and_the_ledger_is_sound() {
    needs_engine();
    die(100, 200);
}

#[test]
fn many_processes_write_one_chain() {
    let home = Home::new();
    let children: Vec<Child> =
        (0..60).map(|at| start(&home, &words(&format!("exec -- rm file-{at}")))).collect();
    for mut child in children {
        assert_eq!(child.wait().expect("ends").code(), Some(126));
    }
    let report = assert_sound(&home);
    assert_eq!(
        (&report["records"], &report["last"], &report["lag"]),
        (&60.into(), &60.into(), &0.into())
    );
}
