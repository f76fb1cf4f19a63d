//! `rest_api_call`: requests to loopback where the policy lets them, and nowhere else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::{code, home, offline};
use crate::support::Home;
use crate::tools::told;

/// A server that says in JSON what it was asked; it lives as long as the test's process.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                let lower = line.to_ascii_lowercase();
                if let Some(figure) = lower.strip_prefix("content-length:") {
                    length = figure.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut sent = vec![0; length];
            reader.read_exact(&mut sent).unwrap();
            let said = json!({ "head": head, "body": String::from_utf8_lossy(&sent) }).to_string();
            let answer = if head.starts_with("GET /away") {
                "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n".to_owned()
            } else if head.starts_with("GET /large") {
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}",
                    1 << 20,
                    "x".repeat(1 << 20)
                )
            } else {
                format!(
                    "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX-Two: a\r\nX-Two: b\r\nContent-Length: {}\r\n\r\n{said}",
                    said.len()
                )
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn caller(port: u16) -> Home {
    let home = home();
    let text = format!(
        "policy: 1\nname: web\nextends: [readonly]\nnet:\n  - {{ id: own, allow: \"GET,POST http://127.0.0.1:{port}/**\" }}\n"
    );
    home.user_policy("web", &text);
    home
}

fn ask(home: &Home, args: Value) -> Value {
    offline(home, "rest_api_call", &args, &["--policy", "web", "--yes"]).0
}

#[test]
fn a_request_goes_where_the_policy_lets_it() {
    let port = server();
    let home = caller(port);
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let args = json!({ "method": "POST", "url": url("/v1/things?x=1"), "headers": { "X-Mine": "yes" }, "body": { "a": [1] } });
    let sent = ask(&home, args);
    assert_eq!(told(&sent), ("completed", 0, ""), "{sent:#}");
    let value = &sent["value"];
    assert_eq!(
        (&value["status"], &value["ok"], &value["encoding"]),
        (&json!(201), &json!(true), &json!("json"))
    );
    assert_eq!(
        (&value["body"]["body"], &value["headers"]["x-two"]),
        (&json!("{\"a\":[1]}"), &json!(["a", "b"]))
    );
    let head = value["body"]["head"].as_str().unwrap().to_ascii_lowercase();
    assert!(head.starts_with("post /v1/things?x=1 ") && head.contains("x-mine: yes"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let large = ask(&home, json!({ "url": url("/large") }));
    assert_eq!(
        (&large["value"]["truncated"], large["value"]["body"].as_str().unwrap().len()),
        (&json!(true), 512 << 10)
    );
    // Nobody is there to ask, and the request is in the ledger where somebody was.
    let (asked, ran) =
        offline(&home, "rest_api_call", &json!({ "url": url("/") }), &["--policy", "web"]);
    assert_eq!((told(&asked).0, ran.code), ("needs_approval", Some(77)), "{asked:#}");
    let record = home.run(["--json", "audit", "show", sent["call"].as_str().unwrap()]).json();
    assert!(record.to_string().contains("net.fetch"), "{record:#}");
}

#[test]
fn nothing_else_is_reached() {
    let port = server();
    let home = caller(port);
    for (args, wanted) in [
        (json!({ "method": "DELETE", "url": format!("http://127.0.0.1:{port}/") }), "net_denied"),
        (json!({ "url": format!("http://127.0.0.1:{}/", port ^ 1) }), "net_denied"),
        (json!({ "url": "http://169.254.169.254/latest/" }), "net_denied"),
        (json!({ "url": "https://example.org/" }), "net_denied"),
        (json!({ "url": format!("http://localhost:{port}/") }), "net_denied"),
    ] {
        let (result, ran) = offline(&home, "rest_api_call", &args, &["--policy", "web", "--yes"]);
        assert_eq!(
            (told(&result).0, code(&result), ran.code),
            ("denied", wanted, Some(126)),
            "{args} {result:#}"
        );
    }
    let away = ask(&home, json!({ "url": format!("http://127.0.0.1:{port}/away") }));
    assert!(told(&away).0 != "completed" && code(&away).starts_with("net_"), "{away:#}");
    let (default, _) = offline(
        &home,
        "rest_api_call",
        &json!({ "url": format!("http://127.0.0.1:{port}/") }),
        &["--yes"],
    );
    assert_eq!((told(&default).0, code(&default)), ("denied", "net_denied"), "{default:#}");
    for args in [
        json!({}),
        json!({ "url": "file:///etc/passwd" }),
        json!({ "url": "http://a/", "method": "TRACE" }),
    ] {
        let (result, ran) = offline(&home, "rest_api_call", &args, &["--yes"]);
        assert_eq!((code(&result), ran.code), ("invalid_arguments", Some(2)), "{args} {result:#}");
    }
}
