//! An apply that is killed at random moments, and what recovery makes of it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::testing::{Bench, Memory, walk, write};
use super::*;
use crate::ids::CallId;
use crate::stage::change::Why;
use crate::stage::folder::StageState;
use crate::stage::handles;
use crate::stage::recover::{Recovered, recover};
use crate::stage::turn::{Turn, TurnError};

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

/// Writes the journal of a new folder, a changed and a new file, as an apply does that dies before it begins.
/// `last` is the operation after them.
fn died(bench: &mut Bench, last: Option<Operation>) -> CallId {
    bench.begin();
    bench.edit("edited", "new");
    bench.put("tree/a", "a");
    bench.put("tree/sub/b", "b");
    bench.put("file", "new");
    let upper = std::fs::File::open(bench.stage().upper(0)).unwrap();
    let host = bench.stage().roots()[0].open().unwrap();
    let look = |folder: &dyn std::os::fd::AsFd, name: &str| {
        handles::stat(folder.as_fd(), name.as_ref()).unwrap().unwrap()
    };
    let operation = |path: &str, act, old| Operation {
        root: 0,
        path: path.to_owned(),
        act,
        old,
        row: 0,
        image: None,
        beside: None,
    };
    let staged = |name: &str| handles::identity(&look(&upper, name));
    let old = crate::stage::journal::Old::from(&handles::facts(&look(&host, "edited")));
    let mut operations = vec![
        operation(
            "tree",
            Act::Tree { staged: staged("tree"), files: 2, folders: 2, size: 2 },
            None,
        ),
        operation("edited", Act::Put { staged: staged("edited"), size: 3 }, Some(old)),
        operation("file", Act::Put { staged: staged("file"), size: 3 }, None),
    ];
    operations.extend(last);
    let never = Held { why: Why::RunsOnHost, ..not_applied("it is run by a shell") };
    let head = Head {
        version: VERSION,
        ways: vec![Way::Rename],
        held: vec![HeldRow::new(0, Path::new(".envrc"), &never)],
        unity: Unity::From(operations.len()),
        locks: Vec::new(),
        operations: operations.len(),
        undo: true,
    };
    Journal::begin(bench.stage(), head, operations).unwrap();
    let label = bench.stage().label().clone();
    drop(bench.stage.take());
    label
}

fn held(bench: &Bench, label: &CallId) -> Vec<(String, Why)> {
    let stage = Stage::open(&bench.state, label).unwrap();
    let mut held: Vec<_> = stage
        .held()
        .unwrap()
        .into_iter()
        .map(|(_, path, held)| (path.display().to_string(), held.why))
        .collect();
    held.sort();
    held
}

#[test]
fn what_recovery_takes_back_is_kept_with_all_that_was_held_before() {
    let mut bench = Bench::new(&[("edited", "old")]);
    let before = bench.snapshot();
    // An operation that no recovery can do: it says nothing of what it removes.
    let broken = Operation {
        root: 0,
        path: "zzz".to_owned(),
        act: Act::Remove,
        old: None,
        row: 0,
        image: None,
        beside: None,
    };
    let label = died(&mut bench, Some(broken));
    let done = recover(&bench.state, Sync::Never, &|_| false).unwrap();
    assert!(matches!(&done[..], [Recovered::TakenBack(call, _)] if *call == label), "{done:?}");
    assert_eq!(bench.snapshot(), before);
    let expected = [
        (".envrc", Why::RunsOnHost),
        ("edited", Why::NotApplied),
        ("file", Why::NotApplied),
        ("tree", Why::NotApplied),
        ("tree/a", Why::NotApplied),
        ("tree/sub", Why::NotApplied),
        ("tree/sub/b", Why::NotApplied),
        ("zzz", Why::NotApplied),
    ];
    assert_eq!(held(&bench, &label), expected.map(|(path, why)| (path.to_owned(), why)));
    // The next sweep leaves it alone, and it can be applied.
    assert!(recover(&bench.state, Sync::Never, &|_| false).unwrap().is_empty());
    let listed = crate::stage::folder::list(&bench.state).unwrap();
    assert_eq!(listed[0].state, StageState::Kept);
    bench.stage = Some(Stage::open(&bench.state, &label).unwrap());
    let held = bench.apply().held;
    assert_eq!(fs::read_to_string(bench.workspace.join("tree/sub/b")).unwrap(), "b");
    assert_eq!(fs::read_to_string(bench.workspace.join("file")).unwrap(), "new");
    // Taking it back moved the change time of the host's file: the command's stays beside it.
    let held: Vec<_> = held.iter().map(|(_, path, held)| (path.as_path(), held.why)).collect();
    assert_eq!(held, [(Path::new("edited"), Why::Conflict)]);
    assert_eq!(fs::read_to_string(bench.stage().upper(0).join("edited")).unwrap(), "new");
}

