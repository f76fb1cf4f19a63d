//! Secrets: they reach the server that a rule names, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::fetch::NoneApproved;
use super::server::{Act, Seen, Server, answer, leads_to, ok};
use super::support::{CANARY, Names, code, fetch, get, header, request, with};
use crate::audit::{MASK, Redactor};
use crate::codes::Code;
use crate::environment::Environment;

fn rules(port: u16) -> String {
    format!(
        "  - {{ id: key, allow: \"GET http://localhost:{port}/**\", private: true, send: {{ X-Key: \"Key ${{secret:CANARY}}\" }} }}\n  - {{ id: bare, allow: \"GET http://localhost:{port}/bare/**\", private: true }}\n"
    )
}

fn sending(port: u16, redactor: Redactor) -> super::super::fetch::Fetcher {
    let names = Names::of(&[("localhost", &[&["127.0.0.1"]])]);
    with(&rules(port), names, Arc::new(NoneApproved), redactor)
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// Repeats what it was sent, in every way that it can think of.
fn echo(seen: &Seen) -> Vec<Act> {
    let sent = seen.header("x-key").unwrap_or_default().to_owned();
    let value = sent.strip_prefix("Key ").unwrap_or_default().to_owned();
    let json = serde_json::json!({ "headers": { "X-Key": sent } }).to_string().replace('/', "\\/");
    let all = [
        sent.clone(),
        percent(&sent),
        STANDARD.encode(&sent),
        STANDARD.encode(format!("user:{value}")),
        json,
        value.replace('+', "&#43;"),
        value.bytes().map(|byte| format!("{byte:02x}")).collect(),
        value.to_uppercase(),
    ]
    .join("\n");
    match seen.path() {
        "/pieces" => {
            let head = "HTTP/1.1 200 OK\r\n\r\n".to_owned();
            let mut acts = vec![Act::Write(head.into_bytes())];
            for byte in all.bytes() {
                acts.push(Act::Write(vec![byte]));
                acts.push(Act::Sleep(Duration::from_micros(50)));
            }
            acts
        }
        "/location" => leads_to("302 Found", &format!("/{}?{value}", "bare")),
        "/badlocation" => leads_to("302 Found", &format!("ftp://x/{value}")),
        "/gzip" => answer("200 OK", "Content-Encoding: gzip\r\n", b"\x1f\x8b..."),
        "/reason" => answer(
            &format!("200 {value}"),
            &format!("{}: x\r\nX-Echo: {sent}\r\nSet-Cookie: a={}\r\n", "X-Plain", percent(&value)),
            b"",
        ),
        "/broken" => vec![Act::Write(
            format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\n").into_bytes(),
        )],
        _ => answer("200 OK", "", all.as_bytes()),
    }
}

/// No form of the secret, nor a long part of one.
fn clean(text: &str) {
    let lower = text.to_lowercase();
    for form in [
        CANARY.to_owned(),
        "0123456789".to_owned(),
        percent(CANARY),
        percent("v+lue"),
        STANDARD.encode(CANARY)[..24].to_owned(),
        STANDARD.encode(format!("user:{CANARY}"))[8..32].to_owned(),
        STANDARD.encode(format!("Key {CANARY}"))[8..32].to_owned(),
        CANARY.bytes().map(|byte| format!("{byte:02x}")).collect(),
    ] {
        assert!(!lower.contains(&form.to_lowercase()), "{form} in {text}");
    }
}

#[tokio::test]
async fn a_server_that_repeats_a_secret_does_not_tell_the_tool() {
    let server = Server::start(echo).await;
    let redactor = Redactor::new();
    let fetcher = sending(server.port(), redactor.clone());
    let url = |path: &str| format!("http://localhost:{}{path}", server.port());
    for path in ["/whole", "/pieces"] {
        let whole = get(&fetcher, &url(path)).await.unwrap();
        clean(whole.text());
        assert!(whole.text().matches(MASK).count() >= 8, "{}", whole.text());
        assert_eq!(whole.header("content-length"), None);
    }
    let whole = get(&fetcher, &url("/reason")).await.unwrap();
    clean(&format!("{:?} {:?}", whole.head.headers, whole.head.status_text));
    assert_eq!(whole.header("x-echo"), Some(format!("Key {MASK}").as_str()));
    assert_eq!(server.seen()[0].header("x-key"), Some(format!("Key {CANARY}").as_str()));
    // Whoever records or logs for this call has learned it too.
    clean(&redactor.text(&format!("got {CANARY} and {}", percent(CANARY))));
}

#[tokio::test]
async fn messages_and_urls_tell_nothing_either() {
    let server = Server::start(echo).await;
    let fetcher = sending(server.port(), Redactor::new());
    let url = |path: &str| format!("http://localhost:{}{path}", server.port());
    for path in ["/badlocation", "/broken", "/gzip"] {
        let refusal = get(&fetcher, &url(path)).await.unwrap_err();
        clean(&format!("{refusal:?}"));
        assert!([Code::NetRedirect, Code::NetProtocol].contains(&refusal.code), "{path} {refusal}");
    }
    let whole = get(&fetcher, &url("/location")).await.unwrap();
    clean(&whole.head.url);
    clean(whole.text());
}

#[tokio::test]
async fn a_tool_neither_sets_nor_splits_what_the_policy_sends() {
    let server = Server::start(echo).await;
    let fetcher = sending(server.port(), Redactor::new());
    let url = |path: &str| format!("http://localhost:{}{path}", server.port());
    for (name, value) in
        [("x-key", "mine"), ("X-KEY", ""), ("Range", "bytes=0-10"), ("If-Range", "x")]
    {
        let seen = fetch(&fetcher, header(request("GET", &url("/x")), name, value)).await;
        assert_eq!(seen.unwrap_err().code, Code::InvalidArgument, "{name}");
    }
    assert!(server.seen().is_empty());
    // The more exact rule sends nothing: there they are the tool's own.
    let bare =
        fetch(&fetcher, header(request("GET", &url("/bare/x")), "X-Key", "mine")).await.unwrap();
    assert_eq!(bare.head.status, 200);
    assert_eq!(server.seen()[0].header("x-key"), Some("mine"));
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_not_guessed() {
    let server = Server::start(|_| ok("x")).await;
    let mut fetcher = sending(server.port(), Redactor::new());
    fetcher.environment = Environment::default();
    let url = format!("http://localhost:{}/x", server.port());
    let refusal = get(&fetcher, &url).await.unwrap_err();
    assert_eq!(refusal.code, Code::AccessDenied);
    assert!(refusal.message.contains("`CANARY`"), "{refusal}");
    fetcher.environment = Environment::from_iter([("CANARY", "short")]);
    assert_eq!(code(&fetcher, &url).await, Code::AccessDenied);
    assert!(server.seen().is_empty());
    fetcher.environment = super::support::environment();
    assert_eq!(get(&fetcher, &url).await.unwrap().text(), "x");
}

#[tokio::test]
async fn what_is_sent_in_the_open_stays_on_this_host() {
    let server = Server::start(|_| ok("x")).await;
    let names = Names::of(&[("localhost", &[&["10.0.0.1"]])]);
    let fetcher = with(&rules(server.port()), names, Arc::new(NoneApproved), Redactor::new());
    assert_eq!(
        code(&fetcher, &format!("http://localhost:{}/x", server.port())).await,
        Code::NetAddress
    );
}
