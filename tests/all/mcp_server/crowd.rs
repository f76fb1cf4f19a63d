//! Many clients and many calls on one server.

use std::fs;

use serde_json::{Value, json};

use super::client::{Server, Web, new_token, text};
use super::home;
use crate::support::needs_engine;

const CLIENTS: usize = 20;
const CALLS: usize = 50;
/// What a call says that has to wait for others.
const WAITED: &str = "runner: the call waits in the queue: 10 calls of `exec` may run at once";

#[test]
fn twenty_clients_with_fifty_calls_each_do_not_cross() {
    needs_engine();
    let home = home("");
    for client in 0..CLIENTS {
        fs::write(home.path(&format!("project/of-{client}.txt")), format!("{client}\n")).unwrap();
    }
    let web = Web::start(&home, &[]);
    let tokens: Vec<String> =
        (0..CLIENTS).map(|client| new_token(&home, &format!("client-{client}"))).collect();
    std::thread::scope(|scope| {
        for (client, token) in tokens.iter().enumerate() {
            let web = &web;
            scope.spawn(move || {
                for call in 0..CALLS {
                    let line = match call % 10 {
                        9 => format!("rm of-{client}.txt"),
                        _ => format!("cat of-{client}.txt"),
                    };
                    let params = json!({"name": "run_command", "arguments": {"command": line}});
                    let answer = web.modern(token, "tools/call", params);
                    let said = text(&answer["result"]);
                    match call % 10 {
                        9 => assert!(said.contains(&format!("`rm of-{client}.txt`")), "{said}"),
                        _ => {
                            // On a busy machine a call may wait in the queue, and its output says so.
                            let own = match said.split_once('\n') {
                                Some((WAITED, own)) => own,
                                _ => said,
                            };
                            assert_eq!(own, format!("{client}\n\n[exit code 0]"));
                        }
                    }
                }
                let read = web.modern(token, "resources/read", json!({"uri": "runner://records"}));
                let read = read["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
                let read: Value = serde_json::from_str(&read).unwrap();
                let own = read["calls"].as_array().unwrap();
                assert_eq!(own.len(), CALLS);
                let word = format!("of-{client}.txt");
                assert!(own.iter().all(|call| call.to_string().contains(&word)), "{own:?}");
            });
        }
    });
}

/// The memory of a process beside that of its files, in KiB.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Calls until the memory is that of a server that has worked for a while.
const WARM: usize = 4_000;
/// Calls in all.
const ALL: usize = 12_000;
/// Calls that are asked for at once.
const AT_ONCE: usize = 10;
/// How much the memory may grow from then on, in KiB: three quarters of a kilobyte a call. A call that is never forgotten,
/// with its handle, its channels and its answer, takes more.
const SLACK: u64 = 6_000;

#[test]
fn thousands_of_calls_leave_nothing_in_the_memory_of_the_server() {
    needs_engine();
    let home = home("");
    let mut server = Server::start(&home, &[]);
    let mut before = 0;
    for done in (0..ALL).step_by(AT_ONCE) {
        if done == WARM {
            before = resident(server.child.id());
        }
        let ids: Vec<i64> = (0..AT_ONCE)
            .map(|call| {
                let line = if call == 0 { "cat name.txt" } else { "rm name.txt" };
                let arguments = json!({"command": line});
                server.ask("tools/call", json!({"name": "run_command", "arguments": arguments}))
            })
            .collect();
        for id in ids {
            let answer = server.answer(id);
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
    let after = resident(server.child.id());
    eprintln!("memory: {before} KiB after {WARM} calls, {after} KiB after {ALL}");
    assert!(after.saturating_sub(before) < SLACK, "from {before} to {after} KiB");
}