#[test]
fn what_recovery_finishes_keeps_only_what_was_held_before() {
    let mut bench = Bench::new(&[("edited", "old")]);
    let label = died(&mut bench, None);
    let done = recover(&bench.state, Sync::Never, &|_| false).unwrap();
    assert!(matches!(&done[..], [Recovered::Finished(..)]), "{done:?}");
    assert_eq!(fs::read_to_string(bench.workspace.join("tree/sub/b")).unwrap(), "b");
    assert_eq!(held(&bench, &label), [(".envrc".to_owned(), Why::RunsOnHost)]);
}

/// The host has something at the name of a new folder by now: what is in the folder is kept too.
#[test]
fn a_new_folder_that_is_in_conflict_is_kept_with_its_entries() {
    let mut bench = Bench::new(&[("edited", "old")]);
    let label = died(&mut bench, None);
    write(&bench.workspace.join("tree/theirs"), "theirs");
    recover(&bench.state, Sync::Never, &|_| false).unwrap();
    let expected = [
        (".envrc", Why::RunsOnHost),
        ("tree", Why::Conflict),
        ("tree/a", Why::Conflict),
        ("tree/sub", Why::Conflict),
        ("tree/sub/b", Why::Conflict),
    ];
    assert_eq!(held(&bench, &label), expected.map(|(path, why)| (path.to_owned(), why)));
    assert_eq!(fs::read_to_string(bench.workspace.join("file")).unwrap(), "new", "the control");
    assert_eq!(fs::read_to_string(bench.workspace.join("tree/theirs")).unwrap(), "theirs");
}

/// An apply that died is ended before another call judges its own changes of the same folder.
#[test]
fn the_next_turn_begins_after_an_interrupted_apply_is_over() {
    let mut bench = Bench::new(&[("edited", "old")]);
    let label = died(&mut bench, None);
    let folders = [bench.workspace.clone()];
    let take = |folder: &Path| Turn::take(&bench.state, &[folder.to_owned()], Duration::ZERO);
    // Elsewhere it matters to no call.
    let elsewhere = tempfile::tempdir().unwrap();
    drop(take(elsewhere.path()).unwrap());
    assert!(!bench.workspace.join("file").exists());
    // A process that holds the stage keeps recovery away from it.
    let stage = Stage::open(&bench.state, &label).unwrap();
    for folder in [bench.workspace.clone(), bench.workspace.join("tree"), bench.dir.path().into()] {
        let _ = fs::create_dir(&folder);
        let refused = take(&folder).unwrap_err();
        assert!(matches!(refused, TurnError::Interrupted(_)), "{}: {refused}", folder.display());
    }
    fs::remove_dir(bench.workspace.join("tree")).unwrap();
    drop(stage);
    drop(Turn::take(&bench.state, &folders, Duration::ZERO).unwrap());
    assert_eq!(fs::read_to_string(bench.workspace.join("tree/sub/b")).unwrap(), "b");
    assert_eq!(held(&bench, &label), [(".envrc".to_owned(), Why::RunsOnHost)]);
}

/// What can never go on stands in no call's way.
#[test]
fn an_apply_that_recovery_cannot_read_keeps_no_turn_back() {
    let mut bench = Bench::new(&[("edited", "old")]);
    let label = died(&mut bench, None);
    let journal = bench.state.join("stages").join(label.as_str()).join("journal");
    let text = fs::read(&journal).unwrap();
    fs::write(&journal, &text[..text.len() / 2]).unwrap();
    drop(Turn::take(&bench.state, &[bench.workspace.clone()], Duration::ZERO).unwrap());
    assert!(!bench.workspace.join("file").exists() && journal.exists());
}
