//! Callers, and those who make sandboxes for them, killed at any moment.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Caller, used_once};
use crate::aborted::engine;
use crate::support::containers;

/// At how many moments they are killed.
const MOMENTS: u32 = 18;

/// How far those lie apart. All of them together are as long as a call of an unoptimised build, and what it leaves to
/// others.
const APART: Duration = Duration::from_millis(25);

/// How long what is left may stay, while somebody looks for it.
const LEFT: Duration = Duration::from_secs(60);

/// All processes that a caller has: calls, and those that watch them and make sandboxes.
fn processes(caller: &Caller) -> Vec<Pid> {
    let state = format!("XDG_STATE_HOME={}", caller.0.path("state").display());
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mine = variables.split(|byte| *byte == 0).any(|one| one == state.as_bytes());
        mine.then(|| Pid::from_raw(pid)).flatten()
    });
    all.collect()
}

/// All containers that show something of a caller's.
fn sandboxes(caller: &Caller) -> Vec<String> {
    let home = caller.0.path("").display().to_string();
    let listed = engine("/containers/json?all=1");
    let mounts = |one: &serde_json::Value| one["Mounts"].as_array().cloned().unwrap_or_default();
    let source = |mount: &serde_json::Value| mount["Source"].as_str().map(str::to_owned);
    let mine = |one: &&serde_json::Value| {
        mounts(one).iter().filter_map(source).any(|source| source.starts_with(&home))
    };
    let found = listed.as_array().expect("a list").iter().filter(mine);
    found.map(|one| format!("{} {}", one["Names"], one["State"])).collect()
}

/// The files of a caller's pool, but for its lock.
fn left_in_pool(caller: &Caller) -> Vec<String> {
    let folder = fs::read_dir(caller.0.path("state/runner/pool")).into_iter().flatten();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

#[test]
fn killed_at_any_moment_nothing_is_used_twice_and_nothing_stays() {
    if !containers() {
        return;
    }
    let caller = Caller::new("size: 2");
    let calls = used_once(&caller);
    let calls = calls.each_ref().map(|call| call.each_ref().map(String::as_str));
    for call in &calls {
        caller.warm(call);
    }
    caller.settled(2);
    assert!(processes(&caller).is_empty() && sandboxes(&caller).len() == 2, "the control");
    let mut after = 0;
    for moment in 0..MOMENTS {
        let call = &calls[moment as usize % calls.len()];
        let mut command = caller.0.runner();
        command.arg("exec").args(call).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(APART * moment);
        // The caller alone, or everybody that it has.
        let _ = child.kill();
        if moment % 4 >= 2 {
            for process in processes(&caller) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        after += u32::from(child.wait().unwrap().success());
        // Whoever comes next finds something unused, whatever is left.
        caller.warm(call);
    }
    println!("{after} of {MOMENTS} calls were over before they were killed");
    assert!(after < MOMENTS, "the moments lie within a call");
    until_nothing_is_left(&caller);
}

/// Ends what waits, and waits until nothing is there that a caller had.
pub(super) fn until_nothing_is_left(caller: &Caller) {
    assert_eq!(caller.0.run(["pool", "drain"]).code, Some(0));
    let begun = Instant::now();
    loop {
        // The engine may still make what a dead one has asked for.
        assert_eq!(caller.0.run(["gc"]).code, Some(0));
        let left = (sandboxes(caller), left_in_pool(caller), processes(caller));
        if left == (Vec::new(), Vec::new(), Vec::new()) {
            break;
        }
        assert!(begun.elapsed() < LEFT, "{left:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("all was gone after {:?}", begun.elapsed());
}
