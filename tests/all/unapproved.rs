//! Asking that fails: whoever wanted to run something, it is not approved, and nothing runs.

use serde_json::{Value, json};

use crate::support::{Home, Ran};
use crate::tools::{told, write_yaml};

/// Asks about a command of a person, and about one of a built-in tool.
const ASKS: &str = "policy: 1\nname: asks\nextends: [readonly]\ncommands:\n  - { id: speak, ask: 'echo ...' }\n  - { id: look, ask: 'git status ...' }\n";

/// Everything that passes the gate without a container: a command, a tool that wants to be approved, and a command of a
/// built-in tool that is not asked about itself.
const CALLS: [&[&str]; 3] = [
    &["exec", "--policy", "asks", "--", "echo", "hi"],
    &["tool", "run", "t", "--policy", "asks"],
    &["tool", "run", "git", "--policy", "asks", "--args", r#"{"operation":"status"}"#],
];

fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(&format!("pool: {{ size: 0 }}\n{config}"));
    home.user_policy("asks", ASKS);
    write_yaml(&home, "t", "permissions: { autoAccept: false }", "export const execute = () => 1;");
    home
}

/// Runs it with no engine: whatever was let through would say so.
fn run(home: &Home, words: &[&str]) -> (Value, Ran) {
    let mut command = home.runner();
    command.env("DOCKER_HOST", "unix:///nowhere/docker.sock").arg("--json").args(words);
    let ran = Ran::from(command.output().unwrap());
    (ran.json(), ran)
}

/// The last refused call in the ledger.
fn recorded(home: &Home) -> Value {
    let calls = home.run(["--json", "audit", "list"]).json();
    let all = calls["calls"].as_array().unwrap();
    assert!(all.iter().all(|call| call["status"] != "running"), "{calls}");
    all[0].clone()
}

/// Has the book of approvals fail for whoever writes into it.
pub fn break_book(home: &Home) {
    let store = rusqlite::Connection::open(home.path("state/runner/store.db")).unwrap();
    let trigger = "CREATE TRIGGER broken BEFORE INSERT ON approvals WHEN NEW.subject LIKE '%/exec' OR NEW.subject IN ('exec', 'tool:t') BEGIN SELECT RAISE(ABORT, 'the book is full'); END";
    store.execute_batch(trigger).unwrap();
}

#[test]
fn nothing_runs_if_the_question_cannot_be_written_down() {
    let home = home("");
    // The control: the question waits, and the store is made on the way.
    for words in CALLS {
        let (result, ran) = run(&home, words);
        assert_eq!((ran.code, told(&result).2), (Some(77), "approval_needed"), "{result}");
    }
    std::fs::remove_dir_all(home.path("state/runner")).unwrap();
    home.run(["audit", "list"]);
    let (control, _) = run(&home, &["exec", "--policy", "asks", "--", "cat", "/etc/shadow"]);
    assert_eq!(told(&control).0, "denied", "{control}");
    break_book(&home);
    for words in CALLS {
        let (result, ran) = run(&home, words);
        assert_eq!((ran.code, told(&result).0), (Some(125), "error"), "{words:?}: {result}");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains("the book is full"), "{words:?}: {result}");
        let call = recorded(&home);
        assert_eq!((&call["status"], &call["exit"]), (&json!("error"), &json!(125)), "{call}");
    }
    assert_eq!(home.run(["--json", "approvals"]).json()["approvals"], json!([]));
}

#[test]
fn nothing_runs_if_the_store_cannot_be_opened() {
    let home = home("");
    std::fs::write(home.path("state/runner"), "no folder\n").unwrap();
    for words in CALLS {
        let (result, ran) = run(&home, words);
        assert_eq!((ran.code, told(&result).0), (Some(125), "error"), "{words:?}: {result}");
        assert_ne!(told(&result).2, "engine_missing", "{words:?}: {result}");
    }
}

#[test]
fn nothing_runs_if_nobody_is_there_or_nobody_answers_in_time() {
    let home = home("approvals: { pending: 1s }\n");
    for words in CALLS {
        let line: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let ran = home.at_terminal(&line.join(" "), "");
        assert_eq!(ran.code, Some(77), "{words:?}: {}", ran.out);
        assert!(ran.out.contains("Run it?"), "{words:?}: {}", ran.out);
        let call = recorded(&home);
        assert_eq!(call["status"], "needs_approval", "{words:?}: {call}");
        // `--yes` is an answer too, and needs a terminal.
        if words[0] == "tool" {
            let (result, ran) = run(&home, &[words, &["--yes"]].concat());
            let told = (ran.code, told(&result).2);
            assert_eq!(told, (Some(77), "approval_needs_terminal"), "{result}");
        }
    }
    // The control: who answers in time is heard. There is no engine, so that is as far as it goes.
    let home = self::home("");
    let line = "exec --policy asks -- echo hi";
    let ran = home.at_terminal(&format!("--json {line}"), "y\n");
    assert_ne!(ran.code, Some(77), "{}", ran.out);
}

#[test]
fn who_cancels_a_question_is_told_so_and_nothing_runs() {
    let home = home("");
    for words in &CALLS[..2] {
        let line: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        // An interrupt character, as a person types it at the question: an earlier one ends a program that has begun nothing.
        let ran = home.at_terminal_meanwhile(&line.join(" "), || (), "\u{3}");
        assert_eq!(ran.code, Some(130), "{words:?}: {}", ran.out);
        let call = recorded(&home);
        assert_eq!((&call["status"], &call["exit"]), (&json!("cancelled"), &json!(130)), "{call}");
    }
}
