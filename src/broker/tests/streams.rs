//! Row 26: floods and slow peers; and bodies larger than anything that is held.

use std::collections::HashMap;

use tokio::sync::mpsc;

use super::*;
use crate::broker::frame::HostKind;
use crate::broker::meter::Meter;
use crate::broker::outgoing::{Outgoing, QUEUE, write};
use crate::broker::talk::{CALLS_GRACE, NOTES_MAX, PENDING_MAX};

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 977) as u8).collect()
}

#[tokio::test]
async fn large_files_travel_in_chunks_both_ways() {
    let case = Case::new();
    let content = pattern(5 * 1024 * 1024 + 13);
    let mut peer = case.talk();
    let written = peer.give("file.write", json!({"path": "big"}), &content).await;
    assert_eq!(written.ok(), &json!({"bytes": content.len()}));
    assert!(std::fs::read(case.root.join("big")).unwrap() == content);
    let read = peer.read("big").await;
    assert_eq!(read.ok(), &json!({"bytes": content.len()}));
    assert!(read.bytes == content);
    let tail = peer.ask("file.read", json!({"path": "big", "offset": content.len() - 5})).await;
    assert_eq!(tail.bytes, &content[content.len() - 5..]);
    let beyond = peer.ask("file.read", json!({"path": "big", "offset": u64::MAX})).await;
    assert!(["ok", "io_error"].contains(&beyond.code()) && beyond.bytes.is_empty());
    let served = peer.end().await;
    assert_eq!(served.usage.bytes_in, content.len() as u64);
    assert_eq!(served.requests[0].bytes_in, content.len() as u64);
    assert_eq!(served.requests[1].bytes_out, content.len() as u64);
}

/// Two long answers take turns, and a short one waits for neither. Asked of the queue, which decides it: how
/// soon the next piece of a file is read is a matter of threads, and of what else the machine does.
#[tokio::test]
async fn streams_take_turns_and_a_short_answer_overtakes_them() {
    const LONG: usize = 128 * CHUNK_MAX;
    let (mut stream, host) = tokio::io::duplex(256 * 1024);
    let (_control, control_queue) = mpsc::unbounded_channel();
    let (data, data_queue) = mpsc::channel(QUEUE);
    let writing = tokio::spawn(write(host, Vec::new(), control_queue, data_queue));
    let meter = Arc::new(Meter::new(u64::MAX));
    let way_out = |id| Outgoing::new(id, data.clone(), Arc::clone(&meter));
    for id in [1, 2] {
        let mut out = way_out(id);
        tokio::spawn(async move { out.bytes(&vec![0; LONG]).await });
    }
    let mut got: HashMap<u32, usize> = HashMap::new();
    while got.values().sum::<usize>() < LONG / 2 {
        let frame = host_frame(&mut stream).await.unwrap();
        *got.entry(frame.id).or_default() += frame.payload.len();
    }
    assert!(got[&1].abs_diff(got[&2]) <= 2 * CHUNK_MAX, "{got:?}");
    let mut out = way_out(3);
    tokio::spawn(async move { out.reply(&Ok("{}".to_owned())).await });
    let mut before = 0;
    while host_frame(&mut stream).await.unwrap().id != 3 {
        before += 1;
    }
    // What was under way already, what was queued, and each long answer's turn.
    assert!(before <= 2 * QUEUE, "{before}");
    drop(stream);
    assert!(writing.await.unwrap().is_err());
}

