//! `bash_execution`: lines and argv in sandboxes, each command of a line judged.

use serde_json::{Value, json};

use super::{get, home, offline, put};
use crate::support::{Home, needs_engine};
use crate::tools::{call, told};

fn bash(home: &Home, args: Value, more: &[&str]) -> Value {
    let args = args.to_string();
    call(home, "bash_execution", &[&["--args", &args], more].concat()).0
}

#[test]
fn lines_and_programs_run_in_a_sandbox() {
    needs_engine();
    let home = home();
    put(&home, "sub/a.txt", "one\ntwo\n");
    let line =
        bash(&home, json!({ "command": "cat a.txt | wc -l && echo done", "cwd": "sub" }), &[]);
    assert_eq!(told(&line), ("completed", 0, ""), "{line:#}");
    assert_eq!(
        line["value"]["stdout"].as_str().unwrap().split_whitespace().collect::<Vec<_>>(),
        ["2", "done"]
    );
    // The command is a call of its own, which names the tool's.
    let inner = line["value"]["call"].as_str().unwrap();
    let record = home.run(["--json", "audit", "show", inner]).json();
    assert!(record.to_string().contains(line["call"].as_str().unwrap()), "{record:#}");
    // Arguments arrive as they are.
    let odd = "$(id) ; `id` > x 'y'";
    let argv = bash(&home, json!({ "command": "echo", "args": [odd] }), &[]);
    assert_eq!(argv["value"]["stdout"], format!("{odd}\n"), "{argv:#}");
    let failed = bash(&home, json!({ "command": "cat none.txt" }), &[]);
    assert_eq!(
        (told(&failed).0, &failed["value"]["success"], &failed["value"]["exitCode"]),
        ("completed", &json!(false), &json!(1))
    );
    assert!(failed["value"]["stderr"].as_str().unwrap().contains("none.txt"));
    let variables = json!({ "command": "env | grep ^LANG=", "env": { "LANG": "x; id" } });
    assert_eq!(bash(&home, variables, &[])["value"]["stdout"], "LANG=x; id\n");
    let fed = bash(&home, json!({ "command": "sort", "args": ["-r"], "stdin": "a\nb\n" }), &[]);
    assert_eq!(fed["value"]["stdout"], "b\na\n", "{fed:#}");
    let slow = bash(&home, json!({ "command": "sleep 60", "timeout": 300 }), &[]);
    assert_eq!(
        (&slow["value"]["status"], &slow["value"]["success"]),
        (&json!("timeout"), &json!(false)),
        "{slow:#}"
    );
    let loud = bash(&home, json!({ "command": "seq 1 400000" }), &[]);
    assert_eq!(loud["value"]["truncated"], true);
    assert!(loud["value"]["stdout"].as_str().unwrap().contains("bytes left out"));
}

#[test]
fn each_command_of_a_line_is_judged() {
    let home = home();
    put(&home, ".env", "canary-9c10");
    put(&home, "a.txt", "x");
    for command in [
        "cat a.txt | rm a.txt",
        "ls && curl https://example.org/",
        "cat .env",
        "cat a.txt > b.txt",
        "echo $(cat .env)",
        "sh -c 'rm a.txt'",
        "true; sudo ls",
        "LD_PRELOAD=./x.so ls",
        "cat /root/.ssh/id_rsa",
    ] {
        let (result, ran) =
            offline(&home, "bash_execution", &json!({ "command": command }), &["--yes"]);
        assert_eq!((told(&result).0, ran.code), ("denied", Some(126)), "{command} {result:#}");
        assert!(!result.to_string().contains("canary"), "{command}");
        let recorded = home.run(["--json", "audit", "list", "-n", "1"]).json()["calls"][0].clone();
        assert_eq!(recorded["rule"], result["error"]["rule"]["id"], "{command} {result:#}");
        if command == "cat .env" {
            assert!(recorded["rule"].as_str().unwrap().contains("files.deny"), "{recorded:#}");
        }
    }
    for args in [
        json!({ "command": "ls", "env": { "LD_PRELOAD": "x" } }),
        json!({ "command": "ls", "args": [], "env": { "LD_PRELOAD": "x" } }),
        json!({ "command": "ls", "cwd": ".." }),
    ] {
        let (result, _) = offline(&home, "bash_execution", &args, &["--yes"]);
        assert_eq!(told(&result).0, "denied", "{args} {result:#}");
    }
    let (result, _) = offline(
        &home,
        "bash_execution",
        &json!({ "command": "ls", "env": { "A B": "x" } }),
        &["--yes"],
    );
    assert_eq!(super::code(&result), "invalid_arguments", "{result:#}");
    assert_eq!(get(&home, "a.txt"), "x");
}

#[test]
fn it_is_asked_about_each_time() {
    let home = home();
    let (result, ran) = offline(&home, "bash_execution", &json!({ "command": "ls" }), &[]);
    assert_eq!((told(&result).0, ran.code), ("needs_approval", Some(77)), "{result:#}");
    needs_engine();
    let answered =
        home.at_terminal("tool run bash_execution --args '{\"command\": \"echo seen\"}'", "y\n");
    assert_eq!(answered.code, Some(0), "{}", answered.out);
    assert!(answered.out.contains("seen"), "{}", answered.out);
}

#[test]
fn what_a_policy_lets_be_written_is_written() {
    needs_engine();
    let home = home();
    let made = bash(
        &home,
        json!({ "command": "mkdir -p build && echo x > build/out.txt" }),
        &["--policy", "contained"],
    );
    assert_eq!(made["value"]["exitCode"], 0, "{made:#}");
    assert_eq!(get(&home, "build/out.txt"), "x\n");
}
