//! Row 8: a folder and a link out of the workspace change places at full speed under reads and writes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// How long, and how many operations at least.
const TIME: Duration = Duration::from_secs(10);
const OPERATIONS: u64 = 20_000;
/// Talks at once.
const PEERS: u64 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_folder_and_a_link_swapped_at_full_speed_leak_nothing() {
    let case = Case::new();
    case.write("spot/file", "inside");
    case.write("spot/sub/file", "inside");
    std::fs::create_dir(case.outside.join("sub")).unwrap();
    std::fs::write(case.outside.join("sub/file"), CANARY).unwrap();
    case.link(&case.outside, "link");
    let over = Arc::new(AtomicBool::new(false));
    let swaps = Arc::new(AtomicU64::new(0));
    let swapper = std::thread::spawn({
        let (over, swaps) = (Arc::clone(&over), Arc::clone(&swaps));
        let (one, other) = (case.root.join("spot"), case.root.join("link"));
        move || {
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let started = Instant::now();
    let done = Arc::new(AtomicU64::new(0));
    let mut peers = Vec::new();
    for number in 0..PEERS {
        let mut peer = case.talk();
        let done = Arc::clone(&done);
        peers.push(tokio::spawn(async move {
            let mut counts: std::collections::BTreeMap<String, u64> =
                std::collections::BTreeMap::new();
            let mut turn = number;
            while started.elapsed() < TIME || done.load(Ordering::Relaxed) < OPERATIONS {
                turn += 1;
                let answer = operate(&mut peer, turn, number).await;
                assert!(!String::from_utf8_lossy(&answer.bytes).contains(CANARY));
                assert!(!answer.reply.to_string().contains(CANARY));
                *counts.entry(answer.code().to_owned()).or_default() += 1;
                done.fetch_add(1, Ordering::Relaxed);
            }
            assert!(peer.end().await.end.is_ok());
            counts
        }));
    }
    let mut counts: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for peer in peers {
        for (code, count) in peer.await.unwrap() {
            *counts.entry(code).or_default() += count;
        }
    }
    over.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    let operations: u64 = counts.values().sum();
    println!("{operations} operations against {} swaps: {counts:?}", swaps.load(Ordering::Relaxed));
    assert!(operations >= OPERATIONS);
    // Both sides of the race were really met.
    assert!(counts["ok"] > 100 && counts["path_escape"] > 100, "{counts:?}");
    for code in counts.keys() {
        assert!(
            ["ok", "path_escape", "not_found", "busy", "already_exists", "not_a_directory"]
                .contains(&code.as_str()),
            "{counts:?}"
        );
    }
    std::fs::remove_file(case.outside.join("sub/file")).unwrap();
    std::fs::remove_dir(case.outside.join("sub")).unwrap();
    case.untouched();
}

/// One operation; what it reads is the inside file, and what it writes is found inside or nowhere.
async fn operate(peer: &mut Peer, turn: u64, number: u64) -> Answer {
    let own = format!("spot/own{number}");
    match turn % 10 {
        0 | 1 => {
            let answer = peer.read("spot/file").await;
            if answer.code() == "ok" {
                assert_eq!(answer.text(), "inside");
            }
            answer
        }
        2 => {
            let answer = peer.read("spot/sub/file").await;
            if answer.code() == "ok" {
                assert_eq!(answer.text(), "inside");
            }
            answer
        }
        3 => peer.write(&own, "written").await,
        4 => peer.give("file.append", json!({"path": own}), b"more").await,
        5 => peer.ask("file.stat", json!({"path": "spot/file"})).await,
        6 => {
            let answer = peer.ask("file.list", json!({"path": "spot"})).await;
            if answer.code() == "ok" {
                assert!(answer.reply.to_string().contains("sub"));
            }
            answer
        }
        7 => {
            let path = format!("spot/made{number}/{}/x", turn % 7);
            peer.ask("file.mkdir", json!({"path": path, "recursive": true})).await
        }
        8 => {
            let path = format!("spot/made{number}");
            peer.ask("file.remove", json!({"path": path, "recursive": true, "force": true})).await
        }
        _ => {
            let moved = format!("spot/moved{number}");
            peer.ask("file.rename", json!({"from": own, "to": moved})).await
        }
    }
}
