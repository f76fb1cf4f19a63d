//! What a person sees and decides: flags of a call, `runner stage`, and `runner undo` of a command.

use std::fs;

use serde_json::json;

use super::harness::{Project, held, why};
use crate::support::Ran;

/// A caller without the permission to decide in a person's place.
const NEEDS_PERSON: &str = "pool: { size: 0 }\n";

fn stage(project: &Project, words: &[&str]) -> Ran {
    project.home.run(["stage"].iter().chain(words))
}

/// A call that changes, makes, removes and is held back in part; its id.
fn reviewed(project: &Project) -> String {
    project.write(
        "build/script.sh",
        "echo changed > src/a; echo new > src/new; rm src/gone; echo x > .envrc",
    );
    project.write("src/gone", "gone\n");
    let ran = project.home.run([
        "exec",
        "--json",
        "--stage",
        "--policy",
        "contained",
        "--",
        "bash",
        "build/script.sh",
    ]);
    let result = ran.json();
    assert_eq!((ran.code, &result["status"]), (Some(0), &json!("completed")), "{result:#}");
    assert_eq!(held(&result), [".envrc", "src/a", "src/gone", "src/new"]);
    assert_eq!(why(&result, "src/a"), "review");
    assert_eq!(why(&result, ".envrc"), "runs_on_host");
    assert_eq!(project.text("src/a"), "original\n");
    assert!(!project.exists("src/new") && project.exists("src/gone"));
    result["call"].as_str().unwrap().to_owned()
}

