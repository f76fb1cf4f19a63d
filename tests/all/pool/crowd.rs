//! Many calls, at once and in a row: nothing is used twice, and no more wait than may.

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{Caller, until_nothing_is_left, used_once};
use crate::support::needs_engine;

#[test]
fn a_storm_never_makes_more_than_may_wait() {
    needs_engine();
    let caller = Caller::new("size: 2");
    let calls: Vec<Child> = (0..12)
        .map(|_| {
            let mut command = caller.0.runner();
            // A crowd on a slow machine takes longer than `readonly` gives a call.
            command
                .args(["exec", "--policy", "develop", "--", "true"])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    let mut most = 0;
    let mut running: Vec<Child> = calls;
    while !running.is_empty() {
        let status = caller.status();
        let all = status["waiting"].as_array().unwrap().len()
            + usize::try_from(status["being_made"].as_u64().unwrap()).unwrap();
        most = most.max(all);
        running.retain_mut(|call| match call.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                false
            }
            None => true,
        });
    }
    let left = caller.settled(2);
    assert!(most <= 2, "{most} waited or were being made at once");
    assert_eq!(left.len(), 2);
}

/// Calls from this many clients at once, each of which succeeds only in a sandbox that nobody used before. In turn, one is
/// taken on a guess and one once it is planned.
fn crowd(caller: &Caller, clients: usize, calls: usize) -> usize {
    let used_once = used_once(caller);
    let next = AtomicUsize::new(0);
    let warm = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= calls {
                        break;
                    }
                    if caller.warm(&used_once[at % 2].each_ref().map(String::as_str)) {
                        warm.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    warm.into_inner()
}

#[test]
fn a_crowd_shares_what_waits_and_uses_nothing_twice() {
    needs_engine();
    let caller = Caller::new("size: 4");
    crowd(&caller, 6, 18);
    // Not always four: one that was taken on a wrong guess is given up, and its call makes one, not two.
    caller.until(|waiting| (1..=4).contains(&waiting));
    assert!(crowd(&caller, 4, 4) > 0, "what waits is used");
}

#[test]
fn a_thousand_calls_from_twenty_clients_use_nothing_twice_and_leave_nothing() {
    needs_engine();
    let caller = Caller::new("size: 8");
    let warm = crowd(&caller, 20, 1_000);
    eprintln!("{warm} of 1000 were warm");
    caller.settled(8);
    until_nothing_is_left(&caller);
}

#[test]
fn two_hundred_calls_in_a_row_are_all_warm() {
    needs_engine();
    let caller = Caller::new("size: 2");
    assert!(!caller.warm(&["--", "true"]));
    for call in 0..200 {
        // Somebody thinks; nobody waits until there is one.
        std::thread::sleep(Duration::from_secs(1));
        assert!(caller.warm(&["--", "true"]), "call {call} fell back to a cold start");
    }
}
