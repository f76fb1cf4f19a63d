//! One client at the standard streams.

use std::fs;

use serde_json::{Value, json};

use super::client::{Server, text};
use super::home;
use crate::support::{Home, needs_engine};

#[test]
fn commands_and_tools_run_under_the_policy_and_are_recorded() {
    needs_engine();
    let home = home("");
    let mut server = Server::start(&home, &[]);
    assert_eq!(text(&server.line("cat name.txt | wc -c")), "6\n\n[exit code 0]");
    let argv = server.call("run_command", json!({"argv": ["cat", "name.txt"], "timeout": 5}));
    assert_eq!(text(&argv), "hello\n\n[exit code 0]");
    let fed = server.call("run_command", json!({"command": "wc -c", "stdin": "four"}));
    assert_eq!(text(&fed), "4\n\n[exit code 0]");
    let failed = server.line("cat nothing");
    assert_eq!((&failed["isError"], &failed["_meta"]["runner/exit"]), (&json!(false), &json!(1)));
    assert!(text(&failed).contains("No such file") && text(&failed).ends_with("[exit code 1]"));
    let denied = server.line("rm name.txt");
    assert_eq!(denied["isError"], true);
    for part in ["denied [effect_not_granted]", "rule: readonly/look", "next: "] {
        assert!(text(&denied).contains(part), "{denied}");
    }
    assert!(home.path("project/name.txt").exists());
    let written = server.line("touch out/made");
    assert_eq!(written["_meta"]["runner/status"], "completed", "{written}");
    assert!(home.path("project/out/made").exists());
    let tool = server.call("file_operations", json!({"operation": "read", "path": "name.txt"}));
    assert_eq!(tool["structuredContent"]["content"], "hello\n");
    // All of it in both forms.
    assert_eq!(serde_json::from_str::<Value>(text(&tool)).unwrap(), tool["structuredContent"]);
    let explained = server.call("explain", json!({"command": "rm name.txt"}));
    assert!(text(&explained).starts_with("deny  rm name.txt"), "{explained}");
    let own = server.request("resources/read", json!({"uri": "runner://records"}));
    let own: Value = serde_json::from_str(own["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(own["calls"].as_array().unwrap().len(), 7, "{own}");
    drop(server);
    let records = home.run(["--json", "audit", "list"]).json();
    let records = records["calls"].as_array().unwrap().clone();
    assert_eq!(records.len(), 7, "{records:?}");
    for record in records {
        let actor = &record["actor"];
        let said = [&actor["front"], &actor["credential"], &actor["claimed"]];
        assert_eq!(said, ["mcp", "peer", "raw 1"], "{record}");
    }
}

#[test]
fn what_a_client_sends_only_narrows() {
    needs_engine();
    let home = home("");
    fs::create_dir_all(home.path("project/sub/.git")).unwrap();
    fs::write(home.path("project/sub/x.txt"), "below\n").unwrap();
    let mut server = Server::start(&home, &[]);
    let below = server.call("run_command", json!({"command": "cat x.txt", "cwd": "sub"}));
    assert_eq!(text(&below), "below\n\n[exit code 0]");
    // A folder with a marker of its own stays part of the workspace that was chosen.
    let up = server.call("run_command", json!({"command": "cat ../name.txt", "cwd": "sub"}));
    assert_eq!(text(&up), "hello\n\n[exit code 0]");
    for outside in ["..", "/", "/etc", "sub/../../config", "nowhere"] {
        let refused = server.call("run_command", json!({"command": "ls", "cwd": outside}));
        assert_eq!(refused["isError"], true, "{outside}: {refused}");
    }
    let late = server.call("run_command", json!({"command": "tail -f name.txt", "timeout": 0.5}));
    assert_eq!(late["_meta"]["runner/status"], "timeout", "{late}");
    for wrong in [
        json!({"command": "ls", "policy": "develop"}),
        json!({"command": "ls", "argv": ["ls"]}),
        json!({"argv": []}),
        json!({}),
        json!({"command": "ls", "timeout": -1}),
        json!({"command": ["ls"]}),
    ] {
        let refused = server.call("run_command", wrong.clone());
        assert!(text(&refused).starts_with("invalid_arguments"), "{wrong}: {refused}");
    }
}

#[test]
fn the_environment_chooses_no_policy() {
    let home = home("");
    let mut command = home.runner();
    command.env("RUNNER_POLICY", "develop").args(["mcp", "serve", "--policy", "nothing_like_it"]);
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(125));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("nothing_like_it"), "{said}");
}

