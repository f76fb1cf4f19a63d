//! An apply that is killed at random moments, and what recovery makes of it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::testing::{Bench, Memory, walk, write};
use super::*;
use crate::ids::CallId;
use crate::stage::recover::{Recovered, recover};

/// Applies the stage that standard input names. Without one it does nothing: it is for the tests below.
#[test]
#[ignore = "a child process of the tests that kill it"]
fn child() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let Some((state, label)) = text.split_once('\n') else { return };
    let stage = Stage::open(Path::new(state), &CallId::new(label).unwrap()).unwrap();
    let bounds = Undo { size: 1 << 30, age: Duration::from_secs(3600) };
    let context = Context { state: Path::new(state), bounds, sync: Sync::Never };
    let applied = apply(&stage, &[walk(&stage)], &context).unwrap();
    assert_eq!(applied.held, []);
}

fn start(bench: &Bench, label: &CallId) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stage::apply::tests_killed::child", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let text = format!("{}\n{label}", bench.state.display());
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child
}

/// Changes of every kind, thousands of them.
fn prepare(bench: &mut Bench, many: usize) -> CallId {
    for number in 0..many {
        let (edited, gone) = (format!("edited/{}/{number}", number % 7), format!("gone/{number}"));
        write(&bench.workspace.join(edited), "old");
        write(&bench.workspace.join(gone), "old");
    }
    bench.begin();
    for number in 0..many {
        bench.edit(&format!("edited/{}/{number}", number % 7), "new content");
        bench.put(format!("edited/{}/new-{number}", number % 7), "new");
        bench.put(format!("tree/{}/{number}", number % 9), "new");
        if number % 2 == 0 {
            bench.remove(&format!("gone/{number}"));
        }
    }
    let label = bench.stage().label().clone();
    drop(bench.stage.take());
    label
}

enum Place {
    Same,
    Other,
}

fn make(place: &Place) -> (Option<Memory>, Bench) {
    match place {
        Place::Same => (None, Bench::new(&[])),
        Place::Other => {
            let dir = tempfile::tempdir().unwrap();
            let memory = Memory::mount(&dir.path().join("memory"), "256m");
            let (state, work) = (memory.0.join("state"), dir.path().join("work"));
            fs::create_dir(&work).unwrap();
            (Some(memory), Bench::at(dir, state, work, &[]))
        }
    }
}

fn kill_at_moments(rounds: u32, many: usize, place: &Place) {
    // How long it takes when it is left alone, and what comes of it.
    let (memory, mut bench) = make(place);
    let label = prepare(&mut bench, many);
    let begun = Instant::now();
    assert!(start(&bench, &label).wait().unwrap().success());
    let whole = begun.elapsed();
    let wanted = bench.snapshot();
    drop((bench, memory));
    let (mut finished, mut untouched) = (0, 0);
    for round in 0..rounds {
        let (memory, mut bench) = make(place);
        let label = prepare(&mut bench, many);
        let before = bench.snapshot();
        let mut child = start(&bench, &label);
        let chance: [u8; 4] = crate::sys::random().unwrap();
        let part = f64::from(u32::from_le_bytes(chance)) / f64::from(u32::MAX);
        std::thread::sleep(whole.mul_f64(part * 1.05));
        let _ = child.kill();
        child.wait().unwrap();
        let done = recover(&bench.state, Sync::Never, &|_| false).unwrap();
        let after = bench.snapshot();
        match &done[..] {
            [Recovered::Finished(..), Recovered::Removed(_)] => {
                finished += 1;
                assert!(after == wanted, "round {round}: not all was applied");
            }
            // Killed before the journal, or after its end.
            [Recovered::Removed(_)] => {
                untouched += 1;
                assert!(after == before || after == wanted, "round {round}: half was applied");
            }
            other => panic!("round {round}: {other:?}"),
        }
        assert_eq!(crate::stage::folder::list(&bench.state).unwrap(), []);
        bench.undo(label.as_str()).unwrap();
        assert!(bench.snapshot() == before, "round {round}: undo did not bring all back");
        drop((bench, memory));
    }
    // The moments must have met the apply itself.
    assert!(rounds < 100 || finished > 0, "{finished} finished, {untouched} untouched");
}

#[test]
fn killed_at_random_moments_an_apply_is_finished_or_never_began() {
    kill_at_moments(10, 300, &Place::Same);
}

#[test]
fn killed_at_random_moments_of_a_copy_an_apply_is_finished_or_never_began() {
    kill_at_moments(5, 100, &Place::Other);
}

#[test]
fn killed_at_two_hundred_moments_an_apply_is_finished_or_never_began() {
    kill_at_moments(200, 1000, &Place::Same);
}

#[test]
fn a_stage_that_died_before_it_was_made_is_removed() {
    let bench = Bench::new(&[]);
    let folder: PathBuf = bench.state.join("stages/0123-ab/0/upper");
    fs::create_dir_all(folder).unwrap();
    assert!(matches!(
        &recover(&bench.state, Sync::Never, &|_| false).unwrap()[..],
        [Recovered::Removed(_)]
    ));
    assert_eq!(crate::stage::folder::list(&bench.state).unwrap(), []);
}
