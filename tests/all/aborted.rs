//! The whole program dies, at any moment: nothing of it is left, the next call works, and the ledger says
//! so. `death` does the same below the command line.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::everyday::{Caller, engine_socket};
use crate::own_engine::{GONE, OwnEngine};
use crate::slow_engine::SlowEngine;
use crate::support::{needs_engine, needs_root};

/// Pseudo-random numbers from a seed (xorshift), so that a failure can be tried again.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let seed = std::env::var("RUNNER_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let clock = || std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
        let seed = seed.unwrap_or_else(clock) | 1;
        println!("RUNNER_TEST_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Asks the engine itself, without any code of ours.
pub fn engine(path: &str) -> serde_json::Value {
    let out = Command::new("curl")
        .args(["-s", "--unix-socket"])
        .arg(engine_socket())
        .arg(format!("http://engine{path}"))
        .output()
        .expect("curl");
    serde_json::from_slice(&out.stdout).unwrap_or_default()
}

/// The engine's filter for one of our labels.
fn labelled(label: &str, value: &str) -> String {
    format!("filters=%7B%22label%22%3A%5B%22runner.{label}%3D{value}%22%5D%7D")
}

/// Containers in any state that this process has made, whatever for.
fn containers_of(pid: u32) -> usize {
    let filter = labelled("pid", &pid.to_string());
    engine(&format!("/containers/json?all=1&{filter}")).as_array().map_or(0, Vec::len)
}

/// Processes whose arguments name this folder or one of these calls.
fn processes(words: &[&str]) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| words.iter().any(|word| line.contains(word)))
        .collect()
}

fn files(folder: &std::path::Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files(&entry.path(), into);
        }
        into.insert(entry.path().display().to_string());
    }
}

/// What must not change: the project, the temporary folder's files of ours, and mounts of this machine.
fn around(caller: &Caller) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    files(&caller.path("project"), &mut all);
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let ours = |line: &&str| line.contains(&*caller.path("").to_string_lossy());
    all.extend(mounts.lines().filter(ours).map(str::to_owned));
    all
}