/// Whether a process with this word in its command line runs in a sandbox.
fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).starts_with(&format!("tail\0-f\0{word}")))
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{what} did not happen");
}

/// A file with a name that no other test uses.
fn marked(home: &Home, word: &str) -> String {
    let name = format!("{word}-{}", std::process::id());
    fs::write(home.path(&format!("project/{name}")), "").unwrap();
    name
}

#[test]
fn a_long_command_is_answered_with_an_id_and_cancel_ends_its_sandbox() {
    needs_engine();
    let home = home("");
    let name = marked(&home, "long");
    let mut server = Server::start(&home, &["--answer-within", "300ms"]);
    let running = server.line(&format!("echo begun; tail -f {name}"));
    let id = running["_meta"]["runner/id"].as_str().unwrap().to_owned();
    assert!(text(&running).contains("still running"), "{running}");
    wait_until("the start", || runs(&name));
    let mut read = server.call("read_output", json!({"id": id}));
    while !text(&read).contains("begun") {
        read = server.call("read_output", json!({"id": id}));
    }
    assert_eq!(read["_meta"]["runner/next"], 6, "{read}");
    let ended = server.call("cancel", json!({"id": id}));
    assert!(text(&ended).contains("cancelled"), "{ended}");
    wait_until("the end", || !runs(&name));
    let after = server.call("read_output", json!({"id": id, "offset": 6}));
    assert_eq!(after["_meta"]["runner/status"], "cancelled", "{after}");
    let nothing = server.call("read_output", json!({"id": "c0123"}));
    assert!(text(&nothing).starts_with("not_found"), "{nothing}");
}

