//! Whatever dies, at whatever moment: nothing of ours is left, and the next call works.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runner::call::launch::run::{Streams, run};
use runner::engine::sweep;
use runner::ids::CallId;
use runner::sandbox::cancel::Cancel;
use runner::sandbox::outcome::Verdict;
use tokio::io::AsyncReadExt as _;

use crate::engine::{argv, block_on, call, engine, order, plan, sandbox_of, workspace};

/// Names the call of a helper process.
const ID: &str = "RUNNER_TEST_CALL";

/// The process that is killed: another run of this test binary, with only this test.
#[test]
#[ignore = "a helper process of the tests below"]
fn helper() {
    let id = CallId::new(&std::env::var(ID).unwrap()).unwrap();
    let folder = workspace();
    block_on(async {
        let engine = engine().await;
        let (_canceller, mut cancel) = Cancel::pair();
        let work = argv(&["sh", "-c", "sleep 1"]);
        let call = order(id, plan(folder.path()), work);
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_runner"));
        run(engine, call, Streams::default(), &mut cancel, program, &std::env::vars_os().collect())
            .await
            .unwrap();
    });
}

fn start_helper(id: &CallId) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "death::helper", "--ignored", "--nocapture"])
        .env(ID, id.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn left(id: &CallId) -> usize {
    sandbox_of(id).len()
}

/// Waits until nothing of a call is left; how long that took.
pub fn gone(id: &CallId) -> Duration {
    let begun = Instant::now();
    loop {
        let mut count = left(id);
        if count == 0 {
            // A daemon that was still making it would show it a moment later.
            std::thread::sleep(Duration::from_millis(300));
            count = left(id);
        }
        if count == 0 {
            return begun.elapsed();
        }
        // A busy machine takes its time; what stays, stays for ever.
        assert!(begun.elapsed() < Duration::from_secs(60), "{count} left of {id}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Kills a helper after each of these times; some before create, some while the command runs.
fn kill_at(moments: impl Iterator<Item = u64>) {
    for millis in moments {
        let id = CallId::fresh().unwrap();
        let mut helper = start_helper(&id);
        std::thread::sleep(Duration::from_millis(millis));
        helper.kill().unwrap();
        helper.wait().unwrap();
        let took = gone(&id);
        println!("killed after {millis} ms, gone {took:?} later");
    }
    let folder = workspace();
    assert_eq!(call(plan(folder.path()), argv(&["true"])).unwrap().verdict, Verdict::Completed);
}

#[test]
fn a_killed_host_leaves_nothing() {
    kill_at([5, 20, 45, 80, 130, 200, 300, 450, 700, 1000].into_iter());
}

#[test]
fn a_host_killed_at_fifty_moments_leaves_nothing() {
    kill_at((0..50).map(|at| at * 31 % 1550));
}

#[test]
fn a_sweep_takes_what_both_host_and_watchdog_left() {
    let id = CallId::fresh().unwrap();
    let mut helper = start_helper(&id);
    // Its watchdog is its child; find and kill both, so that only the sweep is left.
    let begun = Instant::now();
    while left(&id) == 0 && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", helper.id()));
    let children = children.unwrap_or_default();
    for child in children.split_whitespace() {
        let _ = Command::new("kill").args(["-9", child]).status();
    }
    helper.kill().unwrap();
    helper.wait().unwrap();
    block_on(async {
        let engine = engine().await;
        sweep(engine.as_ref()).await.unwrap();
    });
    gone(&id);
}

#[test]
fn a_killed_container_is_an_error_and_leaves_nothing() {
    let id = CallId::fresh().unwrap();
    let folder = workspace();
    let killed = block_on(async {
        let engine = engine().await;
        let (_canceller, mut cancel) = Cancel::pair();
        let work = argv(&["sh", "-c", "echo up; sleep 600"]);
        let call = order(id.clone(), plan(folder.path()), work);
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_runner"));
        let (mut reader, writer) = tokio::io::duplex(4096);
        let streams = Streams { stdout: Some(Box::pin(writer)), ..Streams::default() };
        let killer = async {
            reader.read_exact(&mut [0; 3]).await.unwrap();
            for found in engine.list(Some(&id)).await.unwrap() {
                engine.remove(&found.id).await.unwrap();
            }
        };
        let environment = std::env::vars_os().collect();
        let running = run(engine.clone(), call, streams, &mut cancel, program, &environment);
        tokio::join!(running, killer).0
    });
    assert!(matches!(killed, Err(runner::sandbox::outcome::RunError::GuestLost { .. })));
    gone(&id);
}

#[test]
fn many_calls_at_once_are_all_right() {
    let threads: Vec<_> = (0..12)
        .map(|at| {
            std::thread::spawn(move || {
                let folder = workspace();
                let text = format!("call {at}");
                let outcome = call(plan(folder.path()), argv(&["echo", &text])).unwrap();
                assert_eq!(outcome.verdict, Verdict::Completed);
                assert_eq!(outcome.stdout.whole().unwrap(), format!("{text}\n").into_bytes());
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
