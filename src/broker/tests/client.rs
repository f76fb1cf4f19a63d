//! Both ends of a talk that are ours: what a built-in tool asks, and what it gets.

use std::future::pending;

use super::super::client::{Call, Exec, Thrown, converse};
use super::*;
use crate::broker::frame::RESULT_MAX;

/// Lets a tool of ours talk to the broker; how it went.
async fn talk<F>(
    case: &Case,
    stop: impl Future<Output = String> + Send,
    work: impl FnOnce(Call) -> F,
) -> Served
where
    F: Future<Output = Result<Value, Thrown>>,
{
    let (ours, tools) = tokio::io::duplex(64 << 10);
    let job = Job { args: json!({ "a": 1 }), code: Vec::new(), ..job() };
    let serving = serve(ours, job, case.authority.clone(), Arc::new(Silent), stop);
    let (served, talked) = tokio::join!(serving, converse(tools, work));
    talked.unwrap();
    served
}

fn value(served: Served) -> Value {
    match served.end.unwrap() {
        ToolEnd::Value(value) => value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn requests_are_answered_many_at_once_and_with_large_bodies() {
    let case = Case::new();
    let large = vec![b'x'; 3 << 20];
    let sent = large.clone();
    let served = talk(&case, pending(), |call| async move {
        assert_eq!(call.args, json!({ "a": 1 }));
        let client = &call.client;
        assert_eq!(client.write("new/large", &sent, false).await.unwrap_err().code, "not_found");
        client.mkdir("new").await?;
        assert_eq!(client.write("new/large", &sent, false).await?, 3 << 20);
        assert_eq!(client.write("new/large", b"", true).await.unwrap_err().code, "already_exists");
        let (one, two, three) = tokio::join!(
            client.read("new/large", 4 << 20),
            client.read("file", 3),
            client.stat("file")
        );
        let (one, two) = (one?, two?);
        assert!(one.bytes == sent && !one.more);
        assert_eq!((two.bytes.as_slice(), two.more, three?.size), (&b"ins"[..], true, 6));
        let names: Vec<String> =
            client.list(".").await?.entries.into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["file", "new"]);
        assert_eq!(client.glob("**/large", ".").await?.paths, ["new/large"]);
        client.remove("new", true).await?;
        Ok(json!("done"))
    })
    .await;
    assert_eq!((served.usage.calls, served.usage.refused), (10, 2));
    assert_eq!(value(served), "done");
    case.untouched();
}

#[tokio::test]
async fn a_refusal_comes_with_its_reason_and_can_end_the_tool() {
    let case = Case::new();
    case.write("secret/a", CANARY);
    // A body that nobody takes does not stop the talk.
    let served = talk(&case, pending(), |call| async move {
        let client = &call.client;
        let body = vec![b'x'; 2 << 20];
        assert_eq!(client.write("frozen/a", &body, false).await.unwrap_err().code, "access_denied");
        let argv = ["ls".to_owned()];
        let exec = client.exec(Exec { argv: &argv, ..Exec::default() }).await;
        assert_eq!(exec.unwrap_err().code, "access_denied");
        let refused = client.read("secret/a", 100).await.unwrap_err();
        assert_eq!(refused.rule.as_deref(), Some("open/files.deny"));
        Err(refused.into())
    })
    .await;
    let ToolEnd::Error(error) = served.end.unwrap() else { panic!("an error") };
    assert_eq!((error.code.as_deref(), error.recoverable), (Some("access_denied"), Some(false)));
    assert_eq!(error.data.unwrap()["path"], "secret/a");
}

#[tokio::test]
async fn time_and_the_hosts_wish_end_work_that_would_not_end() {
    let mut case = Case::new();
    let never = |_: Call| async { pending().await };
    let served = talk(&case, std::future::ready("enough".to_owned()), never).await;
    assert!(matches!(served.end, Err(ServeError::Aborted { .. })), "{served:?}");
    case.authority.limits.wall = Duration::from_millis(20);
    let served = talk(&case, pending(), never).await;
    assert!(matches!(served.end, Err(ServeError::Timeout)), "{served:?}");
}

#[tokio::test]
async fn a_result_that_is_too_large_is_an_error() {
    let case = Case::new();
    let served = talk(&case, pending(), |_| async { Ok("x".repeat(RESULT_MAX).into()) }).await;
    let ToolEnd::Error(error) = served.end.unwrap() else { panic!("an error") };
    assert_eq!(error.code.as_deref(), Some("result_too_large"));
}
