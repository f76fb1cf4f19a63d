//! The host's side of a writing call is killed at any moment. The next call or `runner gc` brings everything to its
//! end: the whole change or none of it, and nothing that is left over.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::harness::{Dice, Project};
use crate::aborted::engine;

/// Rounds beyond those that were asked for, until both kinds of moments were met.
const MORE: usize = 10;

/// Files that a call changes, makes and removes.
const FILES: usize = 120;

/// The content of the project by what a round leaves: files by name.
fn files(project: &Project) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, _, content) in super::harness::tree(&project.file(""), &|name| {
        name.starts_with(".git") || name.starts_with("build")
    }) {
        all.insert(name, String::from_utf8(content).unwrap());
    }
    all
}

/// A script that replaces every file by one of this round, and the names too.
fn script(round: usize) -> String {
    format!(
        "mkdir -p deep/r{round}/x; for i in $(seq {FILES}); do echo {round} > src/f$i; echo {round} > deep/r{round}/x/n$i; done; \
         echo {round} > same; rm -rf deep/r{}; echo {round} > .bashrc",
        round.wrapping_sub(1)
    )
}

/// What the project holds once a round was applied.
fn after(round: usize) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let text = format!("{round}\n");
    for name in
        ["deep".to_owned(), format!("deep/r{round}"), format!("deep/r{round}/x"), "src".to_owned()]
    {
        all.insert(name, String::new());
    }
    for at in 1..=FILES {
        all.insert(format!("src/f{at}"), text.clone());
        all.insert(format!("deep/r{round}/x/n{at}"), text.clone());
    }
    all.insert("same".to_owned(), text);
    for (name, content) in [("src/a", "original\n"), (".env", "SECRET=1\n")] {
        all.insert(name.to_owned(), content.to_owned());
    }
    all
}

/// Volumes and containers that show something of this project.
fn engine_has(project: &Project) -> Vec<String> {
    let home = project.home.path("").display().to_string();
    let mut left = Vec::new();
    let mut see = |listed: &Value| {
        for one in listed.as_array().into_iter().flatten() {
            if one.to_string().contains(&home) {
                left.push(one.to_string());
            }
        }
    };
    see(&engine("/containers/json?all=1"));
    see(&engine("/volumes")["Volumes"]);
    left
}

/// Stages that were neither kept for review nor brought to an end.
fn unended_stages(project: &Project) -> Vec<String> {
    let entries =
        fs::read_dir(project.home.path("state/runner/stages")).into_iter().flatten().flatten();
    let dead = entries.filter(|entry| {
        entry.file_name() != "spare"
            && (!entry.path().join("held.json").exists() || entry.path().join("journal").exists())
    });
    dead.map(|entry| format!("{:?}", entry.path())).collect()
}

fn until_ended(project: &Project) {
    let begun = Instant::now();
    loop {
        let ran = project.home.run(["gc"]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        let left = (engine_has(project), unended_stages(project));
        if left == (Vec::new(), Vec::new()) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{left:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The processes of a call that still run: its watchdog sees to its end.
fn kill_at(moments: usize, seed: u64) {
    let project = Project::new();
    let mut dice = Dice::new(seed);
    let begun = Instant::now();
    assert_eq!(project.sh("contained", &script(0))["exit"], 0);
    // Without what the first call does only once, a call is quicker.
    let mut whole = begun.elapsed();
    let (mut before, mut done) = (0, 0);
    assert_eq!(files(&project), after(0), "the control");
    let mut last = 0;
    for round in 1..=moments + MORE {
        // A busy machine makes calls longer or shorter than the first was: some moments must lie before an apply, some after.
        match (round > moments, before, done) {
            (false, ..) => {}
            (true, _, 0) => whole *= 2,
            (true, 0, _) => whole /= 2,
            (true, ..) => break,
        }
        // The rounds that count go on from the one that was applied last.
        let script =
            script(round).replace(&format!("deep/r{}", round - 1), &format!("deep/r{last}"));
        let mut command = project.command("contained", &script);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Most moments lie in the last third, where changes are judged and applied.
        let (part, of) = if dice.below(3) == 0 {
            (dice.below(1000), 1000)
        } else {
            (600 + dice.below(500), 1000)
        };
        std::thread::sleep(whole * u32::try_from(part).unwrap() / of);
        let _ = child.kill();
        child.wait().unwrap();
        if round % 3 == 0 {
            // The next call may be the one that ends it.
            let ran = project.home.run(["exec", "--policy", "contained", "--", "true"]);
            assert_eq!(ran.code, Some(0), "{}", ran.err);
        }
        until_ended(&project);
        let found = files(&project);
        if found == after(round) {
            (done, last) = (done + 1, round);
        } else if found == after(last) {
            before += 1;
        } else {
            let expected = after(last);
            let wrong: Vec<_> = found
                .iter()
                .filter(|(name, text)| expected.get(*name) != Some(text))
                .take(9)
                .collect();
            panic!(
                "round {round} after {last} at {part}: neither old nor new: {wrong:?}, {} files",
                found.len()
            );
        }
        assert!(!project.exists(".bashrc"));
    }
    println!("{moments} moments: {before} before anything was applied, {done} after");
    assert!(before > 0 && done > 0, "the moments lie within the calls: {before}, {done}");
    project.assert_sound();
}

#[test]
fn killed_at_twelve_points_of_writing_calls_nothing_is_lost_or_left() {
    kill_at(12, 5);
}

#[test]
fn killed_at_two_hundred_moments_of_writing_calls_nothing_is_lost_or_left() {
    kill_at(200, 77);
}
