//! Runs a fallback if a future takes longer than 50 ms.

use std::pin::pin;
use std::time::Duration;

/// A call that waits for longer than this has to be visible in `ps`.
const MOMENT: Duration = Duration::from_millis(50);

/// Awaits a future. If it takes longer than 50 ms, `fallback` runs once before the wait goes on.
pub async fn run_if_slow<T>(awaited: impl Future<Output = T>, fallback: impl FnOnce()) -> T {
    let mut awaited = pin!(awaited);
    tokio::select! {
        biased;
        done = &mut awaited => return done,
        () = tokio::time::sleep(MOMENT) => fallback(),
    }
    awaited.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_fallback_runs_only_if_the_wait_is_long() {
        let mut done = 0;
        assert_eq!(run_if_slow(async { 7 }, || done += 1).await, 7);
        assert_eq!(done, 0);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let first = || sender.send(8).expect("it is awaited");
        assert_eq!(run_if_slow(receiver, first).await, Ok(8), "it comes for what was done");
    }
}
