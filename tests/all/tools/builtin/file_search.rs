//! `file_search`: what is found, what is left out, and what must not show up even as a name.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{code, home, offline, put};
use crate::support::Home;
use crate::tools::told;

const CANARY: &str = "canary-51aa";

fn search(home: &Home, args: Value) -> Value {
    offline(home, "file_search", &args, &[]).0
}

fn found(result: &Value) -> &Value {
    assert_eq!(told(result), ("completed", 0, ""), "{result:#}");
    &result["value"]
}

/// Path and line of each match.
fn places(result: &Value) -> Vec<(String, u64)> {
    let files = found(result)["files"].as_array().unwrap();
    let lines = |file: &Value| {
        let path = file["path"].as_str().unwrap().to_owned();
        let lines = file["lines"].as_array().unwrap().iter().filter(|it| it["match"] == true);
        lines.map(|it| (path.clone(), it["line"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    files.iter().flat_map(lines).collect()
}

fn at(path: &str, line: u64) -> (String, u64) {
    (path.to_owned(), line)
}

fn project() -> Home {
    let home = home();
    put(&home, "src/a.rs", "fn one() {}\n// needle (x)\nfn two() {}\n");
    put(&home, "src/b.ts", "const needle = 1;\n");
    put(&home, "build/out.js", "needle\n");
    put(&home, "sub/.gitignore", "*.tmp\n!keep.tmp\n");
    put(&home, "sub/a.tmp", "needle\n");
    put(&home, "sub/keep.tmp", "needle\n");
    put(&home, ".hidden/x.txt", "needle\n");
    put(&home, "pic.bin", b"needle\0needle\n");
    put(&home, ".gitignore", "/build/\n");
    home
}

#[test]
fn content_is_found_and_what_is_ignored_is_not() {
    let home = project();
    let all = search(&home, json!({ "query": "needle" }));
    assert_eq!(places(&all), [at("src/a.rs", 2), at("src/b.ts", 1), at("sub/keep.tmp", 1)]);
    let left = &all["value"]["leftOut"];
    assert_eq!(
        (&left["binary"], &all["value"]["truncated"]),
        (&json!(1), &json!(false)),
        "{all:#}"
    );
    assert!(left["ignored"].as_u64().unwrap() >= 3, "{all:#}");
    let wide = search(&home, json!({ "query": "needle", "hidden": true, "gitignore": false }));
    assert_eq!(places(&wide).len(), 6, "{wide:#}");
    // Exact text is no pattern, and a pattern is none of exact text.
    assert_eq!(places(&search(&home, json!({ "query": "(x)" }))), [at("src/a.rs", 2)]);
    let pattern =
        json!({ "mode": "regex", "query": "^fn \\w+\\(", "include": ["*.rs"], "context": 1 });
    let lines = search(&home, pattern);
    assert_eq!(places(&lines), [at("src/a.rs", 1), at("src/a.rs", 3)]);
    assert_eq!(lines["value"]["files"][0]["lines"].as_array().unwrap().len(), 3, "{lines:#}");
    let below = search(
        &home,
        json!({ "query": "NEEDLE", "ignoreCase": true, "path": "src", "exclude": ["*.ts"] }),
    );
    assert_eq!(places(&below), [at("src/a.rs", 2)]);
    // A folder below the workspace still knows the rules above it.
    put(&home, "sub/build/x", "needle\n");
    put(&home, ".gitignore", "build\n");
    assert_eq!(
        places(&search(&home, json!({ "query": "needle", "path": "sub" }))),
        [at("sub/keep.tmp", 1)]
    );
}

#[test]
fn names_are_found() {
    let home = project();
    let paths = |args: Value| {
        let result = search(&home, args);
        found(&result)["paths"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(paths(json!({ "mode": "glob", "query": "**/*.{rs,ts}" })), ["src/a.rs", "src/b.ts"]);
    assert_eq!(paths(json!({ "mode": "glob", "query": "*.ts", "path": "src" })), ["src/b.ts"]);
    assert_eq!(
        paths(json!({ "mode": "glob", "query": "**/.gitignore" })),
        [".gitignore", "sub/.gitignore"]
    );
    let few = search(&home, json!({ "mode": "glob", "query": "**/*", "limit": 1 }));
    assert_eq!(
        (found(&few)["paths"].as_array().unwrap().len(), &few["value"]["truncated"]),
        (1, &json!(true))
    );
}

#[test]
fn what_is_too_much_is_left_out_and_said() {
    let home = home();
    put(&home, "many.txt", "needle\n".repeat(300));
    let few = search(&home, json!({ "query": "needle", "limit": 7 }));
    assert_eq!((places(&few).len(), &few["value"]["truncated"]), (7, &json!(true)));
    put(&home, "large.txt", "needle\n".repeat(1 << 20));
    let large = search(&home, json!({ "query": "needle", "include": ["large.txt"] }));
    assert_eq!((places(&large).len(), &large["value"]["leftOut"]["tooLarge"]), (0, &json!(1)));
    // More files than the call may ask for: it ends in order and says how many are missing.
    for at in 0..60 {
        put(&home, &format!("n/{at}.txt"), "needle\n");
    }
    let args = json!({ "query": "needle", "path": "n", "limit": 1000 });
    let (cut, _) = offline(&home, "file_search", &args, &["--limit", "broker-calls=30"]);
    let value = found(&cut);
    assert_eq!(value["truncated"], true);
    let missing = value["leftOut"]["limit"].as_u64().unwrap();
    assert!(missing >= 30 && places(&cut).len() as u64 + missing == 60, "{cut:#}");
    // A pattern that would take others for ever.
    put(&home, "bomb.txt", "a".repeat(100_000) + "!\n");
    let bomb =
        search(&home, json!({ "mode": "regex", "query": "^(a+)+$", "include": ["bomb.txt"] }));
    assert_eq!(places(&bomb), []);
}

#[test]
fn what_is_denied_or_outside_does_not_show_up_even_as_a_name() {
    let home = home();
    fs::write(home.path("outside.txt"), CANARY).unwrap();
    put(&home, ".env", CANARY);
    put(&home, "deploy/server.pem", CANARY);
    put(&home, "secrets/plan.txt", CANARY);
    put(&home, "ok.txt", "canary of the control\n");
    symlink(home.path("outside.txt"), home.path("project/link.txt")).unwrap();
    symlink(home.path(""), home.path("project/up")).unwrap();
    for args in [
        json!({ "query": "canary", "hidden": true, "gitignore": false }),
        json!({ "mode": "regex", "query": "canary", "hidden": true, "gitignore": false }),
        json!({ "mode": "glob", "query": "**", "hidden": true, "gitignore": false }),
        json!({ "mode": "glob", "query": "**/.env" }),
        json!({ "mode": "glob", "query": "**/*.pem" }),
    ] {
        let result = search(&home, args.clone());
        let text = found(&result).to_string();
        assert!(!text.contains(CANARY), "{args} {result:#}");
        for name in ["server.pem", "plan.txt", "outside.txt"] {
            assert!(!text.contains(name), "{name}: {args} {result:#}");
        }
        if args["query"] != "**/.env" {
            assert!(!text.contains(".env"), "{args} {result:#}");
        }
    }
    let control = search(&home, json!({ "query": "canary", "hidden": true }));
    assert_eq!(places(&control), [at("ok.txt", 1)]);
    for path in ["..", "/etc", "up", "../project", "x/../.."] {
        let result = search(&home, json!({ "query": "root", "path": path }));
        assert_eq!(told(&result).0, "denied", "{path} {result:#}");
    }
    let up = search(&home, json!({ "mode": "glob", "query": "../**" }));
    assert_eq!(told(&up).0, "denied", "{up:#}");
}

#[test]
fn wrong_input_is_told() {
    let home = home();
    put(&home, "a.txt", "x");
    for (args, exit, wanted) in [
        (json!({}), 2, "invalid_arguments"),
        (json!({ "query": "" }), 2, "invalid_arguments"),
        (json!({ "query": "x", "mode": "fuzzy" }), 2, "invalid_arguments"),
        (json!({ "query": "x", "limit": 0 }), 2, "invalid_arguments"),
        (json!({ "query": "(", "mode": "regex" }), 1, "bad_pattern"),
        (json!({ "query": "x(?=y)", "mode": "regex" }), 1, "bad_pattern"),
        (json!({ "query": "x", "include": ["["] }), 1, "bad_pattern"),
        (json!({ "query": "x", "path": "nowhere" }), 1, "not_found"),
        (json!({ "query": "x", "path": "a.txt" }), 1, "not_a_directory"),
    ] {
        let (result, ran) = offline(&home, "file_search", &args, &[]);
        assert_eq!((code(&result), ran.code), (wanted, Some(exit)), "{args} {result:#}");
    }
}

#[test]
fn a_denied_folder_is_left_out_with_all_that_is_in_it() {
    let home = home();
    home.user_policy(
        "folders",
        "policy: 1\nname: folders\nextends: [edit]\nfiles: { deny: [config/private] }\n",
    );
    for path in ["config/private/deep/a.txt", "config/private2/a.txt", "config/.env/a.txt"] {
        put(&home, path, format!("needle {CANARY}\n"));
    }
    let under = ["--policy", "folders"];
    let query = json!({ "query": "needle", "hidden": true });
    let (all, _) = offline(&home, "file_search", &query, &under);
    assert_eq!(places(&all), [at("config/private2/a.txt", 1)]);
    let read = |path: &str| {
        let args = json!({ "operation": "read", "path": path });
        offline(&home, "file_operations", &args, &under)
    };
    for path in ["config/private/deep/a.txt", "config/.env/a.txt"] {
        let (denied, ran) = read(path);
        assert_eq!(code(&denied), "access_denied", "{denied:#}");
        assert!(!ran.out.contains(CANARY) && !ran.err.contains(CANARY), "{}{}", ran.out, ran.err);
        let ran = home.run(["policy", "explain", "--policy", "folders", "--read", path]);
        assert_eq!(ran.code, Some(126), "{}", ran.out);
        let ran = home.run(["policy", "explain", "--policy", "folders", "--", "cat", path]);
        assert!(ran.code == Some(126) && ran.out.contains("path_denied"), "{}", ran.out);
    }
    assert_eq!(told(&read("config/private2/a.txt").0), ("completed", 0, ""));
    let ran = home.run([
        "policy",
        "explain",
        "--policy",
        "folders",
        "--",
        "cat",
        "config/private2/a.txt",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.out);
}
