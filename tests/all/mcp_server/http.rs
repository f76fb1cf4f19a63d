//! Clients over TCP and at the unix socket: who comes in.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::{Value, json};

use super::client::{Web, hello, new_token, text};
use super::home;
use crate::support::needs_engine;

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";

#[test]
fn only_a_token_of_ours_comes_in_until_it_is_taken_back() {
    let home = home("");
    let web = Web::start(&home, &[]);
    let hello = hello("2025-11-25", &json!({})).to_string();
    for wrong in ["", "x", "web", &web.token[..web.token.len() - 1]] {
        let answered = web.post(wrong, &[], &hello);
        assert_eq!(answered.status, 401, "{wrong}: {answered:?}");
        assert!(answered.header("www-authenticate").is_some());
    }
    assert_eq!(web.post(&web.token, &[], &hello).status, 200);
    assert_eq!(home.run(["mcp", "token", "revoke", "web"]).code, Some(0));
    assert_eq!(web.post(&web.token, &[], &hello).status, 401);
}

#[test]
fn foreign_hosts_origins_and_sessions_are_refused() {
    let home = home("");
    let web = Web::start(&home, &[]);
    let other = new_token(&home, "other");
    let hello = hello("2025-11-25", &json!({})).to_string();
    let status = |headers: &[(&str, &str)]| web.post(&web.token, headers, &hello).status;
    assert_eq!(status(&[("Host", "evil.example")]), 403);
    assert_eq!(status(&[("Origin", "http://evil.example")]), 403);
    assert_eq!(status(&[("Origin", "null")]), 403);
    assert_eq!(status(&[("Origin", "http://localhost:1234")]), 200);
    let begun = web.post(&web.token, &[], &hello);
    let session = begun.header("mcp-session-id").unwrap();
    let with = |token: &str, session: &str| web.post(token, &[("Mcp-Session-Id", session)], PING);
    let ready = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
    assert_eq!(web.post(&web.token, &[("Mcp-Session-Id", &session)], ready).status, 202);
    // A session is its client's alone.
    assert_eq!(with(&other, &session).status, 404);
    assert_eq!(with(&web.token, "made-up").status, 404);
}

#[test]
fn bodies_are_bounded_and_strict() {
    let home = home("");
    let web = Web::start(&home, &[]);
    let post = |body: &str| web.post(&web.token, &[], body);
    assert_eq!(post("not json").status, 400);
    assert_eq!(post("{\"id\":1,\"id\":2}").status, 400);
    assert_eq!(post(&"[".repeat(200)).status, 400);
    let long = format!("\"{}\"", "x".repeat(5 << 20));
    // The refusal may come before everything is sent, and the connection be closed on it.
    assert!([413, 0].contains(&post(&long).status));
    // A request that stops in the middle holds nothing up.
    let mut stuck = web.connect();
    stuck.write_all(b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Le").unwrap();
    assert_eq!(post("not json").status, 400);
    assert_eq!(web.post(&web.token, &[], "{}").message().unwrap()["jsonrpc"], "2.0");
}

#[test]
fn handles_and_records_are_their_clients_alone() {
    needs_engine();
    let home = home("");
    let web = Web::start(&home, &["--answer-within", "200ms"]);
    let other = new_token(&home, "other");
    let call = |token: &str, name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        web.modern(token, "tools/call", params)["result"].clone()
    };
    let running = call(&web.token, "run_command", json!({"command": "tail -f name.txt"}));
    let id = running["_meta"]["runner/id"].as_str().unwrap().to_owned();
    for tool in ["read_output", "cancel"] {
        let refused = call(&other, tool, json!({"id": id}));
        assert!(text(&refused).starts_with("not_found"), "{tool}: {refused}");
    }
    let ended = call(&web.token, "cancel", json!({"id": id}));
    assert!(text(&ended).contains("cancelled"), "{ended}");
    let records = |token: &str| {
        let read = web.modern(token, "resources/read", json!({"uri": "runner://records"}));
        let read = read["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
        let read: Value = serde_json::from_str(&read).unwrap();
        read["calls"].as_array().unwrap().len()
    };
    assert_eq!((records(&web.token), records(&other)), (1, 0));
}

#[test]
fn other_than_loopback_addresses_need_a_word() {
    let home = home("");
    let ran = home.run(["mcp", "serve", "--http", "0.0.0.0:0"]);
    assert_eq!(ran.code, Some(125));
    assert!(ran.err.contains("mcp_listen") || ran.err.contains("loopback"), "{}", ran.err);
}

#[test]
fn the_socket_is_for_this_user() {
    let home = home("");
    let path = home.path("state/mcp.sock");
    let mut command = home.runner();
    command.args(["mcp", "serve", "--policy", "own", "--socket"]).arg(&path);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let stream = loop {
        match UnixStream::connect(&path) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
        assert!(child.try_wait().unwrap().is_none(), "the server ended");
    };
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let mut writer = stream.try_clone().unwrap();
    writeln!(writer, "{}", hello("2025-06-18", &json!({}))).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(said["result"]["protocolVersion"], "2025-06-18", "{said}");
    let second = home.runner().args(["mcp", "serve", "--socket"]).arg(&path).output().unwrap();
    assert_eq!(second.status.code(), Some(125), "two servers at one socket");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!path.exists(), "the socket is left");
}
