//! What passes, and how.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{CANARY, NAME, Stage, Upstream, ok, terms, with_credential};
use crate::codes::Code;

#[tokio::test]
async fn a_request_is_judged_written_anew_and_recorded() {
    let upstream =
        Upstream::start(NAME, |seen| ok(&format!("{} {}", seen.method, seen.line))).await;
    let stage = Stage::new(&upstream, |asked| asked.method == "GET", terms());
    let answer = stage
        .get("/left-pad?x=1", "Accept: */*\r\nConnection: x-mine\r\nX-Mine: 1\r\nX-HTTP-Method-Override: PUT\r\nTE: trailers\r\nX-Forwarded-Host: evil.test\r\nX_Forwarded_Host: evil.test\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("GET /left-pad?x=1"), "{answer}");
    let seen = &upstream.seen()[0];
    assert_eq!(seen.header("host"), Some(NAME));
    assert_eq!(seen.header("accept"), Some("*/*"));
    let names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["accept", "host"], "nothing else passes");
    let exchange = &stage.exchanges()[0];
    assert_eq!((exchange.method.as_str(), exchange.path.as_str()), ("GET", "/left-pad"));
    assert_eq!((exchange.query, exchange.status, exchange.code), (3, Some(200), None));
    assert_eq!((exchange.rule.as_deref(), exchange.received), (Some("p/registry"), 17));
}

#[tokio::test]
async fn a_refused_request_says_why_and_the_connection_lives_on() {
    let upstream = Upstream::start(NAME, |_| ok("x")).await;
    let stage = Stage::new(&upstream, |asked| asked.method == "GET", terms());
    let mut stream = stage.client(NAME, &[]).await.unwrap();
    let post = format!(
        "POST /-/npm/v1/security/audits HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    let get = format!("GET /a HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
    stream.write_all(format!("{post}{get}").as_bytes()).await.unwrap();
    let mut heard = String::new();
    let _ = stream.read_to_string(&mut heard).await;
    assert!(heard.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{heard}");
    assert!(heard.contains("no rule allows `POST https://registry.test/-/npm/v1/security/audits`"));
    assert!(heard.contains("HTTP/1.1 200 OK"), "{heard}");
    assert_eq!(upstream.seen().len(), 1, "only the GET got there");
    assert_eq!(stage.codes(), [Code::NetDenied]);
    let codes: Vec<_> = stage.exchanges().iter().map(|one| one.code).collect();
    assert_eq!(codes, [Some(Code::NetDenied), None]);
}

#[tokio::test]
async fn one_connection_to_the_server_serves_the_requests_of_one_client() {
    let upstream = Upstream::start(NAME, |_| ok("x")).await;
    let stage = Stage::new(&upstream, |_| true, terms());
    let one = format!("GET /a HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
    let last = format!("GET /b HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
    let heard = stage.raw(&format!("{one}{one}{last}")).await;
    assert_eq!(heard.matches("HTTP/1.1 200 OK").count(), 3, "{heard}");
    assert_eq!((upstream.seen().len(), upstream.connections()), (3, 1));
}

#[tokio::test]
async fn a_server_that_closes_is_asked_again_on_a_new_connection() {
    let upstream = Upstream::start(NAME, |_| {
        let mut answer = ok("x");
        answer.headers_mut().insert("connection", "close".parse().unwrap());
        answer
    })
    .await;
    let stage = Stage::new(&upstream, |_| true, terms());
    let one = format!("GET /a HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
    let last = format!("GET /b HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
    let heard = stage.raw(&format!("{one}{one}{last}")).await;
    assert_eq!(heard.matches("HTTP/1.1 200 OK").count(), 3, "{heard}");
    assert_eq!(upstream.connections(), 3);
}

#[tokio::test]
async fn a_credential_goes_to_the_server_and_does_not_come_back() {
    let upstream = Upstream::start(NAME, |seen| {
        let sent = seen.header("authorization").unwrap_or_default().to_owned();
        let mut answer = ok(&format!("you sent {sent}"));
        answer.headers_mut().insert("x-echo", sent.parse().unwrap());
        answer
    })
    .await;
    let stage = Stage::new(&upstream, |_| true, with_credential());
    let more = "Authorization: Bearer mine\r\nAccept-Encoding: gzip\r\nRange: bytes=0-1\r\n";
    let answer = stage.get("/", more).await;
    assert!(!answer.contains("c4n4ry"), "{answer}");
    assert!(answer.contains("you sent Bearer"), "the control got through: {answer}");
    let seen = &upstream.seen()[0];
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    assert_eq!((seen.header("accept-encoding"), seen.header("range")), (Some("identity"), None));
}

#[tokio::test]
async fn a_redirection_goes_to_the_client() {
    let upstream = Upstream::start(NAME, |_| {
        let mut answer = ok("");
        *answer.status_mut() = hyper::StatusCode::FOUND;
        answer.headers_mut().insert("location", "https://evil.test/x".parse().unwrap());
        answer.headers_mut().insert("alt-svc", "h3=\":443\"".parse().unwrap());
        answer
    })
    .await;
    let stage = Stage::new(&upstream, |_| true, with_credential());
    let answer = stage.get("/", "").await;
    assert!(answer.starts_with("HTTP/1.1 302 Found\r\n"), "{answer}");
    assert!(answer.contains("location: https://evil.test/x\r\n") && !answer.contains("alt-svc"));
    assert_eq!(upstream.seen().len(), 1, "the host follows nothing");
}

#[tokio::test]
async fn a_body_goes_to_the_server_where_a_rule_allows_it() {
    let upstream = Upstream::start(NAME, |seen| ok(&seen.body.len().to_string())).await;
    let stage = Stage::new(&upstream, |asked| asked.method == "POST", terms());
    let heard = stage
        .raw(&format!("POST /r/git-upload-pack HTTP/1.1\r\nHost: {NAME}\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"))
        .await;
    assert!(heard.contains("200 OK") && heard.ends_with("5"), "{heard}");
    let exchange = &stage.exchanges()[0];
    assert_eq!((exchange.sent, exchange.received), (5, 1));
}

#[tokio::test]
async fn the_head_of_an_answer_comes_without_its_body() {
    let upstream = Upstream::start(NAME, |_| ok("12345")).await;
    let stage = Stage::new(&upstream, |_| true, terms());
    let heard =
        stage.raw(&format!("HEAD / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n")).await;
    assert!(heard.contains("content-length: 5\r\n") && heard.ends_with("\r\n\r\n"), "{heard}");
}

#[tokio::test]
async fn an_answer_ends_where_its_rule_does() {
    let upstream = Upstream::start(NAME, |_| ok(&"x".repeat(3000))).await;
    let mut small = terms();
    small.size = 2000;
    let stage = Stage::new(&upstream, |_| true, small);
    let answer = stage.get("/", "").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("is larger than"), "{answer}");
    assert_eq!(stage.exchanges()[0].code, Some(Code::TooLarge));
}
