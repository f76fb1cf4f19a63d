//! Plain requests: what arrives at the server, what comes back, what never leaves.

use super::super::fetch::{Asked, NetApproval, Sent};
use super::server::{Act, Server, answer, ok};
use super::support::{Names, approved, code, fetch, fetcher, get, header, request, with};
use crate::audit::Redactor;
use crate::broker::{Body, Boxed, Refusal};
use crate::codes::Code;
use std::sync::Arc;

#[tokio::test]
async fn a_request_arrives_as_asked_and_its_answer_comes_back() {
    let server = Server::start(|_| answer("201 Made", "X-A: 1\r\nX-A: 2\r\n", b"hello")).await;
    let port = server.port();
    let fetcher =
        fetcher(&format!("  - {{ allow: \"POST http://a.test:{port}/v1/**\", private: true }}\n"));
    let mut asked = request("post", &format!("http://A.test:{port}/v1/./x?y=é#z"));
    asked = header(asked, "X-Own", "yes");
    asked.body = Some(Body::of(b"body of mine".to_vec()));
    let whole = fetch(&fetcher, asked).await.unwrap();
    assert_eq!((whole.head.status, whole.head.status_text.as_str()), (201, "Made"));
    assert_eq!(whole.head.url, format!("http://a.test:{port}/v1/x?y=%C3%A9"));
    assert_eq!((whole.text(), whole.head.redirected), ("hello", false));
    let both: Vec<_> = whole.head.headers.iter().filter(|(name, _)| name == "x-a").collect();
    assert_eq!(both.len(), 2);
    let seen = &server.seen()[0];
    assert_eq!(seen.line(), "POST /v1/x?y=%C3%A9 HTTP/1.1");
    assert_eq!(seen.header("host"), Some(format!("a.test:{port}").as_str()));
    assert_eq!(seen.header("x-own"), Some("yes"));
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert_eq!(seen.header("content-length"), Some("12"));
    assert_eq!(seen.body, b"body of mine");
}

#[tokio::test]
async fn what_no_rule_allows_is_never_dialled() {
    let server = Server::start(|_| ok("x")).await;
    let port = server.port();
    let rules = format!(
        "  - {{ id: v1, allow: \"GET http://a.test:{port}/v1/**\", private: true }}\n  - {{ id: not, deny: \"GET http://a.test:{port}/v1/no/**\" }}\n"
    );
    let fetcher = fetcher(&rules);
    assert_eq!(get(&fetcher, &format!("http://a.test:{port}/v1/x")).await.unwrap().text(), "x");
    for url in ["/v2/x", "/v1/no/x", "/v1/../v2/x", "/v1/%6eo/x", "/"] {
        assert_eq!(
            code(&fetcher, &format!("http://a.test:{port}{url}")).await,
            Code::NetDenied,
            "{url}"
        );
    }
    let refusal = get(&fetcher, &format!("http://a.test:{port}/v1/no/x")).await.unwrap_err();
    assert_eq!(refusal.rule.unwrap().id, "p/not");
    let posted = fetch(&fetcher, request("POST", &format!("http://a.test:{port}/v1/x"))).await;
    assert_eq!(posted.unwrap_err().code, Code::NetDenied);
    for url in ["https://a.test/v1/x", "http://b.test/v1/x", "http://a.test/v1/x"] {
        assert_eq!(code(&fetcher, url).await, Code::NetDenied, "{url}");
    }
    assert_eq!(server.seen().len(), 1);
}

fn only(same: bool) -> Result<(), Refusal> {
    if same { Ok(()) } else { Err(Refusal::new(Code::ApprovalNeeded, "not this one")) }
}

/// Approves requests with this body, and no others.
struct OneBody(Option<Sent>);

impl NetApproval for OneBody {
    fn approve(&self, asked: Asked) -> Boxed<'_, Result<(), Refusal>> {
        let same = asked.body == self.0;
        Box::pin(async move { only(same) })
    }
}

