//! What must not pass, each beside a control in `requests`.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{NAME, Stage, Upstream, ok, terms, with_credential};
use crate::codes::Code;

#[tokio::test]
async fn another_name_in_tls_is_refused_before_any_request() {
    let upstream = Upstream::start(NAME, |_| ok("x")).await;
    let stage = Stage::new(&upstream, |_| true, terms());
    assert!(stage.client("evil.test", &[]).await.is_err());
    assert!(stage.client("127.0.0.1", &[]).await.is_err(), "no name at all");
    assert_eq!(stage.codes(), [Code::NetDenied, Code::NetProtocol]);
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn what_is_not_http_over_tls_is_refused() {
    let upstream = Upstream::start(NAME, |_| ok("x")).await;
    let stage = Stage::new(&upstream, |_| true, terms());
    // Plain bytes where TLS is inspected.
    let mut tunnel = stage.tunnel();
    tunnel.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").await.unwrap();
    let mut heard = Vec::new();
    let _ = tunnel.read_to_end(&mut heard).await;
    // HTTP/2 alone.
    assert!(stage.client(NAME, &["h2"]).await.is_err());
    // HTTP/2 without being asked.
    let heard = stage.raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(!heard.contains(" 200 "), "{heard}");
    assert_eq!(stage.codes(), [Code::NetProtocol, Code::NetTls, Code::NetProtocol]);
    // Both: the client takes what is offered.
    let mut stream = stage.client(NAME, &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    stream.shutdown().await.unwrap();
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn other_hosts_are_not_reached_by_a_request() {
    let upstream = Upstream::start(NAME, |_| ok("reached")).await;
    let stage = Stage::new(&upstream, |_| true, terms());
    for (why, request) in [
        ("Host", "GET / HTTP/1.1\r\nHost: evil.test\r\n"),
        ("port", "GET / HTTP/1.1\r\nHost: registry.test:8443\r\n"),
        ("no Host", "GET / HTTP/1.1\r\nAccept: */*\r\n"),
        ("two Hosts", "GET / HTTP/1.1\r\nHost: registry.test\r\nHost: evil.test\r\n"),
        ("absolute", "GET https://evil.test/ HTTP/1.1\r\nHost: registry.test\r\n"),
        ("absolute, own", "GET https://registry.test/ HTTP/1.1\r\nHost: registry.test\r\n"),
        ("CONNECT", "CONNECT evil.test:443 HTTP/1.1\r\nHost: registry.test\r\n"),
        ("upgrade", "GET / HTTP/1.1\r\nHost: registry.test\r\nUpgrade: websocket\r\n"),
        ("TRACE", "TRACE / HTTP/1.1\r\nHost: registry.test\r\n"),
        ("lower case", "get / HTTP/1.1\r\nHost: registry.test\r\n"),
        ("dots", "GET /a/../b HTTP/1.1\r\nHost: registry.test\r\n"),
        ("encoded dots", "GET /a/%2e%2e/b HTTP/1.1\r\nHost: registry.test\r\n"),
        ("dots by a slash", "GET /a/..%2fb HTTP/1.1\r\nHost: registry.test\r\n"),
        ("backslash", "GET /a%5c..%5cb HTTP/1.1\r\nHost: registry.test\r\n"),
        ("GET with a body", "GET / HTTP/1.1\r\nHost: registry.test\r\nContent-Length: 1\r\n"),
    ] {
        let heard = stage.raw(&format!("{request}Connection: close\r\n\r\nx")).await;
        let refused = heard.starts_with("HTTP/1.1 4") || heard.starts_with("HTTP/1.1 502 ");
        assert!(refused && !heard.contains("reached"), "{why}: {heard}");
    }
    assert_eq!(upstream.connections(), 0);
    let with_port = "GET / HTTP/1.1\r\nHost: Registry.test:443\r\nConnection: close\r\n\r\n";
    assert!(stage.raw(with_port).await.contains("reached"), "a control");
}

#[tokio::test]
async fn a_request_inside_a_request_is_no_request() {
    let upstream = Upstream::start(NAME, |_| ok("x")).await;
    let stage = Stage::new(&upstream, |asked| !asked.url.contains("hidden"), terms());
    let hidden = "GET /hidden HTTP/1.1\r\nHost: registry.test\r\n\r\n";
    for (why, head) in [
        (
            "both lengths",
            format!(
                "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
                hidden.len() + 5
            ),
        ),
        (
            "two lengths",
            format!("Content-Length: 0\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len()),
        ),
        ("odd coding", format!("Transfer-Encoding: xchunked\r\n\r\n{hidden}")),
        ("coding twice", format!("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}")),
        ("space before the colon", format!("Content-Length : {}\r\n\r\n{hidden}", hidden.len())),
        (
            "bare line feed in a value",
            format!("X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        ("folded", format!("X: a\r\n b\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len())),
        ("odd chunk", format!("Transfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n{hidden}")),
    ] {
        stage.raw(&format!("POST /shown HTTP/1.1\r\nHost: registry.test\r\n{head}")).await;
        let lines: Vec<String> = upstream.seen().iter().map(|seen| seen.line.clone()).collect();
        assert!(lines.iter().all(|line| line == "/shown"), "{why}: {lines:?}");
        assert!(upstream.seen().iter().all(|seen| seen.method == "POST"), "{why}");
    }
}

#[tokio::test]
async fn an_encoded_slash_is_judged_in_both_readings_and_sent_as_it_is() {
    let upstream = Upstream::start(NAME, |seen| ok(&seen.line)).await;
    let stage = Stage::new(&upstream, |asked| !asked.url.contains("/private/"), terms());
    assert!(stage.get("/@types%2fnode", "").await.ends_with("/@types%2fnode"));
    assert!(stage.get("/private%2Fx", "").await.contains("403 Forbidden"));
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn listing_what_a_push_needs_is_judged_like_the_push() {
    let upstream = Upstream::start(NAME, |_| ok("refs")).await;
    let stage = Stage::new(
        &upstream,
        |asked| asked.method == "GET" || asked.url.ends_with("/git-upload-pack"),
        terms(),
    );
    assert!(stage.get("/r.git/info/refs?service=git-upload-pack", "").await.contains("refs"));
    for query in ["service=git-receive-pack", "a=b&service=git-receive-pack", "service=other"] {
        let heard = stage.get(&format!("/r.git/info/refs?{query}"), "").await;
        assert!(heard.contains("403 Forbidden"), "{query}: {heard}");
    }
    let push = "POST /r.git/git-receive-pack HTTP/1.1\r\nHost: registry.test\r\nContent-Length: 4\r\nConnection: close\r\n\r\n0000";
    assert!(stage.raw(push).await.contains("403 Forbidden"));
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn a_server_without_the_right_certificate_gets_nothing() {
    for certified in ["evil.test", NAME] {
        let upstream = Upstream::start(certified, |_| ok("x")).await;
        let other = Upstream::start(NAME, |_| ok("x")).await;
        // The second server's name is right, and its authority is not the one that is trusted.
        let mut stage = Stage::new(
            if certified == NAME { &other } else { &upstream },
            |_| true,
            with_credential(),
        );
        stage.port = upstream.port;
        let answer = stage.get("/", "").await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(answer.contains("no trusted connection to registry.test"), "{answer}");
        assert!(upstream.seen().is_empty());
        assert_eq!(stage.codes(), [Code::NetTls]);
    }
}

#[tokio::test]
async fn an_encoded_answer_does_not_hide_a_credential() {
    let upstream = Upstream::start(NAME, |_| {
        let mut answer = ok("compressed");
        answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        answer
    })
    .await;
    let stage = Stage::new(&upstream, |_| true, with_credential());
    assert!(stage.get("/", "").await.contains("answers encoded, unasked"));
    let control = Stage::new(&upstream, |_| true, terms());
    assert!(control.get("/", "").await.ends_with("compressed"));
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_an_error() {
    let upstream = Upstream::start(NAME, |_| ok("x")).await;
    let stage = Stage::new(&upstream, |_| true, terms());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 mail ready\r\n").await.unwrap();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
        heard
    });
    let mut stage = stage;
    stage.port = port;
    let answer = stage.get("/secret-path", "").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let heard = String::from_utf8_lossy(&plain.await.unwrap()).into_owned();
    assert!(!heard.contains("secret-path"), "{heard}");
}
