//! Redirections: each hop is judged anew, and nothing that tells who asks goes along to another origin.

use super::server::{Server, leads_to, ok};
use super::support::{CANARY, code, fetch, fetcher, get, header, request};
use crate::broker::{Body, Redirect};
use crate::codes::Code;

#[tokio::test]
async fn hops_are_judged_anew() {
    let server = Server::start(|seen| match seen.path() {
        "/v1/start" => leads_to("302 Found", "next?x=1"),
        "/v1/next?x=1" => ok("arrived"),
        "/v1/out" => leads_to("302 Found", "/v2/secret"),
        "/v1/meta" => leads_to("302 Found", "http://169.254.169.254/latest/"),
        "/v1/private" => leads_to("302 Found", "http://inside.test/"),
        "/v1/file" => leads_to("302 Found", "file:///etc/passwd"),
        "/v1/user" => leads_to("302 Found", "http://u:p@a.test/"),
        "/v1/star" => leads_to("301 Moved", "http://10.0.0.1/"),
        "/v1/loop" => leads_to("307 Again", "/v1/loop"),
        _ => ok("must not be seen"),
    })
    .await;
    let port = server.port();
    let fetcher = fetcher(&format!(
        "  - {{ allow: \"GET http://a.test:{port}/v1/**\", private: true }}\n  - {{ allow: \"GET http://*/**\" }}\n"
    ));
    let url = |path: &str| format!("http://a.test:{port}{path}");
    let whole = get(&fetcher, &url("/v1/start")).await.unwrap();
    assert_eq!((whole.text(), whole.head.redirected), ("arrived", true));
    assert_eq!(whole.head.url, url("/v1/next?x=1"));
    for (path, expected) in [
        ("/v1/out", Code::NetRedirect),
        ("/v1/meta", Code::NetAddress),
        ("/v1/star", Code::NetAddress),
        // A name that nobody knows: asked for, not dialled.
        ("/v1/private", Code::NetDns),
        ("/v1/file", Code::NetRedirect),
        ("/v1/user", Code::NetRedirect),
        ("/v1/loop", Code::NetRedirect),
    ] {
        assert_eq!(code(&fetcher, &url(path)).await, expected, "{path}");
    }
    assert!(server.seen().iter().all(|seen| seen.path().starts_with("/v1/")));
}

#[tokio::test]
async fn a_tool_may_want_to_see_a_redirection_or_none() {
    let server = Server::start(|_| leads_to("302 Found", "/elsewhere")).await;
    let port = server.port();
    let fetcher =
        fetcher(&format!("  - {{ allow: \"GET http://a.test:{port}/x\", private: true }}\n"));
    let asked = |redirect| {
        let mut asked = request("GET", &format!("http://a.test:{port}/x"));
        asked.redirect = redirect;
        asked
    };
    let whole = fetch(&fetcher, asked(Redirect::Manual)).await.unwrap();
    assert_eq!((whole.head.status, whole.header("location")), (302, Some("/elsewhere")));
    assert_eq!((whole.text(), whole.head.redirected), ("moved", false));
    let refused = fetch(&fetcher, asked(Redirect::Error)).await.unwrap_err();
    assert_eq!(refused.code, Code::NetRedirect);
}

#[tokio::test]
async fn methods_and_bodies_change_as_the_standard_has_it() {
    let server = Server::start(|seen| match seen.path() {
        "/302" => leads_to("302 Found", "/end"),
        "/303" => leads_to("303 See Other", "/end"),
        "/307" => leads_to("307 Temporary", "/end"),
        _ => ok("end"),
    })
    .await;
    let port = server.port();
    let fetcher = fetcher(&format!(
        "  - {{ allow: \"GET,POST,PUT http://a.test:{port}/**\", private: true }}\n"
    ));
    for (method, path, line, body) in [
        ("POST", "/302", "GET /end HTTP/1.1", ""),
        ("PUT", "/302", "PUT /end HTTP/1.1", "data"),
        ("PUT", "/303", "GET /end HTTP/1.1", ""),
        ("POST", "/307", "POST /end HTTP/1.1", "data"),
    ] {
        let mut asked = request(method, &format!("http://a.test:{port}{path}"));
        asked = header(asked, "Content-Type", "text/x");
        asked.body = Some(Body::of(b"data".to_vec()));
        fetch(&fetcher, asked).await.unwrap();
        let last = server.seen().pop().unwrap();
        assert_eq!((last.line(), last.body.as_slice()), (line, body.as_bytes()), "{method} {path}");
        assert_eq!(last.header("content-type").is_some(), !body.is_empty(), "{method} {path}");
    }
}

#[tokio::test]
async fn another_origin_gets_no_credentials() {
    let other = Server::start(|_| ok("other")).await;
    let there = other.port();
    let server = Server::start(move |seen| match seen.path() {
        "/same" => leads_to("302 Found", "/end"),
        "/other" => leads_to("302 Found", &format!("http://b.test:{there}/end")),
        "/granted" => leads_to("302 Found", &format!("http://127.0.0.1:{there}/granted")),
        _ => ok("end"),
    })
    .await;
    let port = server.port();
    let rules = format!(
        "  - {{ id: a, allow: \"GET http://localhost:{port}/**\", private: true, send: {{ Authorization: \"Bearer ${{secret:CANARY}}\" }} }}\n  - {{ id: b, allow: \"GET http://b.test:{there}/**\", private: true }}\n  - {{ id: c, allow: \"GET http://127.0.0.1:{there}/granted\", send: {{ X-Key: \"${{secret:CANARY}}\" }} }}\n"
    );
    let mut fetcher = fetcher(&rules);
    fetcher.resolver = Box::new(super::support::Names::of(&[
        ("localhost", &[&["127.0.0.1"]]),
        ("b.test", &[&["127.0.0.1"]]),
    ]));
    let ask = |path: &str| {
        let asked = request("GET", &format!("http://localhost:{port}{path}"));
        header(header(asked, "X-Own-Key", "mine"), "Cookie", "session=1")
    };
    fetch(&fetcher, ask("/same")).await.unwrap();
    let last = server.seen().pop().unwrap();
    assert_eq!(last.header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    assert_eq!(
        (last.header("x-own-key"), last.header("cookie")),
        (Some("mine"), Some("session=1"))
    );
    fetch(&fetcher, ask("/other")).await.unwrap();
    let last = other.seen().pop().unwrap();
    for name in ["authorization", "x-own-key", "cookie", "x-key"] {
        assert_eq!(last.header(name), None, "{name}");
    }
    fetch(&fetcher, ask("/granted")).await.unwrap();
    let last = other.seen().pop().unwrap();
    assert_eq!((last.header("x-key"), last.header("authorization")), (Some(CANARY), None));
}