#[test]
fn a_staged_call_is_listed_shown_and_compared() {
    let project = Project::new();
    assert_eq!(stage(&project, &["list"]).err, "no changes are held back\n");
    assert_eq!(stage(&project, &["list", "--json"]).json(), json!({ "stages": [] }));
    let id = reviewed(&project);
    let list = stage(&project, &["list"]);
    assert_eq!(list.code, Some(0));
    assert!(list.out.contains(&id) && list.out.contains("HELD"), "{}", list.out);
    let list = stage(&project, &["list", "--json"]).json();
    assert_eq!(list["stages"][0]["call"], id.as_str());
    assert_eq!(list["stages"][0]["held"], 4);
    assert_eq!(list["stages"][0]["workspace"], project.home.path("project").to_str().unwrap());
    // The beginning of an id is enough.
    let show = stage(&project, &["show", &id[..id.len() - 3]]);
    assert_eq!(show.code, Some(0), "{}", show.err);
    for text in [
        ".envrc\n  because  it is run by the shell's directory hook",
        "rule     built-in/never",
        "src/new",
    ] {
        assert!(show.out.contains(text), "{text}: {}", show.out);
    }
    let show = stage(&project, &["show", "--json", &id]).json();
    assert_eq!(show["held"].as_array().unwrap().len(), 4);
    assert_eq!(show["call"], id.as_str());
    let diff = stage(&project, &["diff", &id]);
    for text in [
        "=== src/a\n",
        "-original\n",
        "+changed\n",
        "=== src/gone\n",
        "-gone\n",
        "=== src/new\n",
        "+new\n",
    ] {
        assert!(diff.out.contains(text), "{text}: {}", diff.out);
    }
    assert!(!diff.out.contains('\u{1b}'), "no colour without a terminal");
    let coloured = stage(&project, &["diff", "--color", "always", &id]);
    assert!(coloured.out.contains('\u{1b}'));
    let diff = stage(&project, &["diff", "--json", &id]).json();
    let lines = &diff["diffs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["path"] == "src/a")
        .unwrap()["lines"];
    assert!(lines.as_array().unwrap().contains(&json!("+changed")), "{lines}");
}

#[test]
fn a_person_applies_some_paths_then_the_rest_and_takes_it_back() {
    let project = Project::new();
    let id = reviewed(&project);
    let wrong = stage(&project, &["apply", &id, "src/nothing"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("src/nothing is not among the changes"), "{}", wrong.err);
    let some = stage(&project, &["apply", "--json", &id, "src/new"]);
    assert_eq!(some.code, Some(0), "{}", some.err);
    assert_eq!(some.json()["changes"]["applied"]["created"], 1);
    assert_eq!(
        (project.text("src/new"), project.text("src/a")),
        ("new\n".into(), "original\n".into())
    );
    let rest = stage(&project, &["apply", &id]);
    assert_eq!(rest.code, Some(0), "{}", rest.err);
    assert_eq!(project.text("src/a"), "changed\n");
    assert!(!project.exists("src/gone"));
    // What no policy can allow stays held back, and is no longer than that.
    assert!(!project.exists(".envrc"));
    assert_eq!(
        stage(&project, &["show", "--json", &id]).json()["held"].as_array().unwrap().len(),
        1
    );
    let by = rest.err.split("runner undo ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    assert_eq!(project.home.run(["undo", &by]).code, Some(0));
    assert_eq!(
        (project.text("src/a"), project.text("src/gone")),
        ("original\n".into(), "gone\n".into())
    );
    assert_eq!(project.text("src/new"), "new\n", "another call's work stays");
    let discarded = stage(&project, &["discard", "--json", &id]);
    assert_eq!(discarded.json(), json!({ "discarded": 1 }));
    assert_eq!(stage(&project, &["list", "--json"]).json(), json!({ "stages": [] }));
    project.assert_sound();
}

#[test]
fn applying_needs_a_person_and_only_yes_is_yes() {
    let project = Project::new();
    let id = reviewed(&project);
    project.home.config(NEEDS_PERSON);
    let ran = stage(&project, &["apply", &id]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.err.contains("terminal"), "{}", ran.err);
    let no = project.home.at_terminal(&format!("stage apply {id}"), "n\n");
    assert!(no.code != Some(0) && no.out.contains("Apply 3 change(s)"), "{}", no.out);
    assert_eq!(project.text("src/a"), "original\n");
    let yes = project.home.at_terminal(&format!("stage apply {id}"), "y\n");
    assert_eq!(yes.code, Some(0), "{}", yes.out);
    assert_eq!(project.text("src/a"), "changed\n");
    assert!(!project.exists(".envrc"));
}

#[test]
fn wrong_ids_are_usage_errors() {
    let project = Project::new();
    for words in [
        &["show", "nosuch"][..],
        &["diff", "x/../y"],
        &["apply", "0"],
        &["discard", "-"],
        &["show", ""],
    ] {
        let ran = stage(&project, words);
        assert_eq!(ran.code, Some(2), "{words:?}: {}{}", ran.out, ran.err);
        let ran = stage(&project, &[words, &["--json"]].concat());
        assert_eq!(
            (ran.code, &ran.json()["error"]["code"]),
            (Some(2), &json!("nothing_held")),
            "{words:?}"
        );
    }
    // Two calls whose ids begin alike: neither is meant.
    let ids = [reviewed(&project), reviewed(&project)];
    let common: String = ids[0]
        .chars()
        .zip(ids[1].chars())
        .take_while(|(one, two)| one == two)
        .map(|(one, _)| one)
        .collect();
    assert_eq!(stage(&project, &["discard", &common]).code, Some(2), "{ids:?}");
    assert_eq!(stage(&project, &["list", "--json"]).json()["stages"].as_array().unwrap().len(), 2);
}

#[test]
fn the_exit_code_stays_unless_writes_are_strict() {
    let project = Project::new();
    project.write("build/script.sh", "echo x > .envrc; echo fine > src/fine; exit 3");
    let exec = |flags: &[&str]| {
        let words = [&["exec", "--policy", "contained"], flags, &["--", "bash", "build/script.sh"]]
            .concat();
        project.home.run(words)
    };
    let ran = exec(&[]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(
        ran.err.contains("1 change was held back: .envrc: it is run by the shell's directory hook"),
        "{}",
        ran.err
    );
    assert_eq!(project.text("src/fine"), "fine\n", "a failed command's changes are applied too");
    let result = exec(&["--json"]).json();
    assert_eq!((&result["status"], &result["exit"]), (&json!("failed"), &json!(3)), "{result:#}");
    assert_eq!(result["changes"]["held_count"], 1);
    assert_eq!(held(&result), [".envrc"]);
    let one = &result["changes"]["held"][0];
    for key in ["path", "why", "reason", "rule", "next"] {
        assert!(one[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {one}");
    }
    let strict = exec(&["--json", "--strict-writes"]);
    let result = strict.json();
    assert_eq!(
        (strict.code, &result["error"]["code"]),
        (Some(126), &json!("changes_held")),
        "{result:#}"
    );
    // Nothing is held, nothing is strict about it.
    project.write("build/script.sh", "echo finer > src/fine");
    assert_eq!(exec(&["--strict-writes"]).code, Some(0));
    assert_eq!(project.text("src/fine"), "finer\n");
}

#[test]
fn a_policy_asks_for_review_or_success() {
    let project = Project::new();
    for (name, writes) in [("review", "review"), ("success", "on-success")] {
        project.home.user_policy(
            name,
            &format!(
                "policy: 1\nname: {name}\nextends: [contained]\nsandbox: {{ writes: {writes} }}\n"
            ),
        );
    }
    let exec = |policy: &str, script: &str| project.sh(policy, script);
    let result = exec("review", "echo 1 > src/one");
    assert_eq!(why(&result, "src/one"), "review");
    assert_eq!(result["changes"]["held"][0]["rule"], "review/sandbox.writes");
    assert!(!project.exists("src/one"));
    let result = exec("success", "echo 2 > src/two; exit 1");
    assert_eq!((why(&result, "src/two"), &result["exit"]), ("review", &json!(1)));
    assert!(!project.exists("src/two"));
    let result = exec("success", "echo 2 > src/two");
    assert_eq!(result["changes"]["held_count"], 0, "{result:#}");
    assert_eq!(project.text("src/two"), "2\n");
}

#[test]
fn undo_takes_back_what_a_command_changed() {
    let project = Project::new();
    project.write("docs/x/y", "kept\n");
    let before = super::harness::tree(&project.file(""), &|name| {
        name.starts_with(".git/") || name.starts_with("build")
    });
    let result = project.sh(
        "contained",
        "echo changed > src/a; rm -rf docs; mkdir -p new/deep; echo n > new/deep/n; ln -s a src/link; chmod 600 .gitignore",
    );
    assert_eq!(result["changes"]["undo"], true, "{result:#}");
    assert!(!project.exists("docs") && project.exists("new/deep/n"));
    let id = result["call"].as_str().unwrap();
    let ran = project.home.run(["undo", id]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let now = super::harness::tree(&project.file(""), &|name| {
        name.starts_with(".git/") || name.starts_with("build")
    });
    super::harness::assert_same(&before, &now, "after undo");
    // A file that somebody changed since is not overwritten.
    let result = project.sh("contained", "echo changed > src/a");
    fs::write(project.file("src/a"), "mine\n").unwrap();
    let ran = project.home.run(["undo", result["call"].as_str().unwrap()]);
    assert_ne!(ran.code, Some(0), "{}", ran.out);
    assert_eq!(project.text("src/a"), "mine\n");
}
