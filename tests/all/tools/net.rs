//! Requests of tools, through the real command line and from inside a real container, to servers on loopback.

use super::{call, told, write_yaml};
use crate::support::{Home, Ran, needs_engine};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The secret that the host adds, which nobody else may see.
const CANARY: &str = "canary+5e1f/0b7d9c4a2";
const CANARY_BASE64: &str = "Y2FuYXJ5KzVlMWYvMGI3ZDljNGEy";
/// The same in lines, as many encoders write it.
const CANARY_LINES: &str = "Y2FuYXJ5KzVl\r\nMWYvMGI3ZDlj\r\nNGEy";

/// A server that answers with what it was sent; it lives as long as the test's process.
fn echo() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n")
                && stream.read(&mut byte).is_ok_and(|count| count == 1)
            {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            list.lock().unwrap().push(head.clone());
            let answer = match head.split(' ').nth(1) {
                Some("/meta") => "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n".to_owned(),
                _ => {
                    let body = format!("{head}{CANARY_BASE64}\n{CANARY_LINES}");
                    format!("HTTP/1.1 200 OK\r\nX-Echo: {CANARY}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                }
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, seen)
}

fn policy(home: &Home, port: u16) {
    let text = format!(
        "policy: 1\nname: web\nextends: [readonly]\nsecrets: {{ KEY: \"env:NET_CANARY\" }}\nnet:\n  - {{ id: echo, allow: \"GET http://127.0.0.1:{port}/**\", limits: {{ count: 4 }}, send: {{ X-Key: \"${{secret:KEY}}\" }} }}\n  - {{ id: asked, ask: \"DELETE http://127.0.0.1:{port}/**\" }}\n"
    );
    home.user_policy("web", &text);
}

/// Asks for each, and tells the answer or the code of the refusal.
const FETCH_ALL: &str = r#"
export async function execute(args, context) {
  const told = [];
  if (args.says) {
    console.log("printed " + args.says);
    console.error("printed " + args.says);
    context.logger.info("logged " + args.says);
    told.push("returned " + args.says, { password: args.says });
  }
  for (const [method, url, headers] of args.asked) {
    try {
      const answer = await context.platform.http.fetch(url, { method, headers });
      const text = await answer.text();
      context.logger.info("answered " + text);
      told.push({ status: answer.status, text, echo: answer.headers.get("x-echo") });
    } catch (error) { told.push(error.code) }
  }
  if (args.throws) throw new Error("I saw " + JSON.stringify(told));
  return told;
}"#;

/// A tool of the project that wants nobody asked, and a user who agrees.
const ACCEPTS: &str = "permissions: { autoAccept: true, riskLevel: medium }";
const TRUSTS: &str =
    "pool: { size: 0 }\napprovals: { withoutTerminal: true }\ntools: { t: { autoAccept: true } }\n";

fn fetch(home: &Home, port: u16, net: &str, args: Value) -> (Value, Ran) {
    policy(home, port);
    // Nobody is asked whether the tool may run; the policy's own questions stay.
    home.config(TRUSTS);
    write_yaml(home, "t", &format!("{ACCEPTS}\n{net}"), FETCH_ALL);
    let words = ["--json", "tool", "run", "t", "--policy", "web", "--args"];
    let mut command = home.runner();
    command.env("NET_CANARY", CANARY).args(words).arg(args.to_string());
    let ran = Ran::from(command.output().unwrap());
    (ran.json(), ran)
}

/// No file below holds the secret.
fn holds_nothing(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holds_nothing(&path);
        } else if let Ok(bytes) = fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(CANARY) && !text.contains(CANARY_BASE64), "{}", path.display());
        }
    }
}

