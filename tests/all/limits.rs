//! Time by which calls end, and streams that begin and end as they should. Limits that an attack would meet are in
//! the escape suite.

use std::time::{Duration, Instant};

use runner::call::launch::outcome::Outcome;
use runner::call::launch::run::Streams;
use runner::engine::plan::SandboxPlan;
use runner::sandbox::cancel::Cancel;
use runner::sandbox::outcome::{CancelCause, Verdict};
use runner_policy::limits::Limit;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::engine::{argv, block_on, call, call_with, plan, workspace};

/// The clock tells when a call ends; how long it took is told by the guest.
#[test]
fn time_is_counted_by_the_guest() {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.limits.set(Limit::Wall, 1000);
    let begun = Instant::now();
    let outcome = call(plan, argv(&["sleep", "600"])).unwrap();
    let took = begun.elapsed();
    assert_eq!(outcome.verdict, Verdict::Timeout);
    // The sandbox was made before, and removed after it.
    let wall = Duration::from_micros(outcome.usage.unwrap().wall_us);
    assert!(wall >= Duration::from_secs(1) && wall < took, "{wall:?} of {took:?}");
}

#[test]
fn processor_time_is_a_limit() {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.limits.set(Limit::CpuTime, 1000);
    let spin = call(plan, argv(&["sh", "-c", "while :; do :; done"])).unwrap();
    assert_eq!(spin.verdict, Verdict::Limit(Limit::CpuTime), "{spin:?}");
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
    // Otherwise it meets its time.
    let outcome = call(plan(folder.path()), argv(&["cat"])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Completed);
}

#[test]
fn input_that_nobody_reads_does_not_block_the_end() {
    let folder = workspace();
    let outcome = with_input(plan(folder.path()), &["true"], vec![0; 3_000_000]);
    assert_eq!(outcome.verdict, Verdict::Completed);
}

#[test]
fn a_request_to_cancel_ends_the_call() {
    // Nothing else ends them.
    for script in
        ["echo up; exec sleep 600", "trap '' INT TERM; echo up; while :; do sleep 1; done"]
    {
        let folder = workspace();
        let mut plan = plan(folder.path());
        plan.limits.set(Limit::Wall, 600_000);
        block_on(async {
            let (canceller, mut cancel) = Cancel::pair();
            let (mut reader, writer) = tokio::io::duplex(4096);
            let streams = Streams { stdout: Some(Box::pin(writer)), ..Streams::default() };
            let call = call_with(plan, argv(&["sh", "-c", script]), streams, &mut cancel);
            let ask = async {
                reader.read_exact(&mut [0; 3]).await.unwrap();
                canceller.cancel(CancelCause::Interrupt);
            };
            let (outcome, ()) = tokio::join!(call, ask);
            assert_eq!(outcome.unwrap().verdict, Verdict::Cancelled(CancelCause::Interrupt));
        });
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
