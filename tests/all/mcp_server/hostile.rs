//! Clients that send what no client should: each is answered, and the server goes on.

use serde_json::{Value, json};

use super::client::{Server, Web, new_token, text};
use super::home;
use crate::support::needs_engine;

#[test]
fn garbage_is_answered_line_by_line_and_the_next_call_works() {
    needs_engine();
    let home = home("");
    let mut server = Server::start(&home, &[]);
    let long = [vec![b'['; 5 << 20], b"\n".to_vec()].concat();
    let deep = format!("{}1{}\n", "[".repeat(500), "]".repeat(500));
    let twice = "{\"jsonrpc\":\"2.0\",\"id\":9,\"id\":8,\"method\":\"ping\"}\n";
    let cases: [(&[u8], i64); 7] = [
        (b"not json\n", -32700),
        (b"\xff\xfe\n", -32700),
        (&long, -32600),
        (deep.as_bytes(), -32700),
        (twice.as_bytes(), -32700),
        (b"[]\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":7}\n", -32600),
    ];
    for (bytes, code) in cases {
        server.raw(bytes);
        let told = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let answer = server.wait_for(|message| !message["error"].is_null());
        assert_eq!(answer["error"]["code"], code, "{told}: {answer}");
    }
    assert_eq!(text(&server.line("cat name.txt")), "hello\n\n[exit code 0]");
    for (method, params, code) in [
        ("tools/call", json!({"name": "no such tool"}), -32602),
        ("tools/call", json!({"arguments": {}}), -32602),
        ("tools/list", json!({"cursor": "x"}), -32602),
        ("resources/read", json!({"uri": "runner://tools/../../etc/passwd"}), -32002),
        ("resources/read", json!({"uri": "file:///etc/passwd"}), -32002),
        ("prompts/get", json!({"name": "other"}), -32602),
        ("nothing/like/it", json!({}), -32601),
    ] {
        let id = server.ask(method, params.clone());
        let answer = server.answer(id);
        assert!(!answer["error"].is_null(), "{method} {params}: {answer}");
        let _ = code;
    }
    assert_eq!(text(&server.line("cat name.txt")), "hello\n\n[exit code 0]");
}

/// A call that asks, in the protocol without sessions.
fn asks(line: &str) -> Value {
    json!({"name": "run_command", "arguments": {"command": line}})
}

#[test]
fn forged_and_replayed_states_count_for_nothing() {
    needs_engine();
    let home = home("");
    home.config("pool: { size: 0 }\napprovals: { clients: [web, other] }\n");
    let web = Web::start(&home, &[]);
    let other = new_token(&home, "other");
    let asked = |line: &str| web.modern(&web.token, "tools/call", asks(line))["result"].clone();
    let first = asked("head -c 3 name.txt");
    assert_eq!(first["resultType"], "input_required", "{first}");
    let state = first["requestState"].as_str().unwrap().to_owned();
    let yes = json!({"approve": {"action": "accept", "content": {"approve": true}}});
    let with = |token: &str, line: &str, state: &str| {
        let mut params = asks(line);
        params["requestState"] = json!(state);
        params["inputResponses"] = yes.clone();
        web.modern(token, "tools/call", params)
    };
    let refused = |answer: Value| {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("requestState"), "{answer}");
    };
    let mut forged = state.clone().into_bytes();
    forged[20] ^= 1;
    refused(with(&web.token, "head -c 3 name.txt", &String::from_utf8(forged).unwrap()));
    refused(with(&web.token, "head -c 3 name.txt", ""));
    refused(with(&web.token, "head -c 4 name.txt", &state));
    refused(with(&other, "head -c 3 name.txt", &state));
    // The control: the same client, the same call.
    let done = with(&web.token, "head -c 3 name.txt", &state);
    assert_eq!(text(&done["result"]), "hel\n\n[exit code 0]");
    // Once.
    refused(with(&web.token, "head -c 3 name.txt", &state));
    // An answer without a state is none.
    let mut params = asks("head -c 3 name.txt");
    params["inputResponses"] = yes.clone();
    let again = web.modern(&web.token, "tools/call", params);
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    // No is no.
    let second = asked("head -c 3 other.txt");
    let mut params = asks("head -c 3 other.txt");
    params["requestState"] = second["requestState"].clone();
    params["inputResponses"] = json!({"approve": {"action": "cancel"}});
    let declined = web.modern(&web.token, "tools/call", params);
    assert_eq!(declined["result"]["isError"], true, "{declined}");
}