#[test]
fn a_cancelled_request_and_a_client_that_leaves_end_their_sandboxes() {
    needs_engine();
    let home = home("");
    let (first, second) = (marked(&home, "cancelled"), marked(&home, "left"));
    let mut server = Server::start(&home, &[]);
    let line = |name: &str| json!({"name": "run_command", "arguments": {"command": format!("tail -f {name}")}});
    let id = server.ask("tools/call", line(&first));
    wait_until("the start", || runs(&first));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "enough"}}));
    wait_until("the end", || !runs(&first));
    // The connection goes on.
    assert_eq!(text(&server.line("cat name.txt")), "hello\n\n[exit code 0]");
    server.ask("tools/call", line(&second));
    wait_until("the start", || runs(&second));
    server.leave();
    wait_until("the end", || !runs(&second));
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn long_output_is_shown_from_both_ends_and_read_in_pieces() {
    needs_engine();
    let home = home("");
    let lines: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    fs::write(home.path("project/long.txt"), &lines).unwrap();
    let mut server = Server::start(&home, &[]);
    let shown = server.line("cat long.txt");
    let said = text(&shown);
    assert!(said.starts_with("line 0\n") && said.ends_with("line 19999\n\n[exit code 0]"));
    assert!(runner::tool::count_tokens(said) <= 8_000, "{}", said.len());
    let id = said.split("{\"id\": \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let (mut whole, mut offset) = (String::new(), 0);
    while (offset as usize) < lines.len() {
        let piece = server.call("read_output", json!({"id": id, "offset": offset}));
        let next = piece["_meta"]["runner/next"].as_i64().unwrap();
        let length = usize::try_from(next - offset).unwrap();
        assert!(length > 0 && runner::tool::count_tokens(text(&piece)) <= 8_000, "{piece}");
        whole.push_str(&text(&piece)[..length]);
        offset = next;
    }
    assert!(whole == lines, "{} of {}", whole.len(), lines.len());
}

#[test]
fn an_approval_at_a_terminal_lets_the_same_call_run_once() {
    needs_engine();
    let home = home("");
    let mut server = Server::start(&home, &[]);
    let asked = server.line("head -c 3 name.txt");
    assert_eq!(asked["_meta"]["runner/status"], "needs_approval", "{asked}");
    let id = asked["_meta"]["runner/approval"].as_str().unwrap().to_owned();
    assert!(text(&asked).contains(&format!("runner approve {id}")), "{asked}");
    assert_eq!(home.run(["approve", &id]).code, Some(0));
    // Another call is not what was approved.
    assert_eq!(server.line("head -c 4 name.txt")["_meta"]["runner/status"], "needs_approval");
    assert_eq!(text(&server.line("head -c 3 name.txt")), "hel\n\n[exit code 0]");
    assert_eq!(server.line("head -c 3 name.txt")["_meta"]["runner/status"], "needs_approval");
}

/// Answers the question of a server with this result.
fn answer_question(server: &mut Server, result: &Value) -> String {
    let question = server.wait_for(|message| message["method"] == "elicitation/create");
    server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    question["params"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_listed_client_asks_its_user_and_only_yes_counts() {
    needs_engine();
    let home = home("");
    home.config("pool: { size: 0 }\napprovals: { clients: [stdio] }\n");
    let mut server = Server::start_with(&home, &[], &json!({"elicitation": {}}));
    let call = json!({"name": "run_command", "arguments": {"command": "head -c 3 name.txt"}});
    let id = server.ask("tools/call", call.clone());
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let message = answer_question(&mut server, &yes);
    assert!(message.contains("head -c 3 name.txt") && message.contains("own/ask"), "{message}");
    assert_eq!(text(&server.answer(id)["result"]), "hel\n\n[exit code 0]");
    for no in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {"approve": false}}),
    ] {
        let id = server.ask("tools/call", call.clone());
        answer_question(&mut server, &no);
        let answer = server.answer(id);
        assert_eq!(answer["result"]["isError"], true, "{no}: {answer}");
    }
}

#[test]
fn a_client_that_is_not_listed_is_not_asked() {
    needs_engine();
    let home = home("");
    let mut server = Server::start_with(&home, &[], &json!({"elicitation": {}}));
    let refused = server.line("head -c 3 name.txt");
    assert_eq!(refused["_meta"]["runner/status"], "needs_approval", "{refused}");
    home.config("approvals: { clients: [socket, web] }\n");
    let refused = server.line("head -c 3 name.txt");
    assert_eq!(refused["_meta"]["runner/status"], "needs_approval", "{refused}");
    // A project cannot list its own clients.
    fs::write(home.path("project/.runner/config.yml"), "approvals: { clients: [stdio] }\n")
        .unwrap();
    let refused = server.line("cat name.txt");
    assert!(text(&refused).contains("config_refused"), "{refused}");
}

#[test]
fn progress_is_told_and_a_new_tool_is_announced() {
    needs_engine();
    let home = home("");
    let mut server = Server::start(&home, &[]);
    let before = server.request("tools/list", json!({}));
    let id = server.ask(
        "tools/call",
        json!({"name": "run_command", "arguments": {"command": "echo first; sleep 1"},
            "_meta": {"progressToken": "p"}}),
    );
    let progress = server.wait_for(|message| message["method"] == "notifications/progress");
    assert_eq!(progress["params"]["message"], "first", "{progress}");
    server.answer(id);
    crate::tools::write_yaml(&home, "say", "", "export const execute = () => 'said';");
    server.wait_for(|message| message["method"] == "notifications/tools/list_changed");
    let after = server.request("tools/list", json!({}));
    let count = |list: &Value| list["tools"].as_array().unwrap().len();
    assert_eq!(count(&after), count(&before) + 1);
    assert_eq!(text(&server.call("say", json!({}))), "said");
}
