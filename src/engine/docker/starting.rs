//! The output of a guest that is being started.
//!
//! A guest's first message comes before the daemon's answer to the start, so both are awaited at once. If the start
//! fails, the daemon's reason takes the place of an output that ends without one.

use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::engine::error::EngineError;
use crate::engine::traits::Chunk;

/// How long the daemon's answer is awaited once the output has ended.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// What a guest writes.
pub(super) type Output = Pin<Box<dyn Stream<Item = Result<Chunk, EngineError>> + Send>>;

/// The daemon's answer to a start, which is on its way.
pub(super) type Start = JoinHandle<Result<(), EngineError>>;

/// The output of a guest, with the failure of its start.
pub(super) fn output(output: Output, start: Start) -> Output {
    let state = Starting { output, start: Some(start) };
    Box::pin(unfold(state, |mut state| async move { Some((state.next().await?, state)) }))
}

struct Starting {
    output: Output,
    /// `None` once nothing more is expected of it.
    start: Option<Start>,
}

impl Starting {
    async fn next(&mut self) -> Option<Result<Chunk, EngineError>> {
        while let Some(start) = &mut self.start {
            tokio::select! {
                biased;
                item = self.output.next() => {
                    match &item {
                        // It runs: the start went well, whatever the daemon says of it later.
                        Some(Ok(Chunk::Wire(_))) => self.start = None,
                        Some(_) => {}
                        None => {
                            let answer = timeout(ANSWER_WAIT, start).await;
                            self.start = None;
                            if let Ok(Ok(Err(error))) = answer {
                                return Some(Err(error));
                            }
                        }
                    }
                    return item;
                }
                answer = &mut *start => {
                    self.start = None;
                    match answer {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => return Some(Err(error)),
                        Err(died) => {
                            let why = died.to_string();
                            return Some(Err(EngineError::Lost { operation: "start a sandbox", why }));
                        }
                    }
                }
            }
        }
        self.output.next().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::{iter, pending};

    use super::*;

    fn refused() -> Result<(), EngineError> {
        Err(EngineError::Slow { operation: "start a sandbox" })
    }

    async fn shown(output: Output) -> Vec<String> {
        let word = |item: Result<Chunk, EngineError>| match item {
            Ok(Chunk::Wire(bytes)) => String::from_utf8(bytes).unwrap(),
            Ok(Chunk::Noise(_)) => "noise".to_owned(),
            Err(_) => "failed".to_owned(),
        };
        output.map(word).collect().await
    }

    #[tokio::test]
    async fn a_start_that_fails_is_told_before_and_at_the_end_of_the_output() {
        let silent = output(Box::pin(pending()), tokio::spawn(async { refused() }));
        let told = silent.into_future().await.0.unwrap();
        assert!(matches!(told, Err(EngineError::Slow { .. })));
        let slow = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            refused()
        };
        let noise = iter([Ok(Chunk::Noise(b"no such file".to_vec()))]);
        assert_eq!(shown(output(Box::pin(noise), tokio::spawn(slow))).await, ["noise", "failed"]);
    }

    #[tokio::test]
    async fn a_guest_that_spoke_has_started() {
        let slow = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            refused()
        };
        let said = iter([Ok(Chunk::Wire(b"a".to_vec())), Ok(Chunk::Wire(b"b".to_vec()))]);
        assert_eq!(shown(output(Box::pin(said), tokio::spawn(slow))).await, ["a", "b"]);
        let went_well = tokio::spawn(async { Ok(()) });
        assert_eq!(shown(output(Box::pin(iter([])), went_well)).await, [""; 0]);
    }
}
