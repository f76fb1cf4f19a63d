//! Every limit ends a call with its own verdict, and leaves nothing behind.

use std::time::{Duration, Instant};

use runner::sandbox::cancel::Cancel;
use runner::sandbox::outcome::{CancelCause, Outcome, Verdict};
use runner::sandbox::plan::SandboxPlan;
use runner::sandbox::run::Streams;
use runner_policy::limits::Limit;
use runner_wire::LimitHit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::engine::{argv, block_on, call, call_with, plan, workspace};

fn limited(limit: Limit, figure: u64, script: &str) -> Outcome {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.limits.set(limit, figure);
    call(plan, argv(&["sh", "-c", script])).unwrap()
}

#[test]
fn time_ends_what_ignores_every_signal() {
    let begun = Instant::now();
    let outcome = limited(Limit::Wall, 1000, "trap '' TERM INT HUP; setsid sleep 60 & sleep 60");
    assert_eq!(outcome.verdict, Verdict::Timeout);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let wall = outcome.usage.unwrap().wall_us;
    assert!((1_000_000..1_500_000).contains(&wall), "{wall}");
}

#[test]
fn after_the_end_nothing_is_written_any_more() {
    let folder = workspace();
    let script = "for i in 1 2 3 4 5 6; do (while :; do echo x >> f$i; done) & done; sleep 0.3";
    call(plan(folder.path()), argv(&["sh", "-c", script])).unwrap();
    let sizes = || -> Vec<u64> {
        (1..=6)
            .map(|at| std::fs::metadata(folder.path().join(format!("f{at}"))).unwrap().len())
            .collect()
    };
    let at_the_end = sizes();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(sizes(), at_the_end);
    assert!(at_the_end.iter().all(|size| *size > 0));
}

#[test]
fn time_ends_what_is_blocked_in_open() {
    let outcome = limited(Limit::Wall, 1000, "mkfifo f && cat f");
    assert_eq!(outcome.verdict, Verdict::Timeout);
}

#[test]
fn a_heap_beyond_memory_is_oom_and_a_status_of_137_is_not() {
    let script = "python3 -c 'x = bytearray(1 << 30)'";
    let outcome = limited(Limit::Memory, 64 << 20, script);
    assert_eq!(outcome.verdict, Verdict::Oom, "{outcome:?}");
    assert!(outcome.usage.unwrap().oom_kills.unwrap() > 0);
    let chosen = limited(Limit::Memory, 64 << 20, "exit 137");
    assert_eq!(chosen.verdict, Verdict::Failed { status: 137 });
}

#[test]
fn scratch_beyond_memory_is_oom_too() {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.limits.set(Limit::Memory, 32 << 20);
    plan.tmpfs[0].size = 1 << 30;
    let work = argv(&["dd", "if=/dev/zero", "of=/tmp/x", "bs=1M", "count=200"]);
    let outcome = call(plan, work).unwrap();
    assert_eq!(outcome.verdict, Verdict::Oom, "{outcome:?}");
}

#[test]
fn a_fork_bomb_is_a_limit_of_pids() {
    for script in ["for i in $(seq 300); do sleep 20 & done; wait", ":(){ :|:& };:; sleep 1"] {
        let folder = workspace();
        let mut plan = plan(folder.path());
        plan.limits.set(Limit::Pids, 32);
        let outcome = call(plan, argv(&["bash", "-c", script])).unwrap();
        assert_eq!(outcome.verdict, Verdict::Limit(Limit::Pids), "{outcome:?}");
        assert!(outcome.hits.contains(&LimitHit::Pids));
        assert!(outcome.usage.unwrap().peak_pids.unwrap() <= 32);
    }
}

#[test]
fn a_descriptor_bomb_is_a_limit_of_open_files() {
    let script = "import os, time\nfds = []\ntry:\n  while True: fds.append(os.dup(0))\nexcept OSError: time.sleep(20)";
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.limits.set(Limit::OpenFiles, 64);
    let outcome = call(plan, argv(&["python3", "-c", script])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Limit(Limit::OpenFiles), "{outcome:?}");
}

#[test]
fn a_full_workspace_is_a_limit_of_free_space() {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.limits.set(Limit::FreeSpace, 1 << 60);
    let outcome = call(plan, argv(&["sleep", "20"])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Limit(Limit::FreeSpace), "{outcome:?}");
}

