//! What a person applies is judged again, by the host of now.

use std::fs;
use std::time::Duration;

use runner_policy::model::Writes as When;

use super::super::settle::settle;
use super::super::testing::{Case, HALVES, held};
use super::*;
use crate::stage::change::Why;

/// Settles a call that made these files; its id.
fn settled(case: &Case, files: &[(&str, &str)], write: &str, when: When) -> String {
    let stage = case.stage(files);
    settle(&stage, &case.settling(write, when)).unwrap();
    stage.call().to_string()
}

fn apply_all(case: &Case, call: &str, paths: &[&str]) -> Changes {
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let by = CallId::fresh().unwrap();
    let chosen = Chosen { call, paths: &paths, by: &by };
    apply_chosen(&case.state, &chosen, &Config::default(), &Environment::default()).unwrap()
}

fn whys(changes: &Changes) -> Vec<(&str, Why)> {
    changes.held.iter().map(|held| (held.path.as_str(), held.why)).collect()
}

#[test]
fn two_reviewed_calls_together_make_no_repository() {
    for order in [[0, 1], [1, 0]] {
        let case = Case::new();
        let calls = HALVES.map(|half| settled(&case, half, "**", When::Review));
        let first = apply_all(&case, &calls[order[0]], &[]);
        assert_eq!((first.applied.created, first.held_count), (2, 0), "the control");
        let second = apply_all(&case, &calls[order[1]], &[]);
        let parts: &[&str] = [&["x/HEAD"][..], &["x/objects/keep", "x/refs/keep"]][order[1]];
        for part in parts {
            assert!(whys(&second).contains(&(part, Why::RunsOnHost)), "{second:?}");
            assert!(!case.has(part));
        }
        assert!(!(case.has("x/HEAD") && case.has("x/objects") && case.has("x/refs")));
        // It stays kept, and says why.
        let kept = look(&case.state, &calls[order[1]]).unwrap().held;
        assert_eq!(kept.len(), second.held_count);
    }
}

#[test]
fn what_git_was_told_to_run_meanwhile_is_not_applied() {
    for told in [true, false] {
        let case = Case::new();
        for path in [".git/objects/keep", ".git/refs/keep"] {
            case.write(path, "");
        }
        case.write(".git/HEAD", "ref: refs/heads/main\n");
        case.write(".git/config", "[core]\n\tbare = false\n");
        let files = [("tools/hooks/pre-commit", "#!/bin/sh\n"), ("src/a", "a")];
        let call = settled(&case, &files, "**", When::Review);
        if told {
            case.write(".git/config", "[core]\n\tbare = false\n\thooksPath = tools/hooks\n");
        }
        let changes = apply_all(&case, &call, &[]);
        assert!(case.has("src/a"), "the control: {changes:?}");
        assert_eq!(case.has("tools/hooks/pre-commit"), !told, "{changes:?}");
        let held = whys(&changes).contains(&("tools/hooks/pre-commit", Why::RunsOnHost));
        assert_eq!(held, told, "{changes:?}");
    }
}

#[test]
fn a_person_overrides_lists_and_never_what_no_policy_can_allow() {
    let case = Case::new();
    let files = [
        ("src/a", "a"),
        ("docs/b", "b"),
        (".npmrc", "x"),
        (".env", "x"),
        (".envrc", "x"),
        ("hidden/c", "c"),
    ];
    let stage = case.stage(&files);
    let mut settling = case.settling("src/**", When::Apply);
    settling.seen.covered.insert("hidden/c".into());
    settle(&stage, &settling).unwrap();
    let call = stage.call().to_string();
    let rows = [
        (".env", Why::Denied),
        (".envrc", Why::RunsOnHost),
        (".npmrc", Why::NotWritable),
        ("docs", Why::NotWritable),
        ("docs/b", Why::NotWritable),
        ("hidden", Why::Covered),
        ("hidden/c", Why::Covered),
    ];
    assert_eq!(held(&stage), rows.map(|(path, why)| (path.to_owned(), why)));
    drop(stage);
    let some = apply_all(&case, &call, &["docs"]);
    assert_eq!((some.applied.created, some.held_count), (1, 5), "{some:?}");
    assert!(case.has("docs/b") && !case.has(".npmrc"));
    let rest = apply_all(&case, &call, &[]);
    assert_eq!(rest.applied.created, 1, "{rest:?}");
    assert!(case.has(".npmrc"));
    for path in [".env", ".envrc", "hidden"] {
        assert!(!case.has(path), "{path}");
    }
    // Once more: nothing of it is applied, and nothing is lost.
    let again = apply_all(&case, &call, &[]);
    assert_eq!((again.applied.created, again.held_count), (0, 4), "{again:?}");
}

/// Without its reasons it is not known what a person may apply; the work stays.
#[test]
fn a_stage_without_reasons_is_not_discarded() {
    let case = Case::new();
    let stage = case.stage(&[("src/a", "a")]);
    settle(&stage, &case.settling("**", When::Review)).unwrap();
    let (call, folder) = (stage.call().to_string(), stage.folder().to_owned());
    drop(stage);
    let rows = fs::read(folder.join("held.json")).unwrap();
    fs::write(folder.join("held.json"), "[]").unwrap();
    let by = CallId::fresh().unwrap();
    let chosen = Chosen { call: &call, paths: &[], by: &by };
    let refused = apply_chosen(&case.state, &chosen, &Config::default(), &Environment::default());
    assert!(matches!(refused, Err(StagedError::None(_))), "{refused:?}");
    fs::write(folder.join("held.json"), rows).unwrap();
    assert_eq!(apply_all(&case, &call, &[]).applied.created, 1, "the control");
    assert!(!folder.exists(), "all of it was applied");
}

#[test]
fn a_review_waits_for_the_turn_of_a_call() {
    let case = Case::new();
    let call = settled(&case, HALVES[1], "**", When::Review);
    let turn = Turn::take(&case.state, std::slice::from_ref(&case.root), Duration::ZERO).unwrap();
    std::thread::scope(|scope| {
        let own = scope.spawn(|| apply_all(&case, &call, &[]));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!own.is_finished() && !case.has("x"));
        HALVES[0].iter().for_each(|(path, content)| case.write(path, content));
        drop(turn);
        assert_eq!(own.join().unwrap().applied.created, 0);
    });
    assert!(!case.has("x/objects") && !case.has("x/refs"));
}