/// Answers that come side by side are each whole, and a short one comes while long ones are under way.
#[tokio::test]
async fn streams_side_by_side_are_each_whole() {
    let case = Case::new();
    let content = pattern(8 * 1024 * 1024);
    std::fs::write(case.root.join("big"), &content).unwrap();
    let mut peer = case.talk();
    peer.started().await;
    let one = peer.begin("file.read", &json!({"path": "big"}), false).await;
    let other = peer.begin("file.read", &json!({"path": "big"}), false).await;
    let small = peer.begin("file.stat", &json!({"path": "file"}), false).await;
    let mut got: HashMap<u32, Vec<u8>> = HashMap::new();
    let mut replies: HashMap<u32, Value> = HashMap::new();
    while replies.len() < 3 {
        if replies.is_empty() {
            // Long answers wait for who reads them: at this pace they take seconds, and a look at a file does not.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let frame = peer.frame().await.unwrap();
        if frame.kind == HostKind::Reply.number() {
            assert!(frame.id == small || replies.contains_key(&small), "a long answer came first");
            replies.insert(frame.id, serde_json::from_slice(&frame.payload).unwrap());
        } else {
            assert!(!replies.contains_key(&frame.id), "bytes after the reply");
            got.entry(frame.id).or_default().extend(frame.payload);
        }
    }
    assert!(got[&one] == content && got[&other] == content);
    assert_eq!(replies[&one], json!({"ok": {"bytes": content.len()}}));
    assert_eq!(replies[&other], replies[&one]);
    assert_eq!(replies[&small].pointer("/ok/size"), Some(&json!("inside".len())));
    assert!(peer.end().await.end.is_ok());
}

/// A request whose body does not come holds nobody up.
#[tokio::test]
async fn slow_bodies_block_nobody() {
    let case = Case::new();
    let mut peer = case.talk();
    let slow: Vec<u32> = {
        let mut ids = Vec::new();
        for at in 0..100 {
            ids.push(peer.begin("file.write", &json!({"path": format!("slow{at}")}), true).await);
        }
        ids
    };
    for _ in 0..20 {
        assert_eq!(peer.read("file").await.text(), "inside");
    }
    for id in &slow {
        peer.send(Kind::Chunk, *id, b"late").await;
        peer.send(Kind::End, *id, b"").await;
    }
    let mut replies = 0;
    while replies < slow.len() {
        replies += usize::from(peer.frame().await.unwrap().kind == 19);
    }
    assert_eq!(case.read("slow99"), "late");
    assert!(peer.end().await.end.is_ok());
    case.untouched();
}

/// Requests that nobody reads the answers of: bounded in flight, and the host's wish to end still works.
#[tokio::test]
async fn pipelined_requests_that_are_never_read_are_bounded_and_can_be_ended() {
    let case = Case::new();
    std::fs::write(case.root.join("big"), pattern(1024 * 1024)).unwrap();
    let mut peer = case.talk();
    let request = json!({"method": "file.read", "params": {"path": "big"}}).to_string();
    let mut sent = 0_u32;
    // As much as the stream takes. Not an assertion about time: when nothing moves, it is full.
    loop {
        sent += 1;
        let frame = encode(Kind::Request.number(), sent, request.as_bytes());
        let write = peer.stream.write_all(&frame);
        if tokio::time::timeout(Duration::from_millis(500), write).await.is_err() {
            break;
        }
        assert!(sent < 100_000, "nothing holds the flood");
    }
    assert!(sent as usize > PENDING_MAX);
    peer.stop("enough");
    let served = peer.serving.await.unwrap();
    assert_eq!(end_code(&served), "cancelled");
    // No more were taken up than may be unanswered; the rest was told that too much is going on, as long as
    // that could be told. Each has at most the one chunk under way that waits for the queue.
    let taken_up = served.requests.iter().filter(|request| request.bytes_out > 0).count();
    assert!(taken_up <= PENDING_MAX, "{:?}", served.usage);
    let most = (PENDING_MAX + 32) * CHUNK_MAX;
    assert!(served.usage.bytes_out as usize <= most, "{:?}", served.usage);
    case.untouched();
}

#[tokio::test]
async fn too_many_at_once_are_busy_and_later_ones_work() {
    let case = Case::new();
    let mut peer = case.talk();
    peer.started().await;
    let mut open = Vec::new();
    for at in 0..PENDING_MAX {
        open.push(peer.begin("file.write", &json!({"path": format!("o/{at}")}), true).await);
    }
    // They all wait for a folder that is missing, and are answered: make room again.
    for _ in &open {
        let frame = peer.frame().await.unwrap();
        assert!(String::from_utf8_lossy(&frame.payload).contains("not_found"));
    }
    std::fs::create_dir(case.root.join("o")).unwrap();
    let mut open = Vec::new();
    for at in 0..PENDING_MAX {
        open.push(peer.begin("file.write", &json!({"path": format!("o/{at}")}), true).await);
    }
    let extra = peer.begin("file.write", &json!({"path": "o/extra"}), true).await;
    peer.send(Kind::Chunk, extra, b"x").await;
    peer.send(Kind::End, extra, b"").await;
    let busy = peer.answer(extra).await;
    assert_eq!((busy.code(), &busy.reply["error"]["recoverable"]), ("busy", &json!(true)));
    for id in &open {
        peer.send(Kind::End, *id, b"").await;
    }
    for _ in &open {
        assert_eq!(peer.frame().await.unwrap().kind, 19);
    }
    assert_eq!(peer.write("o/extra", "x").await.code(), "ok");
    assert!(peer.end().await.end.is_ok());
}

/// Half a frame, then silence: the call's time ends it, and what was begun is undone.
#[tokio::test]
async fn silence_ends_with_the_calls_time() {
    let mut case = Case::new();
    case.authority.limits.wall = Duration::from_millis(300);
    let mut peer = case.talk();
    let id = peer.begin("file.write", &json!({"path": "x"}), true).await;
    peer.send(Kind::Chunk, id, b"half").await;
    peer.raw(&encode(Kind::Chunk.number(), id, b"whole")[..7]).await;
    let mut aborted = false;
    while let Some(frame) = peer.frame().await {
        aborted |= frame.kind == 21;
    }
    assert!(aborted);
    let served = peer.serving.await.unwrap();
    assert_eq!(end_code(&served), "timeout");
    assert!(!case.root.join("x").exists());
    case.untouched();
}

#[tokio::test]
async fn a_cancel_reaches_a_request_behind_a_flood_of_others() {
    let case = Case::new();
    let mut peer = case.talk();
    peer.started().await;
    let stuck = peer.begin("file.write", &json!({"path": "stuck"}), true).await;
    for _ in 0..50 {
        peer.begin("file.stat", &json!({"path": "file"}), false).await;
    }
    peer.send(Kind::Cancel, stuck, b"").await;
    let mut codes = Vec::new();
    for _ in 0..51 {
        let frame = peer.frame().await.unwrap();
        if frame.id == stuck {
            codes.push(String::from_utf8_lossy(&frame.payload).contains("cancelled"));
        }
    }
    assert_eq!(codes, [true]);
    // Once more, after its answer: it has crossed it.
    peer.send(Kind::Cancel, stuck, b"").await;
    assert_eq!(peer.read("file").await.text(), "inside");
    case.untouched();
}

#[tokio::test]
async fn counts_and_bytes_are_bounded_and_said() {
    let mut case = Case::new();
    case.authority.limits.calls = 3;
    let mut peer = case.talk();
    for _ in 0..3 {
        assert_eq!(peer.read("file").await.code(), "ok");
    }
    let over = peer.read("file").await;
    assert_eq!(over.code(), "limit_reached");
    assert!(over.reply["error"]["suggestion"].as_str().unwrap().contains("broker-calls"));
    for _ in 1..CALLS_GRACE {
        assert_eq!(peer.read("file").await.code(), "limit_reached");
    }
    peer.begin("file.read", &json!({"path": "file"}), false).await;
    assert_eq!(end_code(&peer.ended().await), "broker_limit");

    let mut case = Case::new();
    case.authority.limits.bytes = 300_000;
    std::fs::write(case.root.join("big"), pattern(400_000)).unwrap();
    let mut peer = case.talk();
    assert_eq!(peer.write("small", "x").await.code(), "ok");
    let read = peer.read("big").await;
    assert_eq!(read.code(), "limit_reached");
    assert!(read.bytes.len() <= 300_000);
    assert_eq!(peer.write("another", "x").await.code(), "limit_reached");
    assert!(!case.root.join("another").exists());
    let served = peer.end().await;
    assert!(served.end.is_ok());
    case.untouched();
}

#[tokio::test]
async fn notes_are_passed_on_live_and_not_without_end() {
    let case = Case::new();
    let mut peer = case.talk();
    peer.send(Kind::Note, 0, br#"{"log":{"level":"warn","message":"m","fields":{"a":1}}}"#).await;
    peer.send(Kind::Note, 0, br#"{"progress":{"fraction":0.5,"text":"t"}}"#).await;
    assert_eq!(peer.read("file").await.code(), "ok");
    assert_eq!(peer.told.logs.lock().unwrap()[0].message, "m");
    assert_eq!(peer.told.progress.lock().unwrap()[0].fraction, 0.5);
    for _ in 0..NOTES_MAX {
        peer.send(Kind::Note, 0, br#"{"log":{"level":"info","message":"again"}}"#).await;
    }
    let told = Arc::clone(&peer.told);
    let served = peer.end().await;
    assert_eq!((served.usage.notes, served.usage.notes_dropped), (NOTES_MAX + 2, 2));
    assert_eq!(told.logs.lock().unwrap().len() as u64, NOTES_MAX - 1);
}

/// Many calls at once, each in its own workspace: none reaches another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_calls_do_not_reach_each_other() {
    let cases: Vec<Arc<Case>> = (0..16).map(|_| Arc::new(Case::new())).collect();
    let mut calls = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let other = cases[(at + 1) % cases.len()].root.to_str().unwrap().to_owned();
        let case = Arc::clone(case);
        calls.push(tokio::spawn(async move {
            let mut peer = case.talk();
            for turn in 0..50 {
                let own = format!("own{turn}");
                assert_eq!(peer.write(&own, &format!("{at} {turn}")).await.code(), "ok");
                assert_eq!(peer.read(&own).await.text(), format!("{at} {turn}"));
                assert_eq!(peer.read(&format!("{other}/file")).await.code(), "path_escape");
                assert_eq!(peer.write(&format!("{other}/{own}"), "x").await.code(), "path_escape");
            }
            assert!(peer.end().await.end.is_ok());
        }));
    }
    for call in calls {
        call.await.unwrap();
    }
}
