//! Calls that settle side by side.

use runner_policy::model::Writes as When;

use super::super::testing::{Case, HALVES, held};
use super::*;
use crate::stage::turn::TurnError;

#[test]
fn a_call_is_judged_after_the_apply_of_another_is_over() {
    for other_brings_half in [true, false] {
        let case = Case::new();
        let stage = case.stage(HALVES[1]);
        let settling = case.settling("**", When::Apply);
        let turn =
            Turn::take(&case.state, std::slice::from_ref(&case.root), Duration::ZERO).unwrap();
        let changes = std::thread::scope(|scope| {
            let own = scope.spawn(|| settle(&stage, &settling).unwrap());
            std::thread::sleep(Duration::from_millis(100));
            assert!(!own.is_finished() && !case.has("x"));
            if other_brings_half {
                HALVES[0].iter().for_each(|(path, content)| case.write(path, content));
            }
            drop(turn);
            own.join().unwrap()
        });
        assert_eq!(case.has("x/objects") || case.has("x/refs"), !other_brings_half);
        match other_brings_half {
            true => {
                assert_eq!(changes.applied.created, 0, "{changes:?}");
                assert!(held(&stage).iter().all(|(_, why)| *why == Why::RunsOnHost), "{changes:?}");
            }
            false => assert_eq!((changes.applied.created, changes.held_count), (2, 0)),
        }
    }
}

#[test]
fn two_calls_together_make_no_repository() {
    for _ in 0..20 {
        let case = Case::new();
        std::fs::create_dir(case.root.join("x")).unwrap();
        let stages = HALVES.map(|half| case.stage(half));
        let settling = case.settling("**", When::Apply);
        let both = std::thread::scope(|scope| {
            let both = stages.each_ref().map(|stage| scope.spawn(|| settle(stage, &settling)));
            both.map(|one| one.join().unwrap().unwrap())
        });
        let applied = both.map(|changes| changes.applied.created);
        // The second one lacks what completes it: `HEAD`, or the two folders.
        assert!(applied == [2, 0] || applied == [1, 2], "{applied:?}");
        assert!(!(case.has("x/HEAD") && case.has("x/objects") && case.has("x/refs")));
    }
}

#[test]
fn a_call_that_waits_for_too_long_keeps_what_it_did() {
    let case = Case::new();
    let stage = case.stage(&[("src/new", "new"), (".envrc", "x")]);
    let settling = case.settling("**", When::Apply);
    let turn = Turn::take(&case.state, std::slice::from_ref(&case.root), Duration::ZERO).unwrap();
    let refused = settle_within(Duration::from_millis(20), &stage, &settling).unwrap_err();
    assert!(matches!(refused, StagedError::Turn(TurnError::Busy(..))), "{refused}");
    assert!(!case.has("src"));
    let rows =
        [(".envrc", Why::RunsOnHost), ("src", Why::NotApplied), ("src/new", Why::NotApplied)];
    assert_eq!(held(&stage), rows.map(|(path, why)| (path.to_owned(), why)));
    drop(turn);
    let changes = settle_within(Duration::ZERO, &stage, &settling).unwrap();
    assert_eq!((changes.applied.created, changes.held_count), (1, 1));
}
