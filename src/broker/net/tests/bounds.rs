//! Size, time, count and number at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::limits;
use super::server::{Act, Server, answer, leads_to, ok};
use super::support::{code, fetch, fetcher, get, request};
use crate::broker::Body;
use crate::codes::Code;

#[tokio::test]
async fn large_answers_end_at_the_rules_size() {
    let server = Server::start(|seen| match seen.path() {
        "/fits" => answer("200 OK", "", &[b'x'; 1024]),
        "/announced" => answer("200 OK", "", &[b'x'; 1025]),
        "/closed" => {
            vec![Act::Write(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), Act::Flood(vec![b'x'; 4096])]
        }
        "/chunked" => vec![
            Act::Write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
            Act::Flood(b"4\r\nabcd\r\n".to_vec()),
        ],
        "/headers" => vec![
            Act::Write(b"HTTP/1.1 200 OK\r\n".to_vec()),
            Act::Flood(format!("X-A: {}\r\n", "x".repeat(500)).into_bytes()),
        ],
        "/many" => {
            let many: String = (0..200).map(|at| format!("X-{at}: 1\r\n")).collect();
            answer("200 OK", &many, b"x")
        }
        _ => ok("x"),
    })
    .await;
    let port = server.port();
    let fetcher = fetcher(&format!(
        "  - {{ allow: \"GET http://a.test:{port}/**\", private: true, limits: {{ size: 1KiB }} }}\n"
    ));
    let url = |path: &str| format!("http://a.test:{port}{path}");
    assert_eq!(get(&fetcher, &url("/fits")).await.unwrap().body.len(), 1024);
    for path in ["/announced", "/closed", "/chunked"] {
        assert_eq!(code(&fetcher, &url(path)).await, Code::TooLarge, "{path}");
    }
    for path in ["/headers", "/many"] {
        assert_eq!(code(&fetcher, &url(path)).await, Code::NetProtocol, "{path}");
    }
}

#[tokio::test]
async fn slow_answers_end_at_the_rules_time_or_the_tools() {
    let long = Duration::from_secs(600);
    let server = Server::start(move |seen| match seen.path() {
        "/silent" => vec![Act::Sleep(long)],
        "/half" => vec![
            Act::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc".to_vec()),
            Act::Sleep(long),
        ],
        "/head" => vec![Act::Write(b"HTTP/1.1 200 OK\r\nX-".to_vec()), Act::Sleep(long)],
        _ => ok("fast"),
    })
    .await;
    let port = server.port();
    let brief = fetcher(&format!(
        "  - {{ allow: \"GET http://a.test:{port}/**\", private: true, limits: {{ time: 300ms }} }}\n"
    ));
    let url = |path: &str| format!("http://a.test:{port}{path}");
    for path in ["/silent", "/half", "/head"] {
        assert_eq!(code(&brief, &url(path)).await, Code::Timeout, "{path}");
    }
    let patient =
        fetcher(&format!("  - {{ allow: \"GET http://a.test:{port}/**\", private: true }}\n"));
    let mut asked = request("GET", &url("/half"));
    asked.timeout = Some(Duration::from_millis(300));
    assert_eq!(fetch(&patient, asked).await.unwrap_err().code, Code::Timeout);
    assert_eq!(get(&patient, &url("/")).await.unwrap().text(), "fast");
}

#[tokio::test]
async fn requests_of_a_rule_are_counted_hops_too() {
    let server = Server::start(|seen| match seen.path() {
        "/hop" => leads_to("302 Found", "/"),
        _ => ok("x"),
    })
    .await;
    let port = server.port();
    let rules = format!(
        "  - {{ id: few, allow: \"GET http://a.test:{port}/**\", private: true, limits: {{ count: 3 }} }}\n  - {{ id: more, allow: \"GET http://b.test:{port}/**\", private: true }}\n"
    );
    let fetcher = fetcher(&rules);
    let url = format!("http://a.test:{port}/");
    get(&fetcher, &url).await.unwrap();
    get(&fetcher, &format!("{url}hop")).await.unwrap();
    let refusal = get(&fetcher, &url).await.unwrap_err();
    assert_eq!(refusal.code, Code::LimitReached);
    assert!(refusal.message.contains("p/few"), "{refusal}");
    assert_eq!(server.seen().len(), 3);
    get(&fetcher, &format!("http://b.test:{port}/")).await.unwrap();
}

#[tokio::test]
async fn a_bounded_number_is_under_way_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, peak) = (Arc::clone(&now), Arc::clone(&most));
    let server = Server::start(move |_| {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let mut acts = vec![Act::Sleep(Duration::from_millis(30))];
        acts.extend(ok("x"));
        acts
    })
    .await;
    let port = server.port();
    let fetcher = Arc::new(fetcher(&format!(
        "  - {{ allow: \"GET http://a.test:{port}/**\", private: true }}\n"
    )));
    let calls: Vec<_> = (0..40)
        .map(|_| {
            let (fetcher, now) = (Arc::clone(&fetcher), Arc::clone(&now));
            tokio::spawn(async move {
                let mut answer = crate::broker::Net::fetch(
                    fetcher.as_ref(),
                    request("GET", &format!("http://a.test:{port}/")),
                )
                .await
                .unwrap();
                now.fetch_sub(1, Ordering::SeqCst);
                while answer.body.next().await.unwrap().is_some() {}
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let most = most.load(Ordering::SeqCst);
    assert!((2..=limits::AT_ONCE).contains(&most), "{most}");
}

#[tokio::test]
async fn a_body_is_bounded_too() {
    struct Endless;
    impl crate::broker::Source for Endless {
        fn next(
            &mut self,
        ) -> crate::broker::Boxed<'_, Result<Option<Vec<u8>>, crate::broker::Refusal>> {
            Box::pin(async { Ok(Some(vec![0; 1 << 20])) })
        }
    }
    let server = Server::start(|_| ok("x")).await;
    let port = server.port();
    let fetcher =
        fetcher(&format!("  - {{ allow: \"POST http://a.test:{port}/**\", private: true }}\n"));
    let mut asked = request("POST", &format!("http://a.test:{port}/"));
    asked.body = Some(Body::new(Endless));
    assert_eq!(fetch(&fetcher, asked).await.unwrap_err().code, Code::TooLarge);
    assert!(server.seen().is_empty());
}