#[test]
fn row_15_a_secret_reaches_its_server_and_nobody_else() {
    needs_engine();
    let home = Home::new();
    let (port, seen) = echo();
    let net = format!("net: [\"GET http://127.0.0.1:{port}/**\"]");
    for throws in [false, true] {
        let asked = serde_json::json!({ "throws": throws, "asked": [["GET", format!("http://127.0.0.1:{port}/x")]] });
        let (result, ran) = fetch(&home, port, &net, asked);
        let shown = format!("{}{}", ran.out, ran.err);
        assert!(!shown.contains(CANARY) && !shown.contains(CANARY_BASE64), "{shown}");
        assert!(!shown.contains("MWYvMGI3ZDlj"), "{shown}");
        assert!(shown.contains("[redacted]"), "{shown}");
        if !throws {
            assert_eq!(told(&result), ("completed", 0, ""), "{result} {}", ran.err);
            assert_eq!(result["value"][0]["echo"], "[redacted]", "{result}");
        }
    }
    // A secret that the tool itself has: in its log, its prints and its value, for programs and for people.
    let own = format!("glpat-{}", "a1B2c3D4".repeat(3));
    let asked = serde_json::json!({ "says": own, "asked": [] });
    let (result, ran) = fetch(&home, port, &net, asked.clone());
    assert!(!ran.out.contains(&own) && !ran.err.contains(&own), "{} {}", ran.out, ran.err);
    assert_eq!(result["value"][0], "returned [redacted]", "{result}");
    assert_eq!(result["value"][1]["password"], "[redacted]", "{result}");
    assert_eq!(result["stdout"], "printed [redacted]\n", "{result}");
    assert_eq!(result["stderr"], "printed [redacted]\n", "{result}");
    let words = ["tool", "run", "t", "--policy", "web", "--args", &asked.to_string()];
    let ran = Ran::from(home.runner().env("NET_CANARY", CANARY).args(words).output().unwrap());
    assert!(!ran.out.contains(&own) && !ran.err.contains(&own), "{} {}", ran.out, ran.err);
    assert_eq!(ran.err.matches("printed [redacted]").count(), 2, "{}", ran.err);
    assert!(ran.err.contains("logged [redacted]"), "{}", ran.err);
    assert!(ran.out.contains("returned [redacted]"), "{}", ran.out);
    // The control: what is no secret is shown everywhere.
    let asked = serde_json::json!({ "says": "harmless", "asked": [] });
    let (result, _) = fetch(&home, port, &net, asked);
    assert_eq!(result["value"][0], "returned harmless", "{result}");
    assert_eq!(result["stdout"], "printed harmless\n", "{result}");
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 2);
    assert!(
        seen.iter().all(|head| head.to_lowercase().contains(&format!("x-key: {CANARY}"))),
        "{seen:?}"
    );
    holds_nothing(&home.path("state"));
    let ledger = home.run(["--json", "audit", "list"]);
    assert!(ledger.out.contains("call"), "{}", ledger.out);
}

