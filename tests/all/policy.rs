//! `runner policy …`: explaining, listing, showing, and trust in a project's policies.

use std::fs;

use crate::support::{Home, Ran, run};

#[test]
fn the_exit_code_is_the_decision() {
    for (args, code) in [
        (&["--", "git", "status"][..], 0),
        (&["git", "log", "--oneline"], 0),
        (&["--", "rm", "x"], 126),
        (&["--shell", "ls | head -3"], 0),
        (&["--shell", "ls; rm x"], 126),
        (&["--read", "README.md"], 0),
        (&["--read", ".env"], 126),
        (&["--write", "README.md"], 126),
        (&["--net", "GET https://example.org/"], 126),
        (&["--env", "LD_PRELOAD"], 126),
        (&["--policy", "contained", "--", "rm", "x"], 0),
    ] {
        let ran = run(["policy", "explain"].iter().chain(args));
        assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn one_question_at_a_time() {
    for args in [
        &["explain"][..],
        &["explain", "--read", "a", "--write", "b"],
        &["explain", "--read", "a", "--", "ls"],
    ] {
        assert_eq!(run(["policy"].iter().chain(args)).code, Some(2), "{args:?}");
    }
}

#[test]
fn a_denial_says_what_why_who_and_what_instead() {
    let ran = run(["policy", "explain", "--json", "--", "sort", "-o", "out", "names.txt"]);
    assert_eq!(ran.code, Some(126));
    let json = ran.json();
    assert_eq!(json["decision"], "deny");
    assert_eq!(json["asked"], "sort -o out names.txt");
    assert_eq!(json["policy"], "readonly");
    let effects = json["effects"].as_array().unwrap();
    let write = effects.iter().find(|effect| effect["effect"] == "write").expect("a write effect");
    assert_eq!((&write["object"], &write["refused"]), (&"out".into(), &true.into()));
    assert!(json["code"].as_str().is_some_and(|code| !code.is_empty()));
    assert!(json["digest"].as_str().is_some_and(|digest| digest.len() >= 16));
    assert_eq!(json["nearest"], serde_json::json!(["sort names.txt"]), "{json}");
    assert_eq!(json["allowed_by"], serde_json::json!(["edit", "install", "contained"]), "{json}");

    let text = run(["policy", "explain", "--", "sort", "-o", "out", "names.txt"]).out;
    for part in [
        "deny  sort -o out names.txt",
        "write   out",
        "too much",
        "sort names.txt",
        "contained",
        "readonly",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn net_rules_are_said_to_be_for_tools() {
    let words = "`net` rules are for tools";
    let home = Home::new();
    let text = "policy: 1\nname: fetch\nextends: [readonly]\ncommands:\n  - { id: c, allow: 'curl ...', effects: [read, net] }\nnet:\n  - { id: api, allow: 'GET https://api.example/**' }\n";
    home.user_policy("fetch", text);
    // Allowed, and still told: the command would not reach it.
    let allowed =
        home.run(["policy", "explain", "--policy", "fetch", "--", "curl", "https://api.example/x"]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.err);
    assert!(allowed.out.contains(words), "{}", allowed.out);
    let denied =
        home.run(["policy", "explain", "--policy", "fetch", "--", "curl", "https://b.example/"]);
    assert!(denied.code == Some(126) && denied.out.contains(words), "{}", denied.out);
    assert!(!denied.out.contains("allowed by"), "{}", denied.out);
    let asked = home.run(["policy", "explain", "--json", "--net", "GET https://b.example/"]).json();
    assert_eq!(asked["notes"][0]["code"], "no_network", "{asked}");
    let check = home.run(["policy", "check"]);
    assert!(check.code == Some(0) && check.err.contains(words), "{}{}", check.out, check.err);
    // The control: nothing about the net.
    let plain = home.run(["policy", "explain", "--policy", "fetch", "--", "rm", "x"]);
    assert!(!plain.out.contains(words), "{}", plain.out);
}

#[test]
fn only_engines_that_exist_are_shown() {
    let shown = run(["policy", "show", "readonly", "--json"]).json();
    assert_eq!(shown["engines"], serde_json::json!(["docker", "embedded"]), "{shown}");
}

#[test]
fn foreign_text_in_a_decision_cannot_drive_the_terminal() {
    let text = run(["policy", "explain", "--", "ca\u{1b}[2Jt", "a\u{202e}b\rc"]).out;
    assert!(!text.contains(['\u{1b}', '\r', '\u{202e}']), "{text:?}");
}

#[test]
fn an_unknown_policy_is_named_with_the_nearest() {
    let ran = run(["policy", "explain", "--policy", "redonly", "--", "ls"]);
    assert_eq!(ran.code, Some(125));
    assert!(ran.err.contains("did you mean readonly?"), "{}", ran.err);
    assert_eq!(run(["policy", "explain", "--policy", "No Name", "--", "ls"]).code, Some(2));
}

#[test]
fn shipped_policies_are_ready_and_pass_their_tests() {
    let home = Home::new();
    let ran = home.run(["policy", "check", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    let json = ran.json();
    let names: Vec<_> = json["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["policy"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["base", "contained", "develop", "edit", "install", "paranoid", "readonly"]);
    for row in json["policies"].as_array().unwrap() {
        assert!(row["ran"].as_u64().unwrap() > 0, "{row} has no examples or tests");
    }
    let list = home.run(["policy", "list", "--json"]).json();
    assert!(
        list["policies"].as_array().unwrap().iter().all(|row| row["state"] == "ready"),
        "{list}"
    );
}

#[test]
fn show_tells_the_whole_policy() {
    let ran = run(["policy", "show", "readonly"]);
    assert_eq!(ran.code, Some(0));
    for part in ["readonly", "made of", "base", "digest", "limits", "memory", "commands"] {
        assert!(ran.out.contains(part), "{part:?} is not in\n{}", ran.out);
    }
    assert_eq!(run(["policy", "show", "readonly", "--json"]).json()["name"], "readonly");
}

const PROJECT: &str = "policy: 1\nname: project\nextends: [readonly]\ncommands:\n  - id: sorted\n    allow: \"sort ...\"\n    effects: [read, write]\nfiles: { write: [\"out/**\"] }\n";

#[test]
fn a_projects_policy_is_an_error_until_a_person_pins_it() {
    let home = Home::new();
    home.project_policy("project", PROJECT);
    let ask = || {
        home.run([
            "policy", "explain", "--json", "--policy", "project", "--", "sort", "-o", "out/a",
            "names",
        ])
    };

    let ran = ask();
    assert_eq!(ran.code, Some(125));
    assert_eq!(ran.json()["error"]["code"], "policy_untrusted");
    // The control: without the choice nothing in the workspace is looked at.
    assert_eq!(home.run(["policy", "explain", "--", "ls"]).code, Some(0));

    // Without a terminal nobody can agree.
    let ran = home.run(["policy", "trust", "project"]);
    assert_eq!(ran.code, Some(77), "{}", ran.err);
    assert!(ran.err.contains("sort ..."), "what it grants is shown: {}", ran.err);
    assert_eq!(ask().code, Some(125));

    // At a terminal, the wrong answer changes nothing, the policy's name pins it.
    assert_eq!(home.at_terminal("policy trust project", "yes\n").code, Some(77));
    assert_eq!(ask().code, Some(125));
    let ran = home.at_terminal("policy trust project", "project\n");
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    let ran = ask();
    assert_eq!(ran.code, Some(0), "{}", ran.out);

    // Any change asks again; so does another place.
    home.project_policy("project", &format!("{PROJECT}# a change\n"));
    assert_eq!(ask().code, Some(125));
    home.project_policy("project", PROJECT);
    assert_eq!(ask().code, Some(0));
}

#[test]
fn naming_the_file_is_no_way_around_trust() {
    let home = Home::new();
    home.project_policy("project", PROJECT);
    for path in [".runner/policies/project.yml", "./.runner/policies/../policies/project.yml"] {
        let ran = home.run(["policy", "explain", "--json", "--policy", path, "--", "ls"]);
        assert_eq!(ran.code, Some(125), "{path}");
        assert_eq!(ran.json()["error"]["code"], "policy_untrusted", "{path}");
    }
}

/// Decides without `--policy`; the exit code, and what is said of the default.
fn unchosen(
    home: &Home,
    variable: Option<&str>,
    words: &[&str],
) -> (Option<i32>, serde_json::Value) {
    let mut command = home.runner();
    variable.map(|value| command.env("RUNNER_POLICY", value));
    let words = ["policy", "explain", "--json", "--"].iter().chain(words);
    let ran = Ran::from(command.args(words).output().unwrap());
    let json = ran.json();
    (ran.code, json["default"].clone())
}

#[test]
fn the_default_policy_can_be_set_and_says_where() {
    let home = Home::new();
    let write = ["rm", "x"];
    assert_eq!(unchosen(&home, None, &write), (Some(126), serde_json::Value::Null));
    home.config("# mine\npolicy: edit\n");
    let (code, default) = unchosen(&home, None, &write);
    assert_eq!(
        (code, &default["policy"]["name"], &default["policy"]["line"]),
        (Some(0), &"edit".into(), &2.into())
    );
    let text = home.run(["policy", "explain", "--", "rm", "x"]).out;
    assert!(
        text.contains("default     edit  ") && text.contains("config/runner/config.yml:2"),
        "{text}"
    );
    let shown = home.run(["config", "show", "--json"]).json();
    let row =
        shown["settings"].as_array().unwrap().iter().find(|row| row["key"] == "policy").unwrap();
    assert_eq!((&row["value"], &row["layer"]), (&"edit".into(), &"user".into()));
    // What is typed wins, then the variable; neither is a default.
    let typed = home.run(["policy", "explain", "--json", "--policy", "readonly", "--", "rm", "x"]);
    assert_eq!((typed.code, &typed.json()["default"]), (Some(126), &serde_json::Value::Null));
    assert_eq!(unchosen(&home, Some("readonly"), &write), (Some(126), serde_json::Value::Null));
    assert_eq!(unchosen(&home, Some(""), &write).0, Some(0));
    let ran = Ran::from(
        home.runner().env("RUNNER_POLICY", "No Name").args(["exec", "--", "ls"]).output().unwrap(),
    );
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("RUNNER_POLICY"), "{}", ran.err);
    // A policy that is not there stops the call, with the place that names it.
    home.config("policy: edti\n");
    let ran = home.run(["policy", "explain", "--", "ls"]);
    assert_eq!(ran.code, Some(125));
    assert!(
        ran.err.contains("config/runner/config.yml:1") && ran.err.contains("did you mean edit?"),
        "{}",
        ran.err
    );
}

#[test]
fn a_projects_default_only_narrows_and_needs_trust() {
    let home = Home::new();
    let project = home.path("project/.runner/config.yml");
    let (write, sort) = (["rm", "x"], ["sort", "-o", "out/a", "names"]);
    fs::write(&project, "policy: contained\n").unwrap();
    assert_eq!(unchosen(&home, None, &write).0, Some(126), "readonly stays what it is");
    assert_eq!(unchosen(&home, None, &["ls"]).0, Some(0));
    home.config("policy: edit\n");
    assert_eq!(unchosen(&home, None, &write).0, Some(0));
    fs::write(&project, "policy: develop\n").unwrap();
    let (code, default) = unchosen(&home, None, &write);
    assert_eq!((code, &default["within"]["name"]), (Some(126), &"develop".into()));
    assert_eq!(unchosen(&home, None, &["npm", "test"]).0, Some(0));
    assert_eq!(unchosen(&home, Some("edit"), &write).0, Some(0), "who chooses has chosen");
    // The project's own policy.
    home.project_policy("project", PROJECT);
    fs::write(&project, "policy: project\n").unwrap();
    let ran = home.run(["policy", "explain", "--json", "--", "ls"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(125), &"policy_untrusted".into()));
    assert_eq!(home.at_terminal("policy trust project", "project\n").code, Some(0));
    assert_eq!(unchosen(&home, None, &sort).0, Some(0));
    assert_eq!(unchosen(&home, None, &write).0, Some(126));
    home.config("policy: readonly\n");
    assert_eq!(unchosen(&home, None, &sort).0, Some(126), "it widens nothing");
    // A name that the user's default has too is refused, not swapped.
    home.user_policy("project", PROJECT);
    home.config("policy: project\n");
    assert_eq!(unchosen(&home, None, &["ls"]).0, Some(125));
}

#[test]
fn trust_is_for_project_policies_only() {
    assert_eq!(run(["policy", "trust", "readonly"]).code, Some(2));
}

#[test]
fn one_bad_file_among_ten_refuses_the_set() {
    let home = Home::new();
    for at in 0..10 {
        home.user_policy(
            &format!("p{at}"),
            &format!("policy: 1\nname: p{at}\nextends: [readonly]\n"),
        );
    }
    let ask = || home.run(["policy", "explain", "--json", "--policy", "p3", "--", "ls"]);
    assert_eq!(ask().code, Some(0), "{}", ask().out);
    home.user_policy("p7", "policy: 1\nname: p7\nextnds: [readonly]\n");
    let ran = ask();
    assert_eq!(ran.code, Some(125));
    let json = ran.json();
    let finding = &json["error"]["findings"][0];
    assert_eq!((&finding["code"], &finding["line"]), (&"unknown_key".into(), &3.into()));
    assert!(finding["help"].as_str().unwrap().contains("extends"), "{finding}");
    // Who does not use the layer is not disturbed.
    assert_eq!(home.run(["policy", "explain", "--", "ls"]).code, Some(0));
    let list = home.run(["policy", "list", "--json"]).json();
    let state = |name: &str| {
        list["policies"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()["state"].clone()
    };
    assert_eq!((state("p7"), state("p3")), ("broken".into(), "ready".into()));
}

#[test]
fn passed_tests_are_remembered_and_failed_ones_are_not() {
    let home = Home::new();
    home.user_policy("mine", "policy: 1\nname: mine\nextends: [readonly]\ntests:\n  allow: [\"ls\"]\n  deny: [\"rm x\"]\n");
    assert_eq!(home.run(["policy", "explain", "--policy", "mine", "--", "ls"]).code, Some(0));
    let marks = fs::read_dir(home.path("state/runner/checked")).unwrap().count();
    assert_eq!(marks, 1);
    home.user_policy(
        "mine",
        "policy: 1\nname: mine\nextends: [readonly]\ntests:\n  allow: [\"rm x\"]\n",
    );
    for _ in 0..2 {
        let ran = home.run(["policy", "explain", "--json", "--policy", "mine", "--", "ls"]);
        assert_eq!(ran.code, Some(125));
        assert_eq!(ran.json()["error"]["findings"][0]["code"], "test_failed");
    }
}

#[test]
fn the_catalog_can_be_read() {
    let ran = run(["policy", "catalog", "sort"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("--output"));
    let ran: Ran = run(["policy", "catalog", "srt"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("sort"), "{}", ran.err);
    assert!(
        run(["policy", "catalog", "--stats", "--json"]).json()["programs"].as_u64().unwrap() > 0
    );
}

/// The registries are those of the machine's own configuration; what a project's files say does not count.
#[test]
fn a_question_about_a_connection_knows_the_registries_of_the_machine() {
    let home = Home::new();
    fs::write(home.path(".npmrc"), "registry=https://npm.example.org/\n").unwrap();
    let asked = |peer: &str| {
        let ran = home.run(["policy", "explain", "--policy", "install", "--net", peer]);
        (ran.code, ran.out + &ran.err)
    };
    let (code, said) = asked("npm.example.org:443");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("install/npm"), "{said}");
    assert_eq!(asked("other.example.org:443").0, Some(126));
    assert_eq!(asked("npm.example.org:80").0, Some(126));
}