#[tokio::test]
async fn who_approves_a_request_approves_its_body() {
    let server = Server::start(|_| ok("x")).await;
    let port = server.port();
    let rules =
        format!("  - {{ id: post, ask: \"POST http://a.test:{port}/**\", private: true }}\n");
    let send = async |approves: &str, sends: Option<&str>| {
        let digest = blake3::hash(approves.as_bytes()).to_hex().to_string();
        let approval = Arc::new(OneBody(Some(Sent { bytes: approves.len(), digest })));
        let names = Names::of(&[("a.test", &[&["127.0.0.1"]])]);
        let fetcher = with(&rules, names, approval, Redactor::new());
        let mut asked = request("POST", &format!("http://a.test:{port}/x"));
        asked.body = sends.map(|body| Body::of(body.as_bytes().to_vec()));
        fetch(&fetcher, asked).await
    };
    assert_eq!(send("pay 1", Some("pay 1")).await.unwrap().text(), "x");
    for other in [Some("pay 9"), Some(""), None] {
        assert_eq!(send("pay 1", other).await.unwrap_err().code, Code::ApprovalNeeded);
    }
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].body.as_slice()), (1, &b"pay 1"[..]));
}

/// Approves requests with these headers, and no others.
struct TheseHeaders(&'static [(&'static str, &'static str)]);

impl NetApproval for TheseHeaders {
    fn approve(&self, asked: Asked) -> Boxed<'_, Result<(), Refusal>> {
        let asked = asked.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let same = asked.eq(self.0.iter().copied());
        Box::pin(async move { only(same) })
    }
}

