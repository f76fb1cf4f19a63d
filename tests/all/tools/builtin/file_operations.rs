//! `file_operations`: each operation, each wrong input, and what must never be reached.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{code, get, home, offline, put};
use crate::support::{Home, Ran};
use crate::tools::told;

const CANARY: &str = "canary-77d1";

fn call(home: &Home, args: Value) -> Value {
    offline(home, "file_operations", &args, &[]).0
}

/// Under a policy that lets files be written.
fn edit(home: &Home, args: Value) -> Value {
    offline(home, "file_operations", &args, &["--policy", "editing"]).0
}

fn done(result: &Value) -> &Value {
    assert_eq!(told(result), ("completed", 0, ""), "{result:#}");
    &result["value"]
}

#[test]
fn a_file_is_read_whole_or_by_lines_without_an_engine() {
    let home = home();
    put(&home, "src/a.txt", "one\ntwo\nthree\n");
    let read = |more: Value| {
        let mut args = json!({ "operation": "read", "path": "src/a.txt" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call(&home, args)
    };
    assert_eq!(
        *done(&read(json!({}))),
        json!({
            "operation": "read", "path": "src/a.txt", "content": "one\ntwo\nthree\n", "encoding": "utf8",
            "startLine": 1, "endLine": 3, "totalLines": 3, "size": 14, "truncated": false,
        })
    );
    let part = read(json!({ "startLine": 2, "endLine": 2 }));
    assert_eq!(
        (&done(&part)["content"], &part["value"]["totalLines"]),
        (&json!("two\n"), &json!(3))
    );
    let bytes = read(json!({ "encoding": "base64" }));
    assert_eq!(done(&bytes)["content"], "b25lCnR3bwp0aHJlZQo=");
    // What protected it is told as it is.
    assert_eq!(part["metadata"]["engine"], Value::Null);
    assert_eq!(part["metadata"]["notes"][0]["code"], "built_in");
    let requests = part["metadata"]["broker"]["requests"].as_array().unwrap();
    assert!(requests.iter().any(|it| it["method"] == "file.read" && it["object"] == "src/a.txt"));
    // Each request is in the ledger, and the ledger holds.
    let record = home.run(["--json=full", "audit", "show", part["call"].as_str().unwrap()]).json();
    assert!(record.to_string().contains("file.read"), "{record:#}");
    assert_eq!(home.run(["audit", "verify"]).code, Some(0));
}

#[test]
fn wrong_input_is_told_before_or_where_it_goes_wrong() {
    let home = home();
    put(&home, "a.txt", "x\n");
    put(&home, "b.bin", [0xff, 0xfe, 0x00]);
    for (args, exit, wanted) in [
        (json!({ "operation": "read" }), 2, "invalid_arguments"),
        (json!({ "operation": "shred", "path": "a.txt" }), 2, "invalid_arguments"),
        (json!({ "operation": "write", "path": "a.txt" }), 2, "invalid_arguments"),
        (json!({ "operation": "edit", "path": "a.txt" }), 2, "invalid_arguments"),
        (json!({ "operation": "read", "path": "a.txt", "mode": 1 }), 2, "invalid_arguments"),
        (json!({ "operation": "read", "path": "a.txt", "startLine": 0 }), 2, "invalid_arguments"),
        (
            json!({ "operation": "read", "path": "a.txt", "startLine": 3, "endLine": 2 }),
            1,
            "invalid_arguments",
        ),
        (json!({ "operation": "read", "path": "a.txt", "startLine": 5 }), 1, "invalid_arguments"),
        (json!({ "operation": "read", "path": "b.bin" }), 1, "not_text"),
        (json!({ "operation": "read", "path": "none.txt" }), 1, "not_found"),
        (json!({ "operation": "read", "path": "." }), 1, "is_a_directory"),
        (json!({ "operation": "list", "path": "a.txt" }), 1, "not_a_directory"),
        (
            json!({ "operation": "edit", "path": "a.txt", "replacement": "y" }),
            1,
            "invalid_arguments",
        ),
        (
            json!({ "operation": "edit", "path": "a.txt", "text": "x", "pattern": "x", "replacement": "y" }),
            1,
            "invalid_arguments",
        ),
        (
            json!({ "operation": "edit", "path": "a.txt", "pattern": "(", "replacement": "y" }),
            1,
            "bad_pattern",
        ),
        (
            json!({ "operation": "edit", "path": "a.txt", "pattern": "(a{1000}){1000}", "replacement": "y" }),
            1,
            "bad_pattern",
        ),
        (
            json!({ "operation": "edit", "path": "a.txt", "text": "z", "replacement": "y" }),
            1,
            "no_match",
        ),
        (
            json!({ "operation": "edit", "path": "b.bin", "text": "z", "replacement": "y" }),
            1,
            "not_text",
        ),
        (
            json!({ "operation": "write", "path": "c", "content": "!", "encoding": "base64" }),
            1,
            "invalid_arguments",
        ),
        (
            json!({ "operation": "write", "path": "a.txt", "content": "", "overwrite": false }),
            1,
            "already_exists",
        ),
        (
            json!({ "operation": "write", "path": "no/c", "content": "", "createParents": false }),
            1,
            "not_found",
        ),
    ] {
        let (result, ran) = offline(&home, "file_operations", &args, &["--policy", "editing"]);
        assert_eq!((code(&result), ran.code), (wanted, Some(exit)), "{args} {result:#}");
    }
    assert_eq!(get(&home, "a.txt"), "x\n");
}

#[test]
fn what_is_wrong_comes_with_the_next_step() {
    let home = home();
    put(&home, "a.txt", "line\n");
    put(&home, "b.bin", [0xff, 0xfe, 0x00]);
    put(&home, ".env", "A=1\n");
    let said = |args: Value, policy: &str| {
        let (result, _) = offline(&home, "file_operations", &args, &["--policy", policy]);
        let error = &result["error"];
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        (text("message"), text("suggestion"))
    };
    // A group that the pattern does not have would silently be nothing.
    let edit = json!({ "operation": "edit", "path": "a.txt", "pattern": "(l)ine", "replacement": "$1INE" });
    let (message, hint) = said(edit, "editing");
    assert!(message.contains("no group `1INE`") && hint.contains("${1}INE"), "{message} {hint}");
    assert_eq!(get(&home, "a.txt"), "line\n");
    let edit = json!({ "operation": "edit", "path": "a.txt", "pattern": "(l)ine", "replacement": "${1}INE" });
    said(edit, "editing");
    assert_eq!(get(&home, "a.txt"), "lINE\n");
    let write =
        json!({ "operation": "write", "path": "no/way/c", "content": "", "createParents": false });
    let (message, hint) = said(write, "editing");
    assert!(
        message.contains("no folder no/way") && hint.contains("createParents"),
        "{message} {hint}"
    );
    let (_, hint) = said(json!({ "operation": "read", "path": "b.bin" }), "editing");
    assert_eq!(hint, "Read it as bytes.");
    // What a policy does not list is told by its list; nobody edits the permissions of a tool of ours.
    let write = json!({ "operation": "write", "path": "c", "content": "" });
    let (_, hint) = said(write, "readonly");
    assert!(hint.contains("`files.write` of the policy `readonly`"), "{hint}");
    let (_, hint) = said(json!({ "operation": "read", "path": ".env" }), "readonly");
    assert!(!hint.contains("Ask for it"), "{hint}");
    // Our own words are a hint of ours, told once.
    let words = [
        "tool",
        "run",
        "file_operations",
        "--arg",
        "operation=write",
        "--arg",
        "path=c",
        "--arg",
        "content=",
    ];
    let spoken = home.run(words).err;
    assert!(!spoken.contains("the tool suggests"), "{spoken}");
    assert_eq!(spoken.matches("must hold it").count(), 1, "{spoken}");
    // Only the limits that hold are told.
    let (result, _) =
        offline(&home, "file_operations", &json!({ "operation": "read", "path": "a.txt" }), &[]);
    let limits = result["metadata"]["limits"].as_object().unwrap();
    assert!(limits.contains_key("wall") && limits.contains_key("broker-calls"), "{limits:?}");
    assert!(!limits.contains_key("memory") && !limits.contains_key("pids"), "{limits:?}");
}

#[test]
fn the_default_policy_reads_and_does_not_write() {
    let home = home();
    put(&home, "a.txt", "x\n");
    for args in [
        json!({ "operation": "write", "path": "a.txt", "content": "y" }),
        json!({ "operation": "write", "path": "new/a.txt", "content": "y" }),
        json!({ "operation": "edit", "path": "a.txt", "text": "x", "replacement": "y" }),
        json!({ "operation": "delete", "path": "a.txt" }),
    ] {
        let (result, ran) = offline(&home, "file_operations", &args, &["--yes"]);
        assert_eq!((told(&result).0, ran.code), ("denied", Some(126)), "{args} {result:#}");
        assert_eq!(told(&result).2, "access_denied", "{result:#}");
        assert!(
            result["error"]["message"].as_str().unwrap().contains("a.txt")
                || args["path"] == "new/a.txt"
        );
    }
    assert_eq!(get(&home, "a.txt"), "x\n");
    assert!(!home.path("project/new").exists());
}

#[test]
fn a_write_makes_parents_and_an_edit_can_be_undone() {
    let home = home();
    let written =
        edit(&home, json!({ "operation": "write", "path": "a/b/c.txt", "content": "x=1\nx=2\n" }));
    assert_eq!(done(&written)["created"], true);
    assert_eq!(get(&home, "a/b/c.txt"), "x=1\nx=2\n");
    // What is there twice is not changed by accident.
    let several = edit(
        &home,
        json!({ "operation": "edit", "path": "a/b/c.txt", "text": "x=", "replacement": "y=" }),
    );
    assert_eq!(
        (code(&several), &several["error"]["details"]["data"]["matches"]),
        ("ambiguous_match", &json!(2))
    );
    let args = json!({ "operation": "edit", "path": "a/b/c.txt", "pattern": "^x=(\\d)$", "replacement": "$1=y", "occurrences": "all", "backup": false });
    let edited = edit(&home, args);
    assert_eq!(done(&edited)["replacements"], 2);
    assert_eq!(get(&home, "a/b/c.txt"), "1=y\n2=y\n");
    // Whoever asks for no backup has one all the same.
    let undo = edited["value"]["undo"].as_str().unwrap();
    assert_eq!(undo, edited["call"]);
    let undone = home.run(["undo", undo]);
    assert_eq!(undone.code, Some(0), "{}", undone.err);
    assert_eq!(get(&home, "a/b/c.txt"), "x=1\nx=2\n");
    let first = json!({ "operation": "edit", "path": "a/b/c.txt", "text": "x", "replacement": "z", "occurrences": "first" });
    done(&edit(&home, first));
    assert_eq!(get(&home, "a/b/c.txt"), "z=1\nx=2\n");
}

#[test]
fn to_delete_is_asked_about_and_can_be_undone() {
    let home = home();
    put(&home, "dir/a.txt", "x\n");
    let args = json!({ "operation": "delete", "path": "dir", "recursive": true }).to_string();
    let call = |more: &[&str]| {
        let words = [
            "--json=full",
            "tool",
            "run",
            "file_operations",
            "--policy",
            "editing",
            "--args",
            &args,
        ];
        home.run(words.iter().chain(more))
    };
    let asked = call(&[]);
    assert_eq!((asked.code, told(&asked.json()).0), (Some(77), "needs_approval"), "{}", asked.out);
    assert_eq!(get(&home, "dir/a.txt"), "x\n");
    let gone = call(&["--yes"]).json();
    done(&gone);
    assert!(!home.path("project/dir").exists());
    assert_eq!(home.run(["undo", gone["call"].as_str().unwrap()]).code, Some(0));
    assert_eq!(get(&home, "dir/a.txt"), "x\n");
    let plain = json!({ "operation": "delete", "path": "dir" });
    let (result, _) = offline(&home, "file_operations", &plain, &["--policy", "editing", "--yes"]);
    assert_eq!(code(&result), "not_empty", "{result:#}");
}

#[test]
fn a_list_and_a_look_tell_what_is_there() {
    let home = home();
    put(&home, "dir/a.txt", "x\n");
    put(&home, "dir/.env", CANARY);
    put(&home, "dir/sub/b", "");
    let listed = call(&home, json!({ "operation": "list", "path": "dir" }));
    let entries = json!([{ "name": "a.txt", "type": "file" }, { "name": "sub", "type": "dir" }]);
    assert_eq!((&done(&listed)["entries"], &listed["value"]["hidden"]), (&entries, &json!(1)));
    assert!(!listed.to_string().contains(".env"), "{listed:#}");
    let there = call(&home, json!({ "operation": "exists", "path": "dir/a.txt" }));
    assert_eq!((&done(&there)["exists"], &there["value"]["type"]), (&json!(true), &json!("file")));
    let not = call(&home, json!({ "operation": "exists", "path": "dir/none" }));
    assert_eq!(done(&not)["exists"], false);
}

#[test]
fn nothing_outside_and_nothing_denied_is_reached_by_any_operation() {
    let home = home();
    fs::write(home.path("outside.txt"), CANARY).unwrap();
    put(&home, ".env", CANARY);
    put(&home, "id_rsa", CANARY);
    put(&home, "in.txt", "inside");
    let project = home.path("project");
    symlink(home.path("outside.txt"), project.join("out")).unwrap();
    symlink("in.txt", project.join("within")).unwrap();
    fs::hard_link(home.path("outside.txt"), project.join("hard")).unwrap();
    let outside = home.path("outside.txt").display().to_string();
    let escaping = [
        "../outside.txt",
        outside.as_str(),
        "out",
        "hard",
        "x/../../outside.txt",
        "/proc/self/environ",
        "/etc/passwd",
    ];
    let denied = [".env", "./.env", "id_rsa", "x/../.env"];
    for path in escaping.iter().chain(&denied) {
        for operation in ["read", "exists", "list", "edit", "write", "delete"] {
            let args = match operation {
                "edit" => {
                    json!({ "operation": operation, "path": path, "text": "canary", "replacement": "x" })
                }
                "write" => json!({ "operation": operation, "path": path, "content": "x" }),
                _ => json!({ "operation": operation, "path": path }),
            };
            let (result, ran) =
                offline(&home, "file_operations", &args, &["--policy", "editing", "--yes"]);
            // A name may be looked at and taken away where its content may not be read.
            let hard =
                *path == "hard" && ["exists", "list", "write", "delete"].contains(&operation);
            let link = *path == "out" && operation == "delete";
            assert!(!result.to_string().contains(CANARY), "{args} {result:#}");
            assert!(!ran.err.contains(CANARY), "{args}");
            if !hard && !link {
                assert_eq!(told(&result).0, "denied", "{args} {result:#}");
            }
        }
    }
    assert_eq!(fs::read_to_string(home.path("outside.txt")).unwrap(), CANARY);
    assert_eq!((get(&home, ".env"), get(&home, "id_rsa")), (CANARY.to_owned(), CANARY.to_owned()));
    // A link that stays inside works, and so does a name that only looks odd.
    assert_eq!(
        done(&call(&home, json!({ "operation": "read", "path": "within" })))["content"],
        "inside"
    );
    put(&home, "..odd", "x");
    done(&call(&home, json!({ "operation": "read", "path": "..odd" })));
}

#[test]
fn our_own_files_are_never_written() {
    let home = home();
    home.git(&["init", "-q"]);
    for path in [".runner/tools/x.yml", ".git/hooks/pre-commit", ".git/config", ".bashrc"] {
        let args = json!({ "operation": "write", "path": path, "content": "x" });
        let result = edit(&home, args);
        assert_eq!(told(&result).0, "denied", "{path} {result:#}");
    }
    done(&edit(&home, json!({ "operation": "write", "path": "ok", "content": "x" })));
}

#[test]
fn what_is_huge_or_hostile_stays_within_bounds() {
    let home = home();
    put(&home, "long.txt", "x".repeat(40 << 20));
    let read = call(&home, json!({ "operation": "read", "path": "long.txt" }));
    let value = done(&read);
    assert_eq!((&value["truncated"], &value["totalLines"]), (&json!(true), &Value::Null));
    assert!(value["content"].as_str().unwrap().len() <= 512 << 10);
    let large = edit(
        &home,
        json!({ "operation": "edit", "path": "long.txt", "text": "x", "replacement": "y" }),
    );
    assert_eq!(code(&large), "too_large", "{large:#}");
    // A pattern that would take others for ever.
    put(&home, "bomb.txt", "a".repeat(200_000) + "!");
    let bomb = json!({ "operation": "edit", "path": "bomb.txt", "pattern": "^(a+)+$", "replacement": "b" });
    assert_eq!(code(&edit(&home, bomb)), "no_match");
    let grows = json!({ "operation": "edit", "path": "bomb.txt", "pattern": "(a+)!", "replacement": "$1".repeat(5_000) });
    assert_eq!(code(&edit(&home, grows)), "too_large");
    assert_eq!(get(&home, "bomb.txt").len(), 200_001);
    // The call's own limits hold.
    let few = json!({ "operation": "read", "path": "bomb.txt" });
    let (limited, _) = offline(&home, "file_operations", &few, &["--limit", "broker-bytes=100KiB"]);
    assert_eq!(told(&limited).0, "limit", "{limited:#}");
}

#[test]
fn for_people_it_prints_the_value_and_a_clear_denial() {
    let home = home();
    put(&home, "a.txt", "x\n");
    let words =
        ["tool", "run", "file_operations", "--arg", "operation=read", "--arg", "path=a.txt"];
    let ran = home.run(words);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("\"content\": \"x\\n\""), "{}", ran.out);
    let words = [
        "tool",
        "run",
        "file_operations",
        "--arg",
        "operation=write",
        "--arg",
        "path=a.txt",
        "--arg",
        "content=y",
    ];
    let Ran { code, err, .. } = home.run(words);
    assert_eq!(code, Some(126));
    assert!(err.contains("access_denied") && err.contains("a.txt"), "{err}");
}