#[test]
fn a_tool_asks_only_for_what_policy_and_tool_both_allow() {
    needs_engine();
    let home = Home::new();
    let (port, seen) = echo();
    let here = format!("http://127.0.0.1:{port}");
    let asked = serde_json::json!({ "asked": [
        ["GET", format!("{here}/v1/x")],
        ["GET", format!("{here}/v2/x")],
        ["POST", format!("{here}/v1/x")],
        ["DELETE", format!("{here}/v1/x")],
        ["GET", "http://169.254.169.254/latest/"],
        ["GET", format!("http://localhost:{port}/v1/x")],
        ["GET", format!("{here}/v1/x"), { "X-Key": "mine" }],
        ["GET", format!("{here}/v1/x"), { "Host": "elsewhere" }],
        ["GET", "file:///etc/passwd"],
    ]});
    let net = format!("net: [\"GET,DELETE {here}/v1/**\"]");
    let (result, ran) = fetch(&home, port, &net, asked.clone());
    assert_eq!(told(&result), ("completed", 0, ""), "{result} {}", ran.err);
    let told_codes: Vec<&str> = result["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap_or("answered"))
        .collect();
    assert_eq!(
        told_codes,
        [
            "answered",
            "net_denied",
            "net_denied",
            "approval_needed",
            "net_denied",
            "net_denied",
            "invalid_argument",
            "invalid_argument",
            "invalid_argument",
        ]
    );
    assert_eq!(seen.lock().unwrap().len(), 1);
    // A tool that asks for no peers has none, whatever the policy allows.
    let (result, _) = fetch(&home, port, "", asked);
    assert_eq!(result["value"][0], "net_denied", "{result}");
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn an_approval_of_a_request_is_for_its_headers_too() {
    needs_engine();
    let home = Home::new();
    let (port, seen) = echo();
    let here = format!("http://127.0.0.1:{port}");
    let net = format!("net: [\"DELETE {here}/**\"]");
    let delete = |headers: Value| {
        let asked = serde_json::json!({ "asked": [["DELETE", format!("{here}/x"), headers]] });
        let (result, ran) = fetch(&home, port, &net, asked);
        assert_eq!(told(&result), ("completed", 0, ""), "{result} {}", ran.err);
        result["value"][0].as_str().unwrap_or("answered").to_owned()
    };
    const SECRET: &str = "tool-secret-4711";
    let approved =
        serde_json::json!({ "X-Way": "one", "Authorization": format!("Bearer {SECRET}") });
    assert_eq!(delete(approved.clone()), "approval_needed");
    let waiting = home.run(["--json", "approvals"]).json();
    assert_eq!(waiting["approvals"][0]["subject"], "tool:t/net", "{waiting}");
    let question = waiting["approvals"][0]["id"].as_str().unwrap();
    let person = home.at_terminal(&format!("approve {question} --for 1h"), "y\n");
    assert_eq!(person.code, Some(0), "{}", person.out);
    for part in ["DELETE http", "x-way: one", "authorization: [redacted]"] {
        assert!(person.out.contains(part), "{part}: {}", person.out);
    }
    // The control: the same request, whatever the order of its headers and the case of their names.
    let same = serde_json::json!({ "authorization": format!("Bearer {SECRET}"), "x-way": "one" });
    for headers in [approved, same] {
        assert_eq!(delete(headers), "answered");
    }
    for other in [
        serde_json::json!({ "X-Way": "two", "Authorization": format!("Bearer {SECRET}") }),
        serde_json::json!({ "X-Way": "one", "Authorization": "Bearer another-secret-1" }),
        serde_json::json!({ "X-Way": "one" }),
        serde_json::json!({ "X-Way": "one", "Authorization": format!("Bearer {SECRET}"), "X-More": "" }),
        serde_json::json!({}),
    ] {
        assert_eq!(delete(other.clone()), "approval_needed", "{other}");
    }
    assert_eq!(seen.lock().unwrap().len(), 2);
    // It is bound, and nowhere kept.
    let everything = home.run(["--json", "approvals"]).out + &home.run(["audit", "export"]).out;
    assert!(!everything.contains(SECRET) && !person.out.contains(SECRET), "{everything}");
    for name in ["store.db", "store.db-wal"] {
        let bytes = fs::read(home.path("state/runner").join(name)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "{name}");
    }
}

#[test]
fn redirections_and_counts_hold_for_tools() {
    needs_engine();
    let home = Home::new();
    let (port, seen) = echo();
    let here = format!("http://127.0.0.1:{port}");
    let asked = serde_json::json!({ "asked": [
        ["GET", format!("{here}/meta")],
        ["GET", format!("{here}/1")], ["GET", format!("{here}/2")], ["GET", format!("{here}/3")],
        ["GET", format!("{here}/4")],
    ]});
    let (result, _) =
        fetch(&home, port, &format!("net: [\"GET {here}/**\", \"GET http://*/**\"]"), asked);
    let value = &result["value"];
    assert_eq!(value[0], "net_redirect", "{result}");
    assert!((1..4).all(|at| value[at]["status"] == 200), "{result}");
    assert_eq!(value[4], "limit_reached", "{result}");
    assert_eq!(seen.lock().unwrap().len(), 4);
}

#[test]
fn neither_a_project_nor_a_tool_sends_secrets() {
    let home = Home::new();
    let text = "policy: 1\nname: own\nsecrets: { KEY: \"env:HOME\" }\nnet: [{ id: x, allow: \"GET https://evil.example/**\", send: { X: \"${secret:KEY}\" } }]\n";
    home.project_policy("own", text);
    let ran = home.run(["--json", "policy", "show", "own"]);
    assert_eq!(ran.code, Some(125), "{}", ran.out);
    let codes = format!("{}{}", ran.out, ran.err);
    assert_eq!(codes.matches("forbidden_setting").count(), 2, "{codes}");
    // The same policy of the user loads, and shows names and sources only.
    fs::remove_file(home.path("project/.runner/policies/own.yml")).unwrap();
    home.user_policy("own", text);
    let ran = home.run(["policy", "show", "own"]);
    assert!(ran.out.contains("env:HOME") && ran.out.contains("${secret:KEY}"), "{}", ran.out);
    write_yaml(
        &home,
        "t",
        "net: [{ allow: \"GET https://a.example/**\", send: { X: y } }]",
        FETCH_ALL,
    );
    let (result, ran) = call(&home, "t", &[]);
    assert_ne!(ran.code, Some(0), "{result}");
}

#[test]
fn the_systems_certificates_are_believed_and_no_proxy_is() {
    needs_engine();
    let home = Home::new();
    let (proxy, seen) = echo();
    let (port, certificate) = https();
    fs::write(home.path("ca.pem"), certificate).unwrap();
    let text = format!(
        "policy: 1\nname: web\nextends: [readonly]\nnet:\n  - {{ id: tls, allow: \"GET https://localhost:{port}/**\", private: true }}\n"
    );
    let net = format!("{ACCEPTS}\nnet: [\"GET https://localhost:{port}/**\"]");
    home.config(TRUSTS);
    home.user_policy("web", &text);
    write_yaml(&home, "t", &net, FETCH_ALL);
    let asked = serde_json::json!({ "asked": [["GET", format!("https://localhost:{port}/x")]] })
        .to_string();
    for trusted in [true, false] {
        let mut command = home.runner();
        for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, format!("http://127.0.0.1:{proxy}"));
        }
        if trusted {
            command.env("SSL_CERT_FILE", home.path("ca.pem"));
        }
        command.args(["--json", "tool", "run", "t", "--policy", "web", "--args", &asked]);
        let ran = Ran::from(command.output().unwrap());
        let value = &ran.json()["value"][0];
        if trusted {
            assert_eq!(value["text"], "over tls", "{} {}", ran.out, ran.err);
        } else {
            assert_eq!(value, "net_tls", "{} {}", ran.out, ran.err);
        }
    }
    assert!(seen.lock().unwrap().is_empty());
}

/// A server that speaks TLS as `localhost`, and the certificate that vouches for it.
fn https() -> (u16, String) {
    use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring};
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("localhost:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n")
                && stream.read(&mut byte).is_ok_and(|count| count == 1)
            {
                head.push(byte[0]);
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nover tls");
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (port, own.cert.pem())
}
