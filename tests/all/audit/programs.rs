//! Which programs ran: the file of each, inside the sandbox, in the record of a call's end.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::assert_sound;
use crate::support::{Home, needs_engine};
use crate::tools::call;

/// A caller with a policy that lets a shell run, for a while, and a program that is not there.
fn caller() -> Home {
    let home = Home::new();
    home.user_policy(
        "code",
        "policy: 1\nname: code\nextends: [readonly]\nsandbox: { limits: { wall: 1m } }\ncommands:\n  - { id: shell, allow: \"sh ...\", effects: any }\n  - { id: absent, allow: \"absent ...\", effects: any }\n",
    );
    fs::write(home.path("project/a.txt"), "b\na\n").expect("a file");
    home
}

/// A program of this machine, which the sandbox has at the same place: as it is called, and its file.
fn program(name: &str) -> Value {
    let path = Path::new("/usr/bin").join(name).canonicalize().expect("a real path");
    json!({ "name": name, "path": path })
}

fn event(home: &Home, call: &str, kind: &str) -> Value {
    let shown = home.run(["audit", "show", call, "--json"]).json();
    let events = shown["events"].as_array().expect("events").clone();
    events.into_iter().find(|event| event["kind"] == kind).unwrap_or(Value::Null)
}

/// The programs that the record of an end has.
fn programs(home: &Home, call: &str) -> Value {
    event(home, call, "end")["body"]["detail"]["programs"].clone()
}

fn exec(home: &Home, words: &[&str]) -> String {
    let result = home.run(["exec", "--json", "--policy", "code"].iter().chain(words)).json();
    result["call"].as_str().expect("an id").to_owned()
}

#[test]
fn a_program_is_recorded_by_its_file() {
    needs_engine();
    let home = caller();
    let cat = exec(&home, &["--", "cat", "a.txt"]);
    assert_eq!(programs(&home, &cat), json!([program("cat")]));
    // However little it may write itself.
    let small = exec(&home, &["--limit", "file-size=1B", "--", "cat", "a.txt"]);
    assert_eq!(programs(&home, &small), json!([program("cat")]));
    // One that is ended has run all the same, its name is a link, and what it starts itself is its own business.
    let says = "on() { echo on; }; sleep 0; while :; do on; done";
    let ended = exec(&home, &["--limit", "output-max=64KiB", "--", "sh", "-c", says]);
    assert_eq!(event(&home, &ended, "end")["body"]["status"], "limit");
    assert_eq!(programs(&home, &ended), json!([program("sh")]));
    // So has each program of a line that no shell runs.
    let says = "sleep 0; while :; do echo on; done";
    let ended = exec(&home, &["--limit", "output-max=64KiB", "--", "sh", "-c", says]);
    assert_eq!(event(&home, &ended, "end")["body"]["status"], "limit");
    assert_eq!(programs(&home, &ended), json!([program("sleep"), program("echo")]));
    // People see it too, and others' systems.
    let text = home.run(["audit", "show", &cat]).out;
    let file = program("cat")["path"].as_str().expect("text").to_owned();
    assert!(text.contains(&format!("\"path\": \"{file}\"")), "{text}");
    let exported = |format: &str| home.run(["audit", "export", "--format", format]).out;
    let lines = exported("jsonl");
    assert!(lines.lines().any(|line| line.contains(&cat) && line.contains(&file)), "{lines}");
    let events: Vec<Value> =
        exported("ocsf").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |code: &str| {
        let found = events.iter().find(|event| {
            event["metadata"]["event_code"] == code && event["process"]["uid"] == cat.as_str()
        });
        found.expect("an event")["process"]["file"].clone()
    };
    assert_eq!(of("end"), json!({ "name": "cat", "path": file, "type_id": 1 }));
    assert_eq!(of("start"), Value::Null, "not known yet");
    assert_sound(&home);
}

#[test]
fn each_command_of_a_line_is_recorded_that_ran() {
    needs_engine();
    let home = caller();
    // `cd` and `false` are no programs; what a line does not come to, and what is not there, did not run.
    let line =
        "cd . && cat a.txt | sort | cat; false && wc a.txt; absent a.txt; true || head a.txt";
    let ran = home.run(["exec", "--json", "--policy", "code", "--shell", line]);
    let call = ran.json()["call"].as_str().expect("an id").to_owned();
    let expected = json!([program("cat"), program("sort")]);
    assert_eq!(programs(&home, &call), expected, "{} {}", ran.out, ran.err);
}

#[test]
fn what_did_not_run_has_its_name_alone() {
    let home = caller();
    let denied = exec(&home, &["--", "rm", "a.txt"]);
    let refused = event(&home, &denied, "refused");
    assert_eq!(refused["body"]["argv"][0], "rm");
    assert!(!refused.to_string().contains("programs"), "{refused:#}");
    needs_engine();
    let absent = exec(&home, &["--", "absent"]);
    let ended = event(&home, &absent, "end");
    assert_eq!(ended["body"]["code"], "program_not_found", "{ended:#}");
    assert_eq!(ended["body"]["detail"]["programs"], json!([]));
}

#[test]
fn the_commands_of_a_tool_are_recorded_in_the_same_way() {
    needs_engine();
    let home = caller();
    let args = json!({ "command": "cat a.txt | sort" }).to_string();
    let (result, _) = call(&home, "bash_execution", &["--args", &args]);
    let inner = result["value"]["call"].as_str().expect("a call of its own").to_owned();
    assert_eq!(programs(&home, &inner), json!([program("cat"), program("sort")]));
    let asked = event(&home, result["call"].as_str().expect("an id"), "request");
    assert_eq!(asked["body"]["call"], inner.as_str(), "the request names it");
}