#[tokio::test]
async fn who_approves_a_request_approves_its_headers() {
    let server = Server::start(|_| ok("x")).await;
    let port = server.port();
    let rules = format!("  - {{ id: get, ask: \"GET http://a.test:{port}/**\", private: true }}\n");
    let send = async |sends: &[(&str, &str)]| {
        let approval = Arc::new(TheseHeaders(&[("x-a", "1"), ("x-a", "2"), ("x-b", "caf\u{e9}")]));
        let names = Names::of(&[("a.test", &[&["127.0.0.1"]])]);
        let fetcher = with(&rules, names, approval, Redactor::new());
        let asked = request("GET", &format!("http://a.test:{port}/x"));
        fetch(&fetcher, sends.iter().fold(asked, |asked, (name, value)| header(asked, name, value)))
            .await
    };
    // By name, as they are sent; of one name in their order.
    for same in [
        [("X-B", "caf\u{e9}"), ("X-A", "1"), ("x-a", "2")],
        [("x-a", " 1 "), ("x-b", "caf\u{e9}"), ("x-a", "2")],
    ] {
        assert_eq!(send(&same).await.unwrap().text(), "x");
    }
    for other in [
        &[("x-a", "2"), ("x-a", "1"), ("x-b", "caf\u{e9}")][..],
        &[("x-a", "1"), ("x-b", "caf\u{e9}")],
        &[],
    ] {
        assert_eq!(send(other).await.unwrap_err().code, Code::ApprovalNeeded, "{other:?}");
    }
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn malformed_requests_are_refused_before_they_are_judged() {
    let server = Server::start(|_| ok("x")).await;
    let port = server.port();
    let fetcher = fetcher(&format!(
        "  - {{ allow: [\"GET,POST http://a.test:{port}/**\", \"connect a.test:*\"], private: true }}\n"
    ));
    let url = format!("http://a.test:{port}/");
    for method in ["CONNECT", "trace", "", "GET x", "GET\r\nX: y", "G\u{e4}T"] {
        let seen = fetch(&fetcher, request(method, &url)).await.unwrap_err().code;
        assert_eq!(seen, Code::InvalidArgument, "{method:?}");
    }
    for bad in [
        format!("http://user:pass@a.test:{port}/"),
        format!("http://a.test:{port}/\r\nX-Injected: 1"),
        format!("http://a.test:{port}/a b"),
        format!("http://a.test:{port}/%2e%2e/x"),
        "file:///etc/passwd".to_owned(),
        "gopher://a.test/".to_owned(),
        "/x".to_owned(),
    ] {
        assert_eq!(code(&fetcher, &bad).await, Code::InvalidArgument, "{bad:?}");
    }
    for (name, value) in [
        ("Host", "b.test"),
        ("Content-Length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "upgrade"),
        ("Proxy-Authorization", "x"),
        ("X-A", "1\r\nX-Injected: 1"),
        ("X-A\r\nX-Injected", "1"),
        ("X-A", "a\0b"),
        ("Accept-Encoding", "gzip"),
    ] {
        let seen = fetch(&fetcher, header(request("GET", &url), name, value)).await.unwrap_err();
        assert_eq!(seen.code, Code::InvalidArgument, "{name:?} {value:?}");
    }
    let mut with_body = request("GET", &url);
    with_body.body = Some(Body::of(b"x".to_vec()));
    assert_eq!(fetch(&fetcher, with_body).await.unwrap_err().code, Code::InvalidArgument);
    assert!(server.seen().is_empty());
    assert_eq!(get(&fetcher, &url).await.unwrap().text(), "x");
}

#[tokio::test]
async fn what_a_rule_asks_about_needs_an_approval() {
    let server = Server::start(|_| ok("x")).await;
    let port = server.port();
    let rules = format!("  - {{ id: q, ask: \"GET http://a.test:{port}/**\", private: true }}\n");
    let url = format!("http://a.test:{port}/");
    let refusal = get(&fetcher(&rules), &url).await.unwrap_err();
    assert_eq!((refusal.code, refusal.rule.unwrap().id.as_str()), (Code::ApprovalNeeded, "p/q"));
    assert!(server.seen().is_empty());
    assert_eq!(get(&approved(&rules), &url).await.unwrap().text(), "x");
}

#[tokio::test]
async fn answers_of_every_kind_are_read_or_refused() {
    let server = Server::start(|seen| match seen.path() {
        "/chunked" => vec![Act::Write(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".to_vec(),
        )],
        "/close" => vec![Act::Write(b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec())],
        "/none" => vec![Act::Write(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
        "/error" => answer("500 Oh", "", b"failed"),
        "/noise" => vec![Act::Write(b"\x16\x03\x01 this is no HTTP\r\n\r\n".to_vec())],
        "/cut" => vec![Act::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec())],
        "/upgrade" => vec![Act::Write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_vec(),
        )],
        "/two" => vec![Act::Write(
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_vec(),
        )],
        "/hello" => answer("200 OK", "X-Odd: caf\u{e9}\r\n", b"hi"),
        _ => Vec::new(),
    })
    .await;
    let port = server.port();
    let fetcher =
        fetcher(&format!("  - {{ allow: \"GET,HEAD http://a.test:{port}/**\", private: true }}\n"));
    let url = |path: &str| format!("http://a.test:{port}{path}");
    for (path, status, body) in [
        ("/chunked", 200, "abcde"),
        ("/close", 200, "until the end"),
        ("/none", 204, ""),
        ("/error", 500, "failed"),
        ("/hello", 200, "hi"),
    ] {
        let whole = get(&fetcher, &url(path)).await.unwrap();
        assert_eq!((whole.head.status, whole.text()), (status, body), "{path}");
    }
    for path in ["/noise", "/cut", "/upgrade", "/two", "/nothing"] {
        assert_eq!(code(&fetcher, &url(path)).await, Code::NetProtocol, "{path}");
    }
    let head = fetch(&fetcher, request("HEAD", &url("/hello"))).await.unwrap();
    assert_eq!((head.text(), head.header("content-length")), ("", Some("2")));
}
