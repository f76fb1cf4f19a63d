//! Many calls at once: all correct, none lost, and no process of ours grows.

use std::process::{Child, Stdio};
use std::time::Instant;

use crate::everyday::Caller;
use crate::support::{Ran, needs_engine};

/// The most that a process of ours may ever have in memory.
pub const PEAK: u64 = 40 << 20;

/// Memory that a process has taken at this moment. Pages of the executable itself do not count: without
/// optimisation it is several times as large, and `tests/bench/cold` holds the real one to the same figure.
pub fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

#[test]
fn thirty_calls_at_once() {
    needs_engine();
    all_are_right(30);
}

#[test]
fn a_hundred_calls_at_once() {
    needs_engine();
    all_are_right(100);
}

fn all_are_right(count: usize) {
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("project", &[("a.txt", "one\n"), (".runner/.keep", "")]);
    // The image and what is remembered about the engine.
    caller.works(&project, &["exec", "--", "true"]);
    let begun = Instant::now();
    let children: Vec<Child> = (0..count)
        .map(|at| {
            // Half of them write, into one folder that each may be the first to need.
            let code = format!(
                "import os; os.makedirs('out', exist_ok=True); open('out/{at}', 'w').write('{at}'); print('call {at}')"
            );
            let mut command = caller.runner(&project);
            if at % 2 == 0 {
                command.args([
                    "exec",
                    "--policy",
                    "develop",
                    "--timeout",
                    "10m",
                    "--",
                    "python3",
                    "-c",
                    &code,
                ]);
            } else {
                command.args([
                    "exec",
                    "--policy",
                    "develop",
                    "--timeout",
                    "10m",
                    "--",
                    "echo",
                    &format!("call {at}"),
                ]);
            }
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
        })
        .collect();
    let mut most = 0;
    let watched: Vec<u32> = children.iter().map(Child::id).collect();
    let watching = std::thread::spawn(move || {
        let mut most = 0;
        while let Some(now) = watched.iter().filter_map(|pid| peak(*pid)).max() {
            most = most.max(now);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        most
    });
    let mut wrong = Vec::new();
    for (at, child) in children.into_iter().enumerate() {
        let ran = Ran::from(child.wait_with_output().expect("ends"));
        if (ran.code, ran.out) != (Some(0), format!("call {at}\n")) {
            wrong.push(format!("call {at}: {:?} {}", ran.code, ran.err));
        }
    }
    let took = begun.elapsed();
    most = most.max(watching.join().expect("no panic"));
    println!("{count} calls in {took:?}; a process of ours had at most {} KiB", most >> 10);
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
    for at in (0..count).step_by(2) {
        let text = std::fs::read_to_string(project.join(format!("out/{at}")));
        assert_eq!(text.expect("a file"), at.to_string());
    }
    assert!(most < PEAK, "{most} bytes");
    let shown = caller.run(&project, &["audit", "list", "--json", "-n", "1000"]).json();
    let calls = shown["calls"].as_array().expect("calls");
    assert_eq!(calls.len(), count + 1, "none is lost");
    assert!(calls.iter().all(|call| call["status"] == "completed"));
}