#[test]
fn processor_time_and_file_size_are_limits() {
    let spin = limited(Limit::CpuTime, 1000, "exec sh -c 'while :; do :; done'");
    assert_eq!(spin.verdict, Verdict::Limit(Limit::CpuTime), "{spin:?}");
    let write = limited(Limit::FileSize, 1 << 20, "exec dd if=/dev/zero of=big bs=1M count=2");
    assert_eq!(write.verdict, Verdict::Limit(Limit::FileSize), "{write:?}");
}

#[test]
fn a_flood_is_counted_and_ended_at_the_cap() {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.limits.set(Limit::OutputMax, 16 << 20);
    plan.limits.set(Limit::Output, 64 << 10);
    let outcome = call(plan, argv(&["yes"])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Limit(Limit::OutputMax));
    assert_eq!(outcome.stdout.head().len(), 32 << 10);
    assert_eq!(outcome.stdout.tail().len(), 32 << 10);
    assert!(outcome.stdout.total() >= 16 << 20 && outcome.stdout.total() < 17 << 20);
}

fn with_input(plan: SandboxPlan, words: &[&str], input: Vec<u8>) -> Outcome {
    block_on(async {
        let (_canceller, mut cancel) = Cancel::pair();
        let stdin = std::io::Cursor::new(input);
        let streams = Streams { stdin: Some(Box::pin(stdin)), ..Streams::default() };
        call_with(plan, argv(words), streams, &mut cancel).await.unwrap()
    })
}

#[test]
fn input_arrives_byte_for_byte() {
    let folder = workspace();
    let input: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut plan = plan(folder.path());
    plan.limits.set(Limit::Output, 8 << 20);
    let outcome = with_input(plan, &["cat"], input.clone());
    assert_eq!(outcome.verdict, Verdict::Completed);
    assert!(outcome.stdout.whole().unwrap() == input);
}

#[test]
fn empty_input_ends_at_once() {
    let folder = workspace();
    let begun = Instant::now();
    let outcome = call(plan(folder.path()), argv(&["cat"])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Completed);
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[test]
fn input_that_nobody_reads_does_not_block_the_end() {
    let folder = workspace();
    let outcome = with_input(plan(folder.path()), &["true"], vec![0; 3_000_000]);
    assert_eq!(outcome.verdict, Verdict::Completed);
}

#[test]
fn a_slow_reader_stops_its_stream_and_nothing_else() {
    let folder = workspace();
    block_on(async {
        let (_canceller, mut cancel) = Cancel::pair();
        let (mut reader, writer) = tokio::io::duplex(4096);
        let streams = Streams { stdout: Some(Box::pin(writer)), ..Streams::default() };
        let script = "echo first >&2; head -c 2000000 /dev/zero; echo last >&2";
        let call =
            call_with(plan(folder.path()), argv(&["sh", "-c", script]), streams, &mut cancel);
        let read = async {
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

#[test]
fn a_request_to_cancel_ends_the_call() {
    for script in ["exec sleep 60", "trap '' INT TERM; while :; do sleep 1; done"] {
        let folder = workspace();
        let begun = Instant::now();
        block_on(async {
            let (canceller, mut cancel) = Cancel::pair();
            let streams = Streams::default();
            let call =
                call_with(plan(folder.path()), argv(&["sh", "-c", script]), streams, &mut cancel);
            let ask = async {
                tokio::time::sleep(Duration::from_millis(1200)).await;
                canceller.cancel(CancelCause::Interrupt);
            };
            let (outcome, ()) = tokio::join!(call, ask);
            assert_eq!(outcome.unwrap().verdict, Verdict::Cancelled(CancelCause::Interrupt));
        });
        assert!(begun.elapsed() < Duration::from_secs(5), "{script}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_reader_who_leaves_ends_the_call() {
    let folder = workspace();
    block_on(async {
        let (_canceller, mut cancel) = Cancel::pair();
        let (mut reader, writer) = tokio::io::duplex(4096);
        let streams = Streams { stdout: Some(Box::pin(writer)), ..Streams::default() };
        let call = call_with(plan(folder.path()), argv(&["yes"]), streams, &mut cancel);
        let leave = async move {
            let mut first = [0; 2];
            reader.read_exact(&mut first).await.unwrap();
            reader.shutdown().await.unwrap();
        };
        let (outcome, ()) = tokio::join!(call, leave);
        assert_eq!(outcome.unwrap().verdict, Verdict::Cancelled(CancelCause::OutputClosed));
    });
}
