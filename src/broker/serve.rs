//! The talk itself: one task owns its state, handlers run beside it.
//!
//! ```text
//! stream -> reader -> Talk (ids, bodies, limits) -> a task a request -> queue -> writer -> stream
//!                        ^                                |
//!                        +---------- finished ------------+
//! ```
//!
//! What a tool can make us hold is bounded: requests that are not answered, their bytes, the credit of each
//! body, the queue of the writer. Who does not read is not read from once the queue is full. The
//! host's wish to end, and the call's time, are watched beside everything else.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::answer::Context;
use super::frame::{CHUNK_MAX, HostKind, START_MAX, encode};
use super::outgoing::{self, QUEUE};
use super::reader::Reader;
use super::talk::Talk;
use super::{Authority, BrokerUsage, Events, Job, ProtocolError, ServeError, Served, ToolEnd};

/// How long a tool has to come to its result after it was told to end.
const ABORT_GRACE: Duration = Duration::from_secs(2);
/// How long the end of the stream is waited for after the result.
const END_GRACE: Duration = Duration::from_millis(250);
/// How long requests that nobody wants any more have to end: longer than a command's own grace.
const SETTLE_GRACE: Duration = Duration::from_secs(15);

/// Serves one talk to its end. `stop` is the host's wish to end it, with the reason.
pub async fn serve<S>(
    stream: S,
    job: Job,
    authority: Authority,
    events: Arc<dyn Events>,
    stop: impl Future<Output = String> + Send,
) -> Served
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let failed = |end| Served {
        end: Err(end),
        cost: None,
        usage: BrokerUsage::default(),
        requests: Vec::new(),
    };
    let opening = match opening(&job) {
        Ok(opening) => opening,
        Err(error) => return failed(error),
    };
    drop(job);
    let limits = authority.limits;
    let Some(context) = Context::new(authority) else {
        return failed(ServeError::Job("the workspace's path is not UTF-8"));
    };
    let (read, write) = tokio::io::split(stream);
    let (control, control_queue) = mpsc::unbounded_channel();
    let (data, data_queue) = mpsc::channel(QUEUE);
    let writer = tokio::spawn(outgoing::write(write, opening, control_queue, data_queue));
    let mut talk = Talk::new(context, events, limits, control, data);
    let mut reader = Reader::new(read);
    let end = run(&mut talk, &mut reader, stop, Instant::now() + limits.wall).await;
    close(&mut talk, writer).await;
    talk.served(end)
}

/// The job and its code as frames.
fn opening(job: &Job) -> Result<Vec<Vec<u8>>, ServeError> {
    let start = serde_json::to_vec(job).map_err(|_| ServeError::Job("it is not JSON"))?;
    if start.len() > START_MAX {
        return Err(ServeError::Job("its arguments are larger than 16 MiB"));
    }
    let mut frames = vec![encode(HostKind::Start.number(), 0, &start)];
    frames
        .extend(job.code.chunks(CHUNK_MAX).map(|chunk| encode(HostKind::Chunk.number(), 0, chunk)));
    frames.push(encode(HostKind::End.number(), 0, &[]));
    Ok(frames)
}

/// Races frames, finished requests, the host's wish and the clock.
async fn run<R: AsyncRead + Unpin>(
    talk: &mut Talk,
    reader: &mut Reader<R>,
    stop: impl Future<Output = String>,
    mut deadline: Instant,
) -> Result<ToolEnd, ServeError> {
    tokio::pin!(stop);
    // What the talk ends with, once the tool was told to end.
    let mut ending: Option<ServeError> = None;
    loop {
        // An answer that the queue has no room for: nothing more is read before the runtime reads.
        let blocked = talk.owes();
        tokio::select! {
            biased;
            reason = &mut stop, if ending.is_none() => {
                talk.abort(&reason);
                ending = Some(ServeError::Aborted { reason });
                deadline = Instant::now() + ABORT_GRACE;
            }
            () = sleep_until(deadline) => match ending.take() {
                Some(error) => return Err(error),
                None => {
                    talk.abort("the call ran out of time");
                    ending = Some(ServeError::Timeout);
                    deadline = Instant::now() + ABORT_GRACE;
                }
            },
            Some(done) = talk.tasks.join_next_with_id() => match done {
                Ok((_, brokered)) => talk.finished(brokered),
                Err(error) => talk.broke(error.id()),
            },
            room = talk.data.clone().reserve_owned(), if blocked => talk.pay(room.ok()),
            frame = reader.next(), if !blocked => match frame {
                Ok(Some(frame)) => {
                    if let Some(end) = talk.frame(frame)? {
                        return over(reader, ending, end).await;
                    }
                }
                Ok(None) => return Err(ending.unwrap_or(ServeError::NoResult)),
                // Who was told to end may be killed in the middle of a word.
                Err(error) if error.is_cut_off() => return Err(ending.unwrap_or(error)),
                Err(error) => return Err(error),
            },
        }
    }
}

/// The result is the last word: anything after it, and it does not count.
async fn over<R: AsyncRead + Unpin>(
    reader: &mut Reader<R>,
    ending: Option<ServeError>,
    end: ToolEnd,
) -> Result<ToolEnd, ServeError> {
    if let Ok(false) = timeout(END_GRACE, reader.is_over()).await {
        return Err(ProtocolError::AfterResult.into());
    }
    ending.map_or(Ok(end), Err)
}

/// Ends what is still under way, and waits for it: nothing happens on the host after this.
async fn close(talk: &mut Talk, writer: JoinHandle<std::io::Result<()>>) {
    // Without a writer nobody can wait for room in its queue.
    writer.abort();
    drop(writer.await);
    talk.cancel_all();
    let settle = async {
        while let Some(done) = talk.tasks.join_next().await {
            if let Ok(brokered) = done {
                talk.finished(brokered);
            }
        }
    };
    drop(timeout(SETTLE_GRACE, settle).await);
    talk.tasks.shutdown().await;
    drop(timeout(SETTLE_GRACE, talk.context.settle()).await);
}
