//! Something to do for who has to wait.

use std::pin::pin;
use std::time::Duration;

/// A wait that is longer than this is one that somebody may ask about.
const MOMENT: Duration = Duration::from_millis(50);

/// Waits for something. If that takes longer than a moment, `first` is done before the wait goes on.
pub async fn unless_soon<T>(awaited: impl Future<Output = T>, first: impl FnOnce()) -> T {
    let mut awaited = pin!(awaited);
    tokio::select! {
        biased;
        done = &mut awaited => return done,
        () = tokio::time::sleep(MOMENT) => first(),
    }
    awaited.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_who_waits_for_long_does_something_meanwhile() {
        let mut done = 0;
        assert_eq!(unless_soon(async { 7 }, || done += 1).await, 7);
        assert_eq!(done, 0);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let first = || sender.send(8).expect("it is awaited");
        assert_eq!(unless_soon(receiver, first).await, Ok(8), "it comes for what was done");
    }
}
