//! Row 22, output flood: head and tail are kept, all is counted, a cap ends it, and nothing of ours grows.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use runner::call::launch::run::Streams;
use runner::sandbox::cancel::Cancel;
use runner::sandbox::outcome::Verdict;
use runner_policy::limits::Limit;
use tokio::io::AsyncReadExt;

use super::harness::{On, attack};
use super::seat::Seat;
use crate::crowd::{PEAK, peak};
use crate::engine::{argv, block_on, call, call_with, plan, workspace};
use crate::image::docker;

/// Endless output of every kind.
const FLOODS: [&str; 5] =
    ["yes", "cat /dev/urandom", "tr '\\0' x < /dev/zero", "yes >&2", "yes & yes >&2 & wait"];

fn a_flood_is_counted_and_ended_at_the_cap(on: On) {
    for script in FLOODS {
        let folder = workspace();
        let mut plan = plan(folder.path());
        plan.runtime = on.runtime();
        plan.limits.set(Limit::OutputMax, 16 << 20);
        plan.limits.set(Limit::Output, 64 << 10);
        let outcome = call(plan, argv(&["sh", "-c", script])).unwrap();
        assert_eq!(outcome.verdict, Verdict::Limit(Limit::OutputMax), "{script}");
        let (out, err) = (&outcome.stdout, &outcome.stderr);
        let total = out.total() + err.total();
        assert!((16 << 20..17 << 20).contains(&total), "{script}: {total}");
        for stream in [out, err] {
            let kept = stream.head().len() + stream.tail().len();
            assert!(kept <= 64 << 10, "{script}: {kept}");
            assert!(
                stream.total() < 1 << 20 || kept == 64 << 10,
                "{script}: head and tail are full"
            );
        }
    }
    // The control: output below the cap is whole.
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    let outcome = call(plan, argv(&["sh", "-c", "seq 1000; seq 1000 >&2"])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Completed);
    let lines: String = (1..=1000).map(|at| format!("{at}\n")).collect();
    assert_eq!(outcome.stdout.whole().unwrap(), lines.as_bytes());
    assert_eq!(outcome.stderr.whole().unwrap(), lines.as_bytes());
}
attack!(22, "flood", a_flood_is_counted_and_ended_at_the_cap);

fn neither_our_memory_nor_a_log_grows(on: On) {
    let seat = Seat::new(on, &[("a.txt", "one\n")]);
    let mut child = seat
        .home
        .runner()
        .args(["exec", "--policy", "all", "--limit", "output-max=256MiB", "--", "yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut reader = child.stdout.take().unwrap();
    let mut buffer = vec![0; 1 << 20];
    let (mut total, mut most, mut looked) = (0, 0, false);
    loop {
        let count = reader.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        total += count;
        most = most.max(peak(child.id()).unwrap_or(0));
        if total > 32 << 20 && !looked {
            looked = true;
            if on == On::Embedded {
                // Nothing but runner itself reads what a guest writes.
                continue;
            }
            let calls = seat.home.run(["ps", "--json"]).json();
            let call = calls["calls"][0]["call"].as_str().unwrap().to_owned();
            let label = format!("label=runner.call={call}");
            let id = docker(&["ps", "-aq", "--no-trunc", "--filter", &label]);
            assert_eq!(docker(&["inspect", "--format", "{{.LogPath}}", &id]), "", "no log at all");
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(121), "ended at the cap");
    assert!(looked && total >= 256 << 20, "{total}");
    println!("{} MiB passed, a process of ours had at most {} KiB", total >> 20, most >> 10);
    assert!(most < PEAK, "{most}");
}
attack!(22, "flood", neither_our_memory_nor_a_log_grows);

fn a_slow_reader_stops_its_stream_and_nothing_else(on: On) {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    block_on(async {
        let (_canceller, mut cancel) = Cancel::pair();
        let (mut reader, writer) = tokio::io::duplex(4096);
        let streams = Streams { stdout: Some(Box::pin(writer)), ..Streams::default() };
        let script = "echo first >&2; head -c 2000000 /dev/zero; echo last >&2";
        let call = call_with(plan, argv(&["sh", "-c", script]), streams, &mut cancel);
        let read = async {
            // It is slow, and that is all: nothing depends on how slow.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            let mut all = Vec::new();
            reader.read_to_end(&mut all).await.unwrap();
            all.len()
        };
        let (outcome, count) = tokio::join!(call, read);
        let outcome = outcome.unwrap();
        assert_eq!((outcome.verdict, count), (Verdict::Completed, 2_000_000));
        assert_eq!(outcome.stderr.whole().unwrap(), b"first\nlast\n");
    });
}
attack!(22, "flood", a_slow_reader_stops_its_stream_and_nothing_else);