fn begin(caller: &Caller) -> Command {
    let mut command = caller.runner(&caller.path("project"));
    command.args([
        "exec",
        "--policy",
        "develop",
        "--",
        "python3",
        "-c",
        "import time; time.sleep(0.4)",
    ]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn calls(caller: &Caller) -> Vec<(String, String)> {
    let shown =
        caller.run(&caller.path("project"), &["audit", "list", "--json", "-n", "1000"]).json();
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or("").to_owned();
    let rows = shown["calls"].as_array().expect("calls");
    rows.iter().map(|row| (text(row, "call"), text(row, "status"))).collect()
}

#[test]
fn killed_at_ten_moments_it_leaves_nothing() {
    needs_engine();
    leaves_nothing_when_killed(10);
}

#[test]
fn killed_at_fifty_moments_it_leaves_nothing() {
    needs_engine();
    leaves_nothing_when_killed(50);
}

fn leaves_nothing_when_killed(rounds: u32) {
    let caller = Caller::ourselves("/var/tmp");
    caller.project("project", &[("a.txt", ""), (".runner/.keep", "")]);
    // How long a whole call takes here and now, images and caches being warm.
    assert!(begin(&caller).status().expect("starts").success());
    let begun = Instant::now();
    assert!(begin(&caller).status().expect("starts").success());
    let whole = begun.elapsed();
    let before = around(&caller);
    let mut chance = Chance::new();
    let mut worst = Duration::ZERO;
    let mut aborted = 0;
    let mut killed = Vec::new();
    for round in 0..rounds {
        let known: BTreeSet<String> = calls(&caller).into_iter().map(|(call, _)| call).collect();
        let moment = Duration::from_micros(chance.below(whole.as_micros() as u64 * 11 / 10));
        let mut child = begin(&caller).spawn().expect("starts");
        std::thread::sleep(moment);
        child.kill().expect("killed");
        let died = Instant::now();
        child.wait().expect("reaped");
        killed.push(child.id());
        // Asking finds what was aborted; before the record was written there is nothing to find.
        let new: Vec<_> =
            calls(&caller).into_iter().filter(|(call, _)| !known.contains(call)).collect();
        assert!(new.len() <= 1, "{new:?}");
        // Without a record nothing has a name yet, so nobody can watch it.
        let call = new.first().map_or("no-such-call", |(call, _)| call.as_str()).to_owned();
        for (_, status) in &new {
            assert!(
                status == "aborted" || status == "completed",
                "round {round}, {moment:?}: {status}"
            );
            aborted += u32::from(status == "aborted");
        }
        loop {
            let left = (containers_of(child.id()), processes(&[&call]));
            let changed: Vec<_> = around(&caller).symmetric_difference(&before).cloned().collect();
            if left.0 == 0 && left.1.is_empty() && changed.is_empty() {
                break;
            }
            let waited = died.elapsed();
            assert!(waited < GONE, "round {round}, killed after {moment:?}: {left:?} {changed:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
        worst = worst.max(died.elapsed());
    }
    println!(
        "a call takes {whole:?}; {aborted} of {rounds} aborted; all was gone after at most {worst:?}"
    );
    assert!(aborted > 0, "the moments are spread over the call");
    // Nor did anything appear once nobody looked any more.
    let late: Vec<_> = killed.into_iter().filter(|pid| containers_of(*pid) > 0).collect();
    assert!(late.is_empty(), "containers of {late:?}");
    assert!(begin(&caller).status().expect("starts").success(), "the next call works");
}

/// What became of a call's container since then, as the engine has noted it.
fn events(call: &str, since: u64) -> Vec<String> {
    let filter = labelled("call", call);
    let until = std::time::UNIX_EPOCH.elapsed().expect("a clock").as_secs() + 1;
    let out = Command::new("curl")
        .args(["-s", "--unix-socket"])
        .arg(engine_socket())
        .arg(format!("http://engine/events?since={since}&until={until}&{filter}"))
        .output()
        .expect("curl");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let events = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    events
        .map(|event: serde_json::Value| event["Action"].as_str().unwrap_or("").to_owned())
        .collect()
}

#[test]
fn what_the_engine_makes_long_after_the_death_goes_as_soon_as_it_is_there() {
    /// Longer than anybody would look for it without knowing that it comes.
    const LATE: Duration = Duration::from_secs(8);
    needs_engine();
    let engine = SlowEngine::new(|request| {
        (request.starts_with("POST ") && request.contains("/containers/create?name=runner-"))
            .then_some(LATE)
    });
    let caller = Caller::ourselves("/var/tmp");
    caller.project("project", &[("a.txt", ""), (".runner/.keep", "")]);
    let before = around(&caller);
    let since = std::time::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    // Nothing but what is there is mounted: what a call makes for itself goes before, and nothing could be made.
    let mut command = caller.runner(&caller.path("project"));
    command.args(["exec", "--", "cat", "a.txt"]).env("DOCKER_HOST", engine.endpoint());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    engine.wait_for(1);
    child.kill().expect("killed");
    let died = Instant::now();
    child.wait().expect("reaped");
    let call = calls(&caller)[0].0.clone();
    let watchdog = || processes(&[&engine.endpoint()]);
    assert_eq!(watchdog().len(), 1, "it knows that something will come");
    while !watchdog().is_empty() {
        let waited = died.elapsed();
        assert!(waited < LATE + GONE, "{:?} {:?}", watchdog(), events(&call, since));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(events(&call, since), ["create", "destroy"]);
    assert_eq!(containers_of(child.id()), 0);
    assert_eq!(around(&caller), before);
}

#[test]
fn who_waits_for_a_silent_engine_is_in_the_records() {
    needs_engine();
    let engine = SlowEngine::new(|request| {
        request.starts_with("GET /_ping ").then_some(Duration::from_secs(3600))
    });
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("project", &[("a.txt", ""), (".runner/.keep", "")]);
    let mut command = caller.runner(&project);
    command.args(["exec", "--", "cat", "a.txt"]).env("DOCKER_HOST", engine.endpoint());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    engine.wait_for(1);
    let listed = || caller.run(&project, &["--json", "ps"]).json()["calls"][0]["pid"].as_u64();
    while listed() != Some(child.id().into()) {
        assert_eq!(child.try_wait().expect("a child"), None, "it was over before it was recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("killed");
    child.wait().expect("reaped");
    assert_eq!(listed(), None);
    let all = calls(&caller);
    let [(_, end)] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(end, "aborted");
}

#[test]
fn a_killed_container_is_an_error_of_the_engine() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("project", &[("a.txt", ""), (".runner/.keep", "")]);
    let mut child = caller
        .runner(&project)
        .args([
            "exec",
            "--json",
            "--policy",
            "develop",
            "--",
            "python3",
            "-c",
            "import time; time.sleep(600)",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let id = loop {
        let found = engine("/containers/json");
        let mine = found.as_array().and_then(|all| {
            all.iter()
                .find(|one| one["Labels"]["runner.pid"].as_str() == Some(&child.id().to_string()))
        });
        if let Some(id) = mine.and_then(|one| one["Id"].as_str()) {
            break id.to_owned();
        }
        assert_eq!(child.try_wait().expect("a child"), None, "no container: {found}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let killed = Command::new("curl")
        .args(["-s", "-X", "POST", "--unix-socket"])
        .arg(engine_socket())
        .arg(format!("http://engine/containers/{id}/kill"))
        .status();
    assert!(killed.expect("curl").success());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(125));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["error"]["code"], "guest_lost", "{result}");
    assert_eq!(calls(&caller)[0].1, "error");
    assert!(begin(&caller).status().expect("starts").success(), "the next call works");
}

#[test]
fn a_restarted_engine_loses_the_call_and_nothing_stays() {
    needs_engine();
    needs_root();
    let mut engine = OwnEngine::new();
    engine.start();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("project", &[("a.txt", "one\n"), (".runner/.keep", "")]);
    let here = |args: &[&str]| {
        let mut command = caller.runner(&project);
        command.env("DOCKER_HOST", engine.endpoint()).args(args);
        command
    };
    let code = "print('up', flush=True); import time; time.sleep(600)";
    let mut child = here(&["exec", "--policy", "develop", "--", "python3", "-c", code])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut up = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut up).expect("a word");
    let next = here(&["exec", "--", "cat", "a.txt"]);
    let listed = here(&["audit", "list", "--json"]);
    engine.stop();
    let ended = child.wait_with_output().expect("ends");
    assert_eq!(ended.status.code(), Some(125), "{}", String::from_utf8_lossy(&ended.stderr));
    engine.start();
    let [mut next, mut listed] = [next, listed];
    let out = next.output().expect("starts");
    assert_eq!(
        (out.status.code(), &*out.stdout),
        (Some(0), &b"one\n"[..]),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    engine.until_empty();
    let shown: serde_json::Value =
        serde_json::from_slice(&listed.output().expect("starts").stdout).expect("JSON");
    assert_eq!(shown["calls"][1]["status"], "error", "{shown}");
}
