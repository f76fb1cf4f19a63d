//! Row 13, and the end of a talk: what is out of form ends the call by a typed error, and the next works.

use super::*;

async fn ends_with(case: &Case, code: &str, frames: &[(Kind, u32, &[u8])]) {
    let mut peer = case.talk();
    for (kind, id, payload) in frames {
        peer.send(*kind, *id, payload).await;
    }
    let served = peer.ended().await;
    assert_eq!(end_code(&served), code, "{frames:?}");
}

const READ: &[u8] = br#"{"method":"file.read","params":{"path":"file"}}"#;
const WRITE: &[u8] = br#"{"method":"file.write","params":{"path":"new"},"body":true}"#;
const RESULT: &[u8] = br#"{"value":1}"#;

#[tokio::test]
async fn the_job_comes_first_and_whole() {
    let case = Case::new();
    let mut peer = case.talk();
    let (start, code) = peer.started().await;
    assert_eq!((&start["mode"], &start["attempt"]), (&json!("run"), &json!(1)));
    assert_eq!(code, job().code);
    peer.send(Kind::Result, 0, br#"{"error":{"name":"E","message":"m","code":"c","stack":"s"}}"#)
        .await;
    let Ok(ToolEnd::Error(error)) = peer.close().await.end else { panic!() };
    assert_eq!((error.name.as_str(), error.code.as_deref()), ("E", Some("c")));
}

#[tokio::test]
async fn what_is_out_of_form_ends_the_call() {
    use Kind::{Cancel, Chunk, End, Note, Request, Result};
    let case = Case::new();
    for (code, frames) in [
        ("protocol_bad_json", vec![(Request, 1, &b"{"[..])]),
        ("protocol_bad_json", vec![(Request, 1, b"\xff\xfe")]),
        (
            "protocol_bad_params",
            vec![(Request, 1, br#"{"method":"file.read","params":{"path":1}}"#)],
        ),
        ("protocol_unknown_method", vec![(Request, 1, br#"{"method":"x","params":{}}"#)]),
        (
            "protocol_unwanted_body",
            vec![(Request, 1, br#"{"method":"file.stat","params":{"path":"a"},"body":true}"#)],
        ),
        ("protocol_bad_id", vec![(Request, 2, READ), (Request, 2, READ)]),
        ("protocol_bad_id", vec![(Request, 2, READ), (Request, 1, READ)]),
        ("protocol_bad_id", vec![(Request, 0, READ)]),
        ("protocol_bad_id", vec![(Chunk, 1, b"x")]),
        ("protocol_bad_id", vec![(Request, 1, READ), (Chunk, 1, b"x")]),
        ("protocol_bad_id", vec![(Request, 1, READ), (End, 1, b"")]),
        ("protocol_bad_id", vec![(Request, 1, WRITE), (End, 1, b""), (End, 1, b"")]),
        ("protocol_bad_id", vec![(Request, 1, WRITE), (End, 1, b""), (Chunk, 1, b"x")]),
        ("protocol_bad_id", vec![(Cancel, 1, b"")]),
        ("protocol_bad_id", vec![(Note, 1, br#"{"progress":{"fraction":1}}"#)]),
        ("protocol_bad_id", vec![(Result, 1, RESULT)]),
        ("protocol_bad_json", vec![(Note, 0, br#"{"log":1}"#)]),
        ("protocol_bad_json", vec![(Result, 0, br#"{"value":1,"value":2}"#)]),
        ("protocol_bad_json", vec![(Result, 0, b"")]),
        ("protocol_not_empty", vec![(Request, 1, WRITE), (End, 1, b"x")]),
        ("protocol_after_result", vec![(Result, 0, RESULT), (Result, 0, RESULT)]),
        ("protocol_after_result", vec![(Result, 0, RESULT), (Request, 1, READ)]),
        (
            "protocol_after_result",
            vec![(Result, 0, RESULT), (Note, 0, br#"{"progress":{"fraction":1}}"#)],
        ),
    ] {
        ends_with(&case, code, &frames).await;
        // The next call works.
        let mut peer = case.talk();
        assert_eq!(peer.read("file").await.text(), "inside");
        assert!(peer.end().await.end.is_ok());
    }
    case.untouched();
}

#[tokio::test]
async fn lengths_kinds_and_cut_frames_end_the_call() {
    let case = Case::new();
    for (code, bytes) in [
        ("protocol_unknown_kind", encode(0, 0, b"")),
        ("protocol_unknown_kind", encode(19, 1, b"{}")),
        ("protocol_too_long", [255, 255, 255, 255, 1, 1, 0, 0, 0].to_vec()),
        ("protocol_too_long", [1, 0, 1, 0, 2, 1, 0, 0, 0].to_vec()),
        ("protocol_too_long", [1, 0, 64, 0, 6, 0, 0, 0, 0].to_vec()),
    ] {
        let mut peer = case.talk();
        peer.raw(&bytes).await;
        assert_eq!(end_code(&peer.ended().await), code, "{bytes:?}");
    }
    let mut peer = case.talk();
    peer.raw(&encode(1, 1, READ)[..20]).await;
    assert_eq!(end_code(&peer.close().await), "protocol_cut_frame");
    let peer = case.talk();
    assert_eq!(end_code(&peer.close().await), "no_result");
    // One byte after the result is too much.
    let mut peer = case.talk();
    peer.raw(&[encode(6, 0, RESULT), vec![0]].concat()).await;
    assert_eq!(end_code(&peer.close().await), "protocol_after_result");
}

/// Who is told to end and is killed while it speaks was ended by the host; who was not told broke off.
#[tokio::test]
async fn a_frame_that_the_hosts_end_cuts_is_no_fault_of_the_tools() {
    let case = Case::new();
    for told in [true, false] {
        let mut peer = case.talk();
        peer.started().await;
        if told {
            peer.stop("enough");
            assert_eq!(peer.frame().await.unwrap().kind, 21);
        }
        peer.raw(&encode(1, 1, READ)[..20]).await;
        let end = peer.close().await.end.unwrap_err();
        if told {
            assert!(matches!(&end, ServeError::Aborted { reason } if reason == "enough"), "{end}");
            assert!(!end.is_cut_off());
        } else {
            assert!(matches!(end, ServeError::Protocol(ProtocolError::Cut)), "{end}");
            assert!(end.is_cut_off());
        }
    }
    // Time that runs out is the same; what is out of form stays the tool's fault, told or not.
    let mut short = Case::new();
    short.authority.limits.wall = Duration::from_millis(1);
    for (bytes, code) in [
        (encode(1, 1, READ)[..20].to_vec(), "timeout"),
        (encode(0, 0, b""), "protocol_unknown_kind"),
    ] {
        let mut peer = short.talk();
        peer.started().await;
        assert_eq!(peer.frame().await.unwrap().kind, 21);
        peer.raw(&bytes).await;
        assert_eq!(end_code(&peer.close().await), code);
    }
}

#[tokio::test]
async fn a_body_beyond_its_credit_ends_the_call() {
    let case = Case::new();
    std::fs::create_dir(case.root.join("folder")).unwrap();
    let chunk = vec![0; CHUNK_MAX];
    // The write is refused at once: nobody takes the body, and no credit is given.
    let mut peer = case.talk();
    let id = peer.begin("file.write", &json!({"path": "folder"}), true).await;
    for _ in 0..4 {
        peer.send(Kind::Chunk, id, &chunk).await;
    }
    assert_eq!(peer.answer(id).await.code(), "is_a_directory");
    // Within the credit it was discarded; the talk goes on.
    assert_eq!(peer.read("file").await.text(), "inside");
    peer.send(Kind::Chunk, id, b"x").await;
    assert_eq!(end_code(&peer.ended().await), "protocol_over_credit");
}

#[tokio::test]
async fn the_hosts_wish_to_end_is_told_and_holds() {
    let case = Case::new();
    let mut peer = case.talk();
    peer.started().await;
    let id = peer.begin("file.write", &json!({"path": "x"}), true).await;
    assert_eq!(peer.frame_after(id).await, None);
    peer.stop("somebody pressed a key");
    let (mut aborted, mut cancelled) = (None, false);
    while aborted.is_none() || !cancelled {
        let frame = peer.frame().await.unwrap();
        match frame.kind {
            21 => aborted = Some(serde_json::from_slice::<Value>(&frame.payload).unwrap()),
            19 => cancelled = String::from_utf8_lossy(&frame.payload).contains("cancelled"),
            _ => panic!("{frame:?}"),
        }
    }
    assert_eq!(aborted.unwrap(), json!({"reason": "somebody pressed a key"}));
    // What it asks for now is not done any more, and its result does not make it a success.
    assert_eq!(peer.read("file").await.code(), "cancelled");
    let served = peer.end().await;
    assert_eq!(end_code(&served), "cancelled");
    assert!(!case.root.join("x").exists());
    case.untouched();
}

impl Peer {
    /// Asks something else, so that an earlier request has been taken up; nothing of it came meanwhile.
    async fn frame_after(&mut self, earlier: u32) -> Option<HostFrame> {
        let id = self.begin("file.stat", &json!({"path": "file"}), false).await;
        loop {
            let frame = self.frame().await.unwrap();
            if frame.id == earlier {
                return Some(frame);
            }
            if (frame.kind, frame.id) == (19, id) {
                return None;
            }
        }
    }
}
